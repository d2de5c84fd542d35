//! One suite that every backend passes, and the wrong devices that it must catch.
//!
//! [`check`] asks what holds whatever the arithmetic: elements where the layout says, every element written, the same
//! bits again and at every position. [`against`] compares a device bit for bit with a reference, such as a model of the
//! same unit. [`check_backend`] asks what holds of a backend as a whole. [`FAULTS`] are devices that are wrong in one
//! way each; whoever changes the suite, or the probes, sees whether they are still told apart from a right one.
//!
//! ```
//! use mxprobe_api::Backend;
//! use mxprobe_conformance::{FaultBackend, check};
//!
//! let right = mxprobe_sim::SimBackend.open("h100")?;
//! let operation = right.operations().values().next().expect("a model has operations");
//! assert!(check(right.as_ref(), operation).is_empty());
//!
//! let wrong = FaultBackend.open("all-zeros:h100")?;
//! assert!(check(wrong.as_ref(), operation).iter().any(|violation| violation.check == "layout"));
//! # Ok::<(), mxprobe_api::Error>(())
//! ```
//!
//! A backend calls [`check_device`] in its own tests, for each device that it opens: [`check`] of each operation, and what holds of
//! the abilities that the device has. It calls [`against`] where a model of the driver is there. A device that wraps another is held
//! against [`dropped`], so that it hands on every ability.
#![forbid(unsafe_code)]

mod abilities;
mod against;
mod arithmetic;
mod backend;
mod device;
mod faults;
mod screening;
mod suite;
mod violation;

pub use mxprobe_dots::{CLASSES, Dot, Maker, Random, pack};

pub use abilities::{ABILITIES, Ability, able, dropped};
pub use against::{against, against_dots};
pub use backend::{BACKEND_CHECKS, check_backend};
pub use device::{ABILITY_CHECKS, check_device, check_operation, check_scalar};
pub use faults::{FAULTS, Fault, FaultBackend, Right, wrong};
pub use suite::{CHECKS, check};
pub use violation::Violation;
