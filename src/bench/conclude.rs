//! Conclusions from all rates together.

use super::peaks;
use crate::report::{BenchReport, Outcome, SPREAD_LIMIT_PERCENT, Throughput, Units};

/// Below this many times the rate of the scalar units, a matrix unit would be useless, so it counts as emulated.
const SLOWER: f64 = 1.0;
/// Above this many times their rate, the scalar units cannot be doing the work.
const FASTER: f64 = 2.0;

/// Fills in what follows from all rates together: ratios to the yardstick and to the vendor's peak, a warning for each
/// measurement whose samples differ too much and, if the driver does not show its code, what the speed says about an
/// emulation.
pub fn conclude(report: &mut BenchReport) {
    report.warnings = report.operations.iter().flat_map(warnings).collect();
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

/// A sentence for each run whose samples differ by more than the limit.
fn warnings(found: &Throughput) -> impl Iterator<Item = String> {
    found.runs.iter().filter(|run| run.is_unsteady()).map(|run| {
        let units = match run.span {
            Units::One => "one",
            Units::All => "all",
        };
        format!(
            "{} on {units} {}{}: the samples differ by {:.1} % of their median, more than {SPREAD_LIMIT_PERCENT} %",
            found.id,
            run.unit,
            if run.span == Units::All { "s" } else { "" },
            run.spread_percent
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{
        BENCH_SCHEMA, BenchSettings, Data, DeviceRecord, Host, Kind, ThroughputRun, Time, TimedBy, this_tool,
    };

    fn run(span: Units, spread_percent: f64) -> ThroughputRun {
        ThroughputRun {
            span,
            units: Some(2),
            unit: "core".into(),
            clock: TimedBy::Host,
            chains: 1,
            steps: 1,
            samples: 7,
            best_ns: 1.0,
            median_ns: 1.0,
            spread_percent,
            flop_per_s_best: 1.0,
            flop_per_s_median: 1.0,
            frequency_hz: None,
            flop_per_cycle_and_unit: None,
        }
    }

    #[test]
    fn a_spread_above_20_percent_is_a_warning_that_names_the_operation_and_the_spread() {
        let id = "dot.m1n1k2.f32.bf16.bf16.f32";
        let measured = Throughput {
            outcome: Outcome::Measured,
            reason: None,
            runs: vec![run(Units::One, 20.0), run(Units::All, 34.25)],
            ..Throughput::without(id.parse().unwrap(), Outcome::Failed, "")
        };
        let device = DeviceRecord {
            backend: "cpu".into(),
            selector: "cpu:0".into(),
            name: "x".into(),
            fingerprint: "x".into(),
            kind: Kind::Hardware,
            emulated: false,
            aliases: Vec::new(),
            driver: None,
            properties: Default::default(),
        };
        let mut report = BenchReport {
            schema: BENCH_SCHEMA.into(),
            tool: this_tool(&[]),
            time: Time::starting(),
            host: Host::this(),
            device,
            settings: BenchSettings { data: Data::Random, sample_ns: 1, samples: 7, seed: 1 },
            warnings: Vec::new(),
            operations: vec![measured],
        };
        conclude(&mut report);
        let warning = format!("{id} on all cores: the samples differ by 34.2 % of their median, more than 20 %");
        assert_eq!(report.warnings, [warning]);
        report.operations[0].runs.pop();
        conclude(&mut report);
        assert_eq!(report.warnings, [""; 0], "20 % is not above 20 %");
    }
}
