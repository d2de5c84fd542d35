//! Question 5: which terms are added at once, which k share a block, and in what order blocks and c are joined.
//!
//! M and −M at two leaves cancel where the tree joins them; a value s far below M at a third leaf is lost if it meets M
//! before that, and survives if it joins later. All triples of leaves together determine the tree, whatever its fan-in
//! and however k is permuted. This is FPRev's idea (arXiv:2411.00442), except that survivors are identified instead of
//! counted, so that fused additions that lose nothing are recognised as well. A dot with s at all other leaves settles a
//! pair if all of them survive, or none.

use mxprobe_api::Error;

use super::{
    Ask, Leaf, Probe, Subject, blocks,
    facts::Facts,
    number::Number,
    steps,
    tree::{Counts, Losses, Tree},
};
use crate::{
    dots::Dot,
    findings::{AppliesTo, Comparable, Evidence, Finding, Shown},
};

pub(crate) const TREE: Probe = Probe {
    name: steps::TREE,
    question: "Which terms are added at once, and in what order are blocks and c joined? Nested lists of k and c.",
    how: "M and −M at two of the k + 1 terms, a value far below M at a third: it survives where M is gone before they \
         meet. All triples together determine the tree; if the same value at all other terms is kept or lost as a whole, \
         one dot tells of all of them.",
    answers: &[
        ("nested lists", "the numbers are k, `c` is the running sum; the members of one list are added at once"),
        ("inconclusive", "the formats are too narrow for one product to swamp another; see order.blocks"),
    ],
    source: steps::FPREV,
    applies_to: AppliesTo::Floating,
    shown: Shown::PLAIN.compared(Comparable::WithinK),
    ask: Ask::Question(ask),
};

/// How many bits s should lie below M if the formats allow it: more than any known alignment.
const GAP_BITS: i32 = 45;
/// The gap from which several values of s can be distinguished in one dot.
const SAFE_GAP_BITS: i32 = 38;
/// The widest gap that is tried if that was not enough.
const WIDEST_GAP_BITS: i32 = 160;

/// The most elements of A in dots that exist at the same time: more of them would be slow to make, from memory that the
/// system has to clear.
const ELEMENTS_AT_ONCE: usize = 1 << 18;

/// From this many leaves on, survivors are counted, with one dot for each pair of leaves, instead of identified.
const MANY_LEAVES: usize = 72;

pub(super) fn ask(subject: &Subject<'_>, facts: &mut Facts, found: &mut Vec<Finding>) -> Result<(), Error> {
    found.extend(order(subject, facts)?);
    Ok(())
}

fn order(subject: &Subject<'_>, facts: &mut Facts) -> Result<Vec<Finding>, Error> {
    let leaves = subject.leaves();
    let scale = Scale::of(subject);
    let precision = subject.id().d.fraction_bits().cast_signed() + 1;
    if leaves.len() == 2 {
        let tree =
            Tree::Node { joint: super::tree::Joint::Pair, children: leaves.into_iter().map(Tree::Leaf).collect() };
        return Ok(steps::findings(subject, facts, tree, Vec::new()));
    }
    let enough = scale.is_some_and(|scale| scale.gap >= precision.min(14) + 2);
    let (Some(scale), true) = (scale, enough) else { return blocks::under_c(subject, facts) };
    let scale = scale.above_remnants(subject, &leaves)?;
    if leaves.len() > MANY_LEAVES {
        return by_counts(subject, facts, &leaves, scale);
    }
    // A unit that keeps more bits than any known one loses only some of the small values, or none: the second attempt
    // asks each value separately, as far down as the formats allow. A unit with narrow intermediate results overflows:
    // the third attempt stays within the range of f16.
    let mut last = None;
    let mut exact = None;
    let mut tried: Vec<Scale> = Vec::new();
    for scale in [scale, scale.deepest(), scale.narrow()] {
        // In a narrow format, an attempt would ask the same dots again.
        if tried.contains(&scale) {
            continue;
        }
        tried.push(scale);
        let mut losses = Losses::new(leaves.len());
        let mut evidence = Vec::new();
        match fill(subject, &leaves, scale, &mut losses, &mut evidence)? {
            Triples::All => {}
            Triples::Unbuildable => return blocks::under_c(subject, facts),
            Triples::Odd(shown) => {
                let reason = "a leaf neither survives nor is lost when two others cancel";
                last = Some(Finding::inconclusive(TREE.name, reason).with(vec![*shown]));
                continue;
            }
        }
        match losses.tree(&leaves) {
            Ok(tree)
                if tree
                    .nodes()
                    .iter()
                    .any(|node| matches!(node, Tree::Node { joint: super::tree::Joint::Exact, .. })) =>
            {
                exact.get_or_insert((tree, evidence));
            }
            Ok(tree) => return Ok(steps::findings(subject, facts, tree, evidence)),
            Err((i, j, x)) => {
                let mut shown = Vec::new();
                if let Some(dot) = triple(subject, scale, i, j, &[(x, 0)]) {
                    let d = subject.ask(std::slice::from_ref(&dot))?[0];
                    let about = format!("M at {}, −M at {}, s at {}", show(i), show(j), show(x));
                    shown.push(subject.evidence(about, &dot, d, &[]));
                }
                let reason = "no tree explains which leaves are lost";
                last = Some(Finding::inconclusive(TREE.name, reason).with(shown));
            }
        }
    }
    if let Some((tree, evidence)) = exact {
        return Ok(steps::findings(subject, facts, tree, evidence));
    }
    Ok(last.into_iter().collect())
}

