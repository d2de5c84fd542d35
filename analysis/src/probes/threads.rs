//! Does a sum depend on the number of threads that share it? (NVIDIA, Precision & Performance, section 5.3.)
//!
//! A matrix unit adds c and the products of one call; a long sum is a chain of calls through c. Sharing it among
//! threads, or adding one product per call as a chain of fused multiply-adds does, moves products to other calls.

use std::cmp::Reverse;

use mxprobe_api::{Decoded, Elements, Error, Format};

use super::{Ask, Probe, Subject, facts::Facts};
use crate::{
    dots::{Dot, Random},
    findings::{AppliesTo, Finding, Value},
    in_order::InOrder,
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
    let (of_a, of_b) = (Ordinary::of(id.a), Ordinary::of(id.b));
    let sums: Vec<Products> =
        (0..SUMS).map(|_| (0..PRODUCTS).map(|_| (of_a.draw(&mut random), of_b.draw(&mut random))).collect()).collect();
    let ways = ways(subject.k());
    let asked = match in_products(subject, &ways, &sums)? {
        Some(asked) => asked,
        None => call_by_call(subject, &ways, &sums)?,
    };
    Ok(finding(subject, &ways, &sums, &asked))
}

/// What came of the sums in every way.
struct Asked {
    totals: Vec<Vec<u64>>,
    /// The c of the last call of each sum.
    last_c: Vec<Vec<u64>>,
}

/// Asks one batch for the next call of every sum, in every way that has one.
fn call_by_call(subject: &Subject<'_>, ways: &[Way], sums: &[Products]) -> Result<Asked, Error> {
    // Those with the most calls come first, so that the dots of the others are at the end when they are no longer asked.
    let mut places: Vec<usize> = (0..ways.len()).collect();
    places.order_by_key(|at| Reverse(ways[*at].calls.len()));
    let mut dots = vec![subject.zeros(); ways.len() * SUMS];
    let mut asked = Asked { totals: vec![Vec::new(); ways.len()], last_c: vec![Vec::new(); ways.len()] };
    for call in 0.. {
        places.truncate(places.partition_point(|at| ways[*at].calls.len() > call));
        dots.truncate(places.len() * SUMS);
        if dots.is_empty() {
            break;
        }
        for (dots, at) in dots.chunks_exact_mut(SUMS).zip(&places) {
            for (dot, sum) in dots.iter_mut().zip(sums) {
                fill(dot, sum, &ways[*at].calls[call]);
            }
        }
        let answers = subject.ask(&dots)?;
        for ((dots, answers), at) in dots.chunks_exact_mut(SUMS).zip(answers.chunks_exact(SUMS)).zip(&places) {
            if ways[*at].calls.len() == call + 1 {
                asked.last_c[*at] = dots.iter().map(|dot| dot.c).collect();
                asked.totals[*at] = answers.to_vec();
            }
            dots.iter_mut().zip(answers).for_each(|(dot, d)| dot.c = *d);
        }
    }
    Ok(asked)
}

/// Asks a device with tiles that multiplies whole matrices for two products a way, one with all calls but the last: one
/// by one, the calls would take up to 128 launches. `None` if the device does not multiply whole matrices.
fn in_products(subject: &Subject<'_>, ways: &[Way], sums: &[Products]) -> Result<Option<Asked>, Error> {
    if subject.device().matrices().is_none_or(|matrices| !matrices.has_tiles()) {
        return Ok(None);
    }
    let mut asked = Asked { totals: Vec::new(), last_c: Vec::new() };
    for way in ways {
        let mut c = Elements::zeros(subject.id().c, SUMS * SUMS);
        let (last, before) = way.calls.split_last().expect("a call for every product");
        for (calls, into) in [(before, &mut asked.last_c), (std::slice::from_ref(last), &mut asked.totals)] {
            if !calls.is_empty() {
                let (a, b) = matrices(subject, sums, calls);
                let Some(d) = subject.multiply((SUMS, SUMS, subject.k() * calls.len()), (&a, &b, &c))? else {
                    return Ok(None);
                };
                c = d;
            }
            // Each sum has a row of A and a column of B.
            into.push((0..SUMS).map(|sum| c.get(sum * SUMS + sum)).collect());
        }
    }
    Ok(Some(asked))
}

