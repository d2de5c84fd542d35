//! Every fast path against the exact evaluator, bit for bit, on every shipped operation and every class of inputs.
//!
//! `cargo test -p mxprobe-models` runs some thousand dots an operation. The long runs are
//! `cargo test --release -p mxprobe-models --test exact_against_fast -- --ignored --nocapture`.

use std::{collections::BTreeSet, sync::OnceLock};

use mxprobe_api::{Decoded, Elements, Format, GemmOperands, OperationId, TileBatch};
use mxprobe_models::{Basis, Dot, Evaluator, Model, Origin, Path, multiply, shipped};

/// SplitMix64: Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// How the elements of a case are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Inputs {
    /// Any bits, NaN and infinities among them.
    AnyBits,
    /// Any finite value.
    AnyFinite,
    /// Exponents within a few of that of 1.
    Narrow,
    /// Exponents within a few of that of 1; c far larger or far smaller.
    NarrowWithOddC,
    /// Half of the elements subnormal, the rest near the smallest normal value.
    Subnormal,
    /// Powers of two of either sign.
    PowersOfTwo,
    /// The largest magnitude, all products of one sign.
    Largest,
    /// Significands of ones and nothing else, exponents equal, one sign.
    Ones,
    /// Products in pairs that cancel, but for an odd one.
    Cancelling,
    /// Zeros of both signs, and now and then something else.
    Zeros,
    /// Finite values with a NaN or an infinity here and there.
    Specials,
    /// Large values, c near the largest.
    NearOverflow,
    /// Small values, c near the smallest.
    NearUnderflow,
}

const INPUTS: [Inputs; 13] = [
    Inputs::AnyBits,
    Inputs::AnyFinite,
    Inputs::Narrow,
    Inputs::NarrowWithOddC,
    Inputs::Subnormal,
    Inputs::PowersOfTwo,
    Inputs::Largest,
    Inputs::Ones,
    Inputs::Cancelling,
    Inputs::Zeros,
    Inputs::Specials,
    Inputs::NearOverflow,
    Inputs::NearUnderflow,
];

fn is_finite(format: Format, bits: u64) -> bool {
    matches!(format.decode(bits), Decoded::Zero { .. } | Decoded::Finite { .. })
}

fn any_finite(format: Format, random: &mut Random) -> u64 {
    loop {
        let bits = random.next() & format.mask();
        if is_finite(format, bits) {
            return bits;
        }
    }
}

/// A value with that exponent field, clamped to the finite ones, and any fraction and sign.
fn with_exponent(format: Format, exponent: i64, random: &mut Random) -> u64 {
    let Some(encoding) = format.as_float() else { return random.next() & format.mask() };
    let top = (1i64 << encoding.exponent_bits) - 1;
    let field = (exponent + i64::from(encoding.bias)).clamp(0, top);
    let fraction = random.next() & ((1 << encoding.fraction_bits) - 1);
    let sign = random.below(2) << (encoding.exponent_bits + encoding.fraction_bits);
    let bits = (sign | (field.cast_unsigned() << encoding.fraction_bits) | fraction) << encoding.unread_bits;
    let bits = bits | (random.next() & ((1 << encoding.unread_bits) - 1));
    let bits = bits & format.mask();
    if is_finite(format, bits) { bits } else { format.largest(random.below(2) == 1) }
}

/// The exponents of the smallest normal and of the largest value.
fn range(format: Format) -> (i64, i64) {
    let Some(encoding) = format.as_float() else { return (0, 0) };
    let Decoded::Finite { exponent, .. } = format.decode(format.largest(false)) else { unreachable!("finite") };
    (i64::from(encoding.min_exponent()), i64::from(exponent))
}

