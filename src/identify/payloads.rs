//! The search for the NaN that a unit returns, once nothing else is left to explain. Rules for NaN and the order of
//! arguments are searched together, separately from all other parameters, because a correct one may explain nothing
//! until another is correct too.

use mxprobe_api::Decoded;

use super::{
    experiments::Experiments,
    expression::Order,
    hypothesis::Hypothesis,
    moves::{self, Change, Move},
    scored::{Scored, explained, spread},
};

/// Candidates kept from one round to the next, the most rounds, and dots on which candidates are compared.
const KEPT: usize = 10;
const ROUNDS: usize = 5;
const COMPARED: usize = 400;

/// Returns a candidate that explains every dot, if at most `ROUNDS` changes of NaN rules or of the order of arguments
/// lead to one.
pub(super) fn fitted(experiments: &mut Experiments<'_, '_>, from: &Scored) -> Option<Scored> {
    let d = experiments.subject.id().d;
    let is_nan = |at: &usize| matches!(d.decode(experiments.answers[*at]), Decoded::Nan { .. });
    let all: Vec<usize> = (0..experiments.dots.len()).collect();
    let of_nan: Vec<usize> = all.iter().copied().filter(is_nan).collect();
    let some = spread(&of_nan, COMPARED);
    let right = explained(experiments, &from.hypothesis, &some, some.len())?;
    let mut beam = vec![Scored { hypothesis: from.hypothesis.clone(), explained: right }];
    for _ in 0..ROUNDS {
        let mut next = beam.clone();
        for now in &beam {
            for change in of_nan_alone(experiments, &now.hypothesis) {
                if experiments.is_late() {
                    return None;
                }
                let Some(hypothesis) = change.apply(&now.hypothesis) else { continue };
                let least = if next.len() < KEPT { 0 } else { next[KEPT - 1].explained };
                let Some(right) = explained(experiments, &hypothesis, &some, some.len() - least) else { continue };
                if next.iter().any(|known| known.explained == right && is_same(&known.hypothesis, &hypothesis)) {
                    continue;
                }
                let at = next.partition_point(|known| known.explained >= right);
                next.insert(at, Scored { hypothesis, explained: right });
                next.truncate(KEPT);
            }
        }
        for candidate in &next {
            if candidate.explained == some.len()
                && let Some(explained) = explained(experiments, &candidate.hypothesis, &all, 0)
            {
                return Some(Scored { explained, ..candidate.clone() });
            }
        }
        if next.iter().map(|scored| scored.explained).eq(beam.iter().map(|scored| scored.explained)) {
            return None;
        }
        beam = next;
    }
    None
}

/// Returns whether two hypotheses have the same adders and tree; their flush rules are not compared.
fn is_same(one: &Hypothesis, other: &Hypothesis) -> bool {
    one.adders == other.adders && one.skeleton.expression == other.skeleton.expression
}

/// Returns every change of a hypothesis that only NaN results can show.
fn of_nan_alone(experiments: &Experiments<'_, '_>, hypothesis: &Hypothesis) -> Vec<Move> {
    let mut found = Vec::new();
    for at in 0..hypothesis.adders.len() {
        let mut changes = Vec::new();
        moves::of_nan(experiments, &hypothesis.adders[at], &mut changes);
        found.extend(
            changes.into_iter().filter(|change| matches!(change, Change::Nan(_))).map(|of| Move::Adder(at, of)),
        );
        found.extend([Order::ProductsFirst, Order::ProductsLast, Order::Reversed].map(|order| Move::Turned(at, order)));
    }
    found.extend(hypothesis.skeleton.begun().into_iter().map(|(one, other)| Move::Exchanged(one, other)));
    found
}
