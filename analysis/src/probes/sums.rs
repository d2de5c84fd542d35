//! Question 6: when is a sum normalised, are there enough carry bits, and is it monotone?
//!
//! Carry bits are counted in two ways. Fasi et al. (2021) and Valpey et al. (arXiv:2502.15999) count those beyond a
//! normalised term: N terms need ⌈log2 N⌉. A model counts those above the exponent that determines the grid, which is
//! one more if a product with a significand in [2, 4) keeps the sum of its operands' exponents. If products are
//! renormalised, the two counts are equal.

use mxprobe_api::{Error, Rounding};

use super::{
    Ask, Leaf, Probe, Subject,
    facts::{Facts, Kept, Structure},
    monotone,
    number::Number,
};
use crate::findings::{AppliesTo, Comparable, Finding, Shown, Value, source};

pub(crate) const NORMALISATION: Probe = Probe {
    name: "normalisation",
    question: "Is a sum normalised after each addition, or once?",
    how: "c just below a power of two, its last place, and small terms that make one last place of the sum: of the lowest \
         bit kept, or odd multiples of it where terms are few.",
    answers: &[
        ("once", "low bits add up before any is dropped"),
        ("each", "a carry moves the grid, and the next term is cut sooner: results depend on the order"),
    ],
    source: source::FASI,
    applies_to: AppliesTo::Floating,
    shown: Shown::PLAIN,
    ask: Ask::Question(ask),
};

pub(crate) const CARRY: Probe = Probe {
    name: "carry",
    question: "Are there enough bits above the largest exponent for the largest sum?",
    how: "As many of the largest products as the block takes.",
    answers: &[
        ("{enough: true}", "no sum within a block wraps"),
        ("{enough: false}", "a large sum loses its top bits: results are wrong without any sign of it"),
        (
            "reached, bits",
            "bits of the largest sum, or of the adder, above the largest exponent as the unit aligns: the sum of a \
                 product's operands' exponents, or, if products are renormalised, its leading bit; not given if \
                 products.exponent does not tell which; `carry_bits` of a model counts so",
        ),
        (
            "beyond_leading_bit",
            "the same beyond the leading bit of the largest term, as the literature counts: N terms need log2 N, \
                 rounded up",
        ),
        (
            "accumulator",
            "integer and fraction bits of the sum as Fasi et al. write them: {4.23} has three carry bits beyond a leading \
                 bit, and keeps 23 fraction bits; given if alignment.fraction_bits is",
        ),
    ],
    source: "Fasi et al. (2021), section 3.1.4; Valpey et al., An SMT formalization of mixed-precision matrix \
         multiplication, arXiv:2502.15999, section 4.3",
    applies_to: AppliesTo::Floating,
    shown: Shown::PLAIN.compared(Comparable::By(compared)),
    ask: Ask::Along,
};

pub(super) fn ask(subject: &Subject<'_>, facts: &mut Facts, found: &mut Vec<Finding>) -> Result<(), Error> {
    let Some(structure) = &facts.structure else {
        let reason = "the order of the additions is not known";
        found.extend(
            [NORMALISATION.name, CARRY.name, monotone::PROBE.name].map(|name| Finding::inconclusive(name, reason)),
        );
        return Ok(());
    };
    found.push(normalisation(subject, facts, structure)?);
    found.push(carry(subject, facts, structure)?);
    found.push(monotone::ask(subject, facts, structure)?);
    Ok(())
}

