//! Question 2: are products exact, rounded to what, renormalised; does one overflow; how many operand bits are read.

use mxprobe_api::{Error, Format, Rounding};

use super::{
    Ask, Leaf, Probe, Subject,
    facts::{Facts, Kept},
    number::Number,
};
use crate::{
    dots::Dot,
    findings::{AppliesTo, Finding, Shown, Value, source},
};

const BITS_READ: &[(&str, &str)] = &[
    ("a number", "so many fraction bits of the element take part"),
    (
        "{bits, rest}",
        "the register is wider than the format, as for tf32; `cut` ignores the rest, which biases toward zero, \
         `rounded` does not: convert with rounding before the call if it is `cut`",
    ),
];

pub(crate) const BITS_READ_A: Probe = Probe {
    name: "products.bits_read_a",
    question: "How many fraction bits of A's register are read, and is the rest cut or rounded?",
    how: "1 + 2^−t times 1, for growing t; then every lower bit of the register.",
    answers: BITS_READ,
    source: source::FASI,
    applies_to: AppliesTo::Floating,
    shown: Shown::PLAIN,
    ask: Ask::Question(ask),
};

pub(crate) const BITS_READ_B: Probe = Probe {
    name: "products.bits_read_b",
    question: "How many fraction bits of B's register are read, and is the rest cut or rounded?",
    how: "As products.bits_read_a, with the operands exchanged.",
    answers: BITS_READ,
    source: source::FASI,
    applies_to: AppliesTo::Floating,
    shown: Shown::PLAIN,
    ask: Ask::Along,
};

pub(crate) const EXACT: Probe = Probe {
    name: "products.exact",
    question: "Are products exact, or rounded before they are added?",
    how: "The longest significands, less their product as D holds it: what is left.",
    answers: &[
        ("exact", "all bits of a product reach the sum"),
        ("exact to the grid", "a product is cut only where alignment cuts any term"),
        ("rounded to nearest, rounded toward zero", "each product is rounded before it is added: an error for each k"),
        ("N fraction bits", "the multiplier itself is short"),
    ],
    source: source::FASI,
    applies_to: AppliesTo::Floating,
    shown: Shown::PLAIN,
    ask: Ask::Along,
};

pub(crate) const EXPONENT: Probe = Probe {
    name: "products.exponent",
    question: "Is a product of significand 2 or more renormalised before it is aligned?",
    how: "1.5·1.5·M less the same, beside the lowest bit kept: a significand of 2 or more moves the grid only if it is \
         renormalised.",
    answers: &[
        ("operands", "aligned by the sum of the operands' exponents: one bit more survives beside such products"),
        ("leading", "aligned by the leading bit: products are renormalised first"),
    ],
    source: source::OWN,
    applies_to: AppliesTo::Floating,
    shown: Shown::PLAIN,
    ask: Ask::Along,
};

pub(crate) const OVERFLOW: Probe = Probe {
    name: "products.overflow",
    question: "Does a product beyond the result's range become infinity although the sum is within it?",
    how: "A product beyond the range of D, and one of the other sign that brings the sum back.",
    answers: &[
        ("false", "only the sum has to fit"),
        ("true", "one large product makes infinity, whatever is added to it"),
    ],
    source: source::FASI,
    applies_to: AppliesTo::Floating,
    shown: Shown::PLAIN,
    ask: Ask::Along,
};

pub(super) fn ask(subject: &Subject<'_>, facts: &mut Facts, found: &mut Vec<Finding>) -> Result<(), Error> {
    found.push(operand_bits(subject, BITS_READ_A.name, true)?);
    found.push(operand_bits(subject, BITS_READ_B.name, false)?);
    found.push(exact(subject, facts)?);
    let exponent = exponent(subject, facts)?;
    facts.renormalises_products = exponent.value.as_ref().map(|value| *value == "leading".into());
    found.push(exponent);
    found.push(overflow(subject, facts)?);
    Ok(())
}

