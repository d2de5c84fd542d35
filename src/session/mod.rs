//! Sessions with one device: the commands `run`, `identify`, `verify` and `distinguish` without terminal or file
//! output.
//!
//! [`each`](each()) asks a device about operations in turn, on a thread, and can be stopped at any time. [`run`],
//! [`identify`] and [`verify`] use it to produce a whole report; [`probe`], [`identify_one`] and [`verify_one`] produce
//! one entry of it. [`patterns`] selects operations and probes by name.

mod algorithms;
mod ask;
mod classes;
mod distinction;
mod each;
mod glob;
mod identified;
pub mod patterns;
mod properties;
mod stoppable;
pub mod synonyms;
mod whole;

pub use algorithms::Algorithms;
pub use ask::{Expected, identify_one, probe, probe_at, unidentified, unverified, verify_one};
pub use classes::Classes;
pub use distinction::Distinction;
pub use each::{Asked, Listener, Stop, each, threads_each, unanswered};
pub use glob::matches;
pub use identified::IdentifiedModel;
pub use properties::Properties;
pub use whole::{Session, begin, identify, listed, run, verify};
