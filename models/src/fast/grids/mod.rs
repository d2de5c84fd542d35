//! Plans of sums on grids that 32-bit lanes and half vectors of f64 can hold: AMD's units, and sums multiplied by a
//! scale.

mod exact;
mod folds;
mod pack;
mod plan;

use mxprobe_api::Format;

use super::{operand::Operand, tree::Flush, unpack::Reader};
use crate::adder::{Below, NanCause};

/// The most nodes in one operation, and the most products in one node.
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
    /// The same nodes as folds, if they are.
    folds: Option<Folds>,
    /// The same nodes as exact folds, if they are.
    exact: Option<ExactFolds>,
}

/// The data that every node needs.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    /// The numbers of products in one operation, of blocks that share a scale, and of sums that a scale multiplies.
    pub len: usize,
    pub blocks: usize,
    pub masks: usize,
    /// Whether factors are packed as values and their products are f32; otherwise, as significands.
    pub plain_products: bool,
    /// The smallest normal exponent of c.
    pub least: i32,
    pub flush_c: Flush,
}

/// One node.
#[derive(Clone, Debug)]
pub(crate) struct GridNode {
    pub width: GridWidth,
    /// The k of each product, and their number.
    pub products: Vec<usize>,
    pub product_count: i32,
    pub others: Vec<GridTerm>,
    pub rules: Vec<GridRule>,
    /// Whether a rule uses the leading ones of products.
    pub leads: bool,
    /// Whether the exponents of values are those of their leading ones in every relevant case: all of them are f32 or
    /// bf16.
    pub exponents_lead: bool,
    /// The lowest unit, if the node has a value whose power of two is split in halves.
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
    /// The smallest normal exponent of its format, if another node of the same operation reads its result.
    pub read_again: Option<i32>,
    /// The block of the scales, and the index of the node among the nodes with scales.
    pub scale_block: usize,
    pub mask: usize,
    /// The NaN result of each cause, in order of precedence: bits as an f32, or `None` for the NaN itself, quieted.
    pub nan: Vec<(NanCause, Option<i32>)>,
    /// Whether all operands are the node's own and, like its result, in IEEE formats, so that their NaN can be kept.
    pub quiet_operands: bool,
    /// Whether there is exactly one value. A NaN that no unrounded sum passes on is then that value's.
    pub quiet_values: bool,
}

/// How a node is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GridWidth {
    /// One value, of which this many bits are kept.
    Cut(i32),
    /// Products whose sum is exact in f32, times a scale.
    Exact,
    /// Products and values, without a grid.
    Cascade,
    /// In i32.
    Words,
    /// In f64, without products.
    Doubles,
}

/// A term other than a product.
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

/// A grid rule: whether it covers the products, and the indices of the other terms that it covers.
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

/// The format of a node's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GridOutput {
    Wide,
    /// Rounded to nearest even.
    F16,
    /// Rounded to nearest even or toward zero.
    F32 {
        toward_zero: bool,
    },
}

/// A plan whose nodes are folds: in each, sums of products of its own if there are any, perhaps a sum of these, a node
/// that adds sums, or the products themselves, to the value, and perhaps a cut of the result.
#[derive(Clone, Debug)]
pub(crate) struct Folds {
    pub kind: FoldKind,
    /// The number of sums in a fold, and of products in each of them; or of products, if there are no sums.
    pub sums: usize,
    pub products: usize,
    /// The k of the products of all folds, in order.
    pub terms: Vec<usize>,
    pub rules: FoldRules,
}

/// A plan whose nodes are exact sums: in each, as many products and the value, rounded once to nearest even as an f32.
#[derive(Clone, Debug)]
pub(crate) struct ExactFolds {
    /// The number of products in a fold, two at least.
    pub products: usize,
    /// The k of the products of all folds, in order.
    pub terms: Vec<usize>,
    /// Whether a result of 0 is +0.
    pub positive_zero: bool,
    /// The bits of a factor below its leading one.
    pub fraction_bits: [i32; 2],
}

/// How products and the value are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FoldKind {
    /// All of them as complements, in i32.
    Direct,
    /// Sums and the value, rounded down, in i32.
    Words,
    /// One sum and the value, rounded down and normalised, in f64.
    Doubles,
}

/// How all folds of a plan add. The unit of a fold is the largest of `2^(e − product_bits)` for the exponents e of its
/// products, `2^(e − value_bits)` for that of the value, and `2^least_unit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FoldRules {
    pub product_bits: i32,
    /// The bits below the largest exponent in sums of products.
    pub sum_bits: i32,
    pub value_bits: i32,
    pub least_unit: i32,
    /// Values count as 0 whose exponents are below that of the unit by more than `ignored_below`, if the unit is above
    /// `2^ignored_above`.
    pub ignored_below: i32,
    pub ignored_above: i32,
    /// In f64, the bits of sums that lie below the unit, and the bits that a normalised sum does not keep, as a mask of an
    /// f64.
    pub low_bits: i32,
    pub normalised: i64,
    /// The largest sum of exponents of two factors.
    pub largest: i32,
    /// What a NaN value becomes; quiet, if it is `None`.
    pub nan: Option<i32>,
    pub output: FoldOutput,
    /// The bits of an f32 that remain.
    pub mask: i32,
}

/// The format of a fold's result, to nearest even; in i32, zeros are positive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FoldOutput {
    /// f32, whose subnormals become +0.
    Flushed,
    F32,
    F16,
}
