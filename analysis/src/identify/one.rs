//! The identification of one operation.

use std::collections::HashSet;

use mxprobe_api::{Device, Error, Operation};

use super::{
    dots::experiments::Experiments,
    outcome::{Effort, Identification},
    run::Search,
};
use crate::{
    nan_bits::{NanBits, OneNan},
    probes::Subject,
};

/// Identifies one operation. `progress` is called with a message for people at each step.
///
/// # Errors
/// Returns the error of the device if it fails.
pub fn identify(
    device: &dyn Device,
    operation: &Operation,
    effort: Effort,
    progress: &dyn Fn(&str),
) -> Result<Identification, Error> {
    let one_nan = OneNan(device);
    let device = if effort.nan == NanBits::Any { &one_nan } else { device };
    let subject = Subject::new(device, operation);
    let mut search = Search {
        experiments: Experiments::new(&subject, effort),
        effort,
        progress,
        order: None,
        readings: 0,
        tested: 0,
        counterexamples: Vec::new(),
        findings: Vec::new(),
        pairs: 0,
        around: 0,
        around_attacks: 0,
        bent: HashSet::new(),
        cut_short: None,
        regrouped: HashSet::new(),
    };
    search.run()
}
