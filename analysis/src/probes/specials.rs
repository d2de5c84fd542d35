//! Question 8: NaN bits, infinities, signed zeros, overflow.

use mxprobe_api::{Decoded, Error, Format};

use super::{Ask, Probe, Subject};
use crate::{
    dots::Dot,
    findings::{AppliesTo, Comparable, Evidence, Finding, Shown, Value},
};

pub(crate) const NAN: Probe = Probe {
    name: "specials.nan",
    question: "Which bits does a NaN result have, and whose payload?",
    how: "NaNs with payloads in A, B and C, and the operations that are invalid.",
    answers: &[
        ("one pattern", "every NaN looks the same: payloads cannot be traced"),
        ("several", "the bits returned for each case; programs that compare bits have to expect them"),
        ("{not_nan}", "a NaN is lost: errors in the data do not show in the result"),
    ],
    source: "IEEE 754-2019, 6.2",
    applies_to: AppliesTo::Floating,
    shown: Shown::PLAIN.compared(Comparable::NanBits),
    ask: Ask::Question(|subject, _, found| ask(subject, found)),
};

pub(crate) const INFINITY: Probe = Probe {
    name: "specials.infinity",
    question: "Do infinities pass, and what does overflow give?",
    how: "Infinity in A and in C; the largest C and as large a product, of both signs.",
    answers: &[
        ("0x7f800000 and the like", "the bits of infinity: overflow shows"),
        ("the largest value", "overflow saturates, or rounding is not to nearest: it does not show"),
    ],
    source: "IEEE 754-2019, 6.1 and 7.4",
    applies_to: AppliesTo::Floating,
    shown: Shown::PLAIN,
    ask: Ask::Along,
};

pub(crate) const ZERO: Probe = Probe {
    name: "specials.zero",
    question: "Which sign has a zero result?",
    how: "Products and c of both zeros, and 1 − 1.",
    answers: &[
        ("as IEEE 754", "−0 only from −0 alone"),
        ("always +0", "sums start from +0: the sign of a zero does not pass"),
    ],
    source: "IEEE 754-2019, 6.3",
    applies_to: AppliesTo::Floating,
    shown: Shown::PLAIN,
    ask: Ask::Along,
};

/// An input and its description.
struct Case {
    key: &'static str,
    about: &'static str,
    dot: Dot,
}

pub(super) fn ask(subject: &Subject<'_>, found: &mut Vec<Finding>) -> Result<(), Error> {
    let nans = nan_cases(subject);
    let infinities = infinity_cases(subject);
    let zeros = zero_cases(subject);
    let dots: Vec<Dot> = nans.iter().chain(&infinities).chain(&zeros).map(|case| case.dot.clone()).collect();
    let answers = subject.ask(&dots)?;
    let (of_nans, rest) = answers.split_at(nans.len());
    let (of_infinities, of_zeros) = rest.split_at(infinities.len());
    found.push(nan_finding(subject, &nans, of_nans));
    let as_number = infinity_as_number(subject, &nans, of_nans);
    found.push(infinity_finding(subject, &infinities, of_infinities, as_number));
    found.push(zero_finding(subject, &zeros, of_zeros));
    Ok(())
}

fn sign_of(format: Format) -> u64 {
    if format.as_float().is_some_and(mxprobe_api::FloatEncoding::is_signed) { 1 << (format.bits() - 1) } else { 0 }
}

/// A quiet NaN, with a payload if the format has room for one.
fn payload(format: Format, low: u64) -> Option<u64> {
    let nan = format.nan()?;
    let float = format.as_float()?;
    Some(if format.infinity(false).is_some() && float.fraction_bits > 2 { nan | low << float.unread_bits } else { nan })
}

