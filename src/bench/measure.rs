//! Takes samples, and checks the results of their chains before, between and after them.

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

use mxprobe_api::{
    Clock, Device, DeviceKind, Elements, Error, Format, Load, Operation, Span, TileBatch, Timed, execute, time,
};

use super::operands;
use crate::report::{Data, FEWEST_SAMPLES, Outcome, Throughput, ThroughputRun, TimedBy, Units};

/// The settings of a measurement of throughput.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The kind of elements.
    pub data: Data,
    /// The intended duration of a sample.
    pub sample: Duration,
    /// The number of samples, at least 7.
    pub samples: u64,
    /// The seed of the elements.
    pub seed: u64,
}

/// Numbers of steps after which every chain is compared with the same number of executions. The last has an iteration of
/// loops that are unrolled eight times, and a rest.
const CHECKED_STEPS: [u64; 3] = [1, 2, 11];

/// A shorter sample measures the clock and the start of the work, not the unit.
const SHORTEST_NS: [(Clock, f64); 2] = [(Clock::Host, 100_000.0), (Clock::Device, 10_000.0)];

/// How often the steps of a sample are doubled so that fixed costs become small, how many times longer than requested a
/// sample may become this way, and how long it may be in any case.
const MOST_DOUBLINGS: usize = 6;
const LONGEST_SAMPLES: f64 = 12.0;
const LONG_SAMPLE_NS: f64 = 400e6;

/// Steps of a chain in the first timing.
const FIRST_STEPS: u64 = 16;
/// How often the number of steps is determined again if samples are too short.
const ATTEMPTS: usize = 6;

/// The most steps of a chain: a time that is still too short does not grow with them.
const MOST_STEPS: u64 = 1 << 40;

/// The throughput of one operation, or of one of the device's yardsticks: on one unit, then on all.
///
/// Never panics on what a device returns, and never fails: a problem becomes the outcome. If a chain does not end in
/// the bits of as many [`execute`]s, or its time does not grow with its length, the outcome is `failed` and there is no
/// throughput.
#[must_use]
pub fn measure(device: &dyn Device, operation: &Operation, settings: &Settings) -> Throughput {
    let start = Instant::now();
    let is_yardstick = !device.operations().contains_key(&operation.id);
    let mut found = Throughput {
        instruction: operation.instruction.clone(),
        yardstick: is_yardstick,
        ..Throughput::without(operation.id.clone(), Outcome::Measured, "")
    };
    found.reason = None;
    let operands = operands(operation, settings.data, settings.seed);
    let work = Work { device, operation, operands, is_yardstick, rounds_products: Cell::new(false) };
    for span in [Span::One, Span::All] {
        match work.samples(span, settings) {
            Ok(run) => found.runs.push(run),
            Err(Ended { outcome, reason }) => {
                // Discard partial measurements.
                found.runs.clear();
                (found.outcome, found.reason) = (outcome, Some(reason));
                break;
            }
        }
    }
    if found.outcome == Outcome::Measured && !is_yardstick {
        (found.emulated, found.emulation) = emulation(device, operation);
    }
    found.duration_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    found
}

/// The reason why no throughput was measured.
struct Ended {
    outcome: Outcome,
    reason: String,
}

impl From<Error> for Ended {
    fn from(error: Error) -> Self {
        let outcome = if error.is_unsupported() { Outcome::Unsupported } else { Outcome::Failed };
        Self { outcome, reason: error.to_string() }
    }
}

fn failed(reason: String) -> Ended {
    Ended { outcome: Outcome::Failed, reason }
}

/// A measurement in progress.
struct Work<'a> {
    device: &'a dyn Device,
    operation: &'a Operation,
    operands: TileBatch,
    is_yardstick: bool,
    /// Whether the yardstick rounds its product, as GLSL's `fma` may.
    rounds_products: Cell<bool>,
}

