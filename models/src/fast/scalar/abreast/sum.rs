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

/// A magnitude without its lowest bits, which count as the adder has it.
#[inline(always)]
fn cut(negative: Lanes, magnitude: Lanes, down: Lanes, below: Below) -> Lanes {
    let (one, most) = (Lanes::all(1), Lanes::all(63));
    let kept = magnitude >> down.min(most);
    let lost = magnitude - (kept << down.min(most));
    match below {
        Below::Truncate | Below::OnesComplement => kept,
        Below::Floor => kept - (!lost.is_zero() & negative),
        Below::Nearest | Below::NearestAway => {
            let half = one << (down - one).max(Lanes::ZERO).min(most);
            let tied_up = if below == Below::NearestAway { Lanes::all(-1) } else { !(kept & one).is_zero() };
            // Beyond the word, half a unit is more than any term.
            kept - ((lost.is_above(half) | lost.is(half) & tied_up) & most.is_above(down) & !down.is_zero())
        }
        Below::Sticky => kept | !lost.is_zero() & one,
    }
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
    let shift = lsb - unit;
    let (up, down) = (shift.max(Lanes::ZERO), (-shift).max(Lanes::ZERO));
    let kept = cut(negative, magnitude, down, below);
    *bad = *bad | (kept.length() + up).is_above(Lanes::all(limit)) & !magnitude.is_zero();
    (kept << up.min(Lanes::all(63))).negated(negative)
}

