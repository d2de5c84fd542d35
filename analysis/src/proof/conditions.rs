//! Conditions on the inputs of a question: finite operands, ranges of exponents.

use mxprobe_api::{Decoded, Format, OperationId, Specials};

use super::{integer::Integer, logic::Logic, number::Number, words::Words as _};
use crate::dots::Dot;

/// A range of exponents of the leading bit, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exponents {
    /// The smallest.
    pub low: i32,
    /// The largest.
    pub high: i32,
}

impl std::fmt::Display for Exponents {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}..{}", self.low, self.high)
    }
}

/// The inputs that a question is about.
///
/// A range of exponents contains zeros and the values whose leading bit has an exponent in it, subnormals by their
/// value; it contains neither NaN nor infinities.
///
/// ```
/// use mxprobe_analysis::{dots::Dot, proof::conditions::{Conditions, Exponents}};
///
/// let id = "mma.m16n8k16.f32.f16.f16.f32".parse()?;
/// let conditions = Conditions { a: Some(Exponents { low: -1, high: 1 }), ..Conditions::FINITE };
/// let mut dot = Dot::zeros(&id);
/// assert!(conditions.hold(&id, &dot));
/// dot.a[0] = 0x4400; // 4
/// assert!(!conditions.hold(&id, &dot));
/// # Ok::<(), mxprobe_api::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// Whether operands, c and scales must be neither NaN nor infinite.
    pub finite: bool,
    /// The exponents of each element of A.
    pub a: Option<Exponents>,
    /// The exponents of each element of B.
    pub b: Option<Exponents>,
    /// The exponents of c.
    pub c: Option<Exponents>,
}

impl Conditions {
    /// Every input.
    pub const ANY: Self = Self { finite: false, a: None, b: None, c: None };

    /// Every input without NaN and infinities.
    pub const FINITE: Self = Self { finite: true, ..Self::ANY };

    /// Whether an input is restricted to a range of exponents.
    #[must_use]
    pub fn has_ranges(&self) -> bool {
        [self.a, self.b, self.c].iter().any(Option::is_some)
    }

