//! The changes of a hypothesis that a search tries: of every value that a model file has.

use std::{collections::BTreeSet, ops::RangeInclusive};

use mxprobe_api::{Format, Rounding, Subnormals};
use mxprobe_models::{
    Adder, Below, Choices, Class, Exponent, Flush, GridRule, NanCause, NanRules, Output, PARAMETERS, Parameter,
    Setting, Tried, Turn,
};

use super::{
    hypothesis::{Hypothesis, ON_THE_WAY, plain_rule},
    moves::{Change, Move},
    nan,
    united::combined,
};
use crate::identify::{
    dots::{experiments::Experiments, operands::conversions},
    tree::{rebuilt::Order, skeleton::Role},
};

/// The most fraction bits of a grid: terms of all but the widest formats are closer together.
const MOST_BITS: i32 = 200;

/// The most fraction bits of a rule that is added to a grid.
const MOST_BITS_OF_MORE: i32 = 130;

/// The largest distance by which a floor and the fraction bits below it are moved together.
const SHIFT: i32 = 48;

/// The largest distance by which a grid is moved, and the most bits cut from values, if the limit below which values
/// are left out stays where it is.
const MOST_SPLIT: i32 = 8;

/// The most places between the other terms of an addition that are tried for c.
const MIDDLES: usize = 16;

/// Returns every change of one value of a hypothesis.
pub(in crate::identify) fn all(experiments: &Experiments<'_, '_>, hypothesis: &Hypothesis) -> Vec<Move> {
    let mut moves: Vec<Move> = readings(experiments, hypothesis).collect();
    for at in 0..hypothesis.adders.len() {
        moves.extend(of_adder(experiments, hypothesis, at));
        moves.extend(wraps().map(|change| Move::Adder(at, change)));
        let rounds = matches!(hypothesis.adders[at].output, Output::Float { .. });
        if hypothesis.skeleton.roles[at] == Role::Inner && rounds {
            moves.extend([true, false].map(|leading| Move::HandedOn { adder: at, leading }));
            moves.extend(handed_on(hypothesis, at));
        }
        if rounds {
            moves.extend(at_result(hypothesis, at));
            let others = (0..hypothesis.adders.len()).filter(|grid| *grid != at);
            moves.extend(others.map(|grid| Move::Unified { grid, result: at }));
        }
        moves.extend(Order::WHOLE.map(|order| Move::Turned(at, order)));
        let others = hypothesis.skeleton.beside_c(at).min(MIDDLES);
        moves.extend((1..others).map(|others| Move::Turned(at, Order::CAfter(others))));
    }
    for one in 0..hypothesis.adders.len() {
        for other in one + 1..hypothesis.adders.len() {
            let combined = combined(&hypothesis.adders[one], &hypothesis.adders[other]);
            moves.extend(combined.into_iter().map(|both| Move::Same { one, other, both: Box::new(both) }));
        }
    }
    let products = hypothesis.skeleton.joining_one();
    // All of them come first: of changes that explain equally many dots the first is taken, and units treat products
    // alike.
    if products.len() > 1 {
        moves.push(Move::Alone(products.clone()));
    }
    moves.extend(products.into_iter().map(|product| Move::Alone(vec![product])));
    moves.extend(hypothesis.skeleton.rounded_alone().into_iter().map(Move::Together));
    moves.extend(hypothesis.skeleton.begun().into_iter().map(|(one, other)| Move::Exchanged(one, other)));
    moves
}

/// The fraction bits of a grid of one rule that is set together with something else, and the carry bits.
const BITS_OF_ONE_RULE: RangeInclusive<i32> = 4..=60;
const CARRY_BITS: RangeInclusive<u32> = 1..=4;

/// Returns the changes that pass the sums of an adder on unrounded, with every grid of the adders that take them.
fn handed_on(hypothesis: &Hypothesis, adder: usize) -> impl Iterator<Item = Move> {
    let takers = hypothesis.skeleton.expression.takers(adder);
    takers.into_iter().filter(move |by| *by != adder).flat_map(move |by| {
        BITS_OF_ONE_RULE.rev().flat_map(move |fraction_bits| {
            let rule = plain_rule(Exponent::Operands, fraction_bits);
            Below::values().map(move |below| Move::HandedOnTo { adder, by, rule, below })
        })
    })
}

