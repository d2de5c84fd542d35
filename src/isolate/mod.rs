//! A device in another process.
//!
//! Drivers crash and hang. [`RemoteDevice`] is a [`Device`](mxprobe_api::Device) that forwards every request to a child
//! process with a time limit, so that a crash costs only the operation in progress. The child is any program that
//! speaks the protocol of `docs/protocol.md`; [`serve`] implements the child's side for the backends of this workspace.

mod child;
mod conformance;
mod described;
#[cfg(test)]
mod mutations;
mod process;
mod protocol;
mod remote;
mod screening;
mod words;

pub use child::serve;
pub use conformance::{PROGRAM_CHECKS, check_program};
pub use described::{Described, MatricesRecord};
pub use process::Listener;
pub use protocol::{Answer, PROTOCOL, Request, TimedRecord};
pub use remote::{Found, Health, PATIENCE, Program, RemoteDevice};
pub use screening::{ScreenRecord, ScreenedRecord};
