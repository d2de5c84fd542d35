//! How far are the three dot products of four terms from the exact value? (NVIDIA, Precision & Performance, section 3.)

use mxprobe_api::{DotOrder, Error, Format, ScalarFunction};
use rustc_apfloat::{
    Float, FloatConvert,
    ieee::{BFloat, Double, Half, Quad, Single},
};

use super::{Ask, Probe, cases::number, subject::Subject};
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
    // Between −1 and 2, as in the paper.
    let element = |random: &mut Random| {
        let whole = random.bits() % (3 << bits);
        let value = i128::from(whole) - (1 << bits);
        number(format, value < 0, value.unsigned_abs(), -bits)
    };
    let calls: Vec<Vec<u64>> = (0..DOTS).map(|_| (0..8).map(|_| element(&mut random)).collect()).collect();
    let mut means = Vec::new();
    let mut of_orders = Vec::new();
    let mut errors = vec![0.0f64; DOTS];
    for (name, function) in orders {
        let results = subject.ask(function, &calls)?;
        let mut sum = 0.0;
        for ((call, d), worst) in calls.iter().zip(&results).zip(&mut errors) {
            let error = exact(format, call, *d).0;
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
        let nearest = exact(format, call, d).1;
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

/// |d − exact| for a dot, with many more bits than d has, and the exact sum rounded to nearest.
fn exact(format: Format, call: &[u64], d: u64) -> (f64, u64) {
    match format.name() {
        "f16" => in_quad::<Half>(call, d),
        "bf16" => in_quad::<BFloat>(call, d),
        "f64" => in_quad::<Double>(call, d),
        _ => in_quad::<Single>(call, d),
    }
}

fn in_quad<F: Float + FloatConvert<Quad>>(call: &[u64], d: u64) -> (f64, u64)
where
    Quad: FloatConvert<F>,
{
    let bits = |value: u128| u64::try_from(value).unwrap_or(0);
    let wide = |bits: u64| F::from_bits(bits.into()).convert(&mut false).value;
    let sum = (0..4).fold(Quad::from_bits(0), |sum, at| wide(call[at]).mul_add(wide(call[4 + at]), sum).value);
    let off = FloatConvert::<Double>::convert((wide(d) - sum).value, &mut false).value;
    let nearest = FloatConvert::<F>::convert(sum, &mut false).value;
    (f64::from_bits(bits(off.to_bits())).abs(), bits(nearest.to_bits()))
}
