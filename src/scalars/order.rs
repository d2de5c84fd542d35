//! Does a sum depend on the number of threads that share it? (NVIDIA, Precision & Performance, section 5.3.)

use mxprobe_api::{Elements, Error, Format, ScalarFunction};
use rustc_apfloat::{
    Float, FloatConvert,
    ieee::{BFloat, Double, Half, Quad, Single},
};

use super::{Ask, Probe, cases::number, subject::Subject};
use crate::{
    dots::Random,
    findings::{AppliesTo, Finding, Shown, Value, source},
};

pub(crate) const PROBE: Probe = Probe {
    name: "sum.order",
    question: "Does a sum depend on the number of threads that share it?",
    how: "64 sums of 256 elements between -1 and 2, in blocks of as many elements as a block has threads: each block is added as a \
          tree, then the blocks one after another.",
    answers: &[
        ("differ", "the sums, of 64, whose bits differ between two numbers of threads"),
        ("1, 4, …, 256", "the mean error with so many threads, in units in the last place of the exact sum"),
    ],
    source: source::NVIDIA,
    applies_to: AppliesTo::Scalars,
    shown: Shown::PLAIN,
    ask: Ask::Question(|subject, _, findings| {
        findings.push(ask(subject)?);
        Ok(())
    }),
};

const SUMS: usize = 64;
const ELEMENTS: usize = 256;
/// One thread adds serially, as many as there are elements add as a tree. The paper names 4 and 128.
const THREADS: [usize; 6] = [1, 4, 16, 64, 128, 256];

/// What one order gives: the sums, and the operands of the last addition of each.
struct Ordered {
    sums: Vec<u64>,
    last: Vec<[u64; 2]>,
}

fn ask(subject: &Subject<'_>) -> Result<Finding, Error> {
    let format = subject.format();
    if !subject.has(ScalarFunction::Add) {
        return Ok(Finding::unsupported(PROBE.name, "there is no addition in this mode"));
    }
    let mut random = Random(0x5303);
    let bits = format.fraction_bits().cast_signed();
    let mut element = || {
        let value = i128::from(random.bits() % (3 << bits)) - (1 << bits);
        number(format, value < 0, value.unsigned_abs(), -bits)
    };
    let sums: Vec<Vec<u64>> = (0..SUMS).map(|_| (0..ELEMENTS).map(|_| element()).collect()).collect();
    let exact: Vec<Quad> = sums.iter().map(|sum| exact(format, sum)).collect();
    let mut orders = Vec::new();
    for threads in THREADS {
        orders.push(ordered(subject, &sums, threads)?);
    }
    let differ = (0..SUMS).filter(|at| orders.iter().any(|order| order.sums[*at] != orders[0].sums[*at]));
    let differ: Vec<usize> = differ.collect();
    let mean = |order: &Ordered| {
        let errors = order.sums.iter().zip(&exact).map(|(sum, exact)| ulp(format, *sum, *exact));
        #[expect(clippy::cast_precision_loss, reason = "64 sums")]
        let count = SUMS as f64;
        errors.sum::<f64>() / count
    };
    let means: Vec<(usize, f64)> = THREADS.into_iter().zip(orders.iter().map(mean)).collect();
    let shown = differ.first().map(|at| {
        let show = |place: usize| {
            let (order, threads) = (&orders[place], THREADS[place]);
            let about = format!("the last addition of one sum of {ELEMENTS} elements with {threads} threads");
            let rivals: Vec<(String, u64)> = orders
                .iter()
                .zip(THREADS)
                .filter(|(other, _)| other.sums[*at] != order.sums[*at])
                .map(|(other, threads)| (format!("the sum with {threads} threads"), other.sums[*at]))
                .collect();
            subject.evidence(about, ScalarFunction::Add, &order.last[*at], order.sums[*at], &rivals)
        };
        vec![show(1), show(4)]
    });
    let words: Vec<String> = means.iter().map(|(threads, mean)| format!("{threads}: {mean:.3}")).collect();
    let statement = format!(
        "{} of {SUMS} sums of {ELEMENTS} elements differ with the number of threads; mean error in ulp by threads: {}",
        differ.len(),
        words.join(", ")
    );
    let named = [("differ".to_owned(), Value::from(differ.len()))];
    let value = Value::parts(
        named.into_iter().chain(means.iter().map(|(threads, mean)| (threads.to_string(), Value::Decimal(*mean)))),
    );
    Ok(Finding::measured(PROBE.name, value, statement).with(shown.unwrap_or_default()))
}

/// Every sum in blocks of so many elements, each added as a tree, and the blocks serially.
fn ordered(subject: &Subject<'_>, sums: &[Vec<u64>], threads: usize) -> Result<Ordered, Error> {
    let mut last = vec![[0; 2]; sums.len()];
    let mut blocks: Vec<Vec<Vec<u64>>> =
        sums.iter().map(|sum| sum.chunks(threads).map(<[u64]>::to_vec).collect()).collect();
    let mut width = threads;
    while width > 1 {
        width /= 2;
        // As a reduction in shared memory: element i and element i + width.
        let pairs = blocks.iter().flatten().flat_map(|block| (0..width).map(|at| [block[at], block[at + width]]));
        let pairs: Vec<[u64; 2]> = pairs.collect();
        let added = add(subject, &pairs)?;
        let each = blocks.first().map_or(1, Vec::len) * width;
        for (sum, last) in last.iter_mut().enumerate() {
            *last = pairs[(sum + 1) * each - 1];
        }
        let mut added = added.chunks(width);
        for block in blocks.iter_mut().flatten() {
            *block = added.next().map_or_else(Vec::new, <[u64]>::to_vec);
        }
    }
    let mut total: Vec<u64> = blocks.iter().map(|blocks| blocks[0][0]).collect();
    for at in 1..blocks[0].len() {
        last = total.iter().zip(&blocks).map(|(total, blocks)| [*total, blocks[at][0]]).collect();
        total = add(subject, &last)?;
    }
    Ok(Ordered { sums: total, last })
}

fn add(subject: &Subject<'_>, pairs: &[[u64; 2]]) -> Result<Vec<u64>, Error> {
    let operands = Elements::from_bits(subject.format(), pairs.iter().flatten().copied());
    Ok(subject.ask_elements(ScalarFunction::Add, &operands)?.iter().collect())
}

/// The exact sum: 113 bits hold it for formats up to f64.
fn exact(format: Format, elements: &[u64]) -> Quad {
    elements.iter().fold(Quad::from_bits(0), |sum, bits| (sum + wide(format, *bits)).value)
}

fn wide(format: Format, bits: u64) -> Quad {
    match format.name() {
        "f16" => Half::from_bits(bits.into()).convert(&mut false).value,
        "bf16" => BFloat::from_bits(bits.into()).convert(&mut false).value,
        "f64" => Double::from_bits(bits.into()).convert(&mut false).value,
        _ => Single::from_bits(bits.into()).convert(&mut false).value,
    }
}

/// How far a sum is from the exact one, in units in the last place of it.
fn ulp(format: Format, sum: u64, exact: Quad) -> f64 {
    let unit = exact.ilogb() - format.fraction_bits().cast_signed();
    let off = (wide(format, sum) - exact).value.abs().scalbn(-unit);
    let off = FloatConvert::<Double>::convert(off, &mut false).value;
    f64::from_bits(u64::try_from(off.to_bits()).unwrap_or(0))
}
