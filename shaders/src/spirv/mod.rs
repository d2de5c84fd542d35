//! SPIR-V for Vulkan, built word by word: cooperative matrices and scalar arithmetic.
//!
//! A [`Kernel`] is one configuration of cooperative matrices: [`Kernel::words`] multiplies tiles,
//! [`Kernel::product_words`] whole matrices, and [`Kernel::throughput_words`] loops over operands held in registers.
//! [`scalar`] has the functions of the scalar units. Every module has the entry point `main` and storage buffers in set
//! 0.

mod component;
mod float_mode;
mod matrix;
mod module;
mod product;
pub mod scalar;
pub mod throughput_loop;

pub use component::Component;
pub use float_mode::{Asked, FloatMode};
pub use matrix::Kernel;
