//! The ways in which a printed number is computed, a file each.

mod accumulator;
mod algorithms;
mod dots;
mod finding;
mod format;
mod property;

use mxprobe_api::Error;
use serde::Deserialize;

use super::Target;

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
    /// A property of a unit beside other answers.
    PropertyOf(property::PropertyOf),
    /// Two algorithms over a unit.
    Algorithms(algorithms::Algorithms),
}

/// What was computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Computed {
    /// In words.
    pub text: String,
    /// Whether it is what is printed.
    pub agrees: bool,
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
            Self::PropertyOf(property) => property.compute(target),
            Self::Algorithms(algorithms) => algorithms.compute(target),
        }
    }
}
