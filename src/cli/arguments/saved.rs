//! The arguments of what needs no device: `report`, `compare`, `explain`, `schema`, `validate`.

use std::{path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};

use super::{
    Format, PageFormat,
    values::{named, seconds},
};

#[derive(Debug, Args)]
pub(crate) struct View {
    /// Reports or files of `bench` or `gemm --experiment growth`, arrays of them, directories of them; `-` for standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// How they are shown
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
    /// Write to a file instead of standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Compare {
    /// Saved reports, directories of them, models and devices in any mix, or files of `bench` or `gemm --experiment growth`: two
    /// or more in all; or two recipes: recipe:NAME[@CASE][,slices=4]
    #[arg(required = true, value_name = "FILE|DEVICE")]
    pub(crate) compared: Vec<PathBuf>,
    /// Show what is equal or open too
    #[arg(long)]
    pub(crate) all: bool,
    /// How the comparison is shown
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
    /// Write to a file instead of standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Fleet {
    /// Reports, screens, logs of screens, folders of them. A file is of the machine that it names, else of the folder below the one
    /// that is given, else of its own name
    #[arg(value_name = "DIR", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Say what changed since a fleet that `--out` wrote earlier
    #[arg(long, value_name = "FILE.json")]
    pub(crate) since: Option<PathBuf>,
    /// How it is printed
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
    /// Also write the JSON to a file
    #[arg(long, value_name = "FILE.json")]
    pub(crate) out: Option<PathBuf>,
    /// Also write an SQLite database; only if mxprobe was built with the feature `sqlite`
    #[arg(long, value_name = "FILE.db")]
    pub(crate) sqlite: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Site {
    /// The directory that the pages are written to
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// Reports of devices, arrays of reports, directories of them
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Write pages of this model, and not of every one
    #[arg(long = "model", value_name = "NAME")]
    pub(crate) models: Vec<String>,
    /// Write pages of the reports alone
    #[arg(long, conflicts_with = "models")]
    pub(crate) without_models: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Papers {
    /// A paper; without it, all
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Ask this device, and not the models of the units that the papers are about
    #[arg(long, value_name = "SELECTOR")]
    pub(crate) device: Option<String>,
    /// How it is shown
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
    /// Give up after this many silent seconds (hardware only)
    #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = seconds)]
    pub(crate) timeout: Duration,
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// A probe (with `*` and `?`), a model such as sim:h100, a format, a family of operations, or a field of the
    /// report; without it, the names are listed. With a number format behind it, a number: its fields, its exact value
    #[arg(conflicts_with = "trace", allow_negative_numbers = true)]
    pub(crate) name: Option<String>,
    /// The format of a number: `mxprobe explain 0x3d653510 f32`, `mxprobe explain 2/3 f16`
    #[arg(value_name = "FORMAT", requires = "name", conflicts_with_all = ["trace", "all"])]
    pub(crate) number: Option<String>,
    /// Explain every probe, format, family of operations and field
    #[arg(long, conflicts_with_all = ["name", "trace"])]
    pub(crate) all: bool,
    /// How it is printed
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: PageFormat,
    /// Show how a model computes dots, term by term; they are given as `eval` takes them
    #[arg(long, requires = "traced")]
    pub(crate) trace: bool,
    /// The model whose computation is traced: sim:h100, sim:FILE.toml
    #[arg(long, value_name = "SELECTOR", requires_all = ["trace", "op"], group = "traced")]
    pub(crate) device: Option<String>,
    /// The recipe whose computation is traced: NAME[@CASE][,slices=4]; dots have any number of products
    #[arg(long, value_name = "RECIPE", requires = "trace", group = "traced")]
    pub(crate) recipe: Option<String>,
    /// What the recipe's epilogue reads: a number, or bits such as 0x3f800000
    #[arg(long, value_name = "NAME=VALUE", requires = "recipe", value_parser = named)]
    pub(crate) input: Vec<(String, String)>,
    /// The operation that is traced: an id, an alias or a pattern that matches only one
    #[arg(long, value_name = "OP", requires = "trace")]
    pub(crate) op: Option<String>,
    /// The dot that is traced, as one line of JSON; without it, lines are read from standard input
    #[arg(long, value_name = "JSON", requires = "trace")]
    pub(crate) dot: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// What it describes
    #[arg(value_enum, default_value = "report")]
    pub(crate) of: SchemaOf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaOf {
    /// What `run --format json` and `--out` write
    Report,
    /// What `list --format json` prints
    List,
    /// What `compare --format json` prints
    Comparison,
    /// What `identify --format json` prints
    Identification,
    /// What `verify --format json` prints
    Verification,
    /// What `bench --format json` prints
    Bench,
    /// What `gemm --experiment growth` writes
    Growth,
    /// What `compare --format json` prints of two files of `bench`
    BenchComparison,
    /// What `compare --format json` prints of two files of `gemm --experiment growth`
    GrowthComparison,
    /// What `distinguish --format json` prints of two models
    Distinction,
    /// What `distinguish --format json` prints of more than two models
    Classes,
    /// What `distinguish --property --format json` prints
    Properties,
    /// What `distinguish --algorithm --format json` prints
    Algorithms,
    /// What `screen --format json` prints
    Screen,
    /// What `fleet --format json` prints
    Fleet,
    /// What `explain --format json` prints
    Explanation,
    /// What `papers --format json` prints
    Papers,
}

#[derive(Debug, Args)]
pub(crate) struct Validate {
    /// A report, a screen or a file of `bench`, an array of one of them, a fleet or a listing; `-` for standard input
    pub(crate) file: PathBuf,
}
