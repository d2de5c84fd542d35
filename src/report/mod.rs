//! Results of a run, their comparison with other results, and views of both.
//!
//! Four modules with dependencies in one direction: [`Show`] and the views use comparisons, summaries and records;
//! comparisons use summaries and records; summaries use records; and records use none of these.

mod program;
mod schemas;
mod view;

pub use crate::findings::Outcome;
pub use mxprobe_analysis::compare::{compare, compare_growth, compare_throughput, compared_answer};
pub use mxprobe_analysis::record::{
    ALGORITHMS_SCHEMA, Again, AlgorithmDot, AlgorithmRecord, AlgorithmsReport, Alone, AloneRate, AlternativeRecord,
    Answer, AtOnce, BENCH_COMPARISON_SCHEMA, BENCH_SCHEMA, BenchComparison, BenchReport, BenchSettings, BitsKept,
    BlockRecord, CLASSES_SCHEMA, COMPARISON_SCHEMA, Change, ClassesReport, Compared, ComparedCurve, ComparedRate,
    Comparison, Conditions, Counted, CyclePeak, DISTINCTION_SCHEMA, Data, DeviceRecord, DistinctionReport,
    DistinctionVerdict, DotCompared, Drift, DriverRecord, EXECUTION, EarlierFleet, EvidenceList, EvidenceRecord,
    FEWEST_SAMPLES, FLEET_SCHEMA, FindingRecord, FleetClass, FleetDifference, FleetKind, FleetReport,
    GROWTH_COMPARISON_SCHEMA, GROWTH_SCHEMA, GrowthComparison, GrowthReport, Health, Host, IDENTIFICATION_SCHEMA,
    IdentificationOutcome, IdentificationReport, IdentifiedOperation, Inputs, Kind, LIST_SCHEMA, ListedDevice, Listing,
    Match, MatchedBy, MatrixRow, Member, Notable, OperationRecord, OperationReport, PAPERS_SCHEMA, PROPERTIES_SCHEMA,
    PairRecord, PaperItem, PaperRecord, PaperSection, PapersReport, Peak, Plan, ProofRecord, PropertiesReport,
    PropertyRecord, Rate, Ratio, RefusalRecord, RefutedFormula, Report, Request, Resumption, RivalRecord, SCHEMA,
    SCREEN_SCHEMA, SPREAD_LIMIT_PERCENT, ScreenReport, ScreenShard, ScreenedOperation, ScreenedUnit, Side, SkippedFile,
    State, Summary, SummaryRow, Tally, Throughput, ThroughputRun, Time, TimedBy, Tool, Unhealthy, Unit, Units,
    VERIFICATION_SCHEMA, Verdict, VerificationReport, VerifiedOperation, WrongRecord, WrongWord, check, now,
    one_or_array, reports_json, to_json, unit_noun,
};
pub use mxprobe_analysis::summary::is_layout;
use mxprobe_analysis::{record, summary};
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
