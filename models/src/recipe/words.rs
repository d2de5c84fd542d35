//! A case in words.

use std::collections::BTreeMap;

use mxprobe_api::Error;

use super::{
    divide::{Addend, Parts},
    program::{Program, Stage},
    types::{MergeOrder, Recipe, Rest, Share, Start},
};
use crate::model::Model;

/// The largest number of partial sums for which the additions of a merge are written out.
const WRITTEN_OUT: usize = 8;

impl Recipe {
    /// The recipe in words: each case with the default values of its parameters. `model` is the recipe's own.
    ///
    /// # Errors
    /// If the model lacks an operation of the recipe.
    pub fn explain(&self, model: &Model) -> Result<Vec<String>, Error> {
        let mut lines = vec![format!("recipe {}, {}", self.name, self.title), format!("unit of {}", self.model)];
        for case in &self.cases {
            let program = Program::new(self, model, case, &case.operations[0], &BTreeMap::new())?;
            let numbers = case.parameters.iter().map(|(name, number)| format!(",{name}={number}"));
            lines.push(String::new());
            lines.push(format!("@{}{}", case.name, numbers.collect::<String>()));
            lines.extend(program.words(self).into_iter().map(|line| format!("  {line}")));
            if case.operations.len() > 1 {
                lines.push(format!("  and so with {} operations more", case.operations.len() - 1));
            }
        }
        Ok(lines)
    }
}

impl Program {
    /// Its computation in words: a line for each level, outermost first, then the unit and the stored value.
    #[must_use]
    pub fn words(&self, recipe: &Recipe) -> Vec<String> {
        let mut lines: Vec<String> = self.stages().iter().map(Stage::words).collect();
        let start = if self.case().start == Start::C { "c" } else { "+0" };
        let first = if self.case().start == Start::C && !lines.is_empty() { ", the first of all" } else { "" };
        let each = if lines.is_empty() { "" } else { "each slice: " };
        lines.push(format!("{each}{}, one after another from {start}{first}", self.id()));
        if let Some(epilogue) = &self.case().epilogue {
            lines.push(format!("stored: {}", epilogue.text(&recipe.adders)));
        }
        lines
    }
}

impl Stage {
    pub(super) fn words(&self) -> String {
        let divided = match self.parts {
            Parts::Every(every) => format!("slices of {every} k"),
            Parts::Contiguous { slices, tile: 1, share } => {
                format!("{slices} slices of consecutive k{}", shared(share))
            }
            Parts::Contiguous { slices, tile, share } => {
                format!("{slices} slices of consecutive tiles of {tile} k{}", shared(share))
            }
            Parts::Interleaved { slices, tile: 1 } => format!("{slices} slices, k to slice k mod {slices}"),
            Parts::Interleaved { slices, tile } => {
                format!("{slices} slices, tile t of {tile} k to slice t mod {slices}")
            }
        };
        let add = &self.add.adder().name;
        let start = match self.start {
            Start::First => "",
            Start::Zero => ", from +0",
            Start::C => ", from c",
        };
        let partial =
            self.partial.as_ref().map(|sum| format!(", each rounded by {}", sum.adder().name)).unwrap_or_default();
        let slices = match self.parts {
            Parts::Every(_) => None,
            Parts::Contiguous { slices, .. } | Parts::Interleaved { slices, .. } => Some(slices),
        };
        let merged = match (self.merge, slices) {
            (order, Some(slices @ 2..=WRITTEN_OUT)) if self.start == Start::First => {
                format!("merged by {add}: {}", order.written(slices))
            }
            (MergeOrder::Serial, _) => format!("merged one after another by {add}{start}"),
            (MergeOrder::Reverse, _) => format!("merged from the last to the first by {add}{start}"),
            (MergeOrder::Pairs, _) => format!("merged in pairs of neighbours, level by level, by {add}"),
            (MergeOrder::Halves, _) => format!("merged by halves, level by level, by {add}"),
            (MergeOrder::LastThenSlots, _) => {
                format!(
                    "merged by {add}: the last, then slot after slot, a slot being one partial sum or two half of them apart"
                )
            }
        };
        let rest = match self.rest {
            Rest::Divided => "",
            Rest::Chained => "; of the k left over, the unit goes on from the merged sum",
            Rest::Added => "; the k left over are summed from +0 and added",
        };
        format!("{divided}{partial}, {merged}{rest}")
    }
}

fn shared(share: Share) -> &'static str {
    match share {
        Share::RoundUp => "",
        Share::Balanced => ", shared out evenly",
    }
}

impl MergeOrder {
    /// The additions of this many partial sums as a formula: `((p0 + p1) + p2)`.
    pub(super) fn written(self, slices: usize) -> String {
        let mut words: Vec<String> = Vec::new();
        for (one, other) in self.additions(slices) {
            let word = |addend: Addend| match addend {
                Addend::Partial(at) => format!("p{at}"),
                Addend::Earlier(at) => words[at].clone(),
            };
            let step = format!("({} + {})", word(one), word(other));
            words.push(step);
        }
        words.pop().map_or_else(|| "p0".to_owned(), |formula| formula[1..formula.len() - 1].to_owned())
    }
}
