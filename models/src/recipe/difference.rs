//! Differences between two recipes: in their descriptions and in bits.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use mxprobe_api::{Elements, Error, Format, GemmOperands, Random};

use super::{
    divide::Parts,
    program::{Program, Stage},
    structure::anonymous,
    types::{InputShape, Recipe},
};
use crate::adder::Adder;

/// A dot on which two programs differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    /// k elements of A.
    pub a: Elements,
    /// k elements of B.
    pub b: Elements,
    /// c.
    pub c: u64,
    /// The result of each program, in its format.
    pub d: [(Format, u64); 2],
}

/// The result of comparing two programs on products of k.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// They give the same bits for every A, B, C and inputs: unit, structure and epilogue are the same.
    Equal,
    /// They differ on a dot.
    Differ(Box<Witness>),
    /// They are not the same, but the dots compared so far show no difference.
    Open {
        /// The number of dots compared.
        dots: u64,
    },
}

/// A program and its recipe.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// The recipe.
    pub recipe: &'a Recipe,
    /// The program.
    pub program: &'a Program,
}

/// A unit's fused additions without names, its flushing, formats and qualifiers.
type Arithmetic<'a> = (Vec<(Adder, &'a [crate::Term])>, crate::Flush, [Format; 4], &'a [String]);

/// The stored value: the expression without names, its adders, its inputs, and the format of c.
type Stored<'a> = (String, Vec<Adder>, Vec<(&'a String, &'a super::Input)>, Format);

impl Side<'_> {
    /// The fused additions of the unit's operation, without names.
    fn unit(&self) -> Arithmetic<'_> {
        let evaluator = self.program.evaluator();
        let id = self.program.id();
        let nodes = evaluator.plan().nodes.iter();
        let nodes = nodes.map(|node| (anonymous(&evaluator.adders()[node.adder]), &node.terms[..])).collect();
        (nodes, evaluator.flush(), [id.a, id.b, id.c, id.d], &id.qualifiers)
    }

    /// The epilogue with its inputs and without the names of adders.
    fn epilogue(&self) -> Option<Stored<'_>> {
        let case = self.program.case();
        let expression = case.epilogue.as_ref()?;
        let mut adders = Vec::new();
        expression.visit(&mut |addition| adders.push(anonymous(&self.recipe.adders[addition.adder])));
        // Adders are written with one name for all; they are listed separately, in order.
        let unnamed: Vec<Adder> = self.recipe.adders.iter().map(anonymous).collect();
        Some((expression.text(&unnamed), adders, case.inputs.iter().collect(), self.program.c_format()))
    }
}

/// The differences between the descriptions of two recipes, one per line; empty if units, levels and epilogues are the
/// same.
#[must_use]
pub fn differences(one: Side<'_>, other: Side<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    if one.unit() == other.unit() {
        lines.push("same unit".to_owned());
    } else {
        let name = |side: Side<'_>| format!("{} of {}", side.program.id(), side.recipe.model);
        lines.push(format!("the unit: {} against {}", name(one), name(other)));
    }
    let (mine, theirs) = (one.program.stages(), other.program.stages());
    // Levels are compared from the unit outwards: a library splits k around its earlier levels.
    for at in 0..mine.len().max(theirs.len()) {
        let of = |stages: &[Stage]| stages.len().checked_sub(at + 1).map(|place| stages[place].clone());
        lines.extend(level_difference(of(mine).as_ref(), of(theirs).as_ref()));
    }
    if one.program.case().start != other.program.case().start {
        let name = |side: Side<'_>| format!("from {}", side.program.case().start.name());
        lines.push(format!("the first accumulator: {} against {}", name(one), name(other)));
    }
    if one.epilogue() != other.epilogue() {
        let text = |side: Side<'_>| {
            let text = side.program.case().epilogue.as_ref().map(|epilogue| epilogue.text(&side.recipe.adders));
            text.map_or_else(|| format!("the sum as {}", side.program.format()), |text| format!("`{text}`"))
        };
        let (mine, theirs) = (text(one), text(other));
        lines.push(if mine == theirs {
            format!("what is stored: {mine}, by other adders")
        } else {
            format!("what is stored: {mine} against {theirs}")
        });
    }
    if lines.len() == 1 && lines[0] == "same unit" { Vec::new() } else { lines }
}

