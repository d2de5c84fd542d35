//! The words of a report and their meanings: probes, formats, families of operations, fields, terms.

mod entry;
mod explanation;
mod formats;
mod list;
mod number;

pub use entry::{Entry, Kind};
pub use explanation::{
    EXPLANATION_SCHEMA, Explained, Explanation, FieldInWords, ModelInWords, TraceInWords, explanation_schema,
};
pub use formats::called as formats_called;
pub use list::{entries, explain, other_names};
pub use number::number;
