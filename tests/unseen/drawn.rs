//! Units drawn from a seed over everything that the model format can express.

use mxprobe::dots::{Random, seed_of};

use super::{
    Made,
    adders::{Kind, grid, one_of, rounded, seldom, wide},
};

/// The formats of a, b, c and d; combinations that many kinds of units have occur more often.
const FORMATS: [[&str; 4]; 15] = [
    ["f16", "f16", "f32", "f32"],
    ["f16", "f16", "f32", "f32"],
    ["f16", "f16", "f32", "f32"],
    ["bf16", "bf16", "f32", "f32"],
    ["bf16", "bf16", "f32", "f32"],
    ["tf32", "tf32", "f32", "f32"],
    ["e4m3", "e4m3", "f32", "f32"],
    ["e5m2", "e5m2", "f32", "f32"],
    ["e4m3", "e5m2", "f16", "f16"],
    ["f16", "f16", "f16", "f16"],
    ["f16", "f16", "f16", "f16"],
    ["f32", "f32", "f32", "f32"],
    ["f64", "f64", "f64", "f64"],
    ["bf16", "bf16", "bf16", "bf16"],
    ["f16", "f16", "f32", "f16"],
];

const SIZES: [usize; 11] = [2, 3, 4, 6, 8, 8, 12, 16, 16, 24, 32];

/// Draws unit `index` of a seed.
pub(crate) fn drawn(seed: u64, index: u64) -> Made {
    let random = &mut Random(seed_of(seed, index));
    let name = format!("drawn-{seed}-{index}");
    let mut made = if seldom(random, 10) { of_integers(random) } else { of_floats(random) };
    made.name = name;
    made
}

/// Draws a unit of integers.
fn of_integers(random: &mut Random) -> Made {
    let k = one_of(random, &[4, 8, 16, 32]);
    let [a, b] = one_of(random, &[["s8", "s8"], ["u8", "s8"], ["u8", "u8"], ["s16", "s16"]]);
    let overflow = |random: &mut Random| one_of(random, &["wrap", "saturate"]);
    let adder = |format: &str, overflow: &str| format!("output = \"{format}\"\noverflow = \"{overflow}\"");
    let s = adder("s32", overflow(random));
    let narrow = adder("s16", overflow(random));
    let size = one_of(random, &[1, 2, 4]);
    let (tree, d, s) = match random.below(5) {
        0 => ("s(all, c)".into(), "s32", s),
        1 => (format!("fold(c, all/{size}, s(all, acc))"), "s32", s),
        2 => (format!("fold(c, all/{size}, s(n(all), acc))"), "s32", s),
        3 => (format!("s(fold(none, all/{size}, n(all, acc)), c)"), "s32", s),
        _ => (format!("fold(c, all/{size}, s(all, acc))"), "s16", adder("s16", overflow(random))),
    };
    Made::new("", &format!("dot.m4n4k{k}.{d}.{a}.{b}.{d}"), &tree, &[("s", &s), ("n", &narrow)])
}

/// Draws a unit of floating-point formats.
fn of_floats(random: &mut Random) -> Made {
    let [a, b, c, d] = one_of(random, &FORMATS);
    let k = one_of(random, &SIZES);
    let kind = Kind::of(d);
    let grid_of = |random: &mut Random| if seldom(random, 4) { String::new() } else { grid(random, kind) };
    // Intermediate results are in d's format, in a wider one or in a narrower one.
    let inner = match random.below(6) {
        0 => one_of(random, &["f16", "bf16", "tf32"]),
        1 if d != "f64" => "f32",
        _ => d,
    };
    let of_s = grid_of(random);
    let s = rounded(random, d, &of_s);
    // The grid of the second adder is the same, or drawn anew.
    let of_t = if random.flip() { of_s.clone() } else { grid_of(random) };
    let t = rounded(random, inner, &of_t);
    let w = wide(&grid_of(random));
    let tree = tree(random, k);
    let adders = [("s", &*s), ("t", &*t), ("w", &*w)];
    let mut made = Made::new("", &format!("dot.m4n4k{k}.{d}.{a}.{b}.{c}"), &tree, &adders);
    if seldom(random, 6) {
        made.unit =
            one_of(random, &["flush = [\"a\", \"b\"]", "flush = [\"c\"]", "flush = [\"a\", \"b\", \"c\"]"]).into();
        if random.flip() {
            made.unit += "\nflush_to = \"positive-zero\"";
        }
    }
    if a.starts_with('e') && seldom(random, 4) {
        made.unit += &format!("\nconvert_to = \"{}\"", one_of(random, &["f16", "f32"]));
    }
    made
}

/// Draws a tree over `s`, which gives d, `t`, which rounds, and `w`, which does not.
fn tree(random: &mut Random, k: usize) -> String {
    let sizes: Vec<usize> = (2..=k).filter(|size| k.is_multiple_of(*size)).collect();
    let size = one_of(random, &sizes);
    let half = k / 2;
    let order = if seldom(random, 5) { "reverse" } else { "all" };
    let order =
        &if seldom(random, 6) && k.is_multiple_of(4) { "every(4, 0, 2, 1, 3)".to_owned() } else { order.into() };
    let through = one_of(random, &["s", "t"]);
    match random.below(20) {
        0 | 1 => "s(all, c)".into(),
        2..=4 => format!("fold(c, {order}/{size}, s(all, acc))"),
        5 | 6 => format!("fold(c, {order}/1, s(all, acc))"),
        7 => format!("s(pairs(all/{size}, {through}(all), {through}), c)"),
        8 => "s(t(every(2, 0)), t(every(2, 1)), c)".into(),
        9 => "s(w(every(2, 0)), w(every(2, 1)), c)".into(),
        10 => format!("s(fold(none, {order}/{size}, {through}(all, acc)), c)"),
        11 => format!("s(fold(none, 0..{half}/2, s(all, acc)), c, fold(none, {half}..{k}/2, {through}(all, acc)))"),
        12 => format!("fold(t(0..{half}, c), {half}..{k}/2, s(all, acc))"),
        13 => format!("fold(c, {order}/{size}, s(w(all), acc))"),
        14 => format!("fold(c, {order}/{size}, s(t(all), acc))"),
        15 => format!("fold(c, all/{size}, s(w(0..{0}), w({0}..{size}), acc))", (size / 2).max(1)),
        16 => format!("s({half}..{k}, fold(c, 0..{half}/2, t(all, acc)))"),
        17 => {
            let products: Vec<String> = (0..k).map(|at| format!("t({at})")).collect();
            format!("s({}, c)", products.join(", "))
        }
        18 => format!("s(t(c), fold(none, {order}/{size}, {through}(all, acc)))"),
        _ => format!("s(w(t(0..{half}), t({half}..{k})), c)"),
    }
}
