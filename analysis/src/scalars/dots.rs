//! How far are the three dot products of four terms from the exact value? (NVIDIA, Precision & Performance, section 3.)

use mxprobe_api::{DotOrder, Error, Format, ScalarFunction};
use rustc_apfloat::{
    Float, FloatConvert,
    ieee::{BFloat, Double, Half, Quad, Single},
};

use super::{Ask, Probe, cases::element, subject::Subject};
use crate::{
    dots::Random,
    findings::{AppliesTo, Finding, Shown, Value, source},
};

pub(crate) const ERROR: Probe = Probe {
    name: "dot4.error",
    question: "How far are the serial, the FMA and the pairwise dot product from the exact value?",
    how: "2,000 dots of elements between -1 and 2, against the sum in f128; in units of half the last place of 1.",
    answers: &[
        ("serial, fma, pairwise", "the mean error of each; the fused one is usually the smallest"),
        ("equal numbers", "the functions compute the same: the compiler made one of another"),
    ],
    source: source::NVIDIA,
    applies_to: AppliesTo::Scalars,
    shown: Shown::PLAIN,
    ask: Ask::Question(|subject, _, findings| ask(subject, findings)),
};

const DOTS: usize = 2_000;

pub(super) fn ask(subject: &Subject<'_>, findings: &mut Vec<Finding>) -> Result<(), Error> {
    let format = subject.format();
    let orders = [("serial", DotOrder::Serial), ("fma", DotOrder::Fma), ("pairwise", DotOrder::Pairwise)];
    let orders: Vec<_> = orders
        .into_iter()
        .map(|(name, order)| (name, ScalarFunction::Dot4 { order }))
        .filter(|(_, function)| subject.has(*function))
        .collect();
    if orders.is_empty() {
        findings.push(Finding::unsupported(ERROR.name, "this mode has no dot product"));
        return Ok(());
    }
    let mut random = Random(0xd07);
    let bits = format.fraction_bits().cast_signed();
    let drawn: Vec<[(u64, i128); 8]> = (0..DOTS).map(|_| [(); 8].map(|()| element(format, &mut random))).collect();
    let calls: Vec<Vec<u64>> = drawn.iter().map(|dot| dot.iter().map(|(bits, _)| *bits).collect()).collect();
    let exact: Vec<Quad> = drawn.iter().map(|dot| exact(format, &dot.map(|(_, value)| value))).collect();
    let mut means = Vec::new();
    let mut of_orders = Vec::new();
    let mut errors = vec![0.0f64; DOTS];
    for (name, function) in orders {
        let results = subject.ask(function, &calls)?;
        let mut sum = 0.0;
        for ((exact, d), worst) in exact.iter().zip(&results).zip(&mut errors) {
            let error = distance(format, *exact, *d);
            sum += error;
            *worst = worst.max(error);
        }
        #[expect(clippy::cast_precision_loss, reason = "a count of some thousands")]
        means.push((name, sum / DOTS as f64));
        of_orders.push((function, results));
    }
    // The dot with the largest error, in every order.
    let worst = (0..DOTS).max_by(|x, y| errors[*x].total_cmp(&errors[*y])).unwrap_or(0);
    let shown = of_orders.iter().map(|(function, results)| {
        let (call, d) = (&calls[worst], results[worst]);
        let nearest = nearest(format, exact[worst]);
        let rivals = [("the exact sum, rounded to nearest".to_owned(), nearest)];
        let rivals = if nearest == d { &[][..] } else { &rivals };
        subject.evidence("the dot of the largest error", *function, call, d, rivals)
    });
    let shown = shown.collect();
    let unit = 2.0f64.powi(-bits - 1);
    let words: Vec<String> = means.iter().map(|(name, mean)| format!("{name} {:.3}", mean / unit)).collect();
    let value = Value::parts(means.iter().map(|(name, mean)| (*name, Value::Decimal(mean / unit))));
    let statement =
        format!("mean error of {DOTS} dots of elements in −1…2, in units of 2^-{}: {}", bits + 1, words.join(", "));
    findings.push(Finding::measured(ERROR.name, value, statement).with(shown));
    Ok(())
}

/// The exact dot of elements in units of the last place of 1. Its products and sums have at most 110 bits; a `Quad` has
/// 113.
fn exact(format: Format, elements: &[i128; 8]) -> Quad {
    let sum = (0..4).map(|at| elements[at] * elements[4 + at]).sum();
    Quad::from_i128(sum).value.scalbn(-2 * format.fraction_bits().cast_signed())
}

/// |d − exact|, with many more bits than d has.
fn distance(format: Format, exact: Quad, d: u64) -> f64 {
    let off = FloatConvert::<Double>::convert((wide(format, d) - exact).value, &mut false).value;
    f64::from_bits(u64::try_from(off.to_bits()).unwrap_or(0)).abs()
}

/// The exact sum, rounded to nearest.
fn nearest(format: Format, exact: Quad) -> u64 {
    let bits = match format.name() {
        "f16" => FloatConvert::<Half>::convert(exact, &mut false).value.to_bits(),
        "bf16" => FloatConvert::<BFloat>::convert(exact, &mut false).value.to_bits(),
        "f64" => FloatConvert::<Double>::convert(exact, &mut false).value.to_bits(),
        _ => FloatConvert::<Single>::convert(exact, &mut false).value.to_bits(),
    };
    u64::try_from(bits).unwrap_or(0)
}

/// A value, which a `Quad` holds.
pub(super) fn wide(format: Format, bits: u64) -> Quad {
    match format.name() {
        "f16" => Half::from_bits(bits.into()).convert(&mut false).value,
        "bf16" => BFloat::from_bits(bits.into()).convert(&mut false).value,
        "f64" => Double::from_bits(bits.into()).convert(&mut false).value,
        _ => Single::from_bits(bits.into()).convert(&mut false).value,
    }
}
