//! Additions outside a unit, over whole matrices: native if the processor rounds as the adder does, exact otherwise.

use mxprobe_api::{Decoded, Elements, Encoding, Format, Overflow, Rounding, Subnormals};

use crate::{
    adder::{Adder, Output, ZeroSign},
    exact::{Fused, fuse},
};

/// An adder, and how it is computed.
#[derive(Clone, Debug)]
pub(super) struct Sum {
    adder: Adder,
    native: Native,
}

/// The part of an adder that the processor computes. The rest (NaN, more terms, wider formats) is computed exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Native {
    /// Rounds to f32 as the processor does.
    F32,
    /// Rounds to f64 as the processor does.
    F64,
    /// Rounds to a less precise floating format, from a sum in f64 that was rounded to odd.
    Narrow { format: Format, rounding: Rounding, overflow: Overflow, subnormals: Subnormals },
    /// Adds to s32.
    Integer { saturates: bool },
    /// Computes nothing natively.
    None,
}

/// The operands of one addition of one element.
pub(super) type Terms<'a> = &'a [Fused];

impl Sum {
    pub(super) fn new(adder: &Adder) -> Self {
        let plain = adder.grid.is_empty()
            && adder.ignored_values.is_none()
            && adder.normalised_fraction_bits.is_none()
            && !adder.product_overflow
            && adder.zero == ZeroSign::Ieee;
        let native = match adder.output {
            Output::Float { format, fraction_bits, rounding, overflow, subnormals }
                if plain && fraction_bits == format.fraction_bits() =>
            {
                let nearest = rounding == Rounding::NearestEven;
                let ieee = matches!(overflow, Overflow::Ieee | Overflow::Infinity) && subnormals == Subnormals::Keep;
                match format {
                    Format::F32 if nearest && ieee => Native::F32,
                    Format::F64 if nearest && ieee => Native::F64,
                    _ if format.fraction_bits() <= 23 && rounding != Rounding::Down => {
                        Native::Narrow { format, rounding, overflow, subnormals }
                    }
                    _ => Native::None,
                }
            }
            Output::Integer { format: Format::S32, saturates } if plain => Native::Integer { saturates },
            _ => Native::None,
        };
        Self { adder: adder.clone(), native }
    }

    /// The adder.
    pub(super) fn adder(&self) -> &Adder {
        &self.adder
    }

    /// The format of its sums.
    pub(super) fn format(&self) -> Format {
        self.adder.output_format().expect("checked when the recipe was read")
    }

    /// Computes one sum.
    pub(super) fn of(&self, terms: Terms<'_>) -> u64 {
        self.natively(terms).unwrap_or_else(|| fuse(&self.adder, terms, &mut ()))
    }

    /// Rounds each element.
    pub(super) fn round(&self, elements: &Elements) -> Elements {
        let format = elements.format();
        if format == self.format() && self.native == Native::F32 && !holds_nan(elements) {
            return elements.clone();
        }
        Elements::from_bits(self.format(), elements.iter().map(|bits| self.of(&[Fused((format, bits), None)])))
    }

    /// Adds two matrices element by element.
    pub(super) fn add(&self, one: &Elements, other: &Elements) -> Elements {
        let (left, right) = (one.format(), other.format());
        if self.native == Native::F32 && (left, right) == (Format::F32, Format::F32) {
            return self.add_f32(one, other);
        }
        let each = one.iter().zip(other.iter());
        let sums = each.map(|(one, other)| self.of(&[Fused((left, one), None), Fused((right, other), None)]));
        Elements::from_bits(self.format(), sums)
    }

    /// Adds with the processor's own additions, and substitutes the adder's NaN.
    fn add_f32(&self, one: &Elements, other: &Elements) -> Elements {
        let mut bytes = one.bytes().to_vec();
        let mut nan = false;
        for (sum, term) in bytes.chunks_exact_mut(4).zip(other.bytes().chunks_exact(4)) {
            let read = |bytes: &[u8]| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            let value = read(sum) + read(term);
            nan |= value.is_nan();
            sum.copy_from_slice(&value.to_le_bytes());
        }
        let mut sums = Elements::from_bytes(Format::F32, bytes).expect("whole elements");
        if nan {
            for at in 0..sums.len() {
                let bits = |elements: &Elements| Fused((Format::F32, elements.get(at)), None);
                if is_nan(Format::F32, sums.get(at)) {
                    sums.set(at, fuse(&self.adder, &[bits(one), bits(other)], &mut ()));
                }
            }
        }
        sums
    }

