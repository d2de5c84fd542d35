//! Changes a candidate until it explains every dot or no change explains more. A step changes one value, replaces an
//! adder, or changes two values together.

use mxprobe_models::Adder;

use super::{
    coupled::{Floors, coupled, equalised},
    trial::{Gain, HALFWAY, Trial, sort},
};
use crate::identify::{
    candidates::{
        hypothesis::{Hypothesis, plain_grids},
        moves::Move,
        proposals,
        scored::{Scored, best_first, differing_of, explained, keep_among, keep_better, unexplained_of},
        united::exchanged,
    },
    dots::experiments::{Experiments, Limit},
};
use crate::in_order::InOrder;

/// Maximum number of steps of one climb, and of consecutive steps that explain less than one in `CRAWL` of the dots
/// that are left.
const STEPS: usize = 30;
const SLOW_STEPS: usize = 3;
const CRAWL: usize = 12;

/// The dots that a climb has to explain, and the part of the candidate that it changes.
pub(in crate::identify) struct Domain {
    pub(in crate::identify) dots: Vec<usize>,
    /// The only adder that it changes, if not all.
    pub(in crate::identify) adder: Option<usize>,
    /// Whether a climb that changes one adder also changes the flush rules.
    pub(in crate::identify) reading: bool,
    /// Whether a change that breaks dots may be completed by a second one.
    pub(in crate::identify) completing: bool,
}

impl Domain {
    /// All of these dots, and every part of the candidate.
    pub(in crate::identify) fn whole(dots: Vec<usize>) -> Self {
        Self { dots, adder: None, reading: true, completing: false }
    }

    /// These dots, and one adder.
    pub(in crate::identify) fn of_adder(adder: usize, dots: Vec<usize>) -> Self {
        Self { dots, adder: Some(adder), reading: false, completing: false }
    }

    fn moves(&self, experiments: &Experiments<'_, '_>, hypothesis: &Hypothesis) -> Vec<Move> {
        match self.adder {
            Some(own) => {
                let mut list = proposals::of_adder(experiments, hypothesis, own);
                if self.reading {
                    list.extend(proposals::readings(experiments, hypothesis));
                }
                list
            }
            None => proposals::all(experiments, hypothesis),
        }
    }
}

