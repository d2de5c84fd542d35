//! The search for the NaN that a unit returns, once nothing else is left to explain. Rules for NaN and the order of
//! arguments are searched together, separately from all other parameters, because a correct one may explain nothing
//! until another is correct too.

use mxprobe_api::Decoded;

use crate::identify::{
    candidates::{
        hypothesis::Hypothesis,
        moves::{Change, Move},
        proposals,
        scored::{Scored, explained, spread, unexplained_of},
    },
    dots::experiments::Experiments,
    tree::expression::Order,
};

/// Candidates kept from one round to the next, those of them that leave the same dots unexplained, the most rounds, and
/// dots on which candidates are compared.
const KEPT: usize = 16;
const ALIKE: usize = 3;
const ROUNDS: usize = 5;
const COMPARED: usize = 400;
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
    let wrong = unexplained_of(experiments, &from.hypothesis, &some);
    // c alone may become NaN by rules of its own, which no other dot shows.
    let mut beam = vec![Candidate { hypothesis: from.hypothesis.clone(), wrong: wrong.clone() }];
    let of_c = from.hypothesis.skeleton.expression.untied().of_c_alone();
    if let Some(addition) = of_c.filter(|addition| from.hypothesis.shared()[*addition]) {
        beam.push(Candidate { hypothesis: from.hypothesis.parted(&[addition]), wrong });
    }
    for _ in 0..ROUNDS {
        let mut next = beam.clone();
        for now in &beam {
            for change in of_nan_alone(experiments, &now.hypothesis) {
                if experiments.is_late() {
                    return None;
                }
                let Some(hypothesis) = change.apply(&now.hypothesis) else { continue };
                let most = next.get(KEPT - 1).map_or(some.len(), |worst| worst.wrong.len());
                if explained(experiments, &hypothesis, &some, most).is_none() {
                    continue;
                }
                let wrong = unexplained_of(experiments, &hypothesis, &some);
                // Most changes alter no result: without a limit, they would leave no room for the others.
                let alike = next.iter().filter(|known| known.wrong == wrong);
                if alike.clone().count() == ALIKE || alike.clone().any(|known| is_same(&known.hypothesis, &hypothesis))
                {
                    continue;
                }
                let at = next.partition_point(|known| known.wrong.len() <= wrong.len());
                next.insert(at, Candidate { hypothesis, wrong });
                next.truncate(KEPT);
            }
        }
        for candidate in &next {
            if candidate.wrong.is_empty()
                && let Some(explained) = explained(experiments, &candidate.hypothesis, &all, 0)
            {
                return Some(Scored { hypothesis: candidate.hypothesis.clone(), explained });
            }
        }
        if next.iter().map(|candidate| &candidate.wrong).eq(beam.iter().map(|candidate| &candidate.wrong)) {
            return None;
        }
        beam = next;
    }
    None
}

/// A candidate, and the compared dots that it does not explain.
#[derive(Clone, Debug)]
struct Candidate {
    hypothesis: Hypothesis,
    wrong: Vec<usize>,
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
