//! Changes of several values of one adder at once. The floor of a grid, the bits below it, the rounding and the width of
//! the result can imitate each other: a candidate with some of them wrong may explain nearly every dot, although each
//! change of one or two of its values explains fewer.

use mxprobe_api::{Overflow, Rounding};
use mxprobe_models::{Adder, Below, Choices, Exponent, GridRule, Output};

use crate::identify::{
    candidates::{
        hypothesis::Hypothesis,
        proposals::floors_about,
        scored::{Scored, explained_of, spread},
    },
    dots::experiments::{Experiments, Limit},
};
use crate::in_order::InOrder;

/// Dots left unexplained that a change is tried on first.
const TRIED_FIRST: usize = 8;
/// Explained dots that a change may break, of those that it is tried on.
const BROKEN: usize = 2;
/// Changes that are tried before the worst of those found are dropped, and how many a thread tries at a time.
const BATCH: usize = 1_024;
const AT_ONCE: usize = 32;
/// Changes that are returned.
const KEPT: usize = 60;
/// How far fraction bits are moved, and the most bits of a result that are left out.
const MOVED: i32 = 3;
const NARROWER: u32 = 8;
/// Carry bits of a sum that wraps.
const CARRY_BITS: u32 = 6;

/// Whether floors are among the values that are changed. There are so many of them that the others are tried first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Floors {
    Keep,
    Change,
}

/// Sets one value of an adder.
type Set = Box<dyn Fn(&mut Adder)>;

/// Returns the candidates that differ from this one in three values of one adder, or of all adders that could be one,
/// explain at least one of the dots `wrong` and break few of the dots `right`. The best ones come first.
pub(super) fn coupled(
    experiments: &mut Experiments<'_, '_>,
    now: &Hypothesis,
    (wrong, right): (&[usize], &[usize]),
    floors: Floors,
) -> Vec<Hypothesis> {
    let some = spread(wrong, TRIED_FIRST);
    let mut found: Vec<Scored> = Vec::new();
    let mut least = 1;
    let alone = (0..now.adders.len()).map(|own| (now.clone(), vec![own]));
    for (base, adders) in equalised(now).into_iter().chain(alone) {
        each_change(experiments, &base.adders[adders[0]], floors, &mut |experiments, changes| {
            let tried = experiments.each(Limit::Stage, AT_ONCE, changes, |spent, answered, changed| {
                let mut hypothesis = base.clone();
                for at in &adders {
                    hypothesis.set(*at, changed.clone());
                }
                explained_of(spent, answered, &hypothesis, &some, some.len() - 1)?;
                let kept = explained_of(spent, answered, &hypothesis, right, BROKEN)?;
                let fixed = explained_of(spent, answered, &hypothesis, wrong, wrong.len()).unwrap_or(0);
                Some(Scored { hypothesis, explained: fixed.saturating_sub(3 * (right.len() - kept)) })
            });
            found.extend(tried.into_iter().flatten().filter(|scored| scored.explained >= least));
            if found.len() >= 2 * KEPT {
                keep_best(&mut found);
                least = found.last().map_or(1, |worst| worst.explained);
            }
        });
    }
    keep_best(&mut found);
    found.into_iter().map(|scored| scored.hypothesis).collect()
}

fn keep_best(found: &mut Vec<Scored>) {
    found.order_by_key(|scored| (std::cmp::Reverse(scored.explained), scored.hypothesis.complexity()));
    found.truncate(KEPT);
}

/// Returns hypotheses in which adders with results of the same format, or of the same format and rounding, have become
/// equal to one of them, with the numbers of these adders.
pub(super) fn equalised(now: &Hypothesis) -> Vec<(Hypothesis, Vec<usize>)> {
    let mut found: Vec<(Hypothesis, Vec<usize>)> = Vec::new();
    let count = now.adders.len();
    for own in 0..count {
        let alike = |other: &usize, strict: bool| match (now.adders[own].output, now.adders[*other].output) {
            (
                Output::Float { format, rounding, .. },
                Output::Float { format: of_other, rounding: rounding_of_other, .. },
            ) => format == of_other && (!strict || rounding == rounding_of_other),
            (one, other) => one == other,
        };
        let mut seen = Vec::new();
        for strict in [false, true] {
            let group: Vec<usize> = (0..count).filter(|other| alike(other, strict)).collect();
            if group.len() < 2 || seen.contains(&group) {
                continue;
            }
            let mut base = now.clone();
            for at in &group {
                base.set(*at, now.adders[own].clone());
            }
            seen.push(group.clone());
            found.push((base, group));
        }
    }
    found
}