/// Adds c just below a power of two, one last place of c that carries it over, and small terms that make one last place
/// of the sum: if the sum is normalised after each addition, the lowest bits of those are lost after the carry.
fn normalisation(subject: &Subject<'_>, facts: &Facts, structure: &Structure) -> Result<Finding, Error> {
    let name = NORMALISATION.name;
    if structure.site.len() < 4 {
        return Ok(Finding::unsupported(
            name,
            "no more than two terms and c are added at once: a rounded sum is normalised each time",
        ));
    }
    let (Some(Kept::Bits(bits)), Some(result_bits)) = (facts.kept, facts.result_fraction_bits) else {
        return Ok(Finding::unsupported(name, "no bit is lost at alignment, so it does not show"));
    };
    let products = structure.site_products();
    // The number of lowest bits kept that make one last place of the result after the carry.
    let places = bits - result_bits + 1;
    let needed = 1i32.checked_shl(places.max(0).unsigned_abs()).filter(|needed| *needed > 0);
    let (large, rest): (Leaf, &[Leaf]) =
        if structure.site_has_c() { (Leaf::C, &products[..]) } else { (products[0], &products[1..]) };
    let Some(shares) = needed.and_then(|needed| shares(needed, rest.len().saturating_sub(1))) else {
        let reason =
            format!("2^{places} of the lowest bit would have to be spread over {} terms", rest.len().saturating_sub(1));
        return Ok(Finding::inconclusive(name, reason));
    };
    let needed: i32 = shares.iter().sum();
    let significand = subject.id().c.fraction_bits().cast_signed().min(bits);
    let (low, high) = subject.exponents(rest[0]);
    let exponent = (low + bits).max(0).min(high);
    let c = Number::power(exponent + 1).plus(Number::power(exponent - significand).negated());
    let (Some(c), true) = (c, large == Leaf::C) else {
        return Ok(Finding::inconclusive(
            name,
            "c is not among the terms, and no product is just below a power of two",
        ));
    };
    let unit = Number::power(exponent - bits);
    let mut terms = vec![(large, c), (rest[0], Number::power(exponent - significand))];
    terms.extend(rest.iter().skip(1).zip(&shares).map(|(leaf, share)| (*leaf, unit.times(*share))));
    let Some(dot) = subject.dot(&terms) else {
        return Ok(Finding::inconclusive(name, "the terms do not fit the formats"));
    };
    let d = subject.ask(std::slice::from_ref(&dot))?[0];
    let over = Number::power(exponent + 1);
    let whole = over.plus(unit.times(needed)).and_then(|value| subject.d_bits(value));
    let (Some(whole), Some(bare)) = (whole, subject.d_bits(over)) else {
        return Ok(Finding::inconclusive(name, "d does not hold the sum"));
    };
    let rivals = [("once, after all terms".to_owned(), whole), ("after each addition".to_owned(), bare)];
    let parts = match shares.iter().all(|share| *share == 1) {
        true => format!("{needed} terms of the lowest bit kept"),
        false => format!("{} terms that add up to {needed} of the lowest bit kept", shares.len()),
    };
    let about = format!("c just below 2^{}, its last place, and {parts}", exponent + 1);
    let shown = vec![subject.evidence(about, &dot, d, &rivals)];
    Ok(if d == whole {
        Finding::measured(name, "once", "the sum is normalised once, after all its terms are added").with(shown)
    } else if d == bare {
        Finding::measured(name, "each", "the sum is normalised after each addition").with(shown)
    } else {
        Finding::inconclusive(name, "the sum is neither of the two").with(shown)
    })
}

/// Splits `needed` into at most this many parts, as equal as possible, of which at least two are odd (or one, if
/// `needed` is 1): a shift down by one place loses a bit of each odd part.
fn shares(needed: i32, at_most: usize) -> Option<Vec<i32>> {
    let count = i32::try_from(at_most).unwrap_or(i32::MAX).min(needed);
    if count < 2 && needed > 1 || count < 1 {
        return None;
    }
    let (base, more) = (needed / count, needed % count);
    let mut parts: Vec<i32> = (0..count).map(|at| base + i32::from(at < more)).collect();
    if parts.iter().all(|part| part % 2 == 0) {
        parts[0] += 1;
        parts[1] -= 1;
    }
    Some(parts)
}