impl Work<'_> {
    fn time(&self, steps: u64, span: Span) -> Result<Timed, Ended> {
        Ok(time(self.device, self.operation, &Load { operands: &self.operands, steps, span })?)
    }

    fn samples(&self, span: Span, settings: &Settings) -> Result<ThroughputRun, Ended> {
        if self.check(span).is_err() {
            self.rounds_products.set(self.is_yardstick && !self.rounds_products.get());
            self.check(span)?;
        }
        let target_ns = settings.sample.as_secs_f64() * 1e9;
        let mut steps = FIRST_STEPS;
        let mut all = Vec::new();
        // If other programs used the machine while steps were counted, samples are too short: count again.
        for attempt in 0..ATTEMPTS {
            let first = if attempt == 0 { steps } else { steps.saturating_mul(2) };
            steps = self.calibrate(span, target_ns, first)?;
            steps = self.beyond_fixed_costs(span, target_ns, steps)?;
            all = self.series(span, steps, settings.samples.max(FEWEST_SAMPLES))?;
            if all.iter().all(|timed| timed.elapsed_ns >= 0.5 * target_ns) {
                break;
            }
        }
        self.grows(span, steps, &all)?;
        self.run(span, steps, &all)
    }

    /// Takes samples. Every second one is a step longer, and must end one step further.
    fn series(&self, span: Span, steps: u64, count: u64) -> Result<Vec<Timed>, Ended> {
        let mut all: Vec<Timed> = Vec::new();
        for sample in 0..count {
            let timed = self.time(steps + sample % 2, span)?;
            let same = all.get(usize::from(sample % 2 == 1)).unwrap_or(&timed);
            if same.d != timed.d {
                return Err(failed(format!("the same {steps} steps do not always end in the same bits")));
            }
            all.push(timed);
        }
        if let [before, after, ..] = all.as_slice() {
            self.compare(self.step(&self.started(before, &before.d, |chain| chain))?, after, steps + 1)?;
        }
        // Scale the longer samples to `steps` steps.
        #[expect(clippy::cast_precision_loss, reason = "a time has few digits")]
        let share = steps as f64 / (steps + 1) as f64;
        all.iter_mut().skip(1).step_by(2).for_each(|longer| longer.elapsed_ns *= share);
        Ok(all)
    }

    /// Compares a few steps with the same number of executions.
    fn check(&self, span: Span) -> Result<(), Ended> {
        for steps in CHECKED_STEPS {
            let timed = self.time(steps, span)?;
            let mut batch = self.started(&timed, &self.operands.c, |chain| timed.pattern[chain][2]);
            for _ in 1..steps {
                batch.c = self.step(&batch)?;
            }
            self.compare(self.step(&batch)?, &timed, steps)?;
        }
        Ok(())
    }

    /// The tiles of the chains' pattern; a chain's C is the tile of `sums` with the index `tile_of` returns.
    fn started(&self, timed: &Timed, sums: &Elements, tile_of: impl Fn(usize) -> usize) -> TileBatch {
        let mut batch = TileBatch::zeros(self.operation, timed.pattern.len());
        let (m, n, k) = self.operation.id.shape.sizes();
        let per_tile = |scales: &Option<Elements>| scales.as_ref().map_or(0, Elements::len) / self.operands.tiles;
        let (scales_a, scales_b) = (per_tile(&self.operands.scale_a), per_tile(&self.operands.scale_b));
        for (chain, [a, b, _]) in timed.pattern.iter().enumerate() {
            copy(&mut batch.a, chain, &self.operands.a, *a, m * k);
            copy(&mut batch.b, chain, &self.operands.b, *b, k * n);
            copy(&mut batch.c, chain, sums, tile_of(chain), m * n);
            if let (Some(to), Some(from)) = (&mut batch.scale_a, &self.operands.scale_a) {
                copy(to, chain, from, *a, scales_a);
            }
            if let (Some(to), Some(from)) = (&mut batch.scale_b, &self.operands.scale_b) {
                copy(to, chain, from, *b, scales_b);
            }
        }
        batch
    }

    /// Executes one step of every tile.
    fn step(&self, batch: &TileBatch) -> Result<Elements, Ended> {
        if !self.is_yardstick {
            return Ok(execute(self.device, self.operation, batch)?);
        }
        let id = &self.operation.id;
        if (id.family.as_str(), id.d, id.shape.sizes()) != ("fma", Format::F32, (1, 1, 1)) {
            return Err(Ended {
                outcome: Outcome::Unsupported,
                reason: format!("what {id} computes is not known here"),
            });
        }
        let value = |elements: &Elements, at: usize| {
            f32::from_bits(u32::try_from(elements.get(at)).expect("an element of f32 has 32 bits"))
        };
        let sum = |at: usize| {
            let (a, b, c) = (value(&batch.a, at), value(&batch.b, at), value(&batch.c, at));
            if self.rounds_products.get() { a * b + c } else { a.mul_add(b, c) }
        };
        Ok(Elements::from_bits(Format::F32, (0..batch.tiles).map(|at| u64::from(sum(at).to_bits()))))
    }

    /// Compares every chain with the results for the tiles of its pattern.
    fn compare(&self, expected: Elements, timed: &Timed, steps: u64) -> Result<(), Ended> {
        let id = &self.operation.id;
        let (m, n, _) = id.shape.sizes();
        // A measurement compares gigabytes: compare bytes first, and elements only to name the one that differs.
        let all = expected.bytes();
        if timed.d.bytes().chunks(all.len()).all(|part| *part == all[..part.len()]) {
            return Ok(());
        }
        let is_equal = |at: usize| timed.d.get(at) == expected.get(at % expected.len());
        if let Some(at) = (0..timed.d.len()).find(|at| !is_equal(*at)) {
            return Err(failed(format!(
                "what was timed is not what the operation computes: after {steps} steps chain {} has {} at row {}, column \
                 {}, and as many executions end in {}",
                at / (m * n),
                id.d.hex(timed.d.get(at)),
                at / n % m,
                at % n,
                id.d.hex(expected.get(at % expected.len()))
            )));
        }
        Ok(())
    }

    /// Finds the number of steps that take about the target time; this also warms up the device.
    fn calibrate(&self, span: Span, target_ns: f64, mut steps: u64) -> Result<u64, Ended> {
        loop {
            let mut elapsed_ns = self.time(steps, span)?.elapsed_ns;
            // Time it several times: other programs may have used the machine.
            for _ in 0..3 {
                if elapsed_ns >= 0.7 * target_ns {
                    elapsed_ns = elapsed_ns.min(self.time(steps, span)?.elapsed_ns);
                }
            }
            if elapsed_ns >= 0.7 * target_ns {
                // Reduce the steps if they take too long: a first guess may include the device's warm-up.
                let factor = (target_ns / elapsed_ns).min(1.0);
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
                return Ok(((steps as f64 * factor) as u64).max(1));
            }
            if steps >= MOST_STEPS {
                return Err(failed(format!("{steps} steps took {elapsed_ns:.0} ns: the time does not grow with them")));
            }
            let factor = (target_ns / elapsed_ns.max(1.0)).clamp(1.3, 16.0);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
            {
                steps = ((steps as f64 * factor) as u64).max(steps + 1);
            }
        }
    }

    /// Increases the number of steps if starting the work takes a good part of the time: twice the steps should take
    /// nearly twice as long.
    fn beyond_fixed_costs(&self, span: Span, target_ns: f64, mut steps: u64) -> Result<u64, Ended> {
        for _ in 0..MOST_DOUBLINGS {
            let shorter = |steps: u64| -> Result<f64, Ended> {
                Ok(self.time(steps, span)?.elapsed_ns.min(self.time(steps, span)?.elapsed_ns))
            };
            let (once_ns, twice_ns) = (shorter(steps)?, shorter(2 * steps)?);
            if twice_ns >= 1.7 * once_ns || twice_ns > (LONGEST_SAMPLES * target_ns).max(LONG_SAMPLE_NS) {
                break;
            }
            steps *= 2;
        }
        Ok(steps)
    }

    /// Checks that twice the steps take about twice the time, less the time for starting the work. This detects a clock
    /// that does not advance and a loop that does not loop.
    fn grows(&self, span: Span, steps: u64, all: &[Timed]) -> Result<(), Ended> {
        let mut best_ns = all.iter().map(|timed| timed.elapsed_ns).fold(f64::INFINITY, f64::min);
        let mut doubled_ns = f64::INFINITY;
        // Other programs may use the machine: measure a suspicious time again.
        for _ in 0..8 {
            doubled_ns = doubled_ns.min(self.time(2 * steps, span)?.elapsed_ns);
            if doubled_ns >= 1.25 * best_ns {
                return Ok(());
            }
            best_ns = best_ns.min(self.time(steps, span)?.elapsed_ns);
        }
        Err(failed(format!(
            "{steps} steps took {best_ns:.0} ns and twice as many {doubled_ns:.0} ns: the time does not grow with the work"
        )))
    }

    fn run(&self, span: Span, steps: u64, all: &[Timed]) -> Result<ThroughputRun, Ended> {
        let (m, n, k) = self.operation.id.shape.sizes();
        let best = all.iter().min_by(|one, other| one.elapsed_ns.total_cmp(&other.elapsed_ns)).expect("samples");
        let mut sorted: Vec<f64> = all.iter().map(|timed| timed.elapsed_ns).collect();
        sorted.sort_by(f64::total_cmp);
        let (best_ns, median_ns, worst_ns) = (sorted[0], sorted[sorted.len() / 2], sorted[sorted.len() - 1]);
        let shortest = SHORTEST_NS.iter().find(|(clock, _)| *clock == best.clock).map_or(0.0, |(_, ns)| *ns);
        if best_ns < shortest {
            return Err(Ended {
                outcome: Outcome::Inconclusive,
                reason: format!(
                    "too short to be timed: a sample took {best_ns:.0} ns, and starting the work shows below {shortest:.0} \
                     ns; give samples more time"
                ),
            });
        }
        let chains = best.chains(&self.operation.id) as u64;
        #[expect(clippy::cast_precision_loss, reason = "a rate has few digits")]
        let flop = chains as f64 * steps as f64 * 2.0 * (m * n * k) as f64;
        let flop_per_s_best = flop / best_ns * 1e9;
        let per_cycle = |frequency: f64, units: u32| flop_per_s_best / frequency / f64::from(units);
        let found = ThroughputRun {
            span: match span {
                Span::One => Units::One,
                Span::All => Units::All,
            },
            units: best.units,
            unit: best.unit.clone(),
            clock: match best.clock {
                Clock::Device => TimedBy::Device,
                Clock::Host => TimedBy::Host,
            },
            chains,
            steps,
            samples: all.len() as u64,
            best_ns,
            median_ns,
            spread_percent: (worst_ns - best_ns) / median_ns * 100.0,
            flop_per_s_best,
            flop_per_s_median: flop / median_ns * 1e9,
            frequency_hz: best.frequency_hz,
            flop_per_cycle_and_unit: best.frequency_hz.zip(best.units).map(|(hz, units)| per_cycle(hz, units)),
        };
        Ok(found)
    }
}

fn copy(to: &mut Elements, at: usize, from: &Elements, tile: usize, size: usize) {
    let bytes = size * from.format().storage_bytes();
    to.bytes_mut()[at * bytes..][..bytes].copy_from_slice(&from.bytes()[tile * bytes..][..bytes]);
}

/// Whether other units do the work, as far as the device shows it, and the evidence.
fn emulation(device: &dyn Device, operation: &Operation) -> (Option<bool>, Option<String>) {
    let (is_emulated, words) = match device.code().map_or(Ok(None), |code| code.issued(operation)) {
        Ok(Some(issued)) if issued.is_emulated() => (true, "the unit's instruction is not all that the driver issues"),
        Ok(Some(_)) => (false, "the unit's instruction is in the driver's code"),
        _ if device.info().kind == DeviceKind::Software => (true, "the driver computes in software"),
        _ if device.info().driver.is_none() && operation.instruction.is_some() => {
            (false, "the instruction is issued as it is, without a driver")
        }
        _ => return (None, None),
    };
    (Some(is_emulated), Some(words.to_owned()))
}