    /// Computes a sum natively, if the processor rounds as the adder does.
    fn natively(&self, terms: Terms<'_>) -> Option<u64> {
        match self.native {
            Native::F32 => {
                let sum = match *terms {
                    [Fused(a, None)] => single(a)?,
                    [Fused(a, None), Fused(b, None)] => single(a)? + single(b)?,
                    [Fused(a, Some(b))] => single(a)? * single(b)?,
                    [Fused(a, Some(b)), Fused(c, None)] | [Fused(c, None), Fused(a, Some(b))] => {
                        single(a)?.mul_add(single(b)?, single(c)?)
                    }
                    _ => return None,
                };
                (!sum.is_nan()).then(|| u64::from(sum.to_bits()))
            }
            Native::F64 => {
                let sum = match *terms {
                    [Fused(a, None)] => double(a)?,
                    [Fused(a, None), Fused(b, None)] => double(a)? + double(b)?,
                    [Fused(a, Some(b))] => double(a)? * double(b)?,
                    [Fused(a, Some(b)), Fused(c, None)] | [Fused(c, None), Fused(a, Some(b))] => {
                        double(a)?.mul_add(double(b)?, double(c)?)
                    }
                    _ => return None,
                };
                (!sum.is_nan()).then(|| sum.to_bits())
            }
            Native::Narrow { format, rounding, overflow, subnormals } => {
                let exact = |Fused(a, b): Fused| {
                    let a = f64::from(single(a)?);
                    Some(match b {
                        None => a,
                        Some(b) => a * f64::from(single(b)?),
                    })
                };
                let sum = match *terms {
                    [a] => exact(a)?,
                    [a, b] => rounded_to_odd(exact(a)?, exact(b)?),
                    _ => return None,
                };
                if !sum.is_finite() {
                    return None;
                }
                let fraction = sum.to_bits() & ((1 << 52) - 1);
                let exponent = i32::try_from(sum.to_bits() >> 52 & 0x7ff).unwrap_or(0);
                let magnitude = if exponent == 0 { fraction } else { fraction | 1 << 52 };
                let lsb = exponent.max(1) - 1075;
                let Encoding::Float(encoding) = format.encoding() else { return None };
                let negative = sum.is_sign_negative();
                Some(encoding.encode(negative, u128::from(magnitude), lsb, rounding, overflow, subnormals).bits)
            }
            Native::Integer { saturates } => {
                let mut sum: i64 = 0;
                for term in terms {
                    let Fused((Format::S32, bits), None) = *term else { return None };
                    // The number is in the low 32 bits.
                    let [a, b, c, d, ..] = bits.to_le_bytes();
                    sum += i64::from(i32::from_le_bytes([a, b, c, d]));
                }
                let sum = if saturates { sum.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) } else { sum };
                Some(sum.cast_unsigned() & Format::S32.mask())
            }
            Native::None => None,
        }
    }
}

/// The value of bits that are exact in f32; `None` for NaN, integers and wider formats.
fn single((format, bits): (Format, u64)) -> Option<f32> {
    let [a, b, c, d, ..] = bits.to_le_bytes();
    let value = match format {
        Format::F32 => f32::from_le_bytes([a, b, c, d]),
        Format::BF16 => f32::from_le_bytes([0, 0, a, b]),
        Format::F64 => return None,
        _ if format.is_integer() => return None,
        #[expect(clippy::cast_possible_truncation, reason = "every other floating format lies within f32")]
        _ => format.to_f64(bits) as f32,
    };
    (!value.is_nan()).then_some(value)
}

/// The value of bits as f64, which is exact; `None` for NaN.
fn double((format, bits): (Format, u64)) -> Option<f64> {
    let value = if format == Format::F64 { f64::from_bits(bits) } else { format.to_f64(bits) };
    (!value.is_nan()).then_some(value)
}

/// a + b, rounded to odd: rounding it again to fewer bits gives the exact sum rounded once.
fn rounded_to_odd(a: f64, b: f64) -> f64 {
    let sum = a + b;
    if !sum.is_finite() {
        return sum;
    }
    // The exact error of the addition (Knuth, TAOCP 4.2.2).
    let part = sum - a;
    let lost = (a - (sum - part)) + (b - part);
    if lost == 0.0 || sum.to_bits() & 1 == 1 {
        return sum;
    }
    if (lost > 0.0) == (sum > 0.0) { f64::from_bits(sum.to_bits() + 1) } else { f64::from_bits(sum.to_bits() - 1) }
}

