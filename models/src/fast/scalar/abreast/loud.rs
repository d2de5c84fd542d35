//! The products that are not +0 in all of eight dots.

/// Which products are not +0 in all of eight dots.
pub(super) struct Loud {
    is: Vec<bool>,
    pub(super) places: Vec<usize>,
}

impl Loud {
    pub(super) fn new(k: usize) -> Self {
        Self { is: vec![false; k], places: Vec::with_capacity(k) }
    }

    #[inline(always)]
    pub(super) fn is_quiet(&self, k: usize) -> bool {
        !self.is[k]
    }

    #[inline(always)]
    pub(super) fn note(&mut self, k: usize) {
        if !self.is[k] {
            self.is[k] = true;
            self.places.push(k);
        }
    }

    /// Makes all products +0, and calls `erase` with the number of each that was not.
    #[inline(always)]
    pub(super) fn clear(&mut self, mut erase: impl FnMut(usize)) {
        for k in self.places.drain(..) {
            self.is[k] = false;
            erase(k);
        }
    }
}
