//! Compares whole matrices computed by a recipe with one element at a time computed by the exact evaluator.
#![allow(missing_docs)]

use std::{collections::BTreeMap, time::Duration};

use mxprobe_api::{Elements, Format, GemmOperands, OperationId, Random};
use mxprobe_models::{
    Dot, load,
    recipe::{Program, Recipe, Side, Verdict, decide},
};

/// The adders, and the part of a case before its levels.
const HEAD: &str = r#"
schema = "mxprobe-recipe/1"
name = "drawn"
title = "drawn"
model = "@MODEL"
[sources]
own = "drawn"
[adder.f32]
output = "f32"
rounding = "nearest-even"
nan = "0x7fffffff"
basis = "assumed"
source = "own"
[adder.bf16]
output = "bf16"
rounding = "toward-zero"
nan = "0x7fc0"
basis = "assumed"
source = "own"
[adder.cut]
fraction_bits = 20
below = "truncate"
output = "f32"
rounding = "toward-zero"
zero = "positive"
nan = "0x7fc00000"
basis = "assumed"
source = "own"
[[case]]
name = "all"
operations = ["@OP"]
parameters = { slices = 3 }
basis = "assumed"
source = "own"
input = { alpha = { format = "f32" }, bias = { format = "bf16", shape = "column" }, scale = { format = "f32", shape = "row" }, more = { format = "f16", shape = "matrix", default = "0x0000" } }
"#;

fn choose<'a>(random: &mut Random, words: &[&'a str]) -> &'a str {
    words[random.below(words.len())]
}

/// A random recipe, drawn from everything that levels and an epilogue can express.
fn drawn(random: &mut Random, model: &str, operation: &str) -> String {
    let mut text = HEAD.replace("@MODEL", model).replace("@OP", operation);
    let adders = ["f32", "f32", "bf16", "cut"];
    let levels = random.below(4);
    let mut c_is_free = true;
    if random.flip() {
        text += "start = \"c\"\n";
        c_is_free = false;
    }
    let reads_c = c_is_free && random.below(3) == 0;
    let c = if reads_c { ", c*more" } else { "" };
    if random.below(3) > 0 {
        let store = choose(random, &["f32", "bf16", "cut"]);
        let sum = choose(random, &["relu(acc)*alpha, +0", "acc*f32(alpha*scale), bias", "acc, bias, more"]);
        text += &format!("epilogue = \"{store}(f32({sum}{c}))\"\n");
        c_is_free &= !reads_c;
    } else {
        text = text.lines().filter(|line| !line.starts_with("input = ")).map(|line| line.to_owned() + "\n").collect();
    }
    for _ in 0..levels {
        text += "[[case.level]]\n";
        match random.below(4) {
            0 => text += &format!("every = {}\n", 1 + random.below(70)),
            1 => text += &format!("slices = {}\ntile = {}\n", 1 + random.below(6), 1 + random.below(20)),
            2 => text += &format!("slices = \"slices\"\ntile = {}\nshare = \"balanced\"\n", 1 + random.below(9)),
            _ => {
                let (slices, tile) = (1 + random.below(9), 1 + random.below(20));
                text += &format!("slices = {slices}\nwalk = \"interleaved\"\ntile = {tile}\n");
            }
        }
        let add = choose(random, &adders);
        let rests: &[&str] = if add == "bf16" { &["divided", "added"] } else { &["divided", "added", "chained"] };
        text += &format!("add = \"{add}\"\nrest = \"{}\"\n", choose(random, rests));
        if random.below(3) == 0 {
            text += &format!("partial = \"{}\"\n", choose(random, &adders));
        }
        let merge = choose(random, &["serial", "reverse", "pairs", "halves", "last-then-slots"]);
        text += &format!("merge = \"{merge}\"\n");
        if ["serial", "reverse"].contains(&merge) {
            let start = choose(random, if c_is_free { &["first", "+0", "c"] } else { &["first", "+0"] });
            c_is_free &= start != "c";
            text += &format!("start = \"{start}\"\n");
        }
    }
    text
}

/// Draws an element: mostly a moderate number, sometimes a zero, an infinity or a NaN.
fn element(random: &mut Random, format: Format) -> u64 {
    match random.below(60) {
        0 => random.any(format),
        1 => format.infinity(false).unwrap_or(0),
        2..=6 => format.negative_zero().filter(|_| random.flip()).unwrap_or(0),
        _ if random.flip() => random.dense(format),
        _ => random.moderate(format),
    }
}

fn matrix(random: &mut Random, format: Format, count: usize) -> Elements {
    Elements::from_bits(format, (0..count).map(|_| element(random, format)))
}

