//! Products per second of every path on one operation of each family: the table in `docs/performance.md`.
//!
//! `cargo run --release -p mxprobe-models --example throughput [-- WORD [SIDE [INPUTS]]]`: WORD selects the rows that
//! contain it, SIDE makes matrices in lanes SIDE×SIDE instead of 128×512×512 (0 keeps that size), and INPUTS is `any`
//! for arbitrary bits or `nan` for a NaN in every row of A.
#![allow(clippy::print_stdout, clippy::cast_precision_loss)]

use std::time::Instant;

use mxprobe_api::{Elements, Format, GemmOperands, OperationId, Random};
use mxprobe_models::{Evaluator, Path, load};

const OPERATIONS: [(&str, &str); 26] = [
    ("v100", "mma.m8n8k4.f32.f16.f16.f32"),
    ("a100", "mma.m16n8k16.f32.f16.f16.f32"),
    ("a100", "mma.m16n8k16.f16.f16.f16.f16"),
    ("a100", "mma.m16n8k16.f32.bf16.bf16.f32"),
    ("a100", "mma.m16n8k8.f32.tf32.tf32.f32"),
    ("h100", "mma.m16n8k16.f32.f16.f16.f32"),
    ("h100", "mma.m16n8k16.f16.f16.f16.f16"),
    ("h100", "mma.m16n8k16.f32.bf16.bf16.f32"),
    ("h100", "mma.m16n8k8.f32.tf32.tf32.f32"),
    ("h100", "wgmma.m64n8k32.f32.e4m3.e4m3.f32"),
    ("h100", "mma.m16n8k32.f32.e4m3.e4m3.f32"),
    ("rtx5090", "mma.m16n8k32.f32.e4m3.e4m3.f32"),
    ("rtx5090", "mma.m16n8k32.f32.e4m3.e4m3.f32.block32.ue8m0"),
    ("rtx5090", "mma.m16n8k64.f32.e2m1.e2m1.f32.block16.ue4m3"),
    ("h100", "mma.m8n8k4.f64.f64.f64.f64"),
    ("h100", "mma.m16n8k32.s32.s8.s8.s32"),
    ("h100", "mma.m16n8k32.s32.s8.s8.s32.satfinite"),
    ("amx", "amx.m16n16k32.f32.bf16.bf16.f32"),
    ("mi100", "mfma.m32n32k8.f32.f16.f16.f32"),
    ("mi210", "mfma.m32n32k8.f32.f16.f16.f32"),
    ("mi300x", "mfma.m32n32k8.f32.f16.f16.f32"),
    ("mi300x", "mfma.m32n32k16.f32.e4m3fnuz.e4m3fnuz.f32"),
    ("rdna3", "wmma.m16n16k16.f32.f16.f16.f32"),
    ("rdna4", "wmma.m16n16k16.f32.f16.f16.f32.wave64"),
    ("fma-chain", "dot.m1n1k16.f32.f32.f32.f32"),
    ("arm", "bfmmla.m2n2k4.f32.bf16.bf16.f32"),
];

/// An approximately standard normal value: the sum of twelve uniform values.
fn normal(random: &mut Random) -> f64 {
    (0..12).map(|_| (random.bits() >> 11) as f64 / 9_007_199_254_740_992.0).sum::<f64>() - 6.0
}

fn draw(format: Format, len: usize, inputs: &str, random: &mut Random) -> Elements {
    let any = format.is_integer() || inputs == "any";
    Elements::from_bits(format, (0..len).map(|_| if any { random.bits() } else { format.from_f64(normal(random)) }))
}

fn main() {
    let word = std::env::args().nth(1).unwrap_or_default();
    let side: Option<usize> = std::env::args().nth(2).and_then(|side| side.parse().ok()).filter(|side| *side > 0);
    let inputs = std::env::args().nth(3).unwrap_or_default();
    println!("{:<58} {:>8} {:>7} {:>9} {:>9}", "operation", "path", "threads", "best", "median");
    for (model, id) in OPERATIONS {
        if !format!("{model}:{id}").contains(&word) {
            continue;
        }
        let loaded = load(model).expect("a shipped model");
        let id: OperationId = id.parse().expect("an id");
        if loaded.plan(&id).is_none() {
            let known: Vec<String> = loaded.operations.keys().map(ToString::to_string).collect();
            println!("{model}:{id} is not there, but {}", known.join(" "));
            continue;
        }
        let mut random = Random(7);
        let (m, n, k) = side.map_or((128, 512, 512), |side| (side, side, side));
        let (mut a, b) = (draw(id.a, m * k, &inputs, &mut random), draw(id.b, k * n, &inputs, &mut random));
        let c = draw(id.c, m * n, &inputs, &mut random);
        if let ("nan", Some(nan)) = (inputs.as_str(), id.a.nan()) {
            for row in 0..m {
                a.set(row * k + row * 37 % k, nan);
            }
        }
        let scales = id.block_scale().map(|scale| {
            let blocks = k.div_ceil(scale.block);
            let mut of = |len| {
                let near_one = |random: &mut Random| scale.format.one() + random.bits() % 4;
                Elements::from_bits(scale.format, (0..len).map(|_| near_one(&mut random)))
            };
            (of(m * blocks), of(blocks * n))
        });
        for path in Path::available() {
            let evaluator = Evaluator::with_path(&loaded, &id, path).expect("an operation of the model");
            if evaluator.path() != path {
                continue;
            }
            // Fewer rows if the path is slow, so that one run takes a few milliseconds.
            let m = match path {
                Path::Exact => 1,
                Path::Scalar => 16,
                _ => m,
            };
            let whole_n = n;
            let n = if path == Path::Exact { 64 } else { n };
            let cut = |of: &Elements, len: usize| Elements::from_bits(of.format(), of.iter().take(len));
            let (a, b, c) = (cut(&a, m * k), cut(&b, k * n), cut(&c, m * n));
            let scales = scales.as_ref().map(|(of_a, of_b)| {
                let blocks = of_b.len() / whole_n;
                (cut(of_a, m * blocks), cut(of_b, blocks * n))
            });
            let matrices = GemmOperands {
                m,
                n,
                k,
                a: &a,
                b: &b,
                c: &c,
                scale_a: scales.as_ref().map(|scales| &scales.0),
                scale_b: scales.as_ref().map(|scales| &scales.1),
            };
            for threads in [1, 2] {
                let mut rates: Vec<f64> = (0..15)
                    .map(|_| {
                        let start = Instant::now();
                        std::hint::black_box(evaluator.multiply(&matrices, threads).expect("fitting matrices"));
                        (m * n * k) as f64 / start.elapsed().as_secs_f64()
                    })
                    .collect();
                rates.sort_by(f64::total_cmp);
                let (best, median) = (rates[rates.len() - 1] / 1e6, rates[rates.len() / 2] / 1e6);
                println!(
                    "{:<58} {:>8} {threads:>7} {best:>8.1}M {median:>8.1}M",
                    format!("{model}:{id}"),
                    format!("{path:?}").to_lowercase()
                );
            }
        }
    }
}
