//! Random units from all that model files can express.

use mxprobe::dots::Random;
use mxprobe_models::Model;

/// The formats of A, B, C and D.
const FORMATS: &[(&str, &str, &str, &str)] = &[
    ("f16", "f16", "f32", "f32"),
    ("f16", "f16", "f32", "f32"),
    ("f16", "f16", "f16", "f16"),
    ("bf16", "bf16", "f32", "f32"),
    ("tf32", "tf32", "f32", "f32"),
    ("e4m3", "e4m3", "f32", "f32"),
    ("e5m2", "e4m3", "f32", "f32"),
    ("e5m2", "e5m2", "f16", "f16"),
    ("e2m1", "e2m1", "f32", "f32"),
    ("s8", "s8", "s32", "s32"),
    ("u8", "s8", "s32", "s32"),
];

/// Trees over a rounding adder `s`, another one `t` and an unrounded one `w`, each with the fewest products it needs.
const TREES: &[(usize, &str)] = &[
    // Blocks in a chain.
    (4, "fold(c, all/1, s(all, acc))"),
    (4, "fold(c, all/2, s(all, acc))"),
    (8, "fold(c, all/4, s(all, acc))"),
    (16, "fold(c, all/8, s(all, acc))"),
    (16, "fold(c, all/16, s(all, acc))"),
    (8, "fold(c, reverse/3, s(all, acc))"),
    // Chains by k modulo 3, with c before, between and after them.
    (
        9,
        "s(c, fold(none, every(3,0)/1, s(all, acc)), fold(none, every(3,1)/1, s(all, acc)), fold(none, every(3,2)/1, s(all, acc)))",
    ),
    (
        9,
        "s(s(fold(none, every(3,0)/1, s(all, acc)), c), s(fold(none, every(3,1)/1, s(all, acc)), fold(none, every(3,2)/1, s(all, acc))))",
    ),
    (
        9,
        "t(s(fold(+0, every(3,0)/1, s(all, acc)), fold(+0, every(3,1)/1, s(all, acc)), fold(+0, every(3,2)/1, s(all, acc))), c)",
    ),
    (8, "s(fold(c, every(2,0)/1, s(all, acc)), fold(+0, every(2,1)/1, s(all, acc)))"),
    (8, "t(c, t(fold(+0, every(2,0)/2, s(all, acc)), fold(+0, every(2,1)/2, s(all, acc))))"),
    // c in the middle and last.
    (12, "s(fold(none, 0..6/3, s(all, acc)), c, fold(none, 6..12/3, s(all, acc)))"),
    (8, "fold(fold(s(0..2, c), 2..4/2, s(all, acc)), 4..8/2, s(all, acc))"),
    (8, "s(s(all), c)"),
    (8, "t(c, s(every(2,0)), s(every(2,1)))"),
    // Products rounded first.
    (4, "s(pairs(all/1, t(all), s), c)"),
    (8, "fold(c, all/1, s(t(all), acc))"),
    (5, "s(t(0), t(1), t(2), t(3), t(4), c)"),
    (8, "fold(c, all/2, s(t(0), t(1), acc))"),
    // Groups of four, rounded.
    (16, "s(s(0..4), s(4..8), s(8..12), s(12..16), c)"),
    (16, "s(s(s(0..4), s(4..8)), s(s(8..12), s(12..16)), c)"),
    (16, "s(c, s(s(s(s(0..4), s(4..8)), s(8..12)), s(12..16)))"),
    (16, "s(pairs(all/4, s(all), s), c)"),
    (16, "t(s(every(4,0)), s(every(4,1)), c, s(every(4,2)), s(every(4,3)))"),
    // Unrounded groups.
    (8, "fold(c, all/4, s(w(0..2), w(2..4), acc))"),
    (8, "s(w(every(2,0)), w(every(2,1)), c)"),
    (8, "s(w(w(0..2), w(2..4), 4), w(5..8), c)"),
    (8, "fold(c, all/4, s(w(all), acc))"),
    // The first block, the last, every other one.
    (12, "fold(t(0..4, c), 4..12/4, s(all, acc))"),
    (12, "t(8..12, fold(c, 0..8/4, s(all, acc)))"),
    (16, "fold(c, all/8, t(4..8, s(0..4, acc)))"),
    // Three levels; c twice, a product twice, a product that does not count.
    (12, "s(t(s(0..3), s(3..6)), t(s(6..9), s(9..12)), c)"),
    (4, "s(all, c, c)"),
    (4, "s(s(all, c), c)"),
    (5, "s(0..5, 2, c)"),
    (5, "s(0..2, 3..5, c)"),
];

fn pick<'a, T: ?Sized>(random: &mut Random, choices: &[&'a T]) -> &'a T {
    choices[random.below(choices.len())]
}

fn nan(random: &mut Random, format: &str) -> String {
    let fixed = match format {
        "f64" => ["0x7ff8000000000000", "0x7fffffffffffffff"],
        "f16" => ["0x7e00", "0x7fff"],
        "bf16" => ["0x7fc0", "0x7fff"],
        _ => ["0x7fc00000", "0x7fffffff"],
    };
    match random.below(5) {
        0..3 => format!("nan = \"{}\"", pick(random, &fixed)),
        3 => format!("nan = {{ invalid = \"{}\" }}", pick(random, &fixed)),
        _ => {
            let order = pick(random, &["[\"value\"]", "[\"invalid\"]", "[\"operand\", \"invalid\"]"]);
            let operand = pick(random, &["quiet", fixed[0], fixed[1]]);
            format!("nan = {{ order = {order}, operand = \"{operand}\", invalid = \"{}\" }}", fixed[0])
        }
    }
}

