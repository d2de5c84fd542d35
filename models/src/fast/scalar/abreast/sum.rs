//! The sum of a node for each dot, as the evaluator of one dot computes it. A dot whose sum may not fit a word is
//! abandoned in its lane.

use super::{
    super::{output::Adding, word::NONE},
    lanes::{DOTS, Lanes},
};
use crate::adder::{Below, Class, Exponent};

/// The exponent of a zero, below every unit.
pub(super) const NO_EXPONENT: i64 = NONE as i64;

/// A term for each dot.
#[derive(Clone, Copy)]
pub(super) struct Terms {
    pub(super) class: Class,
    pub(super) negative: Lanes,
    pub(super) magnitude: Lanes,
    pub(super) lsb: Lanes,
    pub(super) exponent: Lanes,
}

impl Terms {
    pub(super) const ZERO: Self = Self {
        class: Class::Values,
        negative: Lanes::ZERO,
        magnitude: Lanes::ZERO,
        lsb: Lanes::ZERO,
        exponent: Lanes([NO_EXPONENT; DOTS]),
    };

    /// The exponent of the highest bit; [`NO_EXPONENT`] for a zero.
    #[inline(always)]
    fn leading(&self) -> Lanes {
        let leading = self.lsb + self.magnitude.length() - Lanes::all(1);
        Lanes::all(NO_EXPONENT).select(self.magnitude.is_zero(), leading)
    }
}

/// A sum before rounding.
pub(super) struct Sum {
    pub(super) negative: Lanes,
    pub(super) magnitude: Lanes,
    pub(super) lsb: Lanes,
    pub(super) exponent: Lanes,
}

/// The highest exponents of a node's terms, by class.
#[derive(Clone, Copy)]
pub(super) struct Highest {
    products: Lanes,
    sums: Lanes,
    values: Lanes,
}

impl Highest {
    pub(super) const NONE: Self = {
        let none = Lanes([NO_EXPONENT; DOTS]);
        Self { products: none, sums: none, values: none }
    };

    #[inline(always)]
    pub(super) fn join(&mut self, term: &Terms) {
        let of_class = match term.class {
            Class::Products => &mut self.products,
            Class::Sums => &mut self.sums,
            _ => &mut self.values,
        };
        *of_class = of_class.max(term.exponent);
    }

    #[inline(always)]
    fn of(&self, class: Class) -> Lanes {
        match class {
            Class::All => self.products.max(self.sums).max(self.values),
            Class::Products => self.products,
            Class::Sums => self.sums,
            Class::Values => self.values,
        }
    }
}

/// The unit and the exponent of the highest grid rule; [`NO_EXPONENT`] if no rule has one.
#[inline(always)]
fn grid(adder: &Adding, terms: &[Terms], highest: &Highest) -> (Lanes, Lanes) {
    let none = Lanes::all(NO_EXPONENT);
    let (mut unit, mut top) = (none, none);
    for rule in &adder.rules.grid {
        let mut exponent = match rule.exponent {
            Exponent::Operands => highest.of(rule.terms),
            Exponent::Leading => leading_of(terms, rule.terms),
        };
        exponent = exponent.max(Lanes::all(rule.exponent_floor.map_or(NO_EXPONENT, i64::from)));
        let of_rule = exponent - Lanes::all(i64::from(rule.fraction_bits));
        unit = unit.max(of_rule.select(exponent.is_above(none), none));
        top = top.max(exponent);
    }
    (unit, top)
}

#[inline(always)]
fn leading_of(terms: &[Terms], class: Class) -> Lanes {
    let mut highest = Lanes::all(NO_EXPONENT);
    for term in terms {
        if class == Class::All || class == term.class {
            highest = highest.max(term.leading());
        }
    }
    highest
}