/// Adds the largest terms of one sign, one more at a time, until a sum is wrong.
fn carry(subject: &Subject<'_>, facts: &Facts, structure: &Structure) -> Result<Finding, Error> {
    let name = CARRY.name;
    if structure.site.len() < 3 {
        return Ok(Finding::unsupported(name, "no more than two terms are added at once"));
    }
    let id = subject.id();
    let (Some(a_float), Some(b_float)) = (id.a.as_float(), id.b.as_float()) else {
        return Ok(Finding::unsupported(name, "integers"));
    };
    let longest = |bits: u32| Number::new((1i128 << (bits + 1)) - 1, -bits.cast_signed());
    let (a, b) = (longest(a_float.fraction_bits), longest(b_float.fraction_bits));
    let product = a.times(i32::try_from(b.parts().1).unwrap_or(1)).scaled(b.parts().2);
    let c_bits = id.c.fraction_bits();
    let c = if c_bits <= 30 { longest(c_bits) } else { longest(30) };
    let (a, b) = (a.encode(id.a, Rounding::TowardZero), b.encode(id.b, Rounding::TowardZero));
    let products = structure.site_products();
    let mut dots = Vec::new();
    let mut exact = Vec::new();
    // The leading bit of the largest term (c's is 0), and the exponent that the unit aligns it by: a product's
    // significand lies in [0, 4) unless it is renormalised.
    let leading = product.leading().unwrap_or(0);
    let exponent = facts.renormalises_products.map(|renormalises| if renormalises { leading } else { 0 });
    let grid = match facts.kept {
        Some(Kept::Bits(bits)) => exponent.unwrap_or(0) - bits,
        _ => -100,
    };
    for terms in 1..=products.len() {
        let mut dot = subject.zeros();
        let mut sum = Number::ZERO;
        if structure.site_has_c() {
            dot.c = subject.c_bits(c).unwrap_or(0);
            sum = c.rounded(grid, Rounding::TowardZero);
        }
        for leaf in products.iter().take(terms) {
            let Leaf::Product(k) = leaf else { continue };
            (dot.a[*k], dot.b[*k]) = (a, b);
            sum = sum.plus(product.rounded(grid, Rounding::TowardZero)).unwrap_or(Number::ZERO);
        }
        dots.push(dot);
        exact.push(sum);
    }
    let answers = subject.ask(&dots)?;
    // Whatever the direction of rounding and the treatment of lost bits, the result is within a place of the sum.
    let result_bits = facts.result_fraction_bits.unwrap_or(id.d.fraction_bits().cast_signed());
    let is_right = |sum: Number, d: u64| {
        let unit = sum.leading().unwrap_or(0) - result_bits.min(facts.kept.map_or(result_bits, Kept::at_least)).max(0);
        let slack = Number::new(i128::try_from(products.len()).unwrap_or(0) + 2, unit);
        subject.d_value(d).and_then(|value| value - sum).is_some_and(|difference| {
            let over = if difference.parts().0 { difference.negated() } else { difference };
            (over - slack).is_some_and(|rest| rest.parts().0 || rest.is_zero())
        })
    };
    let right = exact.iter().zip(&answers).take_while(|(sum, d)| is_right(**sum, **d)).count();
    // The bits that a sum with its leading bit at `top` takes beyond the largest term's leading bit, and above the
    // exponent.
    let in_words = |top: i32| {
        let beyond = top - leading;
        match exponent.map(|exponent| top - exponent) {
            Some(bits) if bits != beyond => {
                format!("{bits} bits above the largest exponent ({beyond} beyond the largest term's leading bit)")
            }
            _ => format!("{beyond} bits above the largest term's leading bit"),
        }
    };
    let width = |top: i32| match facts.kept {
        Some(Kept::Bits(bits)) => Some(format!("{{{}.{bits}}}", 1 + top - leading)),
        _ => None,
    };
    let value = |enough: bool, top: i32| {
        let above = exponent.map(|exponent| (if enough { "reached" } else { "bits" }, (top - exponent).into()));
        let known = [("enough", enough.into()), ("beyond_leading_bit", (top - leading).into())];
        let width = width(top).map(|width| ("accumulator", width.into()));
        Value::parts(known.into_iter().chain(above).chain(width))
    };
    let beside = |top: i32| width(top).map_or_else(String::new, |width| format!("; as {width} in the literature"));
    let show = |at: usize| {
        let needed = exact[at].leading().unwrap_or(0);
        let modulus = Number::power(needed + 1);
        let wrapped = (exact[at] - modulus)
            .and_then(|value| subject.d_bits(value.rounded(value.leading()? - result_bits, Rounding::TowardZero)));
        let rivals: Vec<_> =
            wrapped.map(|d| (format!("{}: the sum wraps", in_words(needed - 1)), d)).into_iter().collect();
        let with_c = if structure.site_has_c() { " and c" } else { "" };
        subject.evidence(format!("{} of the largest products{with_c}", at + 1), &dots[at], answers[at], &rivals)
    };
    let last = exact.len() - 1;
    if right == exact.len() {
        let top = exact[last].leading().unwrap_or(0);
        let words = format!("enough: the largest sum reaches {} and is right{}", in_words(top), beside(top));
        return Ok(Finding::measured(name, value(true, top), words).with(vec![show(last)]));
    }
    let shown = vec![show(right)];
    if right == 0 {
        return Ok(Finding::inconclusive(name, "not even one of the largest products comes back right").with(shown));
    }
    let top = exact[right].leading().unwrap_or(0) - 1;
    let words = format!("not enough: {}, and a larger sum wraps{}", in_words(top), beside(top));
    Ok(Finding::measured(name, value(false, top), words).with(shown))
}

/// Enough carry bits, or their number; older reports have only one of the two counts.
fn compared(value: &Value) -> Value {
    if value.part("enough") == Some(&true.into()) {
        return "enough".into();
    }
    value.part("bits").or_else(|| value.part("beyond_leading_bit")).unwrap_or(value).clone()
}
