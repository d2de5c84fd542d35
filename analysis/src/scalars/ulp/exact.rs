//! The exact value of an elementary function, to 126 bits, for results that f64 cannot judge.
//!
//! The values are fixed-point integers with as many bits as the argument needs: the exponential by its series, the
//! logarithm by the series of artanh, sine and cosine by their series after a reduction with as many bits of π as the
//! argument has before its point.

use std::sync::LazyLock;

use dashu_int::{
    IBig, UBig,
    ops::{BitTest, DivEuclid, RemEuclid, SquareRoot},
};
use mxprobe_api::{Decoded, Elementary, Format, Overflow, Rounding, ScalarFunction, Subnormals};

/// Bits of a value that are kept above the sticky bit.
const KEPT: usize = 126;
/// Bits after the point, in addition to those that a small argument needs.
const PLACES: usize = 256;
/// Bits of the constants: more than the longest reduction needs, that of an f64 near 2^1024.
const MOST: usize = 1600;

/// An exact value that need not be a float: `(2·magnitude + sticky) · 2^exponent`, which can be rounded once to any
/// format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exact {
    /// A number.
    Finite {
        /// The sign.
        negative: bool,
        /// 126 bits and a sticky bit.
        magnitude: u128,
        /// The exponent of the lowest bit.
        exponent: i32,
    },
    /// An infinity as the exact result: the logarithm of zero.
    Infinity {
        /// The sign.
        negative: bool,
    },
    /// An invalid operation, or a NaN argument.
    Nan,
}

impl Exact {
    /// The value rounded to nearest even; `None` for a NaN.
    pub(super) fn rounded(self, format: Format) -> Option<u64> {
        match self {
            Self::Finite { negative, magnitude: 0, .. } if negative => format.negative_zero(),
            Self::Finite { magnitude: 0, .. } => Some(0),
            Self::Finite { negative, magnitude, exponent } => {
                let to_nearest = Rounding::NearestEven;
                Some(format.encode(negative, magnitude, exponent, to_nearest, Overflow::Ieee, Subnormals::Keep).bits)
            }
            Self::Infinity { negative } => format.infinity(negative),
            Self::Nan => None,
        }
    }

    /// The distance of a format's finite number from the exact value, as a multiple of 2^`unit`.
    pub(super) fn distance(self, format: Format, bits: u64, unit: i32) -> Option<f64> {
        let Self::Finite { negative, magnitude, exponent } = self else { return None };
        let (of_bits, significand, lowest) = match format.decode(bits) {
            Decoded::Zero { .. } => (false, 0, exponent),
            Decoded::Finite { negative, significand, exponent } => {
                (negative, significand, exponent - format.fraction_bits().cast_signed())
            }
            _ => return None,
        };
        // Use the finer of the two grids; bits far below the unit do not matter.
        let grid = exponent.min(lowest).max(unit - 400);
        let place = |negative: bool, magnitude: u128, exponent: i32| {
            let value = signed(negative, &UBig::from(magnitude));
            if exponent >= grid { value << whole(exponent - grid) } else { value >> whole(grid - exponent) }
        };
        let difference = place(negative, magnitude, exponent) - place(of_bits, significand.into(), lowest);
        let down = i32::try_from(difference.bit_len()).unwrap_or(i32::MAX).saturating_sub(60).max(0);
        let leading: IBig = difference >> whole(down);
        let leading = i64::try_from(&leading).unwrap_or(i64::MAX);
        #[expect(clippy::cast_precision_loss, reason = "60 bits of an error, of which some digits are shown")]
        let leading = leading.unsigned_abs() as f64;
        Some(leading * 2f64.powi(down + grid - unit))
    }
}

fn whole(count: i32) -> usize {
    usize::try_from(count).unwrap_or(0)
}

fn signed(negative: bool, magnitude: &UBig) -> IBig {
    let value = IBig::from(magnitude.clone());
    if negative { -value } else { value }
}

/// `value · 2^-places`, which is inexact if `sticky`.
fn finite(value: &IBig, places: i32, sticky: bool) -> Exact {
    let negative = *value < IBig::ZERO;
    let magnitude = UBig::try_from(if negative { -value } else { value.clone() }).unwrap_or_default();
    let length = magnitude.bit_len();
    let down = length.saturating_sub(KEPT);
    let kept = &magnitude >> down;
    let sticky = sticky || (&kept << down) != magnitude;
    let kept = u128::try_from(&kept).unwrap_or(0);
    let exponent = i32::try_from(down).unwrap_or(i32::MAX) - places - 1;
    Exact::Finite { negative, magnitude: kept << 1 | u128::from(sticky), exponent }
}

