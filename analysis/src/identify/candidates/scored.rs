//! Candidates and the dots that they explain.

use std::{
    cmp::Reverse,
    sync::atomic::{AtomicUsize, Ordering},
};

use mxprobe_api::{Decoded, Error, OperationId};
use mxprobe_models::{Evaluator, Sample};

use super::hypothesis::Hypothesis;
use crate::{
    dots::Dot,
    identify::dots::{
        experiments::{Answered, Experiments, Limit, cost},
        operands,
    },
    in_order::InOrder,
};

/// A candidate, and the number of dots that it explains.
#[derive(Clone, Debug)]
pub(in crate::identify) struct Scored {
    pub(in crate::identify) hypothesis: Hypothesis,
    pub(in crate::identify) explained: usize,
}

/// Returns how many of these dots a hypothesis explains, or `None` as soon as more than `allowed` are not explained.
pub(in crate::identify) fn explained(
    experiments: &mut Experiments<'_, '_>,
    hypothesis: &Hypothesis,
    which: &[usize],
    allowed: usize,
) -> Option<usize> {
    let wrong = compared(experiments, hypothesis, which, allowed)?;
    (wrong.len() <= allowed).then(|| which.len() - wrong.len())
}

/// Dots of one block that a thread compares, in terms.
const BLOCK: usize = 1 << 15;

/// Compares these dots on several threads. Returns those that a hypothesis does not explain, each with the result that it
/// gives, up to the first one beyond `allowed`, or `None` if no evaluator can be made of it.
pub(in crate::identify) fn compared(
    experiments: &mut Experiments<'_, '_>,
    hypothesis: &Hypothesis,
    which: &[usize],
    allowed: usize,
) -> Option<Vec<(usize, u64)>> {
    let id = experiments.subject.id();
    let evaluator = hypothesis.evaluator(id).ok()?;
    let of_all = AtomicUsize::new(0);
    let wrong_of = |answered: Answered<'_>, dots: &[usize]| {
        if of_all.load(Ordering::Relaxed) > allowed {
            return Vec::new();
        }
        let (wrong, _) = wrong_among(&evaluator, answered, hypothesis, dots.iter().copied(), allowed);
        of_all.fetch_add(wrong.len(), Ordering::Relaxed);
        wrong
    };
    // Most that are not right are abandoned in the first block, for which no thread is started.
    let block = BLOCK.div_ceil(experiments.subject.k());
    let (first, others) = which.split_at(which.len().min(block));
    let mut wrong = wrong_of(experiments.answered(), first);
    if wrong.len() <= allowed && !others.is_empty() {
        let others: Vec<&[usize]> = others.chunks(block).collect();
        let found = experiments.each(Limit::None, 1, &others, |_, answered, dots| wrong_of(answered, dots));
        wrong.extend(found.into_iter().flatten());
    }
    // Blocks are begun in order, so only those after the one with this dot may be incomplete.
    let last = wrong.get(allowed).map(|(at, _)| *at);
    wrong.truncate(allowed.saturating_add(1));
    let seen = last.and_then(|last| which.iter().position(|at| *at == last)).map_or(which.len(), |last| last + 1);
    experiments.spent += cost(id, hypothesis.weighted_additions(), seen);
    Some(wrong)
}

/// Returns the dots among these on which an evaluator of a hypothesis differs from the device, each with its result, up to
/// the first one beyond `allowed`; and the number of dots computed.
fn wrong_among(
    evaluator: &Evaluator,
    answered: Answered<'_>,
    hypothesis: &Hypothesis,
    which: impl IntoIterator<Item = usize>,
    allowed: usize,
) -> (Vec<(usize, u64)>, usize) {
    let (mut wrong, mut computed) = (Vec::new(), 0);
    evaluator.visit(answered.sample(hypothesis.flush), which, |at, d| {
        computed += 1;
        if d != answered.answers[at] {
            wrong.push((at, d));
        }
        wrong.len() <= allowed
    });
    (wrong, computed)
}

/// As [`explained`], for use on several threads.
pub(in crate::identify) fn explained_of(
    spent: &mut u64,
    answered: Answered<'_>,
    hypothesis: &Hypothesis,
    which: &[usize],
    allowed: usize,
) -> Option<usize> {
    let wrong = differing_of(spent, answered, hypothesis, which.iter().copied(), allowed)?;
    (wrong.len() <= allowed).then(|| which.len() - wrong.len())
}

/// Returns the dots that a hypothesis does not explain.
pub(in crate::identify) fn unexplained(experiments: &mut Experiments<'_, '_>, hypothesis: &Hypothesis) -> Vec<usize> {
    let all: Vec<usize> = (0..experiments.dots.len()).collect();
    unexplained_of(experiments, hypothesis, &all)
}

/// Returns whether a candidate leaves dots unexplained and the device's result of each of them is zero.
pub(in crate::identify) fn misses_zeros_alone(experiments: &mut Experiments<'_, '_>, scored: Option<&Scored>) -> bool {
    let Some(scored) = scored else { return false };
    let d = experiments.subject.id().d;
    let wrong = unexplained(experiments, &scored.hypothesis);
    let is_zero = |at: &usize| matches!(d.decode(experiments.answers[*at]), Decoded::Zero { .. });
    !wrong.is_empty() && wrong.iter().all(is_zero)
}

/// Returns those of these dots that a hypothesis does not explain.
pub(in crate::identify) fn unexplained_of(
    experiments: &mut Experiments<'_, '_>,
    hypothesis: &Hypothesis,
    which: &[usize],
) -> Vec<usize> {
    let wrong = differing(experiments, hypothesis, which);
    wrong.map_or_else(|| which.to_vec(), |wrong| wrong.into_iter().map(|(at, _)| at).collect())
}

