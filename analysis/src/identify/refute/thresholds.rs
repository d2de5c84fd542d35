//! Rivals of a hypothesis in which a limit lies elsewhere: one below which values are left out, a floor of exponents, or
//! the lowest bit of a sum.

use mxprobe_api::{FloatEncoding, Format, OperationId};
use mxprobe_models::{Adder, Below, Class, Exponent, GridRule, IgnoredValues, Output, Term};

use super::{alike::Terms, tried::Tried};
use crate::identify::{
    candidates::{
        hypothesis::{Hypothesis, grid, plain_rule},
        scored::{explained, spread},
        unrounded::{is_rounded_on_the_way, rounded_last, rounded_once, rounded_to, rounds_to_more, unrounded},
    },
    dots::experiments::Experiments,
    tree::skeleton::Role,
};

/// A rival with another limit.
pub(in crate::identify) struct Threshold {
    pub(in crate::identify) hypothesis: Hypothesis,
    /// The exponent about which it differs, if it changes a floor.
    pub(in crate::identify) floor: Option<i32>,
    /// The adder that it changes.
    pub(in crate::identify) adder: usize,
    /// How far below the largest term, in binades, it and the others of its kind differ, if that is known.
    pub(in crate::identify) depths: Vec<i32>,
    /// Whether it differs from the hypothesis only where the rival before it does.
    pub(in crate::identify) follows: bool,
}

/// Returns the rivals that are the hardest to tell apart, for every limit.
pub(in crate::identify) fn all(
    experiments: &mut Experiments<'_, '_>,
    hypothesis: &Hypothesis,
    tried: &mut Tried,
) -> Vec<Threshold> {
    let mut found = limits(hypothesis);
    found.extend(floors(experiments, hypothesis, tried));
    found.extend(grids(experiments, hypothesis, tried));
    found.extend(rules(experiments, hypothesis, tried));
    found.extend(more_or_fewer_bits(experiments, hypothesis));
    found
}

/// Returns the rivals in which an adder that leaves out small values has the next limits, or the next widths with the
/// same limit.
fn limits(hypothesis: &Hypothesis) -> Vec<Threshold> {
    let mut found = Vec::new();
    for (at, adder) in hypothesis.adders.iter().enumerate() {
        let Some(ignored) = adder.ignored_values else { continue };
        for (wider, further) in [(0, -1), (0, 1), (-1, 1), (1, -1), (3, -3)] {
            let mut changed = hypothesis.clone();
            changed.adders[at].grid.iter_mut().for_each(|rule| rule.fraction_bits += wider);
            changed.adders[at].ignored_values =
                Some(IgnoredValues { below_bits: ignored.below_bits + further, ..ignored });
            found.push(Threshold { hypothesis: changed, floor: None, adder: at, depths: Vec::new(), follows: false });
        }
    }
    found
}

/// Returns the rivals in which a rule has no floor, the next lower one, or one of the four highest that explain every
/// dot so far, except those that no term reaches.
fn floors(experiments: &mut Experiments<'_, '_>, hypothesis: &Hypothesis, tried: &mut Tried) -> Vec<Threshold> {
    let id = experiments.subject.id();
    let Some(least) = id.d.as_float().map(FloatEncoding::min_exponent) else { return Vec::new() };
    let mut found = Vec::new();
    for (at, adder) in hypothesis.adders.iter().enumerate() {
        for (number, rule) in adder.grid.iter().enumerate() {
            let now = rule.exponent_floor;
            let lowest = lowest_exponent(id, hypothesis, at, *rule);
            // A floor that no exponent lies below has the effect of none.
            let effect = |floor: Option<i32>| floor.filter(|floor| lowest.is_none_or(|lowest| *floor > lowest));
            let with = |about: i32, floor: Option<i32>| {
                let mut changed = hypothesis.clone();
                changed.adders[at].grid[number].exponent_floor = floor;
                let is_new = effect(floor) != effect(now);
                // Of floors above the present one, each concerns fewer dots than the next higher one.
                let follows = floor.is_some_and(|floor| floor < about && now.is_none_or(|now| now < floor));
                let (floor, depths) = (Some(about), Vec::new());
                is_new.then_some(Threshold { hypothesis: changed, floor, adder: at, depths, follows })
            };
            // Low floors change no result so far, and higher ones do: a binary search finds the highest that does not.
            let (mut good, mut bad) = (now.unwrap_or(least - 80).max(lowest.unwrap_or(i32::MIN)), least + 40);
            while bad - good > 1 {
                let middle = i32::midpoint(good, bad);
                let fits =
                    with(middle, Some(middle)).is_none_or(|rival| tried.explains(experiments, &rival.hypothesis));
                if fits { good = middle } else { bad = middle }
            }
            found.extend((0..4).filter_map(|lower| with(good, Some(good - lower))));
            found.extend(now.into_iter().flat_map(|floor| [with(floor, Some(floor - 1)), with(floor, None)]).flatten());
        }
    }
    found
}

