//! Comparison of throughput measurements, and of growing errors.

use std::collections::BTreeSet;

use mxprobe_api::OperationId;

use super::reports::{label, side};
use crate::{
    findings::Outcome,
    gemm::{Curve, Point},
    record::{
        AloneRate, BENCH_COMPARISON_SCHEMA, BenchComparison, BenchReport, ComparedCurve, ComparedRate, DeviceRecord,
        GROWTH_COMPARISON_SCHEMA, GrowthComparison, GrowthReport, Rate, Ratio, Side, Throughput, ThroughputRun, Time,
        Units,
    },
};

/// Compares throughput measurements, each given with its source: operations with the same id, on the same units.
#[must_use]
pub fn compare_throughput(reports: &[(String, BenchReport)]) -> BenchComparison {
    let measured = |report: &BenchReport, id: &OperationId| {
        let is_measured = |found: &&Throughput| found.id == *id && found.outcome == Outcome::Measured;
        report.operations.iter().find(is_measured).cloned()
    };
    let mut seen = BTreeSet::new();
    let ids = reports.iter().flat_map(|(_, report)| &report.operations).map(|found| &found.id);
    let ids: Vec<_> = ids.filter(|id| seen.insert(*id)).collect();
    let (mut rates, mut alone) = (Vec::new(), Vec::new());
    for id in ids {
        let found: Vec<Option<Throughput>> = reports.iter().map(|(_, report)| measured(report, id)).collect();
        let mut having = found.iter().enumerate().filter(|(_, found)| found.is_some());
        match (having.next(), having.next()) {
            (Some((at, _)), None) => alone.push(AloneRate { side: label(at), id: id.clone() }),
            (Some(_), Some(_)) => rates.extend([Units::One, Units::All].into_iter().filter_map(|span| {
                let runs: Vec<Option<&ThroughputRun>> =
                    found.iter().map(|found| found.as_ref().and_then(|found| found.run(span))).collect();
                let (rates, differ) = compared(&runs)?;
                Some(ComparedRate { id: id.clone(), span, rates, differ })
            })),
            _ => {}
        }
    }
    BenchComparison {
        schema: BENCH_COMPARISON_SCHEMA.into(),
        sides: sides(reports.iter().map(|(source, report)| (source, &report.device, &report.time))),
        differ: rates.iter().any(|rate| rate.differ),
        rates,
        alone,
    }
}

fn sides<'a>(of: impl Iterator<Item = (&'a String, &'a DeviceRecord, &'a Time)>) -> Vec<Side> {
    of.enumerate().map(|(at, (source, device, time))| side(at, source, device, time)).collect()
}

/// Returns the rates of runs, and whether one does not overlap with the first; `None` if fewer than two were measured.
fn compared(runs: &[Option<&ThroughputRun>]) -> Option<(Vec<Option<Rate>>, bool)> {
    let first = rate(runs.iter().flatten().next()?);
    if runs.iter().flatten().count() < 2 {
        return None;
    }
    let (mut is_first, mut differ) = (true, false);
    let rates = runs.iter().map(|run| {
        let mut rate = rate((*run)?);
        if !std::mem::take(&mut is_first) {
            let low = rate.flop_per_s_low / first.flop_per_s_high;
            let high = rate.flop_per_s_high / first.flop_per_s_low;
            differ |= high < 1.0 || low > 1.0;
            rate.ratio = Some(Ratio { median: rate.flop_per_s_median / first.flop_per_s_median, low, high });
        }
        Some(rate)
    });
    Some((rates.collect(), differ))
}

fn rate(run: &ThroughputRun) -> Rate {
    let flop = run.flop_per_s_best * run.best_ns;
    let longest_ns = run.best_ns + run.spread_percent / 100.0 * run.median_ns;
    Rate {
        flop_per_s_median: run.flop_per_s_median,
        flop_per_s_low: flop / longest_ns,
        flop_per_s_high: run.flop_per_s_best,
        spread_percent: run.spread_percent,
        ratio: None,
    }
}

