//! Rounding a sum to the format of its adder, and reading it back for the next one.

use std::sync::Arc;

use mxprobe_api::{FloatEncoding, Format, Overflow, Rounding, Subnormals};

use super::word::{Aligned, NONE, Number, Word};
use crate::{
    adder::{Adder, Below, Class, Exponent, NanCause, Output, ZeroSign},
    convert::quiet,
    exact::cut_encoding,
    fast::unpack::{NEGATIVE, Reader, Unpacked, ZERO},
};

/// Why a result is NaN: the first number of each cause, in its format.
#[derive(Clone, Copy, Default)]
pub(super) struct Causes {
    pub(super) operand: Option<(Format, Unpacked)>,
    pub(super) b: Option<(Format, Unpacked)>,
    pub(super) value: Option<(Format, Unpacked)>,
    pub(super) invalid: bool,
}

/// A compiled adder.
#[derive(Clone, Debug)]
pub(super) struct Adding {
    pub(super) rules: Arc<Adder>,
    /// Fraction bits and floor of the only grid rule, if it uses the operand exponents of all terms.
    pub(super) one_grid: Option<(i32, i32)>,
    /// Whether it only aligns to one grid and truncates.
    pub(super) plain: bool,
    /// Whether the place of the lowest bit of its result may count: an adder in one's complement adds units there if it
    /// has no grid.
    pub(super) keeps_unit: bool,
    pub(super) float: Option<Rounder>,
    /// The format in which its result is read back.
    pub(super) format: Format,
    reader: Reader,
    pub(super) fraction_bits: i32,
    /// The bits of a zero sum, +0 and −0, and those bits as read back.
    pub(super) zeros: [(u64, Unpacked); 2],
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Rounder {
    pub(super) encoding: FloatEncoding,
    pub(super) rounding: Rounding,
    pub(super) overflow: Overflow,
    pub(super) subnormals: Subnormals,
    pub(super) min_exponent: i32,
    pub(super) largest: u64,
    pub(super) sign_at: u32,
    pub(super) magnitude_mask: u64,
}

impl Adding {
    /// Compiles adders. Those at the same places as `known` ones of the same rules are not compiled again.
    pub(super) fn of(adders: &[Arc<Adder>], known: &[Arc<Self>]) -> Arc<[Arc<Self>]> {
        let is_any_complement = adders.iter().any(|adder| adder.below == Below::OnesComplement);
        let of = |(at, rules): (usize, &Arc<Adder>)| {
            let keeps_unit = rules.output == Output::Wide && is_any_complement;
            let is_known = |known: &&Arc<Self>| Arc::ptr_eq(&known.rules, rules) && known.keeps_unit == keeps_unit;
            known.get(at).filter(is_known).map_or_else(|| Arc::new(Self::new(rules, keeps_unit)), Arc::clone)
        };
        adders.iter().enumerate().map(of).collect()
    }

    fn new(rules: &Arc<Adder>, keeps_unit: bool) -> Self {
        let float = match rules.output {
            Output::Float { format, fraction_bits, rounding, overflow, subnormals } => {
                let encoding = cut_encoding(format, fraction_bits);
                let largest =
                    encoding.encode(false, 1, 5000, Rounding::TowardZero, Overflow::Saturate, Subnormals::Keep).bits;
                Some(Rounder {
                    encoding,
                    rounding,
                    overflow,
                    subnormals,
                    min_exponent: encoding.min_exponent(),
                    largest: largest >> encoding.unread_bits,
                    sign_at: format.bits() - 1,
                    magnitude_mask: format.mask() >> 1,
                })
            }
            _ => None,
        };
        let format = rules.output_format().filter(|format| !format.is_integer()).unwrap_or(Format::F32);
        let one_grid = match &rules.grid[..] {
            [rule] if rule.terms == Class::All && rule.exponent == Exponent::Operands => {
                Some((rule.fraction_bits, rule.exponent_floor.unwrap_or(NONE)))
            }
            _ => None,
        };
        let plain = rules.below == Below::Truncate && rules.cuts_all_alike();
        let format = rules.output_format().unwrap_or(format);
        let fraction_bits = format.as_float().map_or(0, |encoding| encoding.fraction_bits).cast_signed();
        let reader = Reader::new(format, false, false);
        let zeros = [(0, Unpacked::default()); 2];
        let rules = Arc::clone(rules);
        let mut adding = Self { plain, keeps_unit, one_grid, float, format, reader, fraction_bits, zeros, rules };
        adding.zeros = [false, true].map(|negative| adding.round_one(negative, 0, 0));
        adding
    }

