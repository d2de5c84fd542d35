//! Chains of small sums by the same rules: values of every class beside finite factors, and rules just inside and outside
//! of those that the kernel of folds computes.

use mxprobe_api::{Elements, Format, OperationId, Random};
use mxprobe_models::{Evaluator, Model, Path};

use super::{
    compare, distinct_operations, fast_paths,
    inputs::{Case, INPUTS, Inputs, addend},
    made_up::made_up,
};

/// Compares all paths on factors of some classes beside values of every class; returns the number of dots.
pub(super) fn check(model: &Model, id: &OperationId, random: &mut Random) -> usize {
    let reference = Evaluator::with_path(model, id, Path::Exact).unwrap();
    let fast: Vec<_> = fast_paths().into_iter().map(|path| Evaluator::with_path(model, id, path).unwrap()).collect();
    let step = id.shape.sizes().2;
    let k = if id.c == id.d { 2 * step - 1 } else { step };
    let mut dots = 0;
    let factors = [
        Inputs::AnyFinite,
        Inputs::Narrow,
        Inputs::Subnormal,
        Inputs::Cancelling,
        Inputs::Zeros,
        Inputs::NearUnderflow,
    ];
    for (turn, inputs) in factors.into_iter().enumerate() {
        for (other, values) in INPUTS.into_iter().enumerate() {
            let (m, n) = if (turn + other) % 3 == 0 { (1, 67) } else { (5, 17) };
            let mut case = Case::draw(id, (m, n, k), inputs, random);
            (0..m * n).for_each(|at| case.c.set(at, addend(id.c, values, random)));
            if turn == 1 && other % 4 == 1 {
                // One row and one column with a special number beside others without.
                case.a.set((m / 2) * k, id.a.nan().unwrap_or(0));
                case.b.set((k - 1) * n + 3, id.b.infinity(true).or(id.b.nan()).unwrap_or(0));
            }
            dots += m * n;
            for fast in &fast {
                compare(&reference, fast, &case, 1, &format!("{}:{id} {inputs:?} {values:?}", model.name));
            }
        }
    }
    if id.a == Format::BF16 && id.b == Format::BF16 {
        // Products about the smallest normal f32, so that the lowest units count.
        for values in [Inputs::Zeros, Inputs::NearUnderflow, Inputs::Subnormal] {
            let mut case = Case::draw(id, (5, 67, k), Inputs::Narrow, random);
            let mut low = |from: &Elements| {
                let bits = from.iter().map(|bits| bits & 0x807f | (61 + random.bits() % 5) << 7);
                Elements::from_bits(Format::BF16, bits.collect::<Vec<_>>())
            };
            (case.a, case.b) = (low(&case.a), low(&case.b));
            (0..case.m * case.n).for_each(|at| case.c.set(at, addend(id.c, values, random)));
            for fast in &fast {
                compare(&reference, fast, &case, 1, &format!("{}:{id} low {values:?}", model.name));
            }
        }
    }
    dots
}

#[test]
fn values_of_every_class_beside_finite_factors_give_the_bits_of_the_exact_evaluator() {
    let mut random = Random(21);
    let mut dots = 0;
    let has_folds = |model: &Model| model.name.starts_with("rdna") || ["mi100", "mi300x"].contains(&&*model.name);
    for (model, id) in distinct_operations().into_iter().filter(|(model, _)| has_folds(model)) {
        if id.a.as_float().is_some_and(|float| float.fraction_bits < 23) && id.shape.sizes().2 <= 16 {
            dots += check(model, &id, &mut random);
        }
    }
    assert!(dots > 80_000, "{dots}");
}

/// A unit of the adders `s` and `t`.
fn model((s, t): (&str, &str), tree: &str, operations: &str) -> Model {
    let w = format!("fraction_bits = 24\n{WIDE}");
    made_up("folds", &[("s", s), ("t", t), ("w", &w)], &[(tree, operations, "flush = [\"c\"]")])
}

const F32: &str = "output = \"f32\"\nrounding = \"nearest-even\"\nzero = \"positive\"\n\
                   nan = { order = [\"operand\", \"invalid\", \"value\"], operand = \"0xffc00a3d\", value = \"quiet\", \
                   invalid = \"0xffc00000\" }\n";
const WIDE: &str = "output = \"wide\"\nbelow = \"floor\"\n";

