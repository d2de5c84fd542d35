//! Question 7: the actual range of a sum, compared with the declared type.

use mxprobe_api::Error;

use super::{Ask, Leaf, Probe, Subject, facts::Facts, number::Number};
use crate::{
    dots::Dot,
    findings::{AppliesTo, Comparable, Finding, Shown, Value, source},
};

pub(crate) const RANGE_WITHIN_BLOCK: Probe = Probe {
    name: "accumulator.range_within_block",
    question: "May a sum exceed the result's range within a block?",
    how: "Two of the largest powers of two and one of the other sign, in one block.",
    answers: &[("wider", "a sum may leave the range and come back"), ("format", "it becomes infinity on the way")],
    source: source::OWN,
    applies_to: AppliesTo::Floating,
    shown: Shown::PLAIN,
    ask: Ask::Question(|subject, facts, found| ask(subject, facts, found)),
};

pub(crate) const RANGE_BETWEEN_BLOCKS: Probe = Probe {
    name: "accumulator.range_between_blocks",
    question: "May a sum exceed the result's range between blocks?",
    how: "The same over several blocks.",
    answers: &[
        ("wider", "the running sum has more range than D"),
        ("format", "the running sum becomes infinity between blocks"),
    ],
    source: source::OWN,
    applies_to: AppliesTo::Floating,
    shown: Shown::PLAIN,
    ask: Ask::Along,
};

pub(crate) const SMALLEST_PRODUCTS: Probe = Probe {
    name: "accumulator.smallest_products",
    question: "Are products kept that are smaller than the smallest result, where their sum is not?",
    how: "Equal products, each smaller than the smallest result, that add up to it.",
    answers: &[
        ("{kept_at}", "kept as far down as could be asked, as a power of two"),
        (
            "{kept_at, lost_at}",
            "products below kept_at vanish, even if c is 0: the grid does not follow the terms further down",
        ),
        ("{lost_at}", "a product is lost that the result could hold"),
    ],
    source: source::OWN,
    applies_to: AppliesTo::Floating,
    shown: Shown::PLAIN.compared(Comparable::By(compared)),
    ask: Ask::Along,
};

pub(super) fn ask(subject: &Subject<'_>, facts: &Facts, found: &mut Vec<Finding>) -> Result<(), Error> {
    found.push(range_within(subject, facts)?);
    found.push(range_between(subject, facts)?);
    found.push(floor(subject, facts)?);
    Ok(())
}

fn overflow_finding(
    subject: &Subject<'_>,
    name: &str,
    dot: Option<Dot>,
    top: i32,
    place: &str,
) -> Result<Finding, Error> {
    let Some(dot) = dot else {
        return Ok(Finding::unsupported(name, format!("the products do not reach the range of {}", subject.id().d)));
    };
    let d = subject.ask(std::slice::from_ref(&dot))?[0];
    let whole = subject.d_bits(Number::power(top)).unwrap_or(0);
    let infinity = subject.id().d.infinity(false);
    let mut rivals = vec![("a wider range than the format's".to_owned(), whole)];
    rivals.extend(infinity.map(|d| ("the format's range".to_owned(), d)));
    let shown = vec![subject.evidence(format!("2^{top} + 2^{top} − 2^{top}"), &dot, d, &rivals)];
    Ok(if d == whole {
        Finding::measured(name, "wider", format!("{place} may exceed the range of the result's format")).with(shown)
    } else if Some(d) == infinity {
        Finding::measured(name, "format", format!("{place} beyond the range of the result's format becomes infinity"))
            .with(shown)
    } else {
        Finding::inconclusive(name, "the sum is neither right nor infinity").with(shown)
    })
}

/// Within one node: doubles the top binade, then subtracts it.
fn range_within(subject: &Subject<'_>, facts: &Facts) -> Result<Finding, Error> {
    let name = RANGE_WITHIN_BLOCK.name;
    let Some(float) = subject.id().d.as_float() else { return Ok(Finding::unsupported(name, "integers")) };
    let top = Number::power(float.max_exponent());
    let site = facts.structure.as_ref().map(|structure| structure.site.clone()).unwrap_or_default();
    let [first, second, third, ..] = site[..] else {
        return Ok(Finding::unsupported(name, "no more than two terms are added at once"));
    };
    let dot = subject.dot(&[(first, top), (second, top), (third, top.negated())]);
    overflow_finding(subject, name, dot, float.max_exponent(), "a sum within a block")
}

