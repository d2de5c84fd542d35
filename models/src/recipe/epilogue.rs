//! Epilogues: the computation on the sum before it is stored.

use std::collections::BTreeMap;

use mxprobe_api::{Elements, Error, Format};

use super::{
    expression::{Expression, Factor, Function},
    gather::Piece,
    sum::Sum,
    types::{Case, Input, InputShape},
};
use crate::{adder::Adder, exact::Fused};

/// An expression with its adders prepared. Additions of scalars alone are computed once for a whole matrix.
#[derive(Clone, Debug)]
pub(super) struct Epilogue {
    /// The additions, inner ones first.
    steps: Vec<Step>,
}

#[derive(Clone, Debug)]
struct Step {
    sum: Sum,
    terms: Vec<(Source, Option<Source>)>,
}

/// The origin of a factor.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    Acc,
    C,
    PositiveZero,
    Input(String),
    /// An earlier step.
    Step(usize),
    /// A function of a source.
    Call(Function, Box<Source>),
}

/// The numbers of a source, for the elements of D.
enum Column<'a> {
    One((Format, u64)),
    Each(&'a Elements, Index),
    Computed(Elements),
}

/// How an element of a piece finds its number in an array.
#[derive(Clone, Copy)]
enum Index {
    /// In an array over the piece.
    Piece,
    Row,
    Column,
    /// In a matrix over the whole D.
    Matrix,
}

/// The inputs of a case, after validation.
pub(super) struct Inputs<'a> {
    given: BTreeMap<&'a str, (&'a Input, Option<&'a Elements>)>,
}

impl<'a> Inputs<'a> {
    pub(super) fn new(
        case: &'a Case,
        inputs: &'a BTreeMap<String, Elements>,
        (m, n): (usize, usize),
    ) -> Result<Self, Error> {
        if let Some(name) = inputs.keys().find(|name| !case.inputs.contains_key(*name)) {
            let known: Vec<&str> = case.inputs.keys().map(String::as_str).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(Error::invalid(format!("case {} has no input `{name}`; it has {known}", case.name)));
        }
        let mut given = BTreeMap::new();
        for (name, input) in &case.inputs {
            let elements = inputs.get(name);
            match elements {
                None if input.default.is_none() => {
                    return Err(Error::invalid(format!("case {} needs the input `{name}`", case.name)));
                }
                Some(elements) if elements.format() != input.format => {
                    let found = elements.format();
                    return Err(Error::invalid(format!("input {name} holds {found}, not {}", input.format)));
                }
                Some(elements) if elements.len() != input.shape.count((m, n)) => {
                    return Err(Error::invalid(format!(
                        "input {name} holds {} elements, not {} ({} of {m}×{n})",
                        elements.len(),
                        input.shape.count((m, n)),
                        input.shape.name()
                    )));
                }
                _ => {}
            }
            given.insert(name.as_str(), (input, elements));
        }
        Ok(Self { given })
    }

    /// The number that an input holds for an element of D.
    pub(super) fn of(&self, name: &str, (row, column): (usize, usize), n: usize) -> (Format, u64) {
        let (input, elements) = self.given[name];
        let bits = match elements {
            None => input.default.unwrap_or(0),
            Some(elements) => elements.get(match input.shape {
                InputShape::Scalar => 0,
                InputShape::Row => row,
                InputShape::Column => column,
                InputShape::Matrix => row * n + column,
            }),
        };
        (input.format, bits)
    }

    fn column(&self, name: &str) -> Column<'a> {
        let (input, elements) = self.given[name];
        match (elements, input.shape) {
            (None, _) => Column::One((input.format, input.default.unwrap_or(0))),
            (Some(elements), InputShape::Scalar) => Column::One((input.format, elements.get(0))),
            (Some(elements), InputShape::Row) => Column::Each(elements, Index::Row),
            (Some(elements), InputShape::Column) => Column::Each(elements, Index::Column),
            (Some(elements), InputShape::Matrix) => Column::Each(elements, Index::Matrix),
        }
    }
}

impl Epilogue {
    pub(super) fn new(expression: &Expression, adders: &[Adder]) -> Self {
        let mut steps = Vec::new();
        flatten(expression, adders, &mut steps);
        Self { steps }
    }

    /// The format of the stored value.
    pub(super) fn format(&self) -> Format {
        self.steps.last().expect("an expression is an addition").sum.format()
    }

    /// Computes the stored values of a piece of D, which is `n` wide. `acc` covers the piece, `c` the whole matrix.
    pub(super) fn apply(&self, acc: &Elements, c: &Elements, inputs: &Inputs<'_>, piece: &Piece, n: usize) -> Elements {
        let mut done: Vec<Column<'_>> = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            let computed = step.apply(&done, acc, c, inputs, (piece, n));
            done.push(computed);
        }
        match done.pop() {
            Some(Column::Computed(elements)) => elements,
            // An expression reads acc, which is an array.
            _ => unreachable!("the last addition of an epilogue reads acc"),
        }
    }
}

