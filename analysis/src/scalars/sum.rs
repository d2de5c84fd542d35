//! The ways to add four products: their order, and which of them are fused with an addition.
//!
//! A compiler that contracts `p + q` may pass either product unrounded to a fused multiply-add: fma(a0, b0, a1·b1) and
//! fma(a1, b1, a0·b0) differ in which product is rounded, and so in their bits. Each is a separate hypothesis.

use mxprobe_api::DotOrder;

use crate::in_order::InOrder;

/// A way to add four products.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Sum {
    order: Order,
    fused: Fused,
}

/// The order of the additions: one after another, or in pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Order {
    /// From +0, k ascending.
    FromZero,
    Chain([usize; 4]),
    Pairs([usize; 4]),
}

/// The products that are added unrounded, one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Fused(u8);

impl Fused {
    const NONE: Self = Self(0);

    fn of(products: &[usize]) -> Self {
        Self(products.iter().fold(0, |bits, at| bits | 1 << at))
    }

    fn has(self, at: usize) -> bool {
        self.0 >> at & 1 == 1
    }
}

/// The operations that a sum consists of; `E` is the reason if the result is not a number.
pub(super) struct Arithmetic<'a, E> {
    /// The rounded product with this index.
    pub(super) product: &'a dyn Fn(usize) -> Result<u64, E>,
    /// A rounded sum.
    pub(super) add: &'a dyn Fn(u64, u64) -> Result<u64, E>,
    /// The product with this index plus a sum, rounded once.
    pub(super) fma: &'a dyn Fn(usize, u64) -> Result<u64, E>,
}

impl<E> Arithmetic<'_, E> {
    fn joined(&self, sum: u64, at: usize, fused: Fused) -> Result<u64, E> {
        if fused.has(at) { (self.fma)(at, sum) } else { (self.add)(sum, (self.product)(at)?) }
    }

    /// The sum of two products, of which at most one is fused.
    fn pair(&self, first: usize, second: usize, fused: Fused) -> Result<u64, E> {
        if fused.has(first) {
            (self.fma)(first, (self.product)(second)?)
        } else {
            self.joined((self.product)(first)?, second, fused)
        }
    }
}

impl Sum {
    /// The sum as the source writes it.
    pub(super) fn named(order: DotOrder) -> Self {
        match order {
            DotOrder::Serial => Self { order: Order::FromZero, fused: Fused::NONE },
            DotOrder::Fma => Self { order: Order::FromZero, fused: Fused(0b1111) },
            DotOrder::Pairwise => Self { order: Order::Pairs([0, 1, 2, 3]), fused: Fused::NONE },
        }
    }

    /// Every sum that may give different bits: those without contraction first, then those that contract every
    /// addition.
    pub(super) fn all() -> Vec<Self> {
        let mut found: Vec<Self> = Order::all().into_iter().flat_map(Self::of_order).collect();
        found.order_by_key(|sum| (sum.fused != Fused::NONE, !sum.contracts_all()));
        found
    }

    /// Every contraction of the additions in an order.
    fn of_order(order: Order) -> Vec<Self> {
        // Fused with +0, the first product is rounded as without fusion.
        let is_apart = |fused: Fused| match order {
            Order::FromZero => !fused.has(0) || fused == Fused(0b1111),
            Order::Chain([a, b, ..]) => !(fused.has(a) && fused.has(b)),
            Order::Pairs([a, b, c, d]) => !(fused.has(a) && fused.has(b) || fused.has(c) && fused.has(d)),
        };
        let is_same_as_all = |fused: Fused| order == Order::FromZero && fused == Fused(0b1110);
        (0..16)
            .map(Fused)
            .filter(|fused| is_apart(*fused) && !is_same_as_all(*fused))
            .map(|fused| Self { order, fused })
            .collect()
    }

    /// Whether every addition that can take a product unrounded does so.
    pub(super) fn contracts_all(self) -> bool {
        let one_of = |first: usize, second: usize| self.fused.has(first) != self.fused.has(second);
        match self.order {
            Order::FromZero => self.fused == Fused(0b1111),
            Order::Chain([a, b, c, d]) => one_of(a, b) && self.fused.has(c) && self.fused.has(d),
            Order::Pairs([a, b, c, d]) => one_of(a, b) && one_of(c, d),
        }
    }

    /// Whether no addition takes a product unrounded.
    pub(super) fn contracts_none(self) -> bool {
        self.fused == Fused::NONE
    }

