//! The sum of a node for each dot, as the evaluator of one dot computes it. A dot whose sum may not fit a word is
//! abandoned in its lane.

use super::{
    super::{compiled::Node, output::Adding, word::NONE},
    lanes::{DOTS, Lanes},
};
use crate::{
    adder::{Below, Class, Exponent},
    fast::unpack::{Unpacked, ZERO},
};

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

    /// Where it is the same as another term. The lowest bit of a zero may be anywhere.
    #[inline(always)]
    pub(super) fn is(&self, other: &Self) -> Lanes {
        self.negative.is(other.negative)
            & self.magnitude.is(other.magnitude)
            & (self.lsb.is(other.lsb) | self.magnitude.is_zero())
            & self.exponent.is(other.exponent)
    }

    /// The exponent of the highest bit; [`NO_EXPONENT`] for a zero.
    #[inline(always)]
    fn leading(&self) -> Lanes {
        leading(self.magnitude, self.lsb)
    }

    #[inline(always)]
    fn part(&self) -> Part {
        (self.negative, self.magnitude, self.lsb)
    }

    /// Multiplies by scales.
    #[inline(always)]
    pub(super) fn scale(&mut self, by: &Scales) {
        (self.magnitude, self.lsb) = by.times(self.magnitude, self.lsb);
        let none = Lanes::all(NO_EXPONENT);
        let is_zero = self.exponent.is(none) | by.exponents.is(none);
        self.exponent = none.select(is_zero, self.exponent + by.exponents);
    }
}

/// The product of two scales for each dot.
#[derive(Clone, Copy)]
pub(super) struct Scales {
    significands: Lanes,
    lsb: Lanes,
    /// [`NO_EXPONENT`] for a zero.
    exponents: Lanes,
}

impl Scales {
    pub(super) const ZERO: Self =
        Self { significands: Lanes::ZERO, lsb: Lanes::ZERO, exponents: Lanes([NO_EXPONENT; DOTS]) };

    /// Writes the product of the scales of one dot, which has this many fraction bits.
    #[inline(always)]
    pub(super) fn put(&mut self, lane: usize, scale: &Unpacked, fraction_bits: i32) {
        let exponent = i64::from(scale.exponent);
        self.significands.0[lane] = scale.significand.cast_signed();
        self.lsb.0[lane] = exponent - i64::from(fraction_bits);
        self.exponents.0[lane] = if scale.kind & ZERO != 0 { NO_EXPONENT } else { exponent };
    }

    /// A magnitude and the place of its lowest bit, multiplied by the scales.
    #[inline(always)]
    fn times(&self, magnitude: Lanes, lsb: Lanes) -> (Lanes, Lanes) {
        (magnitude.times(self.significands), lsb + self.lsb)
    }
}

/// A term of a sum: whether it is negative, its magnitude, and the place of its lowest bit.
pub(super) type Part = (Lanes, Lanes, Lanes);