/// The exact value of a function of one operand; `None` if the function is not implemented here.
pub(super) fn exact(function: ScalarFunction, format: Format, bits: u64) -> Option<Exact> {
    let (negative, significand, exponent) = match format.decode(bits) {
        Decoded::Nan { .. } => return Some(Exact::Nan),
        Decoded::Infinity { negative } => return at_infinity(function, negative),
        Decoded::Zero { negative } => return at_zero(function, negative),
        Decoded::Finite { negative, significand, exponent } => (negative, significand, exponent),
    };
    let lowest = exponent - format.fraction_bits().cast_signed();
    let trailing = significand.trailing_zeros();
    let x = Argument { negative, odd: significand >> trailing, lowest: lowest + trailing.cast_signed() };
    Some(match function {
        ScalarFunction::SquareRoot if negative => Exact::Nan,
        ScalarFunction::SquareRoot => x.square_root(),
        ScalarFunction::Reciprocal => x.reciprocal(),
        ScalarFunction::Elementary(function) => x.elementary(function),
        _ => return None,
    })
}

/// The cosine of an f64, rounded to nearest; `None` if the argument is not finite or is zero. With `bits_of_pi`, π is
/// truncated to that many bits before the argument is reduced, as in the x87 instruction FCOS (*specified*: 66 bits,
/// Intel SDM volume 1, 8.3.8).
pub fn cosine(bits: u64, bits_of_pi: Option<usize>) -> Option<u64> {
    let Decoded::Finite { negative, significand, exponent } = Format::F64.decode(bits) else { return None };
    let lowest = exponent - Format::F64.fraction_bits().cast_signed();
    Argument { negative, odd: significand, lowest }.sine(1, bits_of_pi).rounded(Format::F64)
}

const ONE: Exact = Exact::Finite { negative: false, magnitude: 2, exponent: -1 };

fn at_infinity(function: ScalarFunction, negative: bool) -> Option<Exact> {
    use Elementary as E;
    let zero = |negative| Exact::Finite { negative, magnitude: 0, exponent: 0 };
    Some(match function {
        ScalarFunction::SquareRoot if negative => Exact::Nan,
        ScalarFunction::SquareRoot => Exact::Infinity { negative },
        ScalarFunction::Reciprocal => zero(negative),
        ScalarFunction::Elementary(E::Exp | E::Exp2) if negative => zero(false),
        ScalarFunction::Elementary(E::Exp | E::Exp2) => Exact::Infinity { negative },
        ScalarFunction::Elementary(E::Log | E::Log2 | E::ReciprocalSquareRoot) if negative => Exact::Nan,
        ScalarFunction::Elementary(E::Log | E::Log2) => Exact::Infinity { negative },
        ScalarFunction::Elementary(E::ReciprocalSquareRoot) => zero(false),
        ScalarFunction::Elementary(E::Sin | E::Cos) => Exact::Nan,
        ScalarFunction::Elementary(E::Tanh) => Exact::Finite { negative, magnitude: 2, exponent: -1 },
        _ => return None,
    })
}

fn at_zero(function: ScalarFunction, negative: bool) -> Option<Exact> {
    use Elementary as E;
    Some(match function {
        ScalarFunction::SquareRoot | ScalarFunction::Elementary(E::Sin | E::Tanh) => {
            Exact::Finite { negative, magnitude: 0, exponent: 0 }
        }
        ScalarFunction::Reciprocal | ScalarFunction::Elementary(E::ReciprocalSquareRoot) => {
            Exact::Infinity { negative }
        }
        ScalarFunction::Elementary(E::Exp | E::Exp2 | E::Cos) => ONE,
        ScalarFunction::Elementary(E::Log | E::Log2) => Exact::Infinity { negative: true },
        _ => return None,
    })
}

/// A nonzero number, `±odd · 2^lowest`.
struct Argument {
    negative: bool,
    odd: u64,
    lowest: i32,
}

impl Argument {
    /// The exponent of the leading bit.
    fn leading(&self) -> i32 {
        self.lowest + 63 - self.odd.leading_zeros().cast_signed()
    }

    /// The value with `places` bits after the point; lower bits are dropped.
    fn fixed(&self, places: usize) -> IBig {
        let value = signed(self.negative, &UBig::from(self.odd));
        let up = self.lowest + i32::try_from(places).unwrap_or(i32::MAX);
        if up >= 0 { value << whole(up) } else { value >> whole(-up) }
    }

    /// The number of bits after the point that keeps [`PLACES`] bits of a value of the argument's size.
    fn places(&self) -> usize {
        PLACES + whole(-self.leading())
    }

    fn square_root(&self) -> Exact {
        let odd_exponent = self.lowest.rem_euclid(2);
        let radicand = UBig::from(self.odd) << (2 * PLACES + whole(odd_exponent));
        let root = radicand.sqrt();
        let sticky = &root * &root != radicand;
        let places = i32::try_from(PLACES).unwrap_or(i32::MAX) - (self.lowest - odd_exponent) / 2;
        finite(&IBig::from(root), places, sticky)
    }

