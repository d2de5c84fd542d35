//! The shards of a job, merged into the report of one run.
//!
//! A command with `--shard I/N` does one share of its work. Here the reports of all shares become the report that the
//! command writes without `--shard`: to the byte if `SOURCE_DATE_EPOCH` fixes the time, else but for times.

mod growth;
mod identification;
mod screens;
mod verification;

use crate::{
    Shard,
    in_order::InOrder,
    report::{Time, Tool},
};

pub use growth::merge_growth;
pub use identification::merge_identifications;
pub use screens::merge_screens;
pub use verification::merge_verifications;

/// The report of a shard, and the file that it is from.
#[derive(Clone, Debug)]
pub struct Part<T> {
    /// The name of the file, for errors.
    pub name: String,
    /// The report in it.
    pub report: T,
}

/// A report that may be that of a shard of a job.
trait Sharded {
    /// Its share; `None` if it is a whole run.
    fn shard(&self) -> Option<Shard>;

    /// The number of items that the shares divide, if there may be fewer items than shares; `None` if every share has
    /// work.
    fn items(&self) -> Option<u64> {
        None
    }

    /// The times of its parts.
    fn times(&self) -> Vec<&Time>;

    /// The program.
    fn tool(&self) -> &Tool;

    /// Options that name the files of a shard, which differ from shard to shard.
    fn files(&self) -> &'static [&'static str] {
        &["--out"]
    }

    /// The facts that all shards of a job have in common, each with its name.
    fn facts(&self) -> Vec<(&'static str, String)>;
}

/// Checks that these are all shards of one job, each once and finished, and puts them in their order.
fn ordered<T: Sharded>(mut parts: Vec<Part<T>>) -> Result<Vec<Part<T>>, String> {
    let shard_of = |part: &Part<T>| {
        part.report.shard().ok_or_else(|| format!("`{}` is not a shard: it was made without `--shard`", part.name))
    };
    let Some(first) = parts.first() else { return Err("no shard was given".into()) };
    let of = shard_of(first)?.of();
    for part in &parts {
        let shard = shard_of(part)?;
        if shard.of() != of {
            return Err(format!(
                "`{}` is one of {} shards, and `{}` is one of {of}",
                part.name,
                shard.of(),
                first.name
            ));
        }
        same(first, part)?;
        if part.report.times().iter().any(|time| time.interrupted) {
            return Err(format!("`{}`, shard {shard}, was interrupted before it was finished", part.name));
        }
    }
    parts.order_by_key(|part| part.report.shard());
    if let Some(pair) = parts.windows(2).find(|pair| pair[0].report.shard() == pair[1].report.shard()) {
        let shard = shard_of(&pair[0])?;
        return Err(format!("shard {shard} is there twice: `{}` and `{}`", pair[0].name, pair[1].name));
    }
    let with_work = parts.first().and_then(|part| part.report.items()).map_or(of, |items| items.min(of));
    let is_there = |index: &u64| parts.iter().any(|part| part.report.shard().is_some_and(|is| is.index() == *index));
    let missing: Vec<String> =
        (0..with_work).filter(|index| !is_there(index)).map(|index| format!("{index}/{of}")).collect();
    match missing.as_slice() {
        [] => Ok(parts),
        [one] => Err(format!("shard {one} is missing")),
        [first, .., last] => Err(format!("{} shards are missing, from {first} to {last}", missing.len())),
    }
}

/// Checks that two shards are of one job.
fn same<T: Sharded>(first: &Part<T>, other: &Part<T>) -> Result<(), String> {
    let facts = |part: &Part<T>| {
        let report = &part.report;
        let values: Vec<(&str, &str)> = report.files().iter().map(|option| (*option, "FILE")).collect();
        let tool = report.tool().unsharded(&values);
        let backends = tool.backends.join(", ");
        let version = format!("{}, {}, {}, {backends}", tool.version_and_commit(), tool.target, tool.rustc);
        let mut facts = vec![("version", version), ("arguments", tool.arguments.join(" "))];
        facts.extend(report.facts());
        facts
    };
    for ((what, was), (_, is)) in facts(first).into_iter().zip(facts(other)) {
        if was != is {
            return Err(format!(
                "shards of one job have the same {what}: `{}` has {is}, and `{}` has {was}",
                other.name, first.name
            ));
        }
    }
    Ok(())
}

/// The time of a whole run: from the first start to the last end, and as long as all shards together.
fn time(times: &[&Time]) -> Time {
    Time {
        start: times.iter().map(|time| time.start.clone()).min().unwrap_or_default(),
        end: times.iter().filter_map(|time| time.end.clone()).max(),
        duration_ns: times.iter().fold(0, |sum, time| sum.saturating_add(time.duration_ns)),
        interrupted: false,
    }
}

/// The time of all shards together.
fn time_of<T: Sharded>(parts: &[Part<T>]) -> Time {
    time(&parts.iter().flat_map(|part| part.report.times()).collect::<Vec<_>>())
}

/// A value as one line, to compare it and to show it.
fn shown(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