/// Aligns a term to whole units; sets `bad` where it has more than `limit` bits.
#[inline(always)]
fn align(
    (negative, magnitude, lsb): (Lanes, Lanes, Lanes),
    unit: Lanes,
    below: Below,
    limit: i64,
    bad: &mut Lanes,
) -> Lanes {
    let (most, limit) = (Lanes::all(63), Lanes::all(limit));
    let shift = lsb - unit;
    let (up, down) = (shift.max(Lanes::ZERO), (-shift).max(Lanes::ZERO));
    let kept = magnitude >> down.min(most);
    let some = !magnitude.is_zero();
    *bad = *bad | (kept.length() + up).is_above(limit) & some;
    let mut aligned = kept << up.min(most);
    match below {
        Below::Truncate | Below::OnesComplement | Below::Floor => {}
        Below::Nearest | Below::NearestAway => {
            let lost = magnitude - (kept << down.min(most));
            let half = Lanes::all(1) << (down - Lanes::all(1)).max(Lanes::ZERO).min(most);
            let tied_up = if below == Below::NearestAway { Lanes::all(-1) } else { !(kept & Lanes::all(1)).is_zero() };
            let up = (lost.is_above(half) | lost.is(half) & tied_up) & most.is_above(down) & !down.is_zero();
            aligned = aligned - up;
        }
        Below::Sticky => {
            let lost = magnitude - (kept << down.min(most));
            aligned = aligned | !lost.is_zero() & Lanes::all(1);
        }
    }
    let signed = aligned.negated(negative);
    if below == Below::Floor {
        // The part that a negative term loses takes one unit away.
        let lost = magnitude - (kept << down.min(most));
        return signed + (!lost.is_zero() & negative);
    }
    signed
}

#[inline(always)]
fn align_all(adder: &Adding, terms: &[Terms], unit: Lanes, limit: i64, bad: &mut Lanes) -> Lanes {
    let rules = &adder.rules;
    let mut total = Lanes::ZERO;
    if adder.plain {
        for term in terms {
            total = total + align((term.negative, term.magnitude, term.lsb), unit, Below::Truncate, limit, bad);
        }
        return total;
    }
    let ones = rules.below == Below::OnesComplement;
    let (mut reference, mut counts) = (Lanes::ZERO, Lanes::ZERO);
    if ones {
        if let Some(last) = terms.iter().rev().find(|term| term.class == Class::Values) {
            reference = last.negative;
        }
        counts = terms.iter().fold(Lanes::ZERO, |any, term| any | !term.magnitude.is_zero());
    }
    for term in terms {
        let is_value = term.class == Class::Values;
        let cut = if is_value { i64::from(rules.value_cut_bits) } else { 0 };
        let mut skipped = Lanes::ZERO;
        if is_value && let Some(ignored) = rules.ignored_values {
            let is_low = (unit + Lanes::all(cut - i64::from(ignored.below_bits))).is_above(term.leading());
            let holds = match ignored.unless_grid_at_most {
                Some(at_most) => unit.is_above(Lanes::all(i64::from(at_most))),
                None => Lanes::all(-1),
            };
            skipped = is_low & holds & !term.magnitude.is_zero();
        }
        let mut over = Lanes::ZERO;
        let place = unit + Lanes::all(cut);
        let parts = (term.negative, term.magnitude, term.lsb);
        let mut aligned = align(parts, place, rules.below, (limit - cut).max(0), &mut over) << Lanes::all(cut.min(63));
        *bad = *bad | over & !skipped;
        if ones {
            // One unit more if the sum is of complements, one less if the term is a complement.
            let step = Lanes::all(1).select(reference, Lanes::all(-1));
            aligned = aligned + (step & counts & (term.negative ^ reference));
        }
        total = total + (aligned & !skipped);
    }
    total
}