/// Finds how many fraction bits of an operand's register are read, and whether the rest is cut or rounded.
fn operand_bits(subject: &Subject<'_>, name: &str, of_a: bool) -> Result<Finding, Error> {
    let id = subject.id();
    let format = if of_a { id.a } else { id.b };
    let Some(float) = format.as_float() else { return Ok(Finding::unsupported(name, "integers")) };
    let in_register = float.fraction_bits + float.unread_bits;
    let register_one = format.one();
    let dot_of = |bits: u64| {
        let mut dot = subject.zeros();
        (dot.a[0], dot.b[0]) = if of_a { (bits, id.b.one()) } else { (id.a.one(), bits) };
        dot
    };
    // 1 + 2^−t for every t of the register, then a register whose unread bits are all set.
    let mut dots: Vec<Dot> = (1..=in_register).map(|t| dot_of(register_one | 1 << (in_register - t))).collect();
    dots.push(dot_of(register_one | ((1 << float.unread_bits) - 1)));
    let answers = subject.ask(&dots)?;
    let one = subject.d_bits(Number::power(0)).unwrap_or(0);
    let read = answers[..answers.len() - 1].iter().take_while(|d| **d != one).count();
    let right = (1..).zip(&answers[..read]).all(|(t, d)| {
        let value = Number::power(0).plus(Number::power(-t)).unwrap_or(Number::ZERO);
        let rounds_to = |rounding| value.encode(id.d, rounding) == *d;
        rounds_to(Rounding::NearestEven) || rounds_to(Rounding::TowardZero) || rounds_to(Rounding::Up)
    });
    let mut shown = Vec::new();
    if read > 0 {
        let rivals = [("that bit is not read".to_owned(), one)];
        shown.push(subject.evidence(format!("1 + 2^-{read} times 1"), &dots[read - 1], answers[read - 1], &rivals));
    }
    if !right {
        return Ok(Finding::inconclusive(name, "1 + 2^−t times 1 is something else").with(shown));
    }
    let reads = u32::try_from(read).unwrap_or(0);
    let limited = reads < float.fraction_bits;
    let by_result = limited && reads >= id.d.fraction_bits();
    if by_result {
        return Ok(
            Finding::inconclusive(name, format!("d shows {reads} fraction bits and cannot show more")).with(shown)
        );
    }
    let mut statement = format!("{reads} fraction bits are read");
    let mut value = Value::from(reads);
    if float.unread_bits > 0 {
        let last = answers[answers.len() - 1];
        let up = Number::power(0).plus(Number::power(-i32::try_from(read).unwrap_or(0)));
        let rivals: Vec<_> =
            up.and_then(|up| subject.d_bits(up)).map(|d| ("rounded".to_owned(), d)).into_iter().collect();
        shown.push(subject.evidence(
            "1 and every bit of the register below the format",
            &dots[dots.len() - 1],
            last,
            &rivals,
        ));
        let how = if last == one { "cut" } else { "rounded" };
        statement = format!("{reads} fraction bits of the {in_register} in the register are read; the rest is {how}");
        value = Value::parts([("bits", reads.into()), ("rest", how.into())]);
    }
    Ok(Finding::measured(name, value, statement).with(shown))
}

/// Tests the product of the longest significands, minus what a rounded product would be.
fn exact(subject: &Subject<'_>, facts: &Facts) -> Result<Finding, Error> {
    let name = EXACT.name;
    let id = subject.id();
    let longest = |format: Format| {
        let bits = format.fraction_bits();
        Number::new((1i128 << (bits + 1)) - 1, -bits.cast_signed())
    };
    // All ones times alternating ones: a product with ones throughout.
    let alternating = |format: Format| {
        let bits = format.fraction_bits();
        Number::new(((1i128 << (bits + 2)) / 3) | 1 | (1i128 << bits), -bits.cast_signed())
    };
    let (a, b) = (longest(id.a), alternating(id.b));
    let product = multiply(a, b);
    let (a_bits, b_bits) = (a.encode(id.a, Rounding::TowardZero), b.encode(id.b, Rounding::TowardZero));
    let precision = id.d.fraction_bits().cast_signed();
    let leading = product.leading().unwrap_or(0);
    let place = leading - precision;
    let nearest = product.rounded(place, Rounding::NearestEven);
    let cut = product.rounded(place, Rounding::TowardZero);
    let mut dot = subject.zeros();
    (dot.a[0], dot.b[0]) = (a_bits, b_bits);
    if nearest == product {
        let d = subject.ask(std::slice::from_ref(&dot))?[0];
        let whole = subject.d_bits(product).unwrap_or(0);
        let shorter = product.rounded(place + 1, Rounding::TowardZero);
        let shown = [("less than the whole product".to_owned(), subject.d_bits(shorter).unwrap_or(0))];
        let same = shorter == product;
        let shown = vec![subject.evidence("the longest significands", &dot, d, if same { &[] } else { &shown })];
        return Ok(if d == whole {
            Finding::measured(name, "exact", "products are exact").with(shown)
        } else {
            rounded_here(subject, name, facts, product, d).with(shown)
        });
    }
    // The product is longer than d: c subtracts its upper part.
    let mut dots = Vec::new();
    let mut taken = Vec::new();
    for upper in [cut, nearest] {
        if let Some(c) = subject.c_bits(upper.negated()) {
            dot.c = c;
            dots.push(dot.clone());
            taken.push(upper);
        }
    }
    if dots.is_empty() {
        return Ok(Finding::inconclusive(name, "c cannot hold the upper part of the longest product"));
    }
    let answers = subject.ask(&dots)?;
    let hypotheses = [("exact", product), ("rounded to nearest", nearest), ("rounded toward zero", cut)];
    let predicted = |value: Number, upper: Number| {
        let rest = (value - upper).unwrap_or(Number::ZERO);
        rest.encode(id.d, facts.rounding.unwrap_or(Rounding::NearestEven))
    };
    let same = |d: u64, other: u64| d == other || subject.d_value(d) == subject.d_value(other);
    let fits = |value: Number| taken.iter().zip(&answers).all(|(upper, d)| same(*d, predicted(value, *upper)));
    let shown: Vec<_> = dots
        .iter()
        .zip(&answers)
        .zip(&taken)
        .map(|((dot, d), upper)| {
            let rivals: Vec<(String, u64)> = hypotheses
                .iter()
                .map(|(name, value)| ((*name).to_owned(), predicted(*value, *upper)))
                .filter(|(_, predicted)| !same(*predicted, *d))
                .collect();
            subject.evidence("the longest significands, less the product as d holds it", dot, *d, &rivals)
        })
        .collect();
    for (answer, value) in hypotheses {
        if fits(value) {
            let words = if answer == "exact" {
                "products are exact: their low bits reach the sum".to_owned()
            } else {
                format!("each product is {answer} to {} bits before c joins it", precision + 1)
            };
            return Ok(Finding::measured(name, answer, words).with(shown));
        }
    }
    if let Some(Kept::Bits(bits)) = facts.kept {
        let grid = leading.max(0) - 1 - bits;
        let cut_fits = taken.iter().zip(&answers).all(|(upper, d)| {
            [0, 1].into_iter().any(|more| {
                let value = product.rounded(grid + more, Rounding::TowardZero);
                same(*d, predicted(value, *upper))
            })
        });
        if cut_fits {
            let words = format!("the low bits of a product are lost at alignment ({bits} bits kept), not before");
            return Ok(Finding::measured(name, "exact to the grid", words).with(shown));
        }
    }
    Ok(Finding::inconclusive(name, "the rest fits neither an exact nor a rounded product").with(shown))
}