/// Returns an exponent that no term of an adder lies below, as a rule for all terms counts it. `None` if the rule is one
/// for some terms, whose floor counts even if all of those are zero, or if exponents are not known.
fn lowest_exponent(id: &OperationId, hypothesis: &Hypothesis, at: usize, rule: GridRule) -> Option<i32> {
    if rule.terms != Class::All || id.block_scale().is_some() {
        return None;
    }
    // Converted subnormals are normal numbers.
    let counts_subnormals = rule.exponent == Exponent::Leading || hypothesis.flush.converted.is_some();
    let of = |format: Format| {
        let float = format.as_float()?;
        Some(if counts_subnormals { float.exponents().0 } else { float.min_exponent() })
    };
    let nodes = &hypothesis.skeleton.plan.nodes;
    let of_term = |term: &Term| match term {
        Term::Product(_) => Some(of(id.a)? + of(id.b)?),
        Term::C => of(id.c),
        Term::PositiveZero => Some(i32::MAX),
        Term::Node(index) => match hypothesis.adders[nodes[*index].adder].output {
            Output::Float { format, .. } => of(format),
            _ => None,
        },
    };
    let terms = nodes.iter().filter(|node| node.adder == at).flat_map(|node| &node.terms);
    terms.map(of_term).try_fold(i32::MAX, |lowest, of_term| Some(lowest.min(of_term?)))
}

/// The most fraction bits of a grid that may take the place of an exact sum, and how many more than the smallest number
/// that explains every dot so far are tried.
const EXACT_BITS: i32 = 200;
const MORE: [i32; 7] = [0, 1, 3, 7, 15, 31, 63];

/// Returns the rivals in which an exact sum is cut or floored instead, those in which one that is rounded is also cut once
/// it is normalised, as far as the dots so far allow, and those in which one that is cut, at alignment or once it is
/// normalised, and passed on unrounded keeps more bits.
fn grids(experiments: &mut Experiments<'_, '_>, hypothesis: &Hypothesis, tried: &mut Tried) -> Vec<Threshold> {
    let mut found = Vec::new();
    for (at, adder) in hypothesis.adders.iter().enumerate() {
        if adder.grid.is_empty() {
            found.extend(cuts(experiments, hypothesis, at, tried));
            if let Some(apart) = single_ones_apart(hypothesis, at) {
                found.extend(cuts(experiments, &apart, apart.adders.len() - 1, tried));
            }
        }
        if let (Some(most), None, Output::Float { .. }) =
            (most_bits(hypothesis, at), adder.normalised_fraction_bits, adder.output)
        {
            let with = |bits| Adder { normalised_fraction_bits: u32::try_from(bits).ok(), ..adder.clone() };
            let cut = fewest((experiments, tried), hypothesis, at, &with);
            // Cuts further down lose no bit, or nearly none.
            if cut[0].depths[0] < most {
                found.extend(cut.into_iter().take(2));
            }
        }
        if let ([rule], Output::Wide) = (&adder.grid[..], adder.output) {
            let with = |bits| Adder { grid: vec![GridRule { fraction_bits: bits, ..*rule }], ..adder.clone() };
            found.extend(thresholds(hypothesis, at, rule.fraction_bits, &with));
        }
        if let (Some(bits), Output::Wide) = (adder.normalised_fraction_bits, adder.output) {
            let with = |bits| Adder { normalised_fraction_bits: u32::try_from(bits).ok(), ..adder.clone() };
            found.extend(thresholds(hypothesis, at, bits.cast_signed(), &with));
        }
    }
    found
}

/// Returns the rivals in which an exact sum is cut or floored, counted from the exponents of operands or from the leading
/// bit: the first of these kinds, and those that the dots so far allow nearer to the largest term.
fn cuts(
    experiments: &mut Experiments<'_, '_>,
    hypothesis: &Hypothesis,
    at: usize,
    tried: &mut Tried,
) -> Vec<Threshold> {
    let adder = &hypothesis.adders[at];
    let most = bits_of_one_term(experiments.subject.id(), hypothesis, at);
    let (mut found, mut nearest) = (Vec::new(), i32::MAX);
    for below in [Below::Truncate, Below::Floor] {
        for exponent in [Exponent::Operands, Exponent::Leading] {
            let with = |bits| Adder { grid: grid(exponent, bits), below, ..adder.clone() };
            if nearest < i32::MAX && !tried.explains(experiments, &with_adder(hypothesis, at, with(nearest - 1))) {
                continue;
            }
            let cut = fewest((experiments, tried), hypothesis, at, &with);
            let first = cut[0].depths[0];
            if first < nearest {
                nearest = first;
                let loses_bits = |rival: &Threshold| {
                    let mut rules = rival.hypothesis.adders[at].grid.iter();
                    most.is_none_or(|most| rules.any(|rule| rule.fraction_bits < most))
                };
                found.extend(cut.into_iter().filter(loses_bits));
            }
        }
    }
    found
}

