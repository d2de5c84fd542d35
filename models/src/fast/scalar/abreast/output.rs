//! Rounding sums to the format of their adder, and reading them back for the next one.

use mxprobe_api::{Format, Rounding};

use super::{
    super::output::{Adding, Rounder, infinity},
    lanes::{DOTS, Lanes},
    sum::{NO_EXPONENT, Sum, Terms},
};
use crate::{
    adder::{Class, Output, ZeroSign},
    fast::unpack::{INFINITE, NAN, NEGATIVE, Unpacked, ZERO},
};

/// The bits of a sum, and the sum as the next node reads it.
pub(super) struct Rounded {
    pub(super) bits: Lanes,
    pub(super) read: Terms,
}

/// The bits of infinities, negative ones where the mask holds.
#[inline(always)]
pub(super) fn infinities(format: Format, negative: Lanes) -> Lanes {
    let all = |is_negative| Lanes::all(infinity(format, is_negative).cast_signed());
    all(true).select(negative, all(false))
}

/// Whether a zero sum is −0.
#[inline(always)]
fn zero_is_negative(adder: &Adding, terms: &[Terms]) -> Lanes {
    if adder.rules.zero == ZeroSign::Positive {
        return Lanes::ZERO;
    }
    let (mut all_negative, mut all_positive) = (Lanes::all(-1), Lanes::all(-1));
    for term in terms {
        let is_zero = term.magnitude.is_zero();
        all_negative = all_negative & is_zero & term.negative;
        all_positive = all_positive & is_zero & !term.negative;
    }
    let down = adder.float.is_some_and(|rounder| rounder.rounding == Rounding::Down);
    all_negative | Lanes::all(if down { -1 } else { 0 }) & !all_positive
}

/// Encodes results that are normal numbers; the mask says which are.
#[inline(always)]
fn normal(rounder: &Rounder, sum: &Sum) -> (Lanes, Lanes) {
    let encoding = &rounder.encoding;
    let (one, most) = (Lanes::all(1), Lanes::all(63));
    let fraction_bits = Lanes::all(i64::from(encoding.fraction_bits));
    let length = sum.magnitude.length();
    let biased = sum.lsb + length - one + Lanes::all(i64::from(encoding.bias));
    let over = length - one - fraction_bits;
    let drop = over.max(Lanes::ZERO);
    let kept = sum.magnitude >> drop.min(most);
    let lost = sum.magnitude - (kept << drop.min(most));
    let half = one << (drop - one).max(Lanes::ZERO).min(most);
    let up = match rounder.rounding {
        Rounding::TowardZero => Lanes::ZERO,
        Rounding::NearestEven => {
            (lost.is_above(half) | lost.is(half) & !(kept & one).is_zero()) & drop.is_above(Lanes::ZERO)
        }
        Rounding::Down => sum.negative & !lost.is_zero(),
        Rounding::Up => !sum.negative & !lost.is_zero(),
        Rounding::ToOdd => !lost.is_zero() & (kept & one).is_zero(),
    };
    let significand = (kept << (-over).max(Lanes::ZERO).min(most)) - up;
    // A carry out of the significand raises the exponent by one.
    let least = i64::from(rounder.min_exponent + encoding.bias).max(1);
    let field = ((biased - one).max(Lanes::ZERO) << fraction_bits) + significand;
    let largest = Lanes::all(rounder.largest.cast_signed());
    let is = !sum.magnitude.is_zero()
        & biased.is_above(Lanes::all(least - 1))
        & Lanes::all(1 << encoding.exponent_bits).is_above(biased)
        & !field.is_above(largest);
    (field, is)
}

