//! Dots side by side: nodes of sums for eight dots together, in 64-bit words.
//!
//! It follows the evaluator of one dot step by step. A dot that holds a NaN or an infinity, that becomes infinite on
//! the way, or whose sum may not fit the word is abandoned in its lane and computed alone.

mod elements;
mod invalid;
mod lanes;
mod loud;
mod output;
mod pairs;
mod reals;
mod sum;
mod whole;

pub(in crate::fast) use lanes::DOTS;

use elements::Elements;
use lanes::Lanes;
use loud::Loud;
use output::rounded;
use pairs::Numbers;
use sum::{Highest, Scales, Terms, sum};

use super::{
    compiled::{Compiled, Node},
    repeats::{Repeats, Step},
};
use crate::{
    adder::{Below, Class, Output, Scale},
    fast::{
        path::Path,
        products::{Products, product},
        simd::{Vectorised, on_vectors},
        unpack::{SPECIAL, Unpacked},
    },
    tree::Term,
};

/// The data of all dots, from which eight are taken: factors and, if they fit a word, products, c, and scales.
#[derive(Clone, Copy)]
pub(in crate::fast) struct Source<'a> {
    pub(in crate::fast) products: &'a Products,
    pub(in crate::fast) c: &'a [Unpacked],
    /// Those of A and of B.
    pub(in crate::fast) scales: [&'a [Unpacked]; 2],
}

/// Memory for the products, the terms and the results of eight dots.
pub(in crate::fast) struct Room {
    /// The products, or the factors of those that are computed as numbers from them.
    products: Vec<Elements>,
    factors: Vec<Elements>,
    loud: Loud,
    c: Elements,
    scales: BlockScales,
    repeats: Repeats,
    arithmetic: Arithmetic,
}

/// The arithmetic that computes nodes.
enum Arithmetic {
    /// That of words of 64 bits.
    Words { terms: Vec<Terms>, results: Vec<Terms> },
    /// That of f64.
    Numbers(Box<Numbers>),
}

impl Room {
    /// Writes elements of these dots side by side, in one pass for all of them: reading a vector right after its lanes
    /// were written waits for each of them.
    #[inline(never)]
    fn load(&mut self, from: Source<'_>, places: &[usize; DOTS]) {
        let put = |into: &mut Elements, lane: usize, element: &Unpacked| {
            into.significands.0[lane] = element.significand.cast_signed();
            into.rest.0[lane] = i64::from(element.kind) << 32 | i64::from(element.exponent.cast_unsigned());
        };
        let Self { products, factors, arithmetic, .. } = self;
        self.loud.clear(|k| {
            products[k] = Elements::POSITIVE_ZERO;
            if let Some(factor) = factors.get_mut(k) {
                *factor = Elements::POSITIVE_ZERO;
            }
            if let Arithmetic::Numbers(numbers) = arithmetic {
                numbers.erase(k);
            }
        });
        for (lane, place) in places.iter().enumerate() {
            let dot = from.products.of(*place);
            if self.factors.is_empty() {
                for (k, product) in dot.places.iter().zip(dot.products) {
                    self.loud.note(*k as usize);
                    put(&mut self.products[*k as usize], lane, product);
                }
            } else {
                for ((k, a), b) in dot.places.iter().zip(dot.a).zip(dot.b) {
                    self.loud.note(*k as usize);
                    put(&mut self.products[*k as usize], lane, a);
                    put(&mut self.factors[*k as usize], lane, b);
                }
            }
            put(&mut self.c, lane, &from.c[*place]);
            self.scales.load(from.scales, lane, *place);
        }
    }
}

/// The products of the scales of each block, read once for all products of the block.
struct BlockScales {
    of_blocks: Vec<Scales>,
    fraction_bits: i32,
    /// Where one is NaN.
    special: Lanes,
}

