//! Comparison of a device with a model, bit for bit, on as many dots as are requested.

use std::time::Instant;

use mxprobe_api::{Device, Elements, Error, Operation, TileBatch, execute};
use mxprobe_models::{Evaluator, Model};
use mxprobe_sim::ModelDevice;

use super::tiles::Tiles;
use crate::nan_bits::NanBits;
use crate::{
    dots::{Dot, Draw, pack, seed_of, simplest},
    findings::Evidence,
    plain::decimal,
    probes::Subject,
    report::{EvidenceRecord, VerifiedOperation},
};

/// Dots of directed classes, which come first.
const DIRECTED: u64 = 100_000;
/// Directed dots in one batch.
const AT_ONCE: usize = 8_192;
/// Mismatches that are simplified and shown.
const SHOWN: usize = 3;

/// The parameters of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct Comparison {
    /// The least number of dots.
    pub count: u64,
    /// The seed that inputs are drawn from.
    pub seed: u64,
    /// Which NaN count as equal.
    pub nan: NanBits,
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
    let mut found = Found { nan: comparison.nan, dots: 0, mismatches: 0, other_nan: 0, first: Vec::new() };
    let mut drawn = Draw::new(&operation.id, seed_of(comparison.seed, 1));
    let directed = DIRECTED.min(comparison.count);
    while found.dots < directed && found.first.len() < SHOWN {
        let dots: Vec<Dot> = drawn.by_ref().take(AT_ONCE).collect();
        let (batch, _) = pack(operation, &dots);
        found.compare(device, operation, &batch, || execute(&reference, operation, &batch))?;
        progress(found.dots);
    }
    let mut round = 0;
    while found.dots < comparison.count && found.first.len() < SHOWN {
        let tiles = Tiles::drawn(operation, seed_of(comparison.seed, 1_000 + round), round);
        found.compare(device, operation, &tiles.batch, || tiles.modelled(operation, &evaluator))?;
        progress(found.dots);
        round += 1;
    }
    let subject = Subject::new(device, operation);
    let first: Vec<Dot> = found.first.drain(..).collect();
    let mut evidence: Vec<Evidence> = Vec::new();
    for dot in first {
        let shown = shown(&subject, &evaluator, comparison.nan, &dot)?;
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
        failed: None,
        duration_ns: u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX),
    })
}

/// Simplifies a mismatch, and returns it with the results of device and model as bits and decimals.
fn shown(subject: &Subject<'_>, evaluator: &Evaluator, nan: NanBits, dot: &Dot) -> Result<Evidence, Error> {
    let id = subject.id();
    let model = |dot: &Dot| {
        let scales = dot.scales.as_ref().map(|(a, b)| (&a[..], &b[..]));
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
struct Found {
    nan: NanBits,
    dots: u64,
    mismatches: u64,
    /// NaN that differ in their bits but count as equal.
    other_nan: u64,
    first: Vec<Dot>,
}

impl Found {
    /// Compares a batch on the device with the model's result, which is computed in another thread meanwhile.
    fn compare(
        &mut self,
        device: &dyn Device,
        operation: &Operation,
        batch: &TileBatch,
        model: impl FnOnce() -> Result<Elements, Error> + Send,
    ) -> Result<(), Error> {
        let (found, wanted) = std::thread::scope(|scope| {
            let modelled = scope.spawn(model);
            let found = execute(device, operation, batch);
            (found, modelled.join().expect("an evaluator does not panic"))
        });
        let (found, wanted) = (found?, wanted?);
        self.dots += found.len() as u64;
        if found.bytes() == wanted.bytes() {
            return Ok(());
        }
        for at in (0..found.len()).filter(|at| found.get(*at) != wanted.get(*at)) {
            if self.nan.alike(operation.id.d, found.get(at), wanted.get(at)) {
                self.other_nan += 1;
                continue;
            }
            self.mismatches += 1;
            if self.first.len() < SHOWN {
                self.first.push(Dot::at(&operation.id, batch, at));
            }
        }
        Ok(())
    }
}
