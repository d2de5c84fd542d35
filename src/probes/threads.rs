//! Does a sum depend on the number of threads that share it? (NVIDIA, Precision & Performance, section 5.3.)
//!
//! A matrix unit adds c and the products of one call; a long sum is a chain of calls through c. Sharing it among
//! threads, or adding one product per call as a chain of fused multiply-adds does, moves products to other calls.

use mxprobe_api::{Decoded, Error, Format};

use super::{Ask, Probe, Subject, facts::Facts};
use crate::{
    dots::{Dot, Random},
    findings::{AppliesTo, Finding, Value},
    scalars,
};

pub(crate) const PROBE: Probe = scalars::SUM_ORDER.asked_of(AppliesTo::Floating, Ask::Question(ask));

const SUMS: usize = 64;
const PRODUCTS: usize = 128;

/// The numbers of threads that share a sum; the products of each thread are consecutive. With one, products keep their
/// order.
const THREADS: [usize; 4] = [1, 4, 16, 64];

/// The name of the method with one product per call.
const CHAIN: &str = "fma";

/// Exact sums are integers in units of this power of two, far below the last place of any sum of these products.
const UNIT: i32 = -90;

/// One way to add the products of a sum.
struct Way {
    name: String,
    /// The products of each call.
    calls: Vec<Vec<usize>>,
}

fn ways(k: usize) -> Vec<Way> {
    let shared = THREADS.map(|threads| {
        let order: Vec<usize> = (0..threads).flat_map(|thread| (thread..PRODUCTS).step_by(threads)).collect();
        Way { name: threads.to_string(), calls: order.chunks(k).map(<[usize]>::to_vec).collect() }
    });
    let mut ways: Vec<Way> = shared.into();
    if k > 1 {
        ways.push(Way { name: CHAIN.to_owned(), calls: (0..PRODUCTS).map(|at| vec![at]).collect() });
    }
    ways
}

/// The products of one sum: operands of A and of B.
type Products = Vec<(u64, u64)>;

fn ask(subject: &Subject<'_>, _: &mut Facts, findings: &mut Vec<Finding>) -> Result<(), Error> {
    findings.push(of_sums(subject)?);
    Ok(())
}

fn of_sums(subject: &Subject<'_>) -> Result<Finding, Error> {
    let id = subject.id();
    if id.c != id.d {
        let reason =
            format!("sums of {PRODUCTS} products are chained through c, which is of {}, and d of {}", id.c, id.d);
        return Ok(Finding::unsupported(PROBE.name, reason));
    }
    if id.block_scale().is_some() {
        return Ok(Finding::unsupported(
            PROBE.name,
            "products of a block share a scale, so that none goes to another call",
        ));
    }
    let mut random = Random(0x5303);
    let sums: Vec<Products> = (0..SUMS)
        .map(|_| (0..PRODUCTS).map(|_| (element(&mut random, id.a), element(&mut random, id.b))).collect())
        .collect();
    let ways = ways(subject.k());
    let longest = ways.iter().map(|way| way.calls.len()).max().unwrap_or(0);
    let mut totals = vec![vec![0; SUMS]; ways.len()];
    let mut last: Vec<Vec<Option<Dot>>> = vec![vec![None; SUMS]; ways.len()];
    for call in 0..longest {
        // One batch for the next call of every sum, in every way.
        let mut places = Vec::new();
        let mut dots = Vec::new();
        for (at, way) in ways.iter().enumerate() {
            let Some(products) = way.calls.get(call) else { continue };
            for sum in 0..SUMS {
                let mut dot = subject.zeros();
                for (place, product) in products.iter().enumerate() {
                    (dot.a[place], dot.b[place]) = sums[sum][*product];
                }
                dot.c = totals[at][sum];
                places.push((at, sum));
                dots.push(dot);
            }
        }
        let answers = subject.ask(&dots)?;
        for (((at, sum), dot), d) in places.into_iter().zip(dots).zip(answers) {
            totals[at][sum] = d;
            last[at][sum] = Some(dot);
        }
    }
    Ok(finding(subject, &ways, &sums, &totals, &last))
}

