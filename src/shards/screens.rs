//! Shards of a screen, which split its devices.

use super::{Part, Sharded, ordered, shown, time};
use crate::{
    Shard,
    report::{ScreenReport, Time, Tool},
};

/// The screens of a shard, one a device; at least one.
struct Devices(Vec<ScreenReport>);

impl Devices {
    fn first(&self) -> &ScreenReport {
        &self.0[0]
    }
}

impl Sharded for Devices {
    fn shard(&self) -> Option<Shard> {
        Some(self.first().shard?.shard)
    }

    fn items(&self) -> Option<u64> {
        Some(self.first().shard?.devices)
    }

    fn times(&self) -> Vec<&Time> {
        self.0.iter().map(|screen| &screen.time).collect()
    }

    fn tool(&self) -> &Tool {
        &self.first().tool
    }

    fn files(&self) -> &'static [&'static str] {
        &["--out", "--log"]
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let first = self.first();
        vec![
            ("schema", first.schema.clone()),
            ("number of devices", shown(&first.shard.map(|shard| shard.devices))),
            ("machine", shown(&first.node)),
            ("seed", first.seed.to_string()),
            ("NaN that is right", first.nan.to_string()),
            ("passes", shown(&first.passes)),
            ("injection", shown(&first.injected)),
        ]
    }
}

/// Merges shards into the screens of one run, in the order of its devices. `out` is the file that they are written to.
///
/// # Errors
/// If the parts are not all shards of one screen, each once and finished.
pub fn merge_screens(parts: Vec<Part<Vec<ScreenReport>>>, out: &str) -> Result<Vec<ScreenReport>, String> {
    let mut given = Vec::new();
    for Part { name, report } in parts {
        let Some(first) = report.first() else { return Err(format!("`{name}` has no screen")) };
        let is_one_shard = report.iter().all(|screen| screen.shard == first.shard);
        if !is_one_shard {
            return Err(format!("`{name}` has screens of several shards"));
        }
        given.push(Part { name, report: Devices(report) });
    }
    let parts = ordered(given)?;
    let all = parts.first().and_then(|part| part.report.items()).unwrap_or(0);
    for Part { name, report } in &parts {
        let (own, has) = (report.shard().map_or(0, |shard| shard.count(all)), report.0.len());
        if own != has as u64 {
            return Err(format!("`{name}` has {has} devices, and the share of the shard is {own}"));
        }
    }
    let mut of_shards: Vec<_> = parts.into_iter().map(|part| part.report.0.into_iter()).collect();
    let mut merged = Vec::new();
    for at in 0..usize::try_from(all).unwrap_or(usize::MAX) {
        let shards = of_shards.len();
        let screen = of_shards[at % shards].next().ok_or("a shard has too few devices")?;
        let tool = screen.tool.unsharded(&[("--out", out)]);
        let time = time(&[&screen.time]);
        merged.push(ScreenReport { tool, time, shard: None, ..screen });
    }
    Ok(merged)
}
