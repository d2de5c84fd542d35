//! Results of a run, their comparison with other results, and views of both.
//!
//! Four modules with dependencies in one direction: [`Show`] and the views use comparisons, summaries and records;
//! comparisons use summaries and records; summaries use records; and records use none of these.

mod compare;
mod record;
mod summary;
mod view;

pub use crate::findings::Outcome;
pub use compare::{compare, compare_growth, compare_throughput, compared_answer};
pub(crate) use record::published;
pub use record::{
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
    VERIFICATION_SCHEMA, Verdict, VerificationReport, VerifiedOperation, WrongRecord, WrongWord, algorithms_schema,
    bench_comparison_schema, bench_schema, build_version, check, classes_schema, comparison_schema, distinction_schema,
    fleet_schema, growth_comparison_schema, growth_schema, identification_schema, list_schema, now, papers_schema,
    properties_schema, schema, screen_schema, unit_noun, verification_schema,
};
pub use summary::is_layout;
pub use view::{
    Block, Cell, CellKind, Column, Comparisons, Form, Glimpse, GlimpseRow, Layout, Listings, Matrix, Page, ROW_HEADS,
    Reports, Row, Rows, STAR, Screens, Shade, Show, Style, Table, Throughputs, Tone, drawn_strips, drawn_trees,
    glimpses, grouped, identification_summary, identified, notable, on_screen, row_cells, shades, to_json, verdict,
    verification_summary, verified, wrap,
};