    /// The bits of one sum in the adder's format, and those bits as read back; zeros if the adder does not round to a
    /// format.
    #[inline(never)]
    pub(super) fn round_one(&self, negative: bool, magnitude: i64, lsb: i64) -> (u64, Unpacked) {
        let Some(rounder) = &self.float else { return (0, Unpacked::default()) };
        let lsb = i32::try_from(lsb).unwrap_or(if lsb < 0 { i32::MIN / 2 } else { i32::MAX / 2 });
        let bits = self.encode(rounder, negative, magnitude, lsb);
        (bits, self.reader.read(bits))
    }

    /// Whether its result is the sum of its terms, unrounded.
    pub(super) fn is_exact(&self) -> bool {
        let rules = &self.rules;
        rules.output == Output::Wide
            && rules.grid.is_empty()
            && rules.cuts_all_alike()
            && !self.keeps_unit
            && rules.below != Below::OnesComplement
            && rules.normalised_fraction_bits.is_none()
    }

    /// Reads bits in the adder's format.
    pub(super) fn read(&self, bits: u64) -> Unpacked {
        self.reader.read(bits)
    }

    /// The bits of a sum in the adder's format. A zero has the sign that the adder gives it.
    #[inline]
    fn encode<W: Word>(&self, rounder: &Rounder, negative: bool, magnitude: W, lsb: i32) -> u64 {
        let bits = rounder.encode(negative, magnitude, lsb);
        let positive = self.rules.zero == ZeroSign::Positive && bits & rounder.magnitude_mask == 0;
        if positive { 0 } else { bits }
    }

    /// Writes a sum in the adder's format; for the last node, only its bits.
    #[inline]
    pub(super) fn output<W: Word>(
        &self,
        terms: &[Aligned<W>],
        negative: bool,
        magnitude: W,
        lsb: i32,
        exponent: i32,
        (into, is_last): (&mut Number<W>, bool),
    ) -> Option<()> {
        let bits = match (self.rules.output, &self.float) {
            (Output::Float { .. }, Some(rounder)) => {
                let negative = if magnitude == W::ZERO { self.zero_is_negative(terms) } else { negative };
                self.encode(rounder, negative, magnitude, lsb)
            }
            (Output::Integer { format, saturates }, _) => {
                // Integers have no bits below 1, unless a grid created some.
                if lsb != 0 || magnitude.length() > 127 {
                    return None;
                }
                integer(format, saturates, negative, magnitude)
            }
            _ => {
                // The exact evaluator's zero sums are not negative.
                into.kind = if negative { NEGATIVE } else { 0 } | if magnitude == W::ZERO { ZERO } else { 0 };
                into.wide = true;
                into.magnitude = magnitude;
                into.lsb = lsb;
                into.exponent = exponent;
                into.bits = 0;
                return Some(());
            }
        };
        into.bits = bits;
        if is_last {
            return Some(());
        }
        // Reads the result back for the next node.
        let read = self.reader.read(bits);
        into.kind = read.kind;
        into.wide = false;
        into.magnitude = W::from_u64(read.significand);
        into.lsb = read.exponent - self.fraction_bits;
        into.exponent = if read.kind & ZERO != 0 { NONE } else { read.exponent };
        Some(())
    }

    pub(super) fn zero_is_negative<W: Word>(&self, terms: &[Aligned<W>]) -> bool {
        if self.rules.zero == ZeroSign::Positive {
            return false;
        }
        let zeros_of = |negative: bool| terms.iter().all(|term| term.magnitude == W::ZERO && term.negative == negative);
        if zeros_of(true) {
            true
        } else if zeros_of(false) {
            false
        } else {
            self.float.is_some_and(|rounder| rounder.rounding == Rounding::Down)
        }
    }

    pub(super) fn nan_bits(&self, causes: &Causes) -> u64 {
        let rules = &self.rules.nan;
        let of = |(from, nan): (Format, Unpacked), fixed: Option<u64>| {
            fixed.unwrap_or_else(|| self.quieted(from, nan.kind, nan.significand))
        };
        let first = rules.order.iter().find_map(|cause| match cause {
            NanCause::Operand => causes.operand.map(|nan| of(nan, rules.operand)),
            NanCause::B => causes.b.map(|nan| of(nan, rules.operand)),
            NanCause::Value => causes.value.map(|nan| of(nan, rules.value)),
            NanCause::Invalid => causes.invalid.then_some(rules.invalid),
        });
        first.unwrap_or(rules.invalid)
    }

