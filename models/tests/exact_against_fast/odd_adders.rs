//! Adders that no shipped model has, on dots that a path once computed with other bits than the exact evaluator.

use mxprobe_api::{Elements, GemmOperands};
use mxprobe_models::{Evaluator, Model, Path};

use super::made_up::made_up;

/// A unit of adders `s`, `t` and `w`, and one dot in hexadecimal.
struct Case<'a> {
    s: &'a str,
    t: &'a str,
    w: &'a str,
    tree: &'a str,
    operation: &'a str,
    a: &'a str,
    b: &'a str,
    c: &'a str,
    d: u64,
}

const WIDE: &str = "output = \"wide\"";
const F32: &str = "output = \"f32\"\nrounding = \"nearest-even\"\nnan = \"0x7fc00000\"";

impl Case<'_> {
    fn model(&self) -> Model {
        made_up("odd", &[("s", self.s), ("t", self.t), ("w", self.w)], &[(self.tree, self.operation, "")])
    }

    /// Computes a matrix of which every element is this dot, on every path.
    fn check(&self) {
        let model = self.model();
        let id = &model.units[0].operations[0];
        let bits = |text: &str| -> Vec<u64> {
            text.split_whitespace().map(|word| u64::from_str_radix(word, 16).unwrap()).collect()
        };
        let (a, b, c) = (bits(self.a), bits(self.b), bits(self.c)[0]);
        let (m, n, k) = (3, 40, id.shape.sizes().2);
        assert_eq!((a.len(), b.len()), (k, k));
        let a = Elements::from_bits(id.a, (0..m).flat_map(|_| a.iter().copied()));
        let b = Elements::from_bits(id.b, b.iter().flat_map(|bits| std::iter::repeat_n(*bits, n)));
        let c = Elements::from_bits(id.c, std::iter::repeat_n(c, m * n));
        let matrices = GemmOperands { m, n, k, a: &a, b: &b, c: &c, scale_a: None, scale_b: None };
        for path in Path::available() {
            let d = Evaluator::with_path(&model, id, path).unwrap().multiply(&matrices, 1).unwrap();
            let found = d.iter().find(|bits| *bits != self.d).unwrap_or(self.d);
            assert!(found == self.d, "{path:?}: {found:#x}, not {:#x}", self.d);
        }
    }
}

#[test]
fn zeros_alone_are_no_complements_beside_a_factor_of_two() {
    let s = "output = \"f16\"\nrounding = \"nearest-even\"\nfraction_bits = 8\nexponent = \"operands\"\n\
             below = \"ones-complement\"\nzero = \"positive\"\nnan = \"0x7fff\"";
    let of = |operation, a, b, d| Case {
        s,
        t: F32,
        w: WIDE,
        tree: "fold(c, all/1, s(all, acc))",
        operation,
        a,
        b,
        c: "0",
        d,
    };
    of("dot.m4n4k2.f16.f16.f16.f16", "0 0", "0 c2f0", 0).check();
    // Beside a product, they are.
    of("dot.m4n4k2.f16.f16.f16.f16", "3c00 0", "3c00 c2f0", 0x3bf8).check();
}

#[test]
fn a_zero_is_no_value_that_is_left_out_as_too_small() {
    let s = "output = \"f16\"\nrounding = \"toward-zero\"\nfraction_bits = 10\nexponent = \"operands\"\n\
             exponent_floor = -24\nbelow = \"ones-complement\"\nignore_values_below = 2\nnan = \"0x7e00\"";
    let zeros = "0 0 0 0 0 0 0 0";
    Case {
        s,
        t: F32,
        w: WIDE,
        tree: "s(fold(none, every(4, 0, 2, 1, 3)/2, s(all, acc)), c)",
        operation: "dot.m4n4k8.f16.f16.f16.f32",
        a: zeros,
        b: zeros,
        c: "bf7fffff",
        d: 0xbbfe,
    }
    .check();
}

#[test]
fn a_subnormal_value_that_places_the_grid_may_be_left_out() {
    let s = "output = \"f32\"\nrounding = \"toward-zero\"\nfraction_bits = 20\nexponent = \"operands\"\n\
             below = \"floor\"\nignore_values_below = 2\nzero = \"positive\"\nnan = \"0x7fffffff\"";
    Case {
        s,
        t: F32,
        w: WIDE,
        tree: "s(t(every(2, 0)), t(every(2, 1)), c)",
        operation: "dot.m4n4k4.f32.e5m2.e5m2.f32",
        a: "0 0 0 0",
        b: "3b 0 3d 39",
        c: "80000001",
        d: 0,
    }
    .check();
}

