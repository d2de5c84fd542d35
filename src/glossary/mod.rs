//! The words of a report and their meanings: probes, formats, families of operations, fields, terms.

mod explanation;
mod formats;
mod list;
mod number;

pub use explanation::Explained;
pub use formats::called as formats_called;
pub use list::{entries, explain, other_names};
pub use number::number;

pub use crate::report::explanation_schema;
pub use mxprobe_analysis::record::explanation::{
    EXPLANATION_SCHEMA, Entry, Explanation, FieldInWords, Kind, ModelInWords, TraceInWords,
};
