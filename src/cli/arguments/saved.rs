//! Arguments of the commands that need no device: `report`, `compare`, `fleet`, `site`, `papers`, `explain`, `schema`,
//! `validate`.

use std::{path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};

use super::{
    Format, PageFormat,
    values::{named, seconds},
};

#[derive(Debug, Args)]
pub(crate) struct View {
    /// Reports or files of `bench` or `gemm --experiment growth`, arrays of them, or directories; `-` for standard
    /// input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
    /// Write to a file instead of standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Compare {
    /// Two or more saved reports, directories of them, models and devices in any mix, or files of `bench` or `gemm
    /// --experiment growth`; or two recipes: recipe:NAME[@CASE][,slices=4]
    #[arg(required = true, value_name = "FILE|DEVICE")]
    pub(crate) compared: Vec<PathBuf>,
    /// Also show answers that are equal or open
    #[arg(long)]
    pub(crate) all: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
    /// Write to a file instead of standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Fleet {
    /// Reports, screens, logs of screens, or directories of them. A file belongs to the machine it names; otherwise to
    /// the one named by its directory below DIR, or by its own name
    #[arg(value_name = "DIR", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Show what changed since an earlier fleet file written by `--out`
    #[arg(long, value_name = "FILE.json")]
    pub(crate) since: Option<PathBuf>,
    /// Output format
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
    /// The directory to write the pages to
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// Reports of devices, arrays of reports, or directories of them
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Write pages for this model only (repeatable)
    #[arg(long = "model", value_name = "NAME")]
    pub(crate) models: Vec<String>,
    /// Write pages for the reports only
    #[arg(long, conflicts_with = "models")]
    pub(crate) without_models: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Papers {
    /// A paper; all papers if omitted
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Ask this device instead of the models of the units in the papers
    #[arg(long, value_name = "SELECTOR")]
    pub(crate) device: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
    /// Give up after this many silent seconds (hardware only)
    #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = seconds)]
    pub(crate) timeout: Duration,
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// A probe (with `*` and `?`), a model such as sim:h100, a format, a family of operations, or a field of the
    /// report; lists the names if omitted. With a FORMAT after it, a number: shows its fields and exact value
    #[arg(conflicts_with = "trace", allow_negative_numbers = true)]
    pub(crate) name: Option<String>,
    /// The format of a number: `mxprobe explain 0x3d653510 f32`, `mxprobe explain 2/3 f16`
    #[arg(value_name = "FORMAT", requires = "name", conflicts_with_all = ["trace", "all"])]
    pub(crate) number: Option<String>,
    /// Explain every probe, format, family of operations and field
    #[arg(long, conflicts_with_all = ["name", "trace"])]
    pub(crate) all: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: PageFormat,
    /// Show how a model computes dots, term by term; dots are given as for `eval`
    #[arg(long, requires = "traced")]
    pub(crate) trace: bool,
    /// The model to trace: sim:h100, sim:FILE.toml
    #[arg(long, value_name = "SELECTOR", requires_all = ["trace", "op"], group = "traced")]
    pub(crate) device: Option<String>,
    /// The recipe to trace: NAME[@CASE][,slices=4]; dots may have any number of products
    #[arg(long, value_name = "RECIPE", requires = "trace", group = "traced")]
    pub(crate) recipe: Option<String>,
    /// A value that the recipe's epilogue reads: a number, or bits such as 0x3f800000
    #[arg(long, value_name = "NAME=VALUE", requires = "recipe", value_parser = named)]
    pub(crate) input: Vec<(String, String)>,
    /// The operation to trace: an id, an alias or a pattern that matches only one
    #[arg(long, value_name = "OP", requires = "trace")]
    pub(crate) op: Option<String>,
    /// The dot to trace, as one line of JSON; read from standard input, one per line, if omitted
    #[arg(long, value_name = "JSON", requires = "trace")]
    pub(crate) dot: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// The document that the schema describes
    #[arg(value_enum, default_value = "report")]
    pub(crate) of: SchemaOf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaOf {
    /// The output of `run --format json` and `--out`
    Report,
    /// The output of `list --format json`
    List,
    /// The output of `compare --format json`
    Comparison,
    /// The output of `identify --format json`
    Identification,
    /// The output of `verify --format json`
    Verification,
    /// The output of `bench --format json`
    Bench,
    /// The output of `gemm --experiment growth`
    Growth,
    /// The output of `compare --format json` for two files of `bench`
    BenchComparison,
    /// The output of `compare --format json` for two files of `gemm --experiment growth`
    GrowthComparison,
    /// The output of `distinguish --format json` for two models
    Distinction,
    /// The output of `distinguish --format json` for more than two models
    Classes,
    /// The output of `distinguish --property --format json`
    Properties,
    /// The output of `distinguish --algorithm --format json`
    Algorithms,
    /// The output of `screen --format json`
    Screen,
    /// The output of `fleet --format json`
    Fleet,
    /// The output of `explain --format json`
    Explanation,
    /// The output of `papers --format json`
    Papers,
}

#[derive(Debug, Args)]
pub(crate) struct Validate {
    /// A report, a screen or a file of `bench`, an array of one of them, a fleet or a listing; `-` for standard input
    pub(crate) file: PathBuf,
}
