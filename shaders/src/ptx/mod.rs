//! PTX for NVIDIA's matrix and scalar units.
//!
//! [`instructions`] is the table: the name of each instruction, the devices that have it, and the lowest `.version` and
//! `.target` that it needs. [`kernel`] writes the kernel of one instruction, which computes batches of tiles; with
//! [`Steps::Many`] it becomes a throughput kernel ([`throughput_loop`]), and [`product`] writes kernels that multiply
//! whole matrices. [`screening`] writes kernels that reduce D to digests on each multiprocessor. [`scalar`] has the functions of the scalar units. [`layout`] packs operands as the kernels load
//! them.
//!
//! Every kernel is `tiles(a, b, c, d, [scale_a, scale_b,] count)`: it computes `count` groups of tiles in a loop over
//! the grid. The kernels of `mma`, `wmma`, `wgmma` and `tcgen05` are each written by one file; `text.rs` has the lines
//! they share.
//!
//! ```
//! use mxprobe_shaders::ptx::{Capability, KernelText};
//!
//! let kernels = KernelText::all(Capability::new(8, 0));
//! let kernel = kernels.iter().find(|kernel| kernel.name == "mma.m16n8k16.f32.f16.f16.f32").expect("sm_80 has it");
//! assert!(kernel.ptx.contains("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"));
//! ```

mod capability;
mod catalogue;
mod instruction;
mod kernel;
pub mod layout;
mod mma;
pub mod product;
pub mod scalar;
pub mod screening;
mod shared_memory;
mod tcgen05;
mod text;
pub mod throughput_loop;
mod wgmma;
mod wmma;

pub use capability::{Availability, Capability, PtxVersion, Target};
pub use catalogue::{KernelText, ScalarText};
pub use instruction::{Instruction, Kind};
pub use kernel::{instructions, kernel};
pub use text::{ENTRY, Kernel};
pub use throughput_loop::Steps;
