//! Changes of one value of a hypothesis: every parameter that a model file has.

use std::rc::Rc;

use mxprobe_api::{Format, Rounding};
use mxprobe_models::{
    Adder, Below, Choices, Class, Exponent, Flush, GridRule, NanCause, NanRules, Output, PARAMETERS, Parameter,
    Setting, Tried, Turn,
};

use super::{
    experiments::Experiments,
    expression::Order,
    hypothesis::{Hypothesis, ON_THE_WAY, in_format},
    nan,
    skeleton::Role,
};

/// One change.
#[derive(Clone, Debug)]
pub(super) enum Move {
    /// Of one adder, by its number.
    Adder(usize, Change),
    /// Of how operands are read.
    Flush(Flush),
    /// Of the order of an adder's arguments.
    Turned(usize, Order),
    /// Of whether products are rounded alone before they meet one other term.
    Alone(Vec<usize>),
    /// The same undone for one product.
    Together(usize),
    /// Two products that meet first, in each other's place.
    Exchanged(usize, usize),
    /// The sum of an adder handed on as it is, which the others align by its leading bit: what rounds to many bits gives the
    /// same numbers, and another NaN.
    HandedOn(usize),
}

/// Fraction bits of a grid at the most: more than terms of any but the widest formats lie apart.
const MOST_BITS: i32 = 200;
/// The same of a rule beside those there are.
const MOST_BITS_OF_MORE: i32 = 130;

/// How far a floor and the bits below it are moved together.
const SHIFT: i32 = 48;

/// How far a grid is moved, and how many bits more are cut of values, where the limit below which values count stays.
const MOST_SPLIT: i32 = 8;

/// Places between the other terms of an addition that c is put in, at the most.
const MIDDLES: usize = 16;

