//! Question 6: when a sum is normalised, whether there are enough carry bits, and whether it is monotone.

use mxprobe_api::{Error, Rounding};

use super::{
    Finding, Leaf, Subject,
    facts::{Facts, Kept, Structure},
    number::Number,
};
use crate::dots::Dot;

pub(super) fn ask(subject: &Subject<'_>, facts: &Facts) -> Result<Vec<Finding>, Error> {
    let Some(structure) = &facts.structure else {
        let reason = "the order of the additions is not known";
        return Ok(["normalisation", "carry", "monotone"].map(|name| Finding::inconclusive(name, reason)).into());
    };
    Ok(vec![
        normalisation(subject, facts, structure)?,
        carry(subject, facts, structure)?,
        monotone(subject, facts, structure)?,
    ])
}

/// c just below a power of two, one last place of c that carries it over, and terms of the lowest bit kept: if the sum is
/// normalised after each addition, those fall off once it is over.
fn normalisation(subject: &Subject<'_>, facts: &Facts, structure: &Structure) -> Result<Finding, Error> {
    let name = "normalisation";
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
    let count = i32::try_from(products.len()).unwrap_or(i32::MAX);
    // Of one lowest bit each, so many terms make one last place of the result once it is over.
    let places = bits - result_bits + 1;
    let needed = if places < 0 { 1 } else { 1i32.checked_shl(places.unsigned_abs()).unwrap_or(i32::MAX) };
    let (large, rest): (Leaf, &[Leaf]) =
        if structure.site_has_c() { (Leaf::C, &products[..]) } else { (products[0], &products[1..]) };
    if needed >= count || needed == i32::MAX {
        let reason = format!(
            "{needed} terms of the lowest bit would be needed, and one for the carry; {} are there",
            rest.len()
        );
        return Ok(Finding::inconclusive(name, reason));
    }
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
    let small = rest.iter().skip(1).take(needed.unsigned_abs() as usize);
    terms.extend(small.map(|leaf| (*leaf, unit)));
    let (Some(dot), true) = (subject.dot(&terms), terms.len() == 2 + needed.unsigned_abs() as usize) else {
        return Ok(Finding::inconclusive(name, "the terms do not fit the formats"));
    };
    let d = subject.ask(std::slice::from_ref(&dot))?[0];
    let over = Number::power(exponent + 1);
    let whole = over.plus(unit.times(needed)).and_then(|value| subject.d_bits(value));
    let (Some(whole), Some(bare)) = (whole, subject.d_bits(over)) else {
        return Ok(Finding::inconclusive(name, "d does not hold the sum"));
    };
    let rivals = [("once, after all terms".to_owned(), whole), ("after each addition".to_owned(), bare)];
    let about = format!("c just below 2^{}, its last place, and {needed} terms of the lowest bit kept", exponent + 1);
    let shown = vec![subject.evidence(about, &dot, d, &rivals)];
    Ok(if d == whole {
        Finding::measured(name, "once".into(), "the sum is normalised once, after all its terms are added".into())
            .with(shown)
    } else if d == bare {
        Finding::measured(name, "each".into(), "the sum is normalised after each addition".into()).with(shown)
    } else {
        Finding::inconclusive(name, "the sum is neither of the two").with(shown)
    })
}

