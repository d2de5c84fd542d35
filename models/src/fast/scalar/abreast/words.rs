//! Plans whose sums fit 64-bit words.

use super::{
    super::{
        compiled::{Compiled, Node},
        repeats::{Repeats, Step},
    },
    elements::Elements,
    invalid::Nan,
    lanes::Lanes,
    loud::Loud,
    output::{infinities, rounded},
    scales::BlockScales,
    sum::{Highest, NO_EXPONENT, Part, Terms, sum},
};
use crate::{
    adder::{Below, Class, Output, Scale},
    fast::simd::Vectorised,
    tree::Term,
};

/// The terms of a node and the results of all, for eight dots.
pub(super) struct Words {
    terms: Vec<Terms>,
    parts: Vec<Part>,
    /// Where a result is infinite or NaN, it stands here as a zero.
    results: Vec<Terms>,
    /// Which results are infinite, if any is.
    infinite: Vec<Infinite>,
    pub(super) nan: Nan,
}

/// Where a result is infinite, by its sign. It is NaN where it is both.
#[derive(Clone, Copy)]
struct Infinite {
    positive: Lanes,
    negative: Lanes,
}

impl Infinite {
    const NONE: Self = Self { positive: Lanes::ZERO, negative: Lanes::ZERO };

    #[inline(always)]
    fn join(&mut self, other: Self) {
        self.positive = self.positive | other.positive;
        self.negative = self.negative | other.negative;
    }

    /// Where it is one of them.
    #[inline(always)]
    fn either(self) -> Lanes {
        self.positive | self.negative
    }

    #[inline(always)]
    fn is_nan(self) -> Lanes {
        self.positive & self.negative
    }
}

impl Words {
    /// Whether the sums of a plan fit a word if its products do.
    pub(super) fn take(compiled: &Compiled) -> bool {
        let narrow = |node: &Node| match compiled.adders[node.adder].rules.output {
            Output::Integer { format, .. } => format.bits() < 62,
            _ => true,
        };
        compiled.fits[0] && compiled.nodes.iter().all(narrow)
    }

    /// Memory for such a plan.
    pub(super) fn of(compiled: &Compiled) -> Self {
        let room = |count: usize| vec![Terms::ZERO; count];
        let count = compiled.nodes.len();
        Self {
            terms: room(compiled.flat.widest),
            parts: vec![(Lanes::ZERO, Lanes::ZERO, Lanes::ZERO); compiled.flat.widest + 1],
            results: room(count),
            infinite: vec![Infinite::NONE; count],
            nan: Nan::default(),
        }
    }
}

/// Eight dots of one evaluator, computed in words.
pub(super) struct InWords<'a> {
    pub(super) compiled: &'a Compiled,
    pub(super) words: &'a mut Words,
    pub(super) products: &'a [Elements],
    pub(super) loud: &'a Loud,
    pub(super) repeats: &'a mut Repeats,
    pub(super) c: &'a Elements,
    pub(super) scales: &'a BlockScales,
}

