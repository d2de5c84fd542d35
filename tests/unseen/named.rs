//! One unit of every kind that an earlier search refused or identified wrongly.

use super::Made;

/// Returns the lines of an adder whose result is f32.
fn f32_of(rest: &str) -> String {
    format!("output = \"f32\"\nnan = \"0x7fffffff\"\n{rest}")
}

/// Returns the lines of an adder with a grid of this many fraction bits and an f32 result.
fn cut(bits: u32, below: &str, rounding: &str) -> String {
    f32_of(&format!("fraction_bits = {bits}\nbelow = \"{below}\"\nrounding = \"{rounding}\""))
}

/// Returns the lines of an adder that loses no bit before it rounds to a format.
fn exact_in(format: &str, nan: &str, rounding: &str) -> String {
    format!("output = \"{format}\"\nnan = \"{nan}\"\nrounding = \"{rounding}\"")
}

/// Returns the units.
pub(super) fn named() -> Vec<Made> {
    let plain = cut(24, "truncate", "toward-zero");
    let exact = exact_in("f32", "0x7fffffff", "nearest-even");
    let f16 = exact_in("f16", "0x7e00", "nearest-even");
    let f16_of = |k: u32| format!("dot.m4n4k{k}.f32.f16.f16.f32");
    let bf16_of = |k: u32| format!("dot.m4n4k{k}.f32.bf16.bf16.f32");
    let f64_of = |k: u32| format!("dot.m4n4k{k}.f64.f64.f64.f64");
    let f64_rule = |rest: &str| format!("output = \"f64\"\nnan = \"0x7ff8000000000000\"\n{rest}");
    let s16 = |overflow: &str| format!("output = \"s16\"\noverflow = \"{overflow}\"");
    let s32 = |overflow: &str| format!("output = \"s32\"\noverflow = \"{overflow}\"");
    let wide = |rest: &str| format!("output = \"wide\"\n{rest}");
    let of = |lines: &str, more: &str| format!("{lines}\n{more}");
    let in_f16 = |rounding: &str, rest: &str| of(&exact_in("f16", "0x7e00", rounding), rest);
    let two_rules = |products: u32, values: u32, below: &str| {
        let rule = |terms: &str, bits: u32| format!("{{ terms = \"{terms}\", fraction_bits = {bits} }}");
        format!("below = \"{below}\"\ngrid = [{}, {}]", rule("products", products), rule("values", values))
    };
    let coarse_for_c = |rounding: &str| f32_of(&of(&format!("rounding = \"{rounding}\""), &two_rules(27, 5, "floor")));
    vec![
        // Units for which a wrong model was identified.
        Made::new("no-floor-8", &f16_of(16), "s(all, c)", &[("s", &cut(8, "truncate", "toward-zero"))]),
        Made::new(
            "one-block-carries-3",
            &f16_of(16),
            "s(12..16, s(8..12, t(4..8, s(0..4, c))))",
            &[("s", &plain), ("t", &of(&plain, "carry_bits = 3"))],
        ),
        Made::new(
            "c-rounds-to-infinity-beside-one",
            "dot.m4n4k2.f16.f16.f16.f32",
            "s(t(c), t(0..2))",
            &[
                (
                    "s",
                    "output = \"f16\"\nrounding = \"down\"\nfraction_bits = 12\nexponent_floor = -23\nbelow = \"floor\"\n\
                     subnormals = \"flush-before-rounding\"\nzero = \"positive\"\nnan = \"0x7fff\"",
                ),
                (
                    "t",
                    &f32_of("rounding = \"nearest-even\"\nfraction_bits = 12\nexponent_floor = -23\nbelow = \"floor\""),
                ),
            ],
        ),
        // Trees.
        Made::new(
            "first-block-differs",
            &f16_of(16),
            "fold(t(0..4, c), 4..16/4, s(all, acc))",
            &[("s", &plain), ("t", &cut(23, "truncate", "toward-zero"))],
        ),
        Made::new(
            "first-block-rounds-to-nearest",
            &bf16_of(16),
            "fold(t(0..8, c), 8..16/8, s(all, acc))",
            &[("s", &plain), ("t", &cut(26, "nearest", "nearest-even"))],
        ),
        Made::new(
            "three-levels",
            &f16_of(16),
            "fold(c, all/8, s(v(w(0..2), w(2..4)), v(w(4..6), w(6..8)), acc))",
            &[
                ("s", &plain),
                ("v", &wide("fraction_bits = 25\nbelow = \"truncate\"")),
                ("w", &wide("fraction_bits = 20\nbelow = \"floor\"")),
            ],
        ),
        Made::new(
            "three-levels-rounded",
            &bf16_of(16),
            "s(t(u(0..4), u(4..8)), t(u(8..12), u(12..16)), c)",
            &[("s", &exact), ("t", &cut(26, "truncate", "toward-zero")), ("u", &cut(24, "floor", "nearest-even"))],
        ),
        Made::new(
            "single-products-cut-to-14-bits",
            "dot.m4n4k8.f16.e4m3.e5m2.f16",
            "fold(c, all/2, s(w(0..1), w(1..2), acc))",
            &[
                ("s", "output = \"f16\"\nrounding = \"down\"\nnan = \"0x7e00\""),
                ("w", &wide("fraction_bits = 14\nbelow = \"truncate\"")),
            ],
        ),
        Made::new(
            "c-overflows-in-one-binade-of-32",
            &f16_of(24),
            "s(t(c), fold(none, all/6, t(all, acc)))",
            &[("s", &coarse_for_c("up")), ("t", &coarse_for_c("nearest-even"))],
        ),
        Made::new(
            "two-groups-a-step-in-ones-complement",
            "dot.m4n4k8.f16.e4m3.e5m2.f16",
            "fold(c, all/4, s(w(0..2), w(2..4), acc))",
            &[("s", &in_f16("to-odd", &two_rules(10, 9, "ones-complement"))), ("w", &wide(""))],
        ),
        Made::new(
            "residues-of-fp8-beside-c",
            "dot.m4n4k32.f32.e4m3.e4m3.f32",
            "s(w(every(2, 0)), w(every(2, 1)), c)",
            &[("s", &of(&cut(23, "floor", "toward-zero"), "exponent_floor = -25")), ("w", &wide(""))],
        ),
        Made::new(
            "one-product-and-a-group-of-two",
            "dot.m4n4k3.f16.e4m3.e5m2.f16",
            "fold(c, all/3, s(w(0..1), w(1..3), acc))",
            &[
                ("s", &in_f16("toward-zero", "fraction_bits = 8\nexponent_floor = -2\nbelow = \"truncate\"")),
                ("w", &wide("fraction_bits = 11\nexponent = \"leading\"\nbelow = \"floor\"")),
            ],
        ),
        Made::new(
            "residues-whose-invalid-comes-first",
            &f16_of(8),
            "s(w(every(2, 0)), w(every(2, 1)), c)",
            &[
                (
                    "s",
                    "output = \"f32\"\nrounding = \"nearest-even\"\n\
                     nan = { order = [\"invalid\", \"operand\"], invalid = \"0xffc00000\" }",
                ),
                ("w", &wide("fraction_bits = 22\nbelow = \"truncate\"")),
            ],
        ),
        Made::new(
            "sticky-below-c-beside-a-wide-sum",
            "dot.m4n4k16.f32.e5m2.e5m2.f32",
            "fold(c, all/2, s(w(all), acc))",
            &[
                (
                    "s",
                    "output = \"f32\"\nrounding = \"toward-zero\"\nbelow = \"sticky\"\nnan = \"0x7fffffff\"\n\
                     grid = [{ terms = \"products\", exponent = \"operands\", fraction_bits = 24 }, \
                     { terms = \"values\", exponent = \"leading\", fraction_bits = 27 }]",
                ),
                ("w", &wide("fraction_bits = 27\nexponent = \"leading\"\nexponent_floor = -130\nbelow = \"truncate\"")),
            ],
        ),
        Made::new(
            "residues-joined-before-c",
            &f16_of(16),
            "s(w(every(2, 0)), w(every(2, 1)), c)",
            &[("s", &cut(23, "nearest", "toward-zero")), ("w", &wide(""))],
        ),
        Made::new(
            "sums-joined-before-c",
            "dot.m4n4k6.f16.f16.f16.f32",
            "s(w(t(0..3), t(3..6)), c)",
            &[
                (
                    "s",
                    &of(
                        &exact_in("f16", "0x7e00", "toward-zero"),
                        "fraction_bits = 8\nexponent = \"leading\"\nbelow = \"truncate\"",
                    ),
                ),
                (
                    "t",
                    &of(
                        &exact_in("f16", "0x7e00", "to-odd"),
                        "fraction_bits = 8\nexponent = \"leading\"\nbelow = \"truncate\"",
                    ),
                ),
                ("w", &wide("")),
            ],
        ),
        Made::new(
            "halves-differ",
            &f16_of(16),
            "s(fold(none, 0..8/4, t(all, acc)), fold(none, 8..16/4, u(all, acc)), c)",
            &[("s", &exact), ("t", &cut(24, "truncate", "toward-zero")), ("u", &cut(22, "floor", "nearest-even"))],
        ),
        Made::new(
            "blocks-alternate",
            &f16_of(16),
            "t(12..16, s(8..12, t(4..8, s(0..4, c))))",
            &[("s", &plain), ("t", &cut(25, "floor", "nearest-even"))],
        ),
        // Products.
        Made::new(
            "products-in-f16",
            &f16_of(8),
            "fold(c, all/4, s(p(0), p(1), p(2), p(3), acc))",
            &[("s", &plain), ("p", &f16)],
        ),
        Made::new(
            "products-in-bf16",
            &bf16_of(8),
            "fold(c, all/1, s(p(0), acc))",
            &[("s", &exact), ("p", &exact_in("bf16", "0x7fc0", "nearest-even"))],
        ),
        Made::new("product-never-counts", &f16_of(8), "fold(c, 0..7/1, s(all, acc))", &[("s", &exact)]),
        Made::new("product-never-counts-in-a-block", &f16_of(8), "s(0..5, 6..8, c)", &[("s", &plain)]),
        Made::new("product-counts-twice", &f16_of(8), "s(all, 3, c)", &[("s", &plain)]),
        // c.
        Made::new(
            "c-rounded-twice",
            &f16_of(8),
            "s(all, t(c))",
            &[("s", &plain), ("t", &exact_in("bf16", "0x7fc0", "nearest-even"))],
        ),
        Made::new("c-left-out", &f16_of(8), "fold(none, all/4, s(all, acc))", &[("s", &plain)]),
        Made::new("c-added-twice", &f16_of(8), "s(s(all, c), c)", &[("s", &plain)]),
        Made::new("c-added-twice-at-once", &bf16_of(8), "s(all, c, c)", &[("s", &plain)]),
        // Grids.
        Made::new(
            "floor-and-floors",
            &f16_of(8),
            "fold(c, all/4, s(all, acc))",
            &[("s", &of(&cut(24, "floor", "toward-zero"), "exponent_floor = -20"))],
        ),
        Made::new(
            "zero-term-floor",
            &bf16_of(8),
            "fold(c, all/4, s(all, acc))",
            &[("s", &of(&cut(20, "truncate", "nearest-even"), "exponent_floor = 0"))],
        ),
        Made::new(
            "two-grids",
            &f16_of(8),
            "fold(c, all/4, s(all, acc))",
            &[(
                "s",
                &f32_of(
                    "rounding = \"nearest-even\"\nbelow = \"truncate\"\ngrid = [{ terms = \"products\", fraction_bits = 22 }, \
                     { terms = \"values\", exponent = \"leading\", fraction_bits = 26 }]",
                ),
            )],
        ),
        Made::new(
            "two-grids-and-a-floor",
            &bf16_of(8),
            "s(all, c)",
            &[(
                "s",
                &f32_of(
                    "rounding = \"toward-zero\"\nbelow = \"floor\"\ngrid = [{ fraction_bits = 27 }, \
                     { terms = \"values\", exponent = \"leading\", fraction_bits = 23, exponent_floor = -60 }]",
                ),
            )],
        ),
        Made::new("kept-70-of-bf16", &bf16_of(8), "s(all, c)", &[("s", &cut(70, "truncate", "nearest-even"))]),
        Made::new("kept-128-of-bf16", &bf16_of(8), "s(all, c)", &[("s", &cut(128, "truncate", "toward-zero"))]),
        Made::new(
            "fixed-point-f16",
            &f16_of(8),
            "s(all, c)",
            &[("s", &of(&cut(64, "truncate", "nearest-even"), "exponent_floor = 40"))],
        ),
        Made::new(
            "fixed-point-f16-wraps",
            &f16_of(8),
            "fold(c, all/4, s(all, acc))",
            &[("s", &of(&cut(40, "floor", "toward-zero"), "exponent_floor = 16\ncarry_bits = 4"))],
        ),
        Made::new(
            "ten-bits-half-up-in-groups",
            &bf16_of(8),
            "fold(c, all/4, s(t(all), acc))",
            &[("s", &cut(24, "truncate", "toward-zero")), ("t", &wide("fraction_bits = 10\nbelow = \"nearest-away\""))],
        ),
        // Intermediate results.
        Made::new(
            "f16-inside-fp8",
            "dot.m4n4k16.f32.e4m3.e4m3.f32",
            "fold(c, all/4, s(t(all), acc))",
            &[("s", &plain), ("t", &f16)],
        ),
        Made::new(
            "f16-chain-inside-fp8",
            "dot.m4n4k16.f32.e4m3.e4m3.f32",
            "s(fold(none, all/4, t(all, acc)), c)",
            &[("s", &exact), ("t", &f16)],
        ),
        Made::new(
            "chain-in-f64",
            &f16_of(8),
            "s(fold(c, all/1, t(all, acc)))",
            &[("s", &exact), ("t", &f64_rule("rounding = \"nearest-even\""))],
        ),
        Made::new(
            "inner-sums-in-tf32",
            &f16_of(16),
            "fold(c, all/4, s(t(all), acc))",
            &[("s", &exact), ("t", &exact_in("tf32", "0x7fc00000", "nearest-even"))],
        ),
        Made::new(
            "last-adder-flushes",
            &f16_of(16),
            "s(12..16, fold(c, 0..12/4, t(all, acc)))",
            &[("s", &of(&plain, "subnormals = \"flush-after-rounding\"")), ("t", &plain)],
        ),
        Made::new(
            "one-chain-of-two-flushes",
            &f64_of(16),
            "s(fold(none, 0..8/2, s(all, acc)), c, fold(none, 8..16/2, t(all, acc)))",
            &[
                ("s", &f64_rule("rounding = \"nearest-even\"")),
                ("t", &f64_rule("rounding = \"nearest-even\"\nsubnormals = \"flush-before-rounding\"")),
            ],
        ),
        Made::new(
            "first-block-in-ones-complement",
            "dot.m4n4k4.f32.e5m2.e5m2.f32",
            "fold(t(0..2, c), 2..4/2, s(all, acc))",
            &[
                (
                    "s",
                    "output = \"f32\"\nrounding = \"toward-zero\"\nfraction_bits = 25\nexponent = \"leading\"\n\
                     exponent_floor = -138\nbelow = \"truncate\"\noverflow = \"infinity\"\nnan = \"0x7fc00000\"",
                ),
                (
                    "t",
                    "output = \"f32\"\nrounding = \"nearest-even\"\nfraction_bits = 20\nexponent = \"leading\"\n\
                     exponent_floor = -59\nbelow = \"ones-complement\"\nnan = \"0x7fc00000\"",
                ),
            ],
        ),
        // The rule for values shows only where a partial sum that bf16 rounds meets products five binades below it.
        Made::new(
            "values-place-a-grid-five-bits-lower",
            &f16_of(12),
            "s(fold(none, 0..6/2, s(all, acc)), c, fold(none, 6..12/2, t(all, acc)))",
            &[
                ("s", "output = \"f32\"\nrounding = \"to-odd\"\nzero = \"positive\"\nnan = \"0x7fc00000\""),
                (
                    "t",
                    "output = \"bf16\"\nrounding = \"nearest-even\"\nbelow = \"truncate\"\nnan = \"0x7fff\"\n\
                     grid = [{ terms = \"products\", exponent = \"operands\", fraction_bits = 21 }, \
                     { terms = \"values\", exponent = \"operands\", fraction_bits = 26 }]",
                ),
            ],
        ),
        // Each product passes through an adder in f64 that rounds it up: rounding toward zero on a grid of 51 bits
        // and fewer bits of d imitate that.
        Made::new(
            "products-of-f64-rounded-up-alone",
            &f64_of(16),
            "s(t(0), t(1), t(2), t(3), t(4), t(5), t(6), t(7), t(8), t(9), t(10), t(11), t(12), t(13), t(14), t(15), c)",
            &[
                (
                    "s",
                    "output = \"f64\"\nrounding = \"nearest-even\"\nfraction_bits = 51\nexponent = \"operands\"\n\
                     below = \"truncate\"\noutput_fraction_bits = 45\nnan = \"0x7fffffffffffffff\"",
                ),
                ("t", "output = \"f64\"\nrounding = \"up\"\nnan = \"0x7fffffffffffffff\""),
            ],
        ),
        // With c cut by eight bits, one rounded addition explains nearly all that this unit computes.
        Made::new(
            "wide-sums-on-a-grid-above-another",
            &f16_of(24),
            "fold(c, all/24, s(w(0..12), w(12..24), acc))",
            &[
                (
                    "s",
                    "output = \"f32\"\nrounding = \"toward-zero\"\nfraction_bits = 20\nexponent = \"leading\"\n\
                     below = \"truncate\"\nnan = { order = [\"invalid\", \"operand\"], operand = \"0x7fc00000\", \
                     invalid = \"0xffc00000\" }",
                ),
                ("w", &wide("fraction_bits = 28\nexponent = \"leading\"\nbelow = \"truncate\"")),
            ],
        ),
        // bf16 as oneDNN and torch compute it on a CPU without instructions for it.
        Made::new(
            "chain-in-pairs-from-zero",
            &bf16_of(8),
            "s(fold(+0, every(8, 1, 0, 3, 2, 5, 4, 7, 6)/1, s(acc, all)), c)",
            &[("s", &exact)],
        ),
        Made::new(
            "lanes-from-zero-rounded-twice",
            "dot.m4n4k8.bf16.bf16.bf16.bf16",
            "t(s(s(s(s(s(4, s(0, +0)), s(5, s(1, +0))), s(6, s(2, +0))), s(7, s(3, +0))), c))",
            &[("s", &exact), ("t", &exact_in("bf16", "0x7fff", "nearest-even"))],
        ),
        Made::new(
            "last-adder-saturates",
            &bf16_of(16),
            "s(12..16, fold(c, 0..12/4, t(all, acc)))",
            &[("s", &of(&plain, "overflow = \"saturate\"")), ("t", &plain)],
        ),
        Made::new(
            "nan-quieted-inside",
            &f16_of(8),
            "s(t(0..4), t(4..8), c)",
            &[
                ("s", &exact),
                (
                    "t",
                    &f32_of("rounding = \"nearest-even\"\n")
                        .replace("nan = \"0x7fffffff\"", "nan = { invalid = \"0xffc00000\" }"),
                ),
            ],
        ),
        Made::new(
            "sums-on-a-fixed-grid-before-c",
            &f16_of(8),
            "fold(c, all/4, s(w(all), acc))",
            &[
                ("s", &of(&exact_in("f32", "0x7fc00000", "toward-zero"), "zero = \"positive\"")),
                ("w", &wide("fraction_bits = 27\nexponent_floor = -60\nbelow = \"truncate\"")),
            ],
        ),
        Made::new(
            "sums-handed-on-with-their-nan",
            &f16_of(8),
            "s(w(every(2, 0)), w(every(2, 1)), c)",
            &[
                (
                    "s",
                    "output = \"f32\"\nrounding = \"nearest-even\"\nfraction_bits = 25\nexponent = \"leading\"\n\
                     below = \"truncate\"\nnan = { order = [\"operand\", \"value\"], invalid = \"0xffc00000\" }",
                ),
                ("w", &wide("")),
            ],
        ),
        // Floors and values.
        Made::new(
            "chains-beside-c-above-a-floor",
            "dot.m4n4k8.f16.f16.f16.f16",
            "s(fold(none, 0..4/2, s(all, acc)), c, fold(none, 4..8/2, t(all, acc)))",
            &[
                (
                    "s",
                    &of(
                        &exact_in("f16", "0x7e00", "nearest-even"),
                        "fraction_bits = 12\nexponent_floor = 2\nbelow = \"truncate\"",
                    ),
                ),
                (
                    "t",
                    &of(
                        &exact_in("f16", "0x7e00", "toward-zero"),
                        "fraction_bits = 12\nexponent_floor = 2\nbelow = \"truncate\"",
                    ),
                ),
            ],
        ),
        Made::new(
            "c-left-out-in-one-binade",
            "dot.m4n4k8.f16.f16.f16.f32",
            "s(w(every(2, 0)), w(every(2, 1)), c)",
            &[
                (
                    "s",
                    "output = \"f16\"\nrounding = \"toward-zero\"\nfraction_bits = 61\nexponent = \"leading\"\n\
                     exponent_floor = -14\nbelow = \"sticky\"\nvalue_cut_bits = 3\nignore_values_below = 1\n\
                     overflow = \"saturate\"\nnan = \"0x7fff\"",
                ),
                ("w", &wide("fraction_bits = 9\nexponent = \"leading\"\nbelow = \"ones-complement\"")),
            ],
        ),
        Made::new(
            "seven-bits-of-c-beside-44-of-products",
            &f16_of(8),
            "s(all, c)",
            &[(
                "s",
                &f32_of(
                    "rounding = \"nearest-even\"\nbelow = \"sticky\"\noverflow = \"nan\"\n\
                     grid = [{ terms = \"products\", fraction_bits = 44 }, { terms = \"values\", fraction_bits = 7 }]",
                ),
            )],
        ),
        Made::new(
            "halves-cut-toward-zero-overflow-to-infinity",
            "dot.m4n4k12.f16.e4m3.e5m2.f16",
            "s(pairs(all/6, s(all), s), c)",
            &[(
                "s",
                "output = \"f16\"\nrounding = \"toward-zero\"\nfraction_bits = 8\nexponent_floor = -19\n\
                 below = \"truncate\"\noverflow = \"infinity\"\nnan = \"0x7fff\"",
            )],
        ),
        Made::new(
            "sixteen-arguments-by-remainders",
            &f16_of(16),
            "s(s(every(4, 0, 2, 1, 3)), c)",
            &[(
                "s",
                "output = \"f32\"\nrounding = \"nearest-even\"\nfraction_bits = 23\nexponent_floor = -41\n\
                 below = \"truncate\"\ncarry_bits = 3\noverflow = \"infinity\"\n\
                 nan = { order = [\"invalid\", \"operand\"], invalid = \"0xffc00000\" }",
            )],
        ),
        Made::new(
            "blocks-of-two-groups-in-ones-complement",
            "dot.m4n4k32.f32.tf32.tf32.f32",
            "fold(c, all/8, s(w(0..4), w(4..8), acc))",
            &[
                (
                    "s",
                    "output = \"f32\"\nrounding = \"toward-zero\"\nfraction_bits = 28\nbelow = \"truncate\"\n\
                     subnormals = \"flush-before-rounding\"\nzero = \"positive\"\nnan = \"0x7fc00000\"",
                ),
                ("w", &wide("fraction_bits = 22\nexponent_floor = -129\nbelow = \"ones-complement\"")),
            ],
        ),
        Made::new(
            "blocks-of-eighteen-bits-end-at-plus-zero",
            "dot.m4n4k6.f32.bf16.bf16.f32",
            "s(fold(none, all/3, t(all, acc)), c)",
            &[
                (
                    "s",
                    "output = \"f32\"\nrounding = \"toward-zero\"\nfraction_bits = 89\nexponent_floor = -133\n\
                     below = \"ones-complement\"\nnan = \"0x7fc00000\"",
                ),
                (
                    "t",
                    "output = \"f32\"\nrounding = \"nearest-even\"\nfraction_bits = 89\nexponent_floor = -133\n\
                     below = \"ones-complement\"\noutput_fraction_bits = 18\nzero = \"positive\"\n\
                     nan = { order = [\"value\", \"operand\"], invalid = \"0xffc00000\" }",
                ),
            ],
        ),
        Made::new(
            "blocks-whose-argument-order-an-attack-shows",
            "dot.m4n4k16.f16.e4m3.e5m2.f16",
            "fold(c, every(4, 0, 2, 1, 3)/4, s(all, acc))",
            &[(
                "s",
                "output = \"f16\"\nrounding = \"toward-zero\"\nfraction_bits = 60\nbelow = \"sticky\"\n\
                 nan = { order = [\"value\", \"operand\"], invalid = \"0xfe00\" }",
            )],
        ),
        Made::new(
            "c-rounded-up-far-below-its-range",
            "dot.m4n4k6.f32.f16.f16.f32",
            "s(t(c), fold(none, all/6, s(all, acc)))",
            &[
                (
                    "s",
                    "output = \"f32\"\nrounding = \"toward-zero\"\nfraction_bits = 23\nexponent = \"leading\"\n\
                     exponent_floor = -128\nbelow = \"nearest\"\nsubnormals = \"flush-after-rounding\"\n\
                     nan = \"0x7fc00000\"",
                ),
                (
                    "t",
                    "output = \"f32\"\nrounding = \"up\"\nfraction_bits = 53\nexponent = \"leading\"\n\
                     exponent_floor = -25\nbelow = \"truncate\"\n\
                     nan = { order = [\"invalid\", \"operand\"], operand = \"0x7fc00000\", invalid = \"0xffc00000\" }",
                ),
            ],
        ),
        Made::new(
            "sums-of-eighty-three-bits-passed-on",
            "dot.m4n4k16.f32.bf16.bf16.f32",
            "s(w(t(0..8), t(8..16)), c)",
            &[
                (
                    "s",
                    "output = \"f32\"\nrounding = \"up\"\nfraction_bits = 25\nbelow = \"nearest\"\n\
                     subnormals = \"flush-before-rounding\"\nzero = \"positive\"\nnan = \"0x7fc00000\"",
                ),
                (
                    "t",
                    "output = \"f32\"\nrounding = \"nearest-even\"\nfraction_bits = 25\nbelow = \"nearest\"\n\
                     nan = \"0x7fc00000\"",
                ),
                ("w", &wide("fraction_bits = 83\nbelow = \"truncate\"\nignore_values_below = 3")),
            ],
        ),
        Made::new(
            "seventy-five-bits-below-two-groups",
            "dot.m4n4k16.f16.f16.f16.f32",
            "s(w(every(2, 0)), w(every(2, 1)), c)",
            &[
                (
                    "s",
                    "output = \"f16\"\nrounding = \"nearest-even\"\nfraction_bits = 75\nexponent = \"leading\"\n\
                     below = \"floor\"\nnan = \"0x7e00\"",
                ),
                ("w", &wide("fraction_bits = 16\nexponent = \"leading\"\nbelow = \"truncate\"\ncarry_bits = 1")),
            ],
        ),
        Made::new(
            "nan-of-c-has-bits-of-its-own",
            "dot.m4n4k16.bf16.bf16.bf16.bf16",
            "s(t(c), fold(none, all/4, s(all, acc)))",
            &[
                (
                    "s",
                    "output = \"bf16\"\nrounding = \"nearest-even\"\nfraction_bits = 4\nexponent = \"leading\"\n\
                     exponent_floor = -5\nbelow = \"truncate\"\nvalue_cut_bits = 2\n\
                     nan = { order = [\"operand\", \"value\"], invalid = \"0xffc0\" }",
                ),
                (
                    "t",
                    "output = \"f32\"\nrounding = \"toward-zero\"\nfraction_bits = 4\nexponent = \"leading\"\n\
                     exponent_floor = -5\nbelow = \"truncate\"\nvalue_cut_bits = 2\nzero = \"positive\"\n\
                     nan = \"0x7fc00000\"",
                ),
            ],
        ),
        Made::new(
            "argument-order-reversed-in-blocks",
            "dot.m4n4k32.bf16.bf16.bf16.bf16",
            "s(t(c), fold(none, reverse/8, s(all, acc)))",
            &[
                (
                    "s",
                    "output = \"bf16\"\nrounding = \"toward-zero\"\n\
                     nan = { order = [\"value\", \"operand\"], invalid = \"0xffc0\" }",
                ),
                (
                    "t",
                    "output = \"bf16\"\nrounding = \"nearest-even\"\nfraction_bits = 12\nbelow = \"nearest\"\n\
                     carry_bits = 2\nnan = \"0x7fc0\"",
                ),
            ],
        ),
        Made::new(
            "seventeen-bits-of-c-beside-a-reversed-chain",
            "dot.m4n4k8.f32.f32.f32.f32",
            "s(t(c), fold(none, reverse/2, t(all, acc)))",
            &[
                (
                    "s",
                    "output = \"f32\"\nrounding = \"toward-zero\"\nsubnormals = \"flush-to-positive-zero\"\n\
                     nan = \"0x7fc00000\"",
                ),
                ("t", &of(&cut(25, "truncate", "nearest-even"), "ignore_values_below = 1\noutput_fraction_bits = 17")),
            ],
        ),
        Made::new(
            "eight-products-and-a-chain-cut-to-eight-bits",
            "dot.m4n4k16.f32.e4m3.e4m3.f32",
            "s(8..16, fold(c, 0..8/2, t(all, acc)))",
            &[
                (
                    "s",
                    "output = \"f32\"\nrounding = \"toward-zero\"\nfraction_bits = 8\nexponent = \"leading\"\n\
                     below = \"ones-complement\"\nnan = \"0x7fc00000\"",
                ),
                (
                    "t",
                    "output = \"f32\"\nrounding = \"toward-zero\"\nfraction_bits = 20\nexponent = \"leading\"\n\
                     exponent_floor = -132\nbelow = \"truncate\"\nzero = \"positive\"\n\
                     normalised_fraction_bits = 28\nnormalised_below = \"truncate\"\n\
                     nan = { order = [\"operand\", \"value\"], invalid = \"0xffc00000\" }",
                ),
            ],
        ),
        // f64.
        Made::new(
            "f16-sums-added-before-c-in-f64",
            &f64_of(3),
            "s(w(t(0..1), t(1..3)), c)",
            &[
                (
                    "s",
                    &f64_rule(
                        "rounding = \"toward-zero\"\nfraction_bits = 68\nbelow = \"truncate\"\n\
                         ignore_values_below = 3\nsubnormals = \"flush-after-rounding\"\nzero = \"positive\"",
                    ),
                ),
                ("t", &in_f16("nearest-even", "fraction_bits = 68\nbelow = \"truncate\"\nignore_values_below = 3")),
                ("w", &wide("fraction_bits = 41\nbelow = \"truncate\"")),
            ],
        ),
        Made::new(
            "first-block-ends-at-plus-zero",
            &f64_of(16),
            "fold(t(0..8, c), 8..16/2, s(all, acc))",
            &[
                (
                    "s",
                    &f64_rule(
                        "rounding = \"nearest-even\"\nfraction_bits = 75\nexponent_floor = -1029\nbelow = \"truncate\"",
                    ),
                ),
                (
                    "t",
                    "output = \"f64\"\nrounding = \"up\"\nfraction_bits = 75\nexponent_floor = -1029\n\
                     below = \"truncate\"\nzero = \"positive\"\nnan = \"0x7fffffffffffffff\"",
                ),
            ],
        ),
        Made::new(
            "pairs-under-a-sum-that-saturates",
            &f64_of(24),
            "s(pairs(all/2, t(all), t), c)",
            &[
                (
                    "s",
                    &f64_rule(
                        "rounding = \"down\"\nfraction_bits = 56\nexponent_floor = -1025\nbelow = \"truncate\"\n\
                         overflow = \"saturate\"",
                    ),
                ),
                (
                    "t",
                    "output = \"f64\"\nrounding = \"nearest-even\"\nfraction_bits = 56\nexponent_floor = -1025\n\
                     below = \"truncate\"\nzero = \"positive\"\n\
                     nan = { order = [\"operand\", \"value\"], invalid = \"0xfff8000000000000\" }",
                ),
            ],
        ),
        Made::new(
            "f64-of-100-bits",
            &f64_of(8),
            "s(all, c)",
            &[("s", &f64_rule("rounding = \"nearest-even\"\nfraction_bits = 100\nbelow = \"truncate\""))],
        ),
        Made::new(
            "f64-to-odd",
            &f64_of(8),
            "fold(c, all/1, s(all, acc))",
            &[("s", &f64_rule("rounding = \"to-odd\""))],
        ),
        Made::new(
            "f64-chain",
            &f64_of(32),
            "fold(c, all/1, s(all, acc))",
            &[("s", &f64_rule("rounding = \"nearest-even\""))],
        ),
        // Imitated by products that are rounded alone, whose results have no subnormals.
        Made {
            unit: "flush = [\"c\"]\nconvert_to = \"f16\"".into(),
            ..Made::new(
                "chain-of-converted-operands",
                "dot.m4n4k8.f32.e4m3.e4m3.f32",
                "fold(c, all/1, s(all, acc))",
                &[(
                    "s",
                    "output = \"f32\"\nrounding = \"nearest-even\"\nfraction_bits = 28\nexponent_floor = -128\n\
                     below = \"floor\"\noutput_fraction_bits = 18\nzero = \"positive\"\n\
                     nan = { order = [\"invalid\", \"operand\"], operand = \"0x7fffffff\", invalid = \"0xffc00000\" }",
                )],
            )
        },
        // Imitated by groups that keep a sticky bit above the same floor.
        Made {
            unit: "flush = [\"a\", \"b\", \"c\"]".into(),
            ..Made::new(
                "exact-pairs-beside-a-floor",
                "dot.m4n4k16.f16.f16.f16.f16",
                "fold(c, all/4, s(w(0..2), w(2..4), acc))",
                &[
                    (
                        "s",
                        "output = \"f16\"\nrounding = \"nearest-even\"\nfraction_bits = 11\nexponent_floor = -14\n\
                         below = \"floor\"\nnan = \"0x7fff\"",
                    ),
                    ("w", &wide("fraction_bits = 82\nexponent_floor = -22\nbelow = \"truncate\"")),
                ],
            )
        },
        // As fp8 `mma.sync` computes on Hopper, and DMMA chooses among NaN.
        Made {
            unit: "convert_to = \"f16\"".into(),
            ..Made::new(
                "operands-converted-to-f16",
                "dot.m4n4k16.f32.e4m3.e5m2.f32",
                "s(c, t(every(4, 2, 3), t(every(4, 0, 1), +0)))",
                &[("s", &exact), ("t", &cut(25, "truncate", "toward-zero"))],
            )
        },
        Made::new(
            "nan-of-b-before-that-of-c",
            &f64_of(4),
            "fold(c, all/1, s(all, acc))",
            &[(
                "s",
                "output = \"f64\"\nrounding = \"nearest-even\"\n\
                 nan = { order = [\"b\", \"value\", \"operand\"], invalid = \"0xfff8000000000000\" }",
            )],
        ),
        Made {
            unit: "convert_to = \"f32\"".into(),
            ..Made::new(
                "operands-converted-to-f32",
                "dot.m4n4k16.f16.e4m3.e5m2.f16",
                "fold(c, all/8, s(all, acc))",
                &[(
                    "s",
                    "output = \"f16\"\nrounding = \"nearest-even\"\nfraction_bits = 16\nbelow = \"truncate\"\n\
                     zero = \"positive\"\nnan = \"0x7e00\"",
                )],
            )
        },
        Made {
            unit: "flush = [\"c\"]".into(),
            ..Made::new(
                "a-bit-more-once-normalised-than-at-alignment",
                "dot.m4n4k8.f32.bf16.bf16.f32",
                "fold(c, all/2, s(all, acc))",
                &[(
                    "s",
                    "output = \"f32\"\nrounding = \"nearest-even\"\nfraction_bits = 26\nbelow = \"truncate\"\n\
                     zero = \"positive\"\nnormalised_fraction_bits = 27\nnormalised_below = \"truncate\"\n\
                     nan = \"0x7fffffff\"",
                )],
            )
        },
        Made::new(
            "sums-of-21-bits-passed-on-to-one-of-11",
            "dot.m4n4k8.f32.e4m3.e4m3.f32",
            "s(w(every(2, 0)), w(every(2, 1)), c)",
            &[
                (
                    "s",
                    "output = \"f32\"\nrounding = \"nearest-even\"\nfraction_bits = 11\nexponent = \"leading\"\n\
                     below = \"truncate\"\nnan = \"0x7fffffff\"",
                ),
                ("w", &wide("fraction_bits = 21\nbelow = \"nearest\"")),
            ],
        ),
        Made::new(
            "sixty-bits-below-the-leading-bit-of-products",
            "dot.m4n4k16.f32.f32.f32.f32",
            "fold(c, all/4, s(w(0..2), w(2..4), acc))",
            &[
                (
                    "s",
                    "output = \"f32\"\nrounding = \"to-odd\"\nfraction_bits = 25\nexponent = \"leading\"\n\
                     below = \"truncate\"\nnan = \"0x7fffffff\"",
                ),
                ("w", &wide("fraction_bits = 60\nexponent = \"leading\"\nbelow = \"truncate\"")),
            ],
        ),
        Made::new(
            "a-floor-two-binades-below-the-range",
            "dot.m4n4k4.f32.bf16.bf16.f32",
            "fold(c, all/4, s(t(all), acc))",
            &[
                (
                    "s",
                    "output = \"f32\"\nrounding = \"toward-zero\"\nfraction_bits = 10\nbelow = \"truncate\"\n\
                     zero = \"positive\"\nnan = \"0x7fffffff\"",
                ),
                (
                    "t",
                    "output = \"f32\"\nrounding = \"toward-zero\"\nfraction_bits = 29\nexponent = \"leading\"\n\
                     exponent_floor = -128\nbelow = \"truncate\"\ncarry_bits = 4\nnan = \"0x7fc00000\"",
                ),
            ],
        ),
        Made::new(
            "products-alone-in-f64-floored-at-87-bits",
            "dot.m4n4k2.f64.f64.f64.f64",
            "s(t(0), t(1), c)",
            &[
                ("s", "output = \"f64\"\nrounding = \"nearest-even\"\nnan = \"0x7fffffffffffffff\""),
                (
                    "t",
                    "output = \"f64\"\nrounding = \"nearest-even\"\nfraction_bits = 87\nexponent = \"leading\"\n\
                     below = \"floor\"\nnan = \"0x7fffffffffffffff\"",
                ),
            ],
        ),
        Made::new(
            "c-cut-by-ragged-blocks-below-a-floor",
            "dot.m4n4k6.f32.f32.f32.f32",
            "s(3..6, fold(c, 0..3/2, t(all, acc)))",
            &[
                (
                    "s",
                    "output = \"f32\"\nrounding = \"toward-zero\"\nfraction_bits = 25\nexponent = \"leading\"\n\
                     below = \"floor\"\noverflow = \"nan\"\nzero = \"positive\"\n\
                     nan = { order = [\"invalid\", \"operand\"], operand = \"0x7fc00000\", invalid = \"0xffc00000\" }",
                ),
                (
                    "t",
                    "output = \"f32\"\nrounding = \"nearest-even\"\nfraction_bits = 10\nexponent = \"operands\"\n\
                     exponent_floor = -3\nbelow = \"truncate\"\nvalue_cut_bits = 5\nnan = \"0x7fc00000\"",
                ),
            ],
        ),
        Made::new(
            "c-by-the-adder-of-the-products",
            "dot.m4n4k8.f32.bf16.bf16.f32",
            "s(t(c), t(all))",
            &[
                (
                    "s",
                    "output = \"f32\"\nrounding = \"down\"\nfraction_bits = 9\nexponent = \"operands\"\n\
                     below = \"truncate\"\noverflow = \"infinity\"\nnan = \"0x7fc00000\"",
                ),
                (
                    "t",
                    "output = \"f32\"\nrounding = \"nearest-even\"\nsubnormals = \"flush-after-rounding\"\n\
                     zero = \"positive\"\nnan = \"0x7fffffff\"",
                ),
            ],
        ),
        Made::new(
            "c-flushed-by-the-adder-of-the-products",
            &f64_of(4),
            "s(t(c), t(every(4, 0, 2, 1, 3)))",
            &[
                (
                    "s",
                    "output = \"f64\"\nrounding = \"up\"\nfraction_bits = 9\nexponent = \"leading\"\n\
                     exponent_floor = -19\nbelow = \"sticky\"\n\
                     nan = { order = [\"value\", \"operand\"], invalid = \"0xfff8000000000000\" }",
                ),
                (
                    "t",
                    &f64_rule(
                        "rounding = \"nearest-even\"\nfraction_bits = 7\nexponent = \"leading\"\n\
                         exponent_floor = -1032\nbelow = \"truncate\"\nsubnormals = \"flush-after-rounding\"",
                    ),
                ),
            ],
        ),
        Made::new(
            "the-second-of-two-chains-keeps-subnormals",
            &bf16_of(32),
            "s(fold(none, 0..16/2, s(all, acc)), c, fold(none, 16..32/2, t(all, acc)))",
            &[
                (
                    "s",
                    "output = \"f32\"\nrounding = \"toward-zero\"\nsubnormals = \"flush-after-rounding\"\n\
                     nan = { order = [\"invalid\", \"operand\"], invalid = \"0xffc00000\" }",
                ),
                ("t", "output = \"f32\"\nrounding = \"toward-zero\"\nnan = \"0x7fc00000\""),
            ],
        ),
        Made::new(
            "blocks-on-a-wide-grid-for-products",
            "dot.m4n4k4.f32.tf32.tf32.f32",
            "s(2..4, fold(c, 0..2/2, t(all, acc)))",
            &[
                (
                    "s",
                    &of(
                        "output = \"f32\"\nrounding = \"nearest-even\"\nnan = \"0x7fc00000\"",
                        &two_rules(60, 24, "truncate"),
                    ),
                ),
                (
                    "t",
                    &of(
                        "output = \"f32\"\nrounding = \"up\"\n\
                         nan = { order = [\"operand\", \"value\"], invalid = \"0xffc00000\" }",
                        &two_rules(60, 24, "truncate"),
                    ),
                ),
            ],
        ),
        Made {
            unit: "flush = [\"a\", \"b\", \"c\"]".into(),
            ..Made::new(
                "a-chain-of-eight-products-on-four-bits",
                "dot.m4n4k8.bf16.bf16.bf16.bf16",
                "fold(c, all/1, s(all, acc))",
                &[(
                    "s",
                    "output = \"bf16\"\nrounding = \"toward-zero\"\nfraction_bits = 4\nbelow = \"floor\"\n\
                     nan = \"0x7fff\"",
                )],
            )
        },
        // A format with a single NaN in A, and one with several in B.
        Made::new(
            "nan-of-a-and-of-b-in-fours",
            "dot.m4n4k32.f16.e4m3.e5m2.f16",
            "fold(c, every(4, 0, 2, 1, 3)/32, s(all, acc))",
            &[(
                "s",
                "output = \"f16\"\nrounding = \"toward-zero\"\noutput_fraction_bits = 5\noverflow = \"nan\"\n\
                 nan = { order = [\"operand\", \"value\"], invalid = \"0xfe00\" }",
            )],
        ),
        // Integers.
        Made::new(
            "saturating-16-bits",
            "dot.m4n4k8.s32.s8.s8.s32",
            "s(fold(none, all/1, n(all, acc)), c)",
            &[("s", &s32("wrap")), ("n", &s16("saturate"))],
        ),
        Made::new(
            "saturating-pairs",
            "dot.m4n4k8.s32.u8.s8.s32",
            "s(n(0..2), n(2..4), n(4..6), n(6..8), c)",
            &[("s", &s32("wrap")), ("n", &s16("saturate"))],
        ),
        Made::new(
            "accumulator-of-16-bits",
            "dot.m4n4k8.s16.s8.s8.s16",
            "fold(c, all/2, n(all, acc))",
            &[("n", &s16("saturate"))],
        ),
        Made::new(
            "chain-saturates-at-each-step",
            "dot.m4n4k8.s32.s16.s16.s32",
            "fold(c, all/1, s(all, acc))",
            &[("s", &s32("saturate"))],
        ),
    ]
}