/// Returns the most bits that a term has below its leading one, if an adder takes only products and c, and each alone.
fn bits_of_one_term(id: &OperationId, hypothesis: &Hypothesis, at: usize) -> Option<i32> {
    let mut most = 0;
    for node in hypothesis.skeleton.plan.nodes.iter().filter(|node| node.adder == at) {
        most = most.max(match node.terms[..] {
            [Term::Product(_)] => id.a.fraction_bits() + id.b.fraction_bits() + 1,
            [Term::C] => id.c.fraction_bits(),
            _ => return None,
        });
    }
    Some(most.cast_signed())
}

/// Returns the hypothesis in which the additions of a single term by an adder that has others, too, are by an equal one of
/// their own: the last one. `None` if there are none.
fn single_ones_apart(hypothesis: &Hypothesis, at: usize) -> Option<Hypothesis> {
    let own = hypothesis.adders.len();
    let expression = hypothesis.skeleton.expression.with_single_ones(at, own);
    let mut apart = hypothesis.with_one_more(expression, "single", Role::Inner);
    let uses = |adder: usize| apart.skeleton.plan.nodes.iter().any(|node| node.adder == adder);
    if !uses(at) || !uses(own) {
        return None;
    }
    apart.set(own, hypothesis.adders[at].clone());
    Some(apart)
}

/// Returns the most fraction bits that a sum on the grid of an adder may have once it is normalised: as many as it keeps at
/// alignment, and those of the carry. `None` without a grid.
fn most_bits(hypothesis: &Hypothesis, at: usize) -> Option<i32> {
    let bits = hypothesis.adders[at].grid.iter().map(|rule| rule.fraction_bits).max()?;
    let nodes = hypothesis.skeleton.plan.nodes.iter().filter(|node| node.adder == at);
    // Each term is below four times the power of two by which it counts.
    let carry = nodes.map(|node| node.terms.len().max(1).ilog2().cast_signed() + 3).max()?;
    Some(bits + carry)
}

/// Returns the rivals in which a grid that only products or only values place is also placed by the others, with as few
/// bits as the dots so far allow.
fn rules(experiments: &mut Experiments<'_, '_>, hypothesis: &Hypothesis, tried: &mut Tried) -> Vec<Threshold> {
    let mut found = Vec::new();
    for (at, adder) in hypothesis.adders.iter().enumerate().filter(|(_, adder)| !adder.grid.is_empty()) {
        for terms in [Class::Products, Class::Values] {
            let places = adder.grid.iter().any(|rule| rule.terms == terms || rule.terms == Class::All);
            if places || !Terms::of(hypothesis, at).has(terms) {
                continue;
            }
            let with = |bits| {
                let more = GridRule { terms, ..plain_rule(Exponent::Operands, bits) };
                Adder { grid: adder.grid.iter().copied().chain([more]).collect(), ..adder.clone() }
            };
            found.extend(fewest((experiments, tried), hypothesis, at, &with));
        }
    }
    found
}

/// How far below the last place of an intermediate format a bit lies that it loses.
const LOST: [i32; 6] = [1, 2, 4, 8, 16, 31];

