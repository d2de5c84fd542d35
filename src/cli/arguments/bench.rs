//! Arguments of `bench`.

use std::{path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};

use super::{
    Devices, Format,
    values::{milliseconds, seconds},
};

/// Arguments of `bench`.
#[derive(Debug, Args)]
pub(crate) struct Bench {
    #[command(flatten)]
    pub(crate) devices: Devices,
    /// Only operations whose id or alias matches, with `*` and `?` (repeatable)
    #[arg(long, value_name = "GLOB")]
    pub(crate) op: Vec<String>,
    /// Duration of a sample in milliseconds
    #[arg(long, value_name = "MS", value_parser = milliseconds, default_value = "20")]
    pub(crate) time: Duration,
    /// Number of samples behind each rate
    #[arg(long, value_name = "N", default_value = "9", value_parser = clap::value_parser!(u64).range(7..=10_000))]
    pub(crate) samples: u64,
    /// Distribution of the elements; zeros flatter
    #[arg(long, value_enum, default_value = "random")]
    pub(crate) data: BenchData,
    /// The same as `--data zeros`
    #[arg(long, conflicts_with = "data")]
    pub(crate) zeros: bool,
    /// Seed of the elements
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) seed: u64,
    /// Output format: for people or for programs
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
    /// Also write the JSON to a file, or to one file per device in a directory; it grows during the run
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Give up after this many silent seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "120")]
    pub(crate) timeout: Duration,
    /// Time limit for each device, in seconds; operations not reached by then are skipped
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) budget: Option<Duration>,
}

/// The distribution that elements are drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BenchData {
    /// Values from -1 to 1, or any integers
    Random,
    /// -1, 0 and 1
    Small,
    /// +0
    Zeros,
}
