//! Comparison of a device with a model, bit for bit, on as many dots as are requested.

use std::time::Instant;

use mxprobe_api::{Device, Elements, Error, Operation, TileBatch, execute, multiply};
use mxprobe_models::{Evaluator, Model};
use mxprobe_sim::ModelDevice;

use super::dots::{
    blocks::{AT_ONCE, SHOWN, blocks},
    tiles::Tiles,
};
use crate::{
    clock,
    dots::{Dot, Draw, pack, seed_of, simplest},
    findings::Evidence,
    nan_bits::NanBits,
    plain::decimal,
    probes::Subject,
    record::{BlockRecord, EvidenceRecord, VerifiedOperation},
    shard::Shard,
};

/// The parameters of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct Comparison {
    /// The least number of dots.
    pub count: u64,
    /// The seed that inputs are drawn from.
    pub seed: u64,
    /// Which NaN count as equal.
    pub nan: NanBits,
    /// The share of the blocks of dots that is compared; all, if it is `None`.
    pub shard: Option<Shard>,
}

/// Compares an operation of a device with that of a model: dots of directed classes first, then tiles of random values
/// of several spreads. Every element of D counts as a dot. Stops early once a few mismatches are found. `progress` is
/// called with the number of dots compared so far.
///
/// # Errors
/// Returns the error of the device if it fails, and an error if the model does not have the operation.
pub fn verify(
    device: &dyn Device,
    operation: &Operation,
    model: &Model,
    comparison: Comparison,
    progress: &dyn Fn(u64),
) -> Result<VerifiedOperation, Error> {
    let start = Instant::now();
    let evaluator = Evaluator::new(model, &operation.id)?;
    let reference = ModelDevice::new(model.clone());
    let mut found = Found { nan: comparison.nan, is_shard: comparison.shard.is_some(), ..Found::default() };
    let mut drawn = Draw::new(&operation.id, seed_of(comparison.seed, 1));
    for block in blocks(&operation.id, comparison.count) {
        if found.first.len() as u64 >= SHOWN {
            break;
        }
        let is_own = comparison.shard.is_none_or(|shard| shard.has(block.at));
        match block.round {
            // What other shards compare is drawn too: the dots behind it are the next.
            None if !is_own => drawn.by_ref().take(AT_ONCE).for_each(drop),
            None => {
                let dots: Vec<Dot> = drawn.by_ref().take(AT_ONCE).collect();
                let (batch, _) = pack(operation, &dots);
                let (d, modelled) =
                    at_the_same_time(|| execute(device, operation, &batch), || execute(&reference, operation, &batch))?;
                if found.differs(&d, &modelled) {
                    found.record(operation, (block.at, &batch), (&d, &modelled));
                }
            }
            Some(round) if is_own => {
                let tiles = Tiles::drawn(operation, seed_of(comparison.seed, 1_000 + round), round);
                let ((d, of_product), modelled) = at_the_same_time(
                    || computed(device, operation, &tiles),
                    || evaluator.multiply(&tiles.product(&operation.id), 1),
                )?;
                let modelled = if of_product { modelled } else { tiles.in_tiles(&modelled, &operation.id) };
                if found.differs(&d, &modelled) {
                    let as_tiles = |d: Elements| if of_product { tiles.in_tiles(&d, &operation.id) } else { d };
                    let batch = tiles.batch(operation);
                    found.record(operation, (block.at, &batch), (&as_tiles(d), &as_tiles(modelled)));
                }
            }
            Some(_) => {}
        }
        if is_own {
            progress(found.dots);
        }
    }
    let subject = Subject::new(device, operation);
    let mut evidence: Vec<Evidence> = Vec::new();
    for (block, dot) in std::mem::take(&mut found.first) {
        let shown = shown(&subject, &evaluator, comparison.nan, &dot)?;
        if let Some(found) = found.blocks.iter_mut().find(|found| found.block == block) {
            found.evidence.extend(EvidenceRecord::all(std::slice::from_ref(&shown), &operation.id));
        }
        if !evidence.contains(&shown) {
            evidence.push(shown);
        }
    }
    Ok(VerifiedOperation {
        id: operation.id.clone(),
        dots: found.dots,
        mismatches: found.mismatches,
        other_nan: found.other_nan,
        evidence: EvidenceRecord::all(&evidence, &operation.id),
        blocks: found.blocks,
        failed: None,
        duration_ns: clock::elapsed_ns(start),
    })
}

