//! Sums of integers: exact except that they wrap or saturate, in the format of the result or in that of an intermediate
//! sum.

use std::sync::Arc;

use mxprobe_api::Format;
use mxprobe_models::{Adder, Flush, NanRules, Output};

use super::{
    hypothesis::Hypothesis,
    scored::{Scored, explained},
};
use crate::identify::{
    dots::experiments::Experiments,
    tree::skeleton::{Role, Skeleton},
};

/// The formats that intermediate sums may have.
const ON_THE_WAY: [Format; 6] = [Format::S32, Format::S16, Format::U32, Format::S8, Format::U8, Format::S4];

/// Tries every combination of outputs of a skeleton's adders, and returns the one that explains the most dots.
pub(in crate::identify) fn fit(experiments: &mut Experiments<'_, '_>, skeleton: &Arc<Skeleton>) -> Option<Scored> {
    let format = experiments.subject.id().d;
    let ends = |format: Format| [false, true].map(|saturates| Output::Integer { format, saturates });
    let mut inner: Vec<Output> = ends(format).to_vec();
    inner.push(Output::Wide);
    inner.extend(ON_THE_WAY.into_iter().filter(|other| *other != format).flat_map(ends));
    let choices: Vec<Vec<Output>> = skeleton
        .roles
        .iter()
        .map(|role| if *role == Role::Root { ends(format).to_vec() } else { inner.clone() })
        .collect();
    let all: Vec<usize> = (0..experiments.dots.len()).collect();
    let mut best: Option<Scored> = None;
    let mut at = vec![0; choices.len()];
    loop {
        let adders = skeleton
            .names
            .iter()
            .zip(at.iter().zip(&choices))
            .map(|(name, (at, choices))| Adder::exact(name, choices[*at], NanRules::default()))
            .collect();
        let hypothesis = Hypothesis { skeleton: Arc::clone(skeleton), adders, flush: Flush::default() };
        let least = best.as_ref().map_or(0, |best| best.explained + 1);
        if least > all.len() || experiments.is_late() {
            return best;
        }
        if let Some(explained) = explained(experiments, &hypothesis, &all, all.len() - least) {
            best = Some(Scored { hypothesis, explained });
        }
        // Advance to the next combination.
        let Some(next) = (0..at.len()).find(|place| at[*place] + 1 < choices[*place].len()) else { return best };
        at[next] += 1;
        at[..next].fill(0);
    }
}
