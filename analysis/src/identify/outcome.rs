//! The effort of an identification, and its result.

use std::time::Duration;

use mxprobe_api::OperationId;
use mxprobe_models::{Adder, Flush};

use crate::{
    findings::{Evidence, Finding},
    nan_bits::NanBits,
};

/// The effort of an identification.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// The seed that inputs are drawn from.
    pub seed: u64,
    /// Structured dots of the first round, in addition to the directed ones.
    pub first: usize,
    /// The most dots of one attack on the model found.
    pub attack: usize,
    /// The most rounds after the tree is known.
    pub rounds: usize,
    /// Terms that candidates may add before the unit is reported as not explained. This is a count rather than a time,
    /// so that the result does not depend on how busy the machine is.
    pub terms: u64,
    /// The time limit of the search, however many terms are left.
    pub time: Duration,
    /// The most threads on which candidates are computed. The result does not depend on it.
    pub threads: usize,
    /// Which NaN of the device count as equal. With [`NanBits::Any`] the model has a single NaN, which says nothing
    /// about those of the device and is marked as assumed.
    pub nan: NanBits,
}

impl Default for Effort {
    fn default() -> Self {
        Self {
            seed: 1,
            first: 3_000,
            attack: 50_000,
            rounds: 60,
            terms: 5_200_000_000,
            time: Duration::from_secs(120),
            threads: mxprobe_models::threads(),
            nan: NanBits::Bits,
        }
    }
}

/// The arithmetic of one operation.
#[derive(Clone, Debug)]
pub struct Arithmetic {
    /// The operation.
    pub operation: OperationId,
    /// The tree, as in a model file, over the adders' names.
    pub tree: String,
    /// The adders.
    pub adders: Vec<Adder>,
    /// The operands whose subnormals are read as zero.
    pub flush: Flush,
}

/// The result of identifying one operation.
#[derive(Clone, Debug)]
pub struct Identification {
    /// The operation.
    pub operation: OperationId,
    /// The outcome.
    pub outcome: Outcome,
    /// The order of summation in words, if probes searched for it.
    pub order: Option<String>,
    /// Batches run after the tree was known.
    pub rounds: usize,
    /// Dots run on the device in total.
    pub dots: u64,
    /// Dots on which the final model was compared with the unit.
    pub tested: usize,
    /// Candidates that were tried.
    pub readings: usize,
    /// Inputs that refuted a model found before, so that the search went on.
    pub counterexamples: Vec<Evidence>,
    /// What the probes found on the device; empty if the search ended before them.
    pub findings: Vec<Finding>,
}

/// How an identification ended.
#[allow(clippy::large_enum_variant, reason = "there is one for each operation")]
#[derive(Clone, Debug)]
pub enum Outcome {
    /// A model explains every dot that was run.
    Identified(Arithmetic),
    /// The same dot gives different bits when repeated, next to other dots or at another place.
    Unrepeatable {
        /// The difference, in words.
        what: String,
        /// The dot, and its results.
        evidence: Option<Evidence>,
    },
    /// No model that a model file can express explains every dot.
    Outside {
        /// The simplest dot that the nearest candidate does not explain.
        evidence: Option<Evidence>,
        /// The nearest candidate.
        nearest: Arithmetic,
        /// How many dots it explains.
        explained: usize,
        /// How many dots it was compared on.
        of: usize,
        /// Whether every dot that it does not explain is a NaN with different bits.
        only_nan: bool,
    },
}

impl Identification {
    /// Returns the arithmetic if it was identified.
    #[must_use]
    pub fn arithmetic(&self) -> Option<&Arithmetic> {
        match &self.outcome {
            Outcome::Identified(arithmetic) => Some(arithmetic),
            _ => None,
        }
    }
}
