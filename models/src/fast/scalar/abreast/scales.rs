//! The scales of blocks of products.

use super::{lanes::Lanes, sum::Scales};
use crate::fast::{
    products::product,
    unpack::{SPECIAL, Unpacked},
};

/// The products of the scales of each block, read once for all products of the block.
pub(super) struct BlockScales {
    pub(super) of_blocks: Vec<Scales>,
    fraction_bits: i32,
    /// Where one is NaN.
    pub(super) special: Lanes,
}

impl BlockScales {
    pub(super) fn new(blocks: usize, fraction_bits: i32) -> Self {
        Self { of_blocks: vec![Scales::ZERO; blocks], fraction_bits, special: Lanes::ZERO }
    }

    /// Whether they are of so many blocks, and of a format with so many fraction bits.
    pub(super) fn are(&self, blocks: usize, fraction_bits: i32) -> bool {
        (self.of_blocks.len(), self.fraction_bits) == (blocks, fraction_bits)
    }

    /// Reads those of the dot at `place`.
    #[inline(always)]
    pub(super) fn load(&mut self, [of_a, of_b]: [&[Unpacked]; 2], lane: usize, place: usize) {
        let from = place * self.of_blocks.len();
        let mut kinds = 0;
        for (scales, (a, b)) in self.of_blocks.iter_mut().zip(of_a.iter().zip(of_b).skip(from)) {
            let scale = product(a, b);
            kinds |= scale.kind;
            scales.put(lane, &scale, self.fraction_bits);
        }
        self.special.0[lane] = -i64::from(kinds & SPECIAL != 0);
    }
}
