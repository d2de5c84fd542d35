//! Changes of a candidate, tried on samples of the dots that it explains and of those that it does not.

use crate::{
    identify::{
        candidates::{
            hypothesis::Hypothesis,
            moves::Move,
            scored::{explained_of, spread, without},
        },
        dots::experiments::{Experiments, Limit},
    },
    in_order::InOrder,
};

/// Number of unexplained dots on which a change is tried first, of those on which it is tried then if no change helps, and
/// of unexplained and of explained dots on which one is tried that explains any of those. Eight are computed side by side.
/// There are fewer if dots are long: `TRIED_TERMS` limits their terms.
const TRIED_FIRST: usize = 8;
const TRIED_THEN: usize = 16;
pub(super) const TRIED_WRONG: usize = 160;
pub(super) const TRIED_RIGHT: usize = 240;
const TRIED_TERMS: usize = 4_800;

/// The share of the unexplained dots of a sample that a change explains at least, as one in so many, to be completed by
/// another one although it breaks more.
pub(super) const HALFWAY: usize = 4;

/// Changes that a thread tries at a time.
const RANKED_AT_ONCE: usize = 32;

/// Number of unexplained dots that a change explains, and of explained dots that it breaks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gain {
    pub(super) fixed: usize,
    pub(super) broken: usize,
}

/// Samples of the dots that are explained and of those that are not.
pub(super) struct Trial {
    pub(super) wrong: Vec<usize>,
    pub(super) right: Vec<usize>,
}

impl Trial {
    /// Takes the samples; `step` shifts that of explained dots. Both `all` and `wrong` are in ascending order.
    pub(super) fn new(all: &[usize], wrong: &[usize], step: usize, k: usize) -> Self {
        let right = without(all, wrong);
        let from = if right.is_empty() { 0 } else { step * 37 % right.len() };
        let right: Vec<usize> = right[from..].iter().chain(&right[..from]).copied().collect();
        Self {
            wrong: spread(wrong, TRIED_WRONG.min(TRIED_TERMS / (k + 4)).max(60)),
            right: spread(&right, TRIED_RIGHT.min(TRIED_TERMS / (k + 4)).max(60)),
        }
    }

    /// Returns the changes that explain at least one dot of the sample, the best first, and the others that may.
    pub(super) fn rank<'m>(
        &self,
        experiments: &mut Experiments<'_, '_>,
        now: &Hypothesis,
        list: &[&'m Move],
    ) -> (Vec<(Gain, Hypothesis)>, Vec<&'m Move>) {
        // Most changes explain nothing, which a few dots show for most of them.
        let some = spread(&self.wrong, TRIED_FIRST);
        let (found, left) = self.ranked(experiments, now, list, &some);
        if some.len() == self.wrong.len() {
            return (found, Vec::new());
        }
        if found.is_empty() {
            return (self.ranked(experiments, now, list, &self.wrong).0, Vec::new());
        }
        (found, left)
    }

    /// Returns those of the changes left by [`Trial::rank`] that explain at least one of some further dots, the best first.
    pub(super) fn rank_left(
        &self,
        experiments: &mut Experiments<'_, '_>,
        now: &Hypothesis,
        left: &[&Move],
    ) -> Vec<(Gain, Hypothesis)> {
        let some = spread(&without(&self.wrong, &spread(&self.wrong, TRIED_FIRST)), TRIED_THEN);
        self.ranked(experiments, now, left, &some).0
    }

    /// Returns the changes that explain at least one of the dots `some`, the best first, and those that explain none.
    fn ranked<'m>(
        &self,
        experiments: &mut Experiments<'_, '_>,
        now: &Hypothesis,
        list: &[&'m Move],
        some: &[usize],
    ) -> (Vec<(Gain, Hypothesis)>, Vec<&'m Move>) {
        // Another flush rule does not change a dot without a subnormal.
        let (changes, mut left): (Vec<&Move>, Vec<&Move>) = list.iter().partition(|change| match change {
            Move::Flush(flush) => !experiments.read_otherwise(now.flush, *flush, some).is_empty(),
            _ => true,
        });
        let (wrong, right) = (&self.wrong[..], &self.right[..]);
        let tried = experiments.each(Limit::Stage, RANKED_AT_ONCE, &changes, |spent, answered, change| {
            let hypothesis = change.apply(now)?;
            let mut fixed = explained_of(spent, answered, &hypothesis, some, some.len()).filter(|fixed| *fixed > 0)?;
            if some.len() < wrong.len() {
                fixed = explained_of(spent, answered, &hypothesis, wrong, wrong.len()).unwrap_or(0);
            }
            // Beyond as many as it explains, how many it breaks only matters if another change may complete it.
            let most = if HALFWAY * fixed >= wrong.len() { right.len() } else { fixed };
            let kept = explained_of(spent, answered, &hypothesis, right, most).unwrap_or(0);
            Some((Gain { fixed, broken: right.len() - kept }, hypothesis))
        });
        let mut found = Vec::new();
        for (change, tried) in changes.into_iter().zip(tried) {
            match tried {
                Some(gain) => found.push(gain),
                None => left.push(change),
            }
        }
        sort(&mut found);
        (found, left)
    }
}

/// Sorts changes by the number of dots that they explain less three times the number that they break, the largest
/// first; of equals, the simplest comes first.
pub(super) fn sort(found: &mut [(Gain, Hypothesis)]) {
    found.order_by_key(|(gain, hypothesis)| {
        let net = i64::try_from(gain.fixed).unwrap_or(0) - 3 * i64::try_from(gain.broken).unwrap_or(0);
        (std::cmp::Reverse(net), hypothesis.complexity())
    });
}