#[inline(always)]
fn leading(magnitude: Lanes, lsb: Lanes) -> Lanes {
    let leading = lsb + magnitude.length() - Lanes::all(1);
    Lanes::all(NO_EXPONENT).select(magnitude.is_zero(), leading)
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
    let (mut last, mut counts) = (Lanes::ZERO, Lanes::ZERO);
    for term in terms {
        if term.class == Class::Values {
            last = term.negative;
        }
        counts = counts | !term.magnitude.is_zero();
    }
    (last, counts)
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

/// The lowest and the highest bits of terms.
struct Range {
    lowest: Lanes,
    highest: Lanes,
}

impl Range {
    const FAR: Lanes = Lanes::all(i32::MAX as i64);
    const NONE: Self = Self { lowest: Self::FAR, highest: Lanes::all(NO_EXPONENT) };

    #[inline(always)]
    fn join(&mut self, magnitude: Lanes, lsb: Lanes) {
        self.lowest = self.lowest.min(Self::FAR.select(magnitude.is_zero(), lsb));
        self.highest = self.highest.max(leading(magnitude, lsb));
    }

    /// The place of the lowest bit that fits a word with all above it, or of the lowest bit of all; 0 if all terms are zero.
    /// The mask says where some bits lie below it.
    #[inline(always)]
    fn whole(&self, limit: i64) -> (Lanes, Lanes) {
        let some = self.highest.is_above(Lanes::all(NO_EXPONENT));
        let room = self.highest - Lanes::all(limit - 1);
        (self.lowest.max(room) & some, room.is_above(self.lowest) & some)
    }
}

/// Writes the terms cut at a unit, which is [`NO_EXPONENT`] without a grid. In one's complement, the units that the signs of
/// the terms add or take away follow them.
#[inline(always)]
fn cut_parts<'p>(terms: &[Terms], unit: Lanes, below: Below, parts: &'p mut [Part]) -> &'p [Part] {
    let mut count = 0;
    for term in terms {
        let down = (unit - term.lsb).max(Lanes::ZERO);
        parts[count] = (term.negative, cut(term.negative, term.magnitude, down, below), term.lsb + down);
        count += 1;
    }
    if below == Below::OnesComplement {
        let (reference, counts) = signs(terms);
        let mut odd = Lanes::ZERO;
        for term in terms {
            odd = odd - (counts & (term.negative ^ reference));
        }
        parts[count] = (!reference, odd, unit);
        count += 1;
    }
    &parts[..count]
}

/// Writes the terms as they are.
#[inline(always)]
fn whole_parts<'p>(terms: &[Terms], parts: &'p mut [Part]) -> &'p [Part] {
    for (at, term) in terms.iter().enumerate() {
        parts[at] = term.part();
    }
    &parts[..terms.len()]
}

/// The sum of what terms have in whole units, how many have more than that, and the sign of the last of these.
#[inline(always)]
fn sum_of_cut(parts: &[Part], unit: Lanes) -> (Lanes, Lanes, Lanes) {
    let (mut total, mut lost, mut negative) = (Lanes::ZERO, Lanes::ZERO, Lanes::ZERO);
    for (is_negative, magnitude, lsb) in parts {
        let (kept, rest) = split(*magnitude, *lsb, unit);
        let is_cut = !rest.is_zero();
        total = total + kept.negated(*is_negative);
        lost = lost - is_cut;
        negative = is_negative.select(is_cut, negative);
    }
    (total, lost, negative)
}

/// The sum of terms that lie too far apart for the word, in half units: what one of them has below a unit counts as half
/// of one. Sets `bad` where several have some.
#[inline(always)]
fn sum_to_half_units(parts: &[Part], unit: Lanes, bad: &mut Lanes) -> Lanes {
    let one = Lanes::all(1);
    let (total, lost, negative) = sum_of_cut(parts, unit);
    *bad = *bad | lost.is_above(one);
    (total << one) + (one.negated(negative) & !lost.is_zero())
}

/// The sum of terms that lie too far apart for the word, in whole units, as [`far_sum`](super::super::align::far_sum)
/// computes it; sets `bad` where it is not known.
#[inline(always)]
fn far_sum(adder: &Adding, parts: &[Part], unit: Lanes, (limit, reserve): (i64, u32), bad: &mut Lanes) -> Lanes {
    let one = Lanes::all(1);
    let (total, lost, mut negative) = sum_of_cut(parts, unit);
    let mut is_exact = lost.is_zero();
    let mut has_sign = Lanes::all(-1);
    if lost.is_above(one).any() {
        // What was lost, in units as small as the word allows.
        let mut top = Lanes::all(NO_EXPONENT);
        for (_, magnitude, lsb) in parts {
            top = top.max(leading(split(*magnitude, *lsb, unit).1, *lsb));
        }
        let smallest = top - Lanes::all(limit - 1);
        let (mut part, mut tail) = (Lanes::ZERO, Lanes::ZERO);
        for (is_negative, magnitude, lsb) in parts {
            let (_, rest) = split(*magnitude, *lsb, unit);
            let (kept, beyond) = split(rest, *lsb, smallest);
            part = part + kept.negated(*is_negative);
            tail = tail | !beyond.is_zero();
        }
        is_exact = part.is_zero() & !tail;
        negative = part.is_negative();
        has_sign = !tail | !lost.is_above(part.negated(negative));
    }
    // What is normalised has to be exact.
    let rounder = adder.float.filter(|_| adder.rules.normalised_fraction_bits.is_none());
    let Some(rounder) = rounder else {
        *bad = *bad | !is_exact;
        return total;
    };
    let undecided = Lanes::all(i64::from(rounder.encoding.fraction_bits) + 3);
    let deciding = total.negated(total.is_negative()).length() - undecided;
    let is_long = !Lanes::all(i64::from(reserve)).is_above(deciding);
    let whole = one << deciding.max(Lanes::ZERO).min(Lanes::all(62));
    let low = total & (whole - one);
    let is_between = !lost.is_above(low) & !(low + lost).is_above(whole);
    *bad = *bad | !(is_exact | has_sign & is_long & (low.is_zero() | is_between));
    let step = Lanes::all(-1).select(negative, one);
    total + (step & low.is_zero() & !is_exact)
}