fn rounded_here(subject: &Subject<'_>, name: &str, facts: &Facts, product: Number, d: u64) -> Finding {
    let Some(leading) = product.leading() else { return Finding::inconclusive(name, "the product is zero") };
    let cut_to = (0..60).rev().find(|bits| {
        [Rounding::TowardZero, Rounding::NearestEven]
            .into_iter()
            .any(|rounding| subject.d_bits(product.rounded(leading - bits, rounding)) == Some(d))
    });
    let limit = facts.kept.map(Kept::at_least);
    match cut_to {
        Some(bits)
            if limit.is_some_and(|limit| bits >= limit)
                || facts.result_fraction_bits.is_some_and(|all| bits >= all) =>
        {
            let words = format!(
                "a product comes back with {bits} fraction bits: alignment or the result cuts it, not the multiplier"
            );
            Finding::measured(name, "exact to the grid", words)
        }
        Some(bits) => {
            Finding::measured(name, format!("{bits} fraction bits"), format!("products keep {bits} fraction bits"))
        }
        None => Finding::inconclusive(name, "the product is wrong"),
    }
}

fn multiply(a: Number, b: Number) -> Number {
    let ((a_negative, a, a_exponent), (b_negative, b, b_exponent)) = (a.parts(), b.parts());
    let magnitude = (a * b).cast_signed();
    Number::new(if a_negative == b_negative { magnitude } else { -magnitude }, a_exponent + b_exponent)
}