fn split(parts: Parts) -> Option<usize> {
    match parts {
        Parts::Every(_) => None,
        Parts::Contiguous { slices, .. } | Parts::Interleaved { slices, .. } => Some(slices),
    }
}

fn level_difference(one: Option<&Stage>, other: Option<&Stage>) -> Option<String> {
    match (one, other) {
        (None, None) => None,
        (Some(only), None) | (None, Some(only)) => {
            let is_one = one.is_some();
            Some(match split(only.parts) {
                Some(1) => format!("one slice where the other has no split: {}", only.words()),
                Some(slices) if is_one => format!("split-K {slices} against 1: {}", only.words()),
                Some(slices) => format!("split-K 1 against {slices}: {}", only.words()),
                None if is_one => format!("a level against none: {}", only.words()),
                None => format!("no level against one: {}", only.words()),
            })
        }
        (Some(one), Some(other)) => {
            let plain = |stage: &Stage| {
                let partial = stage.partial.as_ref().map(|sum| anonymous(sum.adder()));
                (stage.parts, stage.rest, partial, stage.merge, stage.start, anonymous(stage.add.adder()))
            };
            if plain(one) == plain(other) {
                return None;
            }
            let (mine, theirs) = (one.words(), other.words());
            Some(match (split(one.parts), split(other.parts)) {
                (Some(a), Some(b)) if a != b => format!("split-K {a} against {b}: {mine}; {theirs}"),
                _ if mine == theirs => format!("{mine}: by other adders"),
                _ => format!("{mine} against {theirs}"),
            })
        }
    }
}

/// Decides whether two programs give the same bits for products of k. If the structures do not settle it, random dots
/// are compared until they differ or the time budget is spent. Inputs of the epilogues are their defaults, else 1.
///
/// # Errors
/// If a case does not apply to 1×1×k or to the other's formats of A and B, or has block scales.
pub fn decide(one: Side<'_>, other: Side<'_>, k: usize, seed: u64, budget: Duration) -> Result<Verdict, Error> {
    let [mine, theirs] = [one, other].map(|side| side.program.id());
    if (mine.a, mine.b) != (theirs.a, theirs.b) {
        return Err(Error::invalid(format!("{mine} and {theirs} multiply different formats")));
    }
    if mine.block_scale().is_some() || theirs.block_scale().is_some() {
        return Err(Error::unsupported("cannot compare dots with block scales"));
    }
    if one.unit() == other.unit()
        && one.program.structure(k) == other.program.structure(k)
        && one.epilogue() == other.epilogue()
        && one.program.format() == other.program.format()
    {
        return Ok(Verdict::Equal);
    }
    let started = Instant::now();
    let mut random = Random(seed);
    let mut dots = 0;
    for round in 0.. {
        let [a, b] = [mine.a, mine.b]
            .map(|format| Elements::from_bits(format, (0..LINES * k).map(|_| drawn(&mut random, format, round))));
        let c = random.moderate(Format::F32);
        let found = [one, other].map(|side| product(side, &a, &b, c, (LINES, LINES, k)));
        let [mine_d, theirs_d] = found;
        let (mine_d, theirs_d) = (mine_d?, theirs_d?);
        dots += (LINES * LINES) as u64;
        let differs = |at: &usize| !same(&mine_d, &theirs_d, *at);
        if let Some(at) = (0..LINES * LINES).find(differs) {
            let (row, column) = (at / LINES, at % LINES);
            let a: Vec<u64> = (0..k).map(|at| a.get(row * k + at)).collect();
            let b: Vec<u64> = (0..k).map(|at| b.get(at * LINES + column)).collect();
            return Ok(Verdict::Differ(Box::new(simplest(one, other, (a, b, c))?)));
        }
        if started.elapsed() >= budget {
            break;
        }
    }
    Ok(Verdict::Open { dots })
}

/// Rows and columns of the random products.
const LINES: usize = 16;

