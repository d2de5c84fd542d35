//! Question 3: how many bits are kept when terms are aligned, and how those shifted out are treated.

use mxprobe_api::Error;

use super::{
    Ask, Leaf, Probe, Subject, below,
    facts::{Facts, Kept, Structure},
    number::Number,
};
use crate::{
    dots::Dot,
    findings::{AppliesTo, Comparable, Evidence, Finding, Shown, Value, source},
};

pub(crate) const FRACTION_BITS: Probe = Probe {
    name: "alignment.fraction_bits",
    question: "How many bits below the largest exponent survive when terms are aligned?",
    how: "M, −M and M·2^−t at three terms of one addition, for growing t: the last t that survives.",
    answers: &[
        (
            "a number F",
            "a term more than F binades below the largest is lost, whatever the result could hold: \
             expect an error of about 2^−F of the largest term, not of the result",
        ),
        ("{exact_over}", "nothing was lost as far as the formats reach: sums are exact before they are rounded"),
        (
            "{exact_over, rounded_to_bits}",
            "each sum of two is exact, then rounded to that many bits, as IEEE 754 \
             asks",
        ),
    ],
    source: source::FASI,
    applies_to: AppliesTo::Floating,
    shown: Shown::at_a_glance(2, "bits kept").compared(Comparable::By(compared)),
    ask: Ask::Question(ask),
};

pub(crate) const C_FRACTION_BITS: Probe = Probe {
    name: "alignment.c_fraction_bits",
    question: "How many bits of c survive beside large products?",
    how: "As alignment.fraction_bits, with c as the small term.",
    answers: &[
        ("the same number", "c is aligned as a product is"),
        (
            "another number",
            "c is kept longer or cut earlier than products: it matters where a long sum is carried in c",
        ),
    ],
    source: source::FASI,
    applies_to: AppliesTo::Floating,
    shown: Shown::PLAIN,
    ask: Ask::Along,
};

/// The widest gap that is tried.
const WIDEST_GAP_BITS: i32 = 300;

pub(super) fn ask(subject: &Subject<'_>, facts: &mut Facts, found: &mut Vec<Finding>) -> Result<(), Error> {
    let Some(structure) = facts.structure.clone() else {
        found.push(Finding::inconclusive(FRACTION_BITS.name, "the order of the additions is not known"));
        return Ok(());
    };
    let products = structure.site_products();
    if structure.tree.is_none() {
        // Products of different scale blocks can be as far apart as their scales.
        if let Some(scale) = subject.id().block_scale().filter(|scale| scale.block < subject.k()) {
            let leaves = (Leaf::C, Leaf::Product(0), Leaf::Product(scale.block));
            let gaps = scan(subject, leaves.0, leaves.1, leaves.2)?;
            if let Kept::Bits(bits @ 1..) = gaps.kept() {
                facts.kept = Some(Kept::Bits(bits));
                found.push(gaps.finding(subject, FRACTION_BITS.name, Kept::Bits(bits)));
                found.push(below::ask(subject, &structure, leaves, bits)?);
                return Ok(());
            }
        }
        found.extend(narrow(subject, facts, &structure)?);
        return Ok(());
    }
    let fused = structure.site.len() >= 3;
    let (large, opposite, small) = if fused && products.len() >= 3 {
        (products[0], products[1], products[2])
    } else if fused {
        (structure.site[1], structure.site[2], structure.site[0])
    } else {
        found.extend(pairwise(subject, facts, &structure)?);
        return Ok(());
    };
    let gaps = scan(subject, large, opposite, small)?;
    let kept = gaps.kept();
    facts.kept = Some(kept);
    found.push(gaps.finding(subject, FRACTION_BITS.name, kept));
    if let Kept::Bits(bits) = kept {
        found.push(below::ask(subject, &structure, (large, opposite, small), bits)?);
        if small != Leaf::C {
            found.push(of_c(subject, large, opposite, bits)?);
        }
    } else {
        found.push(Finding::unsupported(below::PROBE.name, "no bit is lost at alignment"));
    }
    Ok(())
}

/// Formats the number of bits kept.
fn keeps(bits: i32) -> String {
    format!("keeps {bits} fraction bits below the largest exponent")
}

/// M at one leaf, −M at another, and M·2^−t at a third, for every t.
struct Gaps {
    large: Number,
    dots: Vec<Dot>,
    answers: Vec<u64>,
    bare: Option<Number>,
    survives: Vec<bool>,
}

