//! Exact sums that cancel: what decides how they are rounded lies far below their largest terms, on every path.

use mxprobe_api::{DotOperands, Elements, Format, GemmOperands, OperationId, Random};
use mxprobe_models::{Evaluator, Model, Path, shipped};

/// A unit that adds more terms, and more values beside products, than any shipped one.
const LONG: &str = r#"
schema = "mxprobe-model/1"
name = "long-sums"
title = "a unit that adds up to seven products and up to two values exactly"
vendor = "nobody"
fingerprint = "long-sums"

[sources]
here = "made up"

[adder.s]
output = "f32"
rounding = "nearest-even"
nan = { operand = "quiet", value = "quiet", invalid = "0x7fc00000" }
basis = "specified"
source = "here"

[[unit]]
tree = "fold(c, all/7, s(all, acc))"
operations = ["dot.m4n4k7.f32.{f16.f16,bf16.bf16}.f32"]
basis = "specified"
source = "here"

[[unit]]
tree = "s(s(0..2), 2..4, c)"
operations = ["dot.m4n4k4.f32.{f16.f16,bf16.bf16}.f32"]
basis = "specified"
source = "here"
"#;

/// A term of a sum: its sign, an odd significand of at most eight bits, and the exponent of its last bit.
#[derive(Clone, Copy)]
struct Term {
    negative: bool,
    significand: u32,
    exponent: i32,
}

impl Term {
    fn value(self) -> f64 {
        let sign = if self.negative { -1.0 } else { 1.0 };
        sign * f64::from(self.significand) * f64::from(self.exponent).exp2()
    }

    fn negated(self) -> Self {
        Self { negative: !self.negative, ..self }
    }
}

/// The exponents that a term may have as a product of two factors, and as one factor.
struct Range {
    products: (i32, i32),
    factors: (i32, i32),
}

impl Range {
    fn of(format: Format) -> Self {
        let (low, high) = if format == Format::F16 { (-24, 8) } else { (-133, 60) };
        Self { products: (2 * low, 2 * high), factors: (low, high) }
    }
}

fn between(random: &mut Random, (low, high): (i32, i32)) -> i32 {
    let width = u64::try_from(i64::from(high) - i64::from(low) + 1).expect("not empty");
    low + i32::try_from(random.bits() % width).expect("small")
}

/// Terms of which a multiple of 2^(exponent + 1), and half of its last place as an f32, remain; and, mostly, a term far
/// below that. Larger ones cancel.
fn terms(count: usize, range: &Range, random: &mut Random) -> Vec<Term> {
    let (low, high) = range.products;
    let power = |random: &mut Random, exponents| Term {
        negative: random.bits() & 1 == 1,
        significand: 1,
        exponent: between(random, exponents),
    };
    let leading = power(random, (low + 26, high - 10));
    let half = Term { exponent: leading.exponent - 24, ..power(random, (0, 0)) };
    let mut terms = vec![leading, half];
    if !random.bits().is_multiple_of(8) {
        terms.push(power(random, (low, half.exponent - 1)));
    }
    while terms.len() + 1 < count {
        let most = if random.bits() & 1 == 1 { high } else { (leading.exponent + 60).min(high) };
        let mut large = power(random, (leading.exponent, most));
        large.significand = u32::try_from(random.bits() % 128).expect("small") * 2 + 1;
        terms.extend([large, large.negated()]);
    }
    if terms.len() < count {
        terms.push(power(random, (low, half.exponent)));
    }
    terms
}

