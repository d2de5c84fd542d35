//! The refinement of candidates: values, additions and trees changed until every dot is explained.

use mxprobe_api::Subnormals;
use mxprobe_models::{Flush, Output, ZeroSign};

use super::{
    alone::{c_by_another_adder, rounded_alone},
    climb::{Domain, climb, climb_together, on_plain_grids},
    gathered::gathered,
    search::{FIRST, SECOND, TELLING, fraction_bits, sweep_class},
    trial::{TRIED_RIGHT, TRIED_WRONG},
    wrapped::wrapped,
};
use crate::identify::{
    candidates::{
        flattened::flattened,
        hypothesis::{EACH_PRODUCT, Hypothesis, ON_THE_WAY},
        moves::hand_on,
        scored::{
            Scored, best_and_simplest_first, explained, half_of_each, keep_better, misses_zeros_alone, spread,
            unexplained, unexplained_of, without,
        },
    },
    dots::experiments::Experiments,
};
use crate::in_order::InOrder;

/// Changes values of the best `width` candidates until every dot is explained, or no change explains more. Two values
/// may be changed simultaneously `pairs` times; if that is not zero, three values of one adder may be changed too.
pub(in crate::identify) fn refine(
    experiments: &mut Experiments<'_, '_>,
    beam: Vec<Scored>,
    width: usize,
    pairs: usize,
) -> Option<Scored> {
    let total = experiments.dots.len();
    let scored = most_explaining(experiments, beam, width);
    let mut best: Option<Scored> = None;
    let domain = Domain::whole((0..total).collect());
    let completing = Domain { completing: true, ..Domain::whole((0..total).collect()) };
    for candidate in scored {
        let mut plain = climbed(experiments, candidate, &domain);
        if let Some(found) = begun_at_zero(experiments, &plain, &domain) {
            return Some(found);
        }
        if pairs > 0 {
            plain = climb_together(experiments, plain, &domain);
        }
        let mut found = parted(experiments, plain.clone(), &domain);
        // Completed changes would imitate an addition that differs from the others, so they come after that.
        if found.explained < total {
            let before = plain.explained;
            let completed = climb(experiments, plain, 0, &completing);
            if completed.explained > before {
                let completed = parted(experiments, completed, &domain);
                if completed.explained > found.explained {
                    found = completed;
                }
            }
        }
        if found.explained * 100 >= total * NEARLY && found.explained < total {
            found = reshaped(experiments, found, &domain);
        }
        let found = climb(experiments, found, pairs, &completing);
        if best.as_ref().is_none_or(|best| found.explained > best.explained) {
            best = Some(found);
        }
        if best.as_ref().is_some_and(|best| best.explained == experiments.dots.len()) {
            break;
        }
    }
    best
}

/// Returns the `width` candidates that explain the most of all dots, the simplest of equals first.
pub(in crate::identify) fn most_explaining(
    experiments: &mut Experiments<'_, '_>,
    beam: Vec<Scored>,
    width: usize,
) -> Vec<Scored> {
    let total = experiments.dots.len();
    let mut scored: Vec<Scored> = beam
        .into_iter()
        .map(|scored| {
            let explained = total - unexplained(experiments, &scored.hypothesis).len();
            Scored { explained, ..scored }
        })
        .collect();
    best_and_simplest_first(&mut scored);
    scored.dedup_by_key(|scored| {
        (scored.explained, format!("{:?} {:?}", scored.hypothesis.adders, scored.hypothesis.flush))
    });
    scored.truncate(width);
    scored
}

/// Returns the candidate with sums that begin at +0, after further changes, if zeros are all that is left without and
/// nothing is with them. Adders whose zeros are positive imitate that, so their zeros have the usual signs again.
fn begun_at_zero(experiments: &mut Experiments<'_, '_>, now: &Scored, domain: &Domain) -> Option<Scored> {
    if now.explained == domain.dots.len() || !misses_zeros_alone(experiments, Some(now)) {
        return None;
    }
    let tree = &now.hypothesis.skeleton.expression;
    let begun = [false, true].map(|second| tree.begun_at_zero(second)).into_iter().filter(|begun| begun != tree);
    begun.into_iter().find_map(|begun| {
        let mut hypothesis = now.hypothesis.in_tree(begun);
        for adder in hypothesis.adders.iter_mut() {
            adder.zero = ZeroSign::Ieee;
            if let Output::Float { subnormals, .. } = &mut adder.output
                && *subnormals == Subnormals::FlushToPositiveZero
            {
                *subnormals = Subnormals::FlushAfterRounding;
            }
        }
        let found = climb(experiments, Scored { hypothesis, explained: 0 }, 0, domain);
        (found.explained == domain.dots.len()).then_some(found)
    })
}

/// Of the dots left unexplained, one in so many may remain for an adder for single leaves to be taken at once.
const REMAIN: usize = 8;

