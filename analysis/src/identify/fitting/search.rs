//! The search for parameters: takes the candidates that explain the most dots, and changes them until they explain all.

use std::sync::Arc;

use mxprobe_api::{Format, OperationId};
use mxprobe_models::{Adder, Flush, NanRules, Output, Scale};

use super::climb::{Domain, climb};
use crate::identify::{
    candidates::{
        hypothesis::{Hypothesis, cores, exact_cores, float},
        nan,
        scored::{Scored, best_first, explained, explained_of, keep_among, spread},
    },
    dots::experiments::{Experiments, Limit},
    tree::skeleton::{Role, Skeleton},
};
use crate::in_order::InOrder;

/// Candidates kept from one step to the next.
const BEAM: usize = 6;
/// Dots on which every candidate is first tried.
pub(in crate::identify) const FIRST: usize = 40;
/// Dots on which the better ones are compared.
pub(in crate::identify) const SECOND: usize = 700;

/// Adders that are tried before those that explain too few of the first dots are abandoned early, and how many a thread
/// tries at a time.
const SWEPT: usize = 512;
const SWEPT_AT_ONCE: usize = 32;

/// Returns the number of fraction bits of d, without the lowest ones that are zero in the result of every ordinary dot.
pub(in crate::identify) fn fraction_bits(experiments: &Experiments<'_, '_>) -> u32 {
    let id = experiments.subject.id();
    let Some(float) = id.d.as_float() else { return 0 };
    let answers = experiments.ordinary.iter().map(|at| experiments.answers[*at] >> float.unread_bits);
    let set = answers.fold(0, |set, answer| set | answer & ((1 << float.fraction_bits) - 1));
    let unused = if set == 0 { 0 } else { set.trailing_zeros() };
    float.fraction_bits - unused
}

/// Returns the best candidates of one skeleton on ordinary values, best first.
pub(in crate::identify) fn coarse(experiments: &mut Experiments<'_, '_>, skeleton: &Arc<Skeleton>) -> Vec<Scored> {
    let id = experiments.subject.id();
    let bits = fraction_bits(experiments);
    let start = start(skeleton, id, experiments, bits);
    let ordinary = experiments.ordinary.clone();
    let (first, second) = (spread(&ordinary, FIRST), spread(&ordinary, SECOND));
    // Whether block scales multiply products or sums decides the grid of everything else, so both are tried.
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
    if id.block_scale().is_some() {
        // Dots of one product in each group leave open what places the grid of their sum: with groups, it may be told.
        for scored in &mut downward {
            let swept = sweep_class(experiments, vec![scored.clone()], 0, bits, &[], &second, &second);
            let better = swept.into_iter().next().filter(|swept| swept.explained > scored.explained);
            *scored = better.unwrap_or_else(|| scored.clone());
        }
    }
    if downward.iter().any(|scored| scored.explained == second.len()) {
        best_first(&mut downward);
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

/// The fewest dots from which one adder is determined.
pub(in crate::identify) const TELLING: usize = 24;

/// Determines the adders one by one, beginning with the one that gives d: each from dots in which no adder below it
/// adds two terms, so that adders not known yet do not matter. `None` if there is only one adder.
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
        let domain = Domain::of_adder(class, second);
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

/// Tries every core of one adder in each candidate of the beam, with intermediate results in `formats` too. Candidates
/// are tried on the dots `first`, and the best of them compared on `second`. Returns the best ones, best first.
pub(in crate::identify) fn sweep_class(
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
    // How many candidates explain each number of the first dots. Those that cannot be among the best are abandoned
    // early.
    let mut better = vec![0usize; first.len() + 1];
    let mut least = 0;
    // Adders that lose no bit before they round are tried first; if one explains every dot, nothing else is tried.
    for scored in &beam {
        let hypothesis = &scored.hypothesis;
        let (role, now) = (hypothesis.skeleton.roles[class], hypothesis.adders[class].clone());
        for adder in exact_cores(role, &now, id, bits, formats) {
            let mut changed = hypothesis.clone();
            changed.adders.set(class, adder);
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
        for adders in std::iter::once(std::slice::from_ref(&now)).chain(others.chunks(SWEPT)) {
            // The first is always tried.
            let limit = if quick.is_empty() { Limit::None } else { Limit::Stage };
            let found = experiments.each(limit, SWEPT_AT_ONCE, adders, |spent, answered, adder| {
                let mut changed = hypothesis.clone();
                changed.adders.set(class, adder.clone());
                explained_of(spent, answered, &changed, first, first.len() - least)
            });
            for (adder, right) in adders.iter().zip(found) {
                let Some(right) = right else { continue };
                quick.push((right, at, adder.clone()));
                better[right] += 1;
                while better[least + 1..].iter().sum::<usize>() >= 8 * BEAM {
                    least += 1;
                }
            }
        }
    }
    // A stable sort: of equals the simplest stays first.
    quick.order_by_key(|(right, ..)| std::cmp::Reverse(*right));
    let mut next: Vec<Scored> = Vec::new();
    let best = quick.into_iter().take(8 * BEAM).map(|(_, at, adder)| {
        let mut hypothesis = beam[at].hypothesis.clone();
        hypothesis.adders.set(class, adder);
        hypothesis
    });
    keep_among(experiments, Limit::None, &mut next, BEAM, &best.collect::<Vec<_>>(), second);
    next
}

/// Returns the candidate that the search begins with: every adder is exact before it rounds to nearest even.
fn start(skeleton: &Arc<Skeleton>, id: &OperationId, experiments: &Experiments<'_, '_>, bits: u32) -> Hypothesis {
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
    Hypothesis { skeleton: Arc::clone(skeleton), adders: adders.collect(), flush: Flush::default() }
}
