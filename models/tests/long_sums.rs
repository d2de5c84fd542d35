//! Sums longer than the part that a model packs at a time have the same bits as chained operations.

use mxprobe_api::{Elements, Format, GemmOperands, OperationId};
use mxprobe_models::{Evaluator, load};

/// Pseudorandom numbers.
struct Stream(u64);

impl Stream {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 17
    }

    /// Bits of a format: finite numbers around 1 and, if `specials`, occasionally arbitrary bits.
    fn elements(&mut self, format: Format, count: usize, specials: bool) -> Elements {
        let one = |stream: &mut Self| {
            let bits = stream.next() & format.mask();
            let is_any = specials && stream.next().is_multiple_of(20_011);
            match format.as_float() {
                Some(float) if !is_any && float.exponent_bits > 3 => {
                    let sign = bits & (format.mask() ^ (format.mask() >> 1));
                    let fraction = bits & ((1 << (float.fraction_bits + float.unread_bits + 2)) - 1);
                    sign | (format.one() - (1 << (float.fraction_bits + float.unread_bits))) | fraction
                }
                _ => bits,
            }
        };
        Elements::from_bits(format, (0..count).map(|_| one(self)))
    }
}

/// Rows and columns of a matrix of `width` columns.
fn part(of: &Elements, width: usize, rows: std::ops::Range<usize>, columns: std::ops::Range<usize>) -> Elements {
    let bits = rows.flat_map(|row| columns.clone().map(move |column| of.get(row * width + column)));
    Elements::from_bits(of.format(), bits)
}

#[test]
fn sums_of_any_length_have_the_bits_of_one_operation_after_another() {
    for (model, id, (m, n, k)) in [
        ("a100", "mma.m16n8k16.f32.f16.f16.f32", (3, 5, 9000)),
        ("a100", "mma.m16n8k16.f32.bf16.bf16.f32", (1, 130, 4097)),
        ("h100", "mma.m16n8k32.f32.e4m3.e5m2.f32", (9, 1, 6144)),
        ("v100", "mma.m8n8k4.f16.f16.f16.f16", (2, 3, 4099)),
        ("rdna3", "wmma.m16n16k16.f32.f16.f16.f32", (2, 2, 4200)),
        ("amx", "amx.m16n16k64.s32.u8.u8.s32", (3, 70, 4200)),
        ("a100", "mma.m8n8k4.f64.f64.f64.f64", (2, 3, 4100)),
        ("rtx5090", "mma.m16n8k32.f32.e4m3.e5m2.f32.block32.ue8m0", (2, 3, 4117)),
    ] {
        let mut stream = Stream(7);
        let id: OperationId = id.parse().unwrap();
        let evaluator = Evaluator::new(&load(model).unwrap(), &id).unwrap();
        let step = id.shape.sizes().2;
        let (a, b) = (stream.elements(id.a, m * k, true), stream.elements(id.b, k * n, true));
        let start = stream.elements(id.c, m * n, false);
        let block = id.block_scale().map_or(k, |scale| scale.block);
        let blocks = k.div_ceil(block);
        let scales = id.block_scale().map(|scale| {
            let mut around_one =
                |count| Elements::from_bits(scale.format, (0..count).map(|_| 120 + stream.next() % 12));
            (around_one(m * blocks), around_one(blocks * n))
        });
        let (scale_a, scale_b) = (scales.as_ref().map(|(a, _)| a), scales.as_ref().map(|(_, b)| b));
        let mut wanted = start.clone();
        for first in (0..k).step_by(step) {
            let end = (first + step).min(k);
            let (a, b) = (part(&a, k, 0..m, first..end), part(&b, n, first..end, 0..n));
            let of = first / block..end.div_ceil(block);
            let scales = scale_a.zip(scale_b);
            let scales = scales.map(|(x, y)| (part(x, blocks, 0..m, of.clone()), part(y, n, of.clone(), 0..n)));
            let (scale_a, scale_b) = (scales.as_ref().map(|(a, _)| a), scales.as_ref().map(|(_, b)| b));
            let matrices = GemmOperands { m, n, k: end - first, a: &a, b: &b, c: &wanted, scale_a, scale_b };
            wanted = evaluator.multiply(&matrices, 1).unwrap();
        }
        let matrices = GemmOperands { m, n, k, a: &a, b: &b, c: &start, scale_a, scale_b };
        for threads in [1, 2, 7] {
            assert_eq!(evaluator.multiply(&matrices, threads).unwrap(), wanted, "{model} {id}, {threads} threads");
        }
    }
}
