//! Identifies a unit: writes the executable model of whatever computes, without help, and then tries to break it.
//!
//! The tree comes from experiments on the order of summation, the parameters of its adders from one batch of structured
//! inputs and a search through everything that a model file can say; what is found is attacked with inputs it has not
//! seen, and widened where it fails. A unit that nothing in the family explains is reported as such, never fitted.

mod attack;
mod beside;
mod climb;
mod document;
mod experiments;
mod expression;
mod fit;
mod focus;
mod gemm;
mod groups;
mod hypothesis;
mod integers;
mod known;
mod live;
mod moderate;
mod moves;
mod nan;
mod nodes;
mod outcome;
mod payloads;
mod pool;
mod repeats;
mod rivals;
mod run;
mod scored;
mod search;
mod shapes;
mod simplify;
mod skeleton;
mod tiles;
mod trees;
mod verify;
mod words;
mod written;

use std::collections::HashSet;

use mxprobe_api::{Device, Error, Operation};

pub use crate::nan_bits::NanBits;
pub use document::model_of;
pub use gemm::{
    Found, GemmEffort, GemmIdentification, GemmOutcome, Invariance, Part, SameRecipe, ShapeOf, ShapeWitness,
    Unexplained, compare_shapes, explains, identify_gemm, same_recipe,
};
pub use known::{EXPECTED, as_expected, disagreements, equals};
pub use outcome::{Arithmetic, Effort, Identification, Outcome};
pub use verify::{Comparison, verify};
pub use words::parameters;

use crate::probes::Subject;
use experiments::Experiments;
use run::Search;

/// Identifies one operation. `progress` is told in words what goes on.
///
/// # Errors
/// What the device reports.
pub fn identify(
    device: &dyn Device,
    operation: &Operation,
    effort: Effort,
    progress: &dyn Fn(&str),
) -> Result<Identification, Error> {
    let one_nan = crate::nan_bits::OneNan(device);
    let device = if effort.nan == NanBits::Any { &one_nan } else { device };
    let subject = Subject::new(device, operation);
    let mut search = Search {
        experiments: Experiments::new(&subject, effort.time, effort.terms),
        effort,
        progress,
        order: None,
        readings: 0,
        tested: 0,
        counterexamples: Vec::new(),
        pairs: 0,
        bent: HashSet::new(),
    };
    search.run()
}