/// Returns those of these dots that a hypothesis does not explain, each with the result that it gives, or `None` if no
/// evaluator can be made of it.
pub(in crate::identify) fn differing(
    experiments: &mut Experiments<'_, '_>,
    hypothesis: &Hypothesis,
    which: &[usize],
) -> Option<Vec<(usize, u64)>> {
    compared(experiments, hypothesis, which, usize::MAX)
}

/// As [`differing`], for use on several threads, up to the first dot beyond `allowed`.
pub(in crate::identify) fn differing_of(
    spent: &mut u64,
    answered: Answered<'_>,
    hypothesis: &Hypothesis,
    which: impl IntoIterator<Item = usize>,
    allowed: usize,
) -> Option<Vec<(usize, u64)>> {
    let evaluator = hypothesis.evaluator(answered.id).ok()?;
    let (wrong, computed) = wrong_among(&evaluator, answered, hypothesis, which, allowed);
    *spent += cost(answered.id, hypothesis.weighted_additions(), computed);
    Some(wrong)
}

/// Dots decoded in one go if each is used only once.
const AT_ONCE: usize = 512;

/// Computes these dots with a hypothesis, without adding them to the experiments.
///
/// # Errors
/// Returns an error if no evaluator can be made of the hypothesis.
pub(in crate::identify) fn modelled(
    id: &OperationId,
    hypothesis: &Hypothesis,
    dots: &[Dot],
) -> Result<Vec<u64>, Error> {
    let evaluator = hypothesis.evaluator(id)?;
    let mut sample = Sample::new(id, hypothesis.flush);
    sample.reserve(dots.len().min(AT_ONCE));
    let mut found = Vec::with_capacity(dots.len());
    for dots in dots.chunks(AT_ONCE) {
        sample.clear();
        dots.iter().for_each(|dot| operands::push(&mut sample, dot));
        evaluator.visit(&sample, 0..dots.len(), |_, d| {
            found.push(d);
            true
        });
    }
    Ok(found)
}

/// As [`modelled`], on every core.
pub(in crate::identify) fn modelled_by_all(
    experiments: &mut Experiments<'_, '_>,
    hypothesis: &Hypothesis,
    dots: &[Dot],
) -> Result<Vec<u64>, Error> {
    let pieces: Vec<&[Dot]> = dots.chunks(AT_ONCE).collect();
    let found = experiments.each(Limit::None, 1, &pieces, |_, answered, dots| modelled(answered.id, hypothesis, dots));
    Ok(found.into_iter().collect::<Result<Vec<_>, _>>()?.concat())
}

/// Returns `count` entries spread evenly over a list, or all of a shorter one.
pub(in crate::identify) fn spread(list: &[usize], count: usize) -> Vec<usize> {
    if list.len() <= count {
        return list.to_vec();
    }
    (0..count).map(|at| list[at * list.len() / count]).collect()
}

/// Returns the dots `all` without those that are `wrong`. Both are in ascending order.
pub(in crate::identify) fn without(all: &[usize], wrong: &[usize]) -> Vec<usize> {
    all.iter().copied().filter(|at| wrong.binary_search(at).is_err()).collect()
}

/// Sorts candidates by the dots that they explain, most first. Equals keep their order.
pub(in crate::identify) fn best_first(candidates: &mut [Scored]) {
    candidates.order_by_key(|scored| Reverse(scored.explained));
}

/// As [`best_first`]; of candidates that explain equally many, the simplest first.
pub(in crate::identify) fn best_and_simplest_first(candidates: &mut [Scored]) {
    candidates.order_by_key(|scored| (Reverse(scored.explained), scored.hypothesis.complexity()));
}

/// Replaces the best candidate by one that explains more than it does, or more than `least` if there is none.
pub(in crate::identify) fn keep_better(best: &mut Option<Scored>, least: usize, found: Scored) {
    if found.explained > best.as_ref().map_or(least, |best| best.explained) {
        *best = Some(found);
    }
}

/// Updates the `most` candidates that explain the most of these dots, best first, with these hypotheses. Of equals, the
/// first stays.
pub(in crate::identify) fn keep_among(
    experiments: &mut Experiments<'_, '_>,
    limit: Limit,
    found: &mut Vec<Scored>,
    most: usize,
    hypotheses: &[Hypothesis],
    dots: &[usize],
) {
    for some in hypotheses.chunks(COMPARED) {
        let allowed = found.get(most - 1).map_or(dots.len(), |worst| dots.len() - worst.explained);
        let explained = experiments.each(limit, KEPT_AT_ONCE, some, |spent, answered, hypothesis| {
            explained_of(spent, answered, hypothesis, dots, allowed)
        });
        let kept = some.iter().zip(explained).filter_map(|(hypothesis, explained)| {
            explained.map(|explained| Scored { hypothesis: hypothesis.clone(), explained })
        });
        found.extend(kept);
        best_first(found);
        found.truncate(most);
    }
}

/// Candidates that are compared before those that explain less than the best so far are left out.
const COMPARED: usize = 48;
/// How many of them a thread takes at a time.
const KEPT_AT_ONCE: usize = 4;

/// Returns at most `count` dots in ascending order, half of them from each list.
pub(in crate::identify) fn half_of_each(one: &[usize], other: &[usize], count: usize) -> Vec<usize> {
    let mut some = [spread(one, count / 2), spread(other, count / 2)].concat();
    some.sort_unstable();
    some
}