fn same(one: &Elements, other: &Elements, at: usize) -> bool {
    // In different formats, values are compared.
    if one.format() == other.format() {
        return one.get(at) == other.get(at);
    }
    one.format().to_f64(one.get(at)).to_bits() == other.format().to_f64(other.get(at)).to_bits()
}

/// Draws an element of A or B: numbers of one size in some rounds, of several in others. Half of them use all of their
/// fraction bits, because products of short ones are exact, fused with their sum or not.
fn drawn(random: &mut Random, format: Format, round: u64) -> u64 {
    if round % 2 == 1 && random.below(8) == 0 {
        return random.any(format) & (format.mask() >> 1) | (random.bits() & 1) << (format.bits() - 1);
    }
    if random.flip() { random.dense(format) } else { random.moderate(format) }
}

/// The product of one side, with c the same everywhere.
fn product(
    side: Side<'_>,
    a: &Elements,
    b: &Elements,
    c: u64,
    (m, n, k): (usize, usize, usize),
) -> Result<Elements, Error> {
    let format = side.program.c_format();
    let c = format.from_f64(Format::F32.to_f64(c));
    let c = Elements::from_bits(format, std::iter::repeat_n(c, m * n));
    let mut inputs = BTreeMap::new();
    for (name, input) in &side.program.case().inputs {
        if input.default.is_none() {
            let count = match input.shape {
                InputShape::Scalar => 1,
                shape => shape.count((m, n)),
            };
            let ones = std::iter::repeat_n(input.format.from_f64(1.0), count);
            inputs.insert(name.clone(), Elements::from_bits(input.format, ones));
        }
    }
    let operands = GemmOperands { m, n, k, a, b, c: &c, scale_a: None, scale_b: None };
    side.program.multiply(&operands, &inputs, 1)
}

/// Simplifies the dot: sets as many products as possible to zero, several at a time first.
fn simplest(
    one: Side<'_>,
    other: Side<'_>,
    (mut a, mut b, mut c): (Vec<u64>, Vec<u64>, u64),
) -> Result<Witness, Error> {
    let k = a.len();
    let [of_a, of_b] = [one.program.id().a, one.program.id().b];
    let both = |a: &[u64], b: &[u64], c: u64| -> Result<[Elements; 2], Error> {
        let (a, b) = (Elements::from_bits(of_a, a.iter().copied()), Elements::from_bits(of_b, b.iter().copied()));
        Ok([product(one, &a, &b, c, (1, 1, k))?, product(other, &a, &b, c, (1, 1, k))?])
    };
    let differs = |a: &[u64], b: &[u64], c: u64| -> Result<bool, Error> {
        let [mine, theirs] = both(a, b, c)?;
        Ok(!same(&mine, &theirs, 0))
    };
    if differs(&a, &b, 0)? {
        c = 0;
    }
    let mut length = k.next_power_of_two();
    while length > 0 {
        for from in (0..k).step_by(length) {
            let to = (from + length).min(k);
            let (mut fewer_a, mut fewer_b) = (a.clone(), b.clone());
            fewer_a[from..to].fill(0);
            fewer_b[from..to].fill(0);
            if (&fewer_a, &fewer_b) != (&a, &b) && differs(&fewer_a, &fewer_b, c)? {
                (a, b) = (fewer_a, fewer_b);
            }
        }
        length /= 2;
    }
    // Then replaces numbers by ones if the difference remains.
    for at in 0..k {
        for side in 0..2 {
            let (mut plainer_a, mut plainer_b) = (a.clone(), b.clone());
            let (list, format) = if side == 0 { (&mut plainer_a, of_a) } else { (&mut plainer_b, of_b) };
            if list[at] == 0 || list[at] == format.one() {
                continue;
            }
            list[at] = format.one();
            if differs(&plainer_a, &plainer_b, c)? {
                (a, b) = (plainer_a, plainer_b);
            }
        }
    }
    let [mine, theirs] = both(&a, &b, c)?;
    let d = [(mine.format(), mine.get(0)), (theirs.format(), theirs.get(0))];
    Ok(Witness { a: Elements::from_bits(of_a, a), b: Elements::from_bits(of_b, b), c, d })
}
