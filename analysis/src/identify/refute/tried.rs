//! Hypotheses that were compared with the dots so far.

use std::collections::VecDeque;

use crate::identify::{
    candidates::{hypothesis::Hypothesis, scored::compared},
    dots::experiments::Experiments,
};

/// Whether a hypothesis explains the dots so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::identify) enum State {
    /// It explains this many of the first ones.
    Explains(usize),
    Refuted,
}

/// What is known of the hypotheses of this attack and the one before, so that none is compared with the same dots again.
#[derive(Default)]
pub(in crate::identify) struct Tried {
    before: Vec<(Hypothesis, State)>,
    now: Vec<(Hypothesis, State)>,
    /// The last dots that refuted one, which are likely to refute others like it.
    telling: VecDeque<usize>,
    /// The fewest bits that explained every dot when they were last sought, for hypotheses with one bit: fewer never do
    /// again.
    fewest: Vec<(Hypothesis, i32)>,
}

/// Returns what is known of a hypothesis.
fn known<T: Copy>(list: &[(Hypothesis, T)], of: &Hypothesis) -> Option<T> {
    list.iter().find(|(known, _)| known.is_same(of)).map(|(_, value)| *value)
}

/// Keeps what is known of a hypothesis, in place of what was known before.
fn keep<T>(list: &mut Vec<(Hypothesis, T)>, of: &Hypothesis, value: T) {
    match list.iter_mut().find(|(known, _)| known.is_same(of)) {
        Some((_, before)) => *before = value,
        None => list.push((of.clone(), value)),
    }
}

/// The most dots that are compared before all others.
const TELLING: usize = 16;

impl Tried {
    /// Begins an attack: what was not asked for in the one before is forgotten.
    pub(in crate::identify) fn begin(&mut self) {
        self.before = std::mem::take(&mut self.now);
    }

    /// Returns what is known of a hypothesis.
    pub(in crate::identify) fn state(&self, hypothesis: &Hypothesis) -> State {
        known(&self.now, hypothesis).or_else(|| known(&self.before, hypothesis)).unwrap_or(State::Explains(0))
    }

    /// Keeps what is known of a hypothesis.
    pub(in crate::identify) fn set(&mut self, hypothesis: &Hypothesis, state: State) {
        keep(&mut self.now, hypothesis, state);
    }

    /// Returns the fewest bits that explained every dot before, for a hypothesis with one bit.
    pub(in crate::identify) fn fewest(&self, of: &Hypothesis) -> Option<i32> {
        known(&self.fewest, of)
    }

    /// Keeps the fewest bits that explain every dot so far, for a hypothesis with one bit.
    pub(in crate::identify) fn set_fewest(&mut self, of: &Hypothesis, bits: i32) {
        keep(&mut self.fewest, of, bits);
    }

    /// Whether a hypothesis explains every dot so far.
    pub(in crate::identify) fn explains(
        &mut self,
        experiments: &mut Experiments<'_, '_>,
        hypothesis: &Hypothesis,
    ) -> bool {
        let known = self.state(hypothesis);
        let state = match known {
            State::Refuted => known,
            State::Explains(first) => {
                let others: Vec<usize> = (first..experiments.dots.len()).collect();
                let telling = self.telling.make_contiguous();
                let refuted = [&*telling, &others].into_iter().find_map(|dots| {
                    let wrong = compared(experiments, hypothesis, dots, 0);
                    wrong.map_or(Some(None), |wrong| Some(Some(wrong.first()?.0)))
                });
                if let Some(Some(at)) = refuted
                    && !self.telling.contains(&at)
                {
                    self.telling.push_front(at);
                    self.telling.truncate(TELLING);
                }
                if refuted.is_none() { State::Explains(experiments.dots.len()) } else { State::Refuted }
            }
        };
        self.set(hypothesis, state);
        state != State::Refuted
    }
}
