//! WGSL for any desktop GPU, compiled by naga: cooperative matrices as far as WGSL supports them, and scalar
//! arithmetic.
//!
//! [`cannot_say`] says which configurations have no [`Kernel`], and why. [`scalar`] has the functions of the scalar
//! units.

mod matrix;
pub mod scalar;

pub use matrix::{Kernel, cannot_say};
