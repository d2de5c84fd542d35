//! Models of matrix units as devices: `sim:h100`, or `sim:` and the path of a model file.
//!
//! What a unit computes is said and evaluated by `mxprobe-models`; here a model only gets the contract of a device.
#![forbid(unsafe_code)]

mod device;

pub use device::{ModelDevice, SimBackend};
