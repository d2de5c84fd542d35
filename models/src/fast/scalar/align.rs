//! Aligning terms in words of fixed width; `None` if they may not fit.

use super::word::{Aligned, NONE, Word, leading};
use crate::adder::{Adder, Below, Class, Exponent};

/// The highest exponents of an addition's terms, by class; `NONE` if all of a class are zero.
#[derive(Clone, Copy)]
pub(super) struct Highest {
    pub(super) products: i32,
    pub(super) sums: i32,
    pub(super) values: i32,
}

impl Default for Highest {
    fn default() -> Self {
        Self { products: NONE, sums: NONE, values: NONE }
    }
}

impl Highest {
    #[inline]
    pub(super) fn of(self, class: Class) -> i32 {
        match class {
            Class::All => self.products.max(self.sums).max(self.values),
            Class::Products => self.products,
            Class::Sums => self.sums,
            Class::Values => self.values,
        }
    }
}

/// The unit and the exponent of the highest grid rule.
pub(super) fn grid<W: Word>(adder: &Adder, terms: &[Aligned<W>], highest: Highest) -> Option<(i32, i32)> {
    let mut grid: Option<(i32, i32)> = None;
    for rule in &adder.grid {
        let exponent = match rule.exponent {
            Exponent::Operands => highest.of(rule.terms),
            Exponent::Leading => {
                let of_class = terms.iter().filter(|term| rule.terms == Class::All || rule.terms == term.class);
                of_class.filter_map(leading).max().unwrap_or(NONE)
            }
        };
        let exponent = exponent.max(rule.exponent_floor.unwrap_or(NONE));
        if exponent != NONE {
            let unit = exponent - rule.fraction_bits;
            grid = Some(grid.map_or((unit, exponent), |best| (best.0.max(unit), best.1.max(exponent))));
        }
    }
    grid
}

/// A term of a sum: whether it is negative, its magnitude, and the place of its lowest bit.
pub(super) type Part<W> = (bool, W, i32);

/// The places of the lowest and the highest bit of terms; `None` if all are zero.
#[inline]
fn span<W: Word>(parts: impl Iterator<Item = Part<W>>) -> Option<(i32, i32)> {
    let (mut lowest, mut highest) = (i32::MAX, NONE);
    for (_, magnitude, lsb) in parts.filter(|(_, magnitude, _)| *magnitude != W::ZERO) {
        lowest = lowest.min(lsb);
        highest = highest.max(lsb + magnitude.length().cast_signed() - 1);
    }
    (highest != NONE).then_some((lowest, highest))
}

/// The position of the bits of a sum without a grid.
pub(super) enum Range {
    /// All of them lie above this bit and fit the word.
    Fits(i32),
    /// They do not fit; the word has room for those above this bit.
    Exceeds(i32),
}

#[inline]
pub(super) fn whole_range<W: Word>(parts: impl Iterator<Item = Part<W>>, limit: u32) -> Range {
    let Some((lowest, highest)) = span(parts) else { return Range::Fits(0) };
    let room = highest - limit.cast_signed() + 1;
    if lowest >= room { Range::Fits(lowest) } else { Range::Exceeds(room) }
}

/// The terms cut at a unit. In one's complement, the units that the signs of the terms add or take away follow them.
#[inline]
pub(super) fn cut_parts<W: Word>(
    terms: &[Aligned<W>],
    unit: i32,
    below: Below,
) -> impl Iterator<Item = Part<W>> + Clone + use<'_, W> {
    let complements = (below == Below::OnesComplement).then(|| {
        let (reference, counts) = signs(terms);
        let odd = terms.iter().filter(|term| counts && term.negative != reference).count();
        (!reference, W::from_u64(odd as u64), unit)
    });
    let cut_one = move |term: &Aligned<W>| {
        if term.lsb >= unit {
            return term.part();
        }
        let down = (unit - term.lsb).cast_unsigned();
        (term.negative, cut(term.negative, term.magnitude, down, below), unit)
    };
    terms.iter().map(cut_one).chain(complements)
}

/// The bits of a magnitude in whole units, and those below the unit.
#[inline]
fn split<W: Word>(magnitude: W, lsb: i32, unit: i32) -> (W, W) {
    if magnitude == W::ZERO {
        return (magnitude, magnitude);
    }
    let shift = lsb - unit;
    if shift >= 0 {
        return (magnitude << shift.cast_unsigned().min(W::BITS - 1), W::ZERO);
    }
    let shift = (-shift).cast_unsigned().min(W::BITS - 1);
    let kept = magnitude >> shift;
    (kept, magnitude - (kept << shift))
}