/// The magnitudes of M and s.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Scale {
    large: i32,
    small: i32,
    gap: i32,
    /// The exponents that every leaf can hold.
    range: (i32, i32),
    /// How many values of s one dot distinguishes.
    at_once: usize,
}

impl Scale {
    fn of(subject: &Subject<'_>) -> Option<Self> {
        let (product_low, product_high) = subject.exponents(Leaf::Product(0));
        let (c_low, c_high) = subject.exponents(Leaf::C);
        let (low, high) = (product_low.max(c_low), product_high.min(c_high));
        let wanted = GAP_BITS.max(subject.id().d.fraction_bits().cast_signed() + 22);
        let gap = wanted.min(high - low);
        if gap <= 0 {
            return None;
        }
        let small = low.max((-gap / 2).min(high - gap));
        let safe = SAFE_GAP_BITS.max(subject.id().d.fraction_bits().cast_signed() + 4);
        let precision = subject.id().d.fraction_bits().cast_signed();
        let at_once = (gap - safe + 1).clamp(1, precision.min(8));
        Some(Self { large: small + gap, small, gap, range: (low, high), at_once: at_once.unsigned_abs() as usize })
    }
}

impl Scale {
    /// One small value at a time, as far below M as the formats allow.
    fn deepest(self) -> Self {
        let (low, high) = self.range;
        let gap = WIDEST_GAP_BITS.min(high - low);
        // Half of the room above M, half below s, so that M stays clear of the ends of its range.
        let small = (self.small - (gap - self.gap) / 2).clamp(low, high - gap);
        Self { large: small + gap, small, gap, at_once: 1, ..self }
    }

    /// Within the range of f16, one small value at a time.
    fn narrow(self) -> Self {
        let (low, high) = self.range;
        let (large, small) = (high.min(14), low.max(-14));
        let gap = (large - small).max(1);
        Self { large: small + gap, small, gap, at_once: 1, ..self }
    }

    /// Raises s if M − M leaves a remnant (as with a one's complement): s must be visible next to it.
    fn above_remnants(self, subject: &Subject<'_>, leaves: &[Leaf]) -> Result<Self, Error> {
        let last = leaves.len() - 1;
        let pairs = [(0, 1), (0, last), (1, last), (last - 1, last)];
        let bare = |(i, j): &(usize, usize)| triple(subject, self, leaves[*i], leaves[*j], &[]);
        let dots: Vec<Dot> = pairs.iter().filter(|(i, j)| i != j).filter_map(bare).collect();
        let answers = subject.ask(&dots)?;
        let remnant = answers.iter().filter_map(|d| subject.d_value(*d)?.leading()).max();
        let Some(remnant) = remnant else { return Ok(self) };
        let precision = subject.id().d.fraction_bits().cast_signed();
        let gap = (self.large - remnant + precision - 4).min(self.gap);
        let at_once = if gap < self.gap { 1 } else { self.at_once };
        Ok(Self { small: self.large - gap, gap, at_once, ..self })
    }
}