/// Climbs from a candidate. If no single change helps, `pairs` steps may replace an adder or change two values
/// together.
pub(in crate::identify) fn climb(
    experiments: &mut Experiments<'_, '_>,
    mut now: Scored,
    mut pairs: usize,
    domain: &Domain,
) -> Scored {
    let mut slow = 0;
    for step in 0..STEPS {
        if experiments.is_late() {
            break;
        }
        let wrong = unexplained_of(experiments, &now.hypothesis, &domain.dots);
        now.explained = domain.dots.len() - wrong.len();
        if wrong.is_empty() {
            return now;
        }
        let trial = Trial::new(&domain.dots, &wrong, step, experiments.subject.k());
        let list = domain.moves(experiments, &now.hypothesis);
        // Try the likely changes first: one that explains half of what is left and breaks nothing needs no comparison
        // with the others.
        let (likely, others): (Vec<&Move>, Vec<&Move>) =
            list.iter().partition(|change| change.is_likely(&now.hypothesis));
        let (mut ranked, mut left) = trial.rank(experiments, &now.hypothesis, &likely);
        let convinces = |(gain, _): &(Gain, Hypothesis)| gain.broken == 0 && 2 * gain.fixed >= trial.wrong.len();
        let mut better = None;
        if ranked.first().is_some_and(convinces) {
            better = best_of(experiments, &now, ranked.iter().map(|(_, hypothesis)| hypothesis), &domain.dots);
        }
        if better.is_none() {
            let (more, also_left) = trial.rank(experiments, &now.hypothesis, &others);
            ranked.extend(more);
            left.extend(also_left);
            sort(&mut ranked);
            better = best_of(experiments, &now, ranked.iter().map(|(_, hypothesis)| hypothesis), &domain.dots);
        }
        if better.is_none() {
            let more = trial.rank_left(experiments, &now.hypothesis, &left);
            better = best_of(experiments, &now, more.iter().map(|(_, hypothesis)| hypothesis), &domain.dots);
            ranked.extend(more);
            sort(&mut ranked);
        }
        if let Some(better) = better {
            // If each step explains only a few of many dots, another adder is needed rather than changes to this one.
            slow = if (better.explained - now.explained) * CRAWL < wrong.len() { slow + 1 } else { 0 };
            now = better;
            if slow < SLOW_STEPS {
                continue;
            }
            return now;
        }
        let stage = experiments.at_most(COMPLETED_BUDGET);
        let better = completed(experiments, &now, (&trial, &ranked), step, domain);
        experiments.back_to(stage);
        if let Some(better) = better {
            now = better;
            continue;
        }
        if pairs == 0 {
            return now;
        }
        pairs -= 1;
        if let Some(better) = rebuilt(experiments, &now, &trial, domain) {
            now = better;
            continue;
        }
        // No single change helps: try two, the first of which explains at least one dot if any does.
        ranked.order_by_key(|(gain, _)| std::cmp::Reverse(gain.fixed));
        let firsts: Vec<Hypothesis> =
            ranked.into_iter().filter(|(gain, _)| gain.fixed > 0).map(|(_, hypothesis)| hypothesis).take(16).collect();
        let firsts = if firsts.is_empty() {
            list.iter()
                .filter_map(|change| change.apply(&now.hypothesis))
                .filter(|_| wrong.len() > 8)
                .take(12)
                .collect()
        } else {
            firsts
        };
        let mut better = None;
        for first in &firsts {
            if experiments.is_late() {
                break;
            }
            better = followed(experiments, &now, first, &trial, domain);
            if better.is_some() {
                break;
            }
        }
        match better {
            Some(better) => now = better,
            None => return now,
        }
    }
    now.explained = domain.dots.len() - unexplained_of(experiments, &now.hypothesis, &domain.dots).len();
    now
}

/// Returns the best candidate with a second change after the `first`, if one explains more than `now`.
fn followed(
    experiments: &mut Experiments<'_, '_>,
    now: &Scored,
    first: &Hypothesis,
    trial: &Trial,
    domain: &Domain,
) -> Option<Scored> {
    let moves = domain.moves(experiments, first);
    let (ranked, _) = trial.rank(experiments, first, &moves.iter().collect::<Vec<_>>());
    best_of(experiments, now, ranked.iter().map(|(_, hypothesis)| hypothesis), &domain.dots)
}

/// Number of changes that are completed by another one.
const COMPLETED: usize = 8;
/// The most dots left unexplained for that, as one in so many.
const MOST_LEFT: usize = 5;
/// Per cent of the term budget for completing changes of one step.
const COMPLETED_BUDGET: u64 = 3;

/// Completes changes that explain much of what is left, but break other dots, by a second one: if one addition
/// rounds to infinity and another to the largest number, the rounding of either is wrong without the format of the
/// other. Returns the best candidate of the first change for which one explains more.
fn completed(
    experiments: &mut Experiments<'_, '_>,
    now: &Scored,
    (trial, ranked): (&Trial, &[(Gain, Hypothesis)]),
    step: usize,
    domain: &Domain,
) -> Option<Scored> {
    let left = domain.dots.len() - now.explained;
    if !domain.completing || left * MOST_LEFT > domain.dots.len() {
        return None;
    }
    let mut seen = Vec::new();
    for (gain, first) in ranked.iter().filter(|(gain, _)| HALFWAY * gain.fixed >= trial.wrong.len()) {
        if experiments.is_late() || seen.len() == COMPLETED {
            break;
        }
        // Changes with equal effects hardly differ.
        if seen.contains(&(gain.fixed, gain.broken)) {
            continue;
        }
        seen.push((gain.fixed, gain.broken));
        let wrong = unexplained_of(experiments, first, &domain.dots);
        let trial = Trial::new(&domain.dots, &wrong, step, experiments.subject.k());
        let better = followed(experiments, now, first, &trial, domain);
        if better.is_some() {
            return better;
        }
    }
    None
}

