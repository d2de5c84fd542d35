//! Epilogues: what a product may do with its sum and c before it stores them.

use mxprobe_api::Format;
use mxprobe_models::{
    Adder,
    recipe::{Expression, Factor},
};

use super::candidate::{Stored, nearest, rounded};
use mxprobe_api::Rounding;

/// What one product, and c alone, are multiplied by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Weights {
    pub(super) alpha: f64,
    pub(super) beta: f64,
}

/// A term: a factor, or a factor by a constant.
type Term = (Factor, Option<Factor>);

struct Builder {
    adders: Vec<Adder>,
    constants: Vec<(String, Format, u64)>,
}

impl Builder {
    fn adder(&mut self, adder: &Adder) -> usize {
        self.adders.iter().position(|known| known == adder).unwrap_or_else(|| {
            self.adders.push(adder.clone());
            self.adders.len() - 1
        })
    }

    fn sum(&mut self, adder: &Adder, terms: Vec<Term>) -> Expression {
        Expression { adder: self.adder(adder), terms }
    }

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

fn inner(expression: Expression) -> Term {
    (Factor::Sum(Box::new(expression)), None)
}

/// What a sum in `acc` may be stored as in `d`, the simplest first; `None` stores it as it is. c is of format `c`.
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
    // The formats in which it may be computed before it is rounded to d.
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
            // Both are multiplied, and rounded before they meet, or the one or the other.
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
        // Rounded to d, and then added in the format of the sum.
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
