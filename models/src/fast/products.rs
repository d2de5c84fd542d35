//! The products of dots, without those that are +0: in the dots that tell most about an addition, these are almost all.

use super::unpack::{Unpacked, ZERO, kind_of_product};

/// The products other than +0 of many dots, dot by dot, with their factors.
#[derive(Clone, Debug, Default)]
pub(super) struct Products {
    /// The place of each in its dot.
    places: Vec<u32>,
    a: Vec<Unpacked>,
    b: Vec<Unpacked>,
    /// Empty if they are not computed.
    products: Vec<Unpacked>,
    /// Where the products of each dot end.
    ends: Vec<usize>,
}

/// The products other than +0 of one dot.
#[derive(Clone, Copy)]
pub(super) struct OfDot<'a> {
    pub places: &'a [u32],
    pub a: &'a [Unpacked],
    pub b: &'a [Unpacked],
    /// Empty if they are not computed.
    pub products: &'a [Unpacked],
}

/// The factors of a product that is +0, and the product.
pub(super) const POSITIVE_ZERO: Unpacked = Unpacked { significand: 0, exponent: 0, kind: ZERO };

/// The product of two elements whose significands have at most 64 bits together.
#[inline]
pub(super) fn product(a: &Unpacked, b: &Unpacked) -> Unpacked {
    Unpacked {
        significand: a.significand * b.significand,
        exponent: a.exponent + b.exponent,
        kind: kind_of_product(a.kind, b.kind),
    }
}

impl Products {
    /// Makes room for so many more products.
    pub(super) fn reserve(&mut self, products: usize, are_computed: bool) {
        self.places.reserve(products);
        self.a.reserve(products);
        self.b.reserve(products);
        self.products.reserve(if are_computed { products } else { 0 });
    }

    /// Adds those of a dot from the factors at these places; all others are +0. With `are_computed`, products are computed
    /// too.
    pub(super) fn push(&mut self, places: &[u32], (a, b): (&[Unpacked], &[Unpacked]), are_computed: bool) {
        let is_zero = |(a, b): (&Unpacked, &Unpacked)| kind_of_product(a.kind, b.kind) == ZERO;
        if a.iter().zip(b).any(is_zero) {
            for ((a, b), place) in a.iter().zip(b).zip(places).filter(|(factors, _)| !is_zero(*factors)) {
                self.places.push(*place);
                self.a.push(*a);
                self.b.push(*b);
                if are_computed {
                    self.products.push(product(a, b));
                }
            }
        } else {
            self.places.extend_from_slice(places);
            self.a.extend_from_slice(a);
            self.b.extend_from_slice(b);
            if are_computed {
                self.products.extend(a.iter().zip(b).map(|(a, b)| product(a, b)));
            }
        }
        self.ends.push(self.places.len());
    }

    /// Those of dot number `at`.
    pub(super) fn of(&self, at: usize) -> OfDot<'_> {
        let from = if at == 0 { 0 } else { self.ends[at - 1] };
        let range = from..self.ends[at];
        let products = if self.products.is_empty() { &[] } else { &self.products[range.clone()] };
        OfDot { places: &self.places[range.clone()], a: &self.a[range.clone()], b: &self.b[range], products }
    }

    /// Removes all and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.places.clear();
        self.ends.clear();
        [&mut self.a, &mut self.b, &mut self.products].into_iter().for_each(Vec::clear);
    }
}
