//! Arguments of `tolerance` and `check`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::PageFormat;
use crate::tolerance::Order;

/// Arguments of `tolerance`.
#[derive(Debug, Args)]
pub(crate) struct Tolerance {
    #[command(flatten)]
    pub(crate) unit: ToleranceUnit,
    /// Number of products of a dot [default: the columns of A; else as many as the operation takes]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    pub(crate) k: Option<u32>,
    /// A, m×k, as a NumPy file: values, or bits as unsigned integers of the format's size; gives an interval for every
    /// element of D
    #[arg(long, value_name = "FILE.npy", requires = "b")]
    pub(crate) a: Option<PathBuf>,
    /// B, k×n
    #[arg(long, value_name = "FILE.npy", requires = "a")]
    pub(crate) b: Option<PathBuf>,
    /// C, m×n [default: +0]
    #[arg(long, value_name = "FILE.npy", requires = "a")]
    pub(crate) c: Option<PathBuf>,
    /// Dots as JSON lines, as `eval` reads them, instead of A, B and C; `-` for standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["a", "b", "c", "k"])]
    pub(crate) dots: Option<PathBuf>,
    /// Write the lower ends of the intervals, m×n, in D's format; NaN if the element is NaN
    #[arg(long, value_name = "FILE.npy", requires = "a")]
    pub(crate) low: Option<PathBuf>,
    /// Write the upper ends
    #[arg(long, value_name = "FILE.npy", requires = "a")]
    pub(crate) high: Option<PathBuf>,
    /// Number of dots to try in the search for one close to the bound; 0 for none
    #[arg(long, value_name = "COUNT", default_value_t = 20_000)]
    pub(crate) search: usize,
    /// Seed of the search
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Output format: for people or for programs
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: PageFormat,
}

/// Arguments of `check`.
#[derive(Debug, Args)]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) unit: ToleranceUnit,
    /// A, m×k, as a NumPy file: values, or bits as unsigned integers of the format's size
    #[arg(long, value_name = "FILE.npy")]
    pub(crate) a: PathBuf,
    /// B, k×n
    #[arg(long, value_name = "FILE.npy")]
    pub(crate) b: PathBuf,
    /// C, m×n [default: +0]
    #[arg(long, value_name = "FILE.npy")]
    pub(crate) c: Option<PathBuf>,
    /// The matrix to check: D, m×n
    #[arg(long, value_name = "FILE.npy")]
    pub(crate) d: PathBuf,
    /// Output format: for people or for programs
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: PageFormat,
}

/// The unit, and the order of its sums.
#[derive(Debug, Args)]
pub(crate) struct ToleranceUnit {
    /// The model: a shipped one such as h100 or mi300x@VARIANT, or a file
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: String,
    /// The operation: an id, an alias or a pattern that matches only one
    #[arg(long, value_name = "OP")]
    pub(crate) op: String,
    /// The order in which products may be added
    #[arg(long, value_enum, default_value = "any")]
    pub(crate) order: OrderArgument,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OrderArgument {
    /// One operation after another, k ascending, as `gemm` computes
    Given,
    /// One operation after another, the products in any order
    Chain,
    /// Any tree of operations and of additions in D's format or a wider one
    Any,
}

impl From<OrderArgument> for Order {
    fn from(order: OrderArgument) -> Self {
        match order {
            OrderArgument::Given => Self::Given,
            OrderArgument::Chain => Self::Chain,
            OrderArgument::Any => Self::Any,
        }
    }
}
