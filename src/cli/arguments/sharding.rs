//! The arguments of `merge`.

use std::path::PathBuf;

use clap::Args;

use super::Format;

/// The arguments of `merge`.
#[derive(Debug, Args)]
pub(crate) struct Merge {
    /// The files of all shards of one job, in any order: those of `verify`, `screen` or `gemm --experiment growth` with
    /// `--shard I/N --out`, or of `identify` with `--shard I/N --report`
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// The file to write: what the command writes without `--shard`
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Shards of `identify`: the model file to write
    #[arg(long, value_name = "MODEL.toml")]
    pub(crate) model: Option<PathBuf>,
    /// How the merged result is printed
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
}