/// Simplifies a mismatch, and returns it with the results of device and model as bits and decimals.
fn shown(subject: &Subject<'_>, evaluator: &Evaluator, nan: NanBits, dot: &Dot) -> Result<Evidence, Error> {
    let id = subject.id();
    let model = |dot: &Dot| {
        let scales = dot.scale_slices();
        evaluator.dot(mxprobe_models::Dot { a: &dot.a, b: &dot.b, c: dot.c, scales }).expect("a dot of the operation")
    };
    let differs = |dots: &[Dot]| -> Result<Vec<bool>, Error> {
        Ok(dots.iter().zip(subject.ask(dots)?).map(|(dot, d)| !nan.alike(id.d, model(dot), d)).collect())
    };
    // A mismatch that depends on its place in the tile may disappear if the dot is computed alone.
    let alone = differs(std::slice::from_ref(dot))?[0];
    let dot = if alone { simplest(id, dot, differs)? } else { dot.clone() };
    let d = subject.ask(std::slice::from_ref(&dot))?[0];
    let wanted = model(&dot);
    let about = if alone {
        format!("the device gives {}, the model {}", decimal(id.d, d), decimal(id.d, wanted))
    } else {
        "the bits differed in a tile, and agree when the dot is asked alone".to_owned()
    };
    Ok(subject.evidence(about, &dot, d, &[("the model".to_owned(), wanted)]))
}

/// The counts of a comparison so far.
#[derive(Default)]
struct Found {
    nan: NanBits,
    dots: u64,
    mismatches: u64,
    /// NaN that differ in their bits but count as equal.
    other_nan: u64,
    /// Whether blocks are kept: `merge` needs those of shards.
    is_shard: bool,
    /// Blocks of a shard in which something differs.
    blocks: Vec<BlockRecord>,
    /// The first mismatches, each with its block.
    first: Vec<(u64, Dot)>,
}

impl Found {
    /// Counts the dots of a block, and says whether any results differ in their bits.
    fn differs(&mut self, found: &Elements, wanted: &Elements) -> bool {
        self.dots += found.len() as u64;
        found.bytes() != wanted.bytes()
    }

    /// Records the results of a block that differ, in the order of its tiles.
    fn record(
        &mut self,
        operation: &Operation,
        (block, batch): (u64, &TileBatch),
        (found, wanted): (&Elements, &Elements),
    ) {
        let mut record = BlockRecord { block, mismatches: 0, other_nan: 0, evidence: Vec::new() };
        for at in (0..found.len()).filter(|at| found.get(*at) != wanted.get(*at)) {
            if self.nan.alike(operation.id.d, found.get(at), wanted.get(at)) {
                record.other_nan += 1;
                continue;
            }
            record.mismatches += 1;
            if (self.first.len() as u64) < SHOWN {
                self.first.push((block, Dot::at(&operation.id, batch, at)));
            }
        }
        self.mismatches += record.mismatches;
        self.other_nan += record.other_nan;
        if self.is_shard {
            self.blocks.push(record);
        }
    }
}

/// Lets the device and the model compute at the same time.
fn at_the_same_time<D: Send>(
    device: impl FnOnce() -> Result<D, Error>,
    model: impl FnOnce() -> Result<Elements, Error> + Send,
) -> Result<(D, Elements), Error> {
    let (found, wanted) = std::thread::scope(|scope| {
        let modelled = scope.spawn(model);
        let found = device();
        (found, modelled.join().expect("an evaluator does not panic"))
    });
    Ok((found?, wanted?))
}

/// Computes tiles with the device, and says whether their elements are in the order of the product or of the tiles: a
/// device that has no tiles computes the product many times as fast.
fn computed(device: &dyn Device, operation: &Operation, tiles: &Tiles) -> Result<(Elements, bool), Error> {
    let (m, n, _) = operation.id.shape.sizes();
    let has_tiles = m * n > 1 && device.matrices().is_none_or(|matrices| matrices.has_tiles());
    let product = if has_tiles { None } else { multiply(device, operation, &tiles.product(&operation.id))? };
    Ok(match product {
        Some(d) => (d, true),
        None => (execute(device, operation, &tiles.batch(operation))?, false),
    })
}