impl BlockScales {
    fn new(blocks: usize, fraction_bits: i32) -> Self {
        Self { of_blocks: vec![Scales::ZERO; blocks], fraction_bits, special: Lanes::ZERO }
    }

    /// Reads those of the dot at `place`.
    #[inline(always)]
    fn load(&mut self, [of_a, of_b]: [&[Unpacked]; 2], lane: usize, place: usize) {
        let from = place * self.of_blocks.len();
        let mut kinds = 0;
        for (scales, (a, b)) in self.of_blocks.iter_mut().zip(of_a.iter().zip(of_b).skip(from)) {
            let scale = product(a, b);
            kinds |= scale.kind;
            scales.put(lane, &scale, self.fraction_bits);
        }
        self.special.0[lane] = -i64::from(kinds & SPECIAL != 0);
    }
}

/// Eight dots of one evaluator, and the state of their evaluation in words.
struct InWords<'a> {
    compiled: &'a Compiled,
    products: &'a [Elements],
    loud: &'a Loud,
    repeats: &'a mut Repeats,
    c: &'a Elements,
    scales: &'a BlockScales,
    terms: &'a mut [Terms],
    results: &'a mut [Terms],
    bits: Lanes,
    /// Where a NaN or an infinity occurs.
    special: Lanes,
    /// Where a sum may not fit a word.
    wide: Lanes,
}

/// Eight dots of one evaluator, computed as numbers.
struct AsNumbers<'a> {
    compiled: &'a Compiled,
    numbers: &'a mut Numbers,
    factors: (&'a [Elements], &'a [Elements]),
    loud: &'a Loud,
    repeats: &'a mut Repeats,
    c: &'a Elements,
}

/// The result of a dot that was computed side by side with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::fast) enum Known {
    Bits(u64),
    /// Unknown, because it holds a NaN or an infinity.
    Special,
    /// Unknown, because its sums may not fit 64-bit words.
    Wide,
}

impl Compiled {
    /// Memory for eight dots of `k` products, if the plan can be computed this way; `has_products` says whether the
    /// products of its operation fit a word.
    pub(in crate::fast) fn room_abreast(&self, k: usize, has_products: bool) -> Option<Room> {
        let elements = |count: usize| vec![Elements::POSITIVE_ZERO; count];
        let (c, loud) = (Elements::POSITIVE_ZERO, Loud::new(k));
        let blocks = if self.scale.is_some() { k.div_ceil(self.scale_block) } else { 0 };
        let scales = BlockScales::new(blocks, self.scale_fraction_bits);
        if Numbers::take(self) {
            let repeats = self.repeats();
            let numbers = Numbers::of(self, k);
            let factors = elements(if numbers.has_factors() { k } else { 0 });
            let arithmetic = Arithmetic::Numbers(Box::new(numbers));
            return Some(Room { products: elements(k), factors, loud, c, scales, repeats, arithmetic });
        }
        let narrow = |node: &Node| match self.adders[node.adder].rules.output {
            Output::Integer { format, .. } => format.bits() < 62,
            _ => true,
        };
        let fits = has_products && self.fits[0] && self.nodes.iter().all(narrow);
        let room = |count: usize| vec![Terms::ZERO; count];
        fits.then(|| {
            let repeats = self.repeats();
            let arithmetic = Arithmetic::Words { terms: room(self.widest), results: room(self.nodes.len()) };
            Room { products: elements(k), factors: Vec::new(), loud, c, scales, repeats, arithmetic }
        })
    }

