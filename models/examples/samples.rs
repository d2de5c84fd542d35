//! Measures the cost of a dot of a sample, one by one and eight side by side, and of one of operands that are unpacked for it:
//! `cargo run --release -p mxprobe-models --example samples`.
#![allow(clippy::print_stdout)]

use std::{hint::black_box, time::Instant};

use mxprobe_api::{Decoded, DotOperands, Elements, Format, OperationId, Random};
use mxprobe_models::{Dot, Evaluator, Path, Sample, shipped};

const DOTS: usize = 4_000;
const RUNS: usize = 25;

/// Draws a finite value; infinities and NaN are replaced by zero.
fn finite(format: Format, random: &mut Random) -> u64 {
    let bits = random.bits() & format.mask();
    if matches!(format.decode(bits), Decoded::Finite { .. }) { bits } else { 0 }
}

fn main() {
    for (name, operation) in [
        ("a100", "mma.m16n8k8.f32.f16.f16.f32"),
        ("a100", "mma.m16n8k16.f32.f16.f16.f32"),
        ("a100", "mma.m16n8k16.f32.bf16.bf16.f32"),
        ("h100", "mma.m16n8k16.f32.f16.f16.f32"),
        ("mi300x", "mfma.m32n32k8.f32.f16.f16.f32"),
        ("rdna3", "wmma.m16n16k16.f32.f16.f16.f32"),
        ("amx", "amx.m16n16k32.f32.bf16.bf16.f32"),
        ("h100", "mma.m8n8k4.f64.f64.f64.f64"),
        ("rdna4", "wmma.m16n16k16.bf16.bf16.bf16.bf16.wave32"),
    ] {
        let id: OperationId = operation.parse().expect("an operation");
        let model = shipped().iter().find(|model| model.name == name).expect("a shipped model");
        let evaluator = Evaluator::with_path(model, &id, Path::Scalar).expect("an operation of the model");
        let k = id.shape.sizes().2;
        print!("{name}:{id}");
        let mut infinite = 0;
        for path in [Path::Scalar, Path::Avx2, Path::Avx512] {
            let mut random = Random(1);
            let mut sample = Sample::with_path(&id, evaluator.flush(), path);
            for _ in 0..DOTS {
                let mut row = |format: Format| -> Vec<u64> { (0..k).map(|_| finite(format, &mut random)).collect() };
                let (a, b) = (row(id.a), row(id.b));
                sample.push(Dot { a: &a, b: &b, c: finite(id.c, &mut random), scales: None });
            }
            infinite = 0;
            evaluator.visit(&sample, 0..DOTS, |_, d| {
                infinite += usize::from(!matches!(id.d.decode(d), Decoded::Finite { .. }));
                true
            });
            let mut times: Vec<f64> = (0..RUNS)
                .map(|_| {
                    let start = Instant::now();
                    evaluator.visit(&sample, 0..DOTS, |_, d| {
                        black_box(d);
                        true
                    });
                    start.elapsed().as_secs_f64() * 1e9 / DOTS as f64
                })
                .collect();
            times.sort_by(f64::total_cmp);
            print!(" | {path:?} {:.1} / {:.1} ns", times[0], times[RUNS / 2]);
        }
        println!(" | {} % infinite", infinite * 100 / DOTS);
        for path in [Path::Scalar, Path::Avx2, Path::Avx512] {
            let mut random = Random(1);
            let evaluator = Evaluator::with_path(model, &id, path).expect("an operation of the model");
            let mut all = |format: Format, count: usize| {
                let all: Vec<u64> = (0..count).map(|_| finite(format, &mut random)).collect();
                Elements::from_slices(format, [&all[..]])
            };
            let (a, b, c) = (all(id.a, DOTS * k), all(id.b, DOTS * k), all(id.c, DOTS));
            let operands = DotOperands { count: DOTS, a: &a, b: &b, c: &c, scale_a: None, scale_b: None };
            let mut times: Vec<f64> = (0..RUNS)
                .map(|_| {
                    let start = Instant::now();
                    black_box(evaluator.dots(&operands));
                    start.elapsed().as_secs_f64() * 1e9 / DOTS as f64
                })
                .collect();
            times.sort_by(f64::total_cmp);
            print!(" | {path:?} {:.1} / {:.1} ns", times[0], times[RUNS / 2]);
        }
        println!(" | unpacked, too");
    }
}
