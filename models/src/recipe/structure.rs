//! The structure of a recipe's sum for one k: every addition, so that equivalent recipes can be recognised.

use std::ops::Range;

use super::{
    divide::{Addend, Run},
    program::Program,
    sum::Sum,
    types::{MergeOrder, Rest, Start},
};
use crate::{
    adder::Adder,
    provenance::{Basis, Origin, Provenance},
};

/// A sum of some k, with every addition outside the unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Structure {
    /// +0.
    Zero,
    /// c.
    C,
    /// The unit's operations over runs of k, chained from another sum.
    Chain {
        /// The k, in their order.
        runs: Vec<Range<usize>>,
        /// The starting value of the accumulator.
        from: Box<Structure>,
    },
    /// A sum rounded by an adder.
    Rounded(Box<Adder>, Box<Structure>),
    /// Two sums added by an adder.
    Added(Box<Adder>, Box<Structure>, Box<Structure>),
}

impl Program {
    /// The structure of k products before the epilogue. Programs of the same operation of the same model whose
    /// structures and epilogues are equal give the same bits for every A, B, C and inputs; adders are compared without
    /// their names and sources.
    #[must_use]
    pub fn structure(&self, k: usize) -> Structure {
        let whole: Run = std::iter::once(0..k).filter(|run| !run.is_empty()).collect();
        self.structure_of(0, &whole, true)
    }

    fn structure_of(&self, level: usize, run: &Run, first: bool) -> Structure {
        let Some(stage) = self.stages().get(level) else {
            let from = if first && self.case().start == Start::C { Structure::C } else { Structure::Zero };
            return chain(run, from);
        };
        let (slices, left) = stage.parts.slices(run, stage.rest);
        let mut sums: Vec<Structure> = slices
            .iter()
            .enumerate()
            .map(|(at, slice)| {
                let sum = self.structure_of(level + 1, slice, first && at == 0);
                match &stage.partial {
                    None => sum,
                    Some(partial) => Structure::Rounded(plain(partial), Box::new(sum)),
                }
            })
            .collect();
        let start = match stage.start {
            Start::First => None,
            Start::C if first => Some(Structure::C),
            Start::Zero | Start::C => Some(Structure::Zero),
        };
        if let Some(start) = start {
            let place = if stage.merge == MergeOrder::Reverse { sums.len() } else { 0 };
            sums.insert(place, start);
        }
        let additions = stage.merge.additions(sums.len());
        let mut sums: Vec<Option<Structure>> = sums.into_iter().map(Some).collect();
        let mut earlier: Vec<Option<Structure>> = Vec::new();
        for (one, other) in additions {
            let mut take = |addend: Addend| {
                let taken = match addend {
                    Addend::Partial(at) => sums[at].take(),
                    Addend::Earlier(at) => earlier[at].take(),
                };
                Box::new(taken.expect("each sum is added once"))
            };
            let added = Structure::Added(plain(&stage.add), take(one), take(other));
            earlier.push(Some(added));
        }
        let single = || sums.first().cloned().flatten().unwrap_or(Structure::Zero);
        let merged = match earlier.pop().flatten() {
            Some(merged) => merged,
            // A single sum is rounded only if its format changes.
            None if self.format_of(level + 1, stage.partial.as_ref()) == stage.add.format() => single(),
            None => Structure::Rounded(plain(&stage.add), Box::new(single())),
        };
        match stage.rest {
            _ if left.is_empty() => merged,
            Rest::Chained => chain(&left, merged),
            Rest::Divided | Rest::Added => {
                let rest = chain(&left, Structure::Zero);
                Structure::Added(plain(&stage.add), Box::new(merged), Box::new(rest))
            }
        }
    }

    /// The format of the partial sums that a level gives, rounded or not.
    fn format_of(&self, level: usize, partial: Option<&Sum>) -> mxprobe_api::Format {
        let own = self.stages().get(level).map_or(self.id().d, |stage| stage.add.format());
        partial.map_or(own, Sum::format)
    }
}

/// A chain without k is one operation on zeros.
fn chain(run: &Run, from: Structure) -> Structure {
    Structure::Chain { runs: run.clone(), from: Box::new(from) }
}

/// The arithmetic of an adder, without its name and sources.
fn plain(sum: &Sum) -> Box<Adder> {
    Box::new(anonymous(sum.adder()))
}

/// An adder without its name and sources.
pub(super) fn anonymous(adder: &Adder) -> Adder {
    let origin = Origin { basis: Basis::Assumed, source: String::new() };
    let provenance = Provenance { origin, exceptions: std::collections::BTreeMap::new() };
    Adder { name: String::new(), provenance, ..adder.clone() }
}
