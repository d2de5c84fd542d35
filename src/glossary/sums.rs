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
        "Read off the tree, from c to the root; where there is none, two products of half c's last place, which raise c \
         only if they are added to each other before c's sum is rounded.",
        &[
            (
                "lists of k",
                "in this order, the products of each list join the running sum in one step, which may come after other \
                 additions: those of a list may have been added to each other before (order.tree, \
                 order.products_at_once)",
            ),
            (
                "one list",
                "c is added once, to all k products or to their sum: in the same addition if order.products_at_once is k",
            ),
        ],
        FPREV,
    ),
    probe(
        "order.products_at_once",
        "Read off the tree: of the additions of three terms or more, that with the most products; an inner list of \
         order.tree is an addition of its own.",
        &[
            (
                "1",
                "every addition joins two terms: each is rounded on its own, as in a loop of FMAs or a tree of pairs",
            ),
            (
                "a larger number",
                "so many products share one alignment and one rounding: fewer roundings, more bits cut together; a step of \
                 order.blocks has more products if it takes several additions",
            ),
            (
                "inconclusive",
                "no tree shows; a list of order.blocks has as many products as one addition could at most",
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
        "Sums just above and just below a tie of the result, by a bit that lies further and further down; carries lift \
         them, so that the bit survives alignment and still falls below f32 (below f64, of results of f32).",
        &[
            ("true", "one rounding from the whole sum"),
            (
                "false",
                "by way of a wider format, f32 if the statement says 23 fraction bits: some results are off by one last \
                 place",
            ),
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
        "c just below a power of two, its last place, and small terms that make one last place of the sum: of the lowest \
         bit kept, or odd multiples of it where terms are few.",
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
            (
                "reached, bits",
                "bits of the largest sum, or of the adder, above the largest exponent as the unit aligns: the sum of a \
                 product's operands' exponents, or, if products are renormalised, its leading bit; not given if \
                 products.exponent does not tell which; `carry_bits` of a model counts so",
            ),
            (
                "beyond_leading_bit",
                "the same beyond the leading bit of the largest term, as the literature counts: N terms need log2 N, \
                 rounded up",
            ),
        ],
        "Fasi et al. (2021), section 3.1.4; Valpey et al., An SMT formalization of mixed-precision matrix \
         multiplication, arXiv:2502.15999, section 4.3",
    ),
    probe(
        "monotone",
        "Pairs of inputs with the same products and growing c, made from what was found about alignment: equal small terms, \
         and odd multiples of the lowest bit that survives beside the smaller c.",
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
            (
                "{kept_at, lost_at}",
                "products below kept_at vanish, even if c is 0: the grid does not follow the terms further down",
            ),
            ("{lost_at}", "a product is lost that the result could hold"),
        ],
        OWN,
    ),
];