    /// The ranges, each with the name and the format of its input.
    fn ranges(&self, id: &OperationId) -> [(&'static str, Format, Option<Exponents>); 3] {
        [("a", id.a, self.a), ("b", id.b, self.b), ("c", id.c, self.c)]
    }

    /// Checks that each range contains a value of its input's format.
    ///
    /// # Errors
    /// The range, the format and the exponents that the format has, in words.
    pub fn check(&self, id: &OperationId) -> Result<(), String> {
        for (name, format, range) in self.ranges(id) {
            let Some(range) = range else { continue };
            if range.low > range.high {
                return Err(format!("{name}={range}: the first exponent is above the last"));
            }
            let (low, high) = exponents(format);
            if range.high < low || range.low > high {
                return Err(format!(
                    "{name}={range}: no value of {format} has such an exponent; its exponents are {low}..{high}"
                ));
            }
        }
        Ok(())
    }

    /// Whether a dot meets the conditions.
    #[must_use]
    pub fn hold(&self, id: &OperationId, dot: &Dot) -> bool {
        (!self.finite || is_finite(id, dot))
            && holds_all(id.a, self.a, &dot.a)
            && holds_all(id.b, self.b, &dot.b)
            && holds_all(id.c, self.c, &[dot.c])
    }

    /// Moves every value outside its range into it: the exponent by whole lengths of the range, the significand kept as
    /// far as the format holds it there. NaN and infinities become powers of two.
    #[must_use]
    pub fn moved(&self, id: &OperationId, mut dot: Dot) -> Dot {
        let move_all = |format: Format, range: Option<Exponents>, values: &mut [u64]| {
            if let Some(range) = range {
                values.iter_mut().for_each(|bits| *bits = moved(format, range, *bits));
            }
        };
        move_all(id.a, self.a, &mut dot.a);
        move_all(id.b, self.b, &mut dot.b);
        move_all(id.c, self.c, std::slice::from_mut(&mut dot.c));
        dot
    }

    /// The conditions in words: `every finite input with exponents of a in -14..15`.
    #[must_use]
    pub fn words(&self) -> String {
        let mut words =
            if self.finite { "every finite input" } else { "every input, NaN and infinities included" }.to_owned();
        let ranges = [("a", self.a), ("b", self.b), ("c", self.c)];
        let named: Vec<String> =
            ranges.iter().filter_map(|(name, range)| Some(format!("{name} in {}", (*range)?))).collect();
        if !named.is_empty() {
            let joined = if self.finite { " with" } else { ", with" };
            words += &format!("{joined} exponents of {}", named.join(", "));
        }
        words
    }
}

/// The exponents of a format's smallest and largest nonzero finite magnitudes.
fn exponents(format: Format) -> (i32, i32) {
    match format.as_float() {
        Some(float) => float.exponents(),
        None => {
            let largest = [false, true].map(|negative| magnitude(format, format.largest(negative)));
            (0, largest.into_iter().max().unwrap_or(1).max(1).ilog2().cast_signed())
        }
    }
}

/// The magnitude of an integer of a format.
fn magnitude(format: Format, bits: u64) -> u64 {
    match format.decode(bits) {
        Decoded::Finite { significand, exponent, .. } => significand << exponent.max(0),
        _ => 0,
    }
}

/// The exponent of the leading bit; `None` for zero, NaN and infinities.
fn leading(format: Format, bits: u64) -> Option<i32> {
    let Decoded::Finite { significand, exponent, .. } = format.decode(bits) else { return None };
    Some(exponent - format.fraction_bits().cast_signed() + significand.ilog2().cast_signed())
}

fn holds_all(format: Format, range: Option<Exponents>, values: &[u64]) -> bool {
    let holds = |range: Exponents, bits: u64| match leading(format, bits) {
        Some(leading) => (range.low..=range.high).contains(&leading),
        None => matches!(format.decode(bits), Decoded::Zero { .. }),
    };
    range.is_none_or(|range| values.iter().all(|bits| holds(range, *bits)))
}

fn moved(format: Format, range: Exponents, bits: u64) -> u64 {
    if holds_all(format, Some(range), &[bits]) {
        return bits;
    }
    // The part of the range that the format has.
    let (least, most) = exponents(format);
    let (low, high) = (range.low.max(least), range.high.min(most));
    let (negative, significand, from) = match format.decode(bits) {
        Decoded::Finite { negative, significand, .. } => (negative, significand, leading(format, bits).unwrap_or(low)),
        Decoded::Infinity { negative } => (negative, 1, high),
        Decoded::Nan { .. } | Decoded::Zero { .. } => (false, 1, low),
    };
    let to = low + (from - low).rem_euclid(high - low + 1);
    let lsb = to - significand.ilog2().cast_signed();
    format.truncated(negative, significand, lsb)
}

/// Narrows the bounds on a number's exponent to a range, so that circuits built on it are only as wide as needed. The
/// exponent of a value outside the range, or of a zero, may then be anything.
pub(super) fn narrowed<L: Logic>(
    logic: &mut L,
    format: Format,
    range: Option<Exponents>,
    mut number: Number<L::Bit>,
) -> Number<L::Bit> {
    let float = format.as_float().filter(|float| float.specials != Specials::PowerOfTwo);
    let (Some(range), Some(float)) = (range, float) else { return number };
    // Subnormals are aligned by the least exponent of normal values.
    let (low, high) = (range.low.max(float.min_exponent()), range.high.max(float.min_exponent()));
    let (low, high) = (low.min(float.max_exponent()), high.min(float.max_exponent()));
    let exponent = number.finite.exponent.within(logic, low, high);
    number.finite.lsb = exponent.raised(-float.fraction_bits.cast_signed());
    number.finite.exponent = exponent;
    number
}

/// Whether a value is zero or has an exponent in a range.
pub(super) fn within<L: Logic>(logic: &mut L, range: Exponents, number: &Number<L::Bit>) -> L::Bit {
    let leading = number.finite.leading(logic);
    let below = leading.less(logic, &Integer::constant(range.low));
    let above = Integer::constant(range.high).less(logic, &leading);
    let outside = logic.or(below, above);
    let nonzero = logic.any(&number.finite.magnitude);
    let outside = logic.and(outside, nonzero);
    let special = logic.or(number.nan, number.infinite);
    let excluded = logic.or(outside, special);
    logic.not(excluded)
}

/// Whether every operand, c and every scale is neither NaN nor infinite.
#[must_use]
pub fn is_finite(id: &OperationId, dot: &Dot) -> bool {
    let finite =
        |format: Format, bits: &u64| !matches!(format.decode(*bits), Decoded::Nan { .. } | Decoded::Infinity { .. });
    let scales = id.block_scale().zip(dot.scales.as_ref());
    dot.a.iter().all(|bits| finite(id.a, bits))
        && dot.b.iter().all(|bits| finite(id.b, bits))
        && finite(id.c, &dot.c)
        && scales.is_none_or(|(scale, (a, b))| a.iter().chain(b).all(|bits| finite(scale.format, bits)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        dots::draw,
        proof::{logic::Values, number::read},
    };

    const FORMATS: [Format; 7] =
        [Format::F16, Format::BF16, Format::E4M3, Format::E5M2, Format::E2M1, Format::S8, Format::U4];

    fn bits_of(format: Format, bits: u64) -> Vec<bool> {
        (0..format.bits()).map(|place| bits >> place & 1 == 1).collect()
    }

    #[test]
    fn a_range_holds_for_the_same_values_in_formulas_as_in_the_search() {
        for format in FORMATS {
            for range in
                [Exponents { low: -3, high: 2 }, Exponents { low: 0, high: 0 }, Exponents { low: -30, high: -7 }]
            {
                for bits in 0..=format.mask() {
                    let number = read(&mut Values, format, &bits_of(format, bits));
                    let found = within(&mut Values, range, &number);
                    assert_eq!(found, holds_all(format, Some(range), &[bits]), "{format} {bits:#x} {range}");
                }
            }
        }
    }

    #[test]
    fn every_value_is_moved_into_the_range() {
        for format in FORMATS {
            for range in [Exponents { low: -1, high: 2 }, Exponents { low: 1, high: 1 }] {
                for bits in 0..=format.mask() {
                    let to = moved(format, range, bits);
                    assert!(holds_all(format, Some(range), &[to]), "{format} {bits:#x} {range}: {to:#x}");
                }
            }
        }
        let id: OperationId = "mma.m16n8k16.f32.f16.f16.f32".parse().unwrap();
        let conditions = Conditions { c: Some(Exponents { low: -3, high: -2 }), ..Conditions::FINITE };
        for dot in draw(&id, 1, 500) {
            let moved = conditions.moved(&id, dot.clone());
            assert_eq!((&moved.a, &moved.b), (&dot.a, &dot.b));
            assert!(holds_all(id.c, conditions.c, &[moved.c]));
        }
    }

    #[test]
    fn a_range_that_no_value_has_is_refused_with_what_the_format_has() {
        let id: OperationId = "mma.m16n8k16.f32.f16.f16.f32".parse().unwrap();
        let check = |low, high| Conditions { a: Some(Exponents { low, high }), ..Conditions::ANY }.check(&id);
        assert_eq!(check(15, 20), Ok(()));
        assert_eq!(check(-30, -24), Ok(()));
        let none = check(16, 20).unwrap_err();
        assert!(none.contains("a=16..20") && none.contains("-24..15"), "{none}");
        assert!(check(-40, -25).is_err());
        assert!(check(3, 2).unwrap_err().contains("a=3..2"));
        let id: OperationId = "mma.m16n8k32.s32.s8.u8.s32".parse().unwrap();
        let of_b = |low, high| Conditions { b: Some(Exponents { low, high }), ..Conditions::ANY }.check(&id);
        assert_eq!((of_b(7, 9), of_b(8, 9).is_err(), of_b(-3, -1).is_err()), (Ok(()), true, true));
    }
}