fn finding(
    subject: &Subject<'_>,
    ways: &[Way],
    sums: &[Products],
    totals: &[Vec<u64>],
    last: &[Vec<Option<Dot>>],
) -> Finding {
    let id = subject.id();
    let exact: Vec<i128> = sums.iter().map(|sum| sum.iter().map(|pair| product(id.a, id.b, *pair)).sum()).collect();
    let errors = |of_way: &Vec<u64>| -> Option<f64> {
        let errors = of_way.iter().zip(&exact).map(|(total, exact)| error(id.d, *total, *exact));
        Some(errors.sum::<Option<f64>>()? / SUMS as f64)
    };
    let Some(means) = totals.iter().map(errors).collect::<Option<Vec<f64>>>() else {
        return Finding::inconclusive(PROBE.name, "a sum of ordinary products is not a number");
    };
    let differs = |sum: &usize| totals.iter().any(|of_way| of_way[*sum] != totals[0][*sum]);
    let differing: Vec<usize> = (0..SUMS).filter(differs).collect();
    let named = ways.iter().zip(&means).map(|(way, mean)| (way.name.clone(), Value::Decimal(*mean)));
    let value = [("differ".to_owned(), Value::from(differing.len()))].into_iter().chain(named);
    let words: Vec<String> = ways.iter().zip(&means).map(|(way, mean)| format!("{}: {mean:.3}", way.name)).collect();
    let statement = format!(
        "{} of {SUMS} sums of {PRODUCTS} products differ with the number of threads; mean error in ulp by threads: {}",
        differing.len(),
        words.join(", ")
    );
    // If no sum differs, the first one shows two orders that give the same bits.
    let sum = differing.first().copied().unwrap_or(0);
    let show = |at: usize| {
        let rivals: Vec<(String, u64)> = (0..ways.len())
            .filter(|other| totals[*other][sum] != totals[at][sum])
            .map(|other| (how(&ways[other]), totals[other][sum]))
            .collect();
        let about = format!("the last call of one sum of {PRODUCTS} products, {}", how(&ways[at]));
        let dot = last[at][sum].as_ref()?;
        Some(subject.evidence(about, dot, totals[at][sum], &rivals))
    };
    let other = (1..ways.len()).find(|at| totals[*at][sum] != totals[0][sum]).unwrap_or(ways.len() - 1);
    let shown: Vec<_> = [0, other].into_iter().filter_map(show).collect();
    Finding::measured(PROBE.name, Value::parts(value), statement).with(shown)
}

fn how(way: &Way) -> String {
    match way.name.as_str() {
        CHAIN => "one product a call".to_owned(),
        "1" => "in one thread".to_owned(),
        threads => format!("shared by {threads} threads"),
    }
}

/// A normal value with random bits, of either sign, within some binades of 1 as far as the format allows.
fn element(random: &mut Random, format: Format) -> u64 {
    let Some(float) = format.as_float() else { return 0 };
    let (low, high) = (float.min_exponent().max(-6), float.max_exponent().min(3));
    let exponent = random.between(low, high);
    let bits = format.fraction_bits();
    let significand = 1 << bits | random.bits() & ((1 << bits) - 1);
    let negative = random.below(3) == 0;
    let found = format.encode(
        negative,
        significand.into(),
        exponent - bits.cast_signed(),
        mxprobe_api::Rounding::TowardZero,
        mxprobe_api::Overflow::Saturate,
        mxprobe_api::Subnormals::Keep,
    );
    found.bits
}

/// A product in units of 2^[`UNIT`]; lower bits are cut.
fn product(a: Format, b: Format, (x, y): (u64, u64)) -> i128 {
    let (Some((of_a, low_a)), Some((of_b, low_b))) = (parts(a, x), parts(b, y)) else { return 0 };
    shifted(of_a * of_b, low_a + low_b - UNIT)
}

/// The signed significand and the exponent of its last bit; `None` if the bits are not a finite number.
fn parts(format: Format, bits: u64) -> Option<(i128, i32)> {
    match format.decode(bits) {
        Decoded::Zero { .. } => Some((0, 0)),
        Decoded::Finite { negative, significand, exponent } => {
            let magnitude = i128::from(significand);
            Some((if negative { -magnitude } else { magnitude }, exponent - format.fraction_bits().cast_signed()))
        }
        _ => None,
    }
}

fn shifted(value: i128, by: i32) -> i128 {
    let places = by.unsigned_abs();
    if by >= 0 { value << places.min(127) } else { value >> places.min(127) }
}

/// The distance of a sum from the exact one, in units in the last place of the exact one; `None` if it is not finite.
fn error(format: Format, total: u64, exact: i128) -> Option<f64> {
    let (significand, low) = parts(format, total)?;
    let off = (shifted(significand, low - UNIT) - exact).unsigned_abs();
    let leading = exact.unsigned_abs().checked_ilog2().unwrap_or(0).cast_signed();
    let least = format.as_float()?.min_exponent() - UNIT;
    let unit = leading.max(least) - format.fraction_bits().cast_signed();
    #[expect(clippy::cast_precision_loss, reason = "an error that is stated to three decimals")]
    let off = off as f64;
    Some(off * 2f64.powi(-unit))
}