/// Changes values of a candidate, with an adder for single leaves or without it, whichever explains more.
pub(in crate::identify) fn climbed(
    experiments: &mut Experiments<'_, '_>,
    candidate: Scored,
    domain: &Domain,
) -> Scored {
    let mut alone = rounded_alone(experiments, &candidate, domain);
    let left = domain.dots.len() - candidate.explained;
    if let Some(alone) = alone.take_if(|alone| (domain.dots.len() - alone.explained) * REMAIN <= left) {
        return alone;
    }
    let plain = climb(experiments, candidate, 0, domain);
    match alone {
        Some(alone) if alone.explained > plain.explained => climb(experiments, alone, 0, domain),
        _ => plain,
    }
}

/// The most additions that are given an adder of their own, one after another, and how many are tried each time.
const PARTED: usize = 4;
const PARTED_TRIED: usize = 6;

/// Searches the adder of some additions afresh among all its cores, from dots about them. Changes of one value do not
/// suffice, because an adder that rounds and one that passes its sum on are more than one change apart.
fn made_anew(
    experiments: &mut Experiments<'_, '_>,
    hypothesis: &Hypothesis,
    (nodes, own): (&[usize], usize),
    wrong: &[usize],
    domain: &Domain,
) -> Option<Scored> {
    // For sums of integers, everything that an adder may be has been tried already.
    if nodes.contains(&0) || experiments.is_late() || experiments.subject.id().is_integer() {
        return None;
    }
    let untied = hypothesis.skeleton.expression.untied();
    let which = mask(nodes);
    let about = |at: &usize| untied.busy(&experiments.dots[*at]) & which != 0;
    let wrong: Vec<usize> = wrong.iter().copied().filter(about).collect();
    let right: Vec<usize> = without(&domain.dots, &wrong).into_iter().filter(about).collect();
    if wrong.len() < TELLING {
        return None;
    }
    let (first, second) = (half_of_each(&wrong, &right, FIRST), half_of_each(&wrong, &right, SECOND));
    let start = Scored { hypothesis: hypothesis.clone(), explained: 0 };
    let bits = fraction_bits(experiments);
    let beam = sweep_class(experiments, vec![start], own, bits, &ON_THE_WAY, &first, &second);
    let best = beam.into_iter().next().filter(|best| best.explained * 2 > second.len())?;
    let domain = Domain::of_adder(own, domain.dots.clone());
    Some(climb(experiments, best, 0, &domain))
}

/// Dots on which grids are compared.
const COMPARED: usize = 400;

/// Passes the sums of an adder (`own`) on unrounded, and gives the adder that takes them the grid of one rule that then
/// explains the most. One addition that rounds all its terms alike can imitate both. Returns the best candidate after
/// further changes.
fn passed_on(
    experiments: &mut Experiments<'_, '_>,
    hypothesis: &Hypothesis,
    (by, own): (usize, usize),
    wrong: &[usize],
    domain: &Domain,
) -> Option<Scored> {
    if !matches!(hypothesis.adders[own].output, Output::Float { .. }) || experiments.subject.id().is_integer() {
        return None;
    }
    let mut changed = hypothesis.clone();
    hand_on(&mut changed.adders[own]);
    let right = without(&domain.dots, wrong);
    let some = half_of_each(wrong, &right, COMPARED);
    let best = on_plain_grids(experiments, &changed, by, &some).into_iter().next()?;
    let before = right.len().min(COMPARED / 2);
    let is_better = best.explained.saturating_sub(before) * 4 > some.len() - before;
    is_better.then(|| climb(experiments, best, 0, domain))
}

