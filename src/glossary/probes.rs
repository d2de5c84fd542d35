//! The probes of matrix operations but those of sums: how each is asked, and what each answer means for who computes with the
//! unit.

use super::Text;

pub(super) const FASI: &str = "Fasi, Higham, Mikaitis, Pranesh, Numerical behavior of NVIDIA tensor cores (2021)";
pub(super) const SUBNORMALS: &str = "IEEE 754-2019, 7.5 and 3.4; Fasi et al. (2021), section 3.1.1";
pub(super) const OWN: &str = "this project: docs/testing.md says how the probe itself is tested";

/// A probe; what it asks stands in the list of probes.
pub(super) const fn probe(
    name: &'static str,
    how: &'static str,
    answers: &'static [(&'static str, &'static str)],
    source: &'static str,
) -> Text {
    Text { name, about: "", how, answers, source }
}

const READ: &[(&str, &str)] = &[
    ("kept", "subnormal inputs count: small values lose digits, not everything"),
    ("zero", "inputs below the smallest normal value count as zero: scale data up, or results underflow early"),
];

const BITS_READ: &[(&str, &str)] = &[
    ("a number", "so many fraction bits of the element take part"),
    (
        "{bits, rest}",
        "the register is wider than the format, as for tf32; `cut` ignores the rest, which biases toward zero, \
         `rounded` does not: convert with rounding before the call if it is `cut`",
    ),
];