fn scan(subject: &Subject<'_>, large: Leaf, opposite: Leaf, small: Leaf) -> Result<Gaps, Error> {
    let ranges = [large, opposite, small].map(|leaf| subject.exponents(leaf));
    // Leaves room for sums such as M + M below d's largest value.
    let d_high = subject.id().d.as_float().map_or(0, mxprobe_api::FloatEncoding::max_exponent) - 3;
    let high = ranges.iter().map(|(_, high)| *high).min().unwrap_or(0).min(d_high);
    let low_of_large = ranges[0].0.max(ranges[1].0);
    let gap = (high - ranges[2].0).clamp(0, WIDEST_GAP_BITS);
    // As wide a gap as fits, in the middle of the range if there is room.
    let top = (gap / 2).clamp((ranges[2].0 + gap).min(high), high).max(low_of_large);
    let value = Number::power(top);
    let base = [(large, value), (opposite, value.negated())];
    let small_values = (0..=gap).map_while(|t| subject.dot(&[base[0], base[1], (small, value.scaled(-t))]));
    let mut dots: Vec<Dot> = small_values.collect();
    let Some(bare) = subject.dot(&base) else { return Ok(Gaps::empty(value)) };
    dots.push(bare);
    let mut answers = subject.ask(&dots)?;
    dots.pop();
    let bare = answers.pop().and_then(|bits| subject.d_value(bits));
    // Some adders leave a remnant of M − M behind: s may be rounded next to it, but it is there.
    let nearest = |value: Number| value.encode(subject.id().d, mxprobe_api::Rounding::NearestEven);
    let survives = answers.iter().zip(0..).map(|(d, t)| {
        let kept = bare.and_then(|bare| bare.plus(value.scaled(-t))).map(nearest);
        kept == Some(*d) && kept != bare.map(nearest)
    });
    Ok(Gaps { large: value, bare, survives: survives.collect(), dots, answers })
}

impl Gaps {
    fn empty(large: Number) -> Self {
        Self { large, dots: Vec::new(), answers: Vec::new(), bare: None, survives: Vec::new() }
    }

    fn kept(&self) -> Kept {
        let lost = self.survives.iter().position(|survives| !survives);
        let bits = |at: usize| i32::try_from(at).unwrap_or(i32::MAX) - 1;
        match lost {
            Some(at) => Kept::Bits(bits(at)),
            None => Kept::All(bits(self.survives.len())),
        }
    }

    fn finding(&self, subject: &Subject<'_>, probe: &str, kept: Kept) -> Finding {
        match kept {
            Kept::Bits(bits) if bits < 0 => {
                let shown = self.evidence(subject, 0, "M − M + M");
                Finding::inconclusive(probe, "M − M + M is not M").with(shown)
            }
            Kept::Bits(bits) => {
                let mut shown = self.evidence(subject, bits, &format!("M − M + M·2^-{bits}: kept"));
                shown.extend(self.evidence(subject, bits + 1, &format!("M − M + M·2^-{}: lost", bits + 1)));
                Finding::measured(probe, bits, keeps(bits)).with(shown)
            }
            Kept::All(bits) => {
                let shown = self.evidence(subject, bits, &format!("M − M + M·2^-{bits}: kept"));
                let statement = format!("loses nothing over the {bits} bits that the formats allow");
                Finding::measured(probe, Value::parts([("exact_over", bits.into())]), statement).with(shown)
            }
        }
    }

    fn evidence(&self, subject: &Subject<'_>, t: i32, about: &str) -> Vec<Evidence> {
        let at = usize::try_from(t).unwrap_or(0);
        let (Some(dot), Some(d)) = (self.dots.get(at), self.answers.get(at)) else { return Vec::new() };
        let bare = self.bare.unwrap_or(Number::ZERO);
        let kept = bare.plus(self.large.scaled(-t)).and_then(|value| subject.d_bits(value));
        let lost = subject.d_bits(bare);
        let rivals = [(format!("{t} bits or more kept"), kept), (format!("at most {} bits kept", t - 1), lost)];
        let rivals: Vec<(String, u64)> = rivals.into_iter().filter_map(|(answer, d)| Some((answer, d?))).collect();
        vec![subject.evidence(about, dot, *d, &rivals)]
    }
}

