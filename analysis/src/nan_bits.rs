//! Comparison of NaN results: bit for bit, or all NaNs alike.

use std::{fmt, str::FromStr};

use mxprobe_api::{
    Code, Decoded, Device, DeviceInfo, DotOperands, Elements, Error, Flags, Format, FreeOperation, GemmOperands,
    Matrices, Operation, OperationSet, Refusal, Scalar, ScalarFunction, Scalars, Screening, StatusFlags, TileBatch,
    Timing, flags_of, scalars_of,
};
use serde::{Deserialize, Serialize};

/// Which NaN results in d count as equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum NanBits {
    /// NaNs with the same bits.
    #[default]
    Bits,
    /// All NaNs: for units whose NaNs depend on more than the dot, for instance on which of two operands a compiler put
    /// first.
    Any,
}

impl NanBits {
    /// A hint for when only NaNs differ, to be appended to a message.
    pub const HINT: &str = "; NaN alone differ, which `--nan any` counts as the same";

    /// Whether two results of this format count as the same.
    #[must_use]
    pub fn alike(self, format: Format, one: u64, other: u64) -> bool {
        one == other || self == Self::Any && is_nan(format, one) && is_nan(format, other)
    }
}

impl FromStr for NanBits {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "bits" => Ok(Self::Bits),
            "any" => Ok(Self::Any),
            _ => Err(format!("`{text}` is neither `bits` nor `any`")),
        }
    }
}

impl fmt::Display for NanBits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bits => "bits",
            Self::Any => "any",
        })
    }
}

/// Whether these bits of a format are a NaN.
pub fn is_nan(format: Format, bits: u64) -> bool {
    matches!(format.decode(bits), Decoded::Nan { .. })
}

/// A device whose NaNs all have the same bits, those of their format's default NaN.
pub struct OneNan<'a>(pub(super) &'a dyn Device);

impl Device for OneNan<'_> {
    fn info(&self) -> &DeviceInfo {
        self.0.info()
    }

    fn operations(&self) -> &OperationSet {
        self.0.operations()
    }

    fn free_operations(&self) -> &[FreeOperation] {
        self.0.free_operations()
    }

    fn execute(&self, operation: &Operation, batch: &TileBatch) -> Result<Elements, Error> {
        Ok(with_one_nan(self.0.execute(operation, batch)?))
    }

    fn refusals(&self) -> &[Refusal] {
        self.0.refusals()
    }

    fn matrices(&self) -> Option<&dyn Matrices> {
        self.0.matrices().map(|_| self as &dyn Matrices)
    }

    fn scalars(&self) -> Option<&dyn Scalars> {
        self.0.scalars().map(|_| self as &dyn Scalars)
    }

    fn timing(&self) -> Option<&dyn Timing> {
        self.0.timing()
    }

    /// Forwarded unchanged: digests are computed on the device, where NaNs keep their bits.
    fn screening(&self) -> Option<&dyn Screening> {
        self.0.screening()
    }

    fn code(&self) -> Option<&dyn Code> {
        self.0.code()
    }
}

impl Matrices for OneNan<'_> {
    fn multiply(&self, operation: &Operation, operands: &GemmOperands<'_>) -> Result<Option<Elements>, Error> {
        let behind = self.0.matrices().ok_or_else(|| Error::unsupported("it multiplies tile by tile"))?;
        Ok(behind.multiply(operation, operands)?.map(with_one_nan))
    }

    fn dots(&self, operation: &Operation, operands: &DotOperands<'_>) -> Result<Option<Elements>, Error> {
        let behind = self.0.matrices().ok_or_else(|| Error::unsupported("it multiplies tile by tile"))?;
        Ok(behind.dots(operation, operands)?.map(with_one_nan))
    }

    fn has_tiles(&self) -> bool {
        self.0.matrices().is_none_or(|matrices| matrices.has_tiles())
    }

    fn kernel_ns(&self) -> Option<u64> {
        self.0.matrices()?.kernel_ns()
    }
}

impl Scalars for OneNan<'_> {
    fn members(&self) -> &[Scalar] {
        scalars_of(self.0)
    }

    fn call(&self, scalar: &Scalar, function: ScalarFunction, operands: &Elements) -> Result<Elements, Error> {
        let behind = self.0.scalars().ok_or_else(|| Error::unsupported("it has no scalar functions"))?;
        Ok(with_one_nan(behind.call(scalar, function, operands)?))
    }

    fn flags(&self) -> Option<&dyn StatusFlags> {
        self.0.scalars()?.flags().map(|_| self as &dyn StatusFlags)
    }
}

impl StatusFlags for OneNan<'_> {
    fn call_with_flags(
        &self,
        scalar: &Scalar,
        function: ScalarFunction,
        operands: &Elements,
    ) -> Result<(Elements, Vec<Flags>), Error> {
        let behind = flags_of(self.0).ok_or_else(|| Error::unsupported("no flags can be read"))?;
        let (results, flags) = behind.call_with_flags(scalar, function, operands)?;
        Ok((with_one_nan(results), flags))
    }
}

/// Replaces every NaN by the format's default NaN.
fn with_one_nan(mut d: Elements) -> Elements {
    let format = d.format();
    if let Some(nan) = format.nan() {
        for at in 0..d.len() {
            if is_nan(format, d.get(at)) {
                d.set(at, nan);
            }
        }
    }
    d
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_of_one_nan_has_every_ability_of_the_device_behind_it() {
        let able = mxprobe_conformance::able();
        assert_eq!(mxprobe_conformance::dropped(&OneNan(able.as_ref())), <[&str; 0]>::default());
    }

    #[test]
    fn nan_are_alike_if_it_is_asked_for_and_numbers_never() {
        let (one, other, number) = (0x7fc0_0000, 0xffc0_1234, 0x3f80_0000);
        assert!(NanBits::Any.alike(Format::F32, one, other));
        assert!(!NanBits::Bits.alike(Format::F32, one, other));
        assert!(NanBits::Bits.alike(Format::F32, one, one));
        assert!(!NanBits::Any.alike(Format::F32, one, number));
        assert!(!NanBits::Any.alike(Format::F32, 0, 0x8000_0000));
    }
}
