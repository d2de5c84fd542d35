//! Epilogues: how a product may combine its sum with c before it stores the result.

use mxprobe_api::Format;
use mxprobe_models::{
    Adder,
    recipe::{Expression, Factor},
};

use super::candidate::{Stored, nearest, rounded};
use mxprobe_api::Rounding;

/// The factors by which the sum and c are multiplied.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Weights {
    pub(super) alpha: f64,
    pub(super) beta: f64,
}

/// A term: a factor, or a factor times a constant.
type Term = (Factor, Option<Factor>);

/// The adders and constants of an epilogue under construction.
struct Builder {
    adders: Vec<Adder>,
    constants: Vec<(String, Format, u64)>,
}

impl Builder {
    /// Returns the index of an adder, which is added if it is new.
    fn adder(&mut self, adder: &Adder) -> usize {
        self.adders.iter().position(|known| known == adder).unwrap_or_else(|| {
            self.adders.push(adder.clone());
            self.adders.len() - 1
        })
    }

    fn sum(&mut self, adder: &Adder, terms: Vec<Term>) -> Expression {
        Expression { adder: self.adder(adder), terms }
    }

    /// Makes a term of a factor times a weight. A weight other than 1 is a constant with this name and format.
    fn weighted(&mut self, factor: Factor, name: &str, format: Format, weight: f64) -> Term {
        if weight.to_bits() == 1.0_f64.to_bits() {
            return (factor, None);
        }
        if !self.constants.iter().any(|(known, ..)| known == name) {
            self.constants.push((name.to_owned(), format, format.from_f64(weight)));
        }
        (factor, Some(Factor::Input(name.to_owned())))
    }
}

/// Makes a term of a sum.
fn inner(expression: Expression) -> Term {
    (Factor::Sum(Box::new(expression)), None)
}

/// Returns the epilogues by which a sum in `acc` may be stored in `d`, the simplest first; `None` stores it unchanged.
/// c has the format `c`.
pub(super) fn epilogues(acc: Format, d: Format, c: Format, weights: Weights) -> Vec<Option<Stored>> {
    let mut found: Vec<Option<Stored>> = Vec::new();
    let is_plain = weights.alpha.to_bits() == 1.0_f64.to_bits();
    if acc == d && is_plain {
        found.push(None);
    }
    let mut make = |build: &dyn Fn(&mut Builder) -> Expression| {
        let mut builder = Builder { adders: Vec::new(), constants: Vec::new() };
        let expression = build(&mut builder);
        found.push(Some(Stored { adders: builder.adders, expression, constants: builder.constants }));
    };
    let to_d = nearest(d);
    let scaled = |builder: &mut Builder| builder.weighted(Factor::Acc, "alpha", acc, weights.alpha);
    let of_c = |builder: &mut Builder| builder.weighted(Factor::C, "beta", c, weights.beta);
    // Formats in which the result may be computed before it is rounded to d.
    let mut wide = vec![acc];
    for format in [Format::F32, Format::F64] {
        if format != acc && !d.is_integer() && format.fraction_bits() > d.fraction_bits() {
            wide.push(format);
        }
    }
    make(&|builder| {
        let term = scaled(builder);
        builder.sum(&to_d, vec![term])
    });
    if weights.beta.to_bits() != 0 {
        make(&|builder| {
            let terms = vec![scaled(builder), of_c(builder)];
            builder.sum(&to_d, terms)
        });
        for format in &wide {
            let through = nearest(*format);
            if *format != d {
                make(&|builder| {
                    let terms = vec![scaled(builder), of_c(builder)];
                    let sum = builder.sum(&through, terms);
                    builder.sum(&to_d, vec![inner(sum)])
                });
                make(&|builder| {
                    let term = scaled(builder);
                    let first = builder.sum(&through, vec![term]);
                    let terms = vec![inner(first), of_c(builder)];
                    builder.sum(&to_d, terms)
                });
            }
            // Both terms are weighted; c, the sum, or both are rounded before they are added.
            make(&|builder| {
                let term = of_c(builder);
                let first = builder.sum(&through, vec![term]);
                let terms = vec![scaled(builder), inner(first)];
                let sum = builder.sum(&through, terms);
                if *format == d { sum } else { builder.sum(&to_d, vec![inner(sum)]) }
            });
            make(&|builder| {
                let term = scaled(builder);
                let first = builder.sum(&through, vec![term]);
                let terms = vec![inner(first), of_c(builder)];
                let sum = builder.sum(&through, terms);
                if *format == d { sum } else { builder.sum(&to_d, vec![inner(sum)]) }
            });
            make(&|builder| {
                let (one, other) = (scaled(builder), of_c(builder));
                let first = builder.sum(&through, vec![one]);
                let second = builder.sum(&through, vec![other]);
                let sum = builder.sum(&through, vec![inner(first), inner(second)]);
                if *format == d { sum } else { builder.sum(&to_d, vec![inner(sum)]) }
            });
        }
        make(&|builder| {
            let term = scaled(builder);
            let first = builder.sum(&to_d, vec![term]);
            let terms = vec![inner(first), of_c(builder)];
            builder.sum(&to_d, terms)
        });
        // The sum is rounded to d, and c is then added in the format of the sum.
        if acc != d {
            make(&|builder| {
                let term = scaled(builder);
                let first = builder.sum(&to_d, vec![term]);
                let terms = vec![inner(first), of_c(builder)];
                let sum = builder.sum(&nearest(acc), terms);
                builder.sum(&to_d, vec![inner(sum)])
            });
        }
    }
    if !d.is_integer() {
        for rounding in [Rounding::TowardZero, Rounding::Down, Rounding::Up, Rounding::ToOdd] {
            let adder = rounded(d, rounding);
            make(&|builder| {
                let term = scaled(builder);
                builder.sum(&adder, vec![term])
            });
            if weights.beta.to_bits() != 0 {
                make(&|builder| {
                    let terms = vec![scaled(builder), of_c(builder)];
                    builder.sum(&adder, terms)
                });
            }
        }
    }
    found
}
