//! The ways in which a printed number is computed, a file each.

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

/// How a number that is printed is computed.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Check {
    /// Dots, and what the unit returns.
    Dots(dots::Dots),
    /// The finding of a probe.
    Finding(finding::FindingOf),
    /// Integer and fraction bits of the accumulator.
    Accumulator(accumulator::Accumulator),
    /// A property of a number format.
    Format(format::Property),
    /// An error bound of words.
    Bound(bounds::BoundOf),
    /// Where two bounds cross.
    BoundCrossing(bounds::Crossing),
    /// Errors of products of drawn matrices.
    Errors(errors::Errors),
    /// What words leave of drawn elements, and how large they are.
    Words(splitting::Splitting),
    /// Products of words that an algorithm takes.
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
    /// A property of a unit beside other answers.
    PropertyOf(property::PropertyOf),
    /// Two algorithms over a unit.
    Algorithms(algorithms::Algorithms),
}

impl Check {
    /// Computes it.
    ///
    /// # Errors
    /// `Unsupported` if who is asked cannot tell; what is wrong with the data; what a device says.
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