/// Gives single additions, or all of the lower levels, an adder of their own if the shared one leaves dots about them
/// unexplained and that explains more.
fn parted(experiments: &mut Experiments<'_, '_>, mut now: Scored, domain: &Domain) -> Scored {
    for _ in 0..PARTED {
        let wrong = unexplained_of(experiments, &now.hypothesis, &domain.dots);
        if wrong.is_empty() || experiments.is_late() {
            break;
        }
        let mut shared = now.hypothesis.shared();
        // Single products that pass an adder alone pass the same one.
        let names = &now.hypothesis.skeleton.names;
        let of = now.hypothesis.skeleton.expression.adders_by_addition();
        shared.iter_mut().zip(of).for_each(|(shared, of)| *shared &= names[of] != EACH_PRODUCT);
        let untied = now.hypothesis.skeleton.expression.untied();
        let right = without(&domain.dots, &wrong);
        let samples = [spread(&wrong, TRIED_WRONG), spread(&right, TRIED_RIGHT)];
        let busy = samples.map(|some| some.iter().map(|at| untied.busy(&experiments.dots[*at])).collect::<Vec<_>>());
        let mut counts = vec![0usize; shared.len()];
        for busy in &busy[0] {
            // A dot that involves one addition says more about it than a dot that involves many.
            let weight = 64 / busy.count_ones().max(1) as usize;
            (0..shared.len()).filter(|node| busy >> (*node).min(127) & 1 == 1).for_each(|node| counts[node] += weight);
        }
        let mut nodes: Vec<usize> =
            (0..shared.len()).filter(|node| shared[*node] && (*node == 0 || counts[*node] > 0)).collect();
        // The addition that gives d is the likeliest to differ.
        nodes.order_by_key(|node| (*node != 0, std::cmp::Reverse(counts[*node])));
        let mut best: Option<Scored> = None;
        let mut levels = by_level(&now.hypothesis);
        levels.order_by_key(|nodes| std::cmp::Reverse(concerned(nodes, &busy)));
        let singles = nodes.into_iter().map(|node| vec![node]).take(PARTED_TRIED);
        for nodes in levels.into_iter().chain(singles) {
            // The levels come first, and one of them that explains most of what is left is taken.
            let most = best.as_ref().map_or(0, |best: &Scored| best.explained - now.explained);
            if nodes.len() == 1 && most * 4 > wrong.len() * 3 {
                break;
            }
            let hypothesis = now.hypothesis.parted(&nodes);
            let own = hypothesis.adders.len() - 1;
            // The copy may be right for these additions and wrong for the others, so the shared adder is changed too.
            let before = now.hypothesis.skeleton.expression.adders_by_addition()[nodes[0]];
            let copies = [own, before].into_iter().take(if nodes[0] == 0 || nodes.len() > 1 { 2 } else { 1 });
            // Operands that are read as zero can imitate an addition that flushes d.
            let reads_all = (nodes[0] == 0 && hypothesis.flush != Flush::default())
                .then(|| (own, Hypothesis { flush: Flush::default(), ..hypothesis.clone() }));
            for (adder, hypothesis) in copies.map(|adder| (adder, hypothesis.clone())).chain(reads_all) {
                let domain = Domain::of_adder(adder, domain.dots.clone());
                let found = climb(experiments, Scored { hypothesis, explained: now.explained }, 0, &domain);
                keep_better(&mut best, now.explained, found);
            }
            let anew = made_anew(experiments, &hypothesis, (&nodes, own), &wrong, domain);
            let passed_on =
                if nodes.len() > 1 { passed_on(experiments, &hypothesis, (before, own), &wrong, domain) } else { None };
            for found in anew.into_iter().chain(passed_on) {
                keep_better(&mut best, now.explained, found);
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

/// Returns the bits of these additions in the masks of [`Expression::busy`].
fn mask(nodes: &[usize]) -> u128 {
    nodes.iter().fold(0, |bits, node| bits | 1 << (*node).min(127))
}

/// Returns in how many more of a thousand unexplained dots than of a thousand explained ones one of these additions adds
/// two terms. The arrays hold the masks of such additions, dot by dot.
fn concerned(nodes: &[usize], [wrong, right]: &[Vec<u128>; 2]) -> i64 {
    let which = mask(nodes);
    let share = |of: &[u128]| of.iter().filter(|busy| *busy & which != 0).count() * 1_000 / of.len().max(1);
    i64::try_from(share(wrong)).unwrap_or(0) - i64::try_from(share(right)).unwrap_or(0)
}

/// Returns the additions that c does not pass through, those that take products alone, and those of each argument of
/// the addition that gives d, of each adder that has several of them and others.
fn by_level(hypothesis: &Hypothesis) -> Vec<Vec<usize>> {
    let expression = &hypothesis.skeleton.expression;
    let of = expression.adders_by_addition();
    let branches = expression.branches();
    let arguments = branches.iter().flatten().max().map_or(0, |last| last + 1);
    let branches =
        (0..arguments).map(|argument| branches.iter().map(|of| *of == Some(argument)).collect::<Vec<bool>>());
    let levels = [expression.additions_without_c(), expression.additions_of_products()];
    let mut found: Vec<Vec<usize>> = Vec::new();
    for is_one in levels.into_iter().chain(branches) {
        for adder in 0..hypothesis.adders.len() {
            let own: Vec<usize> = (0..of.len()).filter(|node| of[*node] == adder).collect();
            let some: Vec<usize> = own.iter().copied().filter(|node| is_one[*node]).collect();
            if some.len() > 1 && some.len() < own.len() && !found.contains(&some) {
                found.push(some);
            }
        }
    }
    found
}

/// Per cent of the dots that a candidate has to explain before its tree is changed.
const NEARLY: usize = 80;

/// Returns the candidate with fewer levels of unrounded sums, with c through another adder, with an adder of its own for
/// single products, or with an unrounded sum of what meets c, if that explains every dot; otherwise the candidate itself,
/// because a further adder always explains some.
fn reshaped(experiments: &mut Experiments<'_, '_>, now: Scored, domain: &Domain) -> Scored {
    let of = domain.dots.len();
    for hypothesis in flattened(&now.hypothesis) {
        if let Some(explained) = explained(experiments, &hypothesis, &domain.dots, of * (100 - NEARLY) / 100) {
            let found = climb(experiments, Scored { hypothesis, explained }, 0, domain);
            if found.explained == of {
                return found;
            }
        }
    }
    let found = c_by_another_adder(experiments, &now, domain);
    let found = found.or_else(|| wrapped(experiments, &now, domain).filter(|found| found.explained == of));
    found.or_else(|| gathered(experiments, &now, domain)).unwrap_or(now)
}
