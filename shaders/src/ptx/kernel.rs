//! The table of instructions, and the kernel of each.

use super::capability::Target;
use super::instruction::{Instruction, Kind};
use super::layout::Layouts;
use super::text::Kernel;
use super::throughput_loop::{Steps, blocks_of_multiprocessor};
use super::{mma, tcgen05, wgmma, wmma};

/// Every instruction of every architecture, except sparse forms and 1-bit operands.
#[must_use]
pub fn instructions() -> Vec<Instruction> {
    let mut table = Vec::new();
    mma::instructions(&mut table);
    wmma::instructions(&mut table);
    wgmma::instructions(&mut table);
    tcgen05::instructions(&mut table);
    table
}

/// Writes the kernel of an instruction, for the target that it needs on the current device.
#[must_use]
pub fn kernel(instruction: &Instruction, layouts: &Layouts, target: Target, steps: Steps) -> Kernel {
    let kernel = match instruction.kind {
        Kind::Warp | Kind::QuadPair => mma::kernel(instruction, layouts, target, steps),
        Kind::Wmma => wmma::kernel(instruction, layouts, target, steps),
        Kind::Warpgroup => wgmma::kernel(instruction, layouts, target, steps),
        Kind::TensorMemory => tcgen05::kernel(instruction, layouts, target, steps),
    };
    match steps {
        Steps::One => kernel,
        Steps::Many => kernel.with_blocks_of_multiprocessor(blocks_of_multiprocessor(Some(instruction))),
    }
}