/// One element of a factor.
fn factor(format: Format, inputs: Inputs, random: &mut Random) -> u64 {
    let (low, high) = range(format);
    let spread = |random: &mut Random, width: u64| random.below(width).cast_signed();
    let bits = match inputs {
        Inputs::AnyBits => random.next() & format.mask(),
        Inputs::AnyFinite | Inputs::Cancelling => any_finite(format, random),
        Inputs::Narrow | Inputs::NarrowWithOddC => {
            let at = spread(random, 7) - 4;
            with_exponent(format, at, random)
        }
        Inputs::Subnormal => {
            let at = if random.below(2) == 0 { low - 1 } else { low + spread(random, 4) };
            with_exponent(format, at, random)
        }
        Inputs::PowersOfTwo => {
            let at = low + spread(random, (high - low + 1).unsigned_abs());
            let bits = with_exponent(format, at, random);
            let encoding = format.as_float();
            encoding.map_or(bits, |encoding| bits & !((1 << (encoding.fraction_bits + encoding.unread_bits)) - 1))
        }
        Inputs::Largest => format.largest(false),
        Inputs::Ones => format.as_float().map_or(format.mask() >> 1, |encoding| {
            let one = format.one() | ((1 << encoding.fraction_bits) - 1) << encoding.unread_bits;
            if is_finite(format, one) { one } else { format.largest(false) }
        }),
        Inputs::Zeros => match random.below(12) {
            0 => any_finite(format, random),
            _ => (random.below(2) << (format.bits() - 1)) & format.mask(),
        },
        Inputs::Specials => {
            let bits = if random.below(12) == 0 { random.next() & format.mask() } else { any_finite(format, random) };
            let infinity = format.infinity(random.below(2) == 1).or(format.nan()).unwrap_or(bits);
            if random.below(24) == 0 { infinity } else { bits }
        }
        Inputs::NearOverflow => {
            let at = high - spread(random, 3);
            with_exponent(format, at, random)
        }
        Inputs::NearUnderflow => {
            let at = (low / 2) - spread(random, 20);
            with_exponent(format, at, random)
        }
    };
    bits & format.mask()
}

/// One element of C.
fn addend(format: Format, inputs: Inputs, random: &mut Random) -> u64 {
    let (low, high) = range(format);
    match inputs {
        Inputs::NarrowWithOddC => {
            let at = random.below(90).cast_signed() - 45;
            with_exponent(format, at, random)
        }
        Inputs::Largest | Inputs::Ones => match random.below(4) {
            0 => 0,
            1 => with_exponent(format, random.below(34).cast_signed(), random),
            2 => format.largest(random.below(2) == 1),
            _ => factor(format, Inputs::Ones, random),
        },
        Inputs::Cancelling => match random.below(3) {
            0 => 0,
            1 => with_exponent(format, random.below(40).cast_signed() - 20, random),
            _ => any_finite(format, random),
        },
        Inputs::NearOverflow => with_exponent(format, high - random.below(3).cast_signed(), random),
        Inputs::NearUnderflow => with_exponent(format, low + random.below(30).cast_signed() - 1, random),
        inputs => factor(format, inputs, random),
    }
}

struct Case {
    m: usize,
    n: usize,
    k: usize,
    a: Elements,
    b: Elements,
    c: Elements,
    scales: Option<(Elements, Elements)>,
}

impl Case {
    fn draw(id: &OperationId, (m, n, k): (usize, usize, usize), inputs: Inputs, random: &mut Random) -> Self {
        let mut a = Elements::from_bits(id.a, (0..m * k).map(|_| factor(id.a, inputs, random)));
        let mut b = Elements::from_bits(id.b, (0..k * n).map(|_| factor(id.b, inputs, random)));
        if inputs == Inputs::Cancelling {
            // The pairs are at k and k + distance, so that they meet in one block or in two.
            let distance = 1 << random.below(3);
            for at in 0..k {
                if at & distance == 0 && at + distance < k && random.below(8) != 0 {
                    for row in 0..m {
                        let bits = a.get(row * k + at);
                        let sign = 1 << (id.a.bits() - 1);
                        a.set(row * k + at + distance, if id.a.is_integer() { bits } else { bits ^ sign });
                    }
                    for column in 0..n {
                        b.set((at + distance) * n + column, b.get(at * n + column));
                    }
                }
            }
        }
        let c = Elements::from_bits(id.c, (0..m * n).map(|_| addend(id.c, inputs, random)));
        let scales = id.block_scale().map(|scale| {
            let blocks = k.div_ceil(scale.block);
            let mut draw = |len: usize| {
                let inputs = if inputs == Inputs::Largest { Inputs::Narrow } else { inputs };
                Elements::from_bits(scale.format, (0..len).map(|_| factor(scale.format, inputs, random)))
            };
            (draw(m * blocks), draw(blocks * n))
        });
        Self { m, n, k, a, b, c, scales }
    }

