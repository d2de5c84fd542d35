//! The probes of scalar arithmetic, and those that hold a matrix operation against it.

use super::{
    Text,
    probes::{SUBNORMALS, probe},
};

const IEEE: &str = "IEEE 754-2019, 4.3, 5.4 and 6.2";
const NVIDIA: &str = "NVIDIA, Precision and Performance: floating point and IEEE 754 compliance (2011), Figures 1 to 5";
const FUNCTION: &str = "Every pair of special values and 1,500 drawn operands, about ties and the ends of the range, against \
                        the exact result in each direction, with subnormals kept and flushed.";

const CORRECT: &[(&str, &str)] = &[
    ("RNE, RZ, RD or RU", "correctly rounded in that direction: nothing is lost but what the format cannot hold"),
    ("RZ or RD", "no result is negative, as of a square root, so that the two directions are one"),
    ("exact", "every result tried is a value of the format"),
    ("within N ulp", "an approximation: so far from the correctly rounded result at the most, among the calls tried"),
];

const STEPPED: &[(&str, &str)] = &[
    ("RNE, fused", "one rounding for a product and the sum it joins: more accurate, and other bits than two steps"),
    ("RNE, separate", "each step is rounded: the same bits as the same steps on any machine that follows IEEE 754"),
    (
        "fused: EXPRESSION",
        "contracted in another way than each product with the sum before it, as the expression says; p0 is the rounded \
         product of a0 and b0: other bits than either of the two",
    ),
    ("partly fused", "some additions are contracted and others are not"),
    ("reordered", "the compiler changed the order of the sum: results depend on the compiler"),
    ("by way of f64", "computed wider, then rounded: nearly always the fused result, and not always"),
];

pub(super) const TEXTS: &[Text] = &[
    probe("function.add", FUNCTION, CORRECT, IEEE),
    probe("function.subtract", FUNCTION, CORRECT, IEEE),
    probe("function.multiply", FUNCTION, CORRECT, IEEE),
    probe("function.divide", FUNCTION, CORRECT, IEEE),
    probe("function.square_root", FUNCTION, CORRECT, IEEE),
    probe("function.convert", FUNCTION, CORRECT, IEEE),
    probe("function.fma", FUNCTION, STEPPED, NVIDIA),
    probe("function.multiply_add", FUNCTION, STEPPED, NVIDIA),
    probe("function.dot4", FUNCTION, STEPPED, NVIDIA),
    probe(
        "dot4.error",
        "2,000 dots of elements between -1 and 2, against the sum in f128; in units of half the last place of 1.",
        &[
            ("serial, fma, pairwise", "the mean error of each; the fused one is usually the smallest"),
            ("equal numbers", "the functions compute the same: the compiler made one of another"),
        ],
        NVIDIA,
    ),
    probe(
        "mode",
        "What every function was found to do, against the words of the mode: a control word's bits, an execution mode, an \
         instruction's modifiers.",
        &[
            ("true", "the mode can be relied on"),
            ("false", "some functions ignore a part of it; the statement names them"),
        ],
        IEEE,
    ),
    probe(
        "subnormals.inputs",
        FUNCTION,
        &[
            ("read", "subnormal inputs count: small values lose digits, not everything"),
            ("zero", "inputs below the smallest normal value count as zero: scale data up, or results underflow early"),
            ("differs", "functions differ; the statement names them"),
        ],
        SUBNORMALS,
    ),
    probe(
        "subnormals.results",
        FUNCTION,
        &[
            ("kept", "gradual underflow: x - y is zero only where x equals y"),
            ("zero", "results below the smallest normal value are lost"),
            ("differs", "functions differ; the statement names them"),
        ],
        SUBNORMALS,
    ),
    probe(
        "nan.invalid",
        "Inf - Inf, 0 times Inf, 0 / 0, the square root of -1, and 0 times Inf + 1.",
        &[
            ("bits", "what an invalid operation gives"),
            ("differs", "it depends on the operation"),
            ("no NaN", "an invalid operation gives a number or an infinity"),
        ],
        IEEE,
    ),
    probe(
        "nan.operand",
        "Quiet and signalling NaNs of several payloads at each operand of one function.",
        &[
            ("canonical", "every NaN result is the same: payloads do not pass"),
            ("first operand", "the first NaN operand passes, quieted"),
            ("last operand", "the last NaN operand passes, quieted"),
            (
                "signalling, then first",
                "a signalling NaN passes before a quiet one, quieted, as on Arm; else the first",
            ),
            ("larger payload", "of two quiet NaNs the one of the larger payload passes"),
            ("some operand", "a NaN operand passes, quieted, and none of these rules says which"),
            ("other", "payloads pass changed, or signalling NaNs are not quieted"),
        ],
        IEEE,
    ),
    probe(
        "scalar_unit",
        "1,000 dots of the operation, and the same sums on the device's scalar unit of d's format: a chain of fused \
         multiply-adds, a chain of products and sums, and a tree of pairs.",
        &[
            ("all dots", "the matrix unit gives what that way on the scalar unit gives: it may be that unit's work"),
            ("fewer", "results move when work moves from one unit to the other; the evidence has the bits of both"),
        ],
        NVIDIA,
    ),
];