/// Over two steps of c's chain: the first one overflows, the second would return into the range.
fn range_between(subject: &Subject<'_>, facts: &Facts) -> Result<Finding, Error> {
    let name = RANGE_BETWEEN_BLOCKS.name;
    let Some(float) = subject.id().d.as_float() else { return Ok(Finding::unsupported(name, "integers")) };
    let top = Number::power(float.max_exponent());
    let structure = facts.structure.as_ref().filter(|structure| structure.tree.is_some());
    let Some([first, second, ..]) = structure.map(|structure| &structure.blocks[..]) else {
        return Ok(Finding::unsupported(name, "there is one block"));
    };
    let (Some(early), Some(late)) = (first.first(), second.first()) else {
        return Ok(Finding::unsupported(name, "there is one block"));
    };
    let terms = [(Leaf::C, top), (Leaf::Product(*early), top), (Leaf::Product(*late), top.negated())];
    overflow_finding(subject, name, subject.dot(&terms), float.max_exponent(), "a sum between blocks")
}

/// Tiny products with c = 0: how small the largest term can be before the grid stops following it.
fn floor(subject: &Subject<'_>, facts: &Facts) -> Result<Finding, Error> {
    let name = SMALLEST_PRODUCTS.name;
    let Some(float) = subject.id().d.as_float() else { return Ok(Finding::unsupported(name, "integers")) };
    if facts.flushes_results {
        return Ok(Finding::unsupported(name, "results below the normal range are flushed"));
    }
    let block =
        facts.structure.as_ref().and_then(|structure| structure.blocks.iter().find(|block| !block.is_empty()).cloned());
    let block = block.unwrap_or_else(|| vec![0]);
    let whole = usize::BITS - 1 - block.len().leading_zeros();
    let (lowest, _) = float.exponents();
    let mut dots = Vec::new();
    let mut sums = Vec::new();
    for doubling in 0..=whole {
        let exponent = lowest - doubling.cast_signed();
        let mut dot = subject.zeros();
        let Some(bits) = subject.product_bits(Number::power(exponent)) else { continue };
        for k in block.iter().take(1 << doubling) {
            (dot.a[*k], dot.b[*k]) = bits;
        }
        dots.push(dot);
        sums.push(exponent);
    }
    if dots.is_empty() {
        return Ok(Finding::unsupported(name, "no product of normal operands is as small as the smallest result"));
    }
    let answers = subject.ask(&dots)?;
    let smallest = subject.d_bits(Number::power(lowest)).unwrap_or(1);
    let kept = sums.iter().zip(&answers).take_while(|(_, d)| **d == smallest).count();
    let rivals = [("every term kept".to_owned(), smallest), ("every term lost".to_owned(), 0)];
    let show = |at: usize| {
        let about = format!("equal products of 2^{} that add up to the smallest result", sums[at]);
        subject.evidence(about, &dots[at], answers[at], &rivals)
    };
    if kept == 0 {
        let words = format!("a product of 2^{lowest} is lost although the result could hold it");
        return Ok(Finding::measured(name, Value::parts([("lost_at", lowest.into())]), words).with(vec![show(0)]));
    }
    if kept < sums.len() {
        let words = format!("products below 2^{} vanish, even if c is 0", sums[kept - 1]);
        let value = Value::parts([("kept_at", sums[kept - 1].into()), ("lost_at", sums[kept].into())]);
        return Ok(Finding::measured(name, value, words).with(vec![show(kept - 1), show(kept)]));
    }
    let words = format!("products down to 2^{} are kept if c is 0; smaller ones do not show", sums[kept - 1]);
    Ok(Finding::measured(name, Value::parts([("kept_at", sums[kept - 1].into())]), words).with(vec![show(kept - 1)]))
}

/// The exponent at which products are lost, or that none was.
fn compared(value: &Value) -> Value {
    if value.part("lost_at").is_none() { "kept".into() } else { value.clone() }
}
