//! Arguments of the commands about models: `identify`, `invariance`, `verify`, `eval`, `conformance`, `distinguish`.

use std::{path::PathBuf, time::Duration};

use crate::{
    Shard,
    identify::NanBits,
    proof::{algorithms::Algorithm, conditions::Exponents, properties::Property},
};
use clap::{Args, builder::PossibleValuesParser};
use mxprobe_api::Shape;

use super::{
    Format, PageFormat,
    values::{exponent_range, number_format, seconds, shape},
};

#[derive(Debug, Args)]
pub(crate) struct Identify {
    /// The device: cpu:0, vulkan:0, sim:h100, sim:FILE.toml, 'exec:COMMAND ARGUMENTS', …
    #[arg(
        long,
        value_name = "SELECTOR",
        env = "MXPROBE_DEVICE",
        hide_env_values = true,
        required_unless_present = "resume"
    )]
    pub(crate) device: Option<String>,
    /// Only operations whose id or alias matches, with `*` and `?` (repeatable)
    #[arg(long, value_name = "GLOB")]
    pub(crate) op: Vec<String>,
    /// Which NaN results of the device count as equal: those with the same bits, or any
    #[arg(long, value_name = "bits|any", default_value = "bits")]
    pub(crate) nan: NanBits,
    /// Recover how a library uses its unit: the recipe of its product, for each of `--shapes`; `--out` is then a recipe
    /// file
    #[arg(long, requires = "shapes", conflicts_with_all = ["resume", "nan"])]
    pub(crate) gemm: bool,
    /// Shapes of the product, with `--gemm`: 1x4096x4096,16x4096x4096
    #[arg(long, value_name = "MxNxK,…", value_parser = shape, value_delimiter = ',', requires = "gemm")]
    pub(crate) shapes: Vec<Shape>,
    /// With `--gemm`: between neighbouring shapes that differ in one size and in their recipes, bisect to find where
    /// the recipe changes
    #[arg(long, requires = "gemm")]
    pub(crate) boundary: bool,
    /// Minimum number of random elements of each shape to compare with a recipe
    #[arg(long, value_name = "N", default_value = "100000", requires = "gemm", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) elements: u64,
    /// The model file to write; rewritten after each operation
    #[arg(long, value_name = "MODEL.toml", required_unless_present_any = ["resume", "gemm"])]
    pub(crate) out: Option<PathBuf>,
    /// Also write the JSON to a file; like the model file, it grows during the run
    #[arg(long, value_name = "FILE.json")]
    pub(crate) report: Option<PathBuf>,
    /// Identify one share of the operations, I of 0 to N-1, for `merge`
    #[arg(long, value_name = "I/N", requires = "report", conflicts_with_all = ["resume", "gemm"])]
    pub(crate) shard: Option<Shard>,
    /// Continue an interrupted identification, from the file that `--report` wrote: ask what failed or is missing
    #[arg(long, value_name = "FILE.json", conflicts_with_all = ["op", "nan", "report", "seed"])]
    pub(crate) resume: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) inputs: Inputs,
}

#[derive(Debug, Args)]
pub(crate) struct Invariance {
    /// The device, whose operation leaves its sizes open: 'exec:COMMAND ARGUMENTS'
    #[arg(long, value_name = "SELECTOR", env = "MXPROBE_DEVICE", hide_env_values = true)]
    pub(crate) device: String,
    /// The operation, if the device has several
    #[arg(long, value_name = "GLOB")]
    pub(crate) op: Vec<String>,
    /// Shapes of the same k; each is compared with the first: 1x64x256,16x64x256
    #[arg(long, value_name = "MxNxK,…", value_parser = shape, value_delimiter = ',', required = true)]
    pub(crate) shapes: Vec<Shape>,
    /// Also identify the recipes of all shapes: proves equality if they make the same additions, and lists the
    /// differences otherwise
    #[arg(long)]
    pub(crate) recipes: bool,
    /// Minimum number of random elements to compare with a recipe
    #[arg(long, value_name = "N", default_value = "100000", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) elements: u64,
    /// Seed of the inputs: the same number gives the same inputs
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) seed: u64,
    /// Output format: for people or for programs
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: PageFormat,
    #[command(flatten)]
    pub(crate) reach: Reach,
}