/// For sums in one's complement: the sign of the adder's value, which is the last term of class `Values`, and whether the
/// signs of the others count.
#[inline(always)]
fn signs(terms: &[Terms]) -> (Lanes, Lanes) {
    let last = terms.iter().rev().find(|term| term.class == Class::Values);
    let counts = terms.iter().fold(Lanes::ZERO, |any, term| any | !term.magnitude.is_zero());
    (last.map_or(Lanes::ZERO, |term| term.negative), counts)
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
    let (reference, counts) = if ones { signs(terms) } else { (Lanes::ZERO, Lanes::ZERO) };
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

/// The bits of a magnitude in whole units, and those below the unit.
#[inline(always)]
fn split(magnitude: Lanes, lsb: Lanes, unit: Lanes) -> (Lanes, Lanes) {
    let most = Lanes::all(63);
    let shift = lsb - unit;
    let (up, down) = (shift.max(Lanes::ZERO), (-shift).max(Lanes::ZERO));
    let kept = magnitude >> down.min(most);
    (kept << up.min(most), magnitude - (kept << down.min(most)))
}

/// The sum of terms that lie too far apart for the word, and its unit, as [`far_sum`](super::super::align::far_sum)
/// computes them; sets `bad` where they are not known. Terms are cut at `grid`, which is [`NO_EXPONENT`] without one.
#[inline(always)]
fn far_sum(
    adder: &Adding,
    terms: &[Terms],
    grid: Lanes,
    (limit, reserve): (i64, u32),
    bad: &mut Lanes,
) -> (Lanes, Lanes) {
    let (one, none, far) = (Lanes::all(1), Lanes::all(NO_EXPONENT), Lanes::all(i64::from(i32::MAX)));
    let complements = (adder.rules.below == Below::OnesComplement).then(|| {
        let (reference, counts) = signs(terms);
        let odd = terms.iter().fold(Lanes::ZERO, |odd, term| odd - (counts & (term.negative ^ reference)));
        (!reference, odd, grid)
    });
    let of_term = |term: &Terms| {
        let down = (grid - term.lsb).max(Lanes::ZERO);
        (term.negative, cut(term.negative, term.magnitude, down, adder.rules.below), term.lsb + down)
    };
    let numbers = || terms.iter().map(of_term).chain(complements);
    let leading = |magnitude: Lanes, lsb: Lanes| (lsb + magnitude.length() - one).select(!magnitude.is_zero(), none);
    let (mut lowest, mut highest) = (far, none);
    for (_, magnitude, lsb) in numbers() {
        lowest = lowest.min(far.select(magnitude.is_zero(), lsb));
        highest = highest.max(leading(magnitude, lsb));
    }
    let unit = lowest.max(highest - Lanes::all(limit - 1)) & highest.is_above(none);
    let (mut total, mut lost, mut top) = (Lanes::ZERO, Lanes::ZERO, none);
    for (negative, magnitude, lsb) in numbers() {
        let (kept, rest) = split(magnitude, lsb, unit);
        total = total + kept.negated(negative);
        lost = lost - !rest.is_zero();
        top = top.max(leading(rest, lsb));
    }
    // What was lost, in units as small as the word allows.
    let smallest = top - Lanes::all(limit - 1);
    let (mut part, mut tail) = (Lanes::ZERO, Lanes::ZERO);
    if lost.any() {
        for (negative, magnitude, lsb) in numbers() {
            let (_, rest) = split(magnitude, lsb, unit);
            let (kept, beyond) = split(rest, lsb, smallest);
            part = part + kept.negated(negative);
            tail = tail | !beyond.is_zero();
        }
    }
    let is_exact = part.is_zero() & !tail;
    let rounder = adder.float.filter(|_| adder.rules.normalised_fraction_bits.is_none());
    let Some(rounder) = rounder else {
        *bad = *bad | !is_exact;
        return (total, unit);
    };
    let has_sign = !tail | !lost.is_above(part.negated(part.is_negative()));
    let undecided = Lanes::all(i64::from(rounder.encoding.fraction_bits) + 3);
    let deciding = total.negated(total.is_negative()).length() - undecided;
    let is_long = !Lanes::all(i64::from(reserve)).is_above(deciding);
    let whole = one << deciding.max(Lanes::ZERO).min(Lanes::all(62));
    let low = total & (whole - one);
    let is_between = !lost.is_above(low) & !(low + lost).is_above(whole);
    *bad = *bad | !(is_exact | has_sign & is_long & (low.is_zero() | is_between));
    let step = Lanes::all(-1).select(part.is_negative(), one);
    (total + (step & low.is_zero() & !is_exact), unit)
}

/// The sum of a node's terms; sets `bad` where it may not fit a word.
#[inline(always)]
pub(super) fn sum(adder: &Adding, terms: &[Terms], highest: &Highest, reserve: u32, bad: &mut Lanes) -> Sum {
    let rules = &adder.rules;
    let limit = 64 - i64::from(reserve);
    let none = Lanes::all(NO_EXPONENT);
    let (mut unit, of_grid) = grid(adder, terms, highest);
    let on_grid = of_grid.is_above(none);
    let mut far = Lanes::ZERO;
    if (!on_grid).any() {
        let beyond = Lanes::all(i64::from(i32::MAX));
        let (mut lowest, mut top, mut some) = (beyond, none, Lanes::ZERO);
        for term in terms {
            let is = !term.magnitude.is_zero();
            lowest = lowest.min(term.lsb.select(is, beyond));
            top = top.max(term.leading());
            some = some | is;
        }
        let room = top - Lanes::all(limit - 1);
        let whole = lowest.max(room) & some;
        unit = unit.select(on_grid, whole);
        far = !on_grid & some & room.is_above(lowest);
    }
    let mut over = Lanes::ZERO;
    let mut total = align_all(adder, terms, unit, limit, &mut over);
    far = far | over;
    if far.any() {
        let mut over = Lanes::all(-1);
        if rules.cuts_all_alike() {
            let mask = |is: bool| Lanes::all(if is { -1 } else { 0 });
            let (wraps, complements) = (rules.carry_bits.is_some(), rules.below == Below::OnesComplement);
            over = mask(wraps).select(on_grid, mask(complements));
            let grid = unit.select(on_grid, none);
            let (sum, of_sum) = far_sum(adder, terms, grid, (limit, reserve), &mut over);
            total = sum.select(far, total);
            unit = of_sum.select(far, unit);
        }
        *bad = *bad | over & far;
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
