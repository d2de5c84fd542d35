//! The contract between `mxprobe` and its backends.
//!
//! A backend depends on this crate alone. It lists the devices it found ([`Backend::discover`]) and the operations that
//! each of them claims ([`Device::operations`], plain data), and computes batches of tiles bit for bit
//! ([`Device::execute`]). Everything that crosses this boundary is bits; bits are decoded to values only on request
//! ([`Format::decode`]). Six abilities are optional, each an object of its own: multiplying whole matrices
//! ([`Matrices`]), calling scalar functions ([`Scalars`]), reporting the status flags that those raise
//! ([`StatusFlags`]), timing ([`Timing`]), screening the units for wrong results ([`Screening`]), and showing the code
//! that the driver receives and compiles ([`Code`]).
//!
//! Responsibilities: the caller validates ([`execute`] does so once, for every backend). The backend may rely on that
//! validation; it must never panic on a missing driver and never hide what it could not use.
//!
//! A device with one operation, a fused multiply-add, and its result for two tiles of one element each:
//!
//! ```
//! use std::collections::BTreeMap;
//!
//! use mxprobe_api::{
//!     Device, DeviceInfo, DeviceKind, Elements, Error, Format, Operation, OperationId, OperationSet, TileBatch,
//!     execute,
//! };
//!
//! struct Fma {
//!     info: DeviceInfo,
//!     operations: OperationSet,
//! }
//!
//! impl Device for Fma {
//!     fn info(&self) -> &DeviceInfo {
//!         &self.info
//!     }
//!
//!     fn operations(&self) -> &OperationSet {
//!         &self.operations
//!     }
//!
//!     fn execute(&self, operation: &Operation, batch: &TileBatch) -> Result<Elements, Error> {
//!         let value = |elements: &Elements, tile: usize| f32::from_bits(elements.get(tile) as u32);
//!         let d = (0..batch.tiles).map(|tile| {
//!             let d = value(&batch.a, tile).mul_add(value(&batch.b, tile), value(&batch.c, tile));
//!             u64::from(d.to_bits())
//!         });
//!         Ok(Elements::from_bits(operation.id.d, d))
//!     }
//! }
//!
//! let id: OperationId = "fma.m1n1k1.f32.f32.f32.f32".parse()?;
//! let device = Fma {
//!     info: DeviceInfo {
//!         backend: "example".into(),
//!         selector: "example:0".into(),
//!         name: "Fused multiply-add".into(),
//!         fingerprint: "fma".into(),
//!         kind: DeviceKind::Software,
//!         emulated: false,
//!         aliases: Vec::new(),
//!         driver: None,
//!         properties: BTreeMap::new(),
//!     },
//!     operations: OperationSet::from([(id.clone(), Operation::new(id.clone(), "thread"))]),
//! };
//! let operation = &device.operations[&id];
//! let mut batch = TileBatch::zeros(operation, 2);
//! batch.a.set(1, Format::F32.from_f64(3.0));
//! batch.b.set(1, Format::F32.from_f64(0.5));
//! batch.c.set(1, Format::F32.from_f64(4.0));
//! let d = execute(&device, operation, &batch)?;
//! assert_eq!(d.iter().map(|bits| Format::F32.to_f64(bits)).collect::<Vec<_>>(), [0.0, 5.5]);
//! # Ok::<(), Error>(())
//! ```
//!
//! `examples/backend` in the repository adds a backend like this one to the command `mxprobe`.
#![forbid(unsafe_code)]

mod batch;
mod device;
mod error;
mod flags;
mod format;
mod issued;
mod library;
mod loaded;
mod matrices;
mod operation;
mod random;
mod scalar;
mod screening;
mod self_test;
mod sized;
mod sizes;
mod threads;
mod timing;
pub mod written;

pub use batch::{Elements, TileBatch};
pub use device::{Backend, Device, DeviceInfo, DeviceKind, Discovery, Driver, Refusal, execute, operation_of};
pub use error::{Error, ErrorKind};
pub use flags::{Flag, Flags, StatusFlags, call_with_flags, flags_of};
pub use format::{Decoded, Encoded, Encoding, FloatEncoding, Format, Overflow, Rounding, Specials, Subnormals};
pub use issued::{Code, Issued};
pub use library::{Library, multiply_with};
pub use loaded::loaded_library;
pub use matrices::{DotOperands, GemmOperands, Matrices, dots, multiply, multiply_by_tiles};
pub use operation::{BlockScale, Operation, OperationId, OperationSet, Shape};
pub use random::Random;
pub use scalar::{DotOrder, Elementary, Scalar, ScalarFunction, ScalarId, Scalars, call, scalars_of};
pub use screening::{
    Drill, Injection, KEPT, Screened, Screening, WrongBlock, biased_exponent, digest, go_over, lanes, screen,
    screen_by_tiles,
};
pub use self_test::{SelfTest, self_test};
pub use sized::with_sizes;
pub use sizes::{FreeOperation, Sizes, USUAL};
pub use threads::threads;
pub use timing::{Clock, Load, Span, Timed, Timing, time};
