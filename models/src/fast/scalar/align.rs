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

/// The position of the bits of a sum without a grid.
pub(super) enum Range {
    /// All of them lie above this bit and fit the word.
    Fits(i32),
    /// They do not fit; the word has room for those above this bit.
    Exceeds(i32),
}

#[inline]
pub(super) fn whole_range<W: Word>(terms: &[Aligned<W>], limit: u32) -> Range {
    let (mut lowest, mut highest) = (i32::MAX, NONE);
    for term in terms {
        if let Some(leading) = leading(term) {
            lowest = lowest.min(term.lsb);
            highest = highest.max(leading);
        }
    }
    if lowest == i32::MAX {
        return Range::Fits(0);
    }
    let room = highest - limit.cast_signed() + 1;
    if lowest >= room { Range::Fits(lowest) } else { Range::Exceeds(room) }
}

/// The sum in whole units, with its lowest bit set if anything below was lost; `None` if that cannot be decided.
///
/// `x + odd(y)` is `odd(x + y)` if x is even: the odd neighbour of y, moved by an even number, is the odd neighbour of
/// the sum. So one term may be cut, if the others are multiples of two units.
#[inline]
pub(super) fn odd_sum<W: Word>(terms: &[Aligned<W>], unit: i32, limit: u32) -> Option<W> {
    let mut total = W::ZERO;
    let mut cut = false;
    for term in terms {
        if term.magnitude == W::ZERO {
            continue;
        }
        let shift = term.lsb - unit;
        let magnitude = if shift > 0 {
            if term.magnitude.length() + shift.cast_unsigned() > limit {
                return None;
            }
            term.magnitude << shift.cast_unsigned()
        } else {
            if cut {
                return None;
            }
            cut = true;
            let shift = (-shift).cast_unsigned();
            let kept = term.magnitude >> shift.min(W::BITS - 1);
            let lost = if shift >= W::BITS - 1 { true } else { kept << shift != term.magnitude };
            if lost { kept.or_one() } else { kept }
        };
        total = total + if term.negative { -magnitude } else { magnitude };
    }
    Some(total)
}

#[inline]
pub(super) fn align_all<W: Word>(rules: &Adder, terms: &[Aligned<W>], unit: i32, limit: u32) -> Option<W> {
    // The adder's value is the last term of class `Values`.
    let reference = rules.below == Below::OnesComplement
        && terms.iter().rev().find(|term| term.class == Class::Values).is_some_and(|term| term.negative);
    let counts_signs = rules.below == Below::OnesComplement && terms.iter().any(|term| term.magnitude != W::ZERO);
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

/// Aligns a term to a whole number of `2^unit`, if that has at most `limit` bits.
#[inline]
pub(super) fn align<W: Word>(term: &Aligned<W>, unit: i32, below: Below, limit: u32) -> Option<W> {
    if term.magnitude == W::ZERO {
        return Some(W::ZERO);
    }
    let shift = term.lsb - unit;
    if shift >= 0 {
        if term.magnitude.length() + shift.cast_unsigned() > limit {
            return None;
        }
        let magnitude = term.magnitude << shift.cast_unsigned();
        return Some(if term.negative { -magnitude } else { magnitude });
    }
    let shift = (-shift).cast_unsigned();
    let kept = term.magnitude >> shift.min(W::BITS - 1);
    if kept.length() > limit {
        return None;
    }
    let signed = if term.negative { -kept } else { kept };
    match below {
        Below::Truncate | Below::OnesComplement => return Some(signed),
        _ => {}
    }
    let lost = if shift >= W::BITS - 1 { term.magnitude } else { term.magnitude - (kept << shift) };
    if lost == W::ZERO {
        return Some(signed);
    }
    Some(match below {
        Below::Truncate | Below::OnesComplement => signed,
        Below::Floor => signed - if term.negative { W::ONE } else { W::ZERO },
        Below::Nearest | Below::NearestAway => {
            // Beyond the word, half a unit is more than any term.
            let up = shift < W::BITS - 1 && {
                let half = W::ONE << (shift - 1);
                let tied_up = below == Below::NearestAway || kept.is_odd();
                lost > half || (lost == half && tied_up)
            };
            let kept = if up { kept + W::ONE } else { kept };
            if term.negative { -kept } else { kept }
        }
        Below::Sticky => {
            let kept = kept.or_one();
            if term.negative { -kept } else { kept }
        }
    })
}