/// The bits that two scales add to a sum, at most.
const SCALED: i64 = 16;

/// The sum of a node's terms, multiplied by scales if there are any; sets `bad` where it may not fit a word. `room` holds
/// one part more than there are terms.
#[inline(always)]
pub(super) fn sum(
    adder: &Adding,
    terms: &[Terms],
    highest: &Highest,
    node: &Node,
    scales: Option<&Scales>,
    room: &mut [Part],
    bad: &mut Lanes,
) -> Sum {
    let rules = &adder.rules;
    let reserve = node.reserve;
    let limit = 64 - i64::from(reserve);
    let none = Lanes::all(NO_EXPONENT);
    let (mut unit, of_grid) = grid(adder, terms, highest);
    let on_grid = of_grid.is_above(none);
    let mut far = Lanes::ZERO;
    if (!on_grid).any() {
        let mut range = Range::NONE;
        for term in terms {
            range.join(term.magnitude, term.lsb);
        }
        let (whole, exceeds) = range.whole(limit);
        unit = unit.select(on_grid, whole);
        far = exceeds & !on_grid;
    }
    let mut over = Lanes::ZERO;
    let mut total = align_all(adder, terms, unit, limit, &mut over);
    far = far | over;
    if far.any() && (adder.keeps_unit || scales.is_some() || !rules.cuts_all_alike()) {
        *bad = *bad | far;
    } else if far.any() && node.is_cut_later {
        let mut several = Lanes::ZERO;
        let sum = sum_to_half_units(whole_parts(terms, room), unit, &mut several);
        (total, unit) = (sum.select(far, total), (unit - Lanes::all(1)).select(far, unit));
        *bad = *bad | several & far;
    } else if far.any() {
        let mask = |is: bool| Lanes::all(if is { -1 } else { 0 });
        let (wraps, complements) = (rules.carry_bits.is_some(), rules.below == Below::OnesComplement);
        let mut over = mask(wraps).select(on_grid, mask(complements));
        let bits = (limit, reserve);
        if rules.grid.is_empty() {
            let sum = far_sum(adder, whole_parts(terms, room), unit, bits, &mut over);
            total = sum.select(far, total);
        } else {
            let parts = cut_parts(terms, unit.select(on_grid, none), rules.below, room);
            let mut range = Range::NONE;
            for (_, magnitude, lsb) in parts {
                range.join(*magnitude, *lsb);
            }
            let (of_sum, _) = range.whole(limit);
            let sum = far_sum(adder, parts, of_sum, bits, &mut over);
            (total, unit) = (sum.select(far, total), of_sum.select(far, unit));
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
    let mut exponent = of_grid.select(on_grid, highest.of(Class::All));
    if let Some(scales) = scales {
        *bad = *bad | (magnitude.length() + Lanes::all(SCALED)).is_above(Lanes::all(64));
        (magnitude, lsb) = scales.times(magnitude, lsb);
        exponent = none.select(highest.of(Class::All).is(none), scales.exponents);
    }
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
    Sum { negative, magnitude, lsb, exponent }
}