/// Dots of `k` products each, as elements of A, B and C.
fn dots(id: &OperationId, k: usize, count: usize, random: &mut Random) -> [Elements; 3] {
    let range = Range::of(id.a);
    let (mut a, mut b, mut c) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..count {
        let mut terms = terms(k + 1, &range, random);
        for at in (1..terms.len()).rev() {
            terms.swap(at, usize::try_from(random.bits() % (at as u64 + 1)).expect("small"));
        }
        // One time in three, c is below everything, or −0 or +0.
        let mut of_c = id.c.from_f64(terms[k].value());
        if random.bits().is_multiple_of(3) {
            of_c = (random.bits() & 0x8000_0000) | (random.bits() % 3);
        }
        c.push(of_c);
        for term in &terms[..k] {
            let (low, high) = range.factors;
            let of_a = between(random, ((term.exponent - high).max(low), (term.exponent - low).min(high)));
            let one = Term { negative: false, significand: 1, exponent: of_a };
            a.push(id.a.from_f64(one.value()));
            b.push(id.b.from_f64(Term { exponent: term.exponent - of_a, ..*term }.value()));
        }
    }
    [Elements::from_bits(id.a, a), Elements::from_bits(id.b, b), Elements::from_bits(id.c, c)]
}

/// Computes dots alone, and as the diagonal of a matrix whose other elements mix their factors, on every path.
fn check(model: &Model, id: &str, k: usize, turns: usize) {
    let id: OperationId = id.parse().expect("an id");
    let mut random = Random(u64::try_from(k).expect("small"));
    let exact = Evaluator::with_path(model, &id, Path::Exact).expect("an operation");
    let count = 40;
    for _ in 0..turns {
        let [a, b, c] = dots(&id, k, count, &mut random);
        let operands = DotOperands { count, a: &a, b: &b, c: &c, scale_a: None, scale_b: None };
        let of_b = (0..k).flat_map(|at| (0..count).map(move |column| (column, at)));
        let across = Elements::from_bits(id.b, of_b.map(|(column, at)| b.get(column * k + at)));
        let whole_c = Elements::from_bits(id.c, (0..count * count).map(|at| c.get(at % count)));
        let (m, n) = (count, count);
        let matrices = GemmOperands { m, n, k, a: &a, b: &across, c: &whole_c, scale_a: None, scale_b: None };
        let whole = exact.multiply(&matrices, 1).expect("fitting matrices");
        for path in Path::available() {
            let fast = Evaluator::with_path(model, &id, path).expect("an operation");
            let found = fast.multiply(&matrices, 1).expect("fitting matrices");
            let differs = (0..m * n).find(|at| found.get(*at) != whole.get(*at));
            assert!(differs.is_none(), "{}:{id} {path:?}, element {differs:?}", model.name);
            if k == id.shape.sizes().2 {
                let alone = fast.dots(&operands);
                let differs = (0..count).find(|at| alone.get(*at) != whole.get(at * (count + 1)));
                assert!(differs.is_none(), "{}:{id} {path:?}, dot {differs:?}", model.name);
            }
        }
    }
}

#[test]
fn what_remains_of_a_cancelling_sum_is_rounded_once_on_every_path() {
    for (name, id, k) in [
        ("mi100", "mfma.m32n32k8.f32.f16.f16.f32", 4),
        ("mi100", "mfma.m32n32k8.f32.f16.f16.f32", 8),
        ("mi100", "mfma.m32n32k4.f32.bf16.bf16.f32", 2),
        ("mi100", "mfma.m32n32k4.f32.bf16.bf16.f32", 4),
        ("arm", "dot.m1n1k2.f32.bf16.bf16.f32.ebf", 2),
    ] {
        let model = shipped().iter().find(|model| model.name == name).expect("a shipped model");
        check(model, id, k, 15);
    }
}

#[test]
fn what_remains_of_a_long_cancelling_sum_is_rounded_once_on_every_path() {
    let model = Model::parse("long-sums.toml", LONG, None).unwrap_or_else(|error| panic!("{error}"));
    for formats in ["f16.f16", "bf16.bf16"] {
        check(&model, &format!("dot.m4n4k7.f32.{formats}.f32"), 7, 40);
    }
}

#[test]
fn two_values_that_products_cancel_are_rounded_once_on_every_path() {
    let model = Model::parse("long-sums.toml", LONG, None).unwrap_or_else(|error| panic!("{error}"));
    for formats in ["f16.f16", "bf16.bf16"] {
        check(&model, &format!("dot.m4n4k4.f32.{formats}.f32"), 4, 20);
    }
}