    /// Whether each product is fused with the sum of those before it, if there is such a sum.
    pub(super) fn contracts_in_order(self) -> bool {
        self.fused
            == match self.order {
                Order::FromZero => Fused(0b1111),
                Order::Chain([_, rest @ ..]) => Fused::of(&rest),
                Order::Pairs([_, b, _, d]) => Fused::of(&[b, d]),
            }
    }

    /// Whether the products are added in the order in the source.
    pub(super) fn is_in_order(self, order: DotOrder) -> bool {
        self.order == Self::named(order).order
    }

    /// Whether the order is that of a serial dot product, except that the sum does not start from +0.
    pub(super) fn is_without_zero(self, order: DotOrder) -> bool {
        self.order == Order::Chain([0, 1, 2, 3]) && order != DotOrder::Pairwise
    }

    /// The result of the sum.
    pub(super) fn of<E>(self, by: &Arithmetic<'_, E>) -> Result<u64, E> {
        let fused = self.fused;
        match self.order {
            Order::FromZero => (0..4).try_fold(0, |sum, at| by.joined(sum, at, fused)),
            Order::Chain([a, b, c, d]) => by.joined(by.joined(by.pair(a, b, fused)?, c, fused)?, d, fused),
            Order::Pairs([a, b, c, d]) => (by.add)(by.pair(a, b, fused)?, by.pair(c, d, fused)?),
        }
    }

    /// The sum as an expression, in which p0 is the rounded product of a0 and b0.
    pub(super) fn words(self) -> String {
        let joined = |sum: &str, at: usize| {
            if self.fused.has(at) { format!("fma(a{at}, b{at}, {sum})") } else { format!("{sum} + p{at}") }
        };
        let bracketed = |text: String| if text.starts_with("fma(") { text } else { format!("({text})") };
        let pair = |first: usize, second: usize| {
            if self.fused.has(first) {
                joined(&format!("p{second}"), first)
            } else {
                joined(&format!("p{first}"), second)
            }
        };
        let next = |sum: String, at: usize| {
            if self.fused.has(at) { joined(&sum, at) } else { joined(&bracketed(sum), at) }
        };
        match self.order {
            Order::FromZero => (1..4).fold(joined("0", 0), next),
            Order::Chain([a, b, c, d]) => next(next(pair(a, b), c), d),
            Order::Pairs([a, b, c, d]) => format!("{} + {}", bracketed(pair(a, b)), bracketed(pair(c, d))),
        }
    }
}

impl Order {
    /// Every order of four products that may give different bits.
    fn all() -> Vec<Self> {
        let mut found = vec![Self::FromZero];
        for first in 0..4 {
            for second in first + 1..4 {
                let rest: Vec<usize> = (0..4).filter(|at| *at != first && *at != second).collect();
                found.push(Self::Chain([first, second, rest[0], rest[1]]));
                found.push(Self::Chain([first, second, rest[1], rest[0]]));
                if first == 0 {
                    found.push(Self::Pairs([first, second, rest[0], rest[1]]));
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_order_has_every_contraction_of_its_additions_once() {
        let count = |order: Order| Sum::of_order(order).len();
        // An addition of two products takes either one unrounded, or neither; one of a sum and a product may take the
        // product unrounded.
        assert_eq!(count(Order::Pairs([0, 1, 2, 3])), 3 * 3);
        assert_eq!(count(Order::Chain([0, 1, 2, 3])), 3 * 2 * 2);
        // The first product is the same with and without +0.
        assert_eq!(count(Order::FromZero), 2 * 2 * 2);
        let all = Sum::all();
        let words: BTreeSet<String> = all.iter().map(|sum| sum.words()).collect();
        assert_eq!(words.len(), all.len());
        assert_eq!(all.len(), 8 + 12 * 12 + 3 * 9);
    }

    #[test]
    fn a_sum_is_written_as_the_operations_that_it_takes() {
        let words = |order, fused: &[usize]| Sum { order, fused: Fused::of(fused) }.words();
        assert_eq!(words(Order::Pairs([0, 1, 2, 3]), &[]), "(p0 + p1) + (p2 + p3)");
        assert_eq!(words(Order::Pairs([0, 1, 2, 3]), &[0, 3]), "fma(a0, b0, p1) + fma(a3, b3, p2)");
        assert_eq!(words(Order::Chain([1, 2, 3, 0]), &[]), "((p1 + p2) + p3) + p0");
        assert_eq!(words(Order::Chain([0, 1, 2, 3]), &[1, 3]), "fma(a3, b3, fma(a1, b1, p0) + p2)");
        assert_eq!(words(Order::FromZero, &[2]), "fma(a2, b2, (0 + p0) + p1) + p3");
    }
}
