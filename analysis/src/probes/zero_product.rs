//! Question 3, for terms that are zero: does the exponent of a product affect alignment even if one of its operands is
//! zero?

use mxprobe_api::{Error, FloatEncoding, Format};

use super::{
    Ask, Leaf, Probe, Subject,
    facts::{Facts, Kept},
    number::Number,
};
use crate::{
    dots::Dot,
    findings::{AppliesTo, Finding, Shown, source},
};

pub(super) const PROBE: Probe = Probe {
    name: "alignment.zero_product",
    question: "Does zero times a large number move the grid that the other terms are aligned on?",
    how: "The smallest product that survives beside zeros, beside 0 times the largest value of B, and beside the largest value \
          of A times 0.",
    answers: &[
        ("ignored", "a product of zero changes nothing: zeros may be padded, and sparse data costs no bits"),
        ("counts", "a zero is aligned as a number of its operands' exponents, and small terms are lost beside it"),
    ],
    source: source::OWN,
    applies_to: AppliesTo::Floating,
    shown: Shown::PLAIN,
    ask: Ask::Question(ask),
};

fn ask(subject: &Subject<'_>, facts: &mut Facts, found: &mut Vec<Finding>) -> Result<(), Error> {
    found.push(finding(subject, facts)?);
    Ok(())
}

fn finding(subject: &Subject<'_>, facts: &Facts) -> Result<Finding, Error> {
    let id = subject.id();
    let inconclusive = |reason: &str| Ok(Finding::inconclusive(PROBE.name, reason));
    let bits = match facts.kept {
        Some(Kept::Bits(bits)) => bits,
        Some(Kept::All(_)) => return Ok(Finding::unsupported(PROBE.name, "no bit is lost at alignment")),
        None => return inconclusive("how many bits are kept at alignment is not known"),
    };
    let products = facts.structure.as_ref().map(|structure| structure.site_products()).unwrap_or_default();
    let [Leaf::Product(zero), small, ..] = products[..] else {
        return Ok(Finding::unsupported(PROBE.name, "no two products are added at once"));
    };
    let (Some(of_a), Some(of_b)) = (id.a.as_float(), id.b.as_float()) else {
        return Ok(Finding::unsupported(PROBE.name, "integers"));
    };
    // A zero has the exponent bits of the smallest normal value.
    let exponent = |zero: FloatEncoding, large: FloatEncoding| zero.min_exponent() + large.max_exponent();
    let grid = exponent(of_a, of_b).min(exponent(of_b, of_a)) - bits;
    let (low, _) = subject.exponents(small);
    let values: Vec<(i32, Dot)> = (low..grid)
        .filter_map(|exponent| Some((exponent, subject.dot(&[(small, Number::power(exponent))])?)))
        .collect();
    let dots: Vec<Dot> = values.iter().map(|(_, dot)| dot.clone()).collect();
    let answers = subject.ask(&dots)?;
    let whole = |exponent: i32| subject.d_bits(Number::power(exponent));
    let kept = values.iter().zip(&answers).find(|((exponent, _), d)| whole(*exponent) == Some(**d));
    let Some(((exponent, alone), &wanted)) = kept else {
        return inconclusive("no product that survives beside zeros lies below the grid that a zero would lay");
    };
    let beside = |a: u64, b: u64| {
        let mut dot = alone.clone();
        (dot.a[zero], dot.b[zero]) = (a, b);
        dot
    };
    let largest = |format: Format| format.largest(false);
    let dots = [beside(0, largest(id.b)), beside(largest(id.a), 0)];
    let answers = subject.ask(&dots)?;
    let rivals = [("a product of zero is ignored".to_owned(), wanted), ("it moves the grid".to_owned(), 0)];
    let about = |operands: &str| format!("2^{exponent} beside {operands}");
    let shown = vec![
        subject.evidence(about("0 times the largest value of B"), &dots[0], answers[0], &rivals),
        subject.evidence(about("the largest value of A times 0"), &dots[1], answers[1], &rivals),
    ];
    let is_zero = |d: u64| subject.d_value(d).is_some_and(Number::is_zero);
    Ok(if answers.iter().all(|d| *d == wanted) {
        let words = format!("2^{exponent} survives beside zero times the largest value, as beside zeros");
        Finding::measured(PROBE.name, "ignored", words)
    } else if answers.iter().all(|d| *d == wanted || is_zero(*d)) {
        let words = format!("2^{exponent} survives beside zeros, and is lost beside zero times the largest value");
        Finding::measured(PROBE.name, "counts", words)
    } else {
        Finding::inconclusive(PROBE.name, "the result is neither the small product nor zero")
    }
    .with(shown))
}