/// The summation tree, found with small values that are large enough to survive alone if those of [`TREE`] are not: a
/// grid that never falls below some exponent loses them whatever the other terms are. `None` if they survive, or if the
/// remaining range is too small.
///
/// # Errors
/// Errors of the device.
pub(crate) fn summation_above_floors(subject: &Subject<'_>) -> Result<Option<Tree>, Error> {
    let leaves = subject.leaves();
    let Some(scale) = Scale::of(subject).map(Scale::narrow) else { return Ok(None) };
    if leaves.len() < 3 || leaves.len() > MANY_LEAVES {
        return Ok(None);
    }
    let precision = subject.id().d.fraction_bits().cast_signed() + 1;
    let mut small = scale.small;
    loop {
        if scale.large - small < precision.min(14) + 2 {
            return Ok(None);
        }
        let alone = |leaf: &Leaf| subject.dot(&[(*leaf, Number::power(small))]);
        let Some(dots) = leaves.iter().map(alone).collect::<Option<Vec<Dot>>>() else { return Ok(None) };
        let answers = subject.ask(&dots)?;
        if answers.iter().all(|d| subject.d_value(*d).is_some_and(|value| !value.is_zero())) {
            break;
        }
        small += 1;
    }
    if small == scale.small {
        return Ok(None);
    }
    let scale = Scale { small, gap: scale.large - small, ..scale };
    let mut losses = Losses::new(leaves.len());
    Ok(match fill(subject, &leaves, scale, &mut losses, &mut Vec::new())? {
        Triples::All => losses.tree(&leaves).ok(),
        Triples::Odd(_) | Triples::Unbuildable => None,
    })
}

/// A dot with M at i, −M at j and s·2^shift at others.
fn triple(subject: &Subject<'_>, scale: Scale, i: Leaf, j: Leaf, small: &[(Leaf, i32)]) -> Option<Dot> {
    let large = Number::power(scale.large);
    let mut leaves = vec![(i, large), (j, large.negated())];
    leaves.extend(small.iter().map(|(leaf, shift)| (*leaf, Number::power(scale.small + shift))));
    subject.dot(&leaves)
}

/// The outcome of asking all triples.
enum Triples {
    /// Every loss is known.
    All,
    /// An answer is neither "lost" nor "survives".
    Odd(Box<Evidence>),
    /// Leaves that share a block scale cannot be far enough apart.
    Unbuildable,
}

impl Triples {
    fn odd(subject: &Subject<'_>, dot: &Dot, d: u64) -> Self {
        Self::Odd(Box::new(subject.evidence("M, −M and small values: neither kept nor lost", dot, d, &[])))
    }
}

