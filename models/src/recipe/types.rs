//! The types of a recipe: cases, each with levels over k and an epilogue.

use std::collections::BTreeMap;

use mxprobe_api::{Format, OperationId};

use super::expression::Expression;
use crate::{adder::Adder, provenance::Provenance};

/// The version of the file format this crate reads; `schema` in a file.
pub const SCHEMA: &str = "mxprobe-recipe/1";

/// How a library computes matrix products with the unit of one model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipe {
    /// The name that selects it.
    pub name: String,
    /// A title for people.
    pub title: String,
    /// The model whose operations compute: a name, or the path of a model file, relative to the recipe's own.
    pub model: String,
    /// Other names.
    pub aliases: Vec<String>,
    /// Where values come from: key and text.
    pub sources: BTreeMap<String, String>,
    /// The adders that merges, partial sums and epilogues use.
    pub adders: Vec<Adder>,
    /// The cases; the first one that applies is used.
    pub cases: Vec<Case>,
}

/// How products of some operations and shapes are computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The name that selects it. Cases for other shapes or operations may share it.
    pub name: String,
    /// The model's operations that it covers.
    pub operations: Vec<OperationId>,
    /// The shapes to which it applies.
    pub shapes: Shapes,
    /// Numbers that the caller may choose, with their defaults.
    pub parameters: BTreeMap<String, usize>,
    /// Where the unit's own accumulator starts: at +0, or, for the first partial sum, at c.
    pub start: Start,
    /// The levels over k, outermost first. If empty, one chain of operations covers all of k.
    pub levels: Vec<Level>,
    /// The format of the c that the epilogue reads, if it is not the operation's.
    pub c_format: Option<Format>,
    /// Arguments that the caller gives in addition to A, B and c, by name. Those that the epilogue does not read are
    /// accepted and ignored.
    pub inputs: BTreeMap<String, Input>,
    /// The stored value, as an expression of `acc`, `c` and the inputs. `None` stores the sum itself.
    pub epilogue: Option<Expression>,
    /// A remark from the file, for people.
    pub note: Option<String>,
    /// Where the values come from.
    pub provenance: Provenance,
}

impl Case {
    /// Whether the product depends on c.
    #[must_use]
    pub fn reads_c(&self) -> bool {
        let by_levels = self.levels.iter().any(|level| level.start == Start::C);
        self.start == Start::C || by_levels || self.epilogue.as_ref().is_some_and(Expression::reads_c)
    }
}

/// The shapes to which a case applies: m rows and n columns of D, k products.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shapes {
    /// Rows of D.
    pub m: Lengths,
    /// Columns of D.
    pub n: Lengths,
    /// Products in one element.
    pub k: Lengths,
}

/// A range of lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lengths {
    /// The smallest length.
    pub from: usize,
    /// The largest length, if bounded.
    pub to: Option<usize>,
    /// Every length is a multiple of this.
    pub multiple_of: usize,
}

impl Default for Lengths {
    /// Every length.
    fn default() -> Self {
        Self { from: 0, to: None, multiple_of: 1 }
    }
}

impl Lengths {
    /// Whether a length is in the range.
    #[must_use]
    pub fn contains(&self, length: usize) -> bool {
        length >= self.from && self.to.is_none_or(|to| length <= to) && length.is_multiple_of(self.multiple_of)
    }
}

impl Shapes {
    /// Whether the case applies to a product of m×k by k×n.
    #[must_use]
    pub fn contains(&self, (m, n, k): (usize, usize, usize)) -> bool {
        self.m.contains(m) && self.n.contains(n) && self.k.contains(k)
    }
}

/// One level: its range of k is divided into slices, each slice is summed by the next level, and the partial sums are
/// merged. The innermost level's slices are summed by the unit, whose operations are chained through their accumulator;
/// a ragged end is padded with products of +0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// Which k each slice takes.
    pub division: Division,
    /// How the k that do not fill a whole round of tiles are summed.
    pub rest: Rest,
    /// The adder that rounds each partial sum before it is merged. `None` merges the sums unrounded.
    pub partial: Option<usize>,
    /// The order in which partial sums are added.
    pub merge: MergeOrder,
    /// The value from which the merge starts.
    pub start: Start,
    /// The adder that adds two partial sums.
    pub add: usize,
}

/// Which k each slice of a level takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Division {
    /// Consecutive slices of this many k; the last one may be shorter.
    Every(Count),
    /// This many consecutive slices, in whole tiles.
    Contiguous {
        /// The number of slices.
        slices: Count,
        /// The number of k in a tile.
        tile: usize,
        /// How tiles are distributed over the slices.
        share: Share,
    },
    /// This many slices; slice s takes tiles s, s + slices, s + 2·slices and so on.
    Interleaved {
        /// The number of slices.
        slices: Count,
        /// The number of k in a tile.
        tile: usize,
    },
}

/// A number, or the name of a parameter of the case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Count {
    /// The number.
    Fixed(usize),
    /// The parameter's name.
    Parameter(String),
}

/// How T tiles are distributed over S consecutive slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// ⌈T/S⌉ tiles each until they run out: the last slices may have fewer, or none.
    RoundUp,
    /// ⌊T/S⌋ tiles each, and one more for the first T mod S slices.
    Balanced,
}

/// How the k after the last whole round of a level are summed: those after the last whole slice, or after the last tile
/// that every slice has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// They are divided like the others.
    Divided,
    /// The unit continues from the merged sum as its accumulator.
    Chained,
    /// The unit sums them from +0, and that sum is added to the merged one.
    Added,
}

impl Rest {
    /// Says why the unit cannot continue from the merged sum if the rest is chained: its accumulator has another
    /// format.
    pub(super) fn misfit(self, merged: Option<Format>, accumulator: Format) -> Option<String> {
        let is_misfit = self == Self::Chained && merged != Some(accumulator);
        let merged = merged.map_or("no format", Format::name);
        is_misfit.then(|| {
            format!(
                "the merged sum is {merged}, but the unit's accumulator is {accumulator}: it cannot continue from it"
            )
        })
    }
}

/// The order in which the partial sums p0, p1, … of S slices are added, two at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeOrder {
    /// ((p0 + p1) + p2) + …
    Serial,
    /// From the last down to p0, one after another.
    Reverse,
    /// Neighbours, level by level: (p0 + p1) + (p2 + p3); an odd one is carried to the next level.
    Pairs,
    /// The first half with the second, level by level: (p0 + p2) + (p1 + p3); if the number is odd, the middle one is
    /// carried to the next level.
    Halves,
    /// With h = ⌈S/2⌉, slot i is p_i + p_(i+h) if i + h < S − 1, else p_i; starts from the last partial sum and adds
    /// slot after slot.
    LastThenSlots,
}

/// The starting value of a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Its first term.
    First,
    /// +0.
    Zero,
    /// c.
    C,
}

/// A number or array of numbers that the caller gives to an epilogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Input {
    /// Its format.
    pub format: Format,
    /// How many numbers it holds.
    pub shape: InputShape,
    /// Its bits if the caller omits it. `None` makes it required.
    pub default: Option<u64>,
}

/// How many numbers an input holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputShape {
    /// One for the whole of D.
    Scalar,
    /// One for each row of D: m.
    Row,
    /// One for each column of D: n.
    Column,
    /// One for each element of D: m×n, row-major.
    Matrix,
}

impl InputShape {
    /// The number of elements for m rows and n columns of D.
    #[must_use]
    pub fn count(self, (m, n): (usize, usize)) -> usize {
        match self {
            Self::Scalar => 1,
            Self::Row => m,
            Self::Column => n,
            Self::Matrix => m * n,
        }
    }
}
