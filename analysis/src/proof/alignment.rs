//! The grid of a fused addition and the alignment of its terms, over any logic.

use mxprobe_models::{Adder, Below, Class, Exponent, Output};

use super::{
    integer::Integer,
    logic::Logic,
    number::{Finite, Number, Term, length},
    words::{Word, Words},
};

/// The exponent of the lowest kept bit, the largest exponent, and the grid's fraction bits if they are known to be the
/// same for every dot.
pub(super) struct Grid<B> {
    pub unit: Integer<B>,
    pub exponent: Integer<B>,
    pub has_exponent: B,
    pub fraction_bits: Option<i32>,
}

pub(super) fn grid<L: Logic>(logic: &mut L, adder: &Adder, terms: &[Term<L::Bit>]) -> Grid<L::Bit> {
    let lowest = terms.iter().map(|term| term.number.finite.lsb.low).min().unwrap_or(0);
    let mut found: Option<Grid<L::Bit>> = None;
    for rule in &adder.grid {
        let floor = rule.exponent_floor.filter(|floor| !is_idle(adder, *floor, terms));
        let mut largest: Option<(Integer<L::Bit>, L::Bit)> =
            floor.map(|floor| (Integer::constant(floor), logic.constant(true)));
        for term in terms.iter().filter(|term| rule.terms == Class::All || rule.terms == term.class) {
            let finite = &term.number.finite;
            let (exponent, has) = match rule.exponent {
                Exponent::Operands => (finite.exponent.clone(), finite.has_exponent),
                Exponent::Leading => (finite.leading(logic), logic.any(&finite.magnitude)),
            };
            largest = Some(match largest {
                None => (exponent, has),
                Some((other, other_has)) => greater(logic, &other, other_has, &exponent, has),
            });
        }
        let Some((exponent, has)) = largest else { continue };
        let unit = exponent.raised(-rule.fraction_bits);
        found = Some(match found {
            None => Grid { unit, exponent, has_exponent: has, fraction_bits: Some(rule.fraction_bits) },
            Some(grid) => {
                let (unit, _) = greater(logic, &grid.unit, grid.has_exponent, &unit, has);
                let (exponent, has) = greater(logic, &grid.exponent, grid.has_exponent, &exponent, has);
                let fraction_bits = grid.fraction_bits.filter(|bits| *bits == rule.fraction_bits);
                Grid { unit, exponent, has_exponent: has, fraction_bits }
            }
        });
    }
    match found {
        // Without an exponent in any term, no grid exists, and nothing may be lost.
        Some(grid) if logic.known(grid.has_exponent) == Some(true) => grid,
        Some(grid) if every_term_has_a_rule(adder, terms) => grid,
        Some(grid) => {
            let (exponent, has) = largest_exponent(logic, terms);
            let unit = Integer::choose(logic, grid.has_exponent, &grid.unit, &Integer::constant(lowest));
            let exponent = Integer::choose(logic, grid.has_exponent, &grid.exponent, &exponent);
            let has_exponent = logic.or(grid.has_exponent, has);
            Grid { unit, exponent, has_exponent, fraction_bits: None }
        }
        None => {
            let (exponent, has_exponent) = largest_exponent(logic, terms);
            Grid { unit: Integer::constant(lowest), exponent, has_exponent, fraction_bits: None }
        }
    }
}

/// The largest exponent of the terms, and whether any term has one.
fn largest_exponent<L: Logic>(logic: &mut L, terms: &[Term<L::Bit>]) -> (Integer<L::Bit>, L::Bit) {
    let mut largest = (Integer::constant(0), logic.constant(false));
    for (at, Term { number: Number { finite, .. }, .. }) in terms.iter().enumerate() {
        largest = match at {
            0 => (finite.exponent.clone(), finite.has_exponent),
            _ => greater(logic, &largest.0, largest.1, &finite.exponent, finite.has_exponent),
        };
    }
    largest
}

/// Whether an exponent floor makes no difference: no nonzero term can have a lower exponent, and if all terms are zero,
/// so is the rounded result, on any grid.
fn is_idle<B: Copy + std::fmt::Debug>(adder: &Adder, floor: i32, terms: &[Term<B>]) -> bool {
    let [rule] = adder.grid.as_slice() else { return false };
    let lowest = |finite: &Finite<B>| match rule.exponent {
        Exponent::Operands => finite.exponent.low,
        Exponent::Leading => finite.lsb.low,
    };
    adder.output != Output::Wide
        && rule.terms == Class::All
        && terms.iter().all(|term| term.number.finite.magnitude.is_empty() || floor <= lowest(&term.number.finite))
}

fn every_term_has_a_rule<B>(adder: &Adder, terms: &[Term<B>]) -> bool {
    terms.iter().all(|term| adder.grid.iter().any(|rule| rule.terms == Class::All || rule.terms == term.class))
}

