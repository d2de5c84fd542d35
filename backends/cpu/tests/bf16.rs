//! The bf16 instructions against two models of the specification, bit for bit, including NaN payloads and signs of
//! zeros.
//!
//! Tests of instructions that this CPU lacks are ignored. `MXPROBE_DOTS` sets the number of dots per class of inputs.

mod reference;

use std::time::Duration;

use mxprobe_api::{
    Backend, Device, Drill, Elements, Injection, Operation, Rounding, Subnormals, TileBatch, digest, execute, screen,
};
use mxprobe_cpu::CpuBackend;
use reference::{
    CLASSES, Class, ONE, Random, Rules, SPECIAL_BF16, SPECIAL_F32, draw, fma_in_f64, tdpbf16ps, vdpbf16ps,
};

type Dot = ([u16; 2], [u16; 2], u32);

fn dots() -> usize {
    std::env::var("MXPROBE_DOTS").map_or(50_000, |text| text.parse().expect("MXPROBE_DOTS is a number"))
}

/// Runs `test` on the device that has the instruction.
fn with_instruction(name: &str, test: impl Fn(&dyn Device, &Operation)) {
    let found = CpuBackend::new().discover();
    for device in &found.devices {
        if let Some(operation) = device.operations().values().find(|operation| operation.is_named(name)) {
            return test(device.as_ref(), operation);
        }
    }
    let refusals = found.refusals.iter().chain(found.devices.iter().flat_map(|device| device.refusals()));
    let refusal = refusals.filter(|refusal| refusal.what.to_lowercase().contains(name)).map(|it| it.reason.to_string());
    panic!("{name} is missing: {}", refusal.collect::<Vec<_>>().join("; "));
}

fn results(device: &dyn Device, operation: &Operation, dots: &[Dot]) -> Vec<u32> {
    let mut batch = TileBatch::zeros(operation, dots.len());
    batch.a = Elements::from_bits(operation.id.a, dots.iter().flat_map(|(a, ..)| a.map(u64::from)));
    batch.b = Elements::from_bits(operation.id.b, dots.iter().flat_map(|(_, b, _)| b.map(u64::from)));
    batch.c = Elements::from_bits(operation.id.c, dots.iter().map(|(.., c)| u64::from(*c)));
    let d = execute(device, operation, &batch).expect("the device computes");
    d.iter().map(|bits| u32::try_from(bits).expect("32 bits")).collect()
}

fn assert_vdpbf16ps(device: &dyn Device, operation: &Operation, dots: &[Dot]) {
    for (dot, d) in dots.iter().zip(results(device, operation, dots)) {
        let (a, b, c) = *dot;
        let expected = vdpbf16ps(fma_in_f64, a, b, c);
        assert_eq!(d, expected, "a {a:04x?} b {b:04x?} c {c:08x} gave {d:08x}, expected {expected:08x}");
    }
}

#[test]
fn the_two_models_agree() {
    for class in CLASSES {
        let mut random = Random(1);
        for _ in 0..dots() {
            let (a, b, c) = draw(class, &mut random);
            let exact = vdpbf16ps(|a, b, c| Rules::SPECIFIED.fma(a, b, c), a, b, c);
            let fast = vdpbf16ps(fma_in_f64, a, b, c);
            assert_eq!(exact, fast, "{class:?}: a {a:04x?} b {b:04x?} c {c:08x}: {exact:08x} and {fast:08x}");
        }
    }
}

#[test]
#[cfg_attr(not(avx512_bf16), ignore = "this CPU has no AVX512-BF16")]
fn vdpbf16ps_is_two_fused_multiply_adds_odd_element_first() {
    with_instruction("vdpbf16ps", |device, operation| {
        for class in CLASSES {
            let mut random = Random(42);
            let mut left = dots();
            while left > 0 {
                let now = left.min(1 << 16);
                let dots: Vec<Dot> = (0..now).map(|_| draw(class, &mut random)).collect();
                assert_vdpbf16ps(device, operation, &dots);
                left -= now;
            }
        }
    });
}

