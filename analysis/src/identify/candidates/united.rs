//! Two adders in place of which one would do. If a shared adder has a wrong value, a copy with another value for a single
//! addition may explain the dots so far, although the right value would explain them for all additions.

use mxprobe_models::{Adder, Output};

use super::hypothesis::Hypothesis;

/// The most groups of values in which two adders differ that are tried in every combination.
const MOST: usize = 5;

/// Copies one group of values, which belong together, from another adder.
type Copy = fn(&mut Adder, &Adder);

/// Returns the fields of both results, if both are floats.
fn results<'a>(to: &'a mut Adder, from: &'a Adder) -> Option<(&'a mut Output, &'a Output)> {
    matches!((to.output, from.output), (Output::Float { .. }, Output::Float { .. }))
        .then_some((&mut to.output, &from.output))
}

/// Every group of values of an adder but its name.
const GROUPS: [Copy; 10] = [
    |to, from| (to.grid, to.below) = (from.grid.clone(), from.below),
    |to, from| (to.value_cut_bits, to.ignored_values) = (from.value_cut_bits, from.ignored_values),
    |to, from| to.carry_bits = from.carry_bits,
    |to, from| {
        to.normalised_fraction_bits = from.normalised_fraction_bits;
        to.normalised_exponent_floor = from.normalised_exponent_floor;
        to.normalised_below = from.normalised_below;
    },
    |to, from| (to.scale, to.product_overflow) = (from.scale, from.product_overflow),
    |to, from| to.zero = from.zero,
    |to, from| to.nan = from.nan.clone(),
    |to, from| {
        if let Some((Output::Float { fraction_bits: to, .. }, Output::Float { fraction_bits: from, .. })) =
            results(to, from)
        {
            *to = *from;
        }
    },
    |to, from| {
        if let Some((Output::Float { rounding: to, .. }, Output::Float { rounding: from, .. })) = results(to, from) {
            *to = *from;
        }
    },
    |to, from| {
        if let Some((
            Output::Float { overflow: to, subnormals: kept, .. },
            Output::Float { overflow: from, subnormals, .. },
        )) = results(to, from)
        {
            (*to, *kept) = (*from, *subnormals);
        }
    },
];

/// Returns whether two adders have results of the same format, or pass their sums on.
fn is_alike(one: &Adder, other: &Adder) -> bool {
    match (one.output, other.output) {
        (Output::Float { format, .. }, Output::Float { format: of_other, .. }) => format == of_other,
        (of_one, of_other) => of_one == of_other,
    }
}

/// Returns every combination of the values of two adders, as one adder; nothing if their results are of different
/// formats, or if they differ in too many values.
pub(in crate::identify) fn combined(one: &Adder, other: &Adder) -> Vec<Adder> {
    let differs = |copy: &&Copy| {
        let mut changed = one.clone();
        copy(&mut changed, other);
        changed != *one
    };
    let groups: Vec<&Copy> = GROUPS.iter().filter(differs).collect();
    if !is_alike(one, other) || groups.is_empty() || groups.len() > MOST {
        return Vec::new();
    }
    let combination = |taken: usize| {
        let mut both = one.clone();
        groups.iter().enumerate().filter(|(at, _)| taken >> at & 1 == 1).for_each(|(_, copy)| copy(&mut both, other));
        both
    };
    (0..1 << groups.len()).map(combination).collect()
}

/// Returns the hypotheses in which two adders with results of the same format have exchanged one group of values in
/// which they differ. A rule for one addition, such as the sign of a zero, can imitate that of the addition before it.
pub(in crate::identify) fn exchanged(hypothesis: &Hypothesis) -> Vec<Hypothesis> {
    let adders = &hypothesis.adders;
    let pairs = (0..adders.len()).flat_map(|one| (one + 1..adders.len()).map(move |other| (one, other)));
    let exchange = |(one, other): (usize, usize), copy: &Copy| {
        let mut changed = hypothesis.clone();
        copy(&mut changed.adders[one], &adders[other]);
        copy(&mut changed.adders[other], &adders[one]);
        (changed.adders != *adders).then_some(changed)
    };
    let pairs = pairs.filter(|(one, other)| is_alike(&adders[*one], &adders[*other]));
    pairs.flat_map(|pair| GROUPS.iter().filter_map(move |copy| exchange(pair, copy))).collect()
}

/// Returns the hypotheses in which two of the adders are one, which has the values of one or the other.
pub(in crate::identify) fn united(hypothesis: &Hypothesis) -> Vec<Hypothesis> {
    let mut found = Vec::new();
    for one in 0..hypothesis.adders.len() {
        for other in one + 1..hypothesis.adders.len() {
            for both in combined(&hypothesis.adders[one], &hypothesis.adders[other]) {
                let mut changed = hypothesis.clone();
                for at in [one, other] {
                    changed.set(at, both.clone());
                }
                found.push(changed);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use mxprobe_api::{Format, Rounding, Subnormals};
    use mxprobe_models::{NanRules, ZeroSign};

    use super::{super::hypothesis::float, *};
    use crate::identify::tree::{
        expression::Expression,
        skeleton::{Role, Skeleton},
    };

    #[test]
    fn values_are_exchanged_between_results_of_one_format_only() {
        let skeleton = |names: [&str; 2]| {
            let expression = Expression::Add(0, vec![Expression::Add(1, vec![Expression::Product(0)]), Expression::C]);
            let plan = std::sync::Arc::new(expression.plan());
            Skeleton { expression, plan, names: names.map(str::to_owned).into(), roles: vec![Role::Root, Role::Inner] }
        };
        let of = |format: Format, zero| {
            let output = float(format, format.fraction_bits(), Rounding::TowardZero);
            Adder { zero, ..Adder::exact("sum", output, NanRules::default()) }
        };
        let with = |format: Format| Hypothesis {
            skeleton: std::sync::Arc::new(skeleton(["sum", "sum-1"])),
            adders: vec![of(Format::F32, ZeroSign::Ieee), of(format, ZeroSign::Positive)].into(),
            flush: mxprobe_models::Flush::default(),
        };
        let found = exchanged(&with(Format::F32));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].adders[0].zero, ZeroSign::Positive);
        assert_eq!(found[0].adders[1].zero, ZeroSign::Ieee);
        assert!(exchanged(&with(Format::F16)).is_empty());
    }

    #[test]
    fn a_value_of_each_of_two_adders_is_joined_in_one() {
        let plain = Adder::exact("sum", float(Format::F32, 23, Rounding::TowardZero), NanRules::default());
        let Output::Float { format, fraction_bits, rounding, overflow, .. } = plain.output else { unreachable!() };
        let subnormals = Subnormals::FlushAfterRounding;
        let flushes =
            Adder { output: Output::Float { format, fraction_bits, rounding, overflow, subnormals }, ..plain.clone() };
        let positive = Adder { zero: ZeroSign::Positive, ..plain.clone() };
        let found = combined(&flushes, &positive);
        assert_eq!(found.len(), 4);
        assert!(found.contains(&Adder { output: flushes.output, ..positive.clone() }));
        let wide = Adder { output: Output::Wide, ..plain };
        assert!(combined(&wide, &positive).is_empty());
    }
}