#[cfg(test)]
mod tests {
    use mxprobe_api::{Device, DeviceInfo, Elements, Operation, OperationSet, Rounding, TileBatch};

    use super::*;

    /// Adds all products and c at once on a grid of 24 bits, determined by exponents; those of zeros count if `counts`.
    struct Fused {
        info: DeviceInfo,
        operations: OperationSet,
        zeros_count: bool,
    }

    impl Fused {
        fn new(id: &str, zeros_count: bool) -> Self {
            let info = mxprobe_sim::ModelDevice::new(mxprobe_models::load("a100").unwrap()).info().clone();
            let operation = Operation::new(id.parse().unwrap(), "thread");
            Self { info, operations: OperationSet::from([(operation.id.clone(), operation)]), zeros_count }
        }
    }

    impl Device for Fused {
        fn info(&self) -> &DeviceInfo {
            &self.info
        }

        fn operations(&self) -> &OperationSet {
            &self.operations
        }

        fn execute(&self, operation: &Operation, batch: &TileBatch) -> Result<Elements, Error> {
            let id = &operation.id;
            let k = id.shape.sizes().2;
            let finite = |elements: &Elements, at: usize| Number::decode(elements.format(), elements.get(at));
            let dots = (0..batch.tiles).map(|tile| {
                let mut terms = vec![];
                for at in tile * k..(tile + 1) * k {
                    let (Some(a), Some(b)) = (finite(&batch.a, at), finite(&batch.b, at)) else { return 0x7fff_ffff };
                    let exponent = |value: Number, format: Format| {
                        value.leading().or_else(|| self.zeros_count.then_some(format.as_float()?.min_exponent()))
                    };
                    let ((minus_a, of_a, scale_a), (minus_b, of_b, scale_b)) = (a.parts(), b.parts());
                    let magnitude = (of_a * of_b).cast_signed();
                    let product = if minus_a == minus_b { magnitude } else { -magnitude };
                    let exponent = exponent(a, id.a).zip(exponent(b, id.b)).map(|(a, b)| a + b);
                    terms.push((Number::new(product, scale_a + scale_b), exponent));
                }
                let Some(c) = finite(&batch.c, tile) else { return 0x7fff_ffff };
                terms.push((c, c.leading()));
                let Some(largest) = terms.iter().filter_map(|(_, exponent)| *exponent).max() else { return 0 };
                let cut = terms.iter().map(|(term, _)| term.rounded(largest - 24, Rounding::TowardZero));
                let sum = cut.fold(Number::ZERO, |sum, term| sum.plus(term).expect("few bits"));
                sum.encode(id.d, Rounding::TowardZero)
            });
            Ok(Elements::from_bits(id.d, dots))
        }
    }

    #[test]
    fn a_unit_that_aligns_by_the_exponents_of_zero_products_is_told_from_one_that_ignores_them() {
        for id in ["dot.m1n1k4.f32.f16.f16.f32", "dot.m1n1k4.f32.bf16.bf16.f32", "dot.m1n1k8.f32.tf32.tf32.f32"] {
            for (zeros_count, answer) in [(true, "counts"), (false, "ignored")] {
                let device = Fused::new(id, zeros_count);
                let operation = device.operations().values().next().unwrap();
                let report = super::super::probe(&device, operation, None);
                let finding = report.finding(PROBE.name).unwrap();
                assert!(finding.is(answer), "{id}, {zeros_count}: {finding:?}");
                assert_eq!(finding.evidence.len(), 2);
            }
        }
    }
}
