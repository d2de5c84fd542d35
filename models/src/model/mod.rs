//! What a model is: adders, the trees that join them, and where each value comes from.

mod read;
mod read_adder;

use std::collections::BTreeMap;

use mxprobe_api::{Error, Format, OperationId, OperationSet, Overflow, Rounding, Subnormals};
use serde::Serialize;

use crate::tree::{Plan, Tree};
pub(crate) use read::check_plan;
pub(crate) use read_adder::BELOW;

/// The version of the file format this crate reads; `schema` in a file.
pub const SCHEMA: &str = "mxprobe-model/1";

/// An executable description of a device: its operations and the arithmetic behind them.
#[derive(Clone, Debug)]
pub struct Model {
    /// The name that selects it: `h100`.
    pub name: String,
    /// Which of the file's variants this is, if any.
    pub variant: Option<String>,
    /// The device for people.
    pub title: String,
    /// The maker.
    pub vendor: String,
    /// What programs key on: `sm_90a`.
    pub fingerprint: String,
    /// Part numbers and other names.
    pub aliases: Vec<String>,
    /// Where values come from: key and text.
    pub sources: BTreeMap<String, String>,
    /// The variants that the file offers, by name.
    pub variants: BTreeMap<String, Variant>,
    /// The adders that the units use.
    pub adders: Vec<Adder>,
    /// The units.
    pub units: Vec<Unit>,
    /// Every operation of every unit.
    pub operations: OperationSet,
}

/// Another reading of the same unit, where sources disagree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// What it changes, in words.
    pub about: String,
    /// A key of the model's sources.
    pub source: String,
}

/// The arithmetic of some operations: one tree.
#[derive(Clone, Debug)]
pub struct Unit {
    /// What variants call it.
    pub name: Option<String>,
    /// The operations that compute so.
    pub operations: Vec<OperationId>,
    /// The tree as it stands in the file.
    pub tree: String,
    pub(crate) parsed: Tree,
    /// Subnormal A, B or C read as zero.
    pub flush: Flush,
    /// What the file says beside the values.
    pub note: Option<String>,
    /// Where the values come from.
    pub provenance: Provenance,
}

/// Which operands' subnormals are read as zero (DAZ), and as which zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flush {
    /// Those of A.
    pub a: bool,
    /// Those of B.
    pub b: bool,
    /// Those of C.
    pub c: bool,
    /// To +0 whatever the sign.
    pub to_positive: bool,
}

/// How a value came to be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// A vendor's document says so.
    Specified,
    /// Somebody measured it on silicon.
    Measured,
    /// Neither; the best guess.
    Assumed,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// How it is known.
    pub basis: Basis,
    /// A key of the model's sources.
    pub source: String,
}

/// Where the values of an adder or a unit come from: one origin, and exceptions by field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provenance {
    /// Of every field that is not among the exceptions.
    pub origin: Origin,
    /// Fields with another origin.
    pub exceptions: BTreeMap<String, Origin>,
}

impl Provenance {
    /// Where the value of a field comes from.
    #[must_use]
    pub fn of(&self, field: &str) -> &Origin {
        self.exceptions.get(field).unwrap_or(&self.origin)
    }
}

/// One kind of fused addition: any number of terms, aligned on one grid, added exactly, rounded once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adder {
    /// Its name in trees.
    pub name: String,
    /// The rules that give the lowest bit kept: the highest of what they say. None: nothing is lost.
    pub grid: Vec<GridRule>,
    /// What becomes of a term's bits below the grid.
    pub below: Below,
    /// So many more bits are lost of a value (c or an earlier rounded result) than of a product or a sum.
    pub value_cut_bits: u32,
    /// When a value counts as 0 before bits are dropped.
    pub ignored_values: Option<IgnoredValues>,
    /// The sum wraps beyond this many bits above the bit of the largest exponent; `None`: enough.
    pub carry_bits: Option<u32>,
    /// The sum is cut to so many fraction bits once it is normalised, before it is rounded.
    pub normalised_fraction_bits: Option<u32>,
    /// The exponent never counts as less than this there.
    pub normalised_exponent_floor: Option<i32>,
    /// What becomes of the bits lost there.
    pub normalised_below: Below,
    /// What block scales multiply.
    pub scale: Scale,
    /// A product of magnitude 2^128 or more is an infinity.
    pub product_overflow: bool,
    /// What comes out.
    pub output: Output,
    /// The sign of a zero result.
    pub zero: ZeroSign,
    /// NaN results.
    pub nan: NanRules,
    /// Where the values come from.
    pub provenance: Provenance,
}

/// One rule for the grid: the largest exponent of some terms, less the fraction bits kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GridRule {
    /// The terms it looks at.
    pub terms: Class,
    /// How the exponent of a term is taken.
    pub exponent: Exponent,
    /// How many bits below that exponent are kept.
    pub fraction_bits: i32,
    /// The exponent never counts as less than this; what sources call the exponent of a zero term.
    pub exponent_floor: Option<i32>,
}

