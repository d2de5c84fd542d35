//! Arguments of `gemm`.

use std::path::PathBuf;

use crate::Shard;
use clap::{Args, ValueEnum};

use super::{
    Format, Reach,
    values::{exponents, interval, named, sizes},
};

/// Arguments of `gemm`: D = A·B + C, or an experiment.
#[derive(Debug, Args)]
pub(crate) struct Gemm {
    /// The device: cpu:0, cuda:0, sim:h100, sim:FILE.toml, …
    #[arg(
        long,
        value_name = "SELECTOR",
        env = "MXPROBE_DEVICE",
        hide_env_values = true,
        required_unless_present = "recipe"
    )]
    pub(crate) device: Option<String>,
    /// Multiply as a library does with a unit, by a recipe: `NAME[@CASE][,slices=4]`, a shipped one or a file
    /// (docs/recipes.md)
    #[arg(long, value_name = "RECIPE", conflicts_with = "experiment")]
    pub(crate) recipe: Option<String>,
    /// A value that the recipe's epilogue reads: a number, bits such as 0x3f800000, or a NumPy file
    #[arg(long, value_name = "NAME=VALUE", requires = "recipe", value_parser = named)]
    pub(crate) input: Vec<(String, String)>,
    /// The operation: an id or an alias; an experiment chooses one if omitted
    #[arg(long, value_name = "OP")]
    pub(crate) op: Option<String>,
    /// A, m×k, as a NumPy file: values, or bits as unsigned integers of the format's size
    #[arg(long, value_name = "FILE.npy")]
    pub(crate) a: Option<PathBuf>,
    /// B, k×n
    #[arg(long, value_name = "FILE.npy")]
    pub(crate) b: Option<PathBuf>,
    /// C, m×n [default: +0]
    #[arg(long, value_name = "FILE.npy")]
    pub(crate) c: Option<PathBuf>,
    /// Draw A and B of these sizes at random instead: uniformly distributed f32 values
    #[arg(long, value_name = "M,N,K", value_parser = sizes, conflicts_with_all = ["a", "b"])]
    pub(crate) random: Option<[usize; 3]>,
    /// Draw each element as a sum of P words of the operation's format, so that only the unit errs
    #[arg(long, value_name = "P", conflicts_with_all = ["a", "b"])]
    pub(crate) random_words: Option<usize>,
    /// Interval to draw elements from: excludes LOW, includes HIGH
    #[arg(long, value_name = "LOW,HIGH", value_parser = interval, default_value = "0,1", allow_hyphen_values = true)]
    pub(crate) interval: (f64, f64),
    /// Seed of NumPy's legacy stream (`numpy.random.RandomState`), from which elements are drawn
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u32,
    /// Where to write D, as a NumPy file; or an experiment's JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Write D as bits, in unsigned integers, instead of values
    #[arg(long)]
    pub(crate) bits: bool,
    /// Number of words of the operation's format into which each element of A and B is split
    #[arg(long, value_name = "P", default_value_t = 1)]
    pub(crate) words: usize,
    /// Multiply every word of A by every word of B, instead of only those with i + j <= P + 1
    #[arg(long)]
    pub(crate) all_products: bool,
    /// Rounding of an element to a word
    #[arg(long, value_enum, default_value_t = WordRounding::Rne)]
    pub(crate) split_rounding: WordRounding,
    /// Scale each row of A and column of B by a power of two before splitting, and undo it at the end
    #[arg(long)]
    pub(crate) scale: bool,
    /// Store the second word scaled by 2^BITS, the third by 2^(2*BITS), and so on
    #[arg(long, value_name = "BITS", default_value_t = 0)]
    pub(crate) lift: u8,
    /// The algorithm that uses the words
    #[arg(long, value_enum, default_value_t = GemmMethod::Multiword)]
    pub(crate) method: GemmMethod,
    /// Where the largest product is accumulated: in the unit, or in blocks of k that are added outside it
    #[arg(long, value_enum, default_value_t = Accumulate::Unit)]
    pub(crate) accumulate: Accumulate,
    /// Number of products in a block
    #[arg(long, value_name = "B", default_value_t = 256)]
    pub(crate) block: usize,
    /// Number of blocks, instead of products in a block: each has K / COUNT products, rounded up
    #[arg(long, value_name = "COUNT", conflicts_with = "block")]
    pub(crate) blocks: Option<usize>,
    /// Run an experiment instead: how errors grow with n, how fast words are, or which blocks make them accurate enough
    #[arg(long, value_enum, conflicts_with_all = ["a", "b", "c", "random"])]
    pub(crate) experiment: Option<Experiment>,
    /// Lengths in an experiment, as exponents of 2; `smallest-block` uses the last [default: 9,20; 14 for
    /// `smallest-block`]
    #[arg(long, value_name = "FIRST,LAST", value_parser = exponents)]
    pub(crate) exponents: Option<(u32, u32)>,
    /// Rows and columns of the matrices of `yardstick`; one or more for `throughput`, separated by commas
    #[arg(long, value_name = "N", default_value = "2048", value_delimiter = ',')]
    pub(crate) size: Vec<usize>,
    /// Number of timings of each method in `yardstick` and `throughput`
    #[arg(long, value_name = "COUNT", default_value_t = 7)]
    pub(crate) rounds: usize,
    /// Compute one share of the points of `growth`, I of 0 to N-1, for `merge`
    #[arg(long, value_name = "I/N", requires = "experiment")]
    pub(crate) shard: Option<Shard>,
    /// Also plot an experiment
    #[arg(long, value_name = "FILE.svg", conflicts_with = "shard")]
    pub(crate) svg: Option<PathBuf>,
    /// Output format; rows are those of an experiment
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) reach: Reach,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WordRounding {
    /// To nearest, ties to even
    Rne,
    /// Toward zero
    Rz,
    /// Down
    Rd,
    /// Up
    Ru,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GemmMethod {
    /// Fasi, Higham, Lopez, Mary and Mikaitis 2023
    Multiword,
    /// Markidis et al. 2018: two words, four products
    Markidis,
    /// Ootomo and Yokota 2022: two words, sums outside the unit
    Ootomo,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Accumulate {
    /// In the unit
    Unit,
    /// Blocks in f32 (FABsum-v1)
    FabsumF32,
    /// Blocks in f64 (FABsum-v2)
    FabsumF64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Experiment {
    /// Errors of words and accumulations against n, and their causes in the unit
    Growth,
    /// Words on the unit compared with a library's product of f32 matrices: time and error
    Yardstick,
    /// Words and blocks over sizes (`--size`): effective rates of products, of kernels without copies, and of
    /// everything
    Throughput,
    /// The blocks that bring words to the accuracy of f32, on one device or, with `--device sim`, on all models
    SmallestBlock,
}
