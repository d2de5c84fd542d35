//! The blocks of dots that a comparison with a model is made of: the same for a run and for its shards.

use std::collections::BTreeMap;

use mxprobe_api::OperationId;

use super::tiles;
use crate::record::{BlockRecord, EvidenceRecord};

/// Dots of directed classes that come first.
const DIRECTED: u64 = 100_000;
/// Directed dots in a block.
pub(in crate::identify) const AT_ONCE: usize = 8_192;
/// Mismatches after which an operation is not compared any further: they are made simple and shown.
pub(in crate::identify) const SHOWN: u64 = 3;

/// Dots that are compared in one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::identify) struct Block {
    /// Its place, from 0.
    pub(in crate::identify) at: u64,
    /// The round of random tiles; `None` for directed dots.
    pub(in crate::identify) round: Option<u64>,
    /// Elements of D, all of which count.
    pub(in crate::identify) dots: u64,
}

/// The blocks of an operation, until they have `count` dots.
pub(in crate::identify) fn blocks(id: &OperationId, count: u64) -> impl Iterator<Item = Block> {
    let (m, n, _) = id.shape.sizes();
    let directed_dots = (AT_ONCE.div_ceil(m.min(n)) * m * n) as u64;
    let (directed, mut dots, mut at, mut round) = (DIRECTED.min(count), 0, 0, 0);
    std::iter::from_fn(move || {
        let block = if dots < directed {
            Block { at, round: None, dots: directed_dots }
        } else if dots < count {
            round += 1;
            Block { at, round: Some(round - 1), dots: tiles::dots_of(id, round - 1) }
        } else {
            return None;
        };
        (at, dots) = (at + 1, dots + block.dots);
        Some(block)
    })
}

/// The counts of one run over all blocks in turn, from the blocks of its shards.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counted {
    /// Dots up to the block that ends the comparison.
    pub dots: u64,
    /// Those whose bits differ.
    pub mismatches: u64,
    /// Those that are NaN of other bits and count as the same.
    pub other_nan: u64,
    /// The first mismatches, made simple, each once.
    pub evidence: Vec<EvidenceRecord>,
}

/// Counts blocks of all shards as one run does, which stops after the block with its third mismatch.
#[must_use]
pub fn count_blocks<'a>(id: &OperationId, count: u64, found: impl IntoIterator<Item = &'a BlockRecord>) -> Counted {
    let found: BTreeMap<u64, &BlockRecord> = found.into_iter().map(|block| (block.block, block)).collect();
    let mut counted = Counted::default();
    let mut shown = 0;
    for block in blocks(id, count) {
        if counted.mismatches >= SHOWN {
            break;
        }
        counted.dots += block.dots;
        let Some(found) = found.get(&block.at) else { continue };
        counted.mismatches += found.mismatches;
        counted.other_nan += found.other_nan;
        for evidence in found.evidence.iter().take(usize::try_from(SHOWN - shown).unwrap_or(usize::MAX)) {
            shown += 1;
            if !counted.evidence.contains(evidence) {
                counted.evidence.push(evidence.clone());
            }
        }
    }
    counted
}

/// How many dots the shard compares that has the blocks `has`, and found these.
#[must_use]
pub fn dots_of_shard(id: &OperationId, count: u64, has: impl Fn(u64) -> bool, found: &[BlockRecord]) -> u64 {
    let found: BTreeMap<u64, u64> = found.iter().map(|block| (block.block, block.mismatches)).collect();
    let (mut dots, mut mismatches) = (0, 0);
    for block in blocks(id, count).filter(|block| has(block.at)) {
        if mismatches >= SHOWN {
            break;
        }
        dots += block.dots;
        mismatches += found.get(&block.at).copied().unwrap_or(0);
    }
    dots
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_reach_the_count_and_not_one_block_more() {
        let id: OperationId = "mma.m16n8k16.f32.f16.f16.f32".parse().unwrap();
        for count in [1, 100_000, 1_000_000, 50_000_000] {
            let all: Vec<Block> = blocks(&id, count).collect();
            let dots: u64 = all.iter().map(|block| block.dots).sum();
            assert!(dots >= count && dots - all.last().unwrap().dots < count, "{count}: {dots}");
            assert!(all.iter().enumerate().all(|(at, block)| block.at == at as u64));
        }
    }

    #[test]
    fn shards_count_as_one_run_that_stops_at_its_third_mismatch() {
        let id: OperationId = "dot.m1n1k2.f32.bf16.bf16.f32".parse().unwrap();
        let one = |block, mismatches| BlockRecord { block, mismatches, other_nan: 1, evidence: Vec::new() };
        let found = [one(9, 5), one(2, 1), one(4, 2), one(3, 0)];
        let counted = count_blocks(&id, 100_000, &found);
        assert_eq!((counted.dots, counted.mismatches, counted.other_nan), (5 * 8_192, 3, 3));
        let own = |block: u64| block % 2 == 1;
        assert_eq!(dots_of_shard(&id, 100_000, own, &[one(3, 0), one(9, 5)]), 5 * 8_192);
        assert_eq!(dots_of_shard(&id, 100_000, own, &[]), 6 * 8_192);
    }
}
