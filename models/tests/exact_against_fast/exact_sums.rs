//! Chains of exact sums: factors whose products need as many bits as an f64 has, a few more, or a few less, and what that
//! leaves to the rounding.

use mxprobe_api::{Elements, OperationId, Random};
use mxprobe_models::{Evaluator, Model, Path};

use super::{compare, fast_paths, folds, inputs::Case, made_up::made_up};

/// A unit that adds so many products at a time to the value.
fn model(products: usize, operations: &str, zero: &str) -> Model {
    let s = format!(
        "output = \"f32\"\nrounding = \"nearest-even\"\n{zero}\
         nan = {{ operand = \"quiet\", value = \"quiet\", invalid = \"0x7fc00000\" }}\n"
    );
    made_up("exact", &[("s", &s)], &[(&format!("fold(c, all/{products}, s(all, acc))"), operations, "")])
}

#[test]
fn exact_sums_of_other_lengths_give_the_bits_of_the_exact_evaluator() {
    let mut random = Random(25);
    for zero in ["", "zero = \"positive\"\n"] {
        for (products, k) in [(2, 2), (2, 4), (3, 6), (4, 4), (5, 5), (8, 8), (16, 16)] {
            let operations = format!("dot.m4n4k{k}.f32.{{bf16.bf16,f16.f16,f16.bf16,e5m2.e4m3}}.f32");
            let model = model(products, &operations, zero);
            for id in &model.units[0].operations {
                folds::check(&model, id, &mut random);
            }
        }
    }
}

/// A factor with a full significand whose last bit is 1, at 2^`exponent`.
fn odd(id: &OperationId, exponent: i32, random: &mut Random) -> u64 {
    let bits = id.a.fraction_bits();
    let fraction = random.bits() & ((1 << bits) - 1) | 1;
    let field = u64::from((exponent + id.a.as_float().unwrap().bias).unsigned_abs());
    field << bits | fraction | (random.bits() & 1) << (id.a.bits() - 1)
}

/// The exponent of small factors.
const LOW: i32 = -8;

/// Factors at 2^`LOW` and, `spread` places above it, large ones; products that cancel, alone or with c, beside small ones, in any order. One dot in
/// eight has products of −0 alone, and one in eight only infinities or NaN in A.
fn dots(id: &OperationId, spread: i32, count: usize, random: &mut Random) -> Case {
    let k = id.shape.sizes().2;
    let sign = 1 << (id.a.bits() - 1);
    let (mut a, mut b) = (vec![0; count * k], vec![0; k * count]);
    let mut c = vec![0; count * count];
    for dot in 0..count {
        let mut products: Vec<[u64; 2]> = (0..k).map(|_| [odd(id, LOW, random), odd(id, LOW, random)]).collect();
        let large = [odd(id, LOW + spread, random), odd(id, LOW + spread, random)];
        products[0] = large;
        // The negative of the large product fits an f32.
        let [x, y] = large.map(|bits| id.a.to_f64(bits));
        let mut of_c = id.c.from_f64(-x * y);
        if k > 2 && random.below(2) == 0 {
            products[1] = [large[0] ^ sign, large[1]];
            of_c = id.c.from_f64(id.a.to_f64(products[2][0]) * [0.0, -1.0, 0.25][random.below(3)]);
        }
        for at in (1..k).rev() {
            products.swap(at, random.below(at + 1));
        }
        match random.below(8) {
            0 => {
                products.fill([sign, odd(id, LOW + spread, random) & !sign]);
                of_c = 0x8000_0000;
            }
            1 => {
                let nan = id.a.nan().unwrap();
                products.iter_mut().for_each(|[a, _]| *a = [nan, id.a.infinity(true).unwrap()][random.below(2)]);
            }
            _ => {}
        }
        for (at, [of_a, of_b]) in products.into_iter().enumerate() {
            (a[dot * k + at], b[at * count + dot]) = (of_a, of_b);
        }
        (0..count).for_each(|row| c[row * count + dot] = of_c);
    }
    let [a, b] = [(id.a, a), (id.b, b)].map(|(format, bits)| Elements::from_bits(format, bits));
    Case { m: count, n: count, k, a, b, c: Elements::from_bits(id.c, c), scales: None }
}

#[test]
fn products_of_about_as_many_bits_as_an_f64_has_are_rounded_once() {
    let mut random = Random(26);
    for (formats, spreads) in [("f16.f16", 11..20), ("bf16.bf16", 8..40)] {
        for (products, k) in [(2, 2), (3, 3), (4, 4), (4, 8), (8, 8)] {
            let model = model(products, &format!("dot.m4n4k{k}.f32.{formats}.f32"), "");
            let id = &model.units[0].operations[0];
            let exact = Evaluator::with_path(&model, id, Path::Exact).unwrap();
            for spread in spreads.clone() {
                for count in [15, 33] {
                    let case = dots(id, spread, count, &mut random);
                    for path in fast_paths() {
                        let fast = Evaluator::with_path(&model, id, path).unwrap();
                        compare(&exact, &fast, &case, 1, &format!("{id} {products} {spread}"));
                    }
                }
            }
        }
    }
}