/// Asks all triples and records the losses.
fn fill(
    subject: &Subject<'_>,
    leaves: &[Leaf],
    scale: Scale,
    losses: &mut Losses,
    evidence: &mut Vec<Evidence>,
) -> Result<Triples, Error> {
    let n = leaves.len();
    let pairs: Vec<(usize, usize)> = (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j))).collect();
    let others = |(i, j): (usize, usize)| (0..n).filter(move |x| *x != i && *x != j);
    let at = |(i, j): (usize, usize), small: &[(Leaf, i32)]| triple(subject, scale, leaves[i], leaves[j], small);
    let about =
        |(i, j): (usize, usize), small: &str| format!("M at {}, −M at {}, {small}", show(leaves[i]), show(leaves[j]));
    // The first and the last pair serve as evidence.
    let is_shown = |evidence: &[Evidence], pair: (usize, usize)| {
        evidence.is_empty() || pair == (n - 2, n - 1) && evidence.len() < 3
    };
    let without: Option<Vec<Dot>> = pairs.iter().map(|pair| at(*pair, &[])).collect();
    let Some(mut dots) = without else { return Ok(Triples::Unbuildable) };
    // An even number of s may be kept where one is lost, if the grid lies just above s.
    if n > 4 && !n.is_multiple_of(2) {
        let same = |pair: (usize, usize)| others(pair).map(|x| (leaves[x], 0)).collect::<Vec<_>>();
        let everywhere: Option<Vec<Dot>> = pairs.iter().map(|pair| at(*pair, &same(*pair))).collect();
        dots.extend(everywhere.into_iter().flatten());
    }
    let answers = subject.ask(&dots)?;
    let bare: Vec<Option<Number>> = answers[..pairs.len()].iter().map(|d| subject.d_value(*d)).collect();
    // If the sum of s at all other leaves is kept, or nothing of it, the fate of each of them is known.
    let all = Number::new(i128::try_from(n - 2).unwrap_or(0), scale.small);
    let mut is_known = vec![false; pairs.len()];
    for (place, (dot, d)) in dots.iter().zip(&answers).skip(pairs.len()).enumerate() {
        let (pair, bare) = (pairs[place], bare[place]);
        let sum = subject.d_value(*d).zip(bare).and_then(|(value, bare)| value - bare);
        let Some(sum) = sum.filter(|sum| sum.is_zero() || *sum == all) else { continue };
        is_known[place] = true;
        others(pair).for_each(|x| losses.set(pair.0, pair.1, x, sum.is_zero()));
        if is_shown(evidence, pair) {
            let about = about(pair, "the same small value elsewhere");
            evidence.push(kept_or_lost(subject, about, (dot, *d), bare, all));
        }
    }
    let unknown = (0..pairs.len()).filter(|place| !is_known[*place]);
    let keys: Vec<(usize, Vec<usize>)> = unknown
        .flat_map(|place| {
            let others: Vec<usize> = others(pairs[place]).collect();
            others.chunks(scale.at_once).map(|chunk| (place, chunk.to_vec())).collect::<Vec<_>>()
        })
        .collect();
    let at_once = (ELEMENTS_AT_ONCE / subject.k()).max(1);
    let mut single = Vec::new();
    for keys in keys.chunks(at_once) {
        let dot = |(place, chunk): &(usize, Vec<usize>)| {
            let small: Vec<(Leaf, i32)> = chunk.iter().zip(0..).map(|(x, shift)| (leaves[*x], shift)).collect();
            at(pairs[*place], &small)
        };
        let Some(dots) = keys.iter().map(dot).collect::<Option<Vec<Dot>>>() else { return Ok(Triples::Unbuildable) };
        let answers = subject.ask(&dots)?;
        for ((dot, (place, chunk)), d) in dots.iter().zip(keys).zip(&answers) {
            let (pair, bare) = (pairs[*place], bare[*place]);
            let sum = subject.d_value(*d).zip(bare).and_then(|(value, bare)| value - bare);
            match sum.and_then(|sum| subset(sum, scale, chunk.len())) {
                Some(Survivors { places, remnant }) if chunk.len() == 1 || !remnant => {
                    for (place, x) in chunk.iter().enumerate() {
                        losses.set(pair.0, pair.1, *x, places >> place & 1 == 0);
                    }
                }
                // A remnant of M (a sticky bit) may affect the other values, so ask about each separately.
                _ if chunk.len() > 1 => single.extend(chunk.iter().map(|x| (pair, *x, bare))),
                _ => return Ok(Triples::odd(subject, dot, *d)),
            }
            if is_shown(evidence, pair) {
                let names: Vec<String> = chunk.iter().map(|x| show(leaves[*x])).collect();
                let about = about(pair, &format!("small values at {}", names.join(" ")));
                let all = Number::new((1 << chunk.len()) - 1, scale.small);
                evidence.push(kept_or_lost(subject, about, (dot, *d), bare, all));
            }
        }
    }
    for single in single.chunks(at_once) {
        let alone = |(pair, x, _): &((usize, usize), usize, Option<Number>)| at(*pair, &[(leaves[*x], 0)]);
        let Some(dots) = single.iter().map(alone).collect::<Option<Vec<Dot>>>() else {
            return Ok(Triples::Unbuildable);
        };
        let answers = subject.ask(&dots)?;
        for ((dot, ((i, j), x, bare)), d) in dots.iter().zip(single).zip(&answers) {
            let sum = subject.d_value(*d).zip(*bare).and_then(|(value, bare)| value - bare);
            let Some(survivors) = sum.and_then(|sum| subset(sum, scale, 1)) else {
                return Ok(Triples::odd(subject, dot, *d));
            };
            losses.set(*i, *j, *x, survivors.places == 0);
        }
    }
    Ok(Triples::All)
}

/// A dot with small values beside M and −M, as evidence. Rivals lose every small value, or keep `all` of their sum.
fn kept_or_lost(
    subject: &Subject<'_>,
    about: String,
    (dot, d): (&Dot, u64),
    bare: Option<Number>,
    all: Number,
) -> Evidence {
    let none = subject.d_bits(bare.unwrap_or(Number::ZERO)).unwrap_or(0);
    let kept = bare.and_then(|bare| bare.plus(all)).and_then(|kept| subject.d_bits(kept));
    let rivals = [("every small value lost", Some(none)), ("every small value kept", kept)];
    let rivals: Vec<(String, u64)> =
        rivals.into_iter().filter_map(|(answer, d)| Some((answer.to_owned(), d?))).collect();
    subject.evidence(about, dot, d, &rivals)
}