/// M = 1.5·1.5 = 2.25: is it aligned by the sum of its operands' exponents (significand in [0, 4)) or by its leading
/// bit?
fn exponent(subject: &Subject<'_>, facts: &Facts) -> Result<Finding, Error> {
    let name = EXPONENT.name;
    let Some(Kept::Bits(bits)) = facts.kept else {
        return Ok(Finding::unsupported(name, "no bit is lost at alignment, so it does not show"));
    };
    let Some(structure) = &facts.structure else { return Ok(Finding::inconclusive(name, "the order is not known")) };
    let products = structure.site_products();
    let (large, opposite, small) = match products[..] {
        [first, second, third, ..] => (first, second, third),
        [first, second] if structure.site_has_c() => (first, second, Leaf::C),
        _ => match structure.pair_then_later() {
            Some((first @ Leaf::Product(_), second, later @ Leaf::Product(_))) => (first, later, second),
            _ => return Ok(Finding::inconclusive(name, "no two products cancel beside a third term")),
        },
    };
    let (low, high) = subject.exponents(small);
    let exponent = ((bits / 2).min(high)).max(low + bits);
    let value = Number::power(exponent);
    let widened = |small_value: Number| {
        let mut dot = subject.dot(&[(large, value), (opposite, value.negated()), (small, small_value)])?;
        for leaf in [large, opposite] {
            let Leaf::Product(k) = leaf else { return None };
            dot.a[k] = times_three_halves(subject.id().a, dot.a[k])?;
            dot.b[k] = times_three_halves(subject.id().b, dot.b[k])?;
        }
        Some(dot)
    };
    let values = [Number::ZERO, Number::power(exponent - bits), Number::power(exponent + 1 - bits)];
    let Some(dots) = values.iter().map(|value| widened(*value)).collect::<Option<Vec<_>>>() else {
        return Ok(Finding::inconclusive(name, "1.5 times 1.5 cannot be placed"));
    };
    let answers = subject.ask(&dots)?;
    let bare = subject.d_value(answers[0]);
    let survives = |at: usize| {
        let difference = subject.d_value(answers[at]).zip(bare).and_then(|(value, bare)| value - bare);
        difference == Some(values[at])
    };
    let bits_of = |value: Option<Number>| value.and_then(|value| subject.d_bits(value));
    let rivals: Vec<(String, u64)> = [
        ("by the sum of the operands' exponents", bits_of(bare.and_then(|bare| bare.plus(values[1])))),
        ("by the product's leading bit", bits_of(bare)),
    ]
    .into_iter()
    .filter_map(|(answer, d)| Some((answer.to_owned(), d?)))
    .collect();
    let shown = vec![subject.evidence(
        "1.5·1.5·M less the same, and the lowest bit kept beside M",
        &dots[1],
        answers[1],
        &rivals,
    )];
    Ok(match (survives(1), survives(2)) {
        (true, _) => Finding::measured(
            name,
            "operands",
            "a product is aligned by the sum of its operands' exponents: it is not renormalised",
        )
        .with(shown),
        (false, true) => {
            Finding::measured(name, "leading", "a product is aligned by its leading bit: it is renormalised first")
                .with(shown)
        }
        (false, false) => Finding::inconclusive(name, "the small term is lost under both hypotheses").with(shown),
    })
}

fn times_three_halves(format: Format, bits: u64) -> Option<u64> {
    let value = Number::decode(format, bits)?.times(3).scaled(-1);
    let widened = value.encode(format, Rounding::TowardZero);
    (Number::decode(format, widened) == Some(value)).then_some(widened)
}

/// Adds a product one binade above d's range to a term that brings the sum back into it.
fn overflow(subject: &Subject<'_>, facts: &Facts) -> Result<Finding, Error> {
    let name = OVERFLOW.name;
    let id = subject.id();
    let Some(float) = id.d.as_float() else { return Ok(Finding::unsupported(name, "integers")) };
    let top = float.max_exponent();
    let Some((a, b)) = subject.product_bits(Number::power(top + 1)) else {
        return Ok(Finding::unsupported(
            name,
            format!("no product of {} and {} leaves the range of {}", id.a, id.b, id.d),
        ));
    };
    let Some(structure) = &facts.structure else { return Ok(Finding::inconclusive(name, "the order is not known")) };
    let products = structure.site_products();
    let (first, second) = match (structure.site_has_c(), &products[..]) {
        (_, [first, second, ..]) => (*first, *second),
        (true, [only]) => (Leaf::C, *only),
        _ => match structure.pair_then_later() {
            Some((first, second, _)) => (first, second),
            None => return Ok(Finding::inconclusive(name, "no two terms meet first")),
        },
    };
    let Leaf::Product(k) = second else {
        return Ok(Finding::inconclusive(name, "no product meets another term first"));
    };
    let Some(mut dot) = subject.dot(&[(first, Number::power(top).negated())]) else {
        return Ok(Finding::inconclusive(name, "the opposite term cannot be placed"));
    };
    (dot.a[k], dot.b[k]) = (a, b);
    let d = subject.ask(std::slice::from_ref(&dot))?[0];
    let whole = subject.d_bits(Number::power(top)).unwrap_or(0);
    let mut rivals = vec![("no overflow of a product".to_owned(), whole)];
    rivals.extend(id.d.infinity(false).map(|infinity| ("a product overflows to infinity".to_owned(), infinity)));
    let shown = vec![subject.evidence(format!("2^{} − 2^{top}", top + 1), &dot, d, &rivals)];
    Ok(if d == whole {
        Finding::measured(name, false, "a product beyond the range of d does no harm if the sum is within").with(shown)
    } else if Some(d) == id.d.infinity(false) {
        Finding::measured(name, true, "a product beyond the range of d becomes infinity before it is added").with(shown)
    } else {
        Finding::inconclusive(name, "the result is neither the sum nor infinity").with(shown)
    })
}