/// A and B with the products of some calls: a row and a column for each sum.
fn matrices(subject: &Subject<'_>, sums: &[Products], calls: &[Vec<usize>]) -> (Elements, Elements) {
    let k = subject.k();
    let length = k * calls.len();
    let mut a = Elements::zeros(subject.id().a, SUMS * length);
    let mut b = Elements::zeros(subject.id().b, length * SUMS);
    let places = calls.iter().enumerate().flat_map(|(call, products)| {
        products.iter().enumerate().map(move |(place, product)| (call * k + place, *product))
    });
    for (at, product) in places {
        for (sum, of_sum) in sums.iter().enumerate() {
            a.set(sum * length + at, of_sum[product].0);
            b.set(at * SUMS + sum, of_sum[product].1);
        }
    }
    (a, b)
}

/// Writes the operands of a call of one sum into a dot, whose other products become +0.
fn fill(dot: &mut Dot, sum: &Products, products: &[usize]) {
    let (a, b) = (&mut dot.a[..], &mut dot.b[..]);
    for ((a, b), product) in a.iter_mut().zip(&mut *b).zip(products) {
        (*a, *b) = sum[*product];
    }
    a[products.len()..].fill(0);
    b[products.len()..].fill(0);
}

fn finding(subject: &Subject<'_>, ways: &[Way], sums: &[Products], asked: &Asked) -> Finding {
    let id = subject.id();
    let totals = &asked.totals;
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
        let mut dot = subject.zeros();
        fill(&mut dot, &sums[sum], ways[at].calls.last()?);
        dot.c = asked.last_c[at][sum];
        Some(subject.evidence(about, &dot, totals[at][sum], &rivals))
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

/// Normal values with random bits, of either sign, within some binades of 1 as far as the format allows.
struct Ordinary {
    /// The bits of the fraction.
    fraction: u64,
    /// Powers of two and their negatives, by rising exponent.
    powers: Vec<[u64; 2]>,
}

impl Ordinary {
    fn of(format: Format) -> Self {
        let Some(float) = format.as_float() else { return Self { fraction: 0, powers: vec![[0; 2]] } };
        let fraction = ((1 << float.fraction_bits) - 1) << float.unread_bits;
        let (low, high) = (float.min_exponent().max(-6), float.max_exponent().min(3));
        let powers = (low..=high).map(|exponent| [false, true].map(|negative| format.truncated(negative, 1, exponent)));
        Self { fraction, powers: powers.collect() }
    }

    fn draw(&self, random: &mut Random) -> u64 {
        let power = &self.powers[random.below(self.powers.len())];
        let fraction = random.bits() << self.fraction.trailing_zeros().min(63) & self.fraction;
        power[usize::from(random.below(3) == 0)] | fraction
    }
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use mxprobe_api::{Device, DeviceInfo, GemmOperands, Matrices, Operation, OperationId, OperationSet, TileBatch};
    use mxprobe_sim::ModelDevice;

    use super::*;
    use crate::{findings::Outcome, probes};

    /// A model that computes tiles as hardware does, and counts what a GPU would launch.
    struct Tiled {
        model: ModelDevice,
        multiplies: bool,
        launches: AtomicUsize,
    }

    impl Tiled {
        fn new(multiplies: bool) -> Self {
            let model = ModelDevice::new(mxprobe_models::load("h100").expect("a shipped model"));
            Self { model, multiplies, launches: AtomicUsize::new(0) }
        }

        fn launches(&self) -> usize {
            self.launches.swap(0, Ordering::Relaxed)
        }
    }

    impl Device for Tiled {
        fn info(&self) -> &DeviceInfo {
            self.model.info()
        }

        fn operations(&self) -> &OperationSet {
            self.model.operations()
        }

        fn execute(&self, operation: &Operation, batch: &TileBatch) -> Result<Elements, Error> {
            self.launches.fetch_add(1, Ordering::Relaxed);
            self.model.execute(operation, batch)
        }

        fn matrices(&self) -> Option<&dyn Matrices> {
            self.multiplies.then_some(self)
        }
    }

    impl Matrices for Tiled {
        fn multiply(&self, operation: &Operation, operands: &GemmOperands<'_>) -> Result<Option<Elements>, Error> {
            self.launches.fetch_add(1, Ordering::Relaxed);
            self.model.multiply(operation, operands)
        }
    }

    /// The operations of each format, one shape of each.
    const IDS: [&str; 6] = [
        "mma.m16n8k16.f32.f16.f16.f32",
        "mma.m16n8k8.f32.tf32.tf32.f32",
        "mma.m16n8k16.f32.bf16.bf16.f32",
        "mma.m16n8k16.f16.f16.f16.f16",
        "mma.m8n8k4.f64.f64.f64.f64",
        "wgmma.m64n8k32.f32.e4m3.e4m3.f32",
    ];

    #[test]
    fn ordinary_values_have_every_sign_exponent_and_fraction() {
        for format in Format::ALL.into_iter().filter(|format| !format.is_integer()) {
            let (ordinary, mut random) = (Ordinary::of(format), Random(1));
            let drawn: Vec<f64> = (0..2000).map(|_| format.to_f64(ordinary.draw(&mut random))).collect();
            let count = |of: &dyn Fn(f64) -> bool| drawn.iter().filter(|value| of(**value)).count();
            assert!(drawn.iter().all(|value| value.abs() < 16.0 && value.abs() >= 1.0 / 64.0), "{format}");
            let negative = if format.negative_zero().is_some() { 500..840 } else { 0..840 };
            assert!(negative.contains(&count(&|value| value < 0.0)), "{format}");
            // Powers of two are as frequent as a fraction of 0, and the mean of fractions is about a half.
            let fraction = |value: f64| value.abs() / value.abs().log2().floor().exp2() - 1.0;
            let mean = drawn.iter().map(|value| fraction(*value)).sum::<f64>() / 2000.0;
            let half = 0.5 - 0.5 / f64::from(1u32 << format.fraction_bits().min(20));
            assert!((mean - half).abs() < 0.03, "{format}: {mean}");
        }
    }

    #[test]
    fn a_call_leaves_nothing_of_the_one_before() {
        let sum: Products = (1..=8).map(|at| (at, 10 * at)).collect();
        let id: OperationId = "mma.m16n8k4.f32.f16.f16.f32".parse().expect("an id");
        let mut dot = Dot::zeros(&id);
        fill(&mut dot, &sum, &[4, 5, 6, 7]);
        fill(&mut dot, &sum, &[0, 2]);
        assert_eq!((dot.a, dot.b), (vec![1, 3, 0, 0], vec![10, 30, 0, 0]));
    }

    #[test]
    fn sums_in_products_have_the_bits_that_they_have_call_by_call() {
        let (in_tiles, multiplies) = (Tiled::new(false), Tiled::new(true));
        for text in IDS {
            let id: OperationId = text.parse().expect("an id");
            let of = |device: &Tiled| {
                let subject = Subject::new(device, &device.operations()[&id]);
                let found = of_sums(&subject).expect("an answer");
                (format!("{found:?}"), subject.asked())
            };
            assert_eq!(of(&in_tiles), of(&multiplies), "{text}");
            assert_eq!((in_tiles.launches(), multiplies.launches() <= 10), (128, true), "{text}");
        }
    }

    #[test]
    fn the_questions_about_an_operation_take_few_launches() {
        let device = Tiled::new(true);
        for text in IDS {
            let operation = &device.operations()[&text.parse::<OperationId>().expect("an id")];
            let found = probes::probe(&device, operation, None);
            let of_sums = found.findings.iter().find(|finding| finding.probe == PROBE.name);
            assert!(of_sums.is_some_and(|finding| finding.outcome == Outcome::Measured), "{text}");
            let launches = device.launches();
            assert!(launches <= MOST_LAUNCHES, "{text}: {launches}");
        }
    }

    /// With one launch for each call of a sum there are some 150.
    const MOST_LAUNCHES: usize = 50;
}