/// Sums of integers in an integer format: wrapped, or the nearest of its values.
#[inline(always)]
fn whole(format: Format, saturates: bool, sum: &Sum) -> Rounded {
    // Only a signed format has a value below zero.
    let is_signed = format.largest(true) != 0;
    let value = sum.magnitude.negated(sum.negative);
    let within = if saturates {
        let least = if is_signed { Lanes::all(-(1 << (format.bits() - 1))) } else { Lanes::ZERO };
        value.max(least).min(Lanes::all(format.largest(false).cast_signed()))
    } else if is_signed {
        let up = Lanes::all(64 - i64::from(format.bits()));
        value << up >> up
    } else {
        value & Lanes::all(format.mask().cast_signed())
    };
    let negative = within.is_negative();
    let exponent = Lanes::all(NO_EXPONENT) & within.is_zero();
    let magnitude = within.negated(negative);
    let read = Terms { class: Class::Values, negative, magnitude, lsb: Lanes::ZERO, exponent };
    Rounded { bits: within & Lanes::all(format.mask().cast_signed()), read }
}

/// Rounds sums, except for those whose results are known or not asked for. Returns where results are infinite, and where
/// they are NaN.
#[inline(always)]
pub(super) fn rounded(adder: &Adding, terms: &[Terms], sum: Sum, left_out: Lanes) -> (Rounded, (Lanes, Lanes)) {
    let (mut infinite, mut nan) = (Lanes::ZERO, Lanes::ZERO);
    if let Output::Integer { format, saturates } = adder.rules.output {
        return (whole(format, saturates, &sum), (infinite, nan));
    }
    let (Output::Float { .. }, Some(rounder)) = (adder.rules.output, &adder.float) else {
        let Sum { negative, magnitude, lsb, exponent } = sum;
        let read = Terms { class: Class::Sums, negative, magnitude, lsb, exponent };
        return (Rounded { bits: Lanes::ZERO, read }, (infinite, nan));
    };
    let encoding = &rounder.encoding;
    let is_zero = sum.magnitude.is_zero();
    let mut negative = sum.negative;
    if is_zero.any() {
        negative = zero_is_negative(adder, terms).select(is_zero, negative);
    }
    let (field, normal) = normal(rounder, &sum);
    let shown = if encoding.is_signed() { negative } else { Lanes::ZERO };
    let sign = (shown & Lanes::all(1)) << Lanes::all(i64::from(rounder.sign_at));
    let mut bits = field << Lanes::all(i64::from(encoding.unread_bits)) | sign;
    let fraction_bits = Lanes::all(i64::from(encoding.fraction_bits));
    let read_bits = i64::from(adder.fraction_bits);
    let fraction = field & Lanes::all((1 << encoding.fraction_bits) - 1);
    let finer = Lanes::all(read_bits - i64::from(encoding.fraction_bits));
    let exponent = (field >> fraction_bits) - Lanes::all(i64::from(encoding.bias));
    let mut read = Terms {
        class: Class::Values,
        negative: shown,
        magnitude: fraction << finer | Lanes::all(1 << read_bits),
        lsb: exponent - Lanes::all(read_bits),
        exponent,
    };
    let other = !normal & !left_out;
    if other.any() {
        for lane in (0..DOTS).filter(|lane| other.0[*lane] != 0) {
            let negative = negative.0[lane] != 0;
            let (code, number) = if sum.magnitude.0[lane] == 0 {
                adder.zeros[usize::from(negative)]
            } else {
                adder.round_one(negative, sum.magnitude.0[lane], sum.lsb.0[lane])
            };
            bits.0[lane] = code.cast_signed();
            let Unpacked { significand, exponent, kind } = number;
            read.negative.0[lane] = if kind & NEGATIVE != 0 { -1 } else { 0 };
            read.magnitude.0[lane] = significand.cast_signed();
            read.lsb.0[lane] = i64::from(exponent) - read_bits;
            read.exponent.0[lane] = if kind & ZERO != 0 { NO_EXPONENT } else { i64::from(exponent) };
            infinite.0[lane] = -i64::from(kind & INFINITE != 0);
            nan.0[lane] = -i64::from(kind & NAN != 0);
        }
    }
    (Rounded { bits, read }, (infinite, nan))
}
