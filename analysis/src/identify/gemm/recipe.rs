//! Conversion of candidates to recipes.

use std::collections::BTreeMap;

use mxprobe_api::Format;
use mxprobe_models::{
    Adder, Basis, Origin, Provenance,
    recipe::{Case, Count, Division, Expression, Factor, Input, InputShape, Level, Rest, Shapes, Share, Start},
};

use super::candidate::{Candidate, Stored};

/// The key of the source in recipe files.
pub(super) const SOURCE: &str = "measured";

/// Converts a candidate to a case for some shapes, with c in the format `c`. Its adders are added to `adders` unless
/// they are there already.
pub(super) fn case(candidate: &Candidate, (name, shapes): (&str, Shapes), c: Format, adders: &mut Vec<Adder>) -> Case {
    let mut place = |adder: &Adder| {
        let origin = Origin { basis: Basis::Measured, source: SOURCE.to_owned() };
        let mut adder = adder.clone();
        adder.provenance = Provenance { origin, exceptions: BTreeMap::new() };
        adders.iter().position(|known| *known == adder).unwrap_or_else(|| {
            adders.push(adder);
            adders.len() - 1
        })
    };
    let levels = candidate
        .merges
        .iter()
        .map(|merge| Level {
            division: merge.split.division.clone(),
            rest: merge.split.rest,
            partial: merge.partial.as_ref().map(&mut place),
            merge: merge.split.merge,
            start: merge.start,
            add: place(&merge.add),
        })
        .collect();
    let epilogue = candidate.stored.as_ref().map(|stored| expression(stored, &stored.expression, &mut place));
    let inputs = candidate.stored.iter().flat_map(|stored| &stored.constants).map(|(name, format, bits)| {
        (name.clone(), Input { format: *format, shape: InputShape::Scalar, default: Some(*bits) })
    });
    Case {
        name: name.to_owned(),
        operations: vec![candidate.unit.id.clone()],
        shapes,
        parameters: BTreeMap::new(),
        start: if candidate.from_c { Start::C } else { Start::Zero },
        levels,
        c_format: (c != candidate.unit.id.c && epilogue.as_ref().is_some_and(Expression::reads_c)).then_some(c),
        inputs: inputs.collect(),
        epilogue,
        note: None,
        provenance: Provenance {
            origin: Origin { basis: Basis::Measured, source: SOURCE.to_owned() },
            exceptions: BTreeMap::new(),
        },
    }
}

/// Converts the expression of an epilogue; `place` returns the new index of each adder.
fn expression(stored: &Stored, of: &Expression, place: &mut impl FnMut(&Adder) -> usize) -> Expression {
    let mut factor = |factor: &Factor| match factor {
        Factor::Sum(sum) => Factor::Sum(Box::new(expression_of(stored, sum, place))),
        other => other.clone(),
    };
    let terms: Vec<_> = of.terms.iter().map(|(one, other)| (factor(one), other.as_ref().map(&mut factor))).collect();
    Expression { adder: place(&stored.adders[of.adder]), terms }
}

/// Calls [`expression`] through a trait object, so that the recursion has a finite type.
fn expression_of(stored: &Stored, of: &Expression, place: &mut dyn FnMut(&Adder) -> usize) -> Expression {
    expression(stored, of, &mut |adder| place(adder))
}

/// Describes a candidate in words: the levels, outermost first, then the unit, then what is stored.
pub(super) fn words(candidate: &Candidate) -> Vec<String> {
    let mut found = Vec::new();
    for merge in &candidate.merges {
        let mut text = division(&merge.split.division);
        text += match merge.split.rest {
            Rest::Divided => "",
            Rest::Chained => ", what fills no round chained to the sum",
            Rest::Added => ", what fills no round summed alone and added",
        };
        if let Some(partial) = &merge.partial {
            text += &format!("; each rounded to {}", partial.name);
        }
        let start = match merge.start {
            Start::First => "",
            Start::Zero => " from +0",
            Start::C => " from c",
        };
        text += &format!("; merged in {}{start}, {}", merge.add.name, merge.split.merge.name());
        found.push(text);
    }
    let from = if candidate.from_c { " from c" } else { "" };
    found.push(format!("{} {} chained{from}", candidate.unit.model, candidate.unit.id));
    if let Some(stored) = &candidate.stored {
        found.push(format!("stored as {}", stored.expression.text(&stored.adders)));
    }
    found
}

fn number(count: &Count) -> String {
    match count {
        Count::Fixed(number) => number.to_string(),
        Count::Parameter(name) => name.clone(),
    }
}

fn division(division: &Division) -> String {
    match division {
        Division::Every(every) => format!("slices of {} consecutive k", number(every)),
        Division::Contiguous { slices, tile, share } => {
            let share = if *share == Share::Balanced { ", balanced" } else { "" };
            format!("{} consecutive slices of whole tiles of {tile} k{share}", number(slices))
        }
        Division::Interleaved { slices, tile: 1 } => format!("{} interleaved lanes", number(slices)),
        Division::Interleaved { slices, tile } => format!("{} slices of interleaved tiles of {tile} k", number(slices)),
    }
}