#[test]
fn a_sum_far_below_every_f32_is_zero() {
    let s = "output = \"f32\"\nrounding = \"nearest-even\"\nbelow = \"truncate\"\n\
             grid = [{ terms = \"products\", exponent = \"leading\", fraction_bits = 25 }, \
             { terms = \"values\", exponent = \"operands\", fraction_bits = 26 }]\n\
             subnormals = \"flush-to-positive-zero\"\nzero = \"positive\"\nnan = \"0x7fc00000\"";
    Case {
        s,
        t: F32,
        w: WIDE,
        tree: "s(fold(none, all/2, s(all, acc)), c)",
        operation: "dot.m4n4k2.f32.bf16.bf16.f32",
        a: "28 14",
        b: "4b 0",
        c: "db000001",
        d: 0xdb00_0001,
    }
    .check();
}

#[test]
fn an_unrounded_sum_that_is_nan_passes_on_no_infinity() {
    let s = "output = \"f32\"\nrounding = \"toward-zero\"\nfraction_bits = 22\nexponent = \"operands\"\n\
             exponent_floor = -134\nbelow = \"truncate\"\nsubnormals = \"flush-before-rounding\"\n\
             nan = { order = [\"invalid\", \"operand\"], operand = \"0x7fc00000\", invalid = \"0xffc00000\" }";
    let w = "output = \"wide\"\nfraction_bits = 23\nexponent = \"leading\"\nbelow = \"truncate\"";
    Case {
        s,
        t: F32,
        w,
        tree: "fold(c, all/2, s(w(all), acc))",
        operation: "dot.m4n4k2.f32.e5m2.e5m2.f32",
        a: "0 71",
        b: "7e 7c",
        c: "ff800000",
        d: 0x7fc0_0000,
    }
    .check();
}

#[test]
fn a_value_is_not_taken_for_the_nan_that_an_unrounded_sum_passes_on() {
    let grid = "fraction_bits = 25\nexponent = \"operands\"\nexponent_floor = -29\nbelow = \"truncate\"";
    let s = format!(
        "output = \"f32\"\nrounding = \"toward-zero\"\n{grid}\nsubnormals = \"flush-before-rounding\"\n\
         nan = {{ order = [\"invalid\", \"operand\"], invalid = \"0xffc00000\" }}"
    );
    let t = format!(
        "output = \"f32\"\nrounding = \"nearest-even\"\n{grid}\nzero = \"positive\"\n\
         nan = {{ order = [\"operand\", \"value\"], invalid = \"0xffc00000\" }}"
    );
    let w =
        "output = \"wide\"\nfraction_bits = 29\nexponent = \"operands\"\nexponent_floor = -135\nbelow = \"truncate\"";
    Case {
        s: &s,
        t: &t,
        w,
        tree: "s(w(t(0..2), t(2..4)), c)",
        operation: "dot.m4n4k4.f32.f16.f16.f32",
        a: "3c00 0 3c00 3c00",
        b: "4000 7c00 3c00 bc00",
        c: "4ba81930",
        d: 0xffc0_0000,
    }
    .check();
}

#[test]
fn complements_without_a_grid_count_at_the_place_of_an_unrounded_sum() {
    let s = "output = \"f32\"\nrounding = \"toward-zero\"\nbelow = \"ones-complement\"\n\
             grid = [{ terms = \"products\", exponent = \"operands\", fraction_bits = 60 }, \
             { terms = \"values\", exponent = \"operands\", fraction_bits = 24 }]\n\
             subnormals = \"flush-after-rounding\"\nzero = \"positive\"\nnan = \"0x7fffffff\"";
    Case {
        s,
        t: F32,
        w: "output = \"wide\"\nfraction_bits = 79\nexponent = \"operands\"\nbelow = \"sticky\"",
        tree: "fold(c, all/2, s(w(all), acc))",
        operation: "dot.m4n4k2.f32.bf16.bf16.f32",
        a: "3f80 6f",
        b: "0 7f7f",
        c: "80000000",
        d: 0x405d_2200,
    }
    .check();
}

#[test]
fn products_to_odd_lose_their_last_bits_below_every_normal_number() {
    let s = "output = \"f32\"\nrounding = \"to-odd\"\nnan = \"0x7fc00000\"";
    let of = |a, b, c, d| Case {
        s,
        t: F32,
        w: WIDE,
        tree: "fold(c, all/1, t(s(all), acc))",
        operation: "dot.m4n4k2.f32.bf16.bf16.f32",
        a,
        b,
        c,
        d,
    };
    // (1 + 2^−7)·2^−146 is between 8 and 9 units of 2^−149.
    of("81 0", "3580 0", "0", 9).check();
    // 2^129 becomes the largest number, also beside a NaN in another product.
    of("7f00 0", "4080 0", "0", 0x7f7f_ffff).check();
    of("7f00 7fc1", "4080 0", "0", 0x7fc0_0000).check();
    of("ff00 0", "4080 0", "7f7fffff", 0).check();
}