/// Asks M at i, −M at j and the same small value everywhere else, for every pair, and counts how many survive.
fn by_counts(subject: &Subject<'_>, facts: &mut Facts, leaves: &[Leaf], scale: Scale) -> Result<Vec<Finding>, Error> {
    let n = leaves.len();
    let mut counts = Counts::new(n);
    let mut evidence = Vec::new();
    let small: Vec<(Leaf, i32)> = leaves.iter().map(|leaf| (*leaf, 0)).collect();
    let Some(template) =
        subject.dot(&small.iter().map(|(leaf, _)| (*leaf, Number::power(scale.small))).collect::<Vec<_>>())
    else {
        return blocks::under_c(subject, facts);
    };
    let pairs: Vec<(usize, usize)> = (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j))).collect();
    for chunk in pairs.chunks((ELEMENTS_AT_ONCE / n).max(1)) {
        let mut dots = Vec::with_capacity(chunk.len());
        for (i, j) in chunk {
            let mut dot = template.clone();
            for (leaf, sign) in [(leaves[*i], 1), (leaves[*j], -1)] {
                let value = Number::power(scale.large).times(sign);
                match (leaf, subject.product_bits(value), subject.c_bits(value)) {
                    (Leaf::Product(k), Some(bits), _) => (dot.a[k], dot.b[k]) = bits,
                    (Leaf::C, _, Some(bits)) => dot.c = bits,
                    _ => return blocks::under_c(subject, facts),
                }
            }
            dots.push(dot);
        }
        let answers = subject.ask(&dots)?;
        for (((i, j), dot), d) in chunk.iter().zip(&dots).zip(&answers) {
            let kept = subject.d_value(*d).map(|value| value.scaled(-scale.small)).and_then(whole);
            let Some(kept) = kept.filter(|kept| *kept <= n - 2) else {
                let shown =
                    subject.evidence("M, −M and equal small values: no whole number of them is kept", dot, *d, &[]);
                let reason = "leaves neither survive nor are lost when two others cancel";
                return Ok(vec![Finding::inconclusive(TREE.name, reason).with(vec![shown])]);
            };
            counts.set(*i, *j, n - 2 - kept);
            if (*i, *j) == (0, 1) {
                let about = format!("M at p0, −M at p1, small values elsewhere: {kept} are kept");
                evidence.push(subject.evidence(about, dot, *d, &[]));
            }
        }
    }
    match counts.tree(leaves) {
        Ok(tree) => Ok(steps::findings(subject, facts, tree, evidence)),
        Err((i, j)) => {
            let reason = format!("no tree explains how many leaves are lost to {} and {}", show(i), show(j));
            Ok(vec![Finding::inconclusive(TREE.name, reason)])
        }
    }
}

/// Converts a number to an integer if it is a nonnegative one.
fn whole(number: Number) -> Option<usize> {
    let (negative, magnitude, exponent) = number.parts();
    let fits = (0..64).contains(&exponent) && (!negative || magnitude == 0);
    fits.then(|| usize::try_from(magnitude << exponent).ok()).flatten()
}

fn show(leaf: Leaf) -> String {
    match leaf {
        Leaf::Product(k) => format!("p{k}"),
        Leaf::C => "c".into(),
    }
}

/// Which of the values s, 2s, 4s, … a sum contains, and whether it contains anything else.
struct Survivors {
    /// One bit for each value.
    places: u64,
    /// Whether M left something above them: a sticky bit, a result rounded to odd, a one's complement.
    remnant: bool,
}

fn subset(difference: Number, scale: Scale, count: usize) -> Option<Survivors> {
    if difference.is_zero() {
        return Some(Survivors { places: 0, remnant: false });
    }
    let scaled = difference.scaled(-scale.small);
    let (negative, magnitude, exponent) = scaled.parts();
    if exponent < 0 {
        return None;
    }
    let low = if exponent >= 64 { 0 } else { (magnitude << exponent.min(63)) & ((1 << count) - 1) };
    let remnant = negative || exponent >= 64 || (magnitude << exponent) >> count != 0;
    let low = if negative && low != 0 { (1 << count) - low } else { low };
    Some(Survivors { places: u64::try_from(low).ok()?, remnant })
}
