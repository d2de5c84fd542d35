//! The CPU's own units against their models, bit for bit: NaN payloads and signs of zero included.
//!
//! The long run:
//! `cargo test --release --test silicon -- --ignored --nocapture`.
#![allow(clippy::print_stdout, reason = "a test reports what it ran")]
#![cfg(feature = "cpu")]

use std::sync::Arc;

use mxprobe::gemm::{Accumulation, Algorithm, Block, Method, Products, Scaling, Split, Uniform, Unit, multiply};
use mxprobe_api::{Backend, Device, Elements, Format, Operation, Random, Rounding, TileBatch, execute};
use mxprobe_models::load;
use mxprobe_sim::ModelDevice;

/// A random value of one class: the classes differ in the range of exponents and the length of significands.
fn bits(random: &mut Random, format: Format, class: u64) -> u64 {
    let bits = random.bits() & format.mask();
    let Some(float) = format.as_float() else {
        // Integers: any, or near the ends.
        return if class.is_multiple_of(2) { bits } else { format.largest(bits & 1 == 1) ^ (random.bits() & 3) };
    };
    let fraction_mask = (1u64 << float.fraction_bits) - 1;
    let sign = bits & 1 << (format.bits() - 1);
    let bias = u64::from(float.bias.unsigned_abs());
    let spread = |random: &mut Random, middle: u64, width: u64| middle - width / 2 + random.bits() % width;
    let exponent = match class {
        0 => return bits,
        1 => spread(random, bias, 4),
        2 => spread(random, bias, bias),
        // Products and sums near the lower and the upper end of f32.
        3 => spread(random, bias / 2, 14),
        4 => spread(random, bias + bias / 2, 14),
        5 => spread(random, 8, 16),
        // NaN, infinity, zero and ones.
        6 => {
            let all = [0, 1, fraction_mask, bias << float.fraction_bits, format.infinity(false).unwrap_or(0)];
            let special = all[usize::try_from(random.bits() % 5).expect("below 5")];
            let nan = format.nan().unwrap_or(0) | bits & fraction_mask;
            return sign | if random.bits().is_multiple_of(16) { nan } else { special };
        }
        // Powers of two far apart.
        _ => return sign | spread(random, bias, 40) << float.fraction_bits,
    };
    sign | exponent << float.fraction_bits | bits & fraction_mask
}

fn fill(elements: &mut Elements, random: &mut Random, class: u64) {
    let format = elements.format();
    for at in 0..elements.len() {
        elements.set(at, bits(random, format, class));
    }
}

/// Compares `dots` dots of every operation of the CPU with its model; returns the number of operations.
fn compare(dots: usize) -> usize {
    let found = mxprobe_cpu::CpuBackend::new().discover();
    let mut compared = 0;
    for device in &found.devices {
        for operation in device.operations().values() {
            let model = if operation.id.family == "amx" { "amx" } else { "avx512" };
            let model = ModelDevice::new(load(model).expect("a shipped model"));
            assert!(model.operations().contains_key(&operation.id), "{} has a model", operation.id);
            compare_one(device.as_ref(), &model, operation, dots);
            compared += 1;
        }
    }
    for refusal in &found.refusals {
        println!("not here: {}: {}", refusal.what, refusal.reason);
    }
    compared
}

