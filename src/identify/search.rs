//! The search for parameters: candidates that explain the most of what was asked, changed until they explain everything.

use std::rc::Rc;

use mxprobe_api::{Format, OperationId};
use mxprobe_models::{Adder, Flush, NanRules, Output, Scale};

use super::{
    climb::{Domain, TRIED_WRONG, climb},
    experiments::Experiments,
    flattened::flattened,
    hypothesis::{Hypothesis, ON_THE_WAY, cores, exact_cores, float},
    nan,
    scored::{Scored, explained, spread, unexplained, unexplained_of},
    skeleton::{Role, Skeleton},
    wrapped::wrapped,
};

/// Candidates that are kept at once.
const BEAM: usize = 6;
/// Dots on which every candidate is tried first.
pub(super) const FIRST: usize = 40;
/// Dots on which the better ones are compared.
pub(super) const SECOND: usize = 700;

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

/// Per cent of the dots that a candidate has to explain before its tree is changed.
const NEARLY: usize = 80;

/// The candidate with fewer levels of unrounded sums, or an adder of its own for each product, if that explains more.
fn reshaped(experiments: &mut Experiments<'_, '_>, now: Scored, domain: &Domain) -> Scored {
    let mut best = now.clone();
    for hypothesis in flattened(&now.hypothesis) {
        let allowed = domain.dots.len() * (100 - NEARLY) / 100;
        if let Some(explained) = explained(experiments, &hypothesis, &domain.dots, allowed) {
            let found = climb(experiments, Scored { hypothesis, explained }, 0, domain);
            if found.explained > best.explained {
                best = found;
            }
        }
    }
    if best.explained < domain.dots.len()
        && let Some(better) = wrapped(experiments, &best, domain)
    {
        best = better;
    }
    best
}

/// A candidate to begin with.
fn start(skeleton: &Rc<Skeleton>, id: &OperationId, experiments: &Experiments<'_, '_>, bits: u32) -> Hypothesis {
    let adders = skeleton.names.iter().zip(&skeleton.roles).map(|(name, role)| {
        let (output, rules) = match role {
            Role::Group => (Output::Wide, NanRules::default()),
            Role::Root => (float(id.d, bits, mxprobe_api::Rounding::NearestEven), nan::seen(experiments, id.d)),
            Role::Inner | Role::Product => {
                let format = if id.d.bits() < 32 { mxprobe_api::Format::F32 } else { id.d };
                (
                    float(format, format.fraction_bits(), mxprobe_api::Rounding::NearestEven),
                    nan::seen(experiments, format),
                )
            }
        };
        Adder::exact(name, output, rules)
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
        let mut found = parted(experiments, found, &domain);
        if found.explained * 100 >= total * NEARLY && found.explained < total {
            found = reshaped(experiments, found, &domain);
        }
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

/// The adder of one addition made anew, of everything that it may be, from dots about that addition: what rounds and what
/// hands on its sum lie more than one change apart.
fn made_anew(
    experiments: &mut Experiments<'_, '_>,
    hypothesis: &Hypothesis,
    (node, own): (usize, usize),
    wrong: &[usize],
    domain: &Domain,
) -> Option<Scored> {
    // A sum of integers has no choice of format and rounding: all that it may be was tried.
    if node == 0 || experiments.is_late() || experiments.subject.id().is_integer() {
        return None;
    }
    let untied = hypothesis.skeleton.expression.untied();
    let about = |at: &usize| untied.busy(&experiments.dots[*at]) >> node.min(127) & 1 == 1;
    let wrong: Vec<usize> = wrong.iter().copied().filter(about).collect();
    let right: Vec<usize> =
        domain.dots.iter().copied().filter(|at| wrong.binary_search(at).is_err() && about(at)).collect();
    if wrong.len() < TELLING {
        return None;
    }
    // As many of those that tell as of the others.
    let some = |count: usize| {
        let mut some = [spread(&wrong, count / 2), spread(&right, count / 2)].concat();
        some.sort_unstable();
        some
    };
    let (first, second) = (some(FIRST), some(SECOND));
    let start = Scored { hypothesis: hypothesis.clone(), explained: 0 };
    let bits = fraction_bits(experiments);
    let beam = sweep_class(experiments, vec![start], own, bits, &ON_THE_WAY, &first, &second);
    let best = beam.into_iter().next().filter(|best| best.explained * 2 > second.len())?;
    let domain = Domain { dots: domain.dots.clone(), adder: Some(own), reading: false };
    Some(climb(experiments, best, 0, &domain))
}

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
            if let Some(anew) = made_anew(experiments, &hypothesis, (node, own), &wrong, domain)
                && anew.explained > best.as_ref().map_or(now.explained, |best| best.explained)
            {
                best = Some(anew);
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
