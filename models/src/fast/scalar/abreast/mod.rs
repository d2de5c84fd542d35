//! Dots side by side: nodes of sums for eight dots together, in 64-bit words.
//!
//! It follows the evaluator of one dot step by step. A dot that holds a NaN or an infinity, or whose sum may not fit the
//! word, is abandoned in its lane and computed alone.
//!
//! No closure over lanes is passed to an iterator here: such closures are compiled as functions without the instructions for
//! vectors.

mod elements;
mod invalid;
mod lanes;
mod loud;
mod output;
mod pairs;
mod reals;
mod scales;
mod sum;
mod whole;
mod words;

pub(in crate::fast) use lanes::DOTS;

use std::{cell::Cell, sync::Arc};

use elements::Elements;
use invalid::Nan;
use lanes::Lanes;
use loud::Loud;
use pairs::Numbers;
use scales::BlockScales;
use words::{InWords, Words};

use super::{compiled::Compiled, repeats::Repeats};
use crate::{
    fast::{
        path::Path,
        products::Products,
        simd::{Vectorised, on_vectors},
        unpack::Unpacked,
    },
    tree::Plan,
};

/// The data of all dots, from which eight are taken: factors and, if they fit a word, products, c, and scales.
#[derive(Clone, Copy)]
pub(in crate::fast) struct Source<'a> {
    pub(in crate::fast) products: &'a Products,
    pub(in crate::fast) c: &'a [Unpacked],
    /// Those of A and of B.
    pub(in crate::fast) scales: [&'a [Unpacked]; 2],
    /// Another one whenever the dot at a place may be another.
    pub(in crate::fast) stamp: u64,
}

/// Memory for the products, the terms and the results of eight dots, for evaluators of one plan.
pub(in crate::fast) struct Room {
    plan: Arc<Plan>,
    k: usize,
    /// The dots that are loaded, if they were the first ones asked for, and the stamp of their data.
    loaded: Option<(u64, [usize; DOTS])>,
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
    Words(Words),
    /// That of f64.
    Numbers(Box<Numbers>),
}

impl Arithmetic {
    fn nan(&mut self) -> &mut Nan {
        match self {
            Self::Words(words) => &mut words.nan,
            Self::Numbers(numbers) => &mut numbers.nan,
        }
    }
}

thread_local! {
    /// The memory of the thread's last evaluator.
    static KEPT: Cell<Option<Box<Room>>> = const { Cell::new(None) };
}

impl Room {
    /// Keeps it for the thread's next evaluator.
    #[inline(never)]
    pub(in crate::fast) fn keep(self: Box<Self>) {
        KEPT.set(Some(self));
    }

    /// Whether it is what [`Compiled::room_abreast`] would make.
    fn suits(&self, compiled: &Compiled, plan: &Arc<Plan>, k: usize, as_numbers: bool) -> bool {
        let is_of_kind = match &self.arithmetic {
            Arithmetic::Words(_) => !as_numbers,
            Arithmetic::Numbers(numbers) => as_numbers && numbers.has_factors() == pairs::has_factors(compiled),
        };
        is_of_kind
            && Arc::ptr_eq(&self.plan, plan)
            && self.k == k
            && self.scales.are(compiled.blocks(k), compiled.scale_fraction_bits)
    }

    /// Writes elements of these dots side by side, in one pass for all of them: reading a vector right after its lanes
    /// were written waits for each of them.
    #[inline(never)]
    fn load(&mut self, from: Source<'_>, places: &[usize; DOTS]) {
        let put = |into: &mut Elements, lane: usize, element: &Unpacked| {
            into.significands.0[lane] = element.significand.cast_signed();
            into.rest.0[lane] = i64::from(element.kind) << 32 | i64::from(element.exponent.cast_unsigned());
        };
        let Self { products, factors, arithmetic, .. } = self;
        if let Arithmetic::Numbers(numbers) = arithmetic {
            numbers.renew();
        }
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
    /// products of its operation fit a word. It is that of the last evaluator if that had the same plan: most of many
    /// evaluators differ in their adders, and are asked about the same dots.
    pub(in crate::fast) fn room_abreast(&self, plan: &Arc<Plan>, k: usize, has_products: bool) -> Option<Box<Room>> {
        let as_numbers = Numbers::take(self);
        if !(as_numbers || has_products && Words::take(self)) {
            return None;
        }
        if let Some(mut kept) = KEPT.take()
            && kept.suits(self, plan, k, as_numbers)
        {
            // All else in it depends on the plan alone, or is written before it is read.
            *kept.arithmetic.nan() = Nan::default();
            return Some(kept);
        }
        let elements = |count: usize| vec![Elements::POSITIVE_ZERO; count];
        let (plan, repeats) = (Arc::clone(plan), self.repeats());
        let (c, loud) = (Elements::POSITIVE_ZERO, Loud::new(k));
        let scales = BlockScales::new(self.blocks(k), self.scale_fraction_bits);
        let (arithmetic, factors) = if as_numbers {
            let numbers = Numbers::of(self, k);
            let factors = elements(if numbers.has_factors() { k } else { 0 });
            (Arithmetic::Numbers(Box::new(numbers)), factors)
        } else {
            (Arithmetic::Words(Words::of(self)), Vec::new())
        };
        let products = elements(k);
        Some(Box::new(Room { plan, k, loaded: None, products, factors, loud, c, scales, repeats, arithmetic }))
    }

    /// The number of blocks of `k` products that have scales.
    fn blocks(&self, k: usize) -> usize {
        if self.scale.is_some() { k.div_ceil(self.scale_block) } else { 0 }
    }

    /// Computes d of the dots at these places. Without vectors, none is known. If they are the first ones that the evaluator
    /// is asked for, they may have been those of the last evaluator, too.
    #[inline(never)]
    pub(in crate::fast) fn evaluate_abreast(
        &self,
        path: Path,
        from: Source<'_>,
        (places, are_first): (&[usize; DOTS], bool),
        room: &mut Room,
    ) -> [Known; DOTS] {
        if !are_first || room.loaded != Some((from.stamp, *places)) {
            room.load(from, places);
            room.loaded = are_first.then_some((from.stamp, *places));
        }
        let Room { products, factors, loud, c, scales, repeats, arithmetic, .. } = room;
        let found = match arithmetic {
            Arithmetic::Words(words) => {
                on_vectors(path, InWords { compiled: self, words, products, loud, repeats, c, scales }).ok()
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