/// The greater of two integers, either of which may be absent; absent if both are.
fn greater<L: Logic>(
    logic: &mut L,
    one: &Integer<L::Bit>,
    has_one: L::Bit,
    other: &Integer<L::Bit>,
    has_other: L::Bit,
) -> (Integer<L::Bit>, L::Bit) {
    let low = one.low.min(other.low);
    let present = |logic: &mut L, integer: &Integer<L::Bit>, has: L::Bit| {
        let above = integer.above(logic, low);
        let above = logic.where_set(has, &above);
        Integer::new(logic, low, integer.high, &above)
    };
    let (one, other) = (present(logic, one, has_one), present(logic, other, has_other));
    let both = one.max(logic, &other);
    (both, logic.or(has_one, has_other))
}

/// A term's magnitude as a multiple of `2^unit`.
pub(super) fn align<L: Logic>(
    logic: &mut L,
    adder: &Adder,
    term: &Term<L::Bit>,
    unit: &Integer<L::Bit>,
) -> Word<L::Bit> {
    let finite = &term.number.finite;
    if finite.magnitude.is_empty() {
        return Vec::new();
    }
    let rules = adder.grid.iter().filter(|rule| rule.terms == Class::All || rule.terms == term.class);
    // The most places that the term's lowest bit may be above the unit.
    let mut highest = finite.lsb.high - unit.low;
    let cut = if term.class == Class::Values { adder.value_cut_bits.cast_signed() } else { 0 };
    let mut normalise = false;
    for rule in rules {
        match (rule.exponent, finite.lsb_below_exponent) {
            (Exponent::Operands, Some(below)) => highest = highest.min(rule.fraction_bits - cut - below),
            (Exponent::Operands, None) => {}
            (Exponent::Leading, _) => {
                let least = rule.fraction_bits - cut - (length(&finite.magnitude) - 1);
                if least < highest {
                    (highest, normalise) = (least, true);
                }
            }
        }
    }
    let (magnitude, lsb) =
        if normalise { normalised(logic, finite) } else { (finite.magnitude.clone(), finite.lsb.clone()) };
    // The term is placed `highest` places up, with one bit below the unit, and shifted down from there.
    let distance = unit.minus(logic, &lsb);
    let down = distance.raised(highest);
    let down = down.above(logic, 0);
    let up = highest + 1;
    let (register, dropped) = if up >= 0 {
        let place = usize::try_from(up).unwrap_or(0);
        (logic.raised(&magnitude, place), logic.constant(false))
    } else {
        let drop = usize::try_from(-up).unwrap_or(0).min(magnitude.len());
        (magnitude[drop..].to_vec(), logic.any(&magnitude[..drop]))
    };
    let (register, lost) = logic.shifted_right(&register, &down);
    let lost = logic.or(lost, dropped);
    let (guard, kept) = match register.split_first() {
        Some((guard, kept)) => (*guard, kept.to_vec()),
        None => (logic.constant(false), Vec::new()),
    };
    below(logic, adder.below, finite.negative, &kept, guard, lost)
}

/// The magnitude shifted up until its top bit is set, and the resulting exponent of its lowest bit.
fn normalised<L: Logic>(logic: &mut L, finite: &Finite<L::Bit>) -> (Word<L::Bit>, Integer<L::Bit>) {
    let zeros = logic.leading_zeros(&finite.magnitude);
    let magnitude = logic.shifted_left(&finite.magnitude, &zeros);
    let most = length(&finite.magnitude) - 1;
    let zeros = Integer::new(logic, 0, most, &zeros);
    (magnitude, finite.lsb.minus(logic, &zeros))
}

/// Applies the rule for bits below a grid: `guard` is the highest of them, `lost` whether another is set.
pub(super) fn below<L: Logic>(
    logic: &mut L,
    rule: Below,
    negative: L::Bit,
    kept: &[L::Bit],
    guard: L::Bit,
    lost: L::Bit,
) -> Word<L::Bit> {
    let any = logic.or(guard, lost);
    let up = match rule {
        Below::Truncate | Below::OnesComplement => return kept.to_vec(),
        Below::Sticky => {
            let mut kept = kept.to_vec();
            match kept.first_mut() {
                Some(lowest) => *lowest = logic.or(*lowest, any),
                None => kept.push(any),
            }
            return kept;
        }
        Below::Floor => logic.and(negative, any),
        Below::NearestAway => guard,
        Below::Nearest => {
            let odd = kept.first().copied().unwrap_or_else(|| logic.constant(false));
            let more = logic.or(lost, odd);
            logic.and(guard, more)
        }
    };
    let kept = logic.resized(kept, kept.len() + 1);
    logic.increased(&kept, up)
}

pub(super) fn is_ignored<L: Logic>(
    logic: &mut L,
    adder: &Adder,
    finite: &Finite<L::Bit>,
    unit: &Integer<L::Bit>,
    cut: i32,
) -> L::Bit {
    let Some(rule) = adder.ignored_values else { return logic.constant(false) };
    let leading = finite.leading(logic);
    let nonzero = logic.any(&finite.magnitude);
    let small = leading.less(logic, &unit.raised(cut - rule.below_bits));
    let small = logic.and(small, nonzero);
    match rule.unless_grid_at_most {
        None => small,
        Some(limit) => {
            let applies = Integer::constant(limit).less(logic, unit);
            logic.and(small, applies)
        }
    }
}
