//! Simplification of a model that explains every dot.

use std::sync::Arc;

use mxprobe_api::OperationId;
use mxprobe_models::{Adder, Below, Class, Exponent, Flush, GridRule, Output, PARAMETERS, ZeroSign};

use crate::identify::{
    candidates::{
        flattened::{flattened, without_nothing},
        hypothesis::Hypothesis,
        scored::explained,
        united::united,
    },
    dots::{experiments::Experiments, operands::conversions},
};

/// Removes levels of unrounded sums and adders in place of which another would do, and then, one after another, every
/// value that no experiment needs. The result still explains every dot.
pub(in crate::identify) fn simplify(experiments: &mut Experiments<'_, '_>, hypothesis: &Hypothesis) -> Hypothesis {
    let all: Vec<usize> = (0..experiments.dots.len()).collect();
    let mut now = hypothesis.clone();
    let direct = taken_directly(experiments.subject.id(), hypothesis);
    if let Some(direct) = direct.into_iter().find(|direct| explained(experiments, direct, &all, 0).is_some()) {
        now = direct.merged();
    }
    let hypothesis = &now.clone();
    for flat in flattened(hypothesis) {
        if flat.skeleton.plan.nodes.len() < now.skeleton.plan.nodes.len()
            && explained(experiments, &flat, &all, 0).is_some()
        {
            now = flat.merged();
        }
    }
    now = now.merged();
    while let Some(fewer) = united(&now).into_iter().find(|fewer| explained(experiments, fewer, &all, 0).is_some()) {
        now = fewer.merged();
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
    let found = bare(&now).into_iter().find(|bare| explained(experiments, bare, &all, 0).is_some());
    found.unwrap_or(now)
}

/// Returns the hypotheses without additions of a single term that do nothing: as they are, and with the zeros of one adder
/// or of all positive, which products that are passed on one by one imitate. Empty if there are no such additions.
fn bare(now: &Hypothesis) -> Vec<Hypothesis> {
    let Some(bare) = without_nothing(now) else { return Vec::new() };
    let adders = bare.adders.len();
    let positive = |from: usize, to: usize| {
        let mut next = bare.clone();
        (from..to).for_each(|at| next.adders[at].zero = ZeroSign::Positive);
        next
    };
    let each = (0..adders).map(|at| positive(at, at + 1));
    std::iter::once(bare.clone()).chain(each).chain([positive(0, adders)]).collect()
}

/// Returns hypotheses in which products that are rounded alone, without loss, are taken directly: aligned by their leading
/// bit, as a value is, or with operands that are converted to a format in which no number of theirs is subnormal, or as they
/// are.
fn taken_directly(id: &OperationId, now: &Hypothesis) -> Vec<Hypothesis> {
    let alone = now.skeleton.rounded_alone();
    if alone.is_empty() {
        return Vec::new();
    }
    let mut skeleton = (*now.skeleton).clone();
    for product in alone {
        skeleton = skeleton.together(product);
    }
    let mut direct = Hypothesis { skeleton: Arc::new(skeleton), ..now.clone() };
    let rules = direct.adders.iter_mut().flat_map(|adder| &mut adder.grid);
    rules.filter(|rule| rule.terms == Class::Values).for_each(|rule| rule.terms = Class::All);
    let mut found = vec![direct.clone()];
    found.extend(conversions(id, now.flush).into_iter().map(|flush| Hypothesis { flush, ..direct.clone() }));
    direct.adders.iter_mut().flat_map(|adder| &mut adder.grid).for_each(|rule| rule.exponent = Exponent::Leading);
    found.push(direct);
    found
}

/// Returns the hypotheses in which an adder that passes its sum on loses no bit of it, and the floor of its grid is that of
/// the adders that take the sum, or gives them the same lowest bit: there, a floor has the same effect, whatever else the
/// grid did to smaller sums.
fn floor_handed_on(now: &Hypothesis, at: usize) -> Vec<Hypothesis> {
    let adder = &now.adders[at];
    let of_rule = |rule: &GridRule| Some((rule.exponent_floor?, rule.fraction_bits));
    let Some((floor, bits)) = adder.grid.iter().filter_map(of_rule).max() else { return Vec::new() };
    if adder.output != Output::Wide {
        return Vec::new();
    }
    let with = |of_taker: &dyn Fn(&GridRule) -> i32| {
        let mut next = now.clone();
        next.adders.set(at, Adder { grid: Vec::new(), below: Below::Truncate, carry_bits: None, ..adder.clone() });
        for taker in now.skeleton.expression.takers(at) {
            for rule in &mut next.adders[taker].grid {
                rule.exponent_floor = rule.exponent_floor.max(Some(of_taker(rule)));
            }
        }
        next
    };
    vec![with(&|_| floor), with(&|rule| floor - bits + rule.fraction_bits)]
}

/// Returns hypotheses in which one value is replaced by its default.
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
            next.adders.set(at, changed);
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
        found.extend(floor_handed_on(now, at));
    }
    found
}
