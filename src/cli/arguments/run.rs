//! Arguments of `run`.

use std::{path::PathBuf, time::Duration};

use clap::Args;

use super::{Devices, Format, values::seconds};

/// Arguments of `run`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) devices: Devices,
    /// Only operations whose id or alias matches, with `*` and `?` (repeatable)
    #[arg(long, value_name = "GLOB")]
    pub(crate) op: Vec<String>,
    /// Also compare each operation, bit for bit, with this model: a shipped one such as h100, or a file
    #[arg(long, value_name = "MODEL")]
    pub(crate) expect: Option<String>,
    /// Only probes whose name matches or starts with this (repeatable); `mxprobe explain` lists them
    #[arg(long, value_name = "GLOB")]
    pub(crate) probe: Vec<String>,
    /// Number of arguments for each function in `--probe ulp` [default: 10000000]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..=1 << 33))]
    pub(crate) points: Option<u64>,
    /// Output format: for people or for programs
    #[arg(long, value_enum)]
    pub(crate) format: Option<Format>,
    /// Also write the JSON report to a file, or to one file per device in a directory; it grows during the run
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Give up after this many silent seconds (hardware only) [default: 60]
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,
    /// Time limit for the whole run, in seconds; operations not reached by then are skipped
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = seconds)]
    pub(crate) budget: Option<Duration>,
    /// Continue an unfinished report: ask again what failed, was skipped or is missing, and write to the same file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["backend", "op", "probe", "points", "out"])]
    pub(crate) resume: Option<PathBuf>,
}
