//! Models of matrix units as devices: `sim:h100`, or `sim:` and the path of a model file.
//!
//! `mxprobe-models` defines and evaluates the models; this crate only wraps them as devices.
#![forbid(unsafe_code)]

mod device;

pub use device::{ModelDevice, SimBackend};
