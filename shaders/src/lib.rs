//! What `mxprobe` hands to drivers: an operation goes in, the text or words of its kernel come out.
//!
//! | feature | module | kernels | handed over by |
//! |---|---|---|---|
//! | `ptx` | [`ptx`] | `mma`, `wmma`, `wgmma`, `tcgen05`, scalar functions, whole matrices, throughput | `backends/cuda` |
//! | `spirv` | [`spirv`] | cooperative matrices, scalar functions, whole matrices, throughput | `backends/vulkan` |
//! | `wgsl` | [`wgsl`] | cooperative matrices, scalar functions | `backends/wgpu` |
//!
//! Beside each kernel is what its caller has to know: how the operands are packed, how many threads a block has, how many
//! calls a workgroup computes. Packing is here because a kernel and its layout are one thing: a kernel that computes no index
//! is right only for operands that were put where it loads them.
//!
//! There is no driver here, no file and no `unsafe`: the same operation gives the same bytes everywhere, and
//! `shaders/rendered/` shows every form of them.
#![forbid(unsafe_code)]

#[cfg(feature = "ptx")]
pub mod ptx;
#[cfg(feature = "spirv")]
pub mod spirv;
#[cfg(feature = "wgsl")]
pub mod wgsl;
