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
    ]
}