/// The most dots left unexplained, as one in so many, and the most steps, for several values to be changed together.
const NEARLY_ALL: usize = 50;
const COUPLED_STEPS: usize = 3;
/// Per cent of the term budget for one search of three values.
const COUPLED_BUDGET: u64 = 6;
/// Candidates with three changed values that are changed further although they explain fewer dots.
const FOLLOWED: usize = 2;
/// Candidates with equal adders or exchanged values that are changed value by value.
const STARTS: usize = 5;

/// Changes several values of a candidate together if it explains nearly every dot: adders that differ become equal, two
/// adders exchange values, or three values of one adder change. A climb follows each such step. Returns the best candidate.
pub(super) fn climb_together(experiments: &mut Experiments<'_, '_>, mut now: Scored, domain: &Domain) -> Scored {
    for step in 0..COUPLED_STEPS {
        let wrong = unexplained_of(experiments, &now.hypothesis, &domain.dots);
        let is_near = experiments.not_around(&wrong) * NEARLY_ALL <= domain.dots.len();
        if wrong.is_empty() || !is_near || experiments.is_late() || experiments.subject.id().is_integer() {
            break;
        }
        let trial = Trial::new(&domain.dots, &wrong, step, experiments.subject.k());
        let mut better: Option<Scored> = None;
        let whole = equalised(&now.hypothesis).into_iter().map(|(hypothesis, _)| hypothesis);
        let mut starts: Vec<Scored> = Vec::new();
        for hypothesis in whole.chain(exchanged(&now.hypothesis)) {
            let allowed = wrong.len().max(domain.dots.len() / NEARLY_ALL);
            if let Some(explained) = explained(experiments, &hypothesis, &domain.dots, allowed) {
                starts.push(Scored { hypothesis, explained });
            }
        }
        best_first(&mut starts);
        for start in starts.into_iter().take(STARTS) {
            keep_better(&mut better, now.explained, climb(experiments, start, 0, domain));
            if better.as_ref().is_some_and(|better| better.explained == domain.dots.len()) {
                break;
            }
        }
        let of = domain.dots.len();
        for floors in [Floors::Keep, Floors::Change] {
            if better.as_ref().is_some_and(|better| better.explained == of) {
                break;
            }
            let stage = experiments.at_most(COUPLED_BUDGET);
            let found = coupled(experiments, &now.hypothesis, (&trial.wrong, &trial.right), floors);
            experiments.back_to(stage);
            let best = best_of(experiments, &now, found.iter(), &domain.dots);
            // If none explains more at once, the likeliest ones may after further changes.
            let starts = match best {
                Some(best) => vec![best],
                None => {
                    found.into_iter().take(FOLLOWED).map(|hypothesis| Scored { hypothesis, explained: 0 }).collect()
                }
            };
            for start in starts {
                keep_better(&mut better, now.explained, climb(experiments, start, 0, domain));
            }
        }
        match better {
            Some(better) => now = better,
            None => break,
        }
    }
    now
}

/// Number of replacements of one adder from which a climb starts.
const REBUILT: usize = 3;

