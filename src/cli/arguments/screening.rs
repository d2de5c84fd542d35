//! Arguments of `screen`.

use std::{path::PathBuf, time::Duration};

use crate::{Shard, nan_bits::NanBits};
use clap::{Args, ValueEnum};
use mxprobe_api::Injection;

use super::{
    Devices,
    values::{duration, injection, seconds},
};

/// Arguments of `screen`.
#[derive(Debug, Args)]
pub(crate) struct Screening {
    #[command(flatten)]
    pub(crate) devices: Devices,
    /// Only operations whose id or alias matches, with `*` and `?` (repeatable)
    #[arg(long, value_name = "GLOB")]
    pub(crate) op: Vec<String>,
    /// The reference model: a shipped one such as h100, or a file [default: the one of the device]
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Which NaN results are right: those with the bits of the model, or any, which asks for no result that is NaN
    /// [default: any for drivers that compute in software, else bits]
    #[arg(long, value_name = "bits|any")]
    pub(crate) nan: Option<NanBits>,
    /// Total time to screen each device, over all operations: 10s, 500ms, 2m
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10s")]
    pub(crate) budget: Duration,
    /// How often each unit goes over all blocks, instead of for a time: the same work whatever the speed
    #[arg(long, value_name = "N", conflicts_with = "budget", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) passes: Option<u64>,
    /// Screen one share of the devices, I of 0 to N-1, for `merge`
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<Shard>,
    /// Invert a bit of results, to check that it is noticed: bit=3[,lane=5][,core=1][,exponent=130][,every=1000000]
    #[arg(long, value_name = "WHAT", value_parser = injection)]
    pub(crate) error_inject: Option<Injection>,
    /// Seed of the inputs: the same number gives the same inputs
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) seed: u64,
    /// Directory of cached reference digests [default: mxprobe/golden in the user's cache directory]
    #[arg(long, value_name = "DIR", conflicts_with = "no_cache")]
    pub(crate) cache: Option<PathBuf>,
    /// Ask the model each time instead of using cached digests
    #[arg(long)]
    pub(crate) no_cache: bool,
    /// Output format: for people or for programs
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: ScreenFormat,
    /// Also write the JSON to a file
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Also append a line of JSON for each device to a file
    #[arg(long, value_name = "FILE.jsonl")]
    pub(crate) log: Option<PathBuf>,
    /// The name of this machine in reports [default: none]
    #[arg(long, value_name = "NAME", conflicts_with = "host")]
    pub(crate) node: Option<String>,
    /// Name this machine by its host name
    #[arg(long)]
    pub(crate) host: bool,
    /// Give up after this many silent seconds (hardware only)
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "120")]
    pub(crate) timeout: Duration,
}

/// The output format of a screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScreenFormat {
    /// Text for people
    Table,
    /// For programs; an array for several devices
    Json,
    /// Rows for spreadsheets
    Csv,
    /// One self-contained page
    Html,
    /// One line for node-problem-detector
    Npd,
    /// Metrics for the Prometheus textfile collector
    Prometheus,
}