fn nan_cases(subject: &Subject<'_>) -> Vec<Case> {
    let id = subject.id();
    let (one_a, one_b) = (id.a.one(), id.b.one());
    let base = subject.zeros();
    let last = subject.k() - 1;
    let mut cases = Vec::new();
    let mut case = |key, about, change: &dyn Fn(&mut Dot) -> Option<()>| {
        let mut dot = base.clone();
        if change(&mut dot).is_some() {
            cases.push(Case { key, about, dot });
        }
    };
    case("a", "NaN in A", &|dot| {
        (dot.a[0], dot.b[0]) = (payload(id.a, 1)?, one_b);
        Some(())
    });
    case("b", "NaN in B", &|dot| {
        (dot.a[0], dot.b[0]) = (one_a, payload(id.b, 2)?);
        Some(())
    });
    case("c", "NaN in C", &|dot| {
        dot.c = payload(id.c, 3)?;
        Some(())
    });
    case("negative_c", "negative NaN in C", &|dot| {
        dot.c = payload(id.c, 3)? | sign_of(id.c);
        Some(())
    });
    case("signalling_c", "signalling NaN in C", &|dot| {
        dot.c = id.c.infinity(false)? | 1;
        Some(())
    });
    case("a_and_b", "different NaNs in A and B", &|dot| {
        (dot.a[0], dot.b[0]) = (payload(id.a, 1)?, payload(id.b, 2)?);
        Some(())
    });
    case("a_and_c", "different NaNs in A and C", &|dot| {
        (dot.a[0], dot.b[0], dot.c) = (payload(id.a, 1)?, one_b, payload(id.c, 3)?);
        Some(())
    });
    case("first_and_last", "different NaNs in the first and the last product", &|dot| {
        (dot.a[0], dot.b[0]) = (payload(id.a, 1)?, one_b);
        (dot.a[last], dot.b[last]) = (payload(id.a, 2)?, one_b);
        (last > 0).then_some(())
    });
    case("infinity_times_zero", "Inf · 0", &|dot| {
        dot.a[0] = id.a.infinity(false)?;
        Some(())
    });
    case("infinity_minus_infinity", "Inf − Inf in two products", &|dot| {
        (dot.a[0], dot.b[0]) = (id.a.infinity(false)?, one_b);
        (dot.a[last], dot.b[last]) = (id.a.infinity(true)?, one_b);
        (last > 0).then_some(())
    });
    case("infinity_minus_c", "Inf in a product, −Inf in C", &|dot| {
        (dot.a[0], dot.b[0], dot.c) = (id.a.infinity(false)?, one_b, id.c.infinity(true)?);
        Some(())
    });
    case("infinity_times_zero_and_c", "Inf · 0, and NaN in C", &|dot| {
        (dot.a[0], dot.c) = (id.a.infinity(false)?, payload(id.c, 3)?);
        Some(())
    });
    cases
}

fn infinity_cases(subject: &Subject<'_>) -> Vec<Case> {
    let id = subject.id();
    let base = subject.zeros();
    let mut cases = Vec::new();
    let one_b = id.b.one();
    let mut case = |key, about, change: &dyn Fn(&mut Dot) -> Option<()>| {
        let mut dot = base.clone();
        if change(&mut dot).is_some() {
            cases.push(Case { key, about, dot });
        }
    };
    case("product", "Inf in A", &|dot| {
        (dot.a[0], dot.b[0]) = (id.a.infinity(false)?, one_b);
        Some(())
    });
    case("c", "−Inf in C", &|dot| {
        dot.c = id.c.infinity(true)?;
        Some(())
    });
    case("overflow", "the largest C and as large a product", &|dot| {
        (dot.a[0], dot.b[0]) = largest_product(subject)?;
        dot.c = id.c.largest(false);
        Some(())
    });
    case("negative_overflow", "the lowest C and as low a product", &|dot| {
        let (a, b) = largest_product(subject)?;
        (dot.a[0], dot.b[0]) = (a | sign_of(id.a), b);
        dot.c = id.c.largest(true);
        Some(())
    });
    cases
}

/// A product of about the largest value of d, if there is one.
fn largest_product(subject: &Subject<'_>) -> Option<(u64, u64)> {
    let top = subject.id().d.as_float()?.max_exponent();
    subject.product_bits(super::number::Number::power(top))
}

fn zero_cases(subject: &Subject<'_>) -> Vec<Case> {
    let id = subject.id();
    let (minus_a, minus_c) = (id.a.negative_zero().unwrap_or(0), id.c.negative_zero().unwrap_or(0));
    let base = subject.zeros();
    let all_negative = |c: u64| {
        let mut dot = base.clone();
        dot.a.iter_mut().for_each(|bits| *bits = minus_a);
        dot.c = c;
        dot
    };
    let mut negative_c = base.clone();
    negative_c.c = minus_c;
    let mut cancel = base.clone();
    let last = subject.k() - 1;
    (cancel.a[0], cancel.b[0]) = (id.a.one(), id.b.one());
    if last > 0 {
        (cancel.a[last], cancel.b[last]) = (id.a.one() | minus_a, id.b.one());
    } else {
        cancel.c = id.c.one() | minus_c;
    }
    let mut cases = vec![Case { key: "all_positive", about: "every product +0, C +0", dot: base.clone() }];
    if minus_c != 0 && minus_a != 0 {
        cases.push(Case { key: "all_negative", about: "every product −0, C −0", dot: all_negative(minus_c) });
        cases.push(Case { key: "negative_products", about: "every product −0, C +0", dot: all_negative(0) });
        cases.push(Case { key: "negative_c", about: "every product +0, C −0", dot: negative_c });
        cases.push(Case { key: "cancellation", about: "1 − 1", dot: cancel });
    }
    cases
}

fn table(subject: &Subject<'_>, cases: &[Case], answers: &[u64]) -> (Value, Vec<Evidence>) {
    let format = subject.id().d;
    let values = Value::parts(cases.iter().zip(answers).map(|(case, d)| (case.key, Value::Bits(format, *d))));
    let shown = cases.iter().zip(answers).map(|(case, d)| subject.evidence(case.about, &case.dot, *d, &[])).collect();
    (values, shown)
}

