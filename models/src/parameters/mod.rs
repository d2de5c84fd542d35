//! The parameters of adders: one table, and everything derived from it.

mod choices;
mod parameter;
mod result;
mod table;
mod whole;

pub use choices::{Choice, Choices};
pub use parameter::{Parameter, Setting, Tried, Turn};
pub use table::{PARAMETERS, RULE};
pub use whole::documentation;
pub(crate) use {
    table::counted_bits,
    whole::{read_adder, write_adder},
};