/// Every combination of the first `values` special values in the five operands.
fn specials(values: usize) -> impl Iterator<Item = Vec<Dot>> {
    (0..values * values).map(move |outer| {
        let (a1, b1) = (SPECIAL_BF16[outer / values], SPECIAL_BF16[outer % values]);
        let inner = (0..values.pow(3)).map(|inner| {
            let (a0, b0) = (SPECIAL_BF16[inner / values / values], SPECIAL_BF16[inner / values % values]);
            ([a0, a1], [b0, b1], SPECIAL_F32[inner % values])
        });
        inner.collect()
    })
}

#[test]
#[cfg_attr(not(avx512_bf16), ignore = "this CPU has no AVX512-BF16")]
fn vdpbf16ps_treats_specials_as_specified() {
    with_instruction("vdpbf16ps", |device, operation| {
        // The first 16 are zeros, subnormals, infinities, and NaN of three payloads; all 24 take a minute unoptimised.
        let values = if dots() > 1_000_000 { 24 } else { 16 };
        specials(values).for_each(|dots| assert_vdpbf16ps(device, operation, &dots));
    });
}

#[test]
#[ignore = "2^32 dots take minutes"]
fn every_pair_of_bf16_values_is_multiplied_and_added_as_specified() {
    with_instruction("vdpbf16ps", |device, operation| {
        let mut random = Random(3);
        for x in 0..=u16::MAX {
            // As element 0 with random bits in c, and as element 1 with +0 in c.
            let dots: Vec<Dot> = if x % 2 == 0 {
                (0..=u16::MAX).map(|y| ([x, 0], [y, 0], random.u32())).collect()
            } else {
                (0..=u16::MAX).map(|y| ([0, x], [0, y], 0)).collect()
            };
            assert_vdpbf16ps(device, operation, &dots);
        }
    });
}

/// Each rival differs from the unit in one rule, and some class of inputs reveals it.
#[test]
#[cfg_attr(not(avx512_bf16), ignore = "this CPU has no AVX512-BF16")]
fn each_rival_of_the_model_is_refuted_by_the_unit() {
    type Rival = fn([u16; 2], [u16; 2], u32) -> u32;
    let rivals: [(&str, Rival); 9] = [
        ("even element first", |a, b, c| vdpbf16ps(fma_in_f64, [a[1], a[0]], [b[1], b[0]], c)),
        ("products joined before c", |a, b, c| fma_in_f64(c, ONE, vdpbf16ps(fma_in_f64, a, b, 0))),
        ("products rounded before they are added", |a, b, c| with(Rules { fused: false, ..Rules::SPECIFIED }, a, b, c)),
        ("subnormal inputs kept", |a, b, c| with(Rules { daz: false, ..Rules::SPECIFIED }, a, b, c)),
        ("subnormal results kept", |a, b, c| {
            with(Rules { daz: false, subnormals: Subnormals::Keep, ..Rules::SPECIFIED }, a, b, c)
        }),
        ("tiny before rounding", |a, b, c| {
            with(Rules { subnormals: Subnormals::FlushBeforeRounding, ..Rules::SPECIFIED }, a, b, c)
        }),
        ("tiny results flushed to +0", |a, b, c| {
            with(Rules { subnormals: Subnormals::FlushToPositiveZero, ..Rules::SPECIFIED }, a, b, c)
        }),
        ("toward zero", |a, b, c| with(Rules { rounding: Rounding::TowardZero, ..Rules::SPECIFIED }, a, b, c)),
        ("to odd", |a, b, c| with(Rules { rounding: Rounding::ToOdd, ..Rules::SPECIFIED }, a, b, c)),
    ];
    fn with(rules: Rules, a: [u16; 2], b: [u16; 2], c: u32) -> u32 {
        vdpbf16ps(|a, b, c| rules.fma(a, b, c), a, b, c)
    }
    with_instruction("vdpbf16ps", |device, operation| {
        for (name, rival) in rivals {
            let mut most = (0, Class::UniformBits);
            for class in CLASSES {
                let mut random = Random(7);
                let dots: Vec<Dot> = (0..dots().min(100_000)).map(|_| draw(class, &mut random)).collect();
                let given = results(device, operation, &dots);
                let refuted = dots.iter().zip(given).filter(|((a, b, c), d)| rival(*a, *b, *c) != *d).count();
                most = if refuted > most.0 { (refuted, class) } else { most };
            }
            assert!(most.0 > 0, "no class of inputs refutes: {name}");
        }
    });
}

