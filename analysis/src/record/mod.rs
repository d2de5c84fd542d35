//! Reports: their types, their provenance, and the check of a saved one.

mod algorithms;
mod called;
pub mod check;
mod classes;
mod comparison;
mod distinction;
mod evidence;
pub mod explanation;
mod finding;
mod fleet;
mod growth;
mod identification;
mod json;
mod left;
mod measured;
mod papers;
mod plan;
mod properties;
mod provenance;
mod quick;
mod report;
mod request;
mod scan;
#[cfg(test)]
mod schemas;
mod screening;
mod summary;
mod throughput;
mod unfinished;
mod unique;

pub use algorithms::{ALGORITHMS_SCHEMA, AlgorithmDot, AlgorithmRecord, AlgorithmsReport};
pub use classes::{CLASSES_SCHEMA, ClassesReport, PairRecord};
pub use comparison::{
    Alone, Answer, COMPARISON_SCHEMA, Compared, Comparison, DotCompared, Match, MatchedBy, MatrixRow, Side, State,
};
pub use distinction::{DISTINCTION_SCHEMA, DistinctionReport, DistinctionVerdict, Inputs, ProofRecord, RefutedFormula};
pub use evidence::DotText;
pub use evidence::{EvidenceList, EvidenceRecord, RivalRecord};
pub use finding::{FindingRecord, OperationRecord, OperationReport};
pub use fleet::{
    Change, Counted, Drift, EarlierFleet, FLEET_SCHEMA, FleetClass, FleetDifference, FleetKind, FleetReport, Member,
    SkippedFile, Unhealthy,
};
pub use growth::{GROWTH_SCHEMA, GrowthReport};
pub use identification::{
    BlockRecord, IDENTIFICATION_SCHEMA, IdentificationOutcome, IdentificationReport, IdentifiedOperation,
    VERIFICATION_SCHEMA, VerificationReport, VerifiedOperation,
};
pub use json::{one_or_array, reports_json, to_json};
pub use measured::{
    AloneRate, BENCH_COMPARISON_SCHEMA, BenchComparison, ComparedCurve, ComparedRate, GROWTH_COMPARISON_SCHEMA,
    GrowthComparison, Rate, Ratio,
};
pub use papers::{PAPERS_SCHEMA, PaperItem, PaperRecord, PaperSection, PapersReport, Verdict};
pub use plan::{Plan, Resumption};
pub use properties::{AlternativeRecord, PROPERTIES_SCHEMA, PropertiesReport, PropertyRecord};
pub use provenance::UUID_DIGEST;
pub use provenance::{Conditions, Host, Time, Tool, now};
pub use report::{DeviceRecord, DriverRecord, Kind, LIST_SCHEMA, ListedDevice, Listing, RefusalRecord, Report, SCHEMA};
pub use request::Request;
pub use screening::{
    Again, Health, SCREEN_SCHEMA, ScreenReport, ScreenShard, ScreenedOperation, ScreenedUnit, Tally, WrongRecord,
    WrongWord, unit_noun,
};
pub use summary::{AtOnce, BitsKept, Notable, Summary, SummaryRow, Unit};
pub use throughput::{
    BENCH_SCHEMA, BenchReport, BenchSettings, CyclePeak, Data, FEWEST_SAMPLES, Peak, SPREAD_LIMIT_PERCENT, Throughput,
    ThroughputRun, TimedBy, Units,
};
pub use unfinished::EXECUTION;