/// Calls a function with the adders in which up to three values are changed, `BATCH` at a time, until the budget is
/// spent: with the adder itself and changes of everything but floors, or with changes that include a floor.
fn each_change<'a, 's>(
    experiments: &mut Experiments<'a, 's>,
    adder: &Adder,
    floors: Floors,
    with: &mut dyn FnMut(&mut Experiments<'a, 's>, &[Adder]),
) {
    let (axes, of_floors) = (axes(adder), of_floors(experiments, adder));
    let mut changes = Vec::new();
    let mut call = |changed: &Adder| {
        if experiments.is_late() {
            return;
        }
        changes.push(changed.clone());
        if changes.len() == BATCH {
            with(experiments, &changes);
            changes.clear();
        }
    };
    match floors {
        Floors::Keep => each_of_up_to(3, &axes, adder, &mut call),
        Floors::Change => {
            for floor in of_floors {
                let mut changed = adder.clone();
                floor(&mut changed);
                each_of_up_to(2, &axes, &changed, &mut call);
            }
        }
    }
    with(experiments, &changes);
}

/// Calls a function with an adder and with each in which up to so many of these values are changed.
fn each_of_up_to(most: usize, axes: &[Vec<Set>], adder: &Adder, call: &mut dyn FnMut(&Adder)) {
    call(adder);
    if most == 0 {
        return;
    }
    for (at, axis) in axes.iter().enumerate() {
        for set in axis {
            let mut changed = adder.clone();
            set(&mut changed);
            each_of_up_to(most - 1, &axes[at + 1..], &changed, call);
        }
    }
}

/// Returns the values that are changed together, except floors, each with what it may become.
fn axes(adder: &Adder) -> Vec<Vec<Set>> {
    let mut axes: Vec<Vec<Set>> = Vec::new();
    if let Output::Float { format, fraction_bits, rounding, overflow, .. } = adder.output {
        // Under IEEE 754 the result of an overflow depends on the rounding.
        let overflows = [overflow, Overflow::Infinity, Overflow::Saturate].into_iter().enumerate();
        let overflows: Vec<Overflow> =
            overflows.filter(|(at, to)| *at == 0 || *to != overflow).map(|(_, to)| to).collect();
        let both = Rounding::values().flat_map(|to| overflows.iter().map(move |of| (to, *of)));
        let others = both.filter(|both| *both != (rounding, overflow));
        axes.push(others.map(|(to, of)| -> Set { Box::new(move |adder| round(adder, to, of)) }).collect());
        let most = format.fraction_bits();
        let widths = (most.saturating_sub(NARROWER).max(1)..=most).rev().filter(|bits| *bits != fraction_bits);
        axes.push(widths.map(|bits| -> Set { Box::new(move |adder| narrow(adder, bits)) }).collect());
    }
    if adder.grid.is_empty() {
        return axes;
    }
    let below = Below::values().filter(|to| *to != adder.below);
    axes.push(below.map(|to| -> Set { Box::new(move |adder| adder.below = to) }).collect());
    let carries = std::iter::once(None).chain((1..=CARRY_BITS).map(Some)).filter(|to| *to != adder.carry_bits);
    axes.push(carries.map(|to| -> Set { Box::new(move |adder| adder.carry_bits = to) }).collect());
    let mut of_grid: Vec<Set> = vec![Box::new(|adder| {
        (adder.grid, adder.below, adder.carry_bits) = (Vec::new(), Below::Truncate, None);
    })];
    of_grid.extend(
        (-MOVED..=MOVED)
            .filter(|by| *by != 0)
            .map(|by| -> Set { Box::new(move |adder| each_rule(adder, |rule| rule.fraction_bits += by)) }),
    );
    axes.push(of_grid);
    let exponents = Exponent::values().filter(|to| adder.grid.iter().any(|rule| rule.exponent != *to));
    axes.push(
        exponents.map(|to| -> Set { Box::new(move |adder| each_rule(adder, |rule| rule.exponent = to)) }).collect(),
    );
    axes
}

/// Returns what the floors of a grid may become together with other values.
fn of_floors(experiments: &Experiments<'_, '_>, adder: &Adder) -> Vec<Set> {
    if adder.grid.is_empty() {
        return Vec::new();
    }
    let floor = |to: Option<i32>| -> Set { Box::new(move |adder| each_rule(adder, |rule| rule.exponent_floor = to)) };
    let id = experiments.subject.id();
    floors_about(&[id.d, id.c], -26..=12, -24..=4).into_iter().map(floor).collect()
}

fn round(adder: &mut Adder, to: Rounding, of: Overflow) {
    if let Output::Float { rounding, overflow, .. } = &mut adder.output {
        (*rounding, *overflow) = (to, of);
    }
}

fn narrow(adder: &mut Adder, to: u32) {
    if let Output::Float { fraction_bits, .. } = &mut adder.output {
        *fraction_bits = to;
    }
}

fn each_rule(adder: &mut Adder, change: impl Fn(&mut GridRule)) {
    adder.grid.iter_mut().for_each(change);
}