/// The sum of terms without a grid that do not all fit the word: its lowest bit is set if anything below was lost.
#[inline(always)]
fn odd_sum(adder: &Adding, terms: &[Terms], unit: Lanes, limit: i64, bad: &mut Lanes) -> Lanes {
    let (most, limit) = (Lanes::all(63), Lanes::all(limit));
    let (mut total, mut cut) = (Lanes::ZERO, Lanes::ZERO);
    for term in terms {
        let some = !term.magnitude.is_zero();
        let shift = term.lsb - unit;
        let (up, down) = (shift.max(Lanes::ZERO), (-shift).max(Lanes::ZERO));
        *bad = *bad | (term.magnitude.length() + up).is_above(limit) & some & shift.is_above(Lanes::ZERO);
        // One term may be cut, if the others are multiples of two units.
        let is_cut = some & !shift.is_above(Lanes::ZERO);
        *bad = *bad | is_cut & cut;
        cut = cut | is_cut;
        let kept = term.magnitude >> down.min(most);
        let lost = !(kept << down.min(most)).is(term.magnitude);
        let aligned = (kept | lost & Lanes::all(1)) << up.min(most);
        total = total + (aligned.negated(term.negative) & some);
    }
    let kept_bits = adder.float.map_or(64, |float| i64::from(float.encoding.fraction_bits) + 4);
    // The bit that represents everything lost must lie well below the last bit kept.
    let length = total.negated(total.is_negative()).length();
    *bad = *bad | Lanes::all(kept_bits).is_above(length);
    total
}

/// The sum of a node's terms; sets `bad` where it may not fit a word.
#[inline(always)]
pub(super) fn sum(adder: &Adding, terms: &[Terms], highest: &Highest, reserve: u32, bad: &mut Lanes) -> Sum {
    let rules = &adder.rules;
    let limit = 64 - i64::from(reserve);
    let none = Lanes::all(NO_EXPONENT);
    let (mut unit, of_grid) = grid(adder, terms, highest);
    let on_grid = of_grid.is_above(none);
    let mut exceeds = Lanes::ZERO;
    if (!on_grid).any() {
        let far = Lanes::all(i64::from(i32::MAX));
        let (mut lowest, mut top, mut some) = (far, none, Lanes::ZERO);
        for term in terms {
            let is = !term.magnitude.is_zero();
            lowest = lowest.min(term.lsb.select(is, far));
            top = top.max(term.leading());
            some = some | is;
        }
        let room = top - Lanes::all(limit - 1);
        let whole = lowest.max(room) & some;
        unit = unit.select(on_grid, whole);
        exceeds = !on_grid & some & room.is_above(lowest);
    }
    let mut over = Lanes::ZERO;
    let mut total = align_all(adder, terms, unit, limit, &mut over);
    *bad = *bad | over & !exceeds;
    if exceeds.any() {
        let is_sum = rules.below != Below::OnesComplement
            && rules.value_cut_bits == 0
            && rules.ignored_values.is_none()
            && rules.normalised_fraction_bits.is_none();
        let mut over = Lanes::all(if is_sum { 0 } else { -1 });
        total = odd_sum(adder, terms, unit, limit, &mut over).select(exceeds, total);
        *bad = *bad | over & exceeds;
    }
    if let Some(carry_bits) = rules.carry_bits {
        let width = (of_grid - unit).max(Lanes::ZERO) + Lanes::all(1 + i64::from(carry_bits));
        let wraps = on_grid & Lanes::all(62).is_above(width);
        let up = (Lanes::all(63) - width).max(Lanes::ZERO);
        total = ((total << up) >> up).select(wraps, total);
    }
    let mut negative = total.is_negative();
    let mut magnitude = total.negated(negative);
    let mut lsb = unit;
    if let Some(bits) = rules.normalised_fraction_bits {
        let mut exponent = lsb + magnitude.length() - Lanes::all(1);
        if let Some(floor) = rules.normalised_exponent_floor {
            exponent = exponent.max(Lanes::all(i64::from(floor)));
        }
        let unit = exponent - Lanes::all(i64::from(bits));
        let cuts = unit.is_above(lsb) & !magnitude.is_zero();
        let mut over = Lanes::ZERO;
        let cut = align((negative, magnitude, lsb), unit, rules.normalised_below, 62, &mut over);
        *bad = *bad | over & cuts;
        negative = cut.is_negative().select(cuts, negative);
        magnitude = cut.negated(cut.is_negative()).select(cuts, magnitude);
        lsb = unit.select(cuts, lsb);
    }
    Sum { negative, magnitude, lsb, exponent: of_grid.select(on_grid, highest.of(Class::All)) }
}
