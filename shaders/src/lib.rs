//! The kernels that `mxprobe` passes to drivers: turns an operation into the text or words of its kernel.
//!
//! Each language is a module behind a feature of the same name; no feature is enabled by default. The pages of the
//! modules have examples.
//!
//! | feature | module | kernels | used by |
//! |---|---|---|---|
//! | `ptx` | [`ptx`] | `mma`, `wmma`, `wgmma`, `tcgen05`, scalar functions, whole matrices, throughput | `backends/cuda` |
//! | `spirv` | [`spirv`] | cooperative matrices, scalar functions, whole matrices, throughput | `backends/vulkan` |
//! | `wgsl` | [`wgsl`] | cooperative matrices, scalar functions | `backends/wgpu` |
//!
//! Each kernel comes with the data that its caller needs: how the operands are packed, how many threads a block has,
//! how many calls a workgroup computes. Packing is part of this crate because a kernel and its layout belong together:
//! a kernel that computes no indices is correct only for operands placed where it loads them.
//!
//! [`sha256`] is the name of a kernel in reports.
//!
//! The crate contains no driver code, no file access and no `unsafe`: the same operation gives the same bytes
//! everywhere, and `shaders/rendered/` shows every form of them.
#![forbid(unsafe_code)]

mod digest;
#[cfg(feature = "ptx")]
pub mod ptx;
#[cfg(feature = "spirv")]
pub mod spirv;
#[cfg(feature = "wgsl")]
pub mod wgsl;

pub use digest::sha256;
