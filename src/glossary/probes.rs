//! The probes of matrix operations: how each is asked, and what each answer means for who computes with the unit.

use super::Text;

const FASI: &str = "Fasi, Higham, Mikaitis, Pranesh, Numerical behavior of NVIDIA tensor cores (2021)";
const FPREV: &str = "FPRev, arXiv:2411.00442";
pub(super) const SUBNORMALS: &str = "IEEE 754-2019, 7.5 and 3.4; Fasi et al. (2021), section 3.1.1";
const OWN: &str = "this project: docs/testing.md says how the probe itself is tested";

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
        "order.tree",
        "M and −M at two of the k + 1 terms, a value far below M at a third: it survives where M is gone before they \
         meet. All triples together determine the tree.",
        &[
            ("nested lists", "the numbers are k, `c` is the running sum; what stands in one list is added at once"),
            ("inconclusive", "the formats are too narrow for one product to swamp another; see order.blocks"),
        ],
        FPREV,
    ),
    probe(
        "order.blocks",
        "Read off the tree; where there is none, two products of half c's last place, which raise c only if they meet \
         before it is rounded.",
        &[
            ("lists of k", "each list joins the running sum in one step, in this order"),
            ("one list", "all k at once: no rounding between them"),
        ],
        FPREV,
    ),
    probe(
        "order.products_at_once",
        "The longest list of order.blocks.",
        &[
            ("1", "a chain: every product is rounded into the sum on its own, as with a loop of FMAs"),
            (
                "a larger number",
                "so many products share one alignment and one rounding: fewer roundings, more bits cut \
             together",
            ),
        ],
        FASI,
    ),
    probe(
        "alignment.fraction_bits",
        "M, −M and M·2^−t at three terms of one addition, for growing t: the last t that survives.",
        &[
            (
                "a number F",
                "a term more than F binades below the largest is lost, whatever the result could hold: \
             expect an error of about 2^−F of the largest term, not of the result",
            ),
            ("{exact_over}", "nothing was lost as far as the formats reach: sums are exact before they are rounded"),
            (
                "{exact_over, rounded_to_bits}",
                "each sum of two is exact, then rounded to that many bits, as IEEE 754 \
             asks",
            ),
        ],
        FASI,
    ),
    probe(
        "alignment.below",
        "Sums with one to three quarters of the lowest bit kept, of both signs.",
        &[
            ("truncate", "dropped from the magnitude: errors lean toward zero and do not cancel over many products"),
            ("floor", "rounded toward −∞: a bias of one sign"),
            ("ceiling", "rounded toward +∞: a bias of one sign"),
            ("ones-complement", "dropped, and a term whose sign differs from c's is off by one in the lowest bit kept"),
            ("nearest", "rounded: no bias"),
            ("sticky", "remembered: the final rounding is right as if nothing was lost"),
        ],
        FASI,
    ),
    probe(
        "alignment.c_fraction_bits",
        "As alignment.fraction_bits, with c as the small term.",
        &[
            ("the same number", "c is aligned as a product is"),
            (
                "another number",
                "c is kept longer or cut earlier than products: it matters where a long sum is carried in c",
            ),
        ],
        FASI,
    ),
    probe(
        "rounding.fraction_bits",
        "Sums whose lowest bit lies further and further down.",
        &[
            ("the bits of D", "the result is as precise as its format"),
            (
                "fewer",
                "the declared format is a container only, as for e4m3 sums of 13 bits: add outside the unit often",
            ),
        ],
        "Fasi et al. (2021), section 3.1.4; for sums of 8-bit formats, the DeepSeek-V3 technical report (2024)",
    ),
    probe(
        "rounding.result",
        "Sums of one to three quarters of a last place, positive and negative, above even and odd values.",
        &[
            ("RNE", "to nearest, ties to even: no bias"),
            ("RZ", "toward zero: errors lean one way and grow with the number of roundings, not with its root"),
            ("RD, RU", "toward −∞ or +∞: a bias of one sign"),
            ("RO", "to odd: safe to round again to a narrower format"),
            ("none", "not rounded where it was looked for"),
        ],
        "IEEE 754-2019, 4.3; Fasi et al. (2021), section 3.1.3",
    ),
    probe(
        "rounding.once",
        "A sum just above a tie of a narrow result, by less than f32 holds.",
        &[
            ("true", "one rounding from the whole sum"),
            ("false", "by way of f32: some results are off by one last place"),
        ],
        OWN,
    ),
    probe(
        "rounding.between_blocks",
        "As rounding.result, in the sum of the first block, which a product of the next then cancels.",
        &[
            ("RNE, RZ, RD, RU, RO", "the running sum is rounded so after each block; with RZ the bias grows with k"),
            ("none", "the running sum is handed on unrounded"),
        ],
        FASI,
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
        "normalisation",
        "c just below a power of two, its last place, and terms of the lowest bit kept.",
        &[
            ("once", "low bits add up before any is dropped"),
            ("each", "a carry moves the grid, and the next term is cut sooner: results depend on the order"),
        ],
        FASI,
    ),
    probe(
        "carry",
        "As many of the largest products as the block takes.",
        &[
            ("{enough: true}", "no sum within a block wraps"),
            ("{enough: false}", "a large sum loses its top bits: results are wrong without any sign of it"),
        ],
        FASI,
    ),
    probe(
        "monotone",
        "Pairs of inputs with the same products and growing c, made from what was found about alignment.",
        &[
            ("false", "a larger c gives a smaller result for the inputs shown: bisection and interval bounds may fail"),
            ("inconclusive", "no such pair was found; that is no proof that there is none"),
        ],
        "Fasi et al. (2021), section 3.1.4",
    ),
    probe(
        "accumulator.range_within_block",
        "Two of the largest powers of two and one of the other sign, in one block.",
        &[("wider", "a sum may leave the range and come back"), ("format", "it becomes infinity on the way")],
        OWN,
    ),
    probe(
        "accumulator.range_between_blocks",
        "The same over several blocks.",
        &[
            ("wider", "the running sum has more range than D"),
            ("format", "the running sum becomes infinity between blocks"),
        ],
        OWN,
    ),
    probe(
        "accumulator.smallest_products",
        "Equal products, each smaller than the smallest result, that add up to it.",
        &[
            ("{kept_at}", "kept as far down as could be asked, as a power of two"),
            ("{kept_at, lost_at}", "below lost_at products vanish beside c = 0: zero counts with that exponent"),
            ("{lost_at}", "a product is lost that the result could hold"),
        ],
        OWN,
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
