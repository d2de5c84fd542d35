//! A device in another process.
//!
//! Drivers crash and hang. [`RemoteDevice`] is a [`Device`](mxprobe_api::Device) that forwards every request to a child process with a time
//! limit, so that a crash costs the operation that was being asked and nothing else. The child is any program that speaks
//! the protocol of `docs/protocol.md`; [`serve`] is the child's side of it for backends of this workspace.

mod child;
mod conformance;
mod described;
#[cfg(test)]
mod mutations;
mod process;
mod protocol;
mod remote;
mod screening;
mod sizes;
mod words;

pub use child::serve;
pub use conformance::{PROGRAM_CHECKS, check_program};
pub use described::{Described, MatricesRecord};
pub use process::Listener;
pub use protocol::{Answer, PROTOCOL, Request, TimedRecord};
pub use remote::{Found, Health, PATIENCE, Program, RemoteDevice};
pub use screening::{ScreenRecord, ScreenedRecord};
pub use sizes::{FreeOperation, Sizes, USUAL};