/// A dot of up to 32 products: A, B, c and d.
type Known = ([u16; 32], [u16; 32], u32, u32);

/// The dots of an operation whose results were measured.
fn measured(operation: &str) -> Vec<Known> {
    let lines = include_str!("../../../models/tests/known_answers.txt").lines();
    let of_operation = lines.filter_map(|line| line.strip_prefix(operation)?.strip_prefix(": "));
    let found: Vec<Known> = of_operation.map(|line| known(line).unwrap_or_else(|| panic!("{line}"))).collect();
    assert!(found.len() > 25, "{operation}: {}", found.len());
    found
}

/// Parses `a*b kN:a*b + c = d`, in hex: a product's k is its position in the list unless `kN:` names it.
fn known(line: &str) -> Option<Known> {
    let word = |text: &str| u32::from_str_radix(text, 16).ok();
    let half = |text: &str| u16::from_str_radix(text, 16).ok();
    let (inputs, d) = line.split_once(" = ")?;
    let (products, c) = inputs.split_once(" + ").unwrap_or(("", inputs));
    let (mut a, mut b) = ([0; 32], [0; 32]);
    for (place, product) in products.split_whitespace().enumerate() {
        let named = product.strip_prefix('k').and_then(|rest| rest.split_once(':'));
        let (k, (x, y)) = match named {
            Some((k, product)) => (k.parse().ok()?, product.split_once('*')?),
            None => (place, product.split_once('*')?),
        };
        (a[k], b[k]) = (half(x)?, half(y)?);
    }
    Some((a, b, word(c)?, word(d)?))
}

const TDPBF16PS: &str = "amx amx.m16n16k32.f32.bf16.bf16.f32";
const VDPBF16PS: &str = "avx512 dot.m1n1k2.f32.bf16.bf16.f32";

#[test]
fn the_models_give_the_bits_of_directed_dots_that_were_measured() {
    for (a, b, c, d) in measured(TDPBF16PS) {
        let given = tdpbf16ps(fma_in_f64, |k| a[k], |k| b[k], c);
        assert_eq!(given, d, "the model of TDPBF16PS: {a:04x?} {b:04x?} c {c:08x}");
    }
    for (a, b, c, d) in measured(VDPBF16PS) {
        let given = vdpbf16ps(fma_in_f64, [a[0], a[1]], [b[0], b[1]], c);
        assert_eq!(given, d, "the model of VDPBF16PS: {:04x?} {:04x?} c {c:08x}", &a[..2], &b[..2]);
    }
}

#[test]
#[cfg_attr(not(avx512_bf16), ignore = "this CPU has no AVX512-BF16")]
fn vdpbf16ps_gives_the_bits_of_directed_dots_that_were_measured() {
    with_instruction("vdpbf16ps", |device, operation| {
        for (a, b, c, d) in measured(VDPBF16PS) {
            let given = results(device, operation, &[([a[0], a[1]], [b[0], b[1]], c)])[0];
            assert_eq!(given, d, "{:04x?} {:04x?} c {c:08x} gave {given:08x}", &a[..2], &b[..2]);
        }
    });
}

#[test]
#[cfg_attr(not(amx_bf16), ignore = "this CPU has no AMX-BF16")]
fn tdpbf16ps_gives_the_bits_of_directed_dots_that_were_measured() {
    with_instruction("tdpbf16ps", |device, operation| {
        for (a, b, c, expected) in measured(TDPBF16PS) {
            // The same dot in every row and column.
            let mut batch = TileBatch::zeros(operation, 1);
            batch.a = Elements::from_bits(operation.id.a, (0..16 * 32).map(|at| u64::from(a[at % 32])));
            batch.b = Elements::from_bits(operation.id.b, (0..32 * 16).map(|at| u64::from(b[at / 16])));
            batch.c = Elements::from_bits(operation.id.c, (0..256).map(|_| u64::from(c)));
            let d = execute(device, operation, &batch).expect("the device computes");
            for (at, given) in d.iter().enumerate() {
                assert_eq!(given, u64::from(expected), "{a:04x?} {b:04x?} c {c:08x} gave {given:08x} at {at}");
            }
        }
    });
}