/// The sum of terms that lie too far apart for the word, in whole units: exact, or a number that every rounding to this
/// many fraction bits rounds as it does the sum; `None` if no such number is known. The largest term has at most `limit`
/// bits above the unit, and `reserve` bits hold four times the number of terms.
///
/// All that lies below the unit is less than one unit a term. Where the whole units are a multiple of those between
/// which a rounding decides, only its sign counts; elsewhere it must not reach such a multiple.
#[inline]
pub(super) fn far_sum<W: Word>(
    parts: impl Iterator<Item = Part<W>> + Clone,
    unit: i32,
    (limit, reserve): (u32, u32),
    fraction_bits: Option<u32>,
) -> Option<W> {
    let (mut total, mut lost, mut top, mut is_negative) = (W::ZERO, 0, NONE, false);
    for (negative, magnitude, lsb) in parts.clone() {
        let (kept, rest) = split(magnitude, lsb, unit);
        total = total + if negative { -kept } else { kept };
        if rest != W::ZERO {
            lost += 1;
            top = top.max(lsb + rest.length().cast_signed() - 1);
            is_negative = negative;
        }
    }
    if lost == 0 {
        return Some(total);
    }
    let lost_terms = W::from_u64(lost);
    if lost > 1 {
        // What was lost, in units as small as the word allows.
        let (mut part, mut has_tail) = (W::ZERO, false);
        for (negative, magnitude, lsb) in parts {
            let (_, rest) = split(magnitude, lsb, unit);
            let (kept, tail) = split(rest, lsb, top - limit.cast_signed() + 1);
            part = part + if negative { -kept } else { kept };
            has_tail |= tail != W::ZERO;
        }
        if part == W::ZERO && !has_tail {
            return Some(total);
        }
        is_negative = part < W::ZERO;
        if has_tail && lost_terms > if is_negative { -part } else { part } {
            return None;
        }
    }
    let length = if total < W::ZERO { -total } else { total }.length();
    let deciding = length.checked_sub(fraction_bits? + 3).filter(|bits| *bits >= reserve)?;
    let low = total - ((total >> deciding) << deciding);
    if low == W::ZERO {
        return Some(if is_negative { total - W::ONE } else { total + W::ONE });
    }
    (low >= lost_terms && low + lost_terms <= W::ONE << deciding).then_some(total)
}

/// The sum of terms cut at the unit.
#[inline]
pub(super) fn plain_sum<W: Word>(terms: &[Aligned<W>], unit: i32, limit: u32) -> Option<W> {
    let mut total = W::ZERO;
    for term in terms {
        let shift = term.lsb - unit;
        let aligned = if shift > 0 {
            if term.magnitude != W::ZERO && term.magnitude.length() + shift.cast_unsigned() > limit {
                return None;
            }
            term.magnitude << shift.cast_unsigned().min(W::BITS - 1)
        } else {
            term.magnitude >> (-shift).cast_unsigned().min(W::BITS - 1)
        };
        if aligned.length() > limit {
            return None;
        }
        total = total + if term.negative { -aligned } else { aligned };
    }
    Some(total)
}

/// For sums in one's complement: whether the adder's value, which is the last term of class `Values`, is negative, and
/// whether the signs of the others count.
#[inline]
fn signs<W: Word>(terms: &[Aligned<W>]) -> (bool, bool) {
    let last = terms.iter().rev().find(|term| term.class == Class::Values);
    (last.is_some_and(|term| term.negative), terms.iter().any(|term| term.magnitude != W::ZERO))
}

#[inline]
pub(super) fn align_all<W: Word>(rules: &Adder, terms: &[Aligned<W>], unit: i32, limit: u32) -> Option<W> {
    let (reference, counts_signs) = if rules.below == Below::OnesComplement { signs(terms) } else { (false, false) };
    let mut total = W::ZERO;
    for term in terms {
        let cut = if term.class == Class::Values { rules.value_cut_bits } else { 0 };
        if term.class == Class::Values
            && let Some(ignored) = rules.ignored_values
            && ignored.unless_grid_at_most.is_none_or(|at_most| unit > at_most)
            && leading(term).is_some_and(|at| at < unit + cut.cast_signed() - ignored.below_bits)
        {
            continue;
        }
        let mut aligned = align(term, unit + cut.cast_signed(), rules.below, limit.saturating_sub(cut))?;
        aligned = aligned << cut.min(W::BITS - 1);
        if counts_signs && term.negative != reference {
            aligned = if reference { aligned + W::ONE } else { aligned - W::ONE };
        }
        total = total + aligned;
    }
    Some(total)
}

