//! How results are shown: a page of words, rows for spreadsheets and JSON, in the form that is asked for.

mod comparisons;
mod comparisons_rows;
mod comparisons_screen;
mod comparisons_words;
mod csv;
mod form;
mod groups;
mod html;
mod identification;
mod json;
mod listing;
mod markdown;
mod page;
mod plot;
mod reports;
mod reports_rows;
mod reports_screen;
mod style;
mod terminal;
mod throughput;
mod throughput_rows;
mod verification;
mod words;

pub use comparisons::Comparisons;
pub use csv::Rows;
pub use form::{Form, Show};
pub use groups::grouped;
pub use identification::{identified, identified_of};
pub use json::to_json;
pub use listing::Listings;
pub use page::{Block, Cell, CellKind, Column, Layout, Page, Row, Table, Tone};
pub use reports::Reports;
pub use style::{Style, wrap};
pub use terminal::on_screen;
pub use throughput::Throughputs;
pub use verification::verified;