#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// The device: cpu:0, vulkan:0, sim:h100, sim:FILE.toml, 'exec:COMMAND ARGUMENTS', …
    #[arg(
        long,
        value_name = "SELECTOR",
        env = "MXPROBE_DEVICE",
        hide_env_values = true,
        required_unless_present = "resume"
    )]
    pub(crate) device: Option<String>,
    /// The model: a shipped one such as h100 or mi300x@VARIANT, or a file
    #[arg(long, value_name = "MODEL", required_unless_present = "resume")]
    pub(crate) model: Option<String>,
    /// Only operations whose id or alias matches, with `*` and `?` (repeatable); by default every one that the model
    /// has
    #[arg(long, value_name = "GLOB")]
    pub(crate) op: Vec<String>,
    /// Which NaN results count as equal: those with the same bits, or any
    #[arg(long, value_name = "bits|any", default_value = "bits")]
    pub(crate) nan: NanBits,
    /// Minimum number of dots of each operation
    #[arg(long, value_name = "N", default_value = "1000000", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: u64,
    /// Also write the JSON to a file; it grows during the run
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Compare one share of the dots of each operation, I of 0 to N-1, for `merge`
    #[arg(long, value_name = "I/N", conflicts_with = "resume")]
    pub(crate) shard: Option<Shard>,
    /// Continue an interrupted verification, from the file that `--out` wrote: ask what failed or is missing
    #[arg(long, value_name = "FILE", conflicts_with_all = ["model", "op", "nan", "count", "out", "seed"])]
    pub(crate) resume: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) inputs: Inputs,
}

/// The seed of inputs, access to the device, and the output format.
#[derive(Debug, Args)]
pub(crate) struct Inputs {
    /// Seed of the inputs: the same number gives the same inputs
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) seed: u64,
    /// Output format: for people or for programs
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) reach: Reach,
}

/// Access to hardware.
#[derive(Clone, Debug, Args)]
pub(crate) struct Reach {
    /// Give up after this many silent seconds (hardware only)
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "120")]
    pub(crate) timeout: Duration,
    /// Reach the device from this process, without a time limit: for use under a debugger
    #[arg(long)]
    pub(crate) no_isolation: bool,
    /// The sizes of operations that leave them open (devices of programs only) [default: 8x8x16]
    #[arg(long, value_name = "MxNxK", value_parser = shape)]
    pub(crate) shape: Option<Shape>,
}

#[derive(Debug, Args)]
pub(crate) struct Eval {
    /// The device: cpu:0, sim:h100, sim:FILE.toml, …
    #[arg(long, value_name = "SELECTOR", env = "MXPROBE_DEVICE", hide_env_values = true)]
    pub(crate) device: String,
    /// The operation: an id, an alias or a pattern that matches only one
    #[arg(long, value_name = "OP")]
    pub(crate) op: String,
    /// Read n dots from NumPy files instead of lines: A, n×k, values or bits as unsigned integers of the format's size
    #[arg(long, value_name = "FILE.npy", requires_all = ["b", "out"])]
    pub(crate) a: Option<PathBuf>,
    /// B, n×k
    #[arg(long, value_name = "FILE.npy", requires = "a")]
    pub(crate) b: Option<PathBuf>,
    /// C, n elements [default: +0]
    #[arg(long, value_name = "FILE.npy", requires = "a")]
    pub(crate) c: Option<PathBuf>,
    /// Where to write the n results, as a NumPy file
    #[arg(long, value_name = "FILE.npy", requires = "a")]
    pub(crate) out: Option<PathBuf>,
    /// Write results as bits, in unsigned integers, instead of values
    #[arg(long, requires = "out")]
    pub(crate) bits: bool,
    #[command(flatten)]
    pub(crate) reach: Reach,
}