fn compare_one(device: &dyn Device, model: &ModelDevice, operation: &Operation, dots: usize) {
    let (m, n, k) = operation.id.shape.sizes();
    let tiles = (1usize << 16).div_ceil(m * n);
    let mut random = Random(20_261_120);
    let mut done = 0;
    for round in 0.. {
        if done >= dots {
            break;
        }
        let mut batch = TileBatch::zeros(operation, tiles);
        let class = round % 8;
        fill(&mut batch.a, &mut random, class);
        fill(&mut batch.b, &mut random, class);
        fill(&mut batch.c, &mut random, class);
        let real = execute(device, operation, &batch).expect("the device computes");
        let modelled = execute(model, operation, &batch).expect("the model computes");
        if let Some(at) = (0..real.len()).find(|at| real.get(*at) != modelled.get(*at)) {
            let (tile, row, column) = (at / (m * n), at / n % m, at % n);
            let a: Vec<String> = (0..k).map(|i| operation.id.a.hex(batch.a.get((tile * m + row) * k + i))).collect();
            let b: Vec<String> = (0..k).map(|i| operation.id.b.hex(batch.b.get((tile * k + i) * n + column))).collect();
            let (c, d) = (operation.id.c.hex(batch.c.get(at)), operation.id.d);
            panic!(
                "{} class {class}: a {a:?} b {b:?} c {c}: silicon {}, model {}",
                operation.id,
                d.hex(real.get(at)),
                d.hex(modelled.get(at))
            );
        }
        done += tiles * m * n;
    }
    println!("{}: {done} dots, every bit equal to {}", operation.id, model.info().selector);
}

#[test]
#[cfg_attr(not(dot_units), ignore = "this CPU has neither dot products nor tiles")]
fn the_cpus_units_equal_their_models() {
    let compared = compare(1 << 19);
    assert_ne!(compared, 0);
    println!("{compared} operations of this CPU were compared");
}

/// Every split into words and every accumulation, in products of any size, on the CPU's units and on their models.
#[test]
#[cfg_attr(not(dot_units), ignore = "this CPU has neither dot products nor tiles")]
fn whole_products_on_the_cpus_units_equal_those_on_their_models() {
    let (unit, f32_blocks, f64_blocks) = (
        Accumulation::Unit,
        Accumulation::F32 { block: Block::Products(40) },
        Accumulation::F64 { block: Block::Products(40) },
    );
    let mut algorithms: Vec<Algorithm> = Vec::new();
    for words in 1..=3 {
        for accumulation in [unit, f32_blocks, f64_blocks] {
            let split = Split { words, rounding: Rounding::NearestEven, scaling: Scaling::None, lift_bits: 0 };
            algorithms.push(Algorithm {
                method: Method::Multiword,
                split,
                products: Products::Significant,
                accumulation,
            });
        }
    }
    for method in [Method::Markidis, Method::Ootomo] {
        algorithms.push(Algorithm { method, accumulation: unit, ..algorithms[3] });
    }
    for device in mxprobe_cpu::CpuBackend::new().discover().devices {
        let device: Arc<dyn Device> = Arc::from(device);
        for operation in device.operations().values() {
            let model = load(if operation.id.family == "amx" { "amx" } else { "avx512" }).expect("a shipped model");
            let (here, there) = (
                Unit::new(device.clone(), &operation.id).expect("it has the operation"),
                Unit::of_model(&model, &operation.id).expect("it has the operation"),
            );
            let mut compared = 0;
            for (m, n, k) in [(1, 1, 1), (7, 66, 129), (33, 40, 100), (70, 5, 257)] {
                let mut uniform = Uniform::new(3);
                let (mut a, mut b) = (uniform.matrix(m, k, -0.5, 0.5, true), uniform.matrix(k, n, -0.5, 0.5, true));
                if operation.id.is_integer() {
                    // Integers of either format: 0 to 127.
                    let values = a.values.iter_mut().chain(&mut b.values);
                    values.for_each(|value| *value = (*value * 254.0).abs().round());
                }
                let floats = algorithms.iter().filter(|_| !operation.id.is_integer());
                for algorithm in algorithms.iter().take(1).chain(floats.skip(1)) {
                    let [ours, models] =
                        [&here, &there].map(|unit| multiply(unit, &a, &b, None, algorithm).expect("it multiplies").d);
                    assert_eq!(ours, models, "{} {m}×{n}×{k} {algorithm:?}", operation.id);
                    compared += ours.len();
                }
            }
            println!("{}: {compared} elements of whole products equal those of {}", operation.id, model.name);
        }
    }
}

#[test]
#[ignore = "ten million dots per operation: for release builds"]
fn the_cpus_units_equal_their_models_on_ten_million_dots() {
    println!("{} operations of this CPU were compared", compare(10_000_000));
}
