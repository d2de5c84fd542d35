//! The probes of sums: order, alignment, rounding, normalisation, accumulators.

use super::{
    Text,
    probes::{FASI, OWN, probe},
};

const FPREV: &str = "FPRev, arXiv:2411.00442";

pub(super) const TEXTS: &[Text] = &[
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
];
