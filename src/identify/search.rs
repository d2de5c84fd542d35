//! The search for parameters: candidates that explain the most of what was asked, then every change of one value, then of
//! two, until nothing is left unexplained.

use std::rc::Rc;

use mxprobe_api::{Format, OperationId};
use mxprobe_sim::{Adder, Flush, Output, Scale};

use super::{
    experiments::Experiments,
    hypothesis::{Hypothesis, cores, exact, exact_cores, float, no_nan, plain_grids},
    moves::{self, Move},
    nan,
    skeleton::{Role, Skeleton},
};

/// Candidates that are kept at once.
const BEAM: usize = 6;
/// Dots on which every candidate is tried first.
const FIRST: usize = 40;
/// Dots on which the better ones are compared.
pub(super) const SECOND: usize = 700;

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
fn unexplained_of(experiments: &mut Experiments<'_, '_>, hypothesis: &Hypothesis, which: &[usize]) -> Vec<usize> {
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

/// Fraction bits of d that are ever set.
pub(super) fn fraction_bits(experiments: &Experiments<'_, '_>) -> u32 {
    let id = experiments.subject.id();
    let Some(float) = id.d.as_float() else { return 0 };
    let answers = experiments.ordinary.iter().map(|at| experiments.answers[*at] >> float.unread_bits);
    let set = answers.fold(0, |set, answer| set | answer & ((1 << float.fraction_bits) - 1));
    let unused = if set == 0 { 0 } else { set.trailing_zeros() };
    float.fraction_bits - unused
}

/// The best candidates of one skeleton on ordinary values, best first.
pub(super) fn coarse(experiments: &mut Experiments<'_, '_>, skeleton: &Rc<Skeleton>) -> Vec<Scored> {
    let id = experiments.subject.id();
    let bits = fraction_bits(experiments);
    let start = start(skeleton, id, experiments, bits);
    let ordinary = experiments.ordinary.clone();
    let (first, second) = (spread(&ordinary, FIRST), spread(&ordinary, SECOND));
    // What block scales multiply decides on what grid everything else is.
    let mut starts = vec![start.clone()];
    if id.block_scale().is_some() && skeleton.roles.contains(&Role::Group) {
        let mut scaled = start.clone();
        let groups = scaled.adders.iter_mut().zip(&skeleton.roles).filter(|(_, role)| **role == Role::Group);
        groups.for_each(|(adder, _)| adder.scale = Scale::Sum);
        starts.push(scaled);
    }
    let mut downward: Vec<Scored> = starts.iter().filter_map(|start| downward(experiments, start, bits)).collect();
    for scored in &mut downward {
        scored.explained = explained(experiments, &scored.hypothesis, &second, second.len()).unwrap_or(0);
    }
    if downward.iter().any(|scored| scored.explained == second.len()) {
        downward.sort_by_key(|scored| std::cmp::Reverse(scored.explained));
        return downward;
    }
    let mut beam = downward;
    beam.push(Scored { hypothesis: start, explained: 0 });
    let sweeps = if skeleton.roles.len() == 1 { 1 } else { 4 };
    let mut best = 0;
    for sweep in 0..sweeps {
        for class in (0..skeleton.roles.len()).rev() {
            beam = sweep_class(experiments, beam, class, bits, &[], &first, &second);
        }
        let now = beam.first().map_or(0, |scored| scored.explained);
        if now == second.len() || sweep > 0 && now <= best || now * 2 < second.len() {
            break;
        }
        best = now;
        beam.truncate(2);
    }
    beam
}

/// Dots at the least from which one adder is told.
const TELLING: usize = 24;

/// The adders one by one, the one that gives d first: each from dots in which nothing below it adds two terms, so that what
/// is not known yet has no say.
fn downward(experiments: &mut Experiments<'_, '_>, from: &Hypothesis, bits: u32) -> Option<Scored> {
    let classes = from.skeleton.expression.adders_downward();
    if classes.len() < 2 {
        return None;
    }
    let ordinary = experiments.ordinary.clone();
    let busy: Vec<u128> = ordinary.iter().map(|at| from.skeleton.expression.busy(&experiments.dots[*at])).collect();
    let mut now = Scored { hypothesis: from.clone(), explained: 0 };
    let mut known = 0;
    for class in classes {
        known |= 1 << class;
        let which: Vec<usize> = ordinary
            .iter()
            .zip(&busy)
            .filter(|(_, busy)| *busy & !known == 0 && *busy >> class & 1 == 1)
            .map(|(at, _)| *at)
            .collect();
        if which.len() < TELLING {
            continue;
        }
        let (first, second) = (spread(&which, FIRST), spread(&which, SECOND));
        let beam = sweep_class(experiments, vec![now.clone()], class, bits, &[], &first, &second);
        let domain = Domain { dots: second, adder: Some(class), reading: false };
        let mut best: Option<Scored> = None;
        for candidate in beam.into_iter().take(2) {
            let found = climb(experiments, candidate, 0, &domain);
            if best.as_ref().is_none_or(|best| found.explained > best.explained) {
                best = Some(found);
            }
            if best.as_ref().is_some_and(|best| best.explained == domain.dots.len()) {
                break;
            }
        }
        now = best.unwrap_or(now);
    }
    Some(now)
}

/// Tries everything that one adder may be, in each candidate of the beam; results on the way in these formats too.
pub(super) fn sweep_class(
    experiments: &mut Experiments<'_, '_>,
    beam: Vec<Scored>,
    class: usize,
    bits: u32,
    formats: &[Format],
    first: &[usize],
    second: &[usize],
) -> Vec<Scored> {
    let id = experiments.subject.id();
    let mut quick: Vec<(usize, usize, Adder)> = Vec::new();
    // How many candidates explain so many of the first dots: what cannot be among the best is given up early.
    let mut better = vec![0usize; first.len() + 1];
    let mut least = 0;
    // What loses nothing before it rounds is looked at first, and at nothing else where it explains everything.
    for scored in &beam {
        let hypothesis = &scored.hypothesis;
        let (role, now) = (hypothesis.skeleton.roles[class], hypothesis.adders[class].clone());
        for adder in exact_cores(role, &now, id, bits, formats) {
            let mut changed = hypothesis.clone();
            changed.adders[class] = adder;
            if explained(experiments, &changed, first, 0).is_some()
                && explained(experiments, &changed, second, 0).is_some()
            {
                return vec![Scored { hypothesis: changed, explained: second.len() }];
            }
        }
    }
    for (at, scored) in beam.iter().enumerate() {
        let hypothesis = &scored.hypothesis;
        let now = hypothesis.adders[class].clone();
        let others =
            cores(hypothesis.skeleton.roles[class], &now, id, bits, formats).into_iter().filter(|other| *other != now);
        let others: Vec<Adder> = others.collect();
        for adder in std::iter::once(now.clone()).chain(others) {
            if experiments.is_late() && !quick.is_empty() {
                break;
            }
            let mut changed = hypothesis.clone();
            changed.adders[class] = adder;
            let Some(right) = explained(experiments, &changed, first, first.len() - least) else { continue };
            quick.push((right, at, changed.adders.swap_remove(class)));
            better[right] += 1;
            while better[least + 1..].iter().sum::<usize>() >= 8 * BEAM {
                least += 1;
            }
        }
    }
    // A stable sort: of equals the simplest stays first.
    quick.sort_by_key(|(right, ..)| std::cmp::Reverse(*right));
    let mut next: Vec<Scored> = Vec::new();
    for (_, at, adder) in quick.into_iter().take(8 * BEAM) {
        let mut hypothesis = beam[at].hypothesis.clone();
        hypothesis.adders[class] = adder;
        let allowed = next.get(BEAM - 1).map_or(second.len(), |worst| second.len() - worst.explained);
        if let Some(explained) = explained(experiments, &hypothesis, second, allowed) {
            next.push(Scored { hypothesis, explained });
            next.sort_by_key(|scored| std::cmp::Reverse(scored.explained));
            next.truncate(BEAM);
        }
    }
    next
}

/// A candidate to begin with.
fn start(skeleton: &Rc<Skeleton>, id: &OperationId, experiments: &Experiments<'_, '_>, bits: u32) -> Hypothesis {
    let adders = skeleton.names.iter().zip(&skeleton.roles).map(|(name, role)| {
        let (output, rules) = match role {
            Role::Group => (Output::Wide, no_nan()),
            Role::Root => (float(id.d, bits, mxprobe_api::Rounding::NearestEven), nan::seen(experiments, id.d)),
            Role::Inner | Role::Product => {
                let format = if id.d.bits() < 32 { mxprobe_api::Format::F32 } else { id.d };
                (
                    float(format, format.fraction_bits(), mxprobe_api::Rounding::NearestEven),
                    nan::seen(experiments, format),
                )
            }
        };
        exact(name, output, rules)
    });
    Hypothesis { skeleton: Rc::clone(skeleton), adders: adders.collect(), flush: Flush::default() }
}

/// Changes values of the best candidates until every dot is explained, or no change explains more.
pub(super) fn refine(
    experiments: &mut Experiments<'_, '_>,
    beam: Vec<Scored>,
    width: usize,
    pairs: usize,
) -> Option<Scored> {
    let total = experiments.dots.len();
    let mut scored: Vec<Scored> = beam
        .into_iter()
        .map(|scored| {
            let explained = total - unexplained(experiments, &scored.hypothesis).len();
            Scored { explained, ..scored }
        })
        .collect();
    scored.sort_by_key(|scored| (std::cmp::Reverse(scored.explained), scored.hypothesis.complexity()));
    scored.dedup_by_key(|scored| {
        (scored.explained, format!("{:?} {:?}", scored.hypothesis.adders, scored.hypothesis.flush))
    });
    scored.truncate(width);
    let mut best: Option<Scored> = None;
    let domain = Domain { dots: (0..total).collect(), adder: None, reading: true };
    for candidate in scored {
        let found = climb(experiments, candidate, 0, &domain);
        let found = parted(experiments, found, &domain);
        let found = climb(experiments, found, pairs, &domain);
        if best.as_ref().is_none_or(|best| found.explained > best.explained) {
            best = Some(found);
        }
        if best.as_ref().is_some_and(|best| best.explained == experiments.dots.len()) {
            break;
        }
    }
    best
}

/// Additions that are given an adder of their own, one after another, and how many are tried each time.
const PARTED: usize = 4;
const PARTED_TRIED: usize = 6;

/// Gives single additions an adder of their own, where the one that they share explains all but a few dots about them.
fn parted(experiments: &mut Experiments<'_, '_>, mut now: Scored, domain: &Domain) -> Scored {
    for _ in 0..PARTED {
        let wrong = unexplained_of(experiments, &now.hypothesis, &domain.dots);
        if wrong.is_empty() || experiments.is_late() {
            break;
        }
        let shared = now.hypothesis.shared();
        let untied = now.hypothesis.skeleton.expression.untied();
        let mut counts = vec![0usize; shared.len()];
        for at in spread(&wrong, TRIED_WRONG) {
            let busy = untied.busy(&experiments.dots[at]);
            // A dot about one addition says more than one about many.
            let weight = 64 / busy.count_ones().max(1) as usize;
            (0..shared.len()).filter(|node| busy >> (*node).min(127) & 1 == 1).for_each(|node| counts[node] += weight);
        }
        let mut nodes: Vec<usize> =
            (0..shared.len()).filter(|node| shared[*node] && (*node == 0 || counts[*node] > 0)).collect();
        // The last addition of all is the likeliest to differ.
        nodes.sort_by_key(|node| (*node != 0, std::cmp::Reverse(counts[*node])));
        let mut best: Option<Scored> = None;
        for node in nodes.into_iter().take(PARTED_TRIED) {
            let hypothesis = now.hypothesis.parted(node);
            let own = hypothesis.adders.len() - 1;
            // The one that has its own may be as it should be, and the others not.
            let before = now.hypothesis.skeleton.expression.adders_by_addition()[node];
            for adder in [own, before].into_iter().take(if node == 0 { 2 } else { 1 }) {
                let domain = Domain { dots: domain.dots.clone(), adder: Some(adder), reading: false };
                let from = Scored { hypothesis: hypothesis.clone(), explained: now.explained };
                let found = climb(experiments, from, 0, &domain);
                if found.explained > best.as_ref().map_or(now.explained, |best| best.explained) {
                    best = Some(found);
                }
            }
            if best.as_ref().is_some_and(|best| best.explained == domain.dots.len()) {
                break;
            }
        }
        let Some(better) = best else { break };
        now = climb(experiments, better, 0, domain);
    }
    now
}

/// Dots among those that are not explained, and among those that are, on which a change is tried; fewer where dots are
/// long.
const TRIED_FIRST: usize = 24;
const TRIED_WRONG: usize = 160;
const TRIED_RIGHT: usize = 240;
const TRIED_TERMS: usize = 4_800;

/// Steps of one climb at the most, and those in a row that explain less than one in so many of what is left.
const STEPS: usize = 30;
const SLOW_STEPS: usize = 3;
const CRAWL: usize = 12;

/// Over which dots a climb goes, and whether it changes one adder alone.
pub(super) struct Domain {
    pub(super) dots: Vec<usize>,
    pub(super) adder: Option<usize>,
    /// How operands are read is changed too.
    pub(super) reading: bool,
}

impl Domain {
    fn moves(&self, experiments: &Experiments<'_, '_>, hypothesis: &Hypothesis) -> Vec<Move> {
        match self.adder {
            Some(own) => {
                let mut list = moves::of_adder(experiments, hypothesis, own);
                if self.reading {
                    list.extend(moves::flushes(hypothesis.flush).into_iter().map(Move::Flush));
                }
                list
            }
            None => moves::all(experiments, hypothesis),
        }
    }
}

/// `pairs` is how often two values may be changed at once.
pub(super) fn climb(
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
        // The likely changes first: one that explains half of what is left and breaks nothing needs no comparison.
        let (likely, others): (Vec<Move>, Vec<Move>) =
            list.iter().cloned().partition(|change| change.is_likely(&now.hypothesis));
        let mut ranked = trial.rank(experiments, &now.hypothesis, &likely);
        let convinces = |(gain, _): &(Gain, Hypothesis)| gain.broken == 0 && 2 * gain.fixed >= trial.wrong.len();
        let mut better = None;
        if ranked.first().is_some_and(convinces) {
            better = best_of(experiments, &now, ranked.iter().map(|(_, hypothesis)| hypothesis), &domain.dots);
        }
        if better.is_none() {
            ranked.extend(trial.rank(experiments, &now.hypothesis, &others));
            sort(&mut ranked);
            better = best_of(experiments, &now, ranked.iter().map(|(_, hypothesis)| hypothesis), &domain.dots);
        }
        if let Some(better) = better {
            // Where each step explains a few of many, another adder is wanted and not this one changed.
            slow = if (better.explained - now.explained) * CRAWL < wrong.len() { slow + 1 } else { 0 };
            now = better;
            if slow < SLOW_STEPS {
                continue;
            }
            return now;
        }
        if pairs == 0 {
            return now;
        }
        pairs -= 1;
        if let Some(better) = rebuilt(experiments, &now, &trial, domain) {
            now = better;
            continue;
        }
        // No single change helps: two at once, the first of those that explain something at least.
        ranked.sort_by_key(|(gain, _)| std::cmp::Reverse(gain.fixed));
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
            let list = domain.moves(experiments, first);
            let ranked = trial.rank(experiments, first, &list);
            better = best_of(experiments, &now, ranked.iter().map(|(_, hypothesis)| hypothesis), &domain.dots);
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

/// Candidates of one adder made anew from which a climb starts.
const REBUILT: usize = 3;

/// One adder made anew, of one rule and with c cut or not, and climbed from: where another mechanism explains nearly as much
/// as the true one, no change of one value or two leads from it to that.
fn rebuilt(experiments: &mut Experiments<'_, '_>, now: &Scored, trial: &Trial, domain: &Domain) -> Option<Scored> {
    let dots: Vec<usize> = trial.wrong.iter().chain(&trial.right).copied().collect();
    let mut best: Option<Scored> = None;
    for class in 0..now.hypothesis.adders.len() {
        if domain.adder.is_some_and(|own| own != class) || now.hypothesis.adders[class].grid.is_empty() {
            continue;
        }
        let mut found: Vec<Scored> = Vec::new();
        for adder in plain_grids(&now.hypothesis.adders[class]) {
            let mut hypothesis = now.hypothesis.clone();
            hypothesis.adders[class] = adder;
            let allowed = found.get(REBUILT - 1).map_or(dots.len(), |worst| dots.len() - worst.explained);
            if let Some(explained) = explained(experiments, &hypothesis, &dots, allowed) {
                found.push(Scored { hypothesis, explained });
                found.sort_by_key(|scored| std::cmp::Reverse(scored.explained));
                found.truncate(REBUILT);
            }
        }
        for scored in found {
            if experiments.is_late() {
                break;
            }
            let climbed = climb(experiments, scored, 0, domain);
            if climbed.explained > best.as_ref().map_or(now.explained, |best| best.explained) {
                best = Some(climbed);
            }
            if best.as_ref().is_some_and(|best| best.explained == domain.dots.len()) {
                return best;
            }
        }
    }
    best
}

/// Candidates that are compared on all dots, and those where no more dots than `FEW` are left.
const BEST_OF: usize = 12;
const FEW: usize = 24;
const BEST_OF_FEW: usize = 240;

/// The best of some candidates on all these dots, if it is better than what there is.
fn best_of<'b>(
    experiments: &mut Experiments<'_, '_>,
    now: &Scored,
    candidates: impl Iterator<Item = &'b Hypothesis>,
    all: &[usize],
) -> Option<Scored> {
    // Where few dots are left, many changes explain them on a sample, and all but the right ones are given up soon.
    let most = if all.len() - now.explained <= FEW { BEST_OF_FEW } else { BEST_OF };
    let mut best: Option<Scored> = None;
    for hypothesis in candidates.take(most) {
        let least = best.as_ref().map_or(now.explained, |best| best.explained);
        let Some(explained) = explained(experiments, hypothesis, all, all.len() - least) else { continue };
        let simpler = best
            .as_ref()
            .is_some_and(|best| explained == best.explained && hypothesis.complexity() < best.hypothesis.complexity());
        if explained > least || simpler {
            best = Some(Scored { hypothesis: hypothesis.clone(), explained });
        }
    }
    best
}

#[derive(Clone, Copy, Debug)]
struct Gain {
    fixed: usize,
    broken: usize,
}

/// Some dots that are explained and some that are not.
struct Trial {
    wrong: Vec<usize>,
    right: Vec<usize>,
}

impl Trial {
    /// `all` is in ascending order, and so is `wrong`.
    fn new(all: &[usize], wrong: &[usize], step: usize, k: usize) -> Self {
        let right: Vec<usize> = all.iter().copied().filter(|at| wrong.binary_search(at).is_err()).collect();
        let from = if right.is_empty() { 0 } else { step * 37 % right.len() };
        let right: Vec<usize> = right[from..].iter().chain(&right[..from]).copied().collect();
        Self {
            wrong: spread(wrong, TRIED_WRONG.min(TRIED_TERMS / (k + 4)).max(60)),
            right: spread(&right, TRIED_RIGHT.min(TRIED_TERMS / (k + 4)).max(60)),
        }
    }

    /// The changes that explain more than they break, the best first.
    fn rank(&self, experiments: &mut Experiments<'_, '_>, now: &Hypothesis, list: &[Move]) -> Vec<(Gain, Hypothesis)> {
        // Most changes explain nothing: some dots tell that of most of them.
        let some = spread(&self.wrong, TRIED_FIRST);
        let found = self.ranked(experiments, now, list, &some);
        if !found.is_empty() || some.len() == self.wrong.len() {
            return found;
        }
        self.ranked(experiments, now, list, &self.wrong)
    }

    /// Those of the changes that explain one of some dots at least.
    fn ranked(
        &self,
        experiments: &mut Experiments<'_, '_>,
        now: &Hypothesis,
        list: &[Move],
        some: &[usize],
    ) -> Vec<(Gain, Hypothesis)> {
        let mut found = Vec::new();
        for change in list {
            if experiments.is_late() {
                break;
            }
            let Some(hypothesis) = change.apply(now) else { continue };
            let fixed = explained(experiments, &hypothesis, some, some.len()).unwrap_or(0);
            if fixed == 0 {
                continue;
            }
            let fixed = if some.len() == self.wrong.len() {
                fixed
            } else {
                explained(experiments, &hypothesis, &self.wrong, self.wrong.len()).unwrap_or(0)
            };
            let broken =
                self.right.len() - explained(experiments, &hypothesis, &self.right, self.right.len()).unwrap_or(0);
            found.push((Gain { fixed, broken }, hypothesis));
        }
        sort(&mut found);
        found
    }
}

/// The changes that explain the most and break the least first; of equals the simplest.
fn sort(found: &mut [(Gain, Hypothesis)]) {
    found.sort_by_cached_key(|(gain, hypothesis)| {
        let net = i64::try_from(gain.fixed).unwrap_or(0) - 3 * i64::try_from(gain.broken).unwrap_or(0);
        (std::cmp::Reverse(net), hypothesis.complexity())
    });
}
