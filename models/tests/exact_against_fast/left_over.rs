//! What kernels leave: long chains whose sums overflow or meet NaN and infinities; and dots that share no operands.

use mxprobe_api::{DotOperands, Elements, Random};
use mxprobe_models::{Dot, Evaluator, Path};

use super::{
    compare, distinct_operations, fast_paths,
    inputs::{Case, Inputs},
};

#[test]
fn long_chains_of_arbitrary_values_have_the_bits_of_the_exact_evaluator() {
    let mut random = Random(8);
    for (model, id) in distinct_operations() {
        let step = id.shape.sizes().2;
        if id.is_integer() || id.c != id.d || step > 32 {
            continue;
        }
        let reference = Evaluator::with_path(model, &id, Path::Exact).unwrap();
        for inputs in [Inputs::AnyFinite, Inputs::AnyBits, Inputs::Specials, Inputs::NearOverflow] {
            // A wide panel and a narrow one, and a last operation that is cut short.
            for (m, n) in [(2, 65), (3, 7)] {
                let case = Case::draw(&id, (m, n, 4 * step - 1), inputs, &mut random);
                for path in fast_paths() {
                    let fast = Evaluator::with_path(model, &id, path).unwrap();
                    compare(&reference, &fast, &case, 1, &format!("{}:{id} {inputs:?}", model.name));
                }
            }
        }
    }
}

#[test]
fn dots_that_share_no_operands_have_the_bits_that_they_have_alone() {
    let mut random = Random(9);
    for (model, id) in distinct_operations() {
        let exact = Evaluator::with_path(model, &id, Path::Exact).unwrap();
        let k = id.shape.sizes().2;
        // More than are computed at a time, and not a multiple of that; and fewer.
        for (inputs, count) in [
            (Inputs::Narrow, 67),
            (Inputs::Specials, 85),
            (Inputs::AnyFinite, 150),
            (Inputs::AnyBits, 64),
            (Inputs::NearOverflow, 3),
        ] {
            let count = if k > 64 { 9.min(count) } else { count };
            // A square has as many elements of A and of B as there are in so many dots.
            let Case { a, b, c, scales, .. } = Case::draw(&id, (count, count, k), inputs, &mut random);
            let scales = scales.as_ref().map(|(a, b)| (a, b));
            let (scale_a, scale_b) = (scales.map(|(a, _)| a), scales.map(|(_, b)| b));
            let operands = DotOperands { count, a: &a, b: &b, c: &c, scale_a, scale_b };
            let blocks = id.block_scale().map_or(0, |scale| k.div_ceil(scale.block));
            let bits = |of: &Elements, at: usize, each: usize| -> Vec<u64> {
                (0..each).map(|index| of.get(at * each + index)).collect()
            };
            for path in Path::available() {
                let found = Evaluator::with_path(model, &id, path).unwrap().dots(&operands);
                for at in 0..count {
                    let scales = scales.map(|(a, b)| (bits(a, at, blocks), bits(b, at, blocks)));
                    let scales = scales.as_ref().map(|(a, b)| (&a[..], &b[..]));
                    let dot = Dot { a: &bits(&a, at, k), b: &bits(&b, at, k), c: c.get(at), scales };
                    let wanted = exact.dot(dot).unwrap();
                    assert_eq!(found.get(at), wanted, "{}:{id} {path:?} {inputs:?}, dot {at}", model.name);
                }
            }
        }
    }
}

/// A sum to nearest of this size is infinite, but the largest number is odd and nearer to zero.
#[test]
fn sums_to_odd_just_below_two_to_128_are_the_largest_number() {
    let model = mxprobe_models::shipped().iter().find(|model| model.name == "arm").unwrap();
    let id = "bfmmla.m2n2k4.f32.bf16.bf16.f32".parse().unwrap();
    let reference = Evaluator::with_path(model, &id, Path::Exact).unwrap();
    // 2^82 − 2^127, then c, and two more products: the same in each of 8 columns, so that a second kernel computes them.
    let (a, b) = ([0xcf00, 0x7a00, 0x6100, 0x4080], [0xd900, 0xc480, 0xc380, 0x3600]);
    for (of_c, wanted) in [(0xff00_0000, 0xff7f_ffff), (0xff00_0001, 0xff80_0000)] {
        let a = Elements::from_bits(id.a, a);
        let b = Elements::from_bits(id.b, b.into_iter().flat_map(|bits| std::iter::repeat_n(bits, 8)));
        let c = Elements::from_bits(id.c, [of_c; 8]);
        let case = Case { m: 1, n: 8, k: 4, a, b, c, scales: None };
        assert_eq!(reference.multiply(&case.matrices(), 1).unwrap().get(0), wanted, "{of_c:#x}");
        for path in fast_paths() {
            let fast = Evaluator::with_path(model, &id, path).unwrap();
            compare(&reference, &fast, &case, 1, "arm");
        }
    }
}

/// Four factors of −2^15 add up to 2^31, whose bits in 32 are those of −2^31.
#[test]
fn products_that_add_up_to_two_to_31_are_clamped_with_c() {
    let model = mxprobe_models::shipped().iter().find(|model| model.name == "avx512").unwrap();
    let id = "dot.m1n1k2.s32.s16.s16.s32.satfinite".parse().unwrap();
    let reference = Evaluator::with_path(model, &id, Path::Exact).unwrap();
    let lowest = |format, count| Elements::from_bits(format, std::iter::repeat_n(0x8000, count));
    for (of_c, wanted) in [(0, 0x7fff_ffff), (1, 0x7fff_ffff), (0xffff_ffff, 0x7fff_ffff), (0x8000_0000, 0)] {
        let (a, b, c) = (lowest(id.a, 2), lowest(id.b, 2 * 8), Elements::from_bits(id.c, [of_c; 8]));
        let case = Case { m: 1, n: 8, k: 2, a, b, c, scales: None };
        assert_eq!(reference.multiply(&case.matrices(), 1).unwrap().get(0), wanted, "{of_c:#x}");
        for path in fast_paths() {
            let fast = Evaluator::with_path(model, &id, path).unwrap();
            compare(&reference, &fast, &case, 1, "avx512");
        }
    }
}
