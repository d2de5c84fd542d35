//! Compares the matrix unit with the scalar unit of the same device, on the same dots.

use mxprobe_api::{Device, Elements, Error, Format, Scalar, ScalarFunction, ScalarId, call, scalars_of};

use super::{Ask, Probe, Subject};
use crate::{
    dots::{Dot, Draw},
    findings::{AppliesTo, Finding, Shown, Value, source},
    scalars::exactly,
};

pub(crate) const PROBE: Probe = Probe {
    name: "scalar_unit",
    question: "Does the device's scalar unit give the same bits, added one way or another?",
    how: "1,000 dots of the operation, and the same sums on the device's scalar unit of d's format: a chain of fused \
         multiply-adds, a chain of products and sums, and a tree of pairs.",
    answers: &[
        ("all dots", "the matrix unit gives what that way on the scalar unit gives: it may be that unit's work"),
        ("fewer", "results move when work moves from one unit to the other; the evidence has the bits of both"),
    ],
    source: source::NVIDIA,
    applies_to: AppliesTo::Every,
    shown: Shown::PLAIN,
    ask: Ask::Apart(|subject| beside(subject).into_iter().collect()),
};

/// The number of dots computed on both.
const DOTS: usize = 1_000;

/// Finds how the scalar unit must compute to give the matrix unit's bits, if it can: by chains of multiplications and
/// additions, chains of fused multiply-adds, or pairwise sums of products. `None` if the device does not offer scalar
/// functions.
fn beside(subject: &Subject<'_>) -> Option<Finding> {
    let device = subject.device();
    if scalars_of(device).is_empty() {
        return None;
    }
    Some(ask(subject, device).unwrap_or_else(|error| Finding::failed(PROBE.name, error.to_string())))
}

fn ask(subject: &Subject<'_>, device: &dyn Device) -> Result<Finding, Error> {
    let id = subject.id();
    let unsupported = |reason: String| Ok(Finding::unsupported(PROBE.name, reason));
    if id.is_integer() || id.block_scale().is_some() {
        return unsupported("only plain floating dots are computed on both".to_owned());
    }
    let Some(scalar) = scalars_of(device).iter().find(|scalar| scalar.id == ScalarId::new(id.d)) else {
        return unsupported(format!("the device shows no scalar arithmetic of {}", id.d));
    };
    match [id.a, id.b, id.c].into_iter().find(|format| !holds(id.d, *format)) {
        None => both(subject, device, scalar),
        Some(format) => unsupported(format!("{} does not hold every value of {format}", id.d)),
    }
}

/// Whether the wide format contains every value of the narrow one.
fn holds(wide: Format, narrow: Format) -> bool {
    match (wide.as_float(), narrow.as_float()) {
        (Some(w), Some(n)) => {
            w.fraction_bits >= n.fraction_bits
                && w.min_exponent() <= n.min_exponent()
                && w.max_exponent() >= n.max_exponent()
        }
        _ => false,
    }
}

fn both(subject: &Subject<'_>, device: &dyn Device, scalar: &Scalar) -> Result<Finding, Error> {
    let id = subject.id();
    let k = subject.k();
    let dots: Vec<Dot> = Draw::of_class(id, "dense", 12).map_or_else(Vec::new, |draw| draw.take(DOTS).collect());
    let matrix = subject.ask(&dots)?;
    let of = |dot: &Dot, at: usize| (exactly(id.a, dot.a[at], id.d), exactly(id.b, dot.b[at], id.d));
    let call = |function: ScalarFunction, operands: Vec<u64>| -> Result<Vec<u64>, Error> {
        let results = call(device, scalar, function, &Elements::from_bits(id.d, operands))?;
        Ok((0..results.len()).map(|at| results.get(at)).collect())
    };
    let c: Vec<u64> = dots.iter().map(|dot| exactly(id.c, dot.c, id.d)).collect();
    let mut ways: Vec<(&str, Vec<u64>)> = Vec::new();
    let has = |function: ScalarFunction| scalar.functions.contains_key(&function);
    if has(ScalarFunction::Fma) {
        let mut sums = c.clone();
        for at in 0..k {
            let operands = dots.iter().zip(&sums).flat_map(|(dot, sum)| [of(dot, at).0, of(dot, at).1, *sum]);
            sums = call(ScalarFunction::Fma, operands.collect())?;
        }
        ways.push(("fma", sums));
    }
    if has(ScalarFunction::Multiply) && has(ScalarFunction::Add) {
        let products = |at: usize| {
            call(ScalarFunction::Multiply, dots.iter().flat_map(|dot| [of(dot, at).0, of(dot, at).1]).collect())
        };
        let add = |left: &[u64], right: &[u64]| {
            call(ScalarFunction::Add, left.iter().zip(right).flat_map(|(x, y)| [*x, *y]).collect())
        };
        let mut sums = c.clone();
        let mut level = Vec::new();
        for at in 0..k {
            let product = products(at)?;
            sums = add(&sums, &product)?;
            level.push(product);
        }
        ways.push(("serial", sums));
        while level.len() > 1 {
            let mut next = Vec::new();
            for pair in level.chunks(2) {
                next.push(if let [left, right] = pair { add(left, right)? } else { pair[0].clone() });
            }
            level = next;
        }
        ways.push(("pairwise", add(&c, &level[0])?));
    }
    if ways.is_empty() {
        return Ok(Finding::unsupported(PROBE.name, "the device shows neither FMA nor multiplication and addition"));
    }
    let equal = |way: &[u64]| way.iter().zip(&matrix).filter(|(x, y)| x == y).count();
    let words: Vec<String> = ways
        .iter()
        .map(|(name, way)| {
            format!("{} of {} as the {name} chain", equal(way), dots.len()).replace("pairwise chain", "pairwise sum")
        })
        .collect();
    let value = Value::parts(ways.iter().map(|(name, way)| (*name, equal(way).into())));
    let same = ways.iter().find(|(_, way)| equal(way) == dots.len());
    let statement = match same {
        Some((name, _)) => {
            format!("the matrix unit gives the bits of the scalar unit's {name} sums in all {} dots", dots.len())
        }
        None => format!("the matrix unit gives the scalar unit's bits in {}", words.join(", ")),
    };
    // The first of the dots for which the most methods differ from the matrix unit.
    let others = |at: usize| ways.iter().filter(|(_, way)| way[at] != matrix[at]).count();
    let shown = (0..dots.len()).max_by_key(|at| (others(*at), std::cmp::Reverse(*at))).map(|at| {
        let rivals: Vec<(String, u64)> =
            ways.iter().map(|(name, way)| (format!("the scalar unit, {name}"), way[at])).collect();
        subject.evidence("the same dot on both units", &dots[at], matrix[at], &rivals)
    });
    Ok(Finding::measured(PROBE.name, value, statement).with(shown.into_iter().collect()))
}
