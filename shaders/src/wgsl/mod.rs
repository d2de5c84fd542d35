//! WGSL for any desktop GPU, compiled by naga: cooperative matrices as far as WGSL supports them, and scalar
//! arithmetic.
//!
//! [`cannot_say`] says which configurations have no [`Kernel`], and why. [`scalar`] has the functions of the scalar
//! units.
//!
//! ```
//! use mxprobe_api::Format;
//! use mxprobe_shaders::wgsl::{Kernel, cannot_say};
//!
//! let formats = [Format::F16, Format::F16, Format::F32, Format::F32];
//! assert_eq!(cannot_say((16, 16, 16), formats, false), None);
//! let kernel = Kernel { size: 16, formats: [Format::F16, Format::F32], workgroup_size: 32 };
//! assert_eq!(kernel.tile_bytes(), [512, 512, 1024, 1024]);
//! assert!(kernel.shader().contains("coopMultiplyAdd"));
//! ```

mod matrix;
pub mod scalar;

pub use matrix::{Kernel, cannot_say};
