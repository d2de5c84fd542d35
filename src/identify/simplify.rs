//! The simplest model that still explains everything asked.

use mxprobe_api::{Overflow, Subnormals};
use mxprobe_models::{Adder, Below, Exponent, Flush, Output, ZeroSign};

use super::{experiments::Experiments, hypothesis::Hypothesis, scored::explained};

/// Takes away, one after the other, every value that no experiment asks for.
pub(super) fn simplify(experiments: &mut Experiments<'_, '_>, hypothesis: &Hypothesis) -> Hypothesis {
    let all: Vec<usize> = (0..experiments.dots.len()).collect();
    let mut now = hypothesis.clone();
    let mut again = true;
    while again {
        again = false;
        for simpler in steps(&now) {
            if simpler.complexity() < now.complexity() && explained(experiments, &simpler, &all, 0).is_some() {
                now = simpler;
                again = true;
                break;
            }
        }
    }
    now
}

fn steps(now: &Hypothesis) -> Vec<Hypothesis> {
    let mut found = Vec::new();
    let Flush { a, b, c, to_positive } = now.flush;
    for flush in [
        Flush { a: false, ..now.flush },
        Flush { b: false, ..now.flush },
        Flush { c: false, ..now.flush },
        Flush { to_positive: false, a, b, c },
    ] {
        found.push(Hypothesis { flush, ..now.clone() });
    }
    let _ = to_positive;
    for (at, adder) in now.adders.iter().enumerate() {
        let mut with = |changed: Adder| {
            let mut next = now.clone();
            next.adders[at] = changed;
            found.push(next);
        };
        with(Adder { grid: Vec::new(), below: Below::Truncate, carry_bits: None, ..adder.clone() });
        for rule in 0..adder.grid.len() {
            let mut grid = adder.grid.clone();
            grid.remove(rule);
            with(Adder { grid, ..adder.clone() });
            let mut grid = adder.grid.clone();
            grid[rule].exponent_floor = None;
            with(Adder { grid: grid.clone(), ..adder.clone() });
            grid[rule].exponent = Exponent::Operands;
            with(Adder { grid, ..adder.clone() });
        }
        with(Adder { below: Below::Truncate, ..adder.clone() });
        with(Adder { value_cut_bits: 0, ..adder.clone() });
        with(Adder { ignored_values: None, ..adder.clone() });
        with(Adder { carry_bits: None, ..adder.clone() });
        with(Adder {
            normalised_fraction_bits: None,
            normalised_exponent_floor: None,
            normalised_below: Below::Truncate,
            ..adder.clone()
        });
        with(Adder { normalised_exponent_floor: None, ..adder.clone() });
        with(Adder { normalised_below: Below::Truncate, ..adder.clone() });
        with(Adder { product_overflow: false, ..adder.clone() });
        with(Adder { zero: ZeroSign::Ieee, ..adder.clone() });
        if let Output::Float { format, fraction_bits, rounding, overflow, subnormals } = adder.output {
            let output = |overflow, subnormals| Output::Float { format, fraction_bits, rounding, overflow, subnormals };
            let all = Output::Float { format, fraction_bits: format.fraction_bits(), rounding, overflow, subnormals };
            with(Adder { output: all, ..adder.clone() });
            with(Adder { output: output(Overflow::Ieee, subnormals), ..adder.clone() });
            with(Adder { output: output(overflow, Subnormals::Keep), ..adder.clone() });
        }
    }
    found
}
