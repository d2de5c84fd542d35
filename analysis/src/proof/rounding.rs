//! Normalisation and rounding over any logic.

use mxprobe_api::{Encoding, FloatEncoding, Format, Overflow, Rounding, Specials, Subnormals};
use mxprobe_models::Below;

use super::{
    alignment::below,
    integer::Integer,
    logic::Logic,
    number::{Finite, length},
    words::{Word, Words},
};

/// The exponent of a magnitude far beyond the range of every format.
const BEYOND: i32 = 20_000;

/// The format and the rules that a sum is rounded with.
pub(super) struct Cut {
    pub format: Format,
    pub fraction_bits: u32,
    pub rounding: Rounding,
    pub overflow: Overflow,
    pub subnormals: Subnormals,
}

/// A magnitude in a register whose top bit has a known exponent.
struct Positioned<B> {
    register: Word<B>,
    /// The exponent of the register's top bit: that of the highest bit set, or the floor if it is greater.
    top: Integer<B>,
}

/// Shifts a magnitude so that its highest bit, or a place above it if that bit is below `floor`, is at the top of a
/// register of at least `bits` bits.
fn positioned<L: Logic>(logic: &mut L, finite: &Finite<L::Bit>, floor: Option<i32>, bits: usize) -> Positioned<L::Bit> {
    let below = bits.saturating_sub(finite.magnitude.len());
    let magnitude = logic.raised(&finite.magnitude, below);
    let lsb = finite.lsb.raised(-i32::try_from(below).unwrap_or(0));
    let above = floor.map_or(0, |floor| usize::try_from(floor - (lsb.low + length(&magnitude) - 1)).unwrap_or(0));
    let width = magnitude.len() + above;
    let zeros = logic.leading_zeros(&magnitude);
    let above_bits = i32::try_from(above).unwrap_or(0);
    let mut amount = Integer::new(logic, 0, length(&magnitude) - 1, &zeros).raised(above_bits);
    let register = logic.resized(&magnitude, width);
    let top = lsb.raised(length(&register) - 1);
    if let Some(floor) = floor {
        amount = amount.min(logic, &top.raised(-floor));
    }
    let by = amount.above(logic, 0);
    let register = logic.shifted_left(&register, &by);
    let top = top.minus(logic, &amount);
    let least = floor.map_or(lsb.low, |floor| floor.max(lsb.low));
    let most = lsb.high + length(&magnitude) - 1;
    let top = top.within(logic, least, floor.map_or(most, |floor| floor.max(most)));
    Positioned { register, top }
}

/// The bits of a value after one rounding; `zero_negative` is the sign of an exact zero.
pub(super) fn round<L: Logic>(logic: &mut L, cut: &Cut, value: &Finite<L::Bit>, zero_negative: L::Bit) -> Word<L::Bit> {
    let encoding = cut_encoding(cut.format, cut.fraction_bits);
    let fraction_bits = encoding.fraction_bits as usize;
    let least = encoding.min_exponent();
    let nonzero = logic.any(&value.magnitude);
    let negative = logic.choose(nonzero, value.negative, zero_negative);
    let Positioned { register, top } = positioned(logic, value, Some(least), fraction_bits + 4);
    let lowest = register.len() - 1 - fraction_bits;
    let kept = &register[lowest..];
    let lost = logic.any(&register[..lowest - 1]);
    let up = rounds_up(logic, cut.rounding, negative, kept[0], register[lowest - 1], lost);
    let rounded = logic.resized(kept, fraction_bits + 2);
    let rounded = logic.increased(&rounded, up);
    // The exponent field is the distance to the smallest exponent, plus one if the leading bit is set: that bit is
    // added together with the significand, and so is a carry out of it.
    let distance = top.above(logic, least);
    let field_bits = distance.len() + fraction_bits + 2;
    let distance = logic.raised(&distance, fraction_bits);
    let field = logic.plus(&distance, &rounded, field_bits);
    let field = logic.where_set(nonzero, &field);

    let width = cut.format.bits() as usize;
    let beyond = |negative: bool| encoding.encode(negative, 1, BEYOND, cut.rounding, cut.overflow, cut.subnormals).bits;
    let largest = {
        let (rounding, overflow) = (Rounding::TowardZero, Overflow::Saturate);
        encoding.encode(false, 1, BEYOND, rounding, overflow, Subnormals::Keep).bits >> encoding.unread_bits
    };
    let largest = logic.number(u128::from(largest), field_bits);
    let overflows = logic.less(&largest, &field);

    let is_tiny = {
        let top_bit = register[register.len() - 1];
        let below = logic.not(top_bit);
        logic.and(below, nonzero)
    };
    let flushed = match cut.subnormals {
        Subnormals::Keep => logic.constant(false),
        Subnormals::FlushBeforeRounding => is_tiny,
        Subnormals::FlushAfterRounding | Subnormals::FlushToPositiveZero => {
            let carries = carries_to_normal(logic, cut.rounding, negative, &register, fraction_bits);
            logic.and_not(is_tiny, carries)
        }
    };
    let field = {
        let kept = logic.not(flushed);
        logic.where_set(kept, &field)
    };
    let negative = match cut.subnormals {
        Subnormals::FlushToPositiveZero => logic.and_not(negative, flushed),
        _ => negative,
    };
    let negative = if encoding.specials == Specials::NegativeZeroNan {
        let any = logic.any(&field);
        logic.and(negative, any)
    } else {
        negative
    };
    let mut bits = logic.resized(&field, (encoding.exponent_bits + encoding.fraction_bits) as usize);
    bits.push(negative);
    let bits = logic.raised(&bits, encoding.unread_bits as usize);
    let bits = logic.resized(&bits, width);
    let (positive_beyond, negative_beyond) =
        (logic.number(u128::from(beyond(false)), width), logic.number(u128::from(beyond(true)), width));
    let beyond = logic.choose_word(value.negative, &negative_beyond, &positive_beyond);
    logic.choose_word(overflows, &beyond, &bits)
}