/// A class of terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Every term.
    All,
    /// Products of a and b.
    Products,
    /// c, and results that were rounded into a format.
    Values,
    /// Results that were not rounded (`output = "wide"`).
    Sums,
}

/// How the exponent of a term is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exponent {
    /// A product's is the sum of its operands' exponents, so its significand lies in [0, 4); a subnormal has the
    /// smallest normal exponent; an unrounded sum has the exponent of its own grid rule.
    Operands,
    /// That of the leading one.
    Leading,
}

/// What becomes of bits below a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Below {
    /// Dropped from the magnitude.
    Truncate,
    /// Rounded down, toward −∞.
    Floor,
    /// Dropped from the magnitude; a term whose sign differs from that of the adder's value (c) is then added as its
    /// one's complement, one unit less than its negation, even where it is a zero, unless every term is one.
    OnesComplement,
    /// Rounded to nearest, ties to even.
    Nearest,
    /// Dropped from the magnitude, whose lowest kept bit is set if any lost bit was.
    Sticky,
}

/// When a value is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IgnoredValues {
    /// Its leading bit lies more than this many places below the lowest bit kept of it.
    pub below_bits: i32,
    /// Not where the grid is at this exponent or lower.
    pub unless_grid_at_most: Option<i32>,
}

/// What block scales multiply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Each product, whose exponent they join.
    Products,
    /// The exact sum of the products; its exponent is that of the scales alone.
    Sum,
}

/// What an adder gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// The sum itself, unrounded, for another adder.
    Wide,
    /// A floating format.
    Float {
        /// Which.
        format: Format,
        /// Fraction bits kept of it; the rest of the format's are 0.
        fraction_bits: u32,
        /// How it is rounded.
        rounding: Rounding,
        /// What becomes of results beyond its range.
        overflow: Overflow,
        /// What becomes of results below its normal range.
        subnormals: Subnormals,
    },
    /// An integer format.
    Integer {
        /// Which.
        format: Format,
        /// Results beyond its range become its nearest end; else they wrap.
        saturates: bool,
    },
}

/// The sign of a zero result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZeroSign {
    /// As IEEE 754-2019, 6.3: the common sign of the terms where all are zeros of one sign; else +0, or −0 when
    /// rounding down. A result that underflows keeps its sign.
    Ieee,
    /// Always +0.
    Positive,
}

/// Which NaN comes out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NanRules {
    /// Which cause decides where several are there.
    pub order: Vec<NanCause>,
    /// For a NaN in A or B: `None` gives the operand quieted, its payload kept at the top.
    pub operand: Option<u64>,
    /// For a NaN in c or in an earlier result: `None` gives it quieted.
    pub value: Option<u64>,
    /// For Inf·0 and Inf − Inf.
    pub invalid: u64,
}

/// Why a result is NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NanCause {
    /// A NaN in A or B, A first, in the order of the terms.
    Operand,
    /// A NaN in c or an earlier result, in the order of the terms.
    Value,
    /// Inf·0, Inf − Inf.
    Invalid,
}

impl Model {
    /// The unit of an operation.
    #[must_use]
    pub fn unit(&self, id: &OperationId) -> Option<&Unit> {
        self.units.iter().find(|unit| unit.operations.contains(id))
    }

    /// Gives a unit another tree, as it would stand in the file.
    ///
    /// # Errors
    /// If the tree does not parse, names an adder the model lacks, or does not fit one of the unit's operations; the
    /// unit is then as it was.
    ///
    /// # Panics
    /// If `unit` is not below the number of units.
    pub fn set_tree(&mut self, unit: usize, tree: &str) -> Result<(), Error> {
        let names: Vec<&str> = self.adders.iter().map(|adder| adder.name.as_str()).collect();
        let wrong = |error: String| Error::invalid(format!("{}: `{tree}`: {error}", self.name));
        let parsed = Tree::parse(tree, &names).map_err(wrong)?;
        for id in &self.units[unit].operations {
            let plan = parsed.plan(id.shape.sizes().2).map_err(wrong)?;
            check_plan(id, &plan, &self.adders).map_err(|error| wrong(format!("{id}: {error}")))?;
        }
        let unit = &mut self.units[unit];
        (unit.tree, unit.parsed) = (tree.to_owned(), parsed);
        Ok(())
    }

    /// The unit of an operation, and its plan for the operation's k.
    #[must_use]
    pub fn plan(&self, id: &OperationId) -> Option<(&Unit, Plan)> {
        let unit = self.unit(id)?;
        Some((unit, unit.plan(id.shape.sizes().2)?))
    }
}

impl Unit {
    /// The fused additions of one dot of `k` products, or `None` if the tree adds nothing then.
    #[must_use]
    pub fn plan(&self, k: usize) -> Option<Plan> {
        self.parsed.plan(k).ok()
    }
}

impl Adder {
    /// Whether its result is rounded to that format or to none.
    #[must_use]
    pub fn output_format(&self) -> Option<Format> {
        match self.output {
            Output::Wide => None,
            Output::Float { format, .. } | Output::Integer { format, .. } => Some(format),
        }
    }
}
