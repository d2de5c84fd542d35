//! The ways to compute a printed number, one file each.

mod accumulator;
mod algorithms;
mod bounds;
mod cosine;
mod digits;
mod dots;
mod errors;
mod finding;
mod flags;
mod format;
mod peak;
mod property;
mod scalar;
mod splitting;
mod ulp;

use mxprobe_api::Error;
use serde::Deserialize;

use super::{computed::Computed, target::Target};

/// The way to compute a printed number.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Check {
    /// Dots, and the results of a unit.
    Dots(dots::Dots),
    /// The finding of a probe.
    Finding(finding::FindingOf),
    /// Integer and fraction bits of the accumulator.
    Accumulator(accumulator::Accumulator),
    /// A property of a number format.
    Format(format::Property),
    /// An error bound of words.
    Bound(bounds::BoundOf),
    /// The length at which two bounds cross.
    BoundCrossing(bounds::Crossing),
    /// Errors of products of drawn matrices.
    Errors(errors::Errors),
    /// The remainders of drawn elements after splitting into words, and the sizes of the words.
    Words(splitting::Splitting),
    /// The products of words that an algorithm takes.
    ProductsOfWords(splitting::Count),
    /// Peaks of GPUs.
    Peak(peak::PeakOf),
    /// Steps of scalar arithmetic.
    Scalar(scalar::Scalar),
    /// The exact sum of products.
    ExactSum(digits::ExactSum),
    /// A number in a format.
    Number(digits::Number),
    /// Steps of decimal arithmetic.
    Decimal(digits::Decimal),
    /// The cosine of an f64.
    Cosine(cosine::Cosine),
    /// Errors of a function in units in the last place.
    Ulp(ulp::Ulp),
    /// Whether status flags can be read.
    StatusFlags(flags::StatusFlags),
    /// A property of a unit, compared with alternatives.
    PropertyOf(property::PropertyOf),
    /// Two algorithms over a unit.
    Algorithms(algorithms::Algorithms),
}

impl Check {
    /// Computes the number.
    ///
    /// # Errors
    /// `Unsupported` if the target cannot answer; otherwise an error in the data, or the errors of the device.
    pub fn compute(&self, target: &Target<'_>) -> Result<Computed, Error> {
        match self {
            Self::Dots(dots) => dots.compute(target),
            Self::Finding(finding) => finding.compute(target),
            Self::Accumulator(accumulator) => accumulator.compute(target),
            Self::Format(property) => property.compute(),
            Self::Bound(bound) => bound.compute(),
            Self::BoundCrossing(crossing) => crossing.compute(),
            Self::Errors(errors) => errors.compute(target),
            Self::Words(words) => words.compute(),
            Self::ProductsOfWords(count) => count.compute(target),
            Self::Peak(peak) => peak.compute(target),
            Self::Scalar(steps) => steps.compute(target),
            Self::ExactSum(sum) => sum.compute(),
            Self::Number(number) => number.compute(),
            Self::Decimal(steps) => steps.compute(),
            Self::Cosine(cosine) => cosine.compute(target),
            Self::Ulp(ulp) => ulp.compute(target),
            Self::StatusFlags(flags) => flags.compute(target),
            Self::PropertyOf(property) => property.compute(target),
            Self::Algorithms(algorithms) => algorithms.compute(target),
        }
    }
}