    /// A NaN in the adder's output format, as [`quiet`] makes it; that of an invalid operation if either format has no
    /// payloads.
    pub(super) fn quieted(&self, from: Format, kind: u32, payload: u64) -> u64 {
        quiet(from, kind & NEGATIVE != 0, payload, self.format).unwrap_or(self.rules.nan.invalid)
    }
}

impl Rounder {
    #[inline]
    fn encode<W: Word>(&self, negative: bool, magnitude: W, lsb: i32) -> u64 {
        let encoding = &self.encoding;
        let length = magnitude.length();
        let leading = lsb + length.cast_signed() - 1;
        if length > 0 && leading >= self.min_exponent && leading + encoding.bias < 1 << encoding.exponent_bits {
            let fraction_bits = encoding.fraction_bits;
            let significand = if length - 1 <= fraction_bits {
                magnitude.low_u64() << (fraction_bits - (length - 1))
            } else {
                let drop = length - 1 - fraction_bits;
                let kept = (magnitude >> drop).low_u64();
                let lost = magnitude - ((magnitude >> drop) << drop);
                let up = match self.rounding {
                    Rounding::TowardZero => false,
                    Rounding::NearestEven => {
                        let half = W::ONE << (drop - 1);
                        lost > half || (lost == half && kept & 1 == 1)
                    }
                    Rounding::Down => negative && lost != W::ZERO,
                    Rounding::Up => !negative && lost != W::ZERO,
                    Rounding::ToOdd => lost != W::ZERO && kept & 1 == 0,
                };
                kept + u64::from(up)
            };
            // A carry out of the significand raises the exponent by one.
            let biased = u64::from((leading + encoding.bias - 1).cast_unsigned());
            let field = (biased << fraction_bits) + significand;
            if field <= self.largest && leading + encoding.bias >= 1 {
                let sign = u64::from(negative && encoding.is_signed()) << self.sign_at;
                return field << encoding.unread_bits | sign;
            }
        }
        // Bits beyond 126 count as one lost bit.
        let beyond = length.saturating_sub(126);
        let kept = magnitude >> beyond;
        let lost = u128::from(beyond > 0 && kept << beyond != magnitude);
        self.encode_any(negative, kept.low_u128() | lost, lsb + beyond.cast_signed())
    }

    #[inline(never)]
    fn encode_any(&self, negative: bool, magnitude: u128, lsb: i32) -> u64 {
        self.encoding.encode(negative, magnitude, lsb, self.rounding, self.overflow, self.subnormals).bits
    }
}

/// The bits that a format has for an infinity among the terms.
pub(super) fn infinity(format: Format, negative: bool) -> u64 {
    format.infinity(negative).or_else(|| format.nan()).unwrap_or_else(|| format.largest(negative))
}

fn integer<W: Word>(format: Format, saturates: bool, negative: bool, magnitude: W) -> u64 {
    let magnitude = magnitude.low_u128();
    if saturates {
        format.encode(negative, magnitude, 0, Rounding::TowardZero, Overflow::Saturate, Subnormals::Keep).bits
    } else {
        let wide = if negative { magnitude.wrapping_neg() } else { magnitude };
        u64::try_from(wide & u128::from(format.mask())).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adder::NanRules;

    #[test]
    fn an_adder_is_compiled_again_if_it_or_what_counts_of_the_others_changed() {
        let wide = Arc::new(Adder::exact("wide", Output::Wide, NanRules::default()));
        let other = |below| Arc::new(Adder { below, ..Adder::exact("other", Output::Wide, NanRules::default()) });
        let first = Adding::of(&[Arc::clone(&wide), other(Below::Truncate)], &[]);
        assert_eq!([&first[0], &first[1]].map(|adding| adding.keeps_unit), [false, false]);

        let same = Adding::of(&[Arc::clone(&wide), other(Below::Truncate)], &first);
        assert!(Arc::ptr_eq(&first[0], &same[0]) && !Arc::ptr_eq(&first[1], &same[1]));

        let complement = Adding::of(&[Arc::clone(&wide), other(Below::OnesComplement)], &first);
        assert_eq!([&complement[0], &complement[1]].map(|adding| adding.keeps_unit), [true, true]);

        let elsewhere = Adding::of(&[other(Below::Truncate), wide], &first);
        assert_eq!([&elsewhere[0], &elsewhere[1]].map(|adding| &*adding.rules.name), ["other", "wide"]);
    }
}