/// The format with fewer fraction bits, the lowest of which are not read.
fn cut_encoding(format: Format, fraction_bits: u32) -> FloatEncoding {
    let Encoding::Float(encoding) = format.encoding() else { unreachable!("integers are not rounded so") };
    let unread_bits = encoding.unread_bits + encoding.fraction_bits - fraction_bits;
    FloatEncoding { fraction_bits, unread_bits, ..encoding }
}

fn rounds_up<L: Logic>(
    logic: &mut L,
    rounding: Rounding,
    negative: L::Bit,
    odd: L::Bit,
    guard: L::Bit,
    lost: L::Bit,
) -> L::Bit {
    let any = logic.or(guard, lost);
    match rounding {
        Rounding::NearestEven => {
            let more = logic.or(lost, odd);
            logic.and(guard, more)
        }
        Rounding::TowardZero => logic.constant(false),
        Rounding::Down => logic.and(negative, any),
        Rounding::Up => logic.and_not(any, negative),
        Rounding::ToOdd => logic.and_not(any, odd),
    }
}

/// Whether a value just below the smallest normal one becomes normal if it is rounded with an unbounded exponent.
fn carries_to_normal<L: Logic>(
    logic: &mut L,
    rounding: Rounding,
    negative: L::Bit,
    register: &[L::Bit],
    fraction_bits: usize,
) -> L::Bit {
    // One place below the top: with an unbounded exponent, the value keeps one bit more than a subnormal.
    let lowest = register.len() - 2 - fraction_bits;
    let ones = logic.all(&register[lowest..register.len() - 1]);
    let lost = logic.any(&register[..lowest - 1]);
    let odd = logic.constant(true);
    let up = rounds_up(logic, rounding, negative, odd, register[lowest - 1], lost);
    logic.and(ones, up)
}

/// Cuts a value to this many bits after its leading bit, whose exponent counts as at least `floor`.
pub(super) fn cut<L: Logic>(
    logic: &mut L,
    value: &Finite<L::Bit>,
    fraction_bits: u32,
    floor: Option<i32>,
    rule: Below,
) -> Finite<L::Bit> {
    let kept_bits = fraction_bits as usize + 1;
    let below_floor = floor.is_some_and(|floor| floor - fraction_bits.cast_signed() > value.lsb.low);
    if value.magnitude.len() <= kept_bits && !below_floor {
        return value.clone();
    }
    let Positioned { register, top } = positioned(logic, value, floor, kept_bits + 1);
    let lowest = register.len() - kept_bits;
    let lost = logic.any(&register[..lowest - 1]);
    let magnitude = below(logic, rule, value.negative, &register[lowest..], register[lowest - 1], lost);
    Finite { magnitude, lsb: top.raised(-fraction_bits.cast_signed()), ..value.clone() }
}

/// The bits of an integer, clamped to an integer format or wrapped into it.
pub(super) fn round_integer<L: Logic>(
    logic: &mut L,
    format: Format,
    saturates: bool,
    value: &Finite<L::Bit>,
) -> Word<L::Bit> {
    let width = format.bits() as usize;
    let magnitude = logic.resized(&value.magnitude, value.magnitude.len().max(width + 1));
    let wrapped = logic.negated_where(value.negative, &magnitude);
    let wrapped = logic.resized(&wrapped, width);
    if !saturates {
        return wrapped;
    }
    let ends = [false, true].map(|negative| format.largest(negative));
    let limits = [false, true].map(|negative| {
        let end = format.largest(negative);
        // The magnitude of the end of the range on this side.
        u128::from(if negative { end.wrapping_neg() & format.mask() } else { end })
    });
    let [positive, negative] = limits.map(|limit| logic.number(limit, magnitude.len()));
    let limit = logic.choose_word(value.negative, &negative, &positive);
    let beyond = logic.less(&limit, &magnitude);
    let [positive, negative] = ends.map(|end| logic.number(u128::from(end), width));
    let end = logic.choose_word(value.negative, &negative, &positive);
    logic.choose_word(beyond, &end, &wrapped)
}
