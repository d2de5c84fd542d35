//! Products per second of one thread, by family of models and path.
//!
//! `cargo bench -p mxprobe-models --bench evaluate [-- FILTER]`
#![allow(missing_docs)]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use mxprobe_api::{Elements, Format, GemmOperands, OperationId, Random};
use mxprobe_models::{Evaluator, Path, load};

/// One operation of each kind of arithmetic.
const FAMILIES: [(&str, &str, &str); 11] = [
    ("fused-f16", "a100", "mma.m16n8k16.f32.f16.f16.f32"),
    ("fused-f16-wide", "h100", "mma.m16n8k16.f32.f16.f16.f32"),
    ("fused-bf16", "h100", "mma.m16n8k16.f32.bf16.bf16.f32"),
    ("fused-tf32", "a100", "mma.m16n8k8.f32.tf32.tf32.f32"),
    ("fused-fp8", "h100", "wgmma.m64n8k32.f32.e4m3.e4m3.f32"),
    ("fma", "fma-chain", "dot.m1n1k16.f32.f32.f32.f32"),
    ("rounded-tree", "mi210", "mfma.m32n32k8.f32.f16.f16.f32"),
    ("cdna3", "mi300x", "mfma.m32n32k8.f32.f16.f16.f32"),
    ("rdna3", "rdna3", "wmma.m16n16k16.f32.f16.f16.f32"),
    ("block-scale", "rtx5090", "mma.m16n8k64.f32.e2m1.e2m1.f32.block16.ue4m3"),
    ("integer", "h100", "mma.m16n8k32.s32.s8.s8.s32"),
];

/// About standard normal: the sum of twelve uniform values less 6.
#[allow(clippy::cast_precision_loss)]
fn draw(format: Format, len: usize, random: &mut Random) -> Elements {
    Elements::from_bits(
        format,
        (0..len).map(|_| {
            if format.is_integer() {
                return random.bits();
            }
            let sum: f64 = (0..12).map(|_| (random.bits() >> 11) as f64 / 9_007_199_254_740_992.0).sum();
            format.from_f64(sum - 6.0)
        }),
    )
}

fn evaluate(criterion: &mut Criterion) {
    for (family, model, id) in FAMILIES {
        let model = load(model).expect("a shipped model");
        let id: OperationId = id.parse().expect("an id");
        let mut group = criterion.benchmark_group(family);
        for path in Path::available() {
            let evaluator = Evaluator::with_path(&model, &id, path).expect("an operation of the model");
            if evaluator.path() != path {
                continue;
            }
            let (m, n, k) = match path {
                Path::Exact => (1, 32, 256),
                Path::Scalar => (4, 64, 512),
                _ => (128, 512, 512),
            };
            let mut random = Random(7);
            let (a, b) = (draw(id.a, m * k, &mut random), draw(id.b, k * n, &mut random));
            let c = draw(id.c, m * n, &mut random);
            let scales = id.block_scale().map(|scale| {
                let blocks = k.div_ceil(scale.block);
                let ones = |len: usize| Elements::from_bits(scale.format, (0..len).map(|_| scale.format.one()));
                (ones(m * blocks), ones(blocks * n))
            });
            let (scale_a, scale_b) = (scales.as_ref().map(|scales| &scales.0), scales.as_ref().map(|scales| &scales.1));
            let matrices = GemmOperands { m, n, k, a: &a, b: &b, c: &c, scale_a, scale_b };
            group.throughput(Throughput::Elements((m * n * k) as u64));
            group.sample_size(20);
            group.bench_function(BenchmarkId::from_parameter(format!("{path:?}").to_lowercase()), |bencher| {
                bencher.iter(|| evaluator.multiply(&matrices, 1));
            });
        }
        group.finish();
    }
}

criterion_group!(benches, evaluate);
criterion_main!(benches);