pub(super) const TEXTS: &[Text] = &[
    probe(
        "self_test",
        "Tiles of small integers, whose sums every format holds exactly, in layouts that show a transposed or misplaced \
         element.",
        &[
            ("true", "the tile is laid out as it is described; the other questions are meaningful"),
            ("failed", "wrong results before any question of rounding: nothing else was asked"),
        ],
        OWN,
    ),
    probe(
        "determinism",
        "The same tiles twice.",
        &[
            ("true", "repeating a multiply repeats its bits"),
            ("false", "results vary by themselves: no other finding can be trusted, and none was asked"),
        ],
        OWN,
    ),
    probe(
        "position",
        "One dot at every row and column of several tiles.",
        &[
            ("true", "every element of D is computed alike"),
            ("false", "a result depends on where it stands: padding or transposing a matrix changes bits"),
        ],
        OWN,
    ),
    probe(
        "independence",
        "One dot at one position of a tile, everything else random.",
        &[
            ("true", "an element depends on its own row and column alone"),
            ("false", "neighbours change a result, as where a block shares an exponent"),
        ],
        OWN,
    ),
    probe("subnormals.a", "The smallest subnormal of A times a power of two.", READ, SUBNORMALS),
    probe("subnormals.b", "The smallest subnormal of B times a power of two.", READ, SUBNORMALS),
    probe(
        "subnormals.c",
        "The largest subnormal as c, positive and negative, beside products of zero.",
        &[
            ("kept", "a running sum may become subnormal and go on"),
            ("zero", "a subnormal running sum is lost: read as zero, or flushed when it is returned"),
        ],
        SUBNORMALS,
    ),
    probe(
        "products.bits_read_a",
        "1 + 2^−t times 1, for growing t; then every lower bit of the register.",
        BITS_READ,
        FASI,
    ),
    probe("products.bits_read_b", "As products.bits_read_a, with the operands exchanged.", BITS_READ, FASI),
    probe(
        "products.exact",
        "The longest significands, less their product as D holds it: what is left.",
        &[
            ("exact", "all bits of a product reach the sum"),
            ("exact to the grid", "a product is cut only where alignment cuts any term"),
            (
                "rounded to nearest, rounded toward zero",
                "each product is rounded before it is added: an error for each k",
            ),
            ("N fraction bits", "the multiplier itself is short"),
        ],
        FASI,
    ),
    probe(
        "products.exponent",
        "1.5·1.5·M less the same, beside the lowest bit kept: a significand of 2 or more moves the grid only if it is \
         renormalised.",
        &[
            ("operands", "aligned by the sum of the operands' exponents: one bit more survives beside such products"),
            ("leading", "aligned by the leading bit: products are renormalised first"),
        ],
        OWN,
    ),
    probe(
        "products.overflow",
        "A product beyond the range of D, and one of the other sign that brings the sum back.",
        &[("false", "only the sum has to fit"), ("true", "one large product makes infinity, whatever is added to it")],
        FASI,
    ),
    probe(
        "subnormals.d",
        "One product below the normal range, or a difference that falls there.",
        &[
            ("kept", "gradual underflow"),
            (
                "flushed to signed zero, flushed to zero",
                "results below the smallest normal value vanish (FTZ): scale up",
            ),
        ],
        SUBNORMALS,
    ),
    probe(
        "subnormals.tininess",
        "The smallest normal value less a quarter of a subnormal place.",
        &[
            ("after rounding", "a value that rounds to the smallest normal one is kept"),
            ("before rounding", "it is flushed, although its rounded value would be normal"),
        ],
        "IEEE 754-2019, 7.5",
    ),
    probe(
        "specials.nan",
        "NaNs with payloads in A, B and C, and the operations that are invalid.",
        &[
            ("one pattern", "every NaN looks the same: payloads cannot be traced"),
            ("several", "the bits returned for each case; programs that compare bits have to expect them"),
            ("{not_nan}", "a NaN is lost: errors in the data do not show in the result"),
        ],
        "IEEE 754-2019, 6.2",
    ),
    probe(
        "specials.infinity",
        "Infinity in A and in C; the largest C and as large a product, of both signs.",
        &[
            ("0x7f800000 and the like", "the bits of infinity: overflow shows"),
            ("the largest value", "overflow saturates, or rounding is not to nearest: it does not show"),
        ],
        "IEEE 754-2019, 6.1 and 7.4",
    ),
    probe(
        "specials.zero",
        "Products and c of both zeros, and 1 − 1.",
        &[
            ("as IEEE 754", "−0 only from −0 alone"),
            ("always +0", "sums start from +0: the sign of a zero does not pass"),
        ],
        "IEEE 754-2019, 6.3",
    ),
    probe(
        "integers.exact",
        "Extreme operands, once and at every k, beside a c of middle size, where the sum is within range.",
        &[("true", "integer sums are exact"), ("false", "a sum within range is wrong")],
        OWN,
    ),
    probe(
        "integers.overflow",
        "Sums beyond both ends of the range.",
        &[
            ("wraps", "modulo a power of two: intermediate overflow is harmless if the last sum fits"),
            ("saturates", "clamped to the ends of the range"),
        ],
        OWN,
    ),
    probe(
        "integers.saturation_stage",
        "A sum that leaves the range and comes back.",
        &[
            ("once", "only the whole sum is clamped"),
            ("staged", "a partial sum is clamped first: the result depends on the order"),
        ],
        OWN,
    ),
    probe(
        "scales.value",
        "Codes of the scale beside a product of 1, on A and on B.",
        &[("exact", "a scale multiplies exactly"), ("inexact", "a scale is rounded or clamped on the way")],
        "OCP Microscaling Formats Specification 1.0, section 5.4",
    ),
    probe(
        "scales.cover",
        "A scale of 2 on each block in turn, and a product of 1 at each k.",
        &[
            ("a number", "so many consecutive k share one scale"),
            ("other", "scales act on other k than the id declares"),
        ],
        "OCP Microscaling Formats Specification 1.0, section 5",
    ),
    probe(
        "scales.specials",
        "Zero and NaN codes of the scale.",
        &[("NaN bits", "a NaN scale shows in the result"), ("a number", "the code counts as an ordinary value")],
        "OCP Microscaling Formats Specification 1.0, section 5.4",
    ),
    probe(
        "instruction",
        "Read from the code that the driver made, where it shows it.",
        &[
            ("names and counts", "the matrix instructions of the loop"),
            ("none", "no matrix instruction: see emulation"),
            ("unsupported", "the driver does not show its code"),
        ],
        OWN,
    ),
    probe(
        "emulation",
        "What stands in the driver's code in place of the matrix instruction.",
        &[
            ("false", "the matrix unit runs the operation"),
            ("true", "other instructions do: expect another speed, and other bits than from the unit"),
        ],
        OWN,
    ),
];