/// Compares experiments on the growth of errors, each given with its source: curves with the same name and elements, at
/// the same lengths.
#[must_use]
pub fn compare_growth(reports: &[(String, GrowthReport)]) -> GrowthComparison {
    let all = || reports.iter().flat_map(|(_, report)| &report.growth.curves);
    let mut seen = BTreeSet::new();
    let key = |curve: &Curve| format!("{} {:?} {:?}", curve.name, curve.what_if, curve.interval);
    let (mut curves, mut alone) = (Vec::new(), Vec::new());
    for curve in all().filter(|curve| seen.insert(key(curve))) {
        let of = |report: &GrowthReport| report.growth.curves.iter().find(|other| key(other) == key(curve)).cloned();
        let found: Vec<Option<Curve>> = reports.iter().map(|(_, report)| of(report)).collect();
        if found.iter().flatten().count() < 2 {
            let at = found.iter().position(Option::is_some).unwrap_or(0);
            let what_if = curve.what_if.map_or(String::new(), |cause| format!(", if {}", cause.words()));
            alone.push(format!("{}: {}{what_if}, elements in {}", label(at), curve.name, curve.interval.name()));
            continue;
        }
        let lengths: BTreeSet<u64> =
            found.iter().flatten().flat_map(|curve| &curve.points).map(|point| point.n).collect();
        let at = |n: u64| -> Vec<Option<Point>> {
            let point = |curve: &Option<Curve>| curve.as_ref()?.points.iter().find(|point| point.n == n).copied();
            found.iter().map(point).collect()
        };
        curves.push(ComparedCurve {
            name: curve.name.clone(),
            what_if: curve.what_if,
            interval: curve.interval,
            operations: found.iter().map(|curve| curve.as_ref().and_then(|curve| curve.operation.clone())).collect(),
            points: lengths.into_iter().map(at).collect(),
        });
    }
    let seeds: BTreeSet<u32> = reports.iter().map(|(_, report)| report.growth.seed).collect();
    let mut notes = Vec::new();
    if seeds.len() > 1 {
        let seeds: Vec<String> = seeds.iter().map(ToString::to_string).collect();
        notes.push(format!("the seeds differ ({}): these are errors of different matrices", seeds.join(", ")));
    }
    GrowthComparison {
        schema: GROWTH_COMPARISON_SCHEMA.into(),
        sides: sides(reports.iter().map(|(source, report)| (source, &report.device, &report.time))),
        differ: curves.iter().flat_map(|curve| &curve.points).any(|row| ComparedCurve::differs(row)),
        notes,
        curves,
        alone,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::TimedBy;

    /// A run whose samples took from `best_ns` to `worst_ns` for 1000 FLOP.
    fn run(best_ns: f64, median_ns: f64, worst_ns: f64) -> ThroughputRun {
        ThroughputRun {
            span: Units::All,
            units: None,
            unit: "core".into(),
            clock: TimedBy::Host,
            chains: 1,
            steps: 1,
            samples: 7,
            best_ns,
            median_ns,
            spread_percent: (worst_ns - best_ns) / median_ns * 100.0,
            flop_per_s_best: 1e12 / best_ns,
            flop_per_s_median: 1e12 / median_ns,
            frequency_hz: None,
            flop_per_cycle_and_unit: None,
        }
    }

    #[test]
    fn rates_differ_if_no_sample_of_one_is_as_fast_as_any_of_the_other() {
        let first = run(10.0, 12.0, 16.0);
        for (other, differ) in [
            (run(10.0, 12.0, 16.0), false),
            (run(15.9, 17.0, 20.0), false),
            (run(16.1, 17.0, 20.0), true),
            (run(5.0, 6.0, 9.9), true),
            (run(5.0, 6.0, 10.1), false),
        ] {
            let (rates, found) = compared(&[Some(&first), None, Some(&other)]).unwrap();
            let ratio = rates[2].as_ref().unwrap().ratio.unwrap();
            assert_eq!(found, differ, "{ratio:?}");
            assert!((ratio.median - 12.0 / other.median_ns).abs() < 1e-12 && ratio.low <= ratio.median);
            assert!(rates[0].as_ref().unwrap().ratio.is_none() && rates[1].is_none());
        }
        assert!(compared(&[Some(&first), None]).is_none() && compared(&[]).is_none());
    }
}