/// The largest terms there are, of one sign: one after another until a sum is wrong.
fn carry(subject: &Subject<'_>, facts: &Facts, structure: &Structure) -> Result<Finding, Error> {
    let name = "carry";
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
    for terms in 1..=products.len() {
        let mut dot = subject.zeros();
        let mut sum = Number::ZERO;
        let grid = match facts.kept {
            Some(Kept::Bits(bits)) => -bits,
            _ => -100,
        };
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
    // In whatever direction the result is rounded, and whichever way lost bits went, it is within a place of the sum.
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
    let show = |at: usize| {
        let wrapped = |bits: i32| {
            let modulus = Number::power(bits + 2);
            (exact[at] - modulus)
                .and_then(|value| subject.d_bits(value.rounded(value.leading()? - result_bits, Rounding::TowardZero)))
        };
        let needed = exact[at].leading().unwrap_or(0);
        let rivals: Vec<_> = wrapped(needed - 1)
            .map(|d| (format!("{} bits above the largest exponent: the sum wraps", needed - 1), d))
            .into_iter()
            .collect();
        let with_c = if structure.site_has_c() { " and c" } else { "" };
        subject.evidence(format!("{} of the largest products{with_c}", at + 1), &dots[at], answers[at], &rivals)
    };
    let last = exact.len() - 1;
    if right == exact.len() {
        let bits = exact[last].leading().unwrap_or(0);
        let words = format!("enough: the largest sum reaches {bits} bits above the largest exponent and is right");
        return Ok(Finding::measured(name, serde_json::json!({ "enough": true, "reached": bits }), words)
            .with(vec![show(last)]));
    }
    let shown = vec![show(right)];
    if right == 0 {
        return Ok(Finding::inconclusive(name, "not even one of the largest products comes back right").with(shown));
    }
    let bits = exact[right].leading().unwrap_or(0) - 1;
    let words = format!("not enough: {bits} bits above the largest exponent, and a larger sum wraps");
    Ok(Finding::measured(name, serde_json::json!({ "enough": false, "bits": bits }), words).with(shown))
}

/// A larger c with a smaller sum. Small terms that survive beside the value below a power of two are lost beside the power.
fn monotone(subject: &Subject<'_>, facts: &Facts, structure: &Structure) -> Result<Finding, Error> {
    let name = "monotone";
    let products: Vec<usize> = structure.blocks.iter().find(|block| !block.is_empty()).cloned().unwrap_or_default();
    let c_fraction = subject.id().c.fraction_bits().cast_signed();
    let (low, high) = subject.exponents(Leaf::Product(0));
    let reach = facts.kept.map_or(c_fraction, Kept::at_least);
    let mut pairs: Vec<(Dot, Dot)> = Vec::new();
    // Every depth of the small terms around what is kept, every count of them, both signs, around a power of two.
    for depth in (reach - 14).max(1)..=reach + 4 {
        let exponent = (low + depth).max(0);
        if exponent - depth > high {
            continue;
        }
        // Every count up to a wide block's, then powers of two.
        let counts =
            (1..=products.len()).filter(|count| *count <= 24 || count.is_power_of_two() || *count == products.len());
        for count in counts {
            for sign in [1, -1] {
                let smaller = Number::power(exponent).plus(Number::power(exponent - 1 - c_fraction).negated());
                let below = if sign == 1 { smaller } else { Some(Number::power(exponent).negated()) };
                let above = if sign == 1 { Some(Number::power(exponent)) } else { smaller.map(Number::negated) };
                let dot = |c: Option<Number>| {
                    let mut terms = vec![(Leaf::C, c?)];
                    let small = Number::power(exponent - depth).times(sign);
                    terms.extend(products.iter().take(count).map(|k| (Leaf::Product(*k), small)));
                    subject.dot(&terms)
                };
                pairs.extend(dot(below).zip(dot(above)));
            }
        }
    }
    let dots: Vec<Dot> = pairs.iter().flat_map(|(below, above)| [below.clone(), above.clone()]).collect();
    let answers = subject.ask(&dots)?;
    let value = |d: u64| subject.id().d.to_f64(d);
    let witness = answers.chunks(2).position(|pair| value(pair[0]) > value(pair[1]));
    let count = pairs.len();
    Ok(match witness {
        Some(at) => {
            let (below, above) = (&pairs[at].0, &pairs[at].1);
            let monotone = [("a monotone sum is at least".to_owned(), answers[2 * at])];
            let shown = vec![
                subject.evidence("the smaller c", below, answers[2 * at], &[]),
                subject.evidence("the larger c, the same products", above, answers[2 * at + 1], &monotone),
            ];
            let words = "not monotone: with the same products a larger c gives a smaller result".to_owned();
            Finding::measured(name, false.into(), words).with(shown)
        }
        None if count == 0 => Finding::inconclusive(name, "no pair of inputs could be made"),
        None => {
            let reason = format!("no witness against it among {count} pairs made for this unit; that is no proof");
            Finding::inconclusive(name, reason)
        }
    })
}