/// Replaces one adder by those whose grid has a single rule, with c cut or not, and climbs from the best. If another
/// mechanism explains nearly as much as the true one, no change of one or two values leads from it to the true one.
/// Returns the best candidate, if it explains more.
fn rebuilt(experiments: &mut Experiments<'_, '_>, now: &Scored, trial: &Trial, domain: &Domain) -> Option<Scored> {
    let dots: Vec<usize> = trial.wrong.iter().chain(&trial.right).copied().collect();
    let mut best: Option<Scored> = None;
    for class in 0..now.hypothesis.adders.len() {
        if domain.adder.is_some_and(|own| own != class) || now.hypothesis.adders[class].grid.is_empty() {
            continue;
        }
        for scored in on_plain_grids(experiments, &now.hypothesis, class, &dots) {
            if experiments.is_late() {
                break;
            }
            keep_better(&mut best, now.explained, climb(experiments, scored, 0, domain));
            if best.as_ref().is_some_and(|best| best.explained == domain.dots.len()) {
                return best;
            }
        }
    }
    best
}

/// Returns the candidates with a grid of one rule for this adder, with c cut or not, that explain the most of these dots,
/// best first.
pub(super) fn on_plain_grids(
    experiments: &mut Experiments<'_, '_>,
    hypothesis: &Hypothesis,
    class: usize,
    dots: &[usize],
) -> Vec<Scored> {
    let with = |adder: Adder| {
        let mut hypothesis = hypothesis.clone();
        hypothesis.adders.set(class, adder);
        hypothesis
    };
    let candidates: Vec<Hypothesis> = plain_grids(&hypothesis.adders[class]).into_iter().map(with).collect();
    let mut found: Vec<Scored> = Vec::new();
    keep_among(experiments, Limit::Stage, &mut found, REBUILT, &candidates, dots);
    found
}

/// Maximum number of candidates that are compared on all dots; more of them if at most `FEW` dots are unexplained.
const BEST_OF: usize = 12;
const FEW: usize = 24;
const BEST_OF_FEW: usize = 240;
/// How many of them are compared before those that explain fewer than the best so far are abandoned early.
const BEST_AT_ONCE: usize = 4;

/// Returns the candidate that explains the most of the dots `all`, the simplest of equals, if it explains more than
/// `now`.
fn best_of<'b>(
    experiments: &mut Experiments<'_, '_>,
    now: &Scored,
    candidates: impl Iterator<Item = &'b Hypothesis>,
    all: &[usize],
) -> Option<Scored> {
    // If few dots are left, many changes explain a sample of them, and all but the right ones are soon rejected.
    let left = all.len() - now.explained;
    let fewer = left.checked_sub(1)?;
    let most = if left <= FEW { BEST_OF_FEW } else { BEST_OF };
    let mut best: Option<Scored> = None;
    let candidates: Vec<&Hypothesis> = candidates.take(most).collect();
    // Changes with equal effects break the same dots, so the dots that reject one come first for the next.
    let (mut first, mut others) = (Vec::new(), all.to_vec());
    for some in candidates.chunks(BEST_AT_ONCE) {
        let allowed = best.as_ref().map_or(fewer, |best| all.len() - best.explained);
        let found = experiments.each(Limit::None, 1, some, |spent, answered, hypothesis| {
            let dots = first.iter().chain(&others).copied();
            differing_of(spent, answered, hypothesis, dots, allowed)
        });
        for (hypothesis, wrong) in some.iter().zip(found) {
            let Some(wrong) = wrong else { continue };
            if wrong.len() > allowed {
                if left <= FEW {
                    wrong.into_iter().for_each(|(at, _)| move_from(&mut others, at, &mut first));
                }
                continue;
            }
            let explained = all.len() - wrong.len();
            let is_better = best.as_ref().is_none_or(|best| {
                let is_simpler = || hypothesis.complexity() < best.hypothesis.complexity();
                explained > best.explained || explained == best.explained && is_simpler()
            });
            if is_better {
                best = Some(Scored { hypothesis: (*hypothesis).clone(), explained });
            }
        }
    }
    best
}

/// Moves a dot to the end of another list, if it is in this one, which is in ascending order.
fn move_from(dots: &mut Vec<usize>, at: usize, to: &mut Vec<usize>) {
    if let Ok(place) = dots.binary_search(&at) {
        to.push(dots.remove(place));
    }
}