    fn matrices(&self) -> GemmOperands<'_> {
        GemmOperands {
            m: self.m,
            n: self.n,
            k: self.k,
            a: &self.a,
            b: &self.b,
            c: &self.c,
            scale_a: self.scales.as_ref().map(|scales| &scales.0),
            scale_b: self.scales.as_ref().map(|scales| &scales.1),
        }
    }

    /// The operands of one element of D, for a person.
    fn describe(&self, at: usize) -> String {
        let (row, column) = (at / self.n, at % self.n);
        let hex = |of: &Elements, at: usize| of.format().hex(of.get(at));
        let a: Vec<String> = (0..self.k).map(|k| hex(&self.a, row * self.k + k)).collect();
        let b: Vec<String> = (0..self.k).map(|k| hex(&self.b, k * self.n + column)).collect();
        let scales = self.scales.as_ref().map_or(String::new(), |(of_a, of_b)| {
            let blocks = of_b.len() / self.n;
            let a: Vec<String> = (0..blocks).map(|k| hex(of_a, row * blocks + k)).collect();
            let b: Vec<String> = (0..blocks).map(|k| hex(of_b, k * self.n + column)).collect();
            format!("; scales {} and {}", a.join(" "), b.join(" "))
        });
        format!("a {}; b {}; c {}{scales}", a.join(" "), b.join(" "), hex(&self.c, at))
    }
}

fn compare(reference: &Evaluator, fast: &Evaluator, case: &Case, threads: usize, what: &str) {
    let wanted = reference.multiply(&case.matrices(), 1).unwrap();
    let got = fast.multiply(&case.matrices(), threads).unwrap();
    let format = wanted.format();
    if let Some(at) = (0..wanted.len()).find(|at| wanted.get(*at) != got.get(*at)) {
        panic!(
            "{what} {:?}: {} where {:?} gives {}: {}",
            fast.path(),
            format.hex(got.get(at)),
            reference.path(),
            format.hex(wanted.get(at)),
            case.describe(at)
        );
    }
}