    /// Computes d of the dots at these places. Without vectors, none is known.
    #[inline(never)]
    pub(in crate::fast) fn evaluate_abreast(
        &self,
        path: Path,
        from: Source<'_>,
        places: &[usize; DOTS],
        room: &mut Room,
    ) -> [Known; DOTS] {
        room.load(from, places);
        let Room { products, factors, loud, c, scales, repeats, arithmetic } = room;
        let zero = Lanes::ZERO;
        let found = match arithmetic {
            Arithmetic::Words { terms, results } => {
                let (bits, special, wide) = (zero, zero, zero);
                let task =
                    InWords { compiled: self, products, loud, repeats, c, scales, terms, results, bits, special, wide };
                on_vectors(path, task).map(|task| (task.bits, task.special, task.wide)).ok()
            }
            Arithmetic::Numbers(numbers) => {
                let factors = (&products[..], &factors[..]);
                on_vectors(path, AsNumbers { compiled: self, numbers, factors, loud, repeats, c }).ok()
            }
        };
        let Some((bits, special, wide)) = found else { return [Known::Special; DOTS] };
        std::array::from_fn(|lane| match (special.0[lane], wide.0[lane]) {
            (0, 0) => Known::Bits(bits.0[lane].cast_unsigned()),
            (0, _) => Known::Wide,
            _ => Known::Special,
        })
    }
}

impl Vectorised for AsNumbers<'_> {
    type Output = (Lanes, Lanes, Lanes);

    #[inline(always)]
    fn run(self) -> Self::Output {
        let (bits, abandoned) = self.numbers.compute(self.compiled, self.factors, self.c, (self.loud, self.repeats));
        (bits, abandoned.special, abandoned.wide)
    }
}

impl Vectorised for InWords<'_> {
    type Output = Self;

    #[inline(always)]
    fn run(mut self) -> Self {
        let compiled = self.compiled;
        let (c, special) = self.c.terms(Class::Values, compiled.c_fraction_bits);
        self.special = special | self.scales.special;
        self.repeats.begin();
        for (index, node) in compiled.nodes.iter().enumerate() {
            let step = self.repeats.step(index, compiled.terms_of(node), |k| self.loud.is_quiet(k));
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
            for term in compiled.terms_of(node) {
                let term = match *term {
                    Term::Product(k) => {
                        // One +0 counts as much as many, except in one's complement.
                        if self.loud.is_quiet(k) && std::mem::replace(&mut has_zero, true) && !keeps_zeros {
                            continue;
                        }
                        let bits = compiled.product_fraction_bits;
                        let (mut product, special) = self.products[k].terms(Class::Products, bits);
                        if let Some(scale) = scales(Scale::Products, k) {
                            product.scale(scale);
                        }
                        self.special = self.special | special;
                        if adder.rules.product_overflow {
                            let leading = product.lsb + product.magnitude.length();
                            self.special =
                                self.special | leading.is_above(Lanes::all(128)) & !product.magnitude.is_zero();
                        }
                        product
                    }
                    Term::Node(index) => self.results[self.repeats.place(index)],
                    Term::C => c,
                    Term::PositiveZero => Terms::ZERO,
                };
                self.terms[count] = term;
                count += 1;
                highest.join(&self.terms[count - 1]);
            }
            let terms = &self.terms[..count];
            let scale = match compiled.terms_of(node).first() {
                Some(Term::Product(k)) => scales(Scale::Sum, *k),
                _ => None,
            };
            let sum = sum(adder, terms, &highest, node, scale, &mut self.wide);
            let mut special = Lanes::ZERO;
            if matches!(adder.rules.output, Output::Integer { .. }) {
                // Integers have no bits below 1, unless a grid created some.
                self.wide = self.wide | !sum.lsb.is_zero();
            }
            let rounded = rounded(adder, terms, sum, self.special | self.wide, &mut special);
            if index + 1 == compiled.nodes.len() {
                self.bits = rounded.bits;
                break;
            }
            self.special = self.special | special;
            if !(!self.special & !self.wide).any() {
                return self;
            }
            let left = !self.special & !self.wide;
            let is_same = |other: usize| !(!rounded.read.is(&self.results[other]) & left).any();
            if !self.repeats.is_unchanged(step, index, is_same) {
                self.results[index] = rounded.read;
            }
        }
        self
    }
}
