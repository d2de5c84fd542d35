//! Whole matrices: operands packed as fragments, one launch per product, the loop along k in the kernel.

mod block;
mod order;
mod warpgroup;
mod warps;

use mxprobe_api::{GemmOperands, OperationId};

pub use block::{Block, ProductKernel, Wide};
pub use order::Order;

use super::capability::Target;
use super::instruction::{Instruction, Kind};
use super::layout::Layouts;

/// The kernels of whole matrices of an instruction, one for each block of D.
pub struct ProductKernels {
    layouts: Layouts,
    /// The blocks, largest first.
    blocks: Vec<Block>,
}

impl ProductKernels {
    /// `None` if the instruction's sums are in tensor memory, take scales, or cannot be C of the next operation.
    #[must_use]
    pub fn new(instruction: &Instruction) -> Option<Self> {
        let layouts = Layouts::new(instruction);
        if instruction.id.c != instruction.id.d || layouts.scales.is_some() {
            return None;
        }
        let blocks = match instruction.kind {
            Kind::Warp | Kind::QuadPair | Kind::Wmma => warps::blocks(instruction, &layouts),
            Kind::Warpgroup => warpgroup::blocks(instruction),
            Kind::TensorMemory => return None,
        };
        Some(Self { layouts, blocks })
    }

    /// How tiles of A, B, C and D are packed.
    #[must_use]
    pub fn layouts(&self) -> &Layouts {
        &self.layouts
    }

    /// The blocks of D for which there are kernels, the largest first.
    #[must_use]
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The block of D for a product: the largest block that still gives every multiprocessor work.
    #[must_use]
    pub fn block(&self, id: &OperationId, product: &GemmOperands<'_>, multiprocessors: u32) -> Block {
        let (m, n, _) = id.shape.sizes();
        let group = self.layouts.d.group();
        let count = |block: &Block| product.m.div_ceil(m * group * block.down) * product.n.div_ceil(n * block.across);
        let enough = |block: &&Block| count(block) >= multiprocessors as usize * block.at_once(id);
        *self.blocks.iter().find(enough).unwrap_or(&self.blocks[self.blocks.len() - 1])
    }

    /// The kernel for a block.
    #[must_use]
    pub fn kernel(&self, instruction: &Instruction, target: Target, block: Block) -> ProductKernel {
        match instruction.kind {
            Kind::Warpgroup => warpgroup::kernel(instruction, &self.layouts, target, block),
            _ => warps::kernel(instruction, &self.layouts, target, block),
        }
    }
}

/// The name of a kernel: `mma.m16n8k16.f32.f16.f16.f32.product4x8`.
#[must_use]
pub fn name(id: &OperationId, block: Block) -> String {
    format!("{id}.product{}x{}", block.down, block.across)
}
