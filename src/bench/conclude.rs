//! What the rates say of each other.

use super::peaks;
use crate::report::{BenchReport, Outcome, Throughput, Units};

/// Slower than this many times the scalar units beside it, a matrix unit would be of no use to anybody.
const SLOWER: f64 = 1.0;
/// Faster than this many times, the scalar units cannot be what computes.
const FASTER: f64 = 2.0;

/// Fills in what follows from all rates together: ratios to the yardstick and to the vendor's peak, and, where the driver
/// shows no code, what the speed says of an emulation.
pub fn conclude(report: &mut BenchReport) {
    let is_yardstick = |found: &&Throughput| found.yardstick && found.outcome == Outcome::Measured;
    let yardstick = report.operations.iter().find(is_yardstick);
    let yardstick = yardstick.and_then(|found| Some((found.id.clone(), found.run(Units::All)?.flop_per_s_best)));
    for found in report.operations.iter_mut().filter(|found| found.outcome == Outcome::Measured) {
        let Some(run) = found.run(Units::All).cloned() else { continue };
        found.peak = peaks::peak(&report.device, &found.id, &run);
        let Some((id, rate)) = yardstick.as_ref().filter(|_| !found.yardstick) else { continue };
        let ratio = run.flop_per_s_best / rate;
        found.ratio_to_yardstick = Some(ratio);
        if found.emulated.is_none() {
            let verdict = match ratio {
                _ if ratio < SLOWER => Some(true),
                _ if ratio > FASTER => Some(false),
                _ => None,
            };
            found.emulated = verdict;
            found.emulation =
                verdict.map(|_| format!("the driver shows no code; the rate is {ratio:.2} times that of {id}"));
        }
    }
}
