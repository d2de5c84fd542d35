//! Exact sums of products: no bit of any product is lost.

use std::cmp::Ordering;

use dashu_int::{IBig, UBig, ops::BitTest};
use mxprobe_api::{Decoded, Format, Overflow, Rounding, Subnormals};

/// ±significand · 2^lsb.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Exact {
    significand: IBig,
    lsb: i32,
}

impl Exact {
    pub(super) fn new(significand: IBig, lsb: i32) -> Self {
        Self { significand, lsb }
    }

    pub(super) fn zero() -> Self {
        Self::new(IBig::ZERO, 0)
    }

    /// The exact value of these bits; `None` if they are not finite.
    pub(super) fn of_bits(format: Format, bits: u64) -> Option<Self> {
        match format.decode(bits) {
            Decoded::Nan { .. } | Decoded::Infinity { .. } => None,
            Decoded::Zero { .. } => Some(Self::zero()),
            Decoded::Finite { negative, significand, exponent } => {
                let magnitude = IBig::from(significand);
                let significand = if negative { -magnitude } else { magnitude };
                Some(Self::new(significand, exponent - format.fraction_bits().cast_signed()))
            }
        }
    }

    /// The exact value of a finite f64.
    pub(super) fn of(value: f64) -> Self {
        Self::of_bits(Format::F64, value.to_bits()).expect("a bound is finite where it is used")
    }

    pub(super) fn is_zero(&self) -> bool {
        self.significand == IBig::ZERO
    }

    /// ⌊log2 |x|⌋; `None` for 0.
    pub(super) fn exponent(&self) -> Option<i32> {
        let (_, magnitude) = self.significand.clone().into_parts();
        let length = i32::try_from(magnitude.bit_len()).expect("far below 2^31 bits");
        (length > 0).then(|| self.lsb + length - 1)
    }

    /// Multiplies by 2^by.
    pub(super) fn scaled(&self, by: i32) -> Self {
        Self::new(self.significand.clone(), self.lsb + by)
    }

    pub(super) fn times(&self, other: &Self) -> Self {
        Self::new(&self.significand * &other.significand, self.lsb + other.lsb)
    }

    fn at(&self, lsb: i32) -> IBig {
        self.significand.clone() << usize::try_from(self.lsb - lsb).expect("the lower of two places")
    }

    pub(super) fn plus(&self, other: &Self) -> Self {
        if self.is_zero() {
            return other.clone();
        }
        if other.is_zero() {
            return self.clone();
        }
        let lsb = self.lsb.min(other.lsb);
        Self::new(self.at(lsb) + other.at(lsb), lsb)
    }

    pub(super) fn minus(&self, other: &Self) -> Self {
        self.plus(&Self::new(-other.significand.clone(), other.lsb))
    }

    /// Rounds into a format; out-of-range values overflow as IEEE 754 prescribes for this rounding direction.
    pub(super) fn rounded(&self, format: Format, rounding: Rounding) -> u64 {
        let (sign, magnitude) = self.significand.clone().into_parts();
        let excess = magnitude.bit_len().saturating_sub(126);
        let top = magnitude.clone() >> excess;
        let sticky = top.clone() << excess != magnitude;
        let top = u128::try_from(top).expect("126 bits");
        let shift = i32::try_from(excess).expect("far below 2^31 bits");
        let (top, lsb) =
            if excess == 0 { (top, self.lsb) } else { (top << 1 | u128::from(sticky), self.lsb + shift - 1) };
        let negative = sign == dashu_int::Sign::Negative;
        format.encode(negative, top, lsb, rounding, Overflow::Ieee, Subnormals::Keep).bits
    }

    /// The lowest bits of an integer, in two's complement.
    pub(super) fn wrapped(&self, bits: u32) -> u64 {
        let modulus = IBig::ONE << bits as usize;
        let rest = self.at(self.lsb.min(0)) % &modulus;
        let rest = if rest < IBig::ZERO { rest + modulus } else { rest };
        u64::try_from(rest).expect("fewer bits than a word has")
    }

    /// The nearest f64.
    pub(super) fn to_f64(&self) -> f64 {
        f64::from_bits(self.rounded(Format::F64, Rounding::NearestEven))
    }
}

impl PartialOrd for Exact {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Exact {
    fn cmp(&self, other: &Self) -> Ordering {
        self.minus(other).significand.cmp(&IBig::ZERO)
    }
}

/// The sum of many magnitudes, digit by digit; carries are propagated only when it is read.
pub(super) struct Sum {
    digits: Vec<u64>,
    /// The place of the lowest digit's lowest bit.
    lsb: i32,
}

/// Bits of a digit. Digits are stored in words twice as wide, so that 2^32 magnitudes can be added before a carry is
/// lost.
const DIGIT: i32 = 32;

impl Sum {
    /// An empty sum for magnitudes with bits from 2^lowest to below 2^highest.
    pub(super) fn new(lowest: i32, highest: i32) -> Self {
        let digits = usize::try_from((highest - lowest) / DIGIT).expect("the range of two formats") + 6;
        Self { digits: vec![0; digits], lsb: lowest }
    }

    pub(super) fn clear(&mut self) {
        self.digits.fill(0);
    }

    /// Adds magnitude · 2^lsb.
    #[expect(clippy::cast_possible_truncation, reason = "the digit is masked")]
    pub(super) fn add(&mut self, magnitude: u128, lsb: i32) {
        let at = lsb - self.lsb;
        let (first, shift) = ((at / DIGIT).unsigned_abs() as usize, at % DIGIT);
        let mask = u128::from(u32::MAX);
        let halves = [magnitude & u128::from(u64::MAX), magnitude >> 64];
        for (half, first) in halves.into_iter().zip([first, first + 2]) {
            if half != 0 {
                let shifted = half << shift;
                for (digit, part) in self.digits[first..].iter_mut().zip(0..3) {
                    *digit += (shifted >> (32 * part) & mask) as u64;
                }
            }
        }
    }

    /// The sum so far.
    #[expect(clippy::cast_possible_truncation, reason = "the carry is propagated")]
    pub(super) fn value(&self) -> Exact {
        let mut bytes = Vec::with_capacity(self.digits.len() * 4 + 8);
        let mut carry = 0u64;
        for digit in &self.digits {
            let sum = digit + carry;
            bytes.extend_from_slice(&(sum as u32).to_le_bytes());
            carry = sum >> 32;
        }
        bytes.extend_from_slice(&carry.to_le_bytes());
        Exact::new(IBig::from(UBig::from_le_bytes(&bytes)), self.lsb)
    }
}