/// Returns the rivals in which an adder on the way passes its sums on unrounded, those in which one that does rounds
/// them to f64, f32 or d's format instead, and those in which the last sum is complete in a wider format before d is
/// rounded, or no longer is.
fn more_or_fewer_bits(experiments: &Experiments<'_, '_>, hypothesis: &Hypothesis) -> Vec<Threshold> {
    let d = experiments.subject.id().d;
    let of_last =
        rounded_last(hypothesis, d.fraction_bits()).into_iter().chain(rounded_once(hypothesis, d.fraction_bits()));
    let last = hypothesis.skeleton.plan.nodes.last().map_or(0, |node| node.adder);
    let threshold = |hypothesis| Threshold { hypothesis, floor: None, adder: last, depths: Vec::new(), follows: false };
    let mut found: Vec<Threshold> = of_last.map(threshold).collect();
    for at in 0..hypothesis.adders.len() {
        let formats: &[Format] = match d {
            Format::F64 => &[],
            Format::F32 => &[Format::F64, d],
            _ => &[Format::F64, Format::F32, d],
        };
        let mut rivals: Vec<Hypothesis> =
            formats.iter().flat_map(|format| rounded_to(hypothesis, at, *format)).collect();
        // What a sum on a grid loses by rounding hardly shows, either.
        let on_a_grid = !hypothesis.adders[at].grid.is_empty();
        if rounds_to_more(hypothesis, at, d.fraction_bits()) || on_a_grid && is_rounded_on_the_way(hypothesis, at) {
            rivals.extend(unrounded(hypothesis, at));
        }
        let bits = |adder: &Adder| match adder.output {
            Output::Float { fraction_bits, .. } => fraction_bits.cast_signed(),
            _ => Format::F64.fraction_bits().cast_signed(),
        };
        let deep: Vec<i32> = LOST.iter().map(|lower| bits(&hypothesis.adders[at]) + lower).collect();
        let threshold =
            |hypothesis| Threshold { hypothesis, floor: None, adder: at, depths: deep.clone(), follows: false };
        found.extend(rivals.into_iter().map(threshold));
    }
    found
}

/// Returns the rivals in which one adder keeps so many bits, from the smallest number that explains every dot so far.
fn fewest(
    (experiments, tried): (&mut Experiments<'_, '_>, &mut Tried),
    hypothesis: &Hypothesis,
    at: usize,
    with: &dyn Fn(i32) -> Adder,
) -> Vec<Threshold> {
    let changed = |bits: i32| with_adder(hypothesis, at, with(bits));
    // A number that does not explain a few of the dots does not explain all of them.
    let least = tried.fewest(&changed(1)).unwrap_or_else(|| {
        let all: Vec<usize> = (0..experiments.dots.len()).collect();
        let some = spread(&all, SOME);
        lowest(1, EXACT_BITS, |bits| explained(experiments, &changed(bits), &some, 0).is_some())
    });
    let mut fits = |bits: i32| tried.explains(experiments, &changed(bits));
    // Comparing one that does with every dot takes the longest, so numbers are tried from there upwards.
    let (mut good, mut bad, mut step) = (least, least - 1, 1);
    while good < EXACT_BITS && !fits(good) {
        (bad, good, step) = (good, (good + step).min(EXACT_BITS), 2 * step);
    }
    let least = lowest(bad, good, fits);
    tried.set_fewest(&changed(1), least);
    thresholds(hypothesis, at, least, with)
}

/// Dots on which numbers of bits are compared first.
const SOME: usize = 512;

/// Returns the lowest number above `bad` that fits, if higher ones do too; `good` is taken to fit.
fn lowest(mut bad: i32, mut good: i32, mut fits: impl FnMut(i32) -> bool) -> i32 {
    while good - bad > 1 {
        let middle = i32::midpoint(good, bad);
        if fits(middle) { good = middle } else { bad = middle }
    }
    good
}

/// Returns the rivals in which one adder keeps `least` bits, and more.
fn thresholds(hypothesis: &Hypothesis, at: usize, least: i32, with: &dyn Fn(i32) -> Adder) -> Vec<Threshold> {
    let depths: Vec<i32> = MORE.into_iter().map(|more| least + more).filter(|bits| *bits <= EXACT_BITS).collect();
    let threshold = |bits: &i32| Threshold {
        hypothesis: with_adder(hypothesis, at, with(*bits)),
        floor: None,
        adder: at,
        depths: depths.clone(),
        // With more bits, fewer dots lose one.
        follows: *bits > least,
    };
    depths.iter().map(threshold).collect()
}

fn with_adder(hypothesis: &Hypothesis, at: usize, adder: Adder) -> Hypothesis {
    let mut changed = hypothesis.clone();
    changed.adders.set(at, adder);
    changed
}

/// Returns how far below the largest term, in binades, something is decided.
pub(super) fn depths<'a>(adders: impl IntoIterator<Item = &'a Adder>) -> Vec<i32> {
    let mut found = vec![11, 24];
    for adder in adders {
        found.extend(adder.grid.iter().map(|rule| rule.fraction_bits));
        if let Some(ignored) = adder.ignored_values {
            found.extend(adder.grid.iter().map(|rule| rule.fraction_bits + ignored.below_bits));
        }
        found.extend(adder.normalised_fraction_bits.map(u32::cast_signed));
        if let Output::Float { fraction_bits, .. } = adder.output {
            found.push(fraction_bits.cast_signed());
        }
    }
    found
}
