//! Screens one operation of a device, and examines the blocks that are wrong.

use std::time::{Duration, Instant};

use mxprobe_api::{
    Device, Drill, Elements, Error, Injection, Operation, OperationId, Screened, WrongBlock, operation_of, screen,
};

use super::{
    cache::Cache,
    golden::{self, Golden, Inputs, Reference},
    place::Places,
};
use crate::{
    clock,
    report::{Again, ScreenedOperation, ScreenedUnit, WrongRecord, unit_noun},
};

/// The settings of a screening.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The choice of the inputs.
    pub inputs: Inputs,
    /// The cache of golden digests, if there is one.
    pub cache: Option<Cache>,
    /// A fault to inject on purpose.
    pub inject: Option<Injection>,
    /// The maximum computing time of one request.
    pub slice: Duration,
    /// The number of passes of each unit over all blocks; if `None`, units compute until their time is over.
    pub passes: Option<u64>,
}

/// How many times a wrong block is computed again.
const AGAIN: u64 = 16;
/// The most units that compute wrong blocks again.
const UNITS_AGAIN: usize = 4;
/// The time limit for computing wrong blocks again.
const AGAIN_LIMIT: Duration = Duration::from_secs(2);
/// The time limit if the number of passes is fixed: the result must then not depend on the speed of the machine.
const SURE_LIMIT: Duration = Duration::from_secs(60);

/// Compares an operation with its model. Every unit makes at least one pass over all blocks, and continues until
/// `duration()` is over or [`Settings::passes`] are made.
///
/// `duration` is called once the inputs are drawn and the golden digests are known.
pub fn screen_one(
    device: &dyn Device,
    id: &OperationId,
    reference: Option<&Reference>,
    settings: &Settings,
    duration: impl Fn() -> Duration,
) -> ScreenedOperation {
    let Some(reference) = reference else {
        return ScreenedOperation::failed(id, None, "no model of it is known: `--model` names one");
    };
    let found = operation_of(device, id).and_then(|operation| {
        let task = |steps| Task::new(device, operation, reference, settings, steps);
        match device.screening().map_or(1, |screening| screening.steps(id)) {
            steps if steps > 1 => {
                // Every class of dots once, then chains for the rest of the time.
                let directed = task(1)?.screen(|| Duration::ZERO)?;
                if directed.wrong.is_some() {
                    return Ok(directed);
                }
                let rest = match task(steps)?.screen(&duration) {
                    Err(error) if error.is_unsupported() => task(1)?.screen(duration)?,
                    rest => rest?,
                };
                Ok(directed.and(rest))
            }
            _ => task(1)?.screen(duration),
        }
    });
    match found {
        Ok(found) => ScreenedOperation { model: Some(reference.name()), ..found },
        Err(error) => ScreenedOperation::failed(id, Some(reference.name()), error.to_string()),
    }
}

/// An operation to screen, with its model and the golden digests.
struct Task<'a> {
    device: &'a dyn Device,
    operation: &'a Operation,
    reference: &'a Reference,
    settings: &'a Settings,
    /// The number of instructions that each tile executes.
    steps: u32,
    golden: Golden,
    is_cached: bool,
}

impl<'a> Task<'a> {
    fn new(
        device: &'a dyn Device,
        operation: &'a Operation,
        reference: &'a Reference,
        settings: &'a Settings,
        steps: u32,
    ) -> Result<Self, Error> {
        let (golden, is_cached) = Golden::get(settings.cache.as_ref(), reference, operation, settings.inputs, steps)?;
        Ok(Self { device, operation, reference, settings, steps, golden, is_cached })
    }

    fn screen(mut self, duration: impl Fn() -> Duration) -> Result<ScreenedOperation, Error> {
        let mut units = self.drill(duration())?;
        if units.iter().all(|unit| unit.wrong == 0) {
            return Ok(self.found(&units, None));
        }
        let right = self.reference.right(self.operation, &self.golden.operands, self.steps)?;
        let digests = golden::digests(&right, self.golden.digests.len());
        if self.is_cached && digests != self.golden.digests {
            // The cache was wrong, and with it the digests that the device was compared with.
            self.golden.digests = digests;
            if let Some(cache) = &self.settings.cache {
                let _ = cache.write(&self.golden);
            }
            units = self.drill(duration())?;
            if units.iter().all(|unit| unit.wrong == 0) {
                return Ok(self.found(&units, None));
            }
        }
        let blocks = self.golden.digests.len();
        let noun = unit_noun(&self.device.info().properties);
        let places = Places { id: &self.operation.id, noun, right: &right, operands: &self.golden.operands, blocks };
        let mut wrong = places.find(&units);
        wrong.steps = (self.steps > 1).then_some(self.steps);
        wrong.again = Some(self.again(&units, &right)?);
        Ok(self.found(&units, Some(wrong)))
    }

