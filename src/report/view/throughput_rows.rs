//! Throughput as rows for spreadsheets.

use super::csv::{self, Rows};
use crate::report::{BenchReport, Throughput, ThroughputRun, Units};

/// The columns for programs.
const COLUMNS: &str = "schema tool_version start backend fingerprint device kind device_emulated driver driver_version data \
     operation yardstick outcome reason span units unit clock chains steps samples best_ns median_ns \
     spread_percent flop_per_s_best flop_per_s_median frequency_hz flop_per_cycle_and_unit emulated \
     ratio_to_yardstick peak_flop_per_s peak_flop_per_cycle_and_unit";

/// Returns the rows, one per run; an operation that was not measured has one row without numbers.
pub(super) fn rows(reports: &[BenchReport]) -> Rows {
    let mut rows = Vec::new();
    for report in reports {
        for found in &report.operations {
            let runs: Vec<Option<&ThroughputRun>> =
                if found.runs.is_empty() { vec![None] } else { found.runs.iter().map(Some).collect() };
            rows.extend(runs.into_iter().map(|run| fields(report, found, run)));
        }
    }
    Rows::new(COLUMNS, rows)
}

fn fields(report: &BenchReport, found: &Throughput, run: Option<&ThroughputRun>) -> Vec<String> {
    let of = |field: &dyn Fn(&ThroughputRun) -> Option<String>| run.and_then(field).unwrap_or_default();
    let is_all = run.is_some_and(|run| run.span == Units::All);
    let mut cells = csv::of_run(&report.schema, &report.tool, &report.time, &report.device);
    cells.extend([
        word(report.settings.data),
        found.id.to_string(),
        found.yardstick.to_string(),
        found.outcome.name().to_owned(),
        found.reason.clone().unwrap_or_default(),
        of(&|run| Some(word(run.span))),
        of(&|run| run.units.map(|units| units.to_string())),
        of(&|run| Some(run.unit.clone())),
        of(&|run| Some(word(run.clock))),
        of(&|run| Some(run.chains.to_string())),
        of(&|run| Some(run.steps.to_string())),
        of(&|run| Some(run.samples.to_string())),
        of(&|run| Some(run.best_ns.to_string())),
        of(&|run| Some(run.median_ns.to_string())),
        of(&|run| Some(run.spread_percent.to_string())),
        of(&|run| Some(run.flop_per_s_best.to_string())),
        of(&|run| Some(run.flop_per_s_median.to_string())),
        of(&|run| run.frequency_hz.map(|hz| hz.to_string())),
        of(&|run| run.flop_per_cycle_and_unit.map(|rate| rate.to_string())),
        found.emulated.map(|emulated| emulated.to_string()).unwrap_or_default(),
        found.ratio_to_yardstick.filter(|_| is_all).map(|ratio| ratio.to_string()).unwrap_or_default(),
        found.peak.as_ref().filter(|_| is_all).map(|peak| peak.flop_per_s.to_string()).unwrap_or_default(),
        found
            .peak
            .as_ref()
            .and_then(|peak| peak.per_cycle.as_ref())
            .filter(|_| is_all)
            .map(|peak| peak.flop_per_cycle_and_unit.to_string())
            .unwrap_or_default(),
    ]);
    cells
}

/// Returns the word for a value in the JSON.
fn word(value: impl serde::Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}