fn nan_finding(subject: &Subject<'_>, cases: &[Case], answers: &[u64]) -> Finding {
    let name = NAN.name;
    if cases.is_empty() {
        return Finding::unsupported(name, "the formats have neither NaN nor infinity");
    }
    let format = subject.id().d;
    let (values, mut shown) = table(subject, cases, answers);
    for (evidence, d) in shown.iter_mut().zip(answers) {
        let quieted = matches!(format.decode(*d), Decoded::Nan { .. });
        let canonical = format.nan().filter(|nan| nan != d && quieted);
        evidence.rivals.extend(canonical.map(|nan| ("the default NaN".into(), nan)));
    }
    if let Some((case, d)) = cases.iter().zip(answers).find(|(_, d)| !matches!(format.decode(**d), Decoded::Nan { .. }))
    {
        let words = format!("{} gives {}, which is not a NaN", case.about, format.hex(*d));
        let value = Value::parts([("not_nan", case.key.into()), ("bits", values)]);
        return Finding::measured(name, value, words).with(shown);
    }
    let statement = if answers.windows(2).all(|pair| pair[0] == pair[1]) {
        format!("every NaN result is {}: payload and sign are not kept", format.hex(answers[0]))
    } else {
        let of = |key: &str| cases.iter().position(|case| case.key == key).map(|at| format.hex(answers[at]));
        let mut parts = Vec::new();
        for (key, about) in [
            ("a", "NaN in A gives"),
            ("c", "in C"),
            ("infinity_times_zero", "Inf·0"),
            ("infinity_minus_infinity", "Inf − Inf"),
            ("a_and_c", "in A and C"),
        ] {
            parts.extend(of(key).map(|bits| format!("{about} {bits}")));
        }
        parts.join(", ")
    };
    Finding::measured(name, values, statement).with(shown)
}

/// Evidence that the unit treats the code of infinity as a number, in words: an invalid operation does not give NaN.
fn infinity_as_number(subject: &Subject<'_>, nans: &[Case], answers: &[u64]) -> Option<String> {
    let format = subject.id().d;
    format.nan()?;
    let is_invalid =
        |case: &Case| ["infinity_times_zero", "infinity_minus_infinity", "infinity_minus_c"].contains(&case.key);
    let mut cases = nans.iter().zip(answers).filter(|(case, _)| is_invalid(case));
    let (case, d) = cases.find(|(_, d)| !matches!(format.decode(**d), Decoded::Nan { .. }))?;
    Some(format!("infinity is read as a number: {} gives {}, ", case.about, format.hex(*d)))
}

fn infinity_finding(subject: &Subject<'_>, cases: &[Case], answers: &[u64], as_number: Option<String>) -> Finding {
    let name = INFINITY.name;
    if cases.is_empty() {
        return Finding::unsupported(name, "no input is or becomes infinite");
    }
    let format = subject.id().d;
    let (values, mut shown) = table(subject, cases, answers);
    for evidence in &mut shown {
        evidence.rivals.push(("saturates".into(), format.largest(false)));
    }
    let of = |key: &str| cases.iter().position(|case| case.key == key).map(|at| answers[at]);
    let overflow = match of("overflow") {
        Some(d) if Some(d) == format.infinity(false) => "overflow gives infinity".to_owned(),
        Some(d) if d == format.largest(false) => "overflow saturates".to_owned(),
        Some(d) => format!("overflow gives {}", format.hex(d)),
        None => "overflow cannot be reached".to_owned(),
    };
    let passes = match of("product") {
        _ if as_number.is_some() => as_number.unwrap_or_default(),
        Some(d) if Some(d) == format.infinity(false) => "infinity propagates, ".to_owned(),
        Some(d) => format!("Inf in A gives {}, ", format.hex(d)),
        None => String::new(),
    };
    Finding::measured(name, values, format!("{passes}{overflow}")).with(shown)
}

fn zero_finding(subject: &Subject<'_>, cases: &[Case], answers: &[u64]) -> Finding {
    let name = ZERO.name;
    let format = subject.id().d;
    let (values, mut shown) = table(subject, cases, answers);
    let minus = sign_of(format);
    for (evidence, d) in shown.iter_mut().zip(answers) {
        evidence.rivals.push(("the other zero".into(), *d ^ minus));
    }
    let of = |key: &str| cases.iter().position(|case| case.key == key).map(|at| answers[at]);
    let statement = if answers.iter().all(|d| *d == 0) {
        let all_negative = if of("all_negative").is_some() {
            ", even where every product and c is −0: sums start from +0"
        } else {
            ""
        };
        format!("a zero result is always +0{all_negative}")
    } else if of("all_negative") == Some(minus) && of("negative_c") == Some(0) && of("cancellation") == Some(0) {
        "a zero result has the sign that IEEE 754 gives it".to_owned()
    } else {
        let parts: Vec<String> =
            cases.iter().zip(answers).map(|(case, d)| format!("{}: {}", case.about, format.hex(*d))).collect();
        parts.join("; ")
    };
    Finding::measured(name, values, statement).with(shown)
}