#[test]
#[cfg_attr(not(amx_bf16), ignore = "this CPU has no AMX-BF16")]
fn tdpbf16ps_is_two_chains_joined_before_c() {
    with_instruction("tdpbf16ps", |device, operation| {
        for class in CLASSES {
            let mut random = Random(42);
            let tiles = (dots() / 256).clamp(33, 512);
            let mut batch = TileBatch::zeros(operation, tiles);
            // The 16 · 16 · tiles dots of a batch share rows and columns, which are drawn in pairs of k.
            for at in 0..tiles * 256 {
                let (a, b, c) = draw(class, &mut random);
                let (tile, pair, line) = (at / 256, at / 16 % 16, at % 16);
                for (parity, (a, b)) in a.into_iter().zip(b).enumerate() {
                    let k = 2 * pair + parity;
                    batch.a.set(tile * 512 + line * 32 + k, u64::from(a));
                    batch.b.set(tile * 512 + k * 16 + line, u64::from(b));
                }
                batch.c.set(at, u64::from(c));
            }
            let d = execute(device, operation, &batch).expect("the device computes");
            for (at, given) in d.iter().enumerate() {
                let (tile, row, column) = (at / 256, at / 16 % 16, at % 16);
                let bf16 = |bits| u16::try_from(bits).expect("16 bits");
                let a = |k| bf16(batch.a.get(tile * 512 + row * 32 + k));
                let b = |k| bf16(batch.b.get(tile * 512 + k * 16 + column));
                let c = u32::try_from(batch.c.get(at)).expect("32 bits");
                let expected = tdpbf16ps(fma_in_f64, a, b, c);
                assert_eq!(
                    given,
                    u64::from(expected),
                    "{class:?}, tile {tile} row {row} column {column} gave {given:08x}, expected {expected:08x}"
                );
            }
        }
    });
}

/// Screens an instruction on each core: all are right, and a bit inverted on one of them is found there.
fn is_screened_on_each_core(device: &dyn Device, operation: &Operation) {
    const BLOCKS: usize = 4;
    let mut operands = TileBatch::zeros(operation, BLOCKS * 16);
    let mut random = mxprobe_api::Random(7);
    for elements in [&mut operands.a, &mut operands.b, &mut operands.c] {
        random.fill(elements, mxprobe_api::Random::dense);
    }
    let d = execute(device, operation, &operands).expect("the device computes");
    let digests: Vec<u64> = d.bytes().chunks(d.bytes().len() / BLOCKS).map(digest).collect();
    let units = device.screening().expect("CPUs are screened").units();
    let last = *units.last().expect("a core");
    for inject in [None, Some(Injection { bit: 9, unit: Some(last), ..Injection::default() })] {
        let duration = Duration::ZERO;
        let drill = Drill { operands: &operands, digests: &digests, duration, passes: 3, steps: 1, unit: None, inject };
        let found = screen(device, operation, &drill).expect("it is screened");
        assert_eq!(found.iter().filter_map(|screened| screened.unit).collect::<Vec<_>>(), units);
        for screened in found {
            let is_wrong = inject.is_some() && screened.unit == Some(last);
            assert_eq!(screened.wrong, if is_wrong { screened.blocks } else { 0 }, "{screened:?}");
        }
    }
}

#[test]
#[cfg_attr(not(avx512_bf16), ignore = "this CPU has no AVX512-BF16")]
fn vdpbf16ps_is_screened_on_each_core() {
    with_instruction("vdpbf16ps", is_screened_on_each_core);
}

#[test]
#[cfg_attr(not(amx_bf16), ignore = "this CPU has no AMX-BF16")]
fn tdpbf16ps_is_screened_on_each_core() {
    with_instruction("tdpbf16ps", is_screened_on_each_core);
}