/// A change of one adder.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Grid(Vec<GridRule>),
    /// A grid of one rule, where there was none, and what happens below it.
    Cut(GridRule, Below),
    /// So many more fraction bits for everything but values.
    Widen(i32),
    /// As many more for everything but values, and what is more is lost once the sum is normalised.
    CutLater(i32),
    /// Parameters to these values.
    Set(Vec<(&'static Parameter<Adder>, Setting)>),
    /// A result on the way in this format.
    Format(Format),
    Nan(NanRules),
    /// So many more fraction bits for everything but values, which lose so many more than that, and are left out below the
    /// same limit as before; the floors as much higher, where the lowest bit is to stay where it is.
    SameLimit {
        wider: i32,
        cut: u32,
        floors: bool,
    },
    /// Takes everything but the name and the output from another adder.
    As(usize),
}

impl Move {
    /// The hypothesis with the change, or `None` where it is what it was.
    pub(super) fn apply(&self, to: &Hypothesis) -> Option<Hypothesis> {
        let mut changed = to.clone();
        match self {
            Self::Flush(flush) => changed.flush = *flush,
            Self::Turned(adder, order) => {
                changed.skeleton = Rc::new(changed.skeleton.turned(*adder, *order)?);
                return Some(changed);
            }
            Self::Alone(products) => {
                changed.skeleton = Rc::new(changed.skeleton.alone(products));
                return Some(changed);
            }
            Self::Together(product) => {
                changed.skeleton = Rc::new(changed.skeleton.together(*product));
                return Some(changed);
            }
            Self::Exchanged(one, other) => {
                changed.skeleton = Rc::new(changed.skeleton.exchanged(*one, *other));
                return Some(changed);
            }
            Self::HandedOn(adder) => {
                for other in &mut changed.adders {
                    other.grid.iter_mut().for_each(|rule| rule.exponent = Exponent::Leading);
                }
                let adder = &mut changed.adders[*adder];
                (adder.output, adder.nan) = (Output::Wide, NanRules::default());
            }
            Self::Adder(at, Change::As(other)) => {
                let name = changed.adders[*at].name.clone();
                changed.adders[*at] = Adder { name, ..changed.adders[*other].clone() };
            }
            Self::Adder(at, change) => change.apply(&mut changed.adders[*at]),
        }
        (changed.flush != to.flush || changed.adders != to.adders).then_some(changed)
    }
}

impl Change {
    fn apply(&self, adder: &mut Adder) {
        match self {
            Self::Grid(grid) => adder.grid.clone_from(grid),
            Self::Cut(rule, below) => {
                adder.grid = vec![*rule];
                adder.below = *below;
            }
            Self::Widen(by) => widen(adder, *by),
            Self::CutLater(by) => {
                let bits = adder.grid.iter().map(|rule| rule.fraction_bits).max().unwrap_or_default();
                (adder.normalised_fraction_bits, adder.normalised_below) = (u32::try_from(bits).ok(), adder.below);
                widen(adder, *by);
            }
            Self::Set(settings) => settings.iter().for_each(|(parameter, to)| (parameter.set)(adder, *to)),
            Self::Format(format) => {
                if let Some(changed) = in_format(adder, *format) {
                    *adder = changed;
                }
            }
            Self::Nan(rules) => adder.nan = rules.clone(),
            Self::SameLimit { wider, cut, floors } => same_limit(adder, *wider, *cut, *floors),
            Self::As(_) => {}
        }
    }
}

fn same_limit(adder: &mut Adder, wider: i32, cut: u32, floors: bool) {
    let Some(ignored) = &mut adder.ignored_values else { return };
    ignored.below_bits += cut.cast_signed() - adder.value_cut_bits.cast_signed() - wider;
    adder.value_cut_bits = cut;
    for rule in &mut adder.grid {
        rule.fraction_bits += wider;
        if floors {
            rule.exponent_floor = rule.exponent_floor.map(|floor| floor + wider);
        }
    }
}

fn widen(adder: &mut Adder, by: i32) {
    adder.grid.iter_mut().for_each(|rule| rule.fraction_bits += by);
    adder.value_cut_bits = adder.value_cut_bits.saturating_add_signed(by);
}

/// How far fraction bits, and floors from the smallest exponents, usually are from where they are now.
const NEAR_BITS: i32 = 8;
const NEAR_FLOOR: i32 = 26;

impl Move {
    /// Whether it is among the changes that most units ask for: no further rule of the grid, nothing far from what it is.
    pub(super) fn is_likely(&self, now: &Hypothesis) -> bool {
        let Self::Adder(at, change) = self else { return true };
        let grid = match change {
            Change::Grid(grid) => grid,
            Change::Cut(..) => return false,
            _ => return true,
        };
        let adder = &now.adders[*at];
        if grid.len() > adder.grid.len() {
            return grid.len() == 1 && grid[0].terms == Class::All && (16..=40).contains(&grid[0].fraction_bits);
        }
        let ends = [-14, -126, -1022];
        grid.len() < adder.grid.len()
            || grid.iter().zip(&adder.grid).all(|(rule, before)| {
                let near = |floor: i32| ends.iter().any(|end| (end - NEAR_FLOOR..=end + 4).contains(&floor));
                (rule.fraction_bits - before.fraction_bits).abs() <= NEAR_BITS
                    && (rule.exponent_floor == before.exponent_floor || rule.exponent_floor.is_none_or(near))
            })
    }
}

/// Every change of one value.
pub(super) fn all(experiments: &Experiments<'_, '_>, hypothesis: &Hypothesis) -> Vec<Move> {
    let mut moves: Vec<Move> = flushes(hypothesis.flush).into_iter().map(Move::Flush).collect();
    for at in 0..hypothesis.adders.len() {
        moves.extend(of_adder(experiments, hypothesis, at));
        let rounds = matches!(hypothesis.adders[at].output, Output::Float { .. });
        if hypothesis.skeleton.roles[at] == Role::Inner && rounds {
            moves.push(Move::HandedOn(at));
        }
        let orders = [Order::ProductsFirst, Order::ProductsLast, Order::Reversed];
        moves.extend(orders.map(|order| Move::Turned(at, order)));
        let others = hypothesis.skeleton.beside_c(at).min(MIDDLES);
        moves.extend((1..others).map(|others| Move::Turned(at, Order::CAfter(others))));
    }
    let products = hypothesis.skeleton.joining_one();
    // All of them first: of changes that explain as much the first is taken, and units treat their products alike.
    if products.len() > 1 {
        moves.push(Move::Alone(products.clone()));
    }
    moves.extend(products.into_iter().map(|product| Move::Alone(vec![product])));
    moves.extend(hypothesis.skeleton.rounded_alone().into_iter().map(Move::Together));
    moves.extend(hypothesis.skeleton.begun().into_iter().map(|(one, other)| Move::Exchanged(one, other)));
    moves
}

/// Every change of one value of one adder.
pub(super) fn of_adder(experiments: &Experiments<'_, '_>, hypothesis: &Hypothesis, at: usize) -> Vec<Move> {
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
    if experiments.subject.id().block_scale().is_some() {
        of_turn(experiments, adder, |turn| turn == Turn::Scales, &mut changes);
    }
    // What a group of few bits hands on and what it rounds into a wide format differ by their NaN alone.
    if hypothesis.skeleton.roles[at] != Role::Root {
        changes.extend(ON_THE_WAY.map(Change::Format));
    }
    // An addition on the way may hand on what another rounds, and the other way round.
    let is_alike = |other: usize| {
        hypothesis.skeleton.roles[at] != Role::Root
            || std::mem::discriminant(&hypothesis.adders[other].output) == std::mem::discriminant(&adder.output)
    };
    let others = (0..hypothesis.adders.len()).filter(|other| *other != at && is_alike(*other));
    changes.extend(others.map(Change::As));
    changes.into_iter().map(|change| Move::Adder(at, change)).collect()
}

/// Every split of the limit below which values are left out into the grid, what is cut of values and the places below that:
/// where values meet larger terms alone, one split gives the same bits as another.
fn same_limits(adder: &Adder) -> impl Iterator<Item = Change> {
    let has_floor = adder.grid.iter().any(|rule| rule.exponent_floor.is_some());
    let floors = if has_floor { &[true, false][..] } else { &[false][..] };
    let widths =
        (-MOST_SPLIT..=MOST_SPLIT).flat_map(|wider| (0..=MOST_SPLIT.unsigned_abs()).map(move |cut| (wider, cut)));
    widths.flat_map(move |(wider, cut)| {
        floors.iter().map(move |floors| Change::SameLimit { wider, cut, floors: *floors })
    })
}

pub(super) fn flushes(now: Flush) -> Vec<Flush> {
    let mut found = Vec::new();
    for bits in 0..8u8 {
        for to_positive in [false, true] {
            let flush = Flush { a: bits & 1 > 0, b: bits & 2 > 0, c: bits & 4 > 0, to_positive };
            if flush != now && !(bits == 0 && to_positive) {
                found.push(flush);
            }
        }
    }
    found
}

/// Every value of the parameters whose turn it is, and what is changed together with each.
fn of_turn(experiments: &Experiments<'_, '_>, adder: &Adder, turn: impl Fn(Turn) -> bool, changes: &mut Vec<Change>) {
    for parameter in Parameter::by_turn(&PARAMETERS, turn).into_iter().filter(|parameter| parameter.applies(adder)) {
        let bits = |bits: std::ops::RangeInclusive<i32>| bits.map(Setting::Whole);
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

fn format_bits(adder: &Adder) -> i32 {
    adder.float_format().map_or(0, Format::fraction_bits).cast_signed()
}

fn floor(at: Option<i32>) -> Setting {
    at.map_or(Setting::Absent, Setting::Whole)
}

/// Changes of a parameter together with another that shows where it has the right value alone.
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
        // Where a grid leaves no more bits than that, the direction shows at the end of the range alone.
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

/// Every other rule for NaN.
pub(super) fn of_nan(experiments: &Experiments<'_, '_>, adder: &Adder, changes: &mut Vec<Change>) {
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

/// Exponents at which a floor may lie: about the smallest of d, of c and of what an adder gives.
fn floors(experiments: &Experiments<'_, '_>) -> Vec<Option<i32>> {
    let id = experiments.subject.id();
    let mut found = std::collections::BTreeSet::new();
    for format in [id.d, id.c, id.a] {
        if let Some(float) = format.as_float() {
            let least = float.min_exponent();
            found.extend(least - 48..=least + 40);
        }
    }
    // A floor above most terms is a fixed point.
    found.extend(-180..=80);
    std::iter::once(None).chain(found.into_iter().map(Some)).collect()
}

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
        // The same lowest bit from another floor.
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
