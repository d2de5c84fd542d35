//! Results of a run, their comparison with other results, and views of both.
//!
//! Four layers with dependencies in one direction: [`Show`] and the views, which are here, use comparisons, summaries and
//! records; comparisons use summaries and records; summaries use records; and records use none of these. The last three
//! are modules of `mxprobe-analysis`, handed on here.

mod program;
mod schemas;
mod view;

pub use crate::findings::Outcome;
pub use mxprobe_analysis::compare::{compare, compare_growth, compare_throughput, compared_answer};
pub use mxprobe_analysis::record::*;
pub use mxprobe_analysis::summary::is_layout;
pub use program::{build_version, this_tool};
pub use schemas::{
    algorithms_schema, bench_comparison_schema, bench_schema, classes_schema, comparison_schema, distinction_schema,
    explanation_schema, fleet_schema, growth_comparison_schema, growth_schema, identification_schema, list_schema,
    papers_schema, properties_schema, schema, screen_schema, verification_schema,
};
pub use view::{
    Block, Cell, CellKind, Column, Comparisons, Form, Glimpse, GlimpseRow, Layout, Listings, Matrix, Page, ROW_HEADS,
    Reports, Row, Rows, STAR, Screens, Shade, Show, Style, Table, Throughputs, Tone, drawn_strips, drawn_trees,
    glimpses, grouped, growth_chart, identification_summary, identified, notable, on_screen, row_cells, shades,
    verdict, verification_summary, verified, wrap,
};
