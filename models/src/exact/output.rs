//! Rounding a sum to the format of its adder.

use dashu_int::{UBig, ops::BitTest};
use mxprobe_api::{Encoding, FloatEncoding, Format, Rounding, Subnormals};

use super::{
    align::{Aligned, align},
    number::{Finite, Number, Value, read},
};
use crate::adder::{Adder, Below, Output, ZeroSign};

pub(super) fn output(adder: &Adder, terms: &[Aligned], result: Finite) -> Number {
    let is_zero = result.magnitude == UBig::ZERO;
    match adder.output {
        Output::Wide => Number::Wide(Value::Finite(result)),
        Output::Integer { format, saturates } => {
            let bits = integer(format, saturates, &result);
            read(format, bits)
        }
        Output::Float { format, fraction_bits, rounding, overflow, subnormals } => {
            let negative = if is_zero { zero_is_negative(adder, terms, rounding) } else { result.negative };
            let (magnitude, lsb) = narrowed(&result);
            let encoding = cut_encoding(format, fraction_bits);
            let encoded = encoding.encode(negative, magnitude, lsb, rounding, overflow, subnormals);
            let is_zero = encoded.bits & (format.mask() >> 1) == 0;
            let bits = if is_zero && adder.zero == ZeroSign::Positive { 0 } else { encoded.bits };
            read(format, bits)
        }
    }
}

fn zero_is_negative(adder: &Adder, terms: &[Aligned], rounding: Rounding) -> bool {
    if adder.zero == ZeroSign::Positive {
        return false;
    }
    let zeros_of = |negative: bool| {
        terms.iter().all(|aligned| aligned.term.magnitude == UBig::ZERO && aligned.term.negative == negative)
    };
    if zeros_of(true) {
        true
    } else if zeros_of(false) {
        false
    } else {
        rounding == Rounding::Down
    }
}

/// The format with its lowest fraction bits unread.
pub(crate) fn cut_encoding(format: Format, fraction_bits: u32) -> FloatEncoding {
    let Encoding::Float(encoding) = format.encoding() else { unreachable!("checked when the model was read") };
    let unread_bits = encoding.unread_bits + encoding.fraction_bits - fraction_bits;
    FloatEncoding { fraction_bits, unread_bits, ..encoding }
}

/// The magnitude in 128 bits. A longer one becomes its top 126 bits and a sticky bit for the rest.
fn narrowed(finite: &Finite) -> (u128, i32) {
    let excess = finite.magnitude.bit_len().saturating_sub(126);
    let top = finite.magnitude.clone() >> excess;
    let sticky = top.clone() << excess != finite.magnitude;
    let top = u128::try_from(top).expect("126 bits");
    let excess = i32::try_from(excess).expect("far below 2^31 bits");
    if excess == 0 { (top, finite.lsb) } else { (top << 1 | u128::from(sticky), finite.lsb + excess - 1) }
}

fn integer(format: Format, saturates: bool, result: &Finite) -> u64 {
    // Products and sums of integers have no bits below 1.
    let whole = align(result, 0, Below::Truncate);
    let magnitude = u128::try_from(
        UBig::try_from(if result.negative { -whole.clone() } else { whole.clone() }).unwrap_or(UBig::ZERO),
    )
    .unwrap_or(u128::MAX);
    if saturates {
        let rounding = Rounding::TowardZero;
        format.encode(result.negative, magnitude, 0, rounding, mxprobe_api::Overflow::Saturate, Subnormals::Keep).bits
    } else {
        let wide = if result.negative { magnitude.wrapping_neg() } else { magnitude };
        // Wraps: only the low bits are kept.
        u64::try_from(wide & u128::from(format.mask())).unwrap_or(0)
    }
}