/// Returns the changes in which an adder flushes small results instead of a floor of its grid, the reading of c, or both.
fn at_result(hypothesis: &Hypothesis, adder: usize) -> Vec<Move> {
    let has_floor = hypothesis.adders[adder].grid.iter().any(|rule| rule.exponent_floor.is_some());
    let instead = [(true, false), (false, true), (true, true)].into_iter();
    let instead = instead.filter(move |(floors, c)| (!floors || has_floor) && (!c || hypothesis.flush.c));
    let changes = |subnormals| instead.clone().map(move |(floors, c)| Move::AtResult { adder, subnormals, floors, c });
    Subnormals::values().filter(|to| *to != Subnormals::Keep).flat_map(changes).collect()
}

/// Returns every change of one value of one adder.
pub(in crate::identify) fn of_adder(
    experiments: &Experiments<'_, '_>,
    hypothesis: &Hypothesis,
    at: usize,
) -> Vec<Move> {
    let adder = &hypothesis.adders[at];
    let mut changes = Vec::new();
    of_turn(experiments, adder, |turn| matches!(turn, Turn::Result(_)), &mut changes);
    of_nan(experiments, adder, &mut changes);
    of_turn(experiments, adder, |turn| turn == Turn::Below, &mut changes);
    of_grid(experiments, adder, &mut changes);
    if !adder.grid.is_empty() {
        changes.extend((-12..=16).filter(|by| *by != 0).map(Change::Widen));
        changes.extend((1..=4).map(Change::CutLater));
        of_turn(experiments, adder, |turn| matches!(turn, Turn::Grid(_)), &mut changes);
        if adder.ignored_values.is_some() {
            changes.extend(same_limits(adder));
        }
    }
    of_turn(experiments, adder, |turn| matches!(turn, Turn::Normalised(_)), &mut changes);
    if let (Some(bits), true) = (adder.normalised_fraction_bits, adder.grid.is_empty()) {
        let rules = (-1..=4).flat_map(|more| plain_rules(bits.cast_signed() + more));
        changes.extend(rules.map(Change::CutSooner));
    }
    if experiments.subject.id().block_scale().is_some() {
        of_turn(experiments, adder, |turn| turn == Turn::Scales, &mut changes);
    }
    // Whether a group of few bits passes its sum on or rounds it to a wide format shows only in its NaN.
    if hypothesis.skeleton.roles[at] != Role::Root {
        changes.extend(ON_THE_WAY.map(Change::Format));
        changes.extend(
            ON_THE_WAY.into_iter().flat_map(|format| Rounding::values().map(move |by| Change::Into(format, by))),
        );
    }
    // An intermediate addition may take the parameters of any adder, whether that rounds or passes its sum on.
    let is_alike = |other: usize| {
        hypothesis.skeleton.roles[at] != Role::Root
            || std::mem::discriminant(&hypothesis.adders[other].output) == std::mem::discriminant(&adder.output)
    };
    let others = (0..hypothesis.adders.len()).filter(|other| *other != at && is_alike(*other));
    changes.extend(others.map(Change::As));
    changes.into_iter().map(|change| Move::Adder(at, change)).collect()
}

/// Returns the grids of one rule whose sums wrap.
fn wraps() -> impl Iterator<Item = Change> {
    let rules = BITS_OF_ONE_RULE.rev().flat_map(plain_rules);
    rules.flat_map(|rule| CARRY_BITS.map(move |carry_bits| Change::Wraps(rule, carry_bits)))
}

/// Returns the rules of a grid for all terms with this many fraction bits.
fn plain_rules(fraction_bits: i32) -> impl Iterator<Item = GridRule> {
    Exponent::values().map(move |exponent| plain_rule(exponent, fraction_bits))
}

/// Returns every split of the limit below which values are left out into the grid, the bits cut from values and the
/// places below them. As long as values meet only larger terms, all splits give the same bits.
fn same_limits(adder: &Adder) -> impl Iterator<Item = Change> {
    let has_floor = adder.grid.iter().any(|rule| rule.exponent_floor.is_some());
    let floors = if has_floor { &[true, false][..] } else { &[false][..] };
    let widths =
        (-MOST_SPLIT..=MOST_SPLIT).flat_map(|wider| (0..=MOST_SPLIT.unsigned_abs()).map(move |cut| (wider, cut)));
    widths.flat_map(move |(wider, cut)| {
        floors.iter().map(move |floors| Change::SameLimit { wider, cut, floors: *floors })
    })
}