#[test]
fn complements_on_other_grids_give_the_bits_of_the_exact_evaluator() {
    let mut random = Random(22);
    for (products, of_all, floor) in [
        (24, 26, ""),
        (24, 25, ""),
        (24, 24, ""),
        (25, 24, ""),
        (24, 24, ", exponent_floor = -126"),
        (25, 24, ", exponent_floor = -126"),
        (20, 29, ""),
        (23, 26, ", exponent_floor = -20"),
        (23, 27, ", exponent_floor = -126"),
        (22, 23, ""),
        (10, 22, ""),
    ] {
        for flush in ["subnormals = \"flush-to-positive-zero\"\n", ""] {
            let s = format!(
                "grid = [{{ terms = \"products\", exponent = \"operands\", fraction_bits = {products} }}, \
                 {{ terms = \"all\", exponent = \"leading\", fraction_bits = {of_all}{floor} }}]\n\
                 below = \"ones-complement\"\n{F32}{flush}"
            );
            let model =
                model((&s, WIDE), "fold(c, all/2, s(all, acc))", "dot.m4n4k4.f32.{bf16.bf16,f16.f16,e5m2.e4m3}.f32");
            for id in &model.units[0].operations {
                check(&model, id, &mut random);
            }
        }
    }
}

#[test]
fn floored_sums_on_other_grids_give_the_bits_of_the_exact_evaluator() {
    let mut random = Random(23);
    for (of_sums, products, values, floor, ignored) in [
        (24, 24, 26, -126, "ignore_values_below = 0\nignore_values_unless_grid_at_most = -126\n"),
        (24, 22, 26, -30, "ignore_values_below = 0\nignore_values_unless_grid_at_most = -30\n"),
        (22, 24, 26, -126, "ignore_values_below = 0\n"),
        (24, 24, 23, -126, "ignore_values_below = 0\n"),
        (24, 23, 29, -140, "ignore_values_below = 0\n"),
        (24, 24, 26, -126, "ignore_values_below = 1\n"),
    ] {
        let s = format!("fraction_bits = {of_sums}\n{WIDE}");
        let t = format!(
            "grid = [{{ terms = \"sums\", exponent = \"operands\", fraction_bits = {products} }}, \
             {{ terms = \"values\", exponent = \"leading\", fraction_bits = {values}, exponent_floor = {floor} }}]\n\
             below = \"floor\"\n{ignored}{F32}"
        );
        for tree in ["fold(c, all/4, t(s(0..2), s(2..4), acc))", "fold(c, all/2, t(s(all), acc))"] {
            let model = model((&s, &t), tree, "dot.m4n4k4.f32.{bf16.bf16,f16.f16,e5m2.e4m3}.f32");
            for id in &model.units[0].operations {
                check(&model, id, &mut random);
            }
        }
    }
}

#[test]
fn normalised_sums_on_other_grids_give_the_bits_of_the_exact_evaluator() {
    let mut random = Random(24);
    for (kept, cut, normalised, more) in [
        (32, 8, 31, "nan = \"0x7fc00000\""),
        (32, 8, 32, "nan = \"0x7fc00000\"\nignore_values_below = 1"),
        (32, 8, 30, "nan = { operand = \"quiet\", value = \"quiet\", invalid = \"0x7fc00000\" }"),
        (29, 5, 28, "nan = \"0x7fc00000\"\nignore_values_below = 0"),
        (26, 2, 25, "nan = \"0x7fc00000\"\nignore_values_below = 3"),
        (32, 7, 31, "nan = \"0x7fc00000\""),
    ] {
        let s = "fraction_bits = 24\nbelow = \"truncate\"\noutput = \"wide\"";
        let t = format!(
            "fraction_bits = {kept}\nexponent_floor = -126\nbelow = \"floor\"\nvalue_cut_bits = {cut}\n\
             normalised_fraction_bits = {normalised}\nnormalised_exponent_floor = -126\n\
             normalised_below = \"floor\"\noutput = \"f32\"\nrounding = \"nearest-even\"\n{more}"
        );
        for (tree, operations) in [
            ("fold(c, all/8, t(s(all), acc))", "dot.m4n4k16.f32.{bf16.bf16,f16.f16}.f32"),
            ("fold(c, all/4, t(s(all), acc))", "dot.m4n4k8.f32.bf16.bf16.f32"),
            ("fold(c, all/16, t(w(s(every(2,0)), s(every(2,1))), acc))", "dot.m4n4k16.f32.e5m2.e4m3.f32"),
        ] {
            let model = model((s, &t), tree, operations);
            for id in &model.units[0].operations {
                check(&model, id, &mut random);
            }
        }
    }
}