    /// Makes passes over all blocks for `duration`, in requests of a slice each, and stops after the first request that
    /// finds a wrong block.
    fn drill(&self, duration: Duration) -> Result<Vec<Screened>, Error> {
        let Golden { operands, digests, .. } = &self.golden;
        let Settings { inject, passes, slice, .. } = self.settings;
        let end = Instant::now() + duration;
        let ask = || {
            let left = end.saturating_duration_since(Instant::now()).min(*slice);
            let (duration, passes) = if passes.is_some() { (Duration::ZERO, 1) } else { (left, u64::MAX) };
            let drill = Drill { operands, digests, duration, passes, steps: self.steps, unit: None, inject: *inject };
            screen(self.device, self.operation, &drill)
        };
        let is_over = |requests: u64| passes.map_or_else(|| Instant::now() >= end, |passes| requests >= passes);
        let mut units = ask()?;
        let mut requests = 1;
        while !is_over(requests) && units.iter().all(|unit| unit.wrong == 0) {
            let more = ask()?;
            requests += 1;
            if more.len() != units.len() {
                return Err(Error::driver(format!("{} units computed, and {} before", more.len(), units.len())));
            }
            for (unit, more) in units.iter_mut().zip(more) {
                unit.pinned &= more.pinned && unit.unit == more.unit;
                unit.blocks += more.blocks;
                unit.wrong += more.wrong;
                unit.elapsed_ns += more.elapsed_ns;
                unit.kept.extend(more.kept);
            }
        }
        Ok(units)
    }

    /// Computes wrong blocks again, on the units that computed them.
    fn again(&self, units: &[Screened], right: &Elements) -> Result<Again, Error> {
        let whole = Drill {
            operands: &self.golden.operands,
            digests: &self.golden.digests,
            duration: if self.settings.passes.is_some() { SURE_LIMIT } else { AGAIN_LIMIT },
            passes: AGAIN,
            steps: self.steps,
            unit: None,
            inject: self.settings.inject,
        };
        let (blocks, length) = (whole.blocks(), right.len() / self.golden.digests.len());
        let mut again = Again { same_bits: true, ..Again::default() };
        for wrong in units.iter().filter(|unit| unit.wrong > 0).take(UNITS_AGAIN) {
            let Some(WrongBlock { block, d, .. }) = wrong.kept.first() else { continue };
            let digests = [self.golden.digests[*block]];
            let drill = Drill { operands: &blocks[*block], digests: &digests, unit: wrong.unit, ..whole };
            for found in screen(self.device, self.operation, &drill)? {
                again.blocks += found.blocks;
                again.wrong += found.wrong;
                again.same_bits &= found.kept.iter().all(|kept| kept.d.len() == length && kept.d == *d);
            }
        }
        again.same_bits &= again.wrong > 0;
        Ok(again)
    }

    fn found(&self, units: &[Screened], wrong: Option<WrongRecord>) -> ScreenedOperation {
        let (m, n, _) = self.operation.id.shape.sizes();
        let of_block = (self.golden.operands.tiles / self.golden.digests.len() * m * n) as u64;
        let units: Vec<ScreenedUnit> = units
            .iter()
            .map(|unit| ScreenedUnit {
                unit: unit.unit,
                pinned: unit.pinned,
                dots: unit.blocks * of_block * u64::from(self.steps),
                wrong_blocks: unit.wrong,
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "validated as a duration")]
                elapsed_ns: clock::lasted_ns(unit.elapsed_ns as u64),
            })
            .collect();
        ScreenedOperation {
            id: self.operation.id.clone(),
            model: None,
            dots: units.iter().map(|unit| unit.dots).sum(),
            units,
            wrong,
            failed: None,
        }
    }
}
