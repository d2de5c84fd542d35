//! Matrix products with operands from the classes of dots that compare devices.

use mxprobe::{dots::Draw, tolerance::Outside};
use mxprobe_api::{Elements, GemmOperands, OperationId};

/// The operands of a product.
pub(crate) struct Product {
    sizes: (usize, usize, usize),
    a: Elements,
    b: Elements,
    c: Elements,
    scales: Option<(Elements, Elements)>,
}

impl Product {
    /// A product of these operands, without scales.
    pub(crate) fn new(sizes: (usize, usize, usize), a: Elements, b: Elements, c: Elements) -> Self {
        Self { sizes, a, b, c, scales: None }
    }

    /// The dot of one element, without scales.
    pub(crate) fn dot(&self, row: usize, column: usize) -> Self {
        let (_, n, k) = self.sizes;
        let a = (0..k).map(|at| self.a.get(row * k + at));
        let b = (0..k).map(|at| self.b.get(at * n + column));
        let c = [self.c.get(row * n + column)];
        let of = |like: &Elements, bits: Vec<u64>| Elements::from_bits(like.format(), bits);
        Self::new((1, 1, k), of(&self.a, a.collect()), of(&self.b, b.collect()), of(&self.c, c.to_vec()))
    }

    /// Rows and columns from dots of every class, joined along k; the element (i, i) consists of whole drawn dots.
    pub(crate) fn drawn(id: &OperationId, seed: u64, (m, n, k): (usize, usize, usize)) -> Self {
        let step = id.shape.sizes().2;
        let block = id.block_scale().map(|scale| scale.block);
        let zeros = |format, length| Elements::zeros(format, length);
        let mut found = Self {
            sizes: (m, n, k),
            a: zeros(id.a, m * k),
            b: zeros(id.b, k * n),
            c: zeros(id.c, m * n),
            scales: None,
        };
        let mut scales = id.block_scale().map(|scale| {
            let blocks = k.div_ceil(scale.block);
            let ones = |length| Elements::from_bits(scale.format, vec![scale.format.one(); length]);
            (ones(m * blocks), ones(blocks * n))
        });
        // Consecutive seeds have different classes at the same place.
        let mut dots = Draw::new(id, seed).skip((seed * 5 % 64).try_into().unwrap());
        for line in 0..m.max(n) {
            for first in (0..k).step_by(step) {
                let dot = dots.next().unwrap();
                for at in first..(first + step).min(k) {
                    if line < m {
                        found.a.set(line * k + at, dot.a[at - first]);
                    }
                    if line < n {
                        found.b.set(at * n + line, dot.b[at - first]);
                    }
                }
                if let (Some((of_a, of_b)), Some((x, y)), Some(block)) = (&mut scales, &dot.scales, block) {
                    let blocks = k.div_ceil(block);
                    for (at, (x, y)) in x.iter().zip(y).enumerate() {
                        let at = first / block + at;
                        if at < blocks && line < m {
                            of_a.set(line * blocks + at, *x);
                        }
                        if at < blocks && line < n {
                            of_b.set(at * n + line, *y);
                        }
                    }
                }
                if line < m && first == 0 {
                    for column in 0..n {
                        // Every other C is zero.
                        if (line + column).is_multiple_of(2) {
                            found.c.set(line * n + column, dot.c);
                        }
                    }
                }
            }
        }
        found.scales = scales;
        found
    }

    pub(crate) fn operands(&self) -> GemmOperands<'_> {
        let (m, n, k) = self.sizes;
        let (scale_a, scale_b) = (self.scales.as_ref().map(|(a, _)| a), self.scales.as_ref().map(|(_, b)| b));
        GemmOperands { m, n, k, a: &self.a, b: &self.b, c: &self.c, scale_a, scale_b }
    }

    /// The dot of an element, for messages.
    pub(crate) fn show(&self, id: &OperationId, outside: &Outside) -> String {
        let (_, n, k) = self.sizes;
        let a: Vec<f64> = (0..k).map(|at| id.a.to_f64(self.a.get(outside.row * k + at))).collect();
        let b: Vec<f64> = (0..k).map(|at| id.b.to_f64(self.b.get(at * n + outside.column))).collect();
        let c = id.c.to_f64(self.c.get(outside.row * n + outside.column));
        format!("a = {a:?}\nb = {b:?}\nc = {c:e}")
    }
}