impl Vectorised for InWords<'_> {
    /// The bits of d, where a NaN or an infinity keeps them from being known, and where a sum may not fit a word.
    type Output = (Lanes, Lanes, Lanes);

    #[inline(always)]
    fn run(self) -> Self::Output {
        let Self { compiled, words: Words { terms: room, parts, results, infinite, nan }, repeats, .. } = self;
        let (c, special) = self.c.terms(Class::Values, compiled.c_fraction_bits);
        let mut special = special | self.scales.special;
        let (mut wide, mut bits, mut are_finite) = (Lanes::ZERO, Lanes::ZERO, true);
        repeats.begin();
        for (index, node) in compiled.nodes.iter().enumerate() {
            let step = repeats.step(index, compiled.terms_of(node), |k| self.loud.is_quiet(k));
            if step == Step::Known {
                continue;
            }
            let adder = &compiled.adders[node.adder];
            let mut highest = Highest::NONE;
            let keeps_zeros = adder.rules.below == Below::OnesComplement;
            let scales = |scale: Scale, k: usize| {
                let is_scaled = compiled.scale.is_some() && adder.rules.scale == scale;
                is_scaled.then(|| &self.scales.of_blocks[k / compiled.scale_block])
            };
            let (mut count, mut has_zero) = (0, false);
            let mut of_terms = Infinite::NONE;
            for term in compiled.terms_of(node) {
                let term = match *term {
                    Term::Product(k) => {
                        // One +0 counts as much as many, except in one's complement.
                        if self.loud.is_quiet(k) && std::mem::replace(&mut has_zero, true) && !keeps_zeros {
                            continue;
                        }
                        let bits = compiled.product_fraction_bits;
                        let (mut product, is_special) = self.products[k].terms(Class::Products, bits);
                        if let Some(scale) = scales(Scale::Products, k) {
                            product.scale(scale);
                        }
                        special = special | is_special;
                        if adder.rules.product_overflow {
                            let leading = product.lsb + product.magnitude.length();
                            special = special | leading.is_above(Lanes::all(128)) & !product.magnitude.is_zero();
                        }
                        product
                    }
                    Term::Node(index) => {
                        let place = repeats.place(index);
                        if !are_finite {
                            of_terms.join(infinite[place]);
                        }
                        results[place]
                    }
                    Term::C => c,
                    Term::PositiveZero => Terms::ZERO,
                };
                room[count] = term;
                count += 1;
                highest.join(&room[count - 1]);
            }
            let terms = &room[..count];
            let scale = match compiled.terms_of(node).first() {
                Some(Term::Product(k)) => scales(Scale::Sum, *k),
                _ => None,
            };
            let mut own = Lanes::ZERO;
            let sum = sum(adder, terms, &highest, node, scale, parts, &mut own);
            let is_whole = matches!(adder.rules.output, Output::Integer { .. });
            if is_whole {
                // Integers have no bits below 1, unless a grid created some.
                own = own | !sum.lsb.is_zero();
            }
            let is_known = of_terms.either();
            wide = wide | own & !is_known;
            let (mut rounded, not_finite) = rounded(adder, terms, sum, special | wide | is_known);
            let is_last = index + 1 == compiled.nodes.len();
            let mut found = of_terms;
            if !is_last {
                let (is_infinite, is_nan) = not_finite;
                special = special | is_nan;
                found.join(Infinite {
                    positive: is_infinite & !rounded.read.negative,
                    negative: is_infinite & rounded.read.negative,
                });
            }
            if found.either().any() {
                if std::mem::replace(&mut are_finite, false) {
                    infinite.fill(Infinite::NONE);
                }
                if is_whole {
                    special = special | found.either();
                }
                let is_nan = found.is_nan();
                let nan = if is_nan.any() { nan.of(compiled) } else { Some(0) };
                if nan.is_none() {
                    special = special | is_nan;
                }
                rounded.read.put_zero(found.either(), found.negative);
                if is_last {
                    let nan = Lanes::all(nan.unwrap_or(0).cast_signed());
                    let other = nan.select(is_nan, infinities(adder.format, found.negative));
                    rounded.bits = other.select(found.either(), rounded.bits);
                }
            }
            if is_last {
                bits = rounded.bits;
                break;
            }
            let left = !special & !wide;
            if !left.any() {
                break;
            }
            // +0 added to an infinity or a NaN is that again, and added to a number it is neither.
            let is_same = |other: usize| !(!rounded.read.is(&results[other]) & left).any();
            if !repeats.is_unchanged(step, index, is_same) {
                results[index] = rounded.read;
                if !are_finite {
                    infinite[index] = found;
                }
            }
        }
        (bits, special, wide)
    }
}

impl Terms {
    /// Puts zeros where the mask holds, negative ones where the other does.
    #[inline(always)]
    fn put_zero(&mut self, mask: Lanes, negative: Lanes) {
        self.negative = negative.select(mask, self.negative);
        self.magnitude = Lanes::ZERO.select(mask, self.magnitude);
        self.lsb = Lanes::ZERO.select(mask, self.lsb);
        self.exponent = Lanes::all(NO_EXPONENT).select(mask, self.exponent);
    }
}