    fn reciprocal(&self) -> Exact {
        let one = UBig::ONE << (2 * PLACES);
        let odd = UBig::from(self.odd);
        let quotient = &one / &odd;
        let sticky = &quotient * &odd != one;
        finite(&signed(self.negative, &quotient), i32::try_from(2 * PLACES).unwrap_or(i32::MAX) + self.lowest, sticky)
    }

    fn reciprocal_square_root(&self) -> Exact {
        // 1 / √x = √(2^(2P) / odd) · 2^(-P - lowest/2), for an even exponent.
        let odd_exponent = self.lowest.rem_euclid(2);
        let odd = UBig::from(self.odd) << whole(odd_exponent);
        let quotient = (UBig::ONE << (4 * PLACES)) / &odd;
        let root = quotient.sqrt();
        let sticky = self.odd != 1 || odd_exponent != 0;
        let places = i32::try_from(2 * PLACES).unwrap_or(i32::MAX) + (self.lowest - odd_exponent) / 2;
        finite(&IBig::from(root), places, sticky)
    }

    fn elementary(&self, function: Elementary) -> Exact {
        match function {
            Elementary::ReciprocalSquareRoot | Elementary::Log | Elementary::Log2 if self.negative => Exact::Nan,
            Elementary::ReciprocalSquareRoot => self.reciprocal_square_root(),
            Elementary::Exp => self.exp(),
            Elementary::Exp2 => self.exp2(),
            Elementary::Log => finite(&self.log(PLACES), PLACES_I32, self.odd != 1 || self.lowest != 0),
            Elementary::Log2 if self.odd == 1 => finite(&IBig::from(self.lowest), 0, false),
            Elementary::Log2 => {
                let quotient = (self.log(PLACES) << PLACES) / ln2(PLACES);
                finite(&quotient, PLACES_I32, true)
            }
            Elementary::Sin => self.sine(0, None),
            Elementary::Cos => self.sine(1, None),
            Elementary::Tanh => self.tanh(),
        }
    }

    /// Whether the result, or its reciprocal, is beyond every format's range of less than 2^±4096.
    fn is_beyond(&self) -> bool {
        self.leading() > 11
    }

    fn beyond(&self) -> Exact {
        let exponent = if self.negative { -8192 } else { 8192 };
        Exact::Finite { negative: false, magnitude: 3, exponent }
    }

    fn exp(&self) -> Exact {
        if self.is_beyond() {
            return self.beyond();
        }
        let places = self.places();
        let (value, power) = exponential(&self.fixed(places), places);
        finite(&value, i32::try_from(places).unwrap_or(i32::MAX) - power, true)
    }

    fn exp2(&self) -> Exact {
        if self.is_beyond() {
            return self.beyond();
        }
        if self.lowest >= 0 {
            let power = i32::try_from(self.odd << self.lowest).unwrap_or(i32::MAX);
            let power = if self.negative { -power } else { power };
            return finite(&IBig::ONE, -power, false);
        }
        let places = self.places();
        let x: IBig = (self.fixed(places) * ln2(places)) >> places;
        let (value, power) = exponential(&x, places);
        finite(&value, i32::try_from(places).unwrap_or(i32::MAX) - power, true)
    }

    /// The natural logarithm. No relative precision is lost near 1, since an f64 differs from 1 by at least 2^-53.
    fn log(&self, places: usize) -> IBig {
        // odd · 2^-length is in [1/2, 1); double it if it is below √(1/2).
        let length = 64 - self.odd.leading_zeros() as usize;
        let mut value = IBig::from(self.odd) << (places - length);
        let mut power = self.lowest + i32::try_from(length).unwrap_or(0);
        if &value * &value < IBig::ONE << (2 * places - 1) {
            value <<= 1;
            power -= 1;
        }
        let one = IBig::ONE << places;
        let ratio = ((&value - &one) << places) / (&value + &one);
        2 * artanh(&ratio, places) + ln2(places) * power
    }

    /// The sine of the argument plus a number of quarter turns, with π truncated to `bits_of_pi` bits if given.
    fn sine(&self, quarters: i32, bits_of_pi: Option<usize>) -> Exact {
        let places = self.places() + whole(self.leading() + 1);
        let mut half_pi = pi(places) >> 1;
        if let Some(bits) = bits_of_pi {
            // π/2 has one bit before the point.
            let cut = (places + 1).saturating_sub(bits);
            half_pi = (half_pi >> cut) << cut;
        }
        let x = self.fixed(places);
        let turns = nearest(&x, &half_pi);
        let rest = x - &turns * half_pi;
        let quadrant = i32::try_from(&turns.rem_euclid(IBig::from(4))).unwrap_or(0) + quarters;
        let value = if quadrant % 2 == 0 { sine_series(&rest, places) } else { cosine_series(&rest, places) };
        let value = if quadrant & 2 == 0 { value } else { -value };
        finite(&value, i32::try_from(places).unwrap_or(i32::MAX), true)
    }

