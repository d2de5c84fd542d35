//! Does a sum depend on the number of threads that share it? (NVIDIA, Precision & Performance, section 5.3.)

use mxprobe_api::{Elements, Error, Format, ScalarFunction};
use rustc_apfloat::{
    Float, FloatConvert,
    ieee::{Double, Quad},
};

use super::{Ask, Probe, cases::element, dots::wide, subject::Subject};
use crate::{
    dots::Random,
    findings::{AppliesTo, Comparable, Finding, Shown, Value},
};

pub(crate) const SUM_ORDER: Probe = Probe {
    name: "sum.order",
    question: "Does a sum depend on the number of threads that share it?",
    how: "64 sums of 128 elements between -1 and 2, in blocks of as many elements as a block has threads: each block is added as a \
          tree, then the blocks one after another. Of a matrix operation: 64 sums of 128 products, chained through c, whose \
          products are dealt out among as many threads, those of each one after another, or one product a call.",
    answers: &[
        ("differ", "the sums, of 64, whose bits differ between two numbers of threads"),
        ("1, 4, 16, 64, 128", "the mean error with so many threads, in units in the last place of the exact sum"),
        ("fma", "the mean error with one product a call, as a chain of fused multiply-adds"),
    ],
    source: "NVIDIA, Precision and Performance: floating point and IEEE 754 compliance (2011), section 5.3",
    applies_to: AppliesTo::Scalars,
    // The number of products per call decides which of them are added together.
    shown: Shown::PLAIN.compared(Comparable::WithinK),
    ask: Ask::Question(|subject, _, findings| {
        findings.push(ask(subject)?);
        Ok(())
    }),
};

const SUMS: usize = 64;
const ELEMENTS: usize = 128;
/// The paper names 4 for a CPU and 128 for a block of a GPU, which here adds all elements as one tree.
const THREADS: [usize; 4] = [4, 16, 64, 128];

/// Every sum in blocks of a number of elements, as far as it has been added.
struct Ordered {
    /// The partial sums of each block of each sum.
    blocks: Vec<Vec<Vec<u64>>>,
    /// The total of the first blocks of each sum.
    sums: Vec<u64>,
    /// The number of blocks in the totals.
    joined: usize,
    /// The operands of the last addition of each sum.
    last: Vec<[u64; 2]>,
}

impl Ordered {
    fn new(sums: &[Vec<u64>], threads: usize) -> Self {
        let blocks = sums.iter().map(|sum| sum.chunks(threads).map(<[u64]>::to_vec).collect()).collect();
        Self { blocks, sums: Vec::new(), joined: 0, last: Vec::new() }
    }

    fn width(&self) -> usize {
        self.blocks[0][0].len()
    }

    /// The operands of the additions that can be performed now; empty if all are done.
    fn pairs(&mut self) -> Vec<[u64; 2]> {
        let half = self.width() / 2;
        if half > 0 {
            // As in a reduction in shared memory: element i and element i + half.
            let of_block = |block: &Vec<u64>| (0..half).map(|at| [block[at], block[at + half]]).collect::<Vec<_>>();
            let pairs: Vec<[u64; 2]> = self.blocks.iter().flatten().flat_map(of_block).collect();
            let each = self.blocks[0].len() * half;
            self.last = (1..=self.blocks.len()).map(|sum| pairs[sum * each - 1]).collect();
            return pairs;
        }
        if self.joined == 0 {
            self.sums = self.blocks.iter().map(|blocks| blocks[0][0]).collect();
            self.joined = 1;
        }
        if self.joined == self.blocks[0].len() {
            return Vec::new();
        }
        let next = self.blocks.iter().map(|blocks| blocks[self.joined][0]);
        self.last = self.sums.iter().copied().zip(next).map(|(sum, next)| [sum, next]).collect();
        self.last.clone()
    }

    /// Stores the sums of these pairs.
    fn take(&mut self, added: &[u64]) {
        let half = self.width() / 2;
        if half == 0 {
            self.sums = added.to_vec();
            self.joined += 1;
            return;
        }
        for (block, added) in self.blocks.iter_mut().flatten().zip(added.chunks(half)) {
            *block = added.to_vec();
        }
    }
}

fn ask(subject: &Subject<'_>) -> Result<Finding, Error> {
    let format = subject.format();
    if !subject.has(ScalarFunction::Add) {
        return Ok(Finding::unsupported(SUM_ORDER.name, "this mode has no addition"));
    }
    let mut random = Random(0x5303);
    let drawn: Vec<Vec<(u64, i128)>> =
        (0..SUMS).map(|_| (0..ELEMENTS).map(|_| element(format, &mut random)).collect()).collect();
    let sums: Vec<Vec<u64>> = drawn.iter().map(|sum| sum.iter().map(|(bits, _)| *bits).collect()).collect();
    let exact: Vec<Quad> = drawn.iter().map(|sum| exact(format, sum.iter().map(|(_, value)| value).sum())).collect();
    let mut orders = THREADS.map(|threads| Ordered::new(&sums, threads));
    loop {
        // One call performs the next additions of every order.
        let pairs: Vec<Vec<[u64; 2]>> = orders.iter_mut().map(Ordered::pairs).collect();
        if pairs.iter().all(Vec::is_empty) {
            break;
        }
        let operands = pairs.iter().flatten().flatten().copied();
        let added = subject.ask_elements(ScalarFunction::Add, &Elements::from_bits(format, operands))?;
        let mut added = added.iter();
        for (order, pairs) in orders.iter_mut().zip(&pairs).filter(|(_, pairs)| !pairs.is_empty()) {
            order.take(&added.by_ref().take(pairs.len()).collect::<Vec<_>>());
        }
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
        vec![show(0), show(THREADS.len() - 1)]
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
    Ok(Finding::measured(SUM_ORDER.name, value, statement).with(shown.unwrap_or_default()))
}

/// The exact sum, from that of the elements in units of the last place of 1, which 113 bits hold.
fn exact(format: Format, sum: i128) -> Quad {
    Quad::from_i128(sum).value.scalbn(-format.fraction_bits().cast_signed())
}

/// The distance of a sum from the exact one, in units in the last place of the exact one.
fn ulp(format: Format, sum: u64, exact: Quad) -> f64 {
    let unit = exact.ilogb() - format.fraction_bits().cast_signed();
    let off = (wide(format, sum) - exact).value.abs().scalbn(-unit);
    let off = FloatConvert::<Double>::convert(off, &mut false).value;
    f64::from_bits(u64::try_from(off.to_bits()).unwrap_or(0))
}