/// The lines of an adder that rounds to a format, or does not round if `output` is `wide`.
fn adder(random: &mut Random, output: &str, integers: bool) -> String {
    let mut lines = vec![format!("output = \"{output}\"")];
    let mut line = |text: String| lines.push(text);
    if integers {
        if output != "wide" {
            line(format!("overflow = \"{}\"", pick(random, &["wrap", "wrap", "saturate"])));
        }
        lines.push("basis = \"assumed\"\nsource = \"here\"".into());
        return lines.join("\n");
    }
    if random.below(3) > 0 {
        let below =
            pick(random, &["truncate", "truncate", "truncate", "floor", "nearest", "sticky", "ones-complement"]);
        line(format!("below = \"{below}\""));
        let bits = random.between(8, 36);
        let exponent = pick(random, &["operands", "operands", "operands", "leading"]);
        if random.below(8) == 0 {
            let more = random.between(0, 6);
            line(format!(
                "grid = [{{ terms = \"products\", fraction_bits = {bits}, exponent = \"{exponent}\" }}, \
                 {{ terms = \"values\", fraction_bits = {} }}]",
                bits + more
            ));
        } else {
            line(format!("fraction_bits = {bits}\nexponent = \"{exponent}\""));
            if random.below(3) == 0 {
                line(format!("exponent_floor = {}", random.between(-150, -20)));
            }
            if random.below(6) == 0 {
                line(format!("carry_bits = {}", random.between(1, 6)));
            }
        }
        if random.below(10) == 0 {
            line(format!("value_cut_bits = {}", random.between(1, 3)));
        }
        if random.below(12) == 0 {
            line(format!("ignore_values_below = {}", random.between(-2, 2)));
        }
    }
    if random.below(8) == 0 {
        let bits = random.between(8, 30);
        let below = pick(random, &["truncate", "nearest", "sticky", "floor"]);
        line(format!("normalised_fraction_bits = {bits}\nnormalised_below = \"{below}\""));
    }
    if output != "wide" {
        let rounding = pick(
            random,
            &["nearest-even", "nearest-even", "nearest-even", "toward-zero", "toward-zero", "down", "up", "to-odd"],
        );
        line(format!("rounding = \"{rounding}\""));
        if random.below(3) == 0 {
            line(format!("overflow = \"{}\"", pick(random, &["infinity", "saturate", "nan"])));
        }
        if random.below(4) == 0 {
            let flushes = ["flush-before-rounding", "flush-after-rounding", "flush-to-positive-zero"];
            line(format!("subnormals = \"{}\"", pick(random, &flushes)));
        }
        if random.below(3) == 0 {
            line("zero = \"positive\"".into());
        }
        if random.below(10) == 0 {
            line("output_fraction_bits = 9".into());
        }
        line(nan(random, output));
    }
    lines.push("basis = \"assumed\"\nsource = \"here\"".into());
    lines.join("\n")
}

/// A unit, as a model of one operation.
pub(super) fn unit(random: &mut Random) -> Model {
    loop {
        let (a, b, c, d) = FORMATS[random.below(FORMATS.len())];
        let (least, tree) = TREES[random.below(TREES.len())];
        let k = if random.below(3) == 0 { least + random.below(4) } else { least };
        let integers = c.starts_with('s');
        // A format between that of the products and that of d.
        let between = match (integers, d) {
            (true, _) => pick(random, &["s32", "s32", "s16"]),
            (false, "f16") => pick(random, &["f16", "f16", "f32"]),
            (false, _) => pick(random, &["f32", "f32", "f32", "f64", "f16", "bf16"]),
        };
        let scale = if a == "e2m1" && random.flip() { ".block4.ue8m0" } else { "" };
        // The first adder in the tree is that of d.
        let (of_s, of_t) = if tree.starts_with('t') { (between, d) } else { (d, between) };
        let flush = pick(random, &["[]", "[]", "[]", "[]", "[\"a\", \"b\"]", "[\"c\"]", "[\"a\", \"b\", \"c\"]"]);
        let text = format!(
            "schema = \"mxprobe-model/1\"\nname = \"unit\"\ntitle = \"a unit that nobody has\"\nvendor = \"nobody\"\n\
             fingerprint = \"unit\"\n[sources]\nhere = \"drawn for a test\"\n\
             [adder.s]\n{}\n[adder.t]\n{}\n[adder.w]\n{}\n\
             [[unit]]\ntree = \"{tree}\"\nflush = {flush}\noperations = [\"dot.m1n1k{k}.{d}.{a}.{b}.{c}{scale}\"]\n\
             basis = \"assumed\"\nsource = \"here\"\n",
            adder(random, of_s, integers),
            adder(random, of_t, integers),
            adder(random, "wide", integers),
        );
        if let Ok(model) = Model::parse("unit.toml", &text, None) {
            return model;
        }
    }
}
