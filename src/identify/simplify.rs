//! The simplest model that still explains everything asked.

use mxprobe_models::{Adder, Below, Exponent, Flush, PARAMETERS};

use super::{experiments::Experiments, flattened::flattened, hypothesis::Hypothesis, scored::explained};

/// Takes away levels of unrounded sums, and then, one after the other, every value that no experiment asks for.
pub(super) fn simplify(experiments: &mut Experiments<'_, '_>, hypothesis: &Hypothesis) -> Hypothesis {
    let all: Vec<usize> = (0..experiments.dots.len()).collect();
    let mut now = hypothesis.clone();
    for flat in flattened(hypothesis) {
        if flat.skeleton.plan.nodes.len() < now.skeleton.plan.nodes.len()
            && explained(experiments, &flat, &all, 0).is_some()
        {
            now = flat.merged();
        }
    }
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
    for flush in [
        Flush { a: false, ..now.flush },
        Flush { b: false, ..now.flush },
        Flush { c: false, ..now.flush },
        Flush { to_positive: false, ..now.flush },
    ] {
        found.push(Hypothesis { flush, ..now.clone() });
    }
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
        for parameter in &PARAMETERS {
            let mut changed = adder.clone();
            (parameter.set)(&mut changed, parameter.default());
            with(changed);
        }
    }
    found
}
