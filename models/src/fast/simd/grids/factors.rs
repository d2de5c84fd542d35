//! Packed factors.

use crate::fast::operand::{ABSENT, INFINITE};

/// Rows of A, or a panel of B, as significands and exponents, and their scales likewise.
#[derive(Debug, Default)]
pub(in crate::fast) struct Factors {
    pub significands: Vec<f32>,
    pub exponents: Vec<i32>,
    pub scales: (Vec<f32>, Vec<i32>),
    /// Which factors of each scaled sum are nonzero, a bit each.
    pub masks: Vec<i32>,
    /// The largest exponent of each row, or of the panel, if the plan has folds.
    pub largest: Vec<i32>,
    /// If the plan has exact folds, the values in f64, and the exponents of each row, or of the panel.
    pub doubles: Vec<f64>,
    pub spans: Vec<Span>,
    /// The numbers of elements in a row or a column, of its scales, and of its masks.
    pub k: usize,
    pub blocks: usize,
    pub masks_each: usize,
    pub panel: usize,
}

impl Factors {
    pub(in crate::fast) fn push_scale(&mut self, (significand, exponent): (f32, i32)) {
        self.scales.0.push(significand);
        self.scales.1.push(exponent);
    }

    pub(in crate::fast) fn clear(&mut self) {
        self.significands.clear();
        self.scales.0.clear();
        self.doubles.clear();
        self.spans.clear();
        for numbers in [&mut self.exponents, &mut self.scales.1, &mut self.masks, &mut self.largest] {
            numbers.clear();
        }
    }

    /// Adds the factors of a row in f64, and their span. `plain` factors are values, others are significands.
    #[inline(always)]
    pub(in crate::fast) fn push_doubles(&mut self, row: std::ops::Range<usize>, plain: bool) {
        let (significands, exponents) = (&self.significands[row.clone()], &self.exponents[row]);
        let start = self.doubles.len();
        self.doubles.resize(start + significands.len(), 0.0);
        for ((double, significand), exponent) in self.doubles[start..].iter_mut().zip(significands).zip(exponents) {
            // Zeros, which any power leaves, and specials, which the kernel does not take, are out of range.
            let field = (1023 + exponent.clamp(&-1000, &1000)).cast_unsigned();
            let power = if plain { 1.0 } else { f64::from_bits(u64::from(field) << 52) };
            *double = f64::from(*significand) * power;
        }
        let mut span = Span { most: ABSENT, least: INFINITE };
        for exponent in exponents {
            span.most = span.most.max(*exponent);
            span.least = span.least.min(if *exponent > ABSENT { *exponent } else { INFINITE });
        }
        span.least = span.least.min(span.most);
        self.spans.push(span);
    }
}

/// The largest and the smallest exponent of some factors that are not 0; [`ABSENT`] if all of them are.
#[derive(Clone, Copy, Debug)]
pub(in crate::fast) struct Span {
    pub most: i32,
    pub least: i32,
}
