//! The contract between `mxprobe` and its backends.
//!
//! A backend is written against this crate alone. It says which devices it found ([`Backend::discover`]), which
//! operations each of them claims ([`Device::operations`], plain data), and computes batches of tiles bit for bit
//! ([`Device::execute`]). Everything that crosses this border is bits; values are made from bits only where somebody
//! asks for one ([`Format::decode`]). Two abilities are optional: to be timed ([`Device::timing`]), and to multiply whole
//! matrices ([`Device::multiply`]).
//!
//! Responsibilities: the caller validates ([`execute`] does, once, for every backend); the backend may rely on what was
//! validated, must never panic on a missing driver, and must never hide what it could not use.
#![forbid(unsafe_code)]

mod batch;
mod device;
mod error;
mod format;
mod issued;
mod library;
mod loaded;
mod operation;
mod product;
mod scalar;
mod self_test;
mod timing;

pub use batch::{Elements, TileBatch};
pub use device::{Backend, Device, DeviceInfo, DeviceKind, Discovery, Driver, Refusal, execute};
pub use error::{Error, ErrorKind};
pub use format::{Decoded, Encoded, Encoding, FloatEncoding, Format, Overflow, Rounding, Specials, Subnormals};
pub use issued::Issued;
pub use library::{Library, multiply_with};
pub use loaded::loaded_library;
pub use operation::{BlockScale, Operation, OperationId, OperationSet, Shape};
pub use product::{Product, multiply};
pub use scalar::{DotOrder, Scalar, ScalarFunction, ScalarId, compute};
pub use self_test::{SelfTest, self_test};
pub use timing::{Clock, Load, Span, Timed, Timing, time};