/// Returns every other way to read operands.
pub(in crate::identify) fn readings(
    experiments: &Experiments<'_, '_>,
    hypothesis: &Hypothesis,
) -> impl Iterator<Item = Move> {
    let (id, now) = (experiments.subject.id(), hypothesis.flush);
    flushes(now).into_iter().chain(conversions(id, now)).map(Move::Flush)
}

/// Returns every other choice of operands whose subnormals are flushed, and of the sign of their zeros.
fn flushes(now: Flush) -> Vec<Flush> {
    let mut found = Vec::new();
    for bits in 0..8u8 {
        for to_positive in [false, true] {
            let flush = Flush { a: bits & 1 > 0, b: bits & 2 > 0, c: bits & 4 > 0, to_positive, ..now };
            if flush != now && !(bits == 0 && to_positive) {
                found.push(flush);
            }
        }
    }
    found
}

/// Adds changes to every value of the parameters whose turn it is, alone and together with other parameters.
fn of_turn(experiments: &Experiments<'_, '_>, adder: &Adder, turn: fn(Turn) -> bool, changes: &mut Vec<Change>) {
    for parameter in Parameter::by_turn(&PARAMETERS, turn).into_iter().filter(|parameter| parameter.applies(adder)) {
        let bits = |bits: RangeInclusive<i32>| bits.map(Setting::Whole);
        let settings: Vec<Setting> = match parameter.tried {
            Tried::Every => parameter.choices(),
            Tried::Bits(low, high) => std::iter::once(Setting::Absent).chain(bits(low..=high)).collect(),
            Tried::FormatBits => bits(1..=format_bits(adder)).rev().collect(),
            Tried::Exponents => floors(experiments).into_iter().map(floor).collect(),
            Tried::Absent => vec![Setting::Absent],
        };
        changes.extend(settings.into_iter().map(|to| Change::Set(vec![(parameter, to)])));
        together(experiments, adder, parameter, changes);
    }
}

/// Returns the fraction bits of the format of an adder's result, or 0 if that is not a float.
fn format_bits(adder: &Adder) -> i32 {
    adder.float_format().map_or(0, Format::fraction_bits).cast_signed()
}

fn floor(at: Option<i32>) -> Setting {
    at.map_or(Setting::Absent, Setting::Whole)
}

/// Adds changes of a parameter together with another one, if the first shows only once the other has the right value.
fn together(
    experiments: &Experiments<'_, '_>,
    adder: &Adder,
    parameter: &'static Parameter<Adder>,
    changes: &mut Vec<Change>,
) {
    let mut both = |to: Setting, other: &str, of_other: Setting| {
        let other = PARAMETERS.iter().find(|parameter| parameter.key == other).expect("it is in the table");
        changes.push(Change::Set(vec![(parameter, to), (other, of_other)]));
    };
    match parameter.key {
        // If the grid keeps no more bits than the output does, the rounding shows only at the end of the range.
        "output_fraction_bits" if (parameter.get)(adder) != Setting::Absent => {
            for rounding in Rounding::values() {
                both(Setting::Absent, "rounding", Setting::of(rounding));
            }
        }
        "ignore_values_below" => {
            let least = experiments.subject.id().d.as_float().map(mxprobe_api::FloatEncoding::min_exponent);
            for bits in -3..=4 {
                for limit in [None, least] {
                    both(Setting::Whole(bits), "ignore_values_unless_grid_at_most", floor(limit));
                }
            }
        }
        "normalised_fraction_bits" => {
            let now = adder.normalised_below;
            for bits in 8..=44 {
                both(Setting::Whole(bits), "normalised_below", Setting::of(now));
                for below in [Below::Floor, Below::Truncate].into_iter().filter(|below| *below != now) {
                    both(Setting::Whole(bits), "normalised_below", Setting::of(below));
                }
            }
        }
        _ => {}
    }
}

