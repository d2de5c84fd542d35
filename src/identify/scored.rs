//! Candidates, and the dots that they explain.

use mxprobe_api::{Decoded, Error};
use mxprobe_models::Sample;

use super::{
    experiments::{self, Experiments},
    hypothesis::Hypothesis,
};
use crate::{dots::Dot, probes::Subject};

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

/// Whether each dot that a candidate does not explain has a result of zero.
pub(super) fn misses_zeros_alone(experiments: &mut Experiments<'_, '_>, scored: Option<&Scored>) -> bool {
    let Some(scored) = scored else { return false };
    let d = experiments.subject.id().d;
    let wrong = unexplained(experiments, &scored.hypothesis);
    let is_zero = |at: &usize| matches!(d.decode(experiments.answers[*at]), Decoded::Zero { .. });
    !wrong.is_empty() && wrong.iter().all(is_zero)
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

/// Dots that are taken apart at once, where each is looked at once.
const AT_ONCE: usize = 512;

/// What a hypothesis makes of each of these dots, none of which is kept.
pub(super) fn modelled(subject: &Subject<'_>, hypothesis: &Hypothesis, dots: &[Dot]) -> Result<Vec<u64>, Error> {
    let evaluator = hypothesis.evaluator(subject.id())?;
    let mut sample = Sample::new(subject.id(), hypothesis.flush);
    let mut found = Vec::with_capacity(dots.len());
    for dots in dots.chunks(AT_ONCE) {
        sample.clear();
        dots.iter().for_each(|dot| experiments::push(&mut sample, dot));
        evaluator.visit(&sample, 0..dots.len(), |_, d| {
            found.push(d);
            true
        });
    }
    Ok(found)
}

/// So many numbers spread over a list.
pub(super) fn spread(list: &[usize], count: usize) -> Vec<usize> {
    if list.len() <= count {
        return list.to_vec();
    }
    (0..count).map(|at| list[at * list.len() / count]).collect()
}
