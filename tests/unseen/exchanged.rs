//! Units whose groups of products show only where products are exchanged, or whose additions show only together.

use super::Made;

/// Returns the units.
pub(super) fn exchanged() -> Vec<Made> {
    vec![
        Made::new(
            "pairs-at-each-step-in-ones-complement",
            "dot.m4n4k16.f16.e4m3.e5m2.f16",
            "fold(c, all/4, s(w(0..2), w(2..4), acc))",
            &[
                (
                    "s",
                    "output = \"f16\"\nrounding = \"nearest-even\"\nfraction_bits = 8\nexponent = \"leading\"\n\
                     exponent_floor = -4\nbelow = \"ones-complement\"\nnan = \"0x7e00\"",
                ),
                ("w", "output = \"wide\""),
            ],
        ),
        Made::new(
            "residues-of-three-products",
            "dot.m4n4k3.bf16.bf16.bf16.bf16",
            "s(w(every(2, 0)), w(every(2, 1)), c)",
            &[
                (
                    "s",
                    "output = \"bf16\"\nrounding = \"nearest-even\"\nfraction_bits = 10\nbelow = \"floor\"\n\
                     zero = \"positive\"\nnan = \"0x7fff\"",
                ),
                ("w", "output = \"wide\"\nfraction_bits = 6\nexponent = \"leading\"\nbelow = \"truncate\""),
            ],
        ),
        Made::new(
            "sums-in-ones-complement-passed-on-to-c",
            "dot.m4n4k16.f16.e4m3.e5m2.f16",
            "s(w(t(0..8), t(8..16)), c)",
            &[
                (
                    "s",
                    "output = \"f16\"\nrounding = \"toward-zero\"\nfraction_bits = 15\nbelow = \"sticky\"\n\
                     nan = \"0x7fff\"",
                ),
                (
                    "t",
                    "output = \"f16\"\nrounding = \"nearest-even\"\nfraction_bits = 15\nbelow = \"sticky\"\n\
                     nan = { order = [\"invalid\", \"operand\"], invalid = \"0xfe00\" }",
                ),
                ("w", "output = \"wide\"\nfraction_bits = 10\nexponent_floor = -3\nbelow = \"ones-complement\""),
            ],
        ),
        Made::new(
            "half-a-unit-of-c-rounded-up",
            "dot.m4n4k2.f32.e5m2.e5m2.f32",
            "s(1..2, fold(c, 0..1/2, t(all, acc)))",
            &[
                (
                    "s",
                    "output = \"f32\"\nrounding = \"nearest-even\"\nfraction_bits = 41\nexponent_floor = -136\n\
                     below = \"truncate\"\noverflow = \"nan\"\nnan = \"0x7fc00000\"",
                ),
                (
                    "t",
                    "output = \"f32\"\nrounding = \"up\"\nbelow = \"truncate\"\nnan = \"0x7fc00000\"\n\
                     grid = [{ terms = \"products\", exponent = \"operands\", fraction_bits = 29 }, \
                     { terms = \"values\", exponent = \"operands\", fraction_bits = 9 }]",
                ),
            ],
        ),
        Made::new(
            "overflow-in-a-chain-is-nan",
            "dot.m4n4k16.f32.e5m2.e5m2.f32",
            "fold(c, all/1, s(all, acc))",
            &[(
                "s",
                "output = \"f32\"\nrounding = \"down\"\nfraction_bits = 21\nexponent = \"leading\"\n\
                 below = \"truncate\"\noverflow = \"nan\"\nsubnormals = \"flush-after-rounding\"\n\
                 zero = \"positive\"\nnan = { order = [\"value\", \"operand\"], invalid = \"0xffc00000\" }",
            )],
        ),
        Made::new(
            "c-rounded-alone-beside-a-chain",
            "dot.m4n4k16.f16.f16.f16.f16",
            "s(t(c), fold(none, all/4, t(all, acc)))",
            &[
                (
                    "s",
                    "output = \"f16\"\nrounding = \"toward-zero\"\nfraction_bits = 16\nexponent = \"leading\"\n\
                     below = \"nearest\"\noverflow = \"infinity\"\nnan = \"0x7e00\"",
                ),
                (
                    "t",
                    "output = \"f16\"\nrounding = \"toward-zero\"\nfraction_bits = 16\nexponent = \"leading\"\n\
                     below = \"nearest\"\noutput_fraction_bits = 5\n\
                     nan = { order = [\"operand\", \"value\"], invalid = \"0xfe00\" }",
                ),
            ],
        ),
        Made::new(
            "residues-with-sticky-bits-of-a-thirteenth-place",
            "dot.m4n4k24.f16.f16.f16.f32",
            "s(w(every(2, 0)), w(every(2, 1)), c)",
            &[
                (
                    "s",
                    "output = \"f16\"\nrounding = \"toward-zero\"\nfraction_bits = 57\nbelow = \"ones-complement\"\n\
                     nan = \"0x7e00\"",
                ),
                ("w", "output = \"wide\"\nfraction_bits = 13\nbelow = \"sticky\"\nignore_values_below = 2"),
            ],
        ),
        Made::new(
            "c-cut-like-the-sum-of-the-products",
            "dot.m4n4k8.f16.f16.f16.f32",
            "s(t(c), t(all))",
            &[
                (
                    "s",
                    "output = \"f16\"\nrounding = \"nearest-even\"\nfraction_bits = 10\nbelow = \"truncate\"\n\
                     subnormals = \"flush-to-positive-zero\"\nnan = \"0x7fff\"",
                ),
                (
                    "t",
                    "output = \"f16\"\nrounding = \"toward-zero\"\nfraction_bits = 7\nbelow = \"truncate\"\n\
                     nan = { order = [\"value\", \"operand\"], invalid = \"0xfe00\" }",
                ),
            ],
        ),
        Made::new(
            "every-sum-flushes-and-ends-at-plus-zero",
            "dot.m4n4k32.f32.tf32.tf32.f32",
            "fold(c, all/1, s(all, acc))",
            &[(
                "s",
                "output = \"f32\"\nrounding = \"toward-zero\"\nbelow = \"floor\"\nzero = \"positive\"\n\
                 subnormals = \"flush-to-positive-zero\"\n\
                 nan = { order = [\"operand\", \"value\"], operand = \"0x7fc00000\", invalid = \"0xffc00000\" }\n\
                 grid = [{ terms = \"products\", exponent = \"leading\", fraction_bits = 22 }, \
                 { terms = \"values\", exponent = \"leading\", fraction_bits = 29 }]",
            )],
        ),
        // Only cancellation within a group and the exponent of its sum tell it from its terms.
        Made::new(
            "one-product-and-a-group-of-two-added-exactly",
            "dot.m4n4k6.f32.bf16.bf16.f32",
            "fold(c, all/3, s(w(0..1), w(1..3), acc))",
            &[
                (
                    "s",
                    "output = \"f32\"\nrounding = \"toward-zero\"\nfraction_bits = 87\nbelow = \"truncate\"\n\
                     nan = \"0x7fffffff\"",
                ),
                ("w", "output = \"wide\""),
            ],
        ),
        Made::new(
            "pairs-beside-a-sum-that-loses-five-bits",
            "dot.m4n4k8.f32.e5m2.e5m2.f32",
            "fold(c, all/4, s(w(0..2), w(2..4), acc))",
            &[
                (
                    "s",
                    "output = \"f32\"\nrounding = \"nearest-even\"\nfraction_bits = 26\nexponent_floor = -138\n\
                     below = \"truncate\"\nvalue_cut_bits = 5\n\
                     nan = { order = [\"value\", \"operand\"], operand = \"0x7fffffff\", invalid = \"0xffc00000\" }",
                ),
                ("w", "output = \"wide\"\nfraction_bits = 27\nexponent_floor = -24\nbelow = \"truncate\""),
            ],
        ),
        // f64 on the way gives the same bits but where a sum loses one that decides how c is cut.
        Made::new(
            "sums-of-85-bits-that-f64-imitates",
            "dot.m4n4k16.f32.bf16.bf16.f32",
            "s(w(t(0..8), t(8..16)), c)",
            &[
                (
                    "s",
                    "output = \"f32\"\nrounding = \"to-odd\"\nfraction_bits = 28\nexponent = \"leading\"\n\
                     below = \"nearest\"\nsubnormals = \"flush-before-rounding\"\nnan = \"0x7fffffff\"",
                ),
                (
                    "t",
                    "output = \"f32\"\nrounding = \"toward-zero\"\nfraction_bits = 28\nexponent = \"leading\"\n\
                     below = \"nearest\"\nnan = \"0x7fc00000\"",
                ),
                ("w", "output = \"wide\"\nfraction_bits = 85\nbelow = \"truncate\"\ncarry_bits = 2"),
            ],
        ),
    ]
}
