//! Plans of sums on grids that lanes of 32 bits and halves of f64 hold: the units of AMD, and sums that a scale multiplies.

mod pack;
mod plan;

use mxprobe_api::Format;

use super::{operand::Operand, tree::Flush, unpack::Reader};
use crate::adder::{Below, NanCause};

/// The most nodes of one operation, and the most products of one node.
pub(crate) const MOST_NODES: usize = 16;
pub(crate) const MOST_PRODUCTS: usize = 32;

/// A plan of sums on grids.
#[derive(Clone, Debug)]
pub(super) struct GridsPlan {
    nodes: Vec<GridNode>,
    a: Operand,
    b: Operand,
    c: Format,
    d: Format,
    scale: Option<(Reader, usize)>,
    context: Context,
}

/// What every node needs to know.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    /// Products in one operation, blocks that share a scale, and sums that one multiplies.
    pub len: usize,
    pub blocks: usize,
    pub masks: usize,
    /// The smallest normal exponent of c.
    pub least: i32,
    pub flush_c: Flush,
}

/// One node.
#[derive(Clone, Debug)]
pub(crate) struct GridNode {
    pub width: GridWidth,
    /// The k of each, and how many they are.
    pub products: Vec<usize>,
    pub product_count: i32,
    pub others: Vec<GridTerm>,
    pub rules: Vec<GridRule>,
    /// Whether a rule looks at the leading ones of products.
    pub leads: bool,
    /// Whether the exponents of values are those of their leading ones, where that matters: all of them f32 or bf16.
    pub exponents_lead: bool,
    /// The least unit, where the node has a value whose power of two is split in halves.
    pub least_unit: Option<i32>,
    pub below: Below,
    pub value_cut_bits: i32,
    /// `2^value_cut_bits`.
    pub value_cut_unit: f64,
    pub ignored: Option<(i32, Option<i32>)>,
    pub normalised: Option<Normalised>,
    pub product_overflow: bool,
    pub output: GridOutput,
    pub flush: Flush,
    pub positive_zero: bool,
    /// The smallest normal exponent of its format, if it is a term of another node that is not the next operation's.
    pub read_again: Option<i32>,
    /// The scales' block, and the number of the node among those that have one.
    pub scale_block: usize,
    pub mask: usize,
    /// What comes of NaN, in order: bits as an f32, or `None` for the NaN itself made quiet.
    pub nan: Vec<(NanCause, Option<i32>)>,
    /// Whether all operands are the node's own, IEEE's like its result, so that their NaN can be kept.
    pub quiet_operands: bool,
    /// Whether there is one value, whose NaN it would be.
    pub quiet_values: bool,
}

/// How a node is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GridWidth {
    /// One value, these of whose bits are kept.
    Cut(i32),
    /// Products whose sum is exact in f32, and a scale.
    Exact,
    /// Products and one value at most, on no grid.
    Cascade,
    /// In i32.
    Words,
    /// In f64, without products.
    Doubles,
}

/// A term that is no product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GridTerm {
    C,
    /// A rounded result of an earlier node.
    Value(usize),
    /// An unrounded sum in words.
    Sum(usize),
    /// A scaled sum of products.
    Group(usize),
}

/// A grid rule for the products, if it sees them, and the other terms whose numbers are listed.
#[derive(Clone, Debug)]
pub(crate) struct GridRule {
    pub products: bool,
    pub others: Vec<usize>,
    pub leading: bool,
    pub fraction_bits: i32,
    pub floor: i32,
}

/// How a normalised sum is cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Normalised {
    pub least_unit: i32,
    /// `2^−bits`, the last place kept of 1.
    pub last_place: f64,
    pub floors: bool,
}

/// What comes out of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GridOutput {
    Wide,
    /// To nearest even.
    F16,
    /// To nearest even or toward zero.
    F32 {
        toward_zero: bool,
    },
}
