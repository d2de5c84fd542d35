//! The matrix units of the CPU that runs `mxprobe`: Intel AMX, and the dot-product instructions of AVX-512 and AVX.
//!
//! [`CpuBackend`] finds at most one device, `cpu:0`, which has every operation that this CPU, its kernel and this
//! process can use. Each of the others is a [`Refusal`](mxprobe_api::Refusal) that names the detection step that failed
//! and the value it read.
//!
//! Every operation is one instruction, written as assembly so that no compiler folds, splits or replaces it:
//!
//! | operation | instruction |
//! |---|---|
//! | `amx.m16n16k32.f32.bf16.bf16.f32` | TDPBF16PS |
//! | `amx.m16n16k64.s32.{s8,u8}.{s8,u8}.s32` | TDPBSSD, TDPBSUD, TDPBUSD, TDPBUUD |
//! | `dot.m1n1k2.f32.bf16.bf16.f32` | VDPBF16PS |
//! | `dot.m1n1k4.s32.u8.s8.s32`, `.satfinite` | VPDPBUSD, VPDPBUSDS |
//! | `dot.m1n1k2.s32.s16.s16.s32`, `.satfinite` | VPDPWSSD, VPDPWSSDS |
//!
//! ```
//! use mxprobe_api::Backend;
//!
//! let found = mxprobe_cpu::CpuBackend::new().discover();
//! // On another architecture there is a refusal with the reason, never an empty answer.
//! assert!(found.devices.len() == 1 || !found.refusals.is_empty());
//! ```

mod backend;

#[cfg(target_arch = "x86_64")]
mod amx;
#[cfg(target_arch = "x86_64")]
mod blas;
#[cfg(target_arch = "x86_64")]
mod blocks;
#[cfg(target_arch = "x86_64")]
mod cores;
#[cfg(target_arch = "x86_64")]
mod detect;
#[cfg(target_arch = "x86_64")]
mod device;
#[cfg(target_arch = "x86_64")]
mod dot;
#[cfg(target_arch = "x86_64")]
mod gemm;
#[cfg(target_arch = "x86_64")]
mod pack;
#[cfg(target_arch = "x86_64")]
mod packed;
#[cfg(target_arch = "x86_64")]
mod pages;
#[cfg(target_arch = "x86_64")]
mod resident;
#[cfg(target_arch = "x86_64")]
mod scalar;
#[cfg(target_arch = "x86_64")]
mod screening;
#[cfg(target_arch = "x86_64")]
mod shared;
#[cfg(target_arch = "x86_64")]
mod timing;
#[cfg(target_arch = "x86_64")]
mod unit;

pub use backend::CpuBackend;
