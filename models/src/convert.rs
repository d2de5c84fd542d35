//! Converting operands to a format that holds every value of theirs.

use mxprobe_api::{Decoded, Elements, Format, OperationId, Overflow, Rounding, Specials, Subnormals};

use crate::model::Flush;

/// Whether every value of a floating format is one of another, and infinities and NaN have their like there.
#[must_use]
pub fn holds(to: Format, from: Format) -> bool {
    let (Some(into), Some(of)) = (to.as_float(), from.as_float()) else { return false };
    let is_plain = |specials: Specials| !matches!(specials, Specials::PowerOfTwo | Specials::UnsignedAllOnesNan);
    is_plain(into.specials)
        && is_plain(of.specials)
        && into.fraction_bits >= of.fraction_bits
        && into.max_exponent() >= of.max_exponent()
        && into.min_exponent() <= of.min_exponent()
        && (to.nan().is_some() || from.nan().is_none())
        && (to.infinity(false).is_some() || from.infinity(false).is_none())
}

/// The bits of a value in a format that [`holds`] it. A NaN is quieted, or the format's own if either has no payloads.
pub(crate) fn converted(from: Format, bits: u64, to: Format) -> u64 {
    let encode = |negative: bool, significand: u64, lsb: i32| {
        to.encode(negative, u128::from(significand), lsb, Rounding::NearestEven, Overflow::Ieee, Subnormals::Keep).bits
    };
    match from.decode(bits) {
        Decoded::Nan { .. } => quieted(from, bits, to).or(to.nan()).unwrap_or(0),
        Decoded::Infinity { negative } => to.infinity(negative).or(to.nan()).unwrap_or(0),
        Decoded::Zero { negative } => encode(negative, 0, 0),
        Decoded::Finite { negative, significand, exponent } => {
            encode(negative, significand, exponent - from.fraction_bits().cast_signed())
        }
    }
}

/// A NaN in another format: keeps sign and payload, aligns the payload to the top of the fraction and sets the quiet
/// bit. `None` if it is not a NaN or either format has no payloads.
pub(crate) fn quieted(from: Format, bits: u64, to: Format) -> Option<u64> {
    let Decoded::Nan { negative, payload } = from.decode(bits) else { return None };
    quiet(from, negative, payload, to)
}

/// The same, of a NaN's sign and payload.
pub(crate) fn quiet(from: Format, negative: bool, payload: u64, to: Format) -> Option<u64> {
    let encoding = to.as_float()?;
    let ieee = |format: Format| format.infinity(false).is_some();
    let quiet = to.nan().filter(|_| ieee(to) && ieee(from))?;
    let (of, into) = (from.fraction_bits(), encoding.fraction_bits);
    let payload = if into >= of { payload << (into - of) } else { payload >> (of - into) };
    Some(quiet | (payload << encoding.unread_bits) | u64::from(negative) << (to.bits() - 1))
}

/// How one operand is converted: from its format, with subnormals as zeros or not.
#[derive(Clone, Debug)]
pub(crate) struct Conversion {
    from: Format,
    to: Format,
    flush: bool,
    to_positive: bool,
    /// What every code gives, if an element takes one byte.
    codes: Vec<u64>,
}

impl Conversion {
    /// How A and B are converted; `None` if they stay in their formats.
    pub(crate) fn of_operands(id: &OperationId, flush: Flush) -> Option<[Self; 2]> {
        let to = flush.converted?;
        Some([(id.a, flush.a), (id.b, flush.b)].map(|(from, own)| Self::new(from, to, own, flush.to_positive)))
    }

    fn new(from: Format, to: Format, flush: bool, to_positive: bool) -> Self {
        let mut made = Self { from, to, flush, to_positive, codes: Vec::new() };
        if from.storage_bytes() == 1 {
            made.codes = (0..=u64::from(u8::MAX)).map(|code| made.compute(code)).collect();
        }
        made
    }

    fn compute(&self, bits: u64) -> u64 {
        let flushed = match self.from.decode(bits) {
            Decoded::Finite { negative, significand, .. } if significand >> self.from.fraction_bits() == 0 => {
                Some(negative && !self.to_positive)
            }
            _ => None,
        };
        match flushed.filter(|_| self.flush) {
            Some(true) => self.to.negative_zero().unwrap_or(0),
            Some(false) => 0,
            None => converted(self.from, bits, self.to),
        }
    }

    pub(crate) fn bits(&self, bits: u64) -> u64 {
        usize::try_from(bits).ok().and_then(|code| self.codes.get(code).copied()).unwrap_or_else(|| self.compute(bits))
    }

    pub(crate) fn elements(&self, from: &Elements) -> Elements {
        // Most are fp8 that become f16.
        if self.codes.is_empty() || self.to.storage_bytes() != 2 {
            return Elements::from_bits(self.to, from.iter().map(|bits| self.bits(bits)));
        }
        let mut halves = vec![0; 2 * from.len()];
        for (half, code) in halves.as_chunks_mut().0.iter_mut().zip(from.bytes()) {
            let [low, high, ..] = self.codes[usize::from(*code)].to_le_bytes();
            *half = [low, high];
        }
        Elements::from_bytes(self.to, halves).expect("two bytes an element")
    }
}