/// Every operation whose arithmetic differs from those before it, with its model.
fn distinct_operations() -> Vec<(&'static Model, OperationId)> {
    static FOUND: OnceLock<Vec<(&'static Model, OperationId)>> = OnceLock::new();
    FOUND.get_or_init(find_distinct_operations).clone()
}

fn find_distinct_operations() -> Vec<(&'static Model, OperationId)> {
    let mut seen = BTreeSet::new();
    let mut operations = Vec::new();
    for model in shipped() {
        for id in model.operations.keys() {
            let (unit, plan) = model.plan(id).unwrap();
            // What a node computes, without names and sources.
            let nodes: Vec<String> = plan
                .nodes
                .iter()
                .map(|node| {
                    let mut adder = model.adders[node.adder].clone();
                    adder.name.clear();
                    adder.provenance.exceptions.clear();
                    adder.provenance.origin = Origin { basis: Basis::Assumed, source: String::new() };
                    format!("{adder:?} {:?}", node.terms)
                })
                .collect();
            let formats = [id.a, id.b, id.c, id.d].map(Format::name).join(" ");
            let key = format!("{formats} {nodes:?} {:?} {:?}", unit.flush, id.block_scale());
            if seen.insert(key) {
                operations.push((model, id.clone()));
            }
        }
    }
    operations
}

fn fast_paths() -> Vec<Path> {
    Path::available().into_iter().filter(|path| *path != Path::Exact).collect()
}

#[test]
#[allow(clippy::print_stdout)]
fn every_fast_path_returns_the_bits_of_the_exact_evaluator() {
    let mut random = Random(1);
    let mut dots = 0;
    for (model, id) in distinct_operations() {
        let reference = Evaluator::with_path(model, &id, Path::Exact).unwrap();
        let fast: Vec<_> =
            fast_paths().into_iter().map(|path| Evaluator::with_path(model, &id, path).unwrap()).collect();
        let step = id.shape.sizes().2;
        for (turn, inputs) in INPUTS.into_iter().enumerate() {
            // Narrow panels, and now and then a wide one and a bit. Two operations one after another where d can be c, the second one cut short.
            let k = if id.c == id.d && step <= 16 { 2 * step - 1 } else { step };
            let (m, n) = if (turn + dots) % 4 == 0 { (1, 67) } else { (3, 1 + 300 / k) };
            let case = Case::draw(&id, (m, n, k), inputs, &mut random);
            dots += case.m * case.n;
            let wanted = reference.multiply(&case.matrices(), 1).unwrap();
            for fast in &fast {
                let got = fast.multiply(&case.matrices(), 1).unwrap();
                if let Some(at) = (0..wanted.len()).find(|at| wanted.get(*at) != got.get(*at)) {
                    panic!(
                        "{}:{id} {inputs:?} {:?}: {} where exact gives {}: {}",
                        model.name,
                        fast.path(),
                        id.d.hex(got.get(at)),
                        id.d.hex(wanted.get(at)),
                        case.describe(at)
                    );
                }
            }
        }
    }
    println!("{dots} dots of {} operations", distinct_operations().len());
    assert!(dots > 100_000, "{dots}");
}

#[test]
fn threads_and_shapes_do_not_change_the_bits() {
    let mut random = Random(2);
    for (model, id) in distinct_operations().into_iter().step_by(7) {
        let reference = Evaluator::with_path(model, &id, Path::Scalar).unwrap();
        let fast = Evaluator::new(model, &id).unwrap();
        let step = id.shape.sizes().2;
        for (m, n, k) in
            [(1, 1, 1), (2, 65, step), (7, 130, 2 * step + 1), (65, 3, step), (3, 2, 0), (0, 4, 2), (4, 0, 2)]
        {
            let k = if id.c == id.d { k } else { k.min(step) };
            let case = Case::draw(&id, (m, n, k), Inputs::Narrow, &mut random);
            for threads in [0, 1, 2, 5] {
                compare(&reference, &fast, &case, threads, &format!("{}:{id} {m}×{n}×{k}", model.name));
            }
        }
    }
}

/// Operations of one kind of arithmetic.
struct Family {
    name: &'static str,
    operations: &'static [(&'static str, &'static str)],
}

const FAMILIES: [Family; 8] = [
    Family {
        name: "fused chains of f16, bf16 and tf32",
        operations: &[
            ("v100", "mma.m8n8k4.f32.f16.f16.f32"),
            ("v100", "mma.m8n8k4.f16.f16.f16.f16"),
            ("a100", "mma.m16n8k8.f32.f16.f16.f32"),
            ("a100", "mma.m16n8k8.f16.f16.f16.f16"),
            ("a100", "mma.m16n8k8.f32.bf16.bf16.f32"),
            ("a100", "mma.m16n8k4.f32.tf32.tf32.f32"),
            ("h100", "mma.m16n8k16.f32.f16.f16.f32"),
            ("h100", "mma.m16n8k16.f16.f16.f16.f16"),
            ("h100", "mma.m16n8k16.f32.bf16.bf16.f32"),
            ("h100", "mma.m16n8k8.f32.tf32.tf32.f32"),
        ],
    },
    Family {
        name: "fused chains of fp8 and smaller",
        operations: &[
            ("l40s", "mma.m16n8k16.f32.e4m3.e5m2.f32"),
            ("h100", "mma.m16n8k16.f32.e4m3.e4m3.f32"),
            ("h100", "mma.m16n8k16.f16.e5m2.e4m3.f16"),
            ("h100", "wgmma.m64n8k32.f32.e5m2.e5m2.f32"),
            ("h100", "wgmma.m64n8k32.f16.e4m3.e5m2.f16"),
            ("rtx5090", "mma.m16n8k32.f32.e3m2.e2m1.f32"),
            ("rtx5090", "mma.m16n8k32.f16.e4m3.e2m3.f16"),
        ],
    },
    Family {
        name: "fused multiply-adds and rounded trees",
        operations: &[
            ("fma-chain", "dot.m1n1k16.f32.f32.f32.f32"),
            ("fma-chain", "dot.m1n1k16.f32.f16.f16.f32"),
            ("a100", "mma.m8n8k4.f64.f64.f64.f64"),
            ("a100", "mma.m8n8k4.f64.f64.f64.f64.rz"),
            ("a100", "mma.m8n8k4.f32.f16.f16.f32"),
            ("amx", "amx.m16n16k32.f32.bf16.bf16.f32"),
            ("avx512", "dot.m1n1k2.f32.bf16.bf16.f32"),
            ("mi210", "mfma.m32n32k8.f32.f16.f16.f32"),
            ("llvmpipe", "coopmat.m8n8k8.f16.f16.f16.f16"),
            ("llvmpipe", "coopmat.m8n8k8.f32.f16.f16.f32"),
            ("arm", "bfmmla.m2n2k4.f32.bf16.bf16.f32"),
        ],
    },
    Family {
        name: "RDNA",
        operations: &[
            ("rdna3", "wmma.m16n16k16.f32.f16.f16.f32"),
            ("rdna3", "wmma.m16n16k16.f32.bf16.bf16.f32"),
            ("rdna3", "wmma.m16n16k16.f16.f16.f16.f16"),
            ("rdna3", "wmma.m16n16k16.bf16.bf16.bf16.bf16"),
            ("rdna4", "wmma.m16n16k16.f32.f16.f16.f32.wave64"),
            ("rdna4", "wmma.m16n16k16.f32.bf16.bf16.f32.wave32"),
            ("rdna4", "wmma.m16n16k16.f16.f16.f16.f16.wave32"),
            ("rdna4", "wmma.m16n16k16.f32.e4m3.e5m2.f32.wave64"),
        ],
    },
    Family {
        name: "CDNA3",
        operations: &[
            ("mi300x", "mfma.m32n32k8.f32.f16.f16.f32"),
            ("mi300x", "mfma.m32n32k8.f32.bf16.bf16.f32"),
            ("mi300x", "mfma.m32n32k4.f32.xf32.xf32.f32"),
            ("mi300x", "mfma.m32n32k16.f32.e4m3fnuz.e5m2fnuz.f32"),
        ],
    },
    Family {
        name: "exact sums, rounded once",
        operations: &[
            ("mi100", "mfma.m32n32k8.f32.f16.f16.f32"),
            ("mi100", "mfma.m32n32k4.f32.bf16.bf16.f32"),
            ("arm", "dot.m1n1k2.f32.bf16.bf16.f32.ebf"),
            ("arm", "dot.m1n1k2.f32.bf16.bf16.f32.ebf.fz"),
        ],
    },
    Family {
        name: "block scales",
        operations: &[
            ("rtx5090", "mma.m16n8k32.f32.e4m3.e5m2.f32.block32.ue8m0"),
            ("rtx5090", "mma.m16n8k64.f32.e2m1.e2m1.f32.block32.ue8m0"),
            ("rtx5090", "mma.m16n8k64.f32.e2m1.e2m1.f32.block16.ue4m3"),
        ],
    },
    Family {
        name: "integers",
        operations: &[
            ("h100", "mma.m16n8k32.s32.s8.u8.s32"),
            ("h100", "mma.m16n8k32.s32.u8.s8.s32.satfinite"),
            ("avx512", "dot.m1n1k2.s32.s16.s16.s32"),
            ("avx512", "dot.m1n1k2.s32.s16.s16.s32.satfinite"),
            ("arm", "ummla.m2n2k8.u32.u8.u8.u32"),
        ],
    },
];

impl Family {
    /// Compares two paths on `dots` dots, shared by all operations and classes of inputs, and says how many it were.
    fn compare(&self, reference: Path, path: Path, dots: usize, seed: u64) -> String {
        let mut pairs = Vec::new();
        for (name, id) in self.operations {
            let model = shipped().iter().find(|model| model.name == *name).expect("a shipped model");
            let id: OperationId = id.parse().unwrap();
            let reference = Evaluator::with_path(model, &id, reference).unwrap_or_else(|error| panic!("{error}"));
            let fast = Evaluator::with_path(model, &id, path).unwrap();
            if fast.path() != reference.path() {
                pairs.push((name, id, reference, fast));
            }
        }
        if pairs.is_empty() {
            return format!("{}: no {path:?} beside {reference:?}", self.name);
        }
        let mut random = Random(seed);
        let mut done = 0;
        let mut products = 0;
        while done < dots {
            for (name, id, reference, fast) in &pairs {
                for inputs in INPUTS {
                    let step = id.shape.sizes().2;
                    let side = if dots > 1_000_000 { 192 } else { 8 };
                    let case = Case::draw(id, (side, side, step), inputs, &mut random);
                    compare(reference, fast, &case, 2, &format!("{name}:{id} {inputs:?}"));
                    done += case.m * case.n;
                    products += case.m * case.n * case.k;
                }
            }
        }
        format!(
            "{}: {done} dots, {products} products, {} operations: {path:?} equal to {reference:?}",
            self.name,
            pairs.len()
        )
    }
}

#[test]
#[ignore = "takes ten minutes in release; run it with --nocapture for the counts"]
#[allow(clippy::print_stdout)]
fn ten_million_dots_of_every_family_agree_with_the_exact_evaluator() {
    for family in &FAMILIES {
        println!("{}", family.compare(Path::Exact, Path::Scalar, 10_000_000, 10));
    }
}

#[test]
#[ignore = "takes ten minutes in release; run it with --nocapture for the counts"]
#[allow(clippy::print_stdout)]
fn a_hundred_million_dots_of_every_family_agree_with_one_dot_at_a_time() {
    let lanes: Vec<Path> = fast_paths().into_iter().filter(|path| *path > Path::Scalar).collect();
    for family in &FAMILIES {
        for (index, path) in lanes.iter().enumerate() {
            // The fastest path in full, the others for a tenth.
            let dots = if index + 1 == lanes.len() { 100_000_000 } else { 10_000_000 };
            println!("{}", family.compare(Path::Scalar, *path, dots, 11));
        }
    }
}

/// The exact evaluator itself, which takes a minute or more a family: `MXPROBE_FAMILY` picks those whose name holds it.
#[test]
#[ignore = "takes twenty minutes in release; run it with --nocapture for the counts"]
#[allow(clippy::print_stdout)]
fn a_hundred_million_dots_of_every_family_agree_with_the_exact_evaluator() {
    let wanted = std::env::var("MXPROBE_FAMILY").unwrap_or_default();
    let fastest = fast_paths().into_iter().max().unwrap_or(Path::Scalar);
    for family in FAMILIES.iter().filter(|family| family.name.contains(&wanted)) {
        println!("{}", family.compare(Path::Exact, fastest, 100_000_000, 12));
    }
}

#[test]
fn the_operations_of_the_long_run_exist() {
    for family in &FAMILIES {
        let counts = family.compare(Path::Exact, Path::Scalar, 1, 13);
        assert!(counts.contains(&format!("{} operations", family.operations.len())), "{counts}");
    }
}

#[test]
fn sixteen_largest_products_and_c_do_not_wrap() {
    // 16 · (2 − 2^−10)² · 2^25 is just below 2^31, and c takes the sum above it.
    let model = shipped().iter().find(|model| model.name == "h100").expect("a shipped model");
    let id: OperationId = "mma.m16n8k16.f32.f16.f16.f32".parse().unwrap();
    let (m, n, k) = (3, 70, 16);
    let a = Elements::from_bits(Format::F16, (0..m * k).map(|_| 0x3fff));
    // 65.93653869628906, an f32.
    for (b, c, d) in [(0x3fff, 0x3fff_e000_u64, 65.936_54_f32), (0xbfff, 0xbfff_e000, -65.936_54)] {
        let b = Elements::from_bits(Format::F16, (0..k * n).map(|_| b));
        let c = Elements::from_bits(Format::F32, (0..m * n).map(|_| c));
        let matrices = GemmOperands { m, n, k, a: &a, b: &b, c: &c, scale_a: None, scale_b: None };
        for path in Path::available() {
            let got = Evaluator::with_path(model, &id, path).unwrap().multiply(&matrices, 1).unwrap();
            assert!(got.iter().all(|bits| bits == u64::from(d.to_bits())), "{path:?}: {:#x}", got.get(0));
        }
    }
}

#[test]
fn tiles_are_the_same_on_every_path() {
    let mut random = Random(3);
    for (model, id) in distinct_operations().into_iter().step_by(11) {
        let operation = &model.operations[&id];
        let (m, n, k) = id.shape.sizes();
        // Two and a bit of what a thread takes at a time, but for the largest shapes.
        let tiles = (40_000 / (m * n * k)).clamp(1, 5);
        let mut batch = TileBatch::zeros(operation, tiles);
        let inputs = INPUTS[(batch.a.len() + batch.c.len() + k) % INPUTS.len()];
        for index in 0..batch.a.len() {
            batch.a.set(index, factor(id.a, inputs, &mut random));
        }
        for index in 0..batch.b.len() {
            batch.b.set(index, factor(id.b, inputs, &mut random));
        }
        for index in 0..batch.c.len() {
            batch.c.set(index, addend(id.c, inputs, &mut random));
        }
        let scale = id.block_scale().map(|scale| scale.format);
        for scales in [&mut batch.scale_a, &mut batch.scale_b].into_iter().flatten() {
            for index in 0..scales.len() {
                scales.set(index, factor(scale.expect("scales"), Inputs::Narrow, &mut random));
            }
        }
        let tiles_by = |path| Evaluator::with_path(model, &id, path).unwrap().tiles(&batch, 2);
        let wanted = tiles_by(Path::Scalar);
        assert_eq!(wanted, tiles_by(Path::Avx512), "{}:{id} {inputs:?}", model.name);
        if m * n * k * tiles <= 5000 {
            assert_eq!(wanted, tiles_by(Path::Exact), "{}:{id} {inputs:?}", model.name);
        }
    }
}

#[test]
fn one_dot_is_what_a_matrix_holds() {
    let mut random = Random(4);
    for (model, id) in distinct_operations().into_iter().step_by(5) {
        let fast = Evaluator::new(model, &id).unwrap();
        let case = Case::draw(&id, (1, 1, id.shape.sizes().2), Inputs::AnyBits, &mut random);
        let bits = |of: &Elements| of.iter().collect::<Vec<_>>();
        let scales = case.scales.as_ref().map(|(a, b)| (bits(a), bits(b)));
        let scales = scales.as_ref().map(|(a, b)| (&a[..], &b[..]));
        let dot = Dot { a: &bits(&case.a), b: &bits(&case.b), c: case.c.get(0), scales };
        assert_eq!(fast.dot(dot).unwrap(), fast.multiply(&case.matrices(), 1).unwrap().get(0), "{}:{id}", model.name);
    }
}

#[test]
fn what_does_not_fit_is_refused_with_both_numbers() {
    let model = shipped().iter().find(|model| model.name == "h100").expect("a shipped model");
    let id: OperationId = "mma.m16n8k16.f32.f16.f16.f32".parse().unwrap();
    let (a, b, c) =
        (Elements::zeros(Format::F16, 6), Elements::zeros(Format::F16, 12), Elements::zeros(Format::F32, 8));
    let matrices = GemmOperands { m: 2, n: 4, k: 3, a: &a, b: &b, c: &c, scale_a: None, scale_b: None };
    assert!(multiply(model, &id, &matrices, 1).is_ok());
    for (matrices, part) in [
        (GemmOperands { m: 3, ..matrices }, "6 elements where 3×3"),
        (GemmOperands { c: &a, ..matrices }, "c holds f16"),
        (GemmOperands { scale_a: Some(&a), ..matrices }, "takes no block scales"),
    ] {
        let error = multiply(model, &id, &matrices, 1).unwrap_err();
        assert!(error.is_invalid() && error.to_string().contains(part), "{error}");
    }
    let model = shipped().iter().find(|model| model.name == "v100").expect("a shipped model");
    let id: OperationId = "mma.m8n8k4.f32.f16.f16.f16".parse().unwrap();
    let (a, b, c) = (Elements::zeros(Format::F16, 5), Elements::zeros(Format::F16, 5), Elements::zeros(Format::F16, 1));
    let matrices = GemmOperands { m: 1, n: 1, k: 5, a: &a, b: &b, c: &c, scale_a: None, scale_b: None };
    let error = multiply(model, &id, &matrices, 1).unwrap_err();
    assert!(error.to_string().contains("cannot be the next one's c"), "{error}");
}

#[test]
fn a_negative_c_whose_bits_are_all_cut_is_positive_zero_on_every_path() {
    let id: OperationId = "mma.m16n8k16.f32.e5m2.e5m2.f32".parse().unwrap();
    let model = mxprobe_models::load("l40s").unwrap();
    let (m, n, k) = id.shape.sizes();
    let (a, b) = (Elements::zeros(id.a, m * k), Elements::zeros(id.b, k * n));
    let c = Elements::from_bits(id.c, (0..m * n).map(|_| 0x8000_0100));
    let matrices = GemmOperands { m, n, k, a: &a, b: &b, c: &c, scale_a: None, scale_b: None };
    for path in Path::available() {
        let d = Evaluator::with_path(&model, &id, path).unwrap().multiply(&matrices, 1).unwrap();
        assert!(d.iter().all(|bits| bits == 0), "{path:?} gives {:#x}", d.get(0));
    }
}