fn flatten(expression: &Expression, adders: &[Adder], steps: &mut Vec<Step>) -> Source {
    let terms = expression
        .terms
        .iter()
        .map(|(one, other)| {
            let one = source_of(one, adders, steps);
            (one, other.as_ref().map(|other| source_of(other, adders, steps)))
        })
        .collect();
    steps.push(Step { sum: Sum::new(&adders[expression.adder]), terms });
    Source::Step(steps.len() - 1)
}

fn source_of(factor: &Factor, adders: &[Adder], steps: &mut Vec<Step>) -> Source {
    match factor {
        Factor::Acc => Source::Acc,
        Factor::C => Source::C,
        Factor::PositiveZero => Source::PositiveZero,
        Factor::Input(name) => Source::Input(name.clone()),
        Factor::Sum(sum) => flatten(sum, adders, steps),
        Factor::Call(function, of) => Source::Call(*function, Box::new(source_of(of, adders, steps))),
    }
}

impl Step {
    fn apply<'a>(
        &self,
        done: &[Column<'a>],
        acc: &Elements,
        c: &Elements,
        inputs: &Inputs<'a>,
        (piece, n): (&Piece, usize),
    ) -> Column<'a> {
        let column = |source: &Source| {
            let mut functions = Vec::new();
            let mut of = source;
            while let Source::Call(function, inner) = of {
                functions.push(*function);
                of = inner;
            }
            let numbers = match of {
                Source::Acc => Numbers::Each(acc, Index::Piece),
                Source::C => Numbers::Each(c, Index::Matrix),
                Source::Input(name) => match inputs.column(name) {
                    Column::One(bits) => Numbers::One(bits),
                    Column::Each(elements, index) => Numbers::Each(elements, index),
                    Column::Computed(_) => unreachable!("inputs are not computed"),
                },
                Source::Step(at) => match &done[*at] {
                    Column::One(bits) => Numbers::One(*bits),
                    Column::Each(elements, index) => Numbers::Each(elements, *index),
                    Column::Computed(elements) => Numbers::Each(elements, Index::Piece),
                },
                Source::PositiveZero | Source::Call(..) => Numbers::One((self.sum.format(), 0)),
            };
            Operand { numbers, functions }
        };
        let terms: Vec<(Operand<'_>, Option<Operand<'_>>)> =
            self.terms.iter().map(|(one, other)| (column(one), other.as_ref().map(column))).collect();
        let is_one = |(one, other): &(Operand<'_>, Option<Operand<'_>>)| {
            one.is_one() && other.as_ref().is_none_or(Operand::is_one)
        };
        let fused = |row: usize, column: usize| {
            let at = move |found: &Operand<'_>| found.get(piece, n, (row, column));
            terms.iter().map(move |(one, other)| Fused(at(one), other.as_ref().map(at)))
        };
        if terms.iter().all(is_one) {
            let terms: Vec<Fused> = fused(piece.rows.start, piece.columns.start).collect();
            return Column::One((self.sum.format(), self.sum.of(&terms)));
        }
        let mut room: Vec<Fused> = Vec::with_capacity(terms.len());
        let elements = piece.rows.clone().flat_map(|row| piece.columns.clone().map(move |column| (row, column)));
        let sums = elements.map(|(row, column)| {
            room.clear();
            room.extend(fused(row, column));
            self.sum.of(&room)
        });
        Column::Computed(Elements::from_bits(self.sum.format(), sums))
    }
}

/// The numbers of a source, and the functions applied to them, outermost first.
struct Operand<'a> {
    numbers: Numbers<'a>,
    functions: Vec<Function>,
}

/// One number for every element, or one for all.
enum Numbers<'a> {
    One((Format, u64)),
    Each(&'a Elements, Index),
}

impl Operand<'_> {
    fn is_one(&self) -> bool {
        matches!(self.numbers, Numbers::One(_))
    }

    fn get(&self, piece: &Piece, n: usize, (row, column): (usize, usize)) -> (Format, u64) {
        let (format, bits) = match self.numbers {
            Numbers::One(bits) => bits,
            Numbers::Each(elements, index) => {
                let at = match index {
                    Index::Piece => (row - piece.rows.start) * piece.columns.len() + column - piece.columns.start,
                    Index::Row => row,
                    Index::Column => column,
                    Index::Matrix => row * n + column,
                };
                (elements.format(), elements.get(at))
            }
        };
        (format, self.functions.iter().rev().fold(bits, |bits, function| function.of(format, bits)))
    }
}
