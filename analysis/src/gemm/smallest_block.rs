//! The blocks of A1·B1 with which words on a unit reach the accuracy of f32.

use mxprobe_api::Error;
use serde::{Deserialize, Serialize};

use super::{
    Accumulation, Algorithm, Block, Drawn, Method, Products, Scaling, Split, Uniform, Unit,
    growth::single,
    multiply::{fits, join_in_blocks, words_of},
    reference::Reference,
    unit::Lengths,
};

/// Rows of A and columns of B, as in the paper.
const M: usize = 16;

/// The matrices to draw.
#[derive(Clone, Copy, Debug)]
pub struct Draw {
    /// Products in a sum.
    pub n: usize,
    /// The seed of the elements.
    pub seed: u32,
    /// The interval that elements are drawn from, without its lower end.
    pub interval: (f64, f64),
    /// The words that each element is a sum of, if any.
    pub drawn: Option<Drawn>,
}

/// The errors of words on one operation for every block, with f32's for comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BlockErrors {
    /// The operation.
    pub operation: String,
    /// Words per element.
    pub words: u64,
    /// Products in a sum.
    pub n: u64,
    /// max |D − A·B| / (|A|·|B|) of a loop in f32 that rounds every product and every sum, k ascending.
    pub single: f64,
    /// The same for the words without blocks.
    pub unit: f64,
    /// The same for blocks that are added in f32 (FABsum-v1) and in f64 (FABsum-v2), blocks ascending.
    pub blocks: Vec<BlockError>,
}

/// The errors of one block, componentwise.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BlockError {
    /// Products in a block.
    pub block: u64,
    /// With sums of blocks in f32 (FABsum-v1).
    pub f32: f64,
    /// With sums of blocks in f64 (FABsum-v2).
    pub f64: f64,
}

impl BlockErrors {
    /// The smallest and the largest block whose error is at most that of the loop in f32.
    #[must_use]
    pub fn reached(&self, error: fn(&BlockError) -> f64) -> Option<(u64, u64)> {
        let reached = || self.blocks.iter().filter(|block| error(block) <= self.single).map(|block| block.block);
        Some((reached().next()?, reached().next_back()?))
    }
}

/// Computes a 16×n by n×16 product in words for every block size that is a power of two, from one operation's products
/// to n.
///
/// # Errors
/// The errors of the unit; [`Error::is_unsupported`] if it does not return f32.
pub fn block_errors(unit: &Unit, words: usize, products: Products, draw: &Draw) -> Result<BlockErrors, Error> {
    let &Draw { n, seed, interval: (low, high), drawn } = draw;
    let block = Block::Products(unit.id().shape.sizes().2);
    let algorithm = Algorithm {
        method: Method::Multiword,
        split: Split { words, rounding: mxprobe_api::Rounding::NearestEven, scaling: Scaling::None, lift_bits: 0 },
        products,
        accumulation: Accumulation::F32 { block },
    };
    fits(unit, &algorithm)?;
    let mut uniform = Uniform::new(seed);
    let (mut a, mut b) = (uniform.matrix(M, n, low, high, true), uniform.matrix(n, M, low, high, true));
    if let Some(drawn) = drawn {
        (a, b) = (a.in_words(drawn.a, drawn.words), b.in_words(drawn.b, drawn.words));
    }
    let reference = Reference::new(&a, &b);
    let (of_a, of_b) =
        (words_of(&a, unit.id(), &algorithm.split, true), words_of(&b, unit.id(), &algorithm.split, false));
    let step = block.products(n).next_power_of_two();
    let sizes: Vec<usize> = (0..usize::BITS).map(|bit| step << bit).take_while(|size| *size < n).collect();
    let blocks: Vec<Block> = sizes.iter().map(|size| Block::Products(*size)).collect();
    let lengths = Lengths { m: M, n: M, k: n };
    let (whole, blocked) = join_in_blocks(unit, lengths, (&of_a, &of_b), &algorithm, &blocks)?;
    let error = |d| reference.errors(d).componentwise;
    Ok(BlockErrors {
        operation: unit.id().to_string(),
        words: words as u64,
        n: n as u64,
        single: error(&single(&a, &b, Accumulation::Unit)),
        unit: error(&whole),
        blocks: sizes
            .iter()
            .zip(&blocked)
            .map(|(size, [narrow, wide])| BlockError { block: *size as u64, f32: error(narrow), f64: error(wide) })
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use mxprobe_models::load;

    use super::*;
    use crate::gemm::{Interval, Matrix, multiply};

    #[test]
    fn blocks_of_the_v100_reach_f32_if_they_are_small_and_each_error_is_that_of_the_product() {
        let unit = Unit::of_model(&load("v100").unwrap(), &"mma.m8n8k4.f32.f16.f16.f32".parse().unwrap()).unwrap();
        let draw = Draw { n: 2048, seed: 1, interval: Interval::Positive.ends(), drawn: None };
        let found = block_errors(&unit, 2, Products::Significant, &draw).unwrap();
        assert_eq!(
            found.blocks.iter().map(|block| block.block).collect::<Vec<_>>(),
            (2..11).map(|e| 1 << e).collect::<Vec<_>>()
        );
        assert!(found.unit > 4.0 * found.single, "{found:?}");
        let (smallest, largest) = found.reached(|block| block.f64).unwrap();
        assert!(smallest == 4 && largest < 2048, "{found:?}");
        // The same errors as for the products computed one by one.
        let mut uniform = Uniform::new(1);
        let (a, b) = (uniform.matrix(16, 2048, 0.0, 1.0, true), uniform.matrix(2048, 16, 0.0, 1.0, true));
        let error = |a: &Matrix, b: &Matrix, accumulation| {
            let split =
                Split { words: 2, rounding: mxprobe_api::Rounding::NearestEven, scaling: Scaling::None, lift_bits: 0 };
            let algorithm =
                Algorithm { method: Method::Multiword, split, products: Products::Significant, accumulation };
            crate::gemm::errors(a, b, &multiply(&unit, a, b, None, &algorithm).unwrap().d).componentwise
        };
        for BlockError { block, f32, f64 } in &found.blocks {
            let block = Block::Products(usize::try_from(*block).unwrap());
            let alone = [Accumulation::F32 { block }, Accumulation::F64 { block }].map(|at| error(&a, &b, at));
            assert_eq!(alone.map(f64::to_bits), [f32.to_bits(), f64.to_bits()], "{block}");
        }
        assert_eq!(error(&a, &b, Accumulation::Unit).to_bits(), found.unit.to_bits());
    }
}