/// Every addition joins two terms: tests what is left of s after M + s, then −M.
fn pairwise(subject: &Subject<'_>, facts: &mut Facts, structure: &Structure) -> Result<Vec<Finding>, Error> {
    let Some(leaves) = structure.pair_then_later() else {
        facts.kept = Some(Kept::All(0));
        return Ok(vec![Finding::inconclusive(FRACTION_BITS.name, "there is only one addition")]);
    };
    let gaps = scan(subject, leaves.0, leaves.2, leaves.1)?;
    let Kept::Bits(bits) = gaps.kept() else {
        facts.kept = Some(gaps.kept());
        return Ok(vec![gaps.finding(subject, FRACTION_BITS.name, gaps.kept())]);
    };
    let traces = Traces::of(subject, leaves, gaps.large, bits)?;
    let mut shown = gaps.evidence(subject, bits, &format!("M + M·2^-{bits}, then −M: kept"));
    shown.extend(gaps.evidence(subject, bits + 1, &format!("M + M·2^-{}, then −M", bits + 1)));
    let unit = bits + 1;
    let one_sided = match traces.seen {
        // A sum that is exact before it is rounded down has a place more just below M than at M; one on a grid has not.
        [false, true, false, true] if !traces.moves_half(1) => Some(("floor", "rounded down, toward −∞")),
        [true, false, true, false] if !traces.moves_half(2) => Some(("ceiling", "rounded up, toward +∞")),
        _ => None,
    };
    shown.extend(traces.evidence);
    if let Some((rule, words)) = one_sided {
        facts.kept = Some(Kept::Bits(bits));
        return Ok(vec![
            Finding::measured(FRACTION_BITS.name, bits, keeps(bits)).with(shown.clone()),
            Finding::measured(below::PROBE.name, rule, format!("bits below the grid are {words}")).with(shown),
        ]);
    }
    Ok(match traces.deepest {
        Some((seen, true)) => {
            facts.kept = Some(Kept::All(seen));
            let statement = format!(
                "every addition is rounded once, to {unit} bits, as IEEE 754 asks (checked {seen} places down)"
            );
            let value = Value::parts([("exact_over", seen.into()), ("rounded_to_bits", unit.into())]);
            vec![
                Finding::measured(FRACTION_BITS.name, value, statement).with(shown),
                Finding::unsupported(below::PROBE.name, "no bit is lost at alignment"),
            ]
        }
        Some((seen, false)) => {
            facts.kept = Some(Kept::Bits(seen));
            let statement = format!("every addition keeps {seen} fraction bits below its larger term");
            vec![Finding::measured(FRACTION_BITS.name, seen, statement).with(shown)]
        }
        None => {
            facts.kept = Some(Kept::Bits(bits));
            let statement = format!("every addition keeps {bits} fraction bits below its larger term");
            vec![Finding::measured(FRACTION_BITS.name, bits, statement).with(shown)]
        }
    })
}

/// The effect of bits below the last place on a sum of two terms.
struct Traces {
    /// Whether a single bit far down has an effect: for (+M, +s), (+M, −s), (−M, +s), (−M, −s).
    seen: [bool; 4],
    /// By how much the deepest such bit that has an effect moves the sum, in each of these cases.
    moved: [Option<Number>; 4],
    /// The last place of M.
    last_place: Number,
    /// How far down a bit still changes the rounding, and whether that is the deepest that was asked.
    deepest: Option<(i32, bool)>,
    evidence: Vec<Evidence>,
}

impl Traces {
    fn of(
        subject: &Subject<'_>,
        (first, second, later): (Leaf, Leaf, Leaf),
        large: Number,
        bits: i32,
    ) -> Result<Self, Error> {
        let top = large.leading().unwrap_or(0);
        // Family 4 is a tie at an even place plus one bit: under rounding to nearest, the bit decides.
        let mut dots = Vec::new();
        let mut keys = Vec::new();
        for extra in 1..=WIDEST_GAP_BITS {
            let depth = bits + 1 + extra;
            let bit = Number::power(top - depth);
            let tie = (extra <= 60).then(|| Number::new((1i128 << extra.min(60)) + 1, top - depth));
            let families = [
                (0, 1, Some(bit)),
                (1, 1, Some(bit.negated())),
                (2, -1, Some(bit)),
                (3, -1, Some(bit.negated())),
                (4, 1, tie),
            ];
            for (family, sign, value) in families {
                let Some(value) = value else { continue };
                let terms = [(first, large.times(sign)), (second, value), (later, large.times(-sign))];
                if let Some(dot) = subject.dot(&terms) {
                    dots.push(dot);
                    keys.push((family, depth));
                }
            }
        }
        let answers = subject.ask(&dots)?;
        let last_place = Number::power(top - bits);
        let mut traces = Self { seen: [false; 4], moved: [None; 4], last_place, deepest: None, evidence: Vec::new() };
        for family in 0..5 {
            let of_family =
                || keys.iter().zip(&answers).enumerate().filter(move |(_, ((other, _), _))| *other == family);
            let is_seen = |d: u64| subject.d_value(d).is_some_and(|value| !value.is_zero());
            let asked = of_family().map(|(_, ((_, depth), _))| *depth).max();
            let Some((at, ((_, depth), d))) =
                of_family().filter(|(_, (_, d))| is_seen(**d)).max_by_key(|(_, ((_, depth), _))| *depth)
            else {
                continue;
            };
            if let Some(seen) = traces.seen.get_mut(family) {
                *seen = Some(*depth) == asked;
            }
            if let Some(moved) = traces.moved.get_mut(family) {
                *moved = subject.d_value(*d);
            }
            let whole = Some(*depth) == asked;
            if traces.deepest.is_none_or(|(best, best_whole)| (whole, *depth) > (best_whole, best)) {
                traces.deepest = Some((*depth, whole));
                let rivals = [("that bit is not seen".to_owned(), subject.d_bits(Number::ZERO).unwrap_or(0))];
                let about = format!("M plus a value whose lowest bit is {depth} places down, then −M");
                traces.evidence = vec![subject.evidence(about, &dots[at], *d, &rivals)];
            }
        }
        Ok(traces)
    }