    fn tanh(&self) -> Exact {
        // Closer to 1 than any format can distinguish.
        if self.leading() > 6 {
            return Exact::Finite { negative: self.negative, magnitude: u128::MAX >> 1, exponent: -127 };
        }
        let places = self.places() + PLACES;
        let (value, power) = exponential(&(self.fixed(places) << 1), places);
        let squared = if power >= 0 { value << whole(power) } else { value >> whole(-power) };
        let one = IBig::ONE << places;
        let quotient = ((&squared - &one) << places) / (&squared + &one);
        finite(&quotient, i32::try_from(places).unwrap_or(i32::MAX), true)
    }
}

const PLACES_I32: i32 = 256;

/// The integer nearest to a quotient; the divisor must be positive.
fn nearest(value: &IBig, divisor: &IBig) -> IBig {
    ((value << 1) + divisor).div_euclid(divisor << 1)
}

/// `e^x` as a number between 0.7 and 1.5 times a power of two.
fn exponential(x: &IBig, places: usize) -> (IBig, i32) {
    /// How often the argument of the series is halved, and its sum is squared in return.
    const HALVED: usize = 16;
    let ln2 = ln2(places);
    let power = nearest(x, &ln2);
    let rest = x - &power * ln2;
    let fine = places + 2 * HALVED;
    let small = rest << HALVED;
    let mut term = IBig::ONE << fine;
    let mut sum = term.clone();
    for count in 1u32.. {
        term = ((term * &small) >> fine) / count;
        if term == IBig::ZERO || term == IBig::NEG_ONE {
            break;
        }
        sum += &term;
    }
    for _ in 0..HALVED {
        sum = (&sum * &sum) >> fine;
    }
    (sum >> (2 * HALVED), i32::try_from(&power).unwrap_or(0))
}

/// `x + x³/3 + x⁵/5 + …`, for |x| < 1/4.
fn artanh(x: &IBig, places: usize) -> IBig {
    let square: IBig = (x * x) >> places;
    let (mut power, mut sum) = (x.clone(), x.clone());
    for odd in (3u32..).step_by(2) {
        power = (power * &square) >> places;
        if power == IBig::ZERO || power == IBig::NEG_ONE {
            return sum;
        }
        sum += &power / odd;
    }
    sum
}

/// `x - x³/6 + …`, for |x| < 1.
fn sine_series(x: &IBig, places: usize) -> IBig {
    alternating(x.clone(), x, places, 1)
}

/// `1 - x²/2 + …`, for |x| < 1.
fn cosine_series(x: &IBig, places: usize) -> IBig {
    alternating(IBig::ONE << places, x, places, 0)
}

/// The sum of a series in which each term is the one before it times `-x² / ((n + 1)(n + 2))`, starting from `n`.
fn alternating(first: IBig, x: &IBig, places: usize, mut n: u32) -> IBig {
    let square: IBig = (x * x) >> places;
    let (mut term, mut sum) = (first.clone(), first);
    loop {
        term = -(((term * &square) >> places) / ((n + 1) * (n + 2)));
        if term == IBig::ZERO || term == IBig::ONE || term == IBig::NEG_ONE {
            return sum;
        }
        sum += &term;
        n += 2;
    }
}

fn constant(value: &IBig, places: usize) -> IBig {
    assert!(places <= MOST, "{places}");
    value >> (MOST + 64 - places)
}

/// ln 2 = 18 artanh(1/26) - 2 artanh(1/4801) + 8 artanh(1/8749).
fn ln2(places: usize) -> IBig {
    static LN2: LazyLock<IBig> = LazyLock::new(|| {
        let of = |divisor: u32| artanh(&((IBig::ONE << (MOST + 64)) / divisor), MOST + 64);
        18 * of(26) - 2 * of(4801) + 8 * of(8749)
    });
    constant(&LN2, places)
}

/// π = 16 arctan(1/5) - 4 arctan(1/239).
fn pi(places: usize) -> IBig {
    static PI: LazyLock<IBig> = LazyLock::new(|| {
        let of = |divisor: u32| -> IBig {
            let mut power = (IBig::ONE << (MOST + 64)) / divisor;
            let mut sum = power.clone();
            for turn in 1u32.. {
                power /= divisor * divisor;
                if power == IBig::ZERO {
                    break;
                }
                let term = &power / (2 * turn + 1);
                if turn % 2 == 1 { sum -= term } else { sum += term }
            }
            sum
        };
        16 * of(5) - 4 * of(239)
    });
    constant(&PI, places)
}
