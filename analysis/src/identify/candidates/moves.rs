//! Changes of a hypothesis, and how they are applied.

use std::sync::Arc;

use mxprobe_api::{Format, Rounding, Subnormals};
use mxprobe_models::{Adder, Below, Class, Exponent, Flush, GridRule, NanCause, NanRules, Output, Parameter, Setting};

use super::hypothesis::{Hypothesis, in_format};
use crate::identify::tree::rebuilt::Order;

/// One change of a hypothesis.
#[derive(Clone, Debug)]
pub(in crate::identify) enum Move {
    /// Changes one adder, given by its number.
    Adder(usize, Change),
    /// Changes the operands whose subnormals are flushed.
    Flush(Flush),
    /// Changes the order of an adder's arguments.
    Turned(usize, Order),
    /// Rounds each of these products alone before it meets its one other term.
    Alone(Vec<usize>),
    /// Undoes that for one product.
    Together(usize),
    /// Exchanges two products that meet first.
    Exchanged(usize, usize),
    /// Passes the sum of an adder on unrounded. If `leading` is set, all terms are then aligned by their leading bits,
    /// so that an adder that rounds to many bits gives the same numbers as this, but another NaN.
    HandedOn { adder: usize, leading: bool },
    /// Passes the sum of an adder on unrounded to another adder, which gets a grid of one rule. A sum that is passed on
    /// keeps the exponent that it was aligned by, so that the grid that takes it has another place.
    HandedOnTo { adder: usize, by: usize, rule: GridRule, below: Below },
    /// Treats small results of an adder so, and no longer by a floor of its grid or by how c is read, which can imitate it
    /// in part.
    AtResult { adder: usize, subnormals: Subnormals, floors: bool, c: bool },
    /// Gives two adders the same values.
    Same { one: usize, other: usize, both: Box<Adder> },
    /// Gives both adders the grid of the first and the result of the second.
    Unified { grid: usize, result: usize },
}