/// Adds changes to every other rule for NaN.
pub(in crate::identify) fn of_nan(experiments: &Experiments<'_, '_>, adder: &Adder, changes: &mut Vec<Change>) {
    let Output::Float { format, .. } = adder.output else { return };
    use NanCause::{Invalid, Operand, Value};
    let seen = nan::bits_seen(experiments, format);
    let choices: Vec<Option<u64>> = std::iter::once(None).chain(seen.iter().copied().map(Some)).collect();
    let now = &adder.nan;
    let mut push = |rules: NanRules| changes.push(Change::Nan(rules));
    for order in [
        [Operand, Value, Invalid],
        [Operand, Invalid, Value],
        [Value, Operand, Invalid],
        [Value, Invalid, Operand],
        [Invalid, Operand, Value],
        [Invalid, Value, Operand],
    ] {
        push(NanRules { order: order.to_vec(), ..now.clone() });
        // A NaN in B may come before one in A.
        for place in 0..=order.iter().position(|cause| *cause == Operand).unwrap_or(0) {
            let mut order = order.to_vec();
            order.insert(place, NanCause::B);
            push(NanRules { order, ..now.clone() });
        }
    }
    for choice in &choices {
        push(NanRules { operand: *choice, ..now.clone() });
        push(NanRules { value: *choice, ..now.clone() });
        push(NanRules { operand: *choice, value: *choice, ..now.clone() });
    }
    for bits in seen {
        push(NanRules { invalid: bits, ..now.clone() });
        push(NanRules { invalid: bits, operand: Some(bits), value: Some(bits), ..now.clone() });
    }
}

/// Returns the exponents at which a floor may lie, and `None`: those about the smallest normal ones of d, c and a, and
/// those of a fixed point.
fn floors(experiments: &Experiments<'_, '_>) -> Vec<Option<i32>> {
    let id = experiments.subject.id();
    // A floor above most terms makes the grid a fixed point. Terms of f64 leave room for floors far below that.
    let fixed = if id.c == Format::F64 { -1100 } else { -180 }..=80;
    floors_about(&[id.d, id.c, id.a], -48..=40, fixed)
}

/// Returns `None`, exponents at these distances from the smallest normal ones of formats, and those of a fixed point.
pub(in crate::identify) fn floors_about(
    formats: &[Format],
    distances: RangeInclusive<i32>,
    fixed: RangeInclusive<i32>,
) -> Vec<Option<i32>> {
    let mut found: BTreeSet<i32> = fixed.collect();
    let floats = formats.iter().filter_map(|format| format.as_float());
    found.extend(floats.flat_map(|float| distances.clone().map(move |by| float.min_exponent() + by)));
    std::iter::once(None).chain(found.into_iter().map(Some)).collect()
}

/// Adds changes of one rule of a grid, of its number of rules, and of its first rule with the treatment of the bits
/// below.
fn of_grid(experiments: &Experiments<'_, '_>, adder: &Adder, changes: &mut Vec<Change>) {
    let grid = &adder.grid;
    let mut with = |at: usize, rule: GridRule| {
        let mut changed = grid.clone();
        changed[at] = rule;
        changes.push(Change::Grid(changed));
    };
    for (at, rule) in grid.iter().enumerate() {
        for bits in 1..=MOST_BITS {
            with(at, GridRule { fraction_bits: bits, ..*rule });
        }
        for terms in Class::values() {
            for exponent in Exponent::values() {
                with(at, GridRule { terms, exponent, ..*rule });
            }
        }
        for exponent_floor in floors(experiments) {
            with(at, GridRule { exponent_floor, ..*rule });
        }
        // Another floor with the same lowest bit.
        if let Some(floor) = rule.exponent_floor {
            for by in (-SHIFT..=SHIFT).filter(|by| *by != 0 && rule.fraction_bits + by > 0) {
                let (fraction_bits, exponent_floor) = (rule.fraction_bits + by, Some(floor + by));
                with(at, GridRule { fraction_bits, exponent_floor, ..*rule });
            }
        }
    }
    for at in 0..grid.len() {
        let mut fewer = grid.clone();
        fewer.remove(at);
        changes.push(Change::Grid(fewer));
    }
    if grid.len() < 4 {
        for terms in Class::values() {
            for exponent in Exponent::values() {
                for fraction_bits in 4..=MOST_BITS_OF_MORE {
                    let more = GridRule { terms, exponent, fraction_bits, exponent_floor: None };
                    changes.push(Change::Grid(grid.iter().copied().chain([more]).collect()));
                    if grid.is_empty() {
                        let others = Below::values().filter(|below| *below != adder.below);
                        changes.extend(others.map(|below| Change::Cut(more, below)));
                    }
                }
            }
        }
    }
}