/// Computes a matrix of which every element is this dot of powers of two, given as exponents and signs of the factors.
fn check_one(model: &Model, id: &str, factors: &[(i32, i32, bool)], of_c: u64, wanted: u64) {
    let id: OperationId = id.parse().expect("an id");
    let (m, n, k) = (2, 3, factors.len());
    let power = |format: Format, x: i32| format.from_f64(f64::from(x).exp2());
    let a: Vec<u64> = factors.iter().map(|(a, ..)| power(id.a, *a)).collect();
    let b = factors.iter().map(|(_, b, negative)| power(id.b, *b) | u64::from(*negative) << 15);
    let (a, b) = (Elements::from_bits(id.a, a.repeat(m)), b.flat_map(|bits| std::iter::repeat_n(bits, n)));
    let (b, c) = (Elements::from_bits(id.b, b), Elements::from_bits(id.c, [of_c].repeat(m * n)));
    let matrices = GemmOperands { m, n, k, a: &a, b: &b, c: &c, scale_a: None, scale_b: None };
    for path in Path::available() {
        let d = Evaluator::with_path(model, &id, path).expect("an operation").multiply(&matrices, 1);
        let d: Vec<u64> = d.expect("fitting matrices").iter().collect();
        assert_eq!(d, [wanted].repeat(m * n), "{path:?}, c {of_c:#x}");
    }
}

/// 2^30 hides 2^−23 + 2^−47, whose bit after the last place decides together with c, and then cancels.
#[test]
fn a_third_f64_decides_between_two_f32() {
    let model = shipped().iter().find(|model| model.name == "mi100").expect("a shipped model");
    let factors = [(15, 15, false), (-11, -12, false), (-23, -24, false), (15, 15, true)];
    // The last bit of an f32 at 2^−23 is 2^−46.
    for (of_c, wanted) in [(0, 0x3400_0000), (1, 0x3400_0001), (0x8000_0001, 0x3400_0000), (0x0d00_0000, 0x3400_0001)] {
        check_one(model, "mfma.m32n32k8.f32.f16.f16.f32", &factors, of_c, wanted);
    }
}

/// 2^100 hides 2^40, which hides 2^−80. They cancel, and 1 + 2^−24 is rounded up because of the rest.
#[test]
fn a_third_f64_counts_beside_a_second_one_that_is_zero() {
    let model = Model::parse("long-sums.toml", LONG, None).unwrap_or_else(|error| panic!("{error}"));
    let large = [(50, 50, false), (20, 20, false), (-40, -40, false), (20, 20, true), (50, 50, true)];
    let factors = [&large[..], &[(0, 0, false), (-12, -12, false)]].concat();
    check_one(&model, "dot.m4n4k7.f32.bf16.bf16.f32", &factors, 0, 0x3f80_0001);
}

/// 2^180 hides 2^110, which hides 2^40, which hides 2^−40: only that remains.
#[test]
fn what_a_third_f64_hides_is_not_lost() {
    let model = Model::parse("long-sums.toml", LONG, None).unwrap_or_else(|error| panic!("{error}"));
    let up = [(90, 90, false), (55, 55, false), (20, 20, false), (-20, -20, false)];
    let factors = [&up[..], &[(20, 20, true), (55, 55, true), (90, 90, true)]].concat();
    check_one(&model, "dot.m4n4k7.f32.bf16.bf16.f32", &factors, 0, 0x2b80_0000);
}

/// 1 is in the third f64 when the larger numbers have cancelled, and 2^−40 is then added to the first.
#[test]
fn a_third_f64_that_is_the_largest_is_the_result() {
    let model = Model::parse("long-sums.toml", LONG, None).unwrap_or_else(|error| panic!("{error}"));
    let large = [(50, 50, false), (20, 20, false), (0, 0, false), (20, 20, true), (50, 50, true)];
    let factors = [&large[..], &[(-20, -21, false), (-20, -21, false)]].concat();
    check_one(&model, "dot.m4n4k7.f32.bf16.bf16.f32", &factors, 0, 0x3f80_0000);
}