    /// Whether a single bit far down moves the sum by half of M's last place in this case.
    fn moves_half(&self, case: usize) -> bool {
        let half = self.last_place.scaled(-1);
        self.moved[case].is_some_and(|moved| moved == half || moved == half.negated())
    }
}

/// The bits of c that are kept when products are large.
fn of_c(subject: &Subject<'_>, large: Leaf, opposite: Leaf, bits: i32) -> Result<Finding, Error> {
    let gaps = scan(subject, large, opposite, Leaf::C)?;
    let kept = gaps.kept();
    let mut finding = gaps.finding(subject, C_FRACTION_BITS.name, kept);
    finding.statement = match kept {
        Kept::All(over) => {
            format!("c keeps all its bits over a gap of {over}: it is added after the products have cancelled")
        }
        Kept::Bits(of_c) if of_c == bits => format!("c is cut as a product is, to {of_c} fraction bits"),
        Kept::Bits(of_c) => format!("c keeps {of_c} fraction bits below the largest exponent"),
    };
    Ok(finding)
}

/// For formats whose products cannot be far apart: c is the large term, and −c is not available. The number of bits
/// kept shows when many small products together reach the last place of the result.
fn narrow(subject: &Subject<'_>, facts: &mut Facts, structure: &Structure) -> Result<Vec<Finding>, Error> {
    let products = structure.site_products();
    let count = i32::try_from(products.len()).unwrap_or(i32::MAX);
    let whole = 31 - count.leading_zeros().cast_signed();
    let (low, high) = subject.exponents(products[0]);
    let small = low.max(high.min(0));
    let precision = subject.id().d.fraction_bits().cast_signed();
    let mut dots = Vec::new();
    let mut deepest = Vec::new();
    // 2^j products of 2^−j last places of c reach that place if each is kept.
    for j in 0..=whole {
        let c = Number::power(small + precision + j);
        let mut terms = vec![(Leaf::C, c)];
        terms.extend(products.iter().take(1 << j).map(|leaf| (*leaf, Number::power(small))));
        let reached = c.plus(Number::power(small + j)).and_then(|value| subject.d_bits(value));
        if let (Some(dot), Some(reached), Some(missed)) = (subject.dot(&terms), reached, subject.d_bits(c)) {
            dots.push(dot);
            deepest.push((precision + j, reached, missed));
        }
    }
    let answers = subject.ask(&dots)?;
    let kept = deepest.iter().zip(&answers).take_while(|((_, reached, _), d)| reached == *d).count();
    let mut shown = Vec::new();
    for at in [kept.wrapping_sub(1), kept] {
        if let (Some(dot), Some((bits, reached, missed))) = (dots.get(at), deepest.get(at)) {
            let rivals =
                [(format!("{bits} bits or more kept"), *reached), (format!("fewer than {bits} bits kept"), *missed)];
            shown.push(subject.evidence(
                format!("products {bits} bits below c that add up to its last place"),
                dot,
                answers[at],
                &rivals,
            ));
        }
    }
    if kept == 0 {
        return Ok(vec![
            Finding::inconclusive(FRACTION_BITS.name, "not even the last place of c is reached").with(shown),
        ]);
    }
    let (bits, _, _) = deepest[kept - 1];
    if kept < deepest.len() {
        facts.kept = Some(Kept::Bits(bits));
        return Ok(vec![Finding::measured(FRACTION_BITS.name, bits, keeps(bits)).with(shown)]);
    }
    facts.kept = Some(Kept::All(bits));
    let statement = format!("keeps at least {bits} fraction bits below c; these formats cannot show more");
    let value = Value::parts([("exact_over", bits.into())]);
    Ok(vec![
        Finding::measured(FRACTION_BITS.name, value, statement).with(shown),
        Finding::inconclusive(below::PROBE.name, "no product lies below the grid"),
    ])
}

/// The number of bits, or that nothing was lost, regardless of the range tested.
fn compared(value: &Value) -> Value {
    match value.part("exact_over") {
        Some(_) => Value::List(value.part("rounded_to_bits").cloned().into_iter().collect()),
        None => value.clone(),
    }
}
