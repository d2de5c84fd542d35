//! Changes a candidate until it explains every dot or no change explains more. A step changes one value, replaces an
//! adder, or changes two values together.

use mxprobe_models::Adder;

use super::coupled::{Floors, coupled, equalised};
use crate::identify::{
    candidates::{
        hypothesis::{Hypothesis, plain_grids},
        moves::Move,
        proposals,
        scored::{
            Scored, best_first, differing_of, explained, explained_of, keep_among, keep_better, spread, unexplained_of,
            without,
        },
        united::exchanged,
    },
    dots::experiments::{Experiments, Limit},
};
use crate::in_order::InOrder;

/// Number of unexplained dots on which a change is tried first, of those on which it is tried then if no change helps, and
/// of unexplained and of explained dots on which one is tried that explains any of those. Eight are computed side by side.
/// There are fewer if dots are long: `TRIED_TERMS` limits their terms.
const TRIED_FIRST: usize = 8;
const TRIED_THEN: usize = 16;
pub(in crate::identify) const TRIED_WRONG: usize = 160;
pub(in crate::identify) const TRIED_RIGHT: usize = 240;
const TRIED_TERMS: usize = 4_800;

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

/// Number of changes that are completed by another one, and the share of the unexplained dots that each of them explains
/// at least, as one in so many.
const COMPLETED: usize = 8;
const HALFWAY: usize = 4;
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
/// Changes that a thread tries at a time.
const RANKED_AT_ONCE: usize = 32;

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

/// Number of unexplained dots that a change explains, and of explained dots that it breaks.
#[derive(Clone, Copy, Debug)]
struct Gain {
    fixed: usize,
    broken: usize,
}

/// Samples of the dots that are explained and of those that are not.
struct Trial {
    wrong: Vec<usize>,
    right: Vec<usize>,
}

impl Trial {
    /// Takes the samples; `step` shifts that of explained dots. Both `all` and `wrong` are in ascending order.
    fn new(all: &[usize], wrong: &[usize], step: usize, k: usize) -> Self {
        let right = without(all, wrong);
        let from = if right.is_empty() { 0 } else { step * 37 % right.len() };
        let right: Vec<usize> = right[from..].iter().chain(&right[..from]).copied().collect();
        Self {
            wrong: spread(wrong, TRIED_WRONG.min(TRIED_TERMS / (k + 4)).max(60)),
            right: spread(&right, TRIED_RIGHT.min(TRIED_TERMS / (k + 4)).max(60)),
        }
    }

    /// Returns the changes that explain at least one dot of the sample, the best first, and the others that may.
    fn rank<'m>(
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
    fn rank_left(
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
fn sort(found: &mut [(Gain, Hypothesis)]) {
    found.order_by_key(|(gain, hypothesis)| {
        let net = i64::try_from(gain.fixed).unwrap_or(0) - 3 * i64::try_from(gain.broken).unwrap_or(0);
        (std::cmp::Reverse(net), hypothesis.complexity())
    });
}
