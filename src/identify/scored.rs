//! Candidates, and the dots that they explain.

use super::{experiments::Experiments, hypothesis::Hypothesis};

/// A candidate, and how many dots it explains.
#[derive(Clone, Debug)]
pub(super) struct Scored {
    pub(super) hypothesis: Hypothesis,
    pub(super) explained: usize,
}

/// How many of these dots a hypothesis explains; gives up where more than `allowed` are not.
pub(super) fn explained(
    experiments: &mut Experiments<'_, '_>,
    hypothesis: &Hypothesis,
    which: &[usize],
    allowed: usize,
) -> Option<usize> {
    let evaluator = hypothesis.evaluator(experiments.subject.id()).ok()?;
    experiments.sample(hypothesis.flush);
    let answers = std::mem::take(&mut experiments.answers);
    let (mut right, mut wrong) = (0, 0);
    let exact = evaluator.visit(experiments.sample(hypothesis.flush), which.iter().copied(), |at, d| {
        if d == answers[at] {
            right += 1;
        } else {
            wrong += 1;
        }
        wrong <= allowed
    });
    experiments.answers = answers;
    experiments.spend(right + wrong, exact);
    (wrong <= allowed).then_some(right)
}

/// The dots that a hypothesis does not explain.
pub(super) fn unexplained(experiments: &mut Experiments<'_, '_>, hypothesis: &Hypothesis) -> Vec<usize> {
    let all: Vec<usize> = (0..experiments.dots.len()).collect();
    unexplained_of(experiments, hypothesis, &all)
}

/// Those of these dots that a hypothesis does not explain.
pub(super) fn unexplained_of(
    experiments: &mut Experiments<'_, '_>,
    hypothesis: &Hypothesis,
    which: &[usize],
) -> Vec<usize> {
    let Ok(evaluator) = hypothesis.evaluator(experiments.subject.id()) else { return which.to_vec() };
    let answers = std::mem::take(&mut experiments.answers);
    let mut wrong = Vec::new();
    let exact = evaluator.visit(experiments.sample(hypothesis.flush), which.iter().copied(), |at, d| {
        if d != answers[at] {
            wrong.push(at);
        }
        true
    });
    experiments.answers = answers;
    experiments.spend(which.len(), exact);
    wrong
}

/// So many numbers spread over a list.
pub(super) fn spread(list: &[usize], count: usize) -> Vec<usize> {
    if list.len() <= count {
        return list.to_vec();
    }
    (0..count).map(|at| list[at * list.len() / count]).collect()
}