/// Whether bits are NaN.
fn is_nan(format: Format, bits: u64) -> bool {
    matches!(format.decode(bits), Decoded::Nan { .. })
}

fn holds_nan(elements: &Elements) -> bool {
    elements.iter().any(|bits| is_nan(elements.format(), bits))
}

#[cfg(test)]
mod tests {
    use mxprobe_api::Random;

    use super::*;
    use crate::adder::{NanCause, NanRules};

    /// Compares every natively computed adder with the exact evaluator, on bits of all kinds.
    #[test]
    fn native_sums_are_those_of_the_exact_evaluator() {
        let nan = |invalid: u64| NanRules {
            order: vec![NanCause::Operand, NanCause::Value, NanCause::Invalid],
            operand: Some(invalid),
            value: None,
            invalid,
        };
        let mut random = Random(1);
        let mut compared = 0;
        for format in [Format::F32, Format::F64, Format::BF16, Format::F16, Format::E4M3, Format::E5M2, Format::S32] {
            for rounding in [Rounding::NearestEven, Rounding::TowardZero, Rounding::Up, Rounding::Down, Rounding::ToOdd]
            {
                for overflow in [Overflow::Ieee, Overflow::Saturate] {
                    let output = match Output::in_format(format) {
                        Output::Float { format, fraction_bits, subnormals, .. } => {
                            Output::Float { format, fraction_bits, rounding, overflow, subnormals }
                        }
                        _ => Output::Integer { format, saturates: overflow == Overflow::Saturate },
                    };
                    let sum = Sum::new(&Adder::exact("sum", output, nan(format.nan().unwrap_or(0))));
                    for _ in 0..3000 {
                        let mut drawn = || draw(&mut random, format);
                        let (a, b, c) = (drawn(), drawn(), drawn());
                        let lists: &[&[Fused]] = &[
                            &[Fused(a, None)],
                            &[Fused(a, None), Fused(b, None)],
                            &[Fused(a, Some(b))],
                            &[Fused(a, Some(b)), Fused(c, None)],
                            &[Fused(c, None), Fused(a, Some(b))],
                            &[Fused(a, Some(b)), Fused(c, Some(b))],
                        ];
                        for terms in lists {
                            if let Some(found) = sum.natively(terms) {
                                compared += 1;
                                let exact = fuse(&sum.adder, terms, &mut ());
                                assert_eq!(found, exact, "{format} {rounding:?} {overflow:?} {terms:x?}");
                            }
                        }
                        let (one, other) = (Elements::from_bits(a.0, [a.1]), Elements::from_bits(b.0, [b.1]));
                        let added = sum.add(&one, &other).get(0);
                        assert_eq!(
                            added,
                            fuse(&sum.adder, &[Fused(a, None), Fused(b, None)], &mut ()),
                            "{a:x?} {b:x?}"
                        );
                        assert_eq!(sum.round(&one).get(0), fuse(&sum.adder, &[Fused(a, None)], &mut ()), "{a:x?}");
                    }
                }
            }
        }
        assert!(compared > 500_000, "{compared}");
    }

    /// Draws bits of f32 or of the sum's format: arbitrary ones, small exponents, neighbours of ties, zeros and
    /// infinities.
    fn draw(random: &mut Random, format: Format) -> (Format, u64) {
        if format.is_integer() {
            let bits = random.bits();
            return (format, if bits & 1 == 0 { bits >> 32 } else { 0x7fff_ff00 + (bits >> 56) });
        }
        let format = if format == Format::F64 || random.flip() { format } else { Format::F32 };
        let sign = (random.bits() & 1) << (format.bits() - 1);
        let bits = match random.bits() % 6 {
            0 => 0,
            1 => format.infinity(false).unwrap_or(1),
            2 => random.bits() & format.mask() >> 1,
            3 => format.one() + (random.bits() & 0xff),
            4 => random.bits() % 64,
            _ => format.from_f64((random.bits() >> 50) as f64 / 1024.0),
        };
        (format, bits | sign)
    }
}
