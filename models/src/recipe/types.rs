//! What a recipe is: cases, each with levels over k and an epilogue.

use std::collections::BTreeMap;

use mxprobe_api::{Format, OperationId};

use super::expression::Expression;
use crate::{adder::Adder, provenance::Provenance};

/// The version of the file format this crate reads; `schema` in a file.
pub const SCHEMA: &str = "mxprobe-recipe/1";

/// What a library makes of one model's unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipe {
    /// The name that selects it.
    pub name: String,
    /// What it describes, for people.
    pub title: String,
    /// The model whose operations compute: a name, or the path of a model file, relative to the recipe's own.
    pub model: String,
    /// Other names.
    pub aliases: Vec<String>,
    /// Where values come from: key and text.
    pub sources: BTreeMap<String, String>,
    /// The adders that merges, partial sums and epilogues use.
    pub adders: Vec<Adder>,
    /// The cases; of those that hold, the first is taken.
    pub cases: Vec<Case>,
}

/// How products of some operations and shapes are computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The name that selects it. Cases of other shapes or operations may have the same.
    pub name: String,
    /// The operations of the model that it is for.
    pub operations: Vec<OperationId>,
    /// The shapes for which it holds.
    pub shapes: Shapes,
    /// Numbers that the caller may choose, with what they are otherwise.
    pub parameters: BTreeMap<String, usize>,
    /// Where the unit's own accumulator starts: at +0, or, for the first partial sum, at c.
    pub start: Start,
    /// The levels over k, outermost first; none: one chain of operations over all of k.
    pub levels: Vec<Level>,
    /// The format of the c that the epilogue reads, if it is not the operation's.
    pub c_format: Option<Format>,
    /// What the caller gives beside A, B and c, by name. What the epilogue does not read is taken and ignored.
    pub inputs: BTreeMap<String, Input>,
    /// What is stored, as an expression of `acc`, `c` and the inputs; none: the sum itself.
    pub epilogue: Option<Expression>,
    /// What the file says beside the values.
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

/// The shapes for which a case holds: m rows and n columns of D, k products.
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
    /// The least.
    pub from: usize,
    /// The largest, if there is one.
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
    /// Whether a length is among them.
    #[must_use]
    pub fn contains(&self, length: usize) -> bool {
        length >= self.from && self.to.is_none_or(|to| length <= to) && length.is_multiple_of(self.multiple_of)
    }
}

impl Shapes {
    /// Whether the case holds for a product of m×k by k×n.
    #[must_use]
    pub fn contains(&self, (m, n, k): (usize, usize, usize)) -> bool {
        self.m.contains(m) && self.n.contains(n) && self.k.contains(k)
    }
}

/// One level: its range of k is divided into slices, each is summed by the next level (the innermost by the unit, whose
/// operations are chained through their accumulator, a ragged end filled up with products of +0), and the partial sums are merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// Which k each slice takes.
    pub division: Division,
    /// What becomes of the k that fill no whole round of tiles.
    pub rest: Rest,
    /// The adder that rounds each partial sum before it is merged; none: they are merged as they are.
    pub partial: Option<usize>,
    /// In which order partial sums are added.
    pub merge: MergeOrder,
    /// What the merge starts from.
    pub start: Start,
    /// The adder that adds two partial sums.
    pub add: usize,
}

/// Which k each slice of a level takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Division {
    /// Consecutive slices of so many k, the last one shorter.
    Every(Count),
    /// A number of consecutive slices, in whole tiles.
    Contiguous {
        /// How many slices.
        slices: Count,
        /// k in a tile.
        tile: usize,
        /// How tiles are shared out.
        share: Share,
    },
    /// A number of slices; slice s takes tiles s, s + slices, s + 2·slices and so on.
    Interleaved {
        /// How many slices.
        slices: Count,
        /// k in a tile.
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

/// How T tiles are shared out among S consecutive slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// ⌈T/S⌉ tiles each, as long as there are some: the last slices have fewer, or none.
    RoundUp,
    /// ⌊T/S⌋ tiles each, and one more for the first T mod S slices.
    Balanced,
}

/// What becomes of the k after the last whole round of a level: after the last whole slice, or the last tile that every slice
/// has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// They are divided as the others are.
    Divided,
    /// The unit goes on from the merged sum as its accumulator.
    Chained,
    /// The unit sums them from +0, and that sum is added to the merged one.
    Added,
}

impl Rest {
    /// Why the unit cannot go on from a merged sum, where it would have to: its accumulator is of another format.
    pub(super) fn misfit(self, merged: Option<Format>, accumulator: Format) -> Option<String> {
        let is_misfit = self == Self::Chained && merged != Some(accumulator);
        let merged = merged.map_or("no format", Format::name);
        is_misfit.then(|| {
            format!("the merged sum is {merged}, and the unit's accumulator {accumulator}: it cannot go on from it")
        })
    }
}

/// In which order the partial sums p0, p1, …, of S slices are added, two at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeOrder {
    /// ((p0 + p1) + p2) + …
    Serial,
    /// From the last down to p0, one after another.
    Reverse,
    /// Neighbours, level by level: (p0 + p1) + (p2 + p3); an odd one waits.
    Pairs,
    /// The first half with the second, level by level: (p0 + p2) + (p1 + p3); of an odd number the middle one waits.
    Halves,
    /// With h = ⌈S/2⌉, slot i is p_i + p_(i+h) where i + h < S − 1, else p_i; the last partial sum, then slot after slot.
    LastThenSlots,
}

/// What a sum starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Its first term.
    First,
    /// +0.
    Zero,
    /// c.
    C,
}

/// A number of an epilogue that the caller gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Input {
    /// Its format.
    pub format: Format,
    /// How many there are.
    pub shape: InputShape,
    /// Its bits if it is not given; none: it must be given.
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
    /// How many numbers there are for m rows and n columns.
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
