//! How hard to try, and what was learnt about an operation.

use std::time::Duration;

use mxprobe_api::OperationId;
use mxprobe_models::{Adder, Flush};

use crate::{findings::Evidence, nan_bits::NanBits};

/// How hard to try.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// What inputs are drawn from.
    pub seed: u64,
    /// Structured dots of the first round, beside the directed ones.
    pub first: usize,
    /// Dots of one attack on what was found.
    pub attack: usize,
    /// Rounds after the tree, at the most.
    pub rounds: usize,
    /// Terms that candidates add up before the unit is reported as not explained. A count and no time, so that a busy
    /// machine finds what an idle one finds.
    pub terms: u64,
    /// How long to search, whatever was added up by then.
    pub time: Duration,
    /// Which NaN of the device count as the same. With [`NanBits::Any`] the model has one NaN, which says nothing about the
    /// device's, and is marked as assumed.
    pub nan: NanBits,
}

impl Default for Effort {
    fn default() -> Self {
        Self {
            seed: 1,
            first: 3_000,
            attack: 50_000,
            rounds: 12,
            terms: 1_700_000_000,
            time: Duration::from_secs(120),
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
    /// Whose subnormals are read as zero.
    pub flush: Flush,
}

/// What was learnt about one operation.
#[derive(Clone, Debug)]
pub struct Identification {
    /// The operation.
    pub operation: OperationId,
    /// The outcome.
    pub outcome: Outcome,
    /// The tree in words, where it shows.
    pub order: Option<String>,
    /// Batches asked once the tree was known.
    pub rounds: usize,
    /// Dots asked in all.
    pub dots: u64,
    /// Dots on which the final model was compared with the unit.
    pub tested: usize,
    /// Candidates that were tried.
    pub readings: usize,
    /// Inputs that made the search go on: what had been found until then failed on them.
    pub counterexamples: Vec<Evidence>,
}

/// How an identification ended.
#[allow(clippy::large_enum_variant, reason = "there is one for each operation")]
#[derive(Clone, Debug)]
pub enum Outcome {
    /// A model explains every dot asked.
    Identified(Arithmetic),
    /// The same dot gives other bits when asked again, beside others or elsewhere.
    Unrepeatable {
        /// What differs.
        what: String,
        /// The dot, and what it gave.
        evidence: Option<Evidence>,
    },
    /// Nothing in the family explains every dot.
    Outside {
        /// The simplest dot that the nearest candidate does not explain.
        evidence: Option<Evidence>,
        /// The nearest candidate.
        nearest: Arithmetic,
        /// Dots that it explains, of those asked.
        explained: usize,
        /// Dots that it was compared on.
        of: usize,
        /// Whether each of the others is a NaN of other bits.
        only_nan: bool,
    },
}

impl Identification {
    /// The arithmetic, where it was identified.
    #[must_use]
    pub fn arithmetic(&self) -> Option<&Arithmetic> {
        match &self.outcome {
            Outcome::Identified(arithmetic) => Some(arithmetic),
            _ => None,
        }
    }
}
