//! The search for the NaN that a unit returns, once nothing else is left to explain. Rules for NaN and the order of
//! arguments are searched together, separately from all other parameters, because a correct one may explain nothing
//! until another is correct too.

use mxprobe_api::Decoded;

use super::alone::with_nan_of_c;
use crate::identify::{
    candidates::{
        hypothesis::Hypothesis,
        moves::{Change, Move},
        proposals,
        scored::{Scored, differing_of, explained, explained_of, spread, unexplained_of},
    },
    dots::experiments::{Experiments, Limit},
    tree::rebuilt::Order,
};
use crate::in_order::InOrder;

/// Candidates kept from one round to the next, those of them that leave the same dots unexplained, the most rounds, and
/// dots on which candidates are compared.
const KEPT: usize = 16;
const ALIKE: usize = 3;
const ROUNDS: usize = 5;
const COMPARED: usize = 400;
/// Changes that are tried before the candidates kept are chosen anew, and how many a thread tries at a time.
const BATCH: usize = 64;
const AT_ONCE: usize = 4;
/// The most arguments of an addition that are exchanged in pairs.
const WIDEST: usize = 9;

/// Returns a candidate that explains every dot, if at most `ROUNDS` changes of NaN rules or of the order of arguments
/// lead to one.
pub(in crate::identify) fn fitted(experiments: &mut Experiments<'_, '_>, from: &Scored) -> Option<Scored> {
    let d = experiments.subject.id().d;
    let is_nan = |at: &usize| matches!(d.decode(experiments.answers[*at]), Decoded::Nan { .. });
    let all: Vec<usize> = (0..experiments.dots.len()).collect();
    let of_nan: Vec<usize> = all.iter().copied().filter(is_nan).collect();
    let some = spread(&of_nan, COMPARED);
    // c alone may become NaN by rules of its own, which no other dot shows.
    let mut starts = vec![from.hypothesis.clone()];
    let of_c = from.hypothesis.skeleton.expression.untied().of_c_alone();
    if let Some(addition) = of_c.filter(|addition| from.hypothesis.shared()[*addition]) {
        starts.push(from.hypothesis.parted(&[addition]));
    }
    starts.extend(with_nan_of_c(experiments, &from.hypothesis));
    // An exact product that is rounded alone shows only in the NaN that it becomes.
    let products = from.hypothesis.skeleton.joining_one();
    if !products.is_empty() {
        starts.extend(Move::Alone(products).apply(&from.hypothesis));
    }
    let ranked = experiments.nan_order().map(Order::Ranked);
    starts.extend(ranked.and_then(|order| turned_whole(&from.hypothesis, &order)));
    let mut beam: Vec<Candidate> = Vec::new();
    for hypothesis in starts {
        let wrong = unexplained_of(experiments, &hypothesis, &some);
        beam.push(Candidate { hypothesis, wrong });
    }
    beam.order_by_key(|candidate| candidate.wrong.len());
    for _ in 0..ROUNDS {
        if let Some(found) = right(experiments, &beam, &all) {
            return Some(found);
        }
        let mut next = beam.clone();
        for now in &beam {
            for changes in of_nan_alone(experiments, &now.hypothesis).chunks(BATCH) {
                if experiments.is_late() {
                    return None;
                }
                let most = next.get(KEPT - 1).map_or(some.len(), |worst| worst.wrong.len());
                let tried = experiments.each(Limit::Stage, AT_ONCE, changes, |spent, answered, change| {
                    let hypothesis = change.apply(&now.hypothesis)?;
                    explained_of(spent, answered, &hypothesis, &some, most)?;
                    let wrong = differing_of(spent, answered, &hypothesis, some.iter().copied(), usize::MAX)?;
                    let wrong = wrong.into_iter().map(|(at, _)| at).collect();
                    Some(Candidate { hypothesis, wrong })
                });
                for candidate in tried.into_iter().flatten() {
                    take(&mut next, candidate);
                }
            }
        }
        if next.iter().map(|candidate| &candidate.wrong).eq(beam.iter().map(|candidate| &candidate.wrong)) {
            return None;
        }
        beam = next;
    }
    right(experiments, &beam, &all)
}

/// Returns the first candidate that explains every dot.
fn right(experiments: &mut Experiments<'_, '_>, candidates: &[Candidate], all: &[usize]) -> Option<Scored> {
    candidates.iter().filter(|candidate| candidate.wrong.is_empty()).find_map(|candidate| {
        let explained = explained(experiments, &candidate.hypothesis, all, 0)?;
        Some(Scored { hypothesis: candidate.hypothesis.clone(), explained })
    })
}

/// Adds a candidate to the best ones, fewest dots unexplained first.
fn take(best: &mut Vec<Candidate>, candidate: Candidate) {
    // Most changes alter no result: without a limit, they would leave no room for the others.
    let alike = best.iter().filter(|known| known.wrong == candidate.wrong);
    let is_known = alike.clone().any(|known| known.hypothesis.is_same(&candidate.hypothesis));
    if is_known || alike.count() == ALIKE {
        return;
    }
    let at = best.partition_point(|known| known.wrong.len() <= candidate.wrong.len());
    best.insert(at, candidate);
    best.truncate(KEPT);
}

/// Returns the hypothesis with the arguments of every adder in this order, if that is another one.
fn turned_whole(hypothesis: &Hypothesis, order: &Order) -> Option<Hypothesis> {
    let expression = &hypothesis.skeleton.expression;
    let turned = (0..hypothesis.adders.len()).fold(expression.clone(), |tree, adder| tree.turned(adder, order));
    (turned != *expression).then(|| hypothesis.in_tree(turned))
}

/// A candidate, and the compared dots that it does not explain.
#[derive(Clone, Debug)]
struct Candidate {
    hypothesis: Hypothesis,
    wrong: Vec<usize>,
}

/// Returns every change of a hypothesis that only NaN results can show.
fn of_nan_alone(experiments: &Experiments<'_, '_>, hypothesis: &Hypothesis) -> Vec<Move> {
    let mut found = Vec::new();
    for at in 0..hypothesis.adders.len() {
        let mut changes = Vec::new();
        proposals::of_nan(experiments, &hypothesis.adders[at], &mut changes);
        found.extend(
            changes.into_iter().filter(|change| matches!(change, Change::Nan(_))).map(|of| Move::Adder(at, of)),
        );
        found.extend(Order::WHOLE.map(|order| Move::Turned(at, order)));
        let width = Some(hypothesis.skeleton.expression.width(at)).filter(|width| *width <= WIDEST).unwrap_or(0);
        let pairs = (0..width).flat_map(|one| (one + 1..width).map(move |other| (one, other)));
        found.extend(pairs.map(|(one, other)| Move::Turned(at, Order::Exchanged(one, other))));
    }
    found.extend(hypothesis.skeleton.begun().into_iter().map(|(one, other)| Move::Exchanged(one, other)));
    found
}