#[test]
fn matrices_by_drawn_recipes_are_what_single_elements_are() {
    let mut random = Random(7);
    let (mut elements, mut shortest) = (0, usize::MAX);
    for at in 0..160 {
        let (name, operation) = [
            ("l40s", "mma.m16n8k16.f32.e4m3.e5m2.f32"),
            ("fma-chain", "dot.m1n1k4.f32.f16.f16.f32"),
            ("h100", "mma.m16n8k16.f32.bf16.bf16.f32"),
            ("pairwise", "dot.m1n1k4.f32.f32.f32.f32"),
        ][at % 4];
        let text = drawn(&mut random, name, operation);
        let recipe = Recipe::parse("drawn.toml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let written = Recipe::parse("written.toml", &recipe.to_toml()).unwrap();
        assert_eq!(written, recipe);
        let model = load(name).unwrap();
        let case = &recipe.cases[0];
        let id: OperationId = operation.parse().unwrap();
        let parameters =
            if random.flip() { BTreeMap::from([("slices".to_owned(), 1 + random.below(7))]) } else { BTreeMap::new() };
        let program = Program::new(&recipe, &model, case, &id, &parameters).unwrap();
        let (m, n, k) = (1 + random.below(3), 1 + random.below(9), random.below(180));
        let (a, b) = (matrix(&mut random, id.a, m * k), matrix(&mut random, id.b, k * n));
        let c = matrix(&mut random, program.c_format(), m * n);
        let mut inputs = BTreeMap::new();
        for (name, input) in &case.inputs {
            if input.default.is_none() || random.flip() {
                inputs.insert(name.clone(), matrix(&mut random, input.format, input.shape.count((m, n))));
            }
        }
        let operands = GemmOperands { m, n, k, a: &a, b: &b, c: &c, scale_a: None, scale_b: None };
        let d = program.multiply(&operands, &inputs, 1).unwrap();
        assert_eq!(program.multiply(&operands, &inputs, 3).unwrap(), d);
        assert_eq!(d.format(), program.format());
        for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
            let of_a: Vec<u64> = (0..k).map(|at| a.get(row * k + at)).collect();
            let of_b: Vec<u64> = (0..k).map(|at| b.get(at * n + column)).collect();
            let dot = Dot { a: &of_a, b: &of_b, c: c.get(row * n + column), scales: None };
            let single: BTreeMap<String, Elements> = inputs
                .iter()
                .map(|(name, all)| {
                    use mxprobe_models::recipe::InputShape;
                    let at = match case.inputs[name].shape {
                        InputShape::Scalar => 0,
                        InputShape::Row => row,
                        InputShape::Column => column,
                        InputShape::Matrix => row * n + column,
                    };
                    (name.clone(), Elements::from_bits(all.format(), [all.get(at)]))
                })
                .collect();
            let trace = program.trace(&recipe, &model, dot, &single).unwrap();
            let found = d.format().hex(d.get(row * n + column));
            let lines = trace.lines.join("\n");
            assert_eq!(found, trace.format.hex(trace.bits), "[{row}, {column}] of {m}×{n}×{k}\n{lines}\n{text}");
            elements += 1;
            shortest = shortest.min(trace.lines.len());
        }
    }
    assert!(elements > 1000 && shortest >= 2, "{elements} {shortest}");
}

#[test]
fn a_fused_multiply_add_is_told_from_a_product_and_a_sum_in_the_first_products_drawn() {
    let operation = "dot.m1n1k4.f32.f32.f32.f32";
    let id: OperationId = operation.parse().unwrap();
    let written = ["fma-chain", "serial"].map(|name| {
        let text = HEAD.replace("@MODEL", name).replace("@OP", operation);
        let text: String =
            text.lines().filter(|line| !line.starts_with("input = ")).flat_map(|line| [line, "\n"]).collect();
        let recipe = Recipe::parse("unit.toml", &text).unwrap();
        let program = Program::new(&recipe, &load(name).unwrap(), &recipe.cases[0], &id, &BTreeMap::new()).unwrap();
        (recipe, program)
    });
    let [one, other] = [0, 1].map(|at| Side { recipe: &written[at].0, program: &written[at].1 });
    let same = decide(one, one, 4, 1, Duration::ZERO).unwrap();
    assert!(matches!(same, Verdict::Equal), "{same:?}");
    let found = decide(one, other, 4, 1, Duration::ZERO).unwrap();
    assert!(matches!(found, Verdict::Differ(_)), "{found:?}");
}