/// A magnitude without its lowest bits, which count as the adder has it.
#[inline]
fn cut<W: Word>(negative: bool, magnitude: W, down: u32, below: Below) -> W {
    let kept = magnitude >> down.min(W::BITS - 1);
    if matches!(below, Below::Truncate | Below::OnesComplement) {
        return kept;
    }
    let lost = if down >= W::BITS - 1 { magnitude } else { magnitude - (kept << down) };
    if lost == W::ZERO {
        return kept;
    }
    match below {
        Below::Truncate | Below::OnesComplement => kept,
        Below::Floor => kept + if negative { W::ONE } else { W::ZERO },
        Below::Nearest | Below::NearestAway => {
            // Beyond the word, half a unit is more than any term.
            let up = down < W::BITS - 1 && {
                let half = W::ONE << (down - 1);
                let tied_up = below == Below::NearestAway || kept.is_odd();
                lost > half || (lost == half && tied_up)
            };
            if up { kept + W::ONE } else { kept }
        }
        Below::Sticky => kept.or_one(),
    }
}

/// Aligns a term to a whole number of `2^unit`, if that has at most `limit` bits.
#[inline]
pub(super) fn align<W: Word>(term: &Aligned<W>, unit: i32, below: Below, limit: u32) -> Option<W> {
    if term.magnitude == W::ZERO {
        return Some(W::ZERO);
    }
    let shift = term.lsb - unit;
    let magnitude = if shift >= 0 {
        if term.magnitude.length() + shift.cast_unsigned() > limit {
            return None;
        }
        term.magnitude << shift.cast_unsigned()
    } else {
        cut(term.negative, term.magnitude, (-shift).cast_unsigned(), below)
    };
    (magnitude.length() <= limit).then_some(if term.negative { -magnitude } else { magnitude })
}

#[cfg(test)]
mod tests {
    use dashu_int::{
        IBig, UBig,
        ops::{BitTest, UnsignedAbs},
    };
    use mxprobe_api::Random;

    use super::*;

    /// What decides every rounding to this many fraction bits: the sign, the exponent, the bits down to half a unit in
    /// the last place, and whether there are any below.
    fn decisive(sum: &IBig, lsb: i32, fraction_bits: usize) -> (bool, i64, UBig, bool) {
        let magnitude = sum.clone().unsigned_abs();
        let length = magnitude.bit_len();
        let kept = fraction_bits + 2;
        let (kept, below) = if length > kept {
            let (kept, drop) = (&magnitude >> (length - kept), length - kept);
            (kept.clone(), (kept << drop) != magnitude)
        } else {
            (&magnitude << (kept - length), false)
        };
        (*sum < IBig::ZERO, i64::from(lsb) + i64::try_from(length).unwrap(), kept, below)
    }

    #[test]
    fn sums_of_terms_far_apart_are_rounded_as_the_exact_sum() {
        const LEAST: i32 = -400;
        let (mut random, mut known, mut asked) = (Random(7), 0, 0);
        for _ in 0..200_000 {
            let count = 2 + random.below(5);
            let limit = i64::BITS - (usize::BITS - count.leading_zeros() + 2);
            let fraction_bits = [0, 3, 7, 10, 23][random.below(5)];
            // Exponents in a few clusters, so that terms cancel and meet at every distance.
            let places = [0, random.between(-70, -20), random.between(-160, -50), random.between(-370, -150)];
            let terms: Vec<Aligned<i64>> = (0..count)
                .map(|_| {
                    let significand = [1, 3, 1 << 23, (1 << 24) - 1, (random.bits() & 0xff_ffff).cast_signed()];
                    Aligned {
                        class: Class::Values,
                        negative: random.flip(),
                        magnitude: significand[random.below(5)],
                        lsb: places[random.below(4)] + random.between(-2, 2),
                        exponent: NONE,
                    }
                })
                .collect();
            let parts = terms.iter().map(Aligned::part);
            let Range::Exceeds(unit) = whole_range(parts.clone(), limit) else { continue };
            asked += 1;
            let found = far_sum(parts, unit, (limit, i64::BITS - limit), Some(fraction_bits));
            let Some(found) = found else { continue };
            known += 1;
            let exact = terms.iter().fold(IBig::ZERO, |sum, term| {
                let term_of = IBig::from(term.magnitude) << (term.lsb - LEAST).cast_unsigned() as usize;
                if term.negative { sum - term_of } else { sum + term_of }
            });
            let bits = fraction_bits as usize;
            assert_eq!(
                decisive(&IBig::from(found), unit, bits),
                decisive(&exact, LEAST, bits),
                "{:?}",
                terms.iter().map(|term| (term.negative, term.magnitude, term.lsb)).collect::<Vec<_>>()
            );
        }
        assert!(asked > 100_000 && known * 10 > asked * 9, "{known} of {asked}");
    }
}