#[derive(Debug, Args)]
pub(crate) struct Conformance {
    /// The device: 'exec:COMMAND ARGUMENTS', cpu:0, vulkan:0, …
    #[arg(long, value_name = "SELECTOR", env = "MXPROBE_DEVICE", hide_env_values = true)]
    pub(crate) device: String,
    /// Only operations whose id or alias matches, with `*` and `?` (repeatable)
    #[arg(long, value_name = "GLOB")]
    pub(crate) op: Vec<String>,
    /// Output format: for people or for programs
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: PageFormat,
    #[command(flatten)]
    pub(crate) reach: Reach,
}

/// Parses the name of a property, or `all`.
fn properties() -> PossibleValuesParser {
    PossibleValuesParser::new(Property::ALL.map(Property::name).into_iter().chain([ALL_PROPERTIES]))
}

/// Parses the name of an algorithm.
fn algorithms() -> PossibleValuesParser {
    PossibleValuesParser::new(Algorithm::ALL.map(Algorithm::name))
}

/// The name of all properties.
pub(crate) const ALL_PROPERTIES: &str = "all";

#[derive(Debug, Args)]
pub(crate) struct Distinguish {
    /// Two models or more, or one with `--property` or `--algorithm`: h100, mi300x@VARIANT, or files such as
    /// ./mine.toml; or two recipes: recipe:NAME[@CASE][,slices=4]
    #[arg(value_name = "MODEL", required = true)]
    pub(crate) models: Vec<String>,
    /// Ask how one model computes: a dot that shows the property, next to the results of each other answer, or a proof
    /// that no dot can (repeatable; without a name, all)
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "all", value_parser = properties())]
    pub(crate) property: Vec<String>,
    /// Compare two algorithms over one model's unit (give this twice): single, markidis, ootomo, multiword, fabsum-v1,
    /// fabsum-v2, multiword-fabsum-v1 or multiword-fabsum-v2
    #[arg(long, value_name = "NAME", value_parser = algorithms(), hide_possible_values = true, conflicts_with = "property")]
    pub(crate) algorithm: Vec<String>,
    /// Of two algorithms, find a dot on which this one has the larger error
    #[arg(long, value_name = "NAME", requires = "algorithm")]
    pub(crate) worse: Option<String>,
    /// The format of A and B for algorithms [default: f32]
    #[arg(long, value_name = "FORMAT", requires = "algorithm", value_parser = number_format)]
    pub(crate) inputs: Option<mxprobe_api::Format>,
    /// Number of products for algorithms [default: as many as the unit takes]
    #[arg(long, value_name = "N", requires = "algorithm", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub(crate) terms: Option<u16>,
    /// Number of products in a block of FABsum [default: half of the products]
    #[arg(long, value_name = "N", requires = "algorithm", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) block: Option<u16>,
    /// Show the results of both algorithms for this dot, instead of searching for one
    #[arg(long, value_name = "JSON", requires = "algorithm")]
    pub(crate) dot: Option<String>,
    /// The operation: an id, an alias or a pattern that matches only one
    #[arg(long, value_name = "OP")]
    pub(crate) op: String,
    /// Number of products in a dot of recipes [default: 512]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(0..=1 << 20))]
    pub(crate) products: Option<u32>,
    /// Seed of the search
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Output format: for people or for programs
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: PageFormat,
    /// Consider finite inputs only: no NaNs and no infinities
    #[arg(long)]
    pub(crate) finite: bool,
    /// Consider only values of A, B or C with these exponents, both ends inclusive, and zeros (repeatable): a=-14..15
    #[arg(long, value_name = "a|b|c=LOW..HIGH", value_parser = exponent_range)]
    pub(crate) exponents: Vec<(char, Exponents)>,
    /// Stop the search after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "60")]
    pub(crate) budget: Duration,
    /// Also write the question as SMT-LIB 2 (QF_BV): `unsat` means equal
    #[arg(long, value_name = "FILE")]
    pub(crate) smt2: Option<PathBuf>,
    /// Also write the question as clauses (DIMACS)
    #[arg(long, value_name = "FILE")]
    pub(crate) dimacs: Option<PathBuf>,
    /// If they are equal, write and check a proof (DRAT) that refutes those clauses
    #[arg(long, value_name = "FILE")]
    pub(crate) proof: Option<PathBuf>,
}