/// A change of one adder.
#[derive(Clone, Debug)]
pub(in crate::identify) enum Change {
    /// Replaces the grid.
    Grid(Vec<GridRule>),
    /// Sets a grid of one rule, and the treatment of the bits below it.
    Cut(GridRule, Below),
    /// Sets a grid of one rule, beyond which the sum wraps after this many carry bits. Without wrapping, another grid may
    /// give the same bits.
    Wraps(GridRule, u32),
    /// Adds this many fraction bits for everything but values.
    Widen(i32),
    /// Adds this many fraction bits for everything but values; the normalised sum is then cut to the previous number of
    /// bits.
    CutLater(i32),
    /// Sets a grid of one rule in place of the cut of the normalised sum, with its treatment of the bits below.
    CutSooner(GridRule),
    /// Sets parameters to these values.
    Set(Vec<(&'static Parameter<Adder>, Setting)>),
    /// Puts an intermediate result in this format.
    Format(Format),
    /// Puts an intermediate result in this format, rounded so. If few bits are left, the rounding shows only where the
    /// format overflows.
    Into(Format, Rounding),
    /// Replaces the rules for NaN.
    Nan(NanRules),
    /// Makes the grid `wider` by this many fraction bits and cuts `cut` bits from values, which are left out below the
    /// same limit as before. If `floors` is set, floors rise by `wider` too, so that the lowest bit at a floor stays
    /// where it is.
    SameLimit { wider: i32, cut: u32, floors: bool },
    /// Copies everything but the name from another adder.
    As(usize),
}

/// Whether a NaN among values is looked for before one among operands.
fn values_come_first(nan: &NanRules) -> bool {
    let place = |cause: NanCause| nan.order.iter().position(|other| *other == cause);
    place(NanCause::Value).zip(place(NanCause::Operand)).is_some_and(|(value, operand)| value < operand)
}

impl Move {
    /// Returns the hypothesis with the change, or `None` if it changes nothing.
    pub(in crate::identify) fn apply(&self, to: &Hypothesis) -> Option<Hypothesis> {
        let mut changed = to.clone();
        match self {
            Self::Flush(flush) => changed.flush = *flush,
            Self::Turned(adder, order) => {
                changed.skeleton = Arc::new(changed.skeleton.turned(*adder, order)?);
                return Some(changed);
            }
            Self::Alone(products) => {
                // The NaN of a rounded product is that of a value. It has to come where that of an operand came before.
                let is_last: Vec<bool> = to.adders.iter().map(|adder| values_come_first(&adder.nan)).collect();
                changed.skeleton = Arc::new(changed.skeleton.alone(products, &is_last));
                return Some(changed);
            }
            Self::Together(product) => {
                changed.skeleton = Arc::new(changed.skeleton.together(*product));
                return Some(changed);
            }
            Self::Exchanged(one, other) => {
                changed.skeleton = Arc::new(changed.skeleton.exchanged(*one, *other));
                return Some(changed);
            }
            Self::HandedOn { adder, leading } => {
                if *leading {
                    let rules = changed.adders.iter_mut().flat_map(|other| &mut other.grid);
                    rules.for_each(|rule| rule.exponent = Exponent::Leading);
                }
                hand_on(&mut changed.adders[*adder]);
            }
            Self::HandedOnTo { adder, by, rule, below } => {
                hand_on(&mut changed.adders[*adder]);
                Change::Cut(*rule, *below).apply(&mut changed.adders[*by]);
            }
            Self::AtResult { adder, subnormals: to, floors, c } => {
                let adder = &mut changed.adders[*adder];
                if let Output::Float { subnormals, .. } = &mut adder.output {
                    *subnormals = *to;
                }
                if *floors {
                    adder.grid.iter_mut().for_each(|rule| rule.exponent_floor = None);
                }
                changed.flush.c &= !c;
            }
            Self::Same { one, other, both } => {
                for at in [*one, *other] {
                    changed.set(at, (**both).clone());
                }
            }
            Self::Unified { grid, result } => {
                let both = Adder {
                    output: to.adders[*result].output,
                    nan: to.adders[*result].nan.clone(),
                    zero: to.adders[*result].zero,
                    ..to.adders[*grid].clone()
                };
                for at in [*grid, *result] {
                    changed.set(at, both.clone());
                }
            }
            Self::Adder(at, Change::As(other)) => {
                changed.set(*at, to.adders[*other].clone());
            }
            Self::Adder(at, change) => change.apply(&mut changed.adders[*at]),
        }
        (changed.flush != to.flush || changed.adders != to.adders).then_some(changed)
    }
}

/// Makes an adder pass its sum on unrounded.
pub(in crate::identify) fn hand_on(adder: &mut Adder) {
    (adder.output, adder.nan) = (Output::Wide, NanRules::default());
}

impl Change {
    /// Applies the change to an adder, except for [`Change::As`], which needs another adder.
    fn apply(&self, adder: &mut Adder) {
        match self {
            Self::Grid(grid) => adder.grid.clone_from(grid),
            Self::Cut(rule, below) => {
                adder.grid = vec![*rule];
                adder.below = *below;
            }
            Self::Wraps(rule, carry_bits) => (adder.grid, adder.carry_bits) = (vec![*rule], Some(*carry_bits)),
            Self::Widen(by) => widen(adder, *by),
            Self::CutLater(by) => {
                let bits = adder.grid.iter().map(|rule| rule.fraction_bits).max().unwrap_or_default();
                (adder.normalised_fraction_bits, adder.normalised_below) = (u32::try_from(bits).ok(), adder.below);
                widen(adder, *by);
            }
            Self::CutSooner(rule) => {
                (adder.grid, adder.below) = (vec![*rule], adder.normalised_below);
                (adder.normalised_fraction_bits, adder.normalised_below) = (None, Below::Truncate);
            }
            Self::Set(settings) => settings.iter().for_each(|(parameter, to)| (parameter.set)(adder, *to)),
            Self::Format(format) => {
                if let Some(changed) = in_format(adder, *format) {
                    *adder = changed;
                }
            }
            Self::Into(format, by) => {
                if let Some(changed) = in_format(adder, *format) {
                    *adder = changed;
                    if let Output::Float { rounding, .. } = &mut adder.output {
                        *rounding = *by;
                    }
                }
            }
            Self::Nan(rules) => adder.nan = rules.clone(),
            Self::SameLimit { wider, cut, floors } => same_limit(adder, *wider, *cut, *floors),
            Self::As(_) => {}
        }
    }
}

/// Applies [`Change::SameLimit`], if the adder leaves out small values.
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

/// Adds fraction bits to every rule of the grid, and cuts as many more bits from values.
fn widen(adder: &mut Adder, by: i32) {
    adder.grid.iter_mut().for_each(|rule| rule.fraction_bits += by);
    adder.value_cut_bits = adder.value_cut_bits.saturating_add_signed(by);
}

/// The usual distance of fraction bits from their current value, and of floors from the smallest exponents.
const NEAR_BITS: i32 = 8;
const NEAR_FLOOR: i32 = 26;

impl Move {
    /// Returns whether most units need only such changes: those that do not add a rule to the grid, except the first,
    /// and that stay near the current values.
    pub(in crate::identify) fn is_likely(&self, now: &Hypothesis) -> bool {
        let Self::Adder(at, change) = self else { return !matches!(self, Self::HandedOnTo { .. }) };
        let grid = match change {
            Change::Grid(grid) => grid,
            Change::Cut(..) | Change::Wraps(..) => return false,
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
