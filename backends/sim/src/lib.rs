//! Models of matrix units as devices: `sim:h100`, or `sim:` and the path of a model file.
//!
//! `mxprobe-models` defines and evaluates the models; this crate only wraps them as devices, so that whatever works on
//! hardware works on a model whose arithmetic is known.
//!
//! ```
//! use mxprobe_api::{Backend, OperationId, TileBatch, execute, operation_of};
//!
//! let device = mxprobe_sim::SimBackend.open("v100")?;
//! let id: OperationId = "mma.m8n8k4.f32.f16.f16.f32".parse()?;
//! let operation = operation_of(device.as_ref(), &id)?;
//!
//! // The first element of D is 1·1 + 0, and the others are 0.
//! let mut batch = TileBatch::zeros(operation, 1);
//! batch.a.set(0, id.a.one());
//! batch.b.set(0, id.b.one());
//! let d = execute(device.as_ref(), operation, &batch)?;
//! assert_eq!((d.get(0), d.get(1)), (0x3f80_0000, 0));
//! # Ok::<(), mxprobe_api::Error>(())
//! ```
#![forbid(unsafe_code)]

mod device;

pub use device::{ModelDevice, SimBackend};
