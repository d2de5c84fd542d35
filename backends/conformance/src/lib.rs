//! A suite that every backend must pass, and the wrong devices that it must catch.
//!
//! [`check`] checks what holds for any arithmetic: elements lie where the layout says, every element is written, and
//! the bits are the same every time and at every position. [`against`] compares a device bit for bit with a reference,
//! such as a model of the same unit. [`check_backend`] checks a backend as a whole. [`FAULTS`] are devices that are
//! wrong in one way each; they show whether a changed suite, or changed probes, can still tell them from a right one.
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
//! A backend calls [`check_device`] in its own tests, for each device that it opens: it runs [`check`] for each
//! operation, and the checks of the abilities that the device has. If there is a model of the device, it also calls
//! [`against`]. The tests of a wrapper device use [`dropped`] to check that it forwards every ability.
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
