//! Shards of an experiment on the growth of errors, which split its points.

use super::{Part, Sharded, ordered, shown, time_of};
use crate::{
    Shard, gemm,
    report::{GrowthReport, Time, Tool},
};

impl Sharded for GrowthReport {
    fn shard(&self) -> Option<Shard> {
        self.shard
    }

    fn times(&self) -> Vec<&Time> {
        vec![&self.time]
    }

    fn tool(&self) -> &Tool {
        &self.tool
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        vec![
            ("schema", self.schema.clone()),
            ("device", shown(&self.device)),
            ("seed", self.growth.seed.to_string()),
            ("words", shown(&self.growth.drawn)),
        ]
    }
}

/// Merges shards into the report of one run. `out` is the file that the report is written to.
///
/// # Errors
/// If the parts are not all shards of one experiment, each once and finished.
pub fn merge_growth(parts: Vec<Part<GrowthReport>>, out: &str) -> Result<GrowthReport, String> {
    let parts = ordered(parts)?;
    let time = time_of(&parts);
    let growth: Vec<_> = parts.iter().map(|part| part.report.growth.clone()).collect();
    let growth = gemm::merge(&growth)?;
    let first = parts.into_iter().next().ok_or("no shard was given")?.report;
    Ok(GrowthReport { tool: first.tool.unsharded(&[("--out", out)]), time, shard: None, growth, ..first })
}
