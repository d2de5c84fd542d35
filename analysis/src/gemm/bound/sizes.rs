//! Sizes of A and B that the bounds are computed from: sums of magnitudes along k, each weighted by the operations that
//! follow.

use std::collections::BTreeMap;

use super::super::Matrix;

/// Weighted sums over k of one row x of A and one column y of B.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sizes {
    /// Σ w·|x·y|.
    products: f64,
    /// Σ w·|x|.
    x: f64,
    /// Σ w·|y|.
    y: f64,
    /// Σ w.
    count: f64,
}

impl Sizes {
    /// Σ w·(f·|x| + g)·(f'·|y| + g').
    pub(super) fn product(&self, (f, g): (f64, f64), (of_y, rest_of_y): (f64, f64)) -> f64 {
        f * of_y * self.products + f * rest_of_y * self.x + g * of_y * self.y + g * rest_of_y * self.count
    }

    /// Σ w·|x·y|.
    pub(super) fn products(&self) -> f64 {
        self.products
    }

    /// Multiplies every weight by a factor.
    fn times(self, factor: f64) -> Self {
        Self { products: factor * self.products, x: factor * self.x, y: factor * self.y, count: factor * self.count }
    }
}

/// The sizes of one dot.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Weighted {
    /// Every product counted once.
    pub(super) all: Sizes,
    /// Weighted by the number of operations that come after it in its block.
    pub(super) later: Sizes,
    /// Weighted by the number of blocks from its own block on.
    pub(super) blocks: Sizes,
}

impl Weighted {
    /// The largest weights of any A and B with the same sums of magnitudes: every product comes first, before
    /// `steps` − 1 operations of its block and in the first of `blocks` blocks.
    pub(super) fn at_worst(self, steps: usize, blocks: usize) -> Self {
        Self { later: self.all.times((steps - 1) as f64), blocks: self.all.times(blocks as f64), ..self }
    }
}

/// Matrices and their sizes, computed on demand.
pub(in crate::gemm) struct Magnitudes<'a> {
    a: &'a Matrix,
    columns: Vec<Vec<f64>>,
    largest: [f64; 2],
    /// Keyed by the products per operation and per block.
    tables: BTreeMap<(usize, usize), Vec<Weighted>>,
}

/// Consecutive k of one operation, and their weights.
struct Span {
    from: usize,
    to: usize,
    later: f64,
    blocks: f64,
}

impl<'a> Magnitudes<'a> {
    /// The magnitudes of an m×k and a k×n matrix.
    pub(in crate::gemm) fn new(a: &'a Matrix, b: &Matrix) -> Self {
        let column = |column: usize| (0..b.rows).map(|row| b.values[row * b.columns + column].abs()).collect();
        let largest = [a, b].map(|matrix| matrix.values.iter().fold(0.0, |most: f64, value| most.max(value.abs())));
        Self { a, columns: (0..b.columns).map(column).collect(), largest, tables: BTreeMap::new() }
    }

    /// The largest magnitudes of A and of B.
    pub(super) fn largest(&self) -> [f64; 2] {
        self.largest
    }

    /// The number of elements of A·B.
    pub(super) fn dots(&self) -> usize {
        self.a.rows * self.columns.len()
    }

    /// The number of products in a dot.
    pub(super) fn k(&self) -> usize {
        self.a.columns
    }

    /// The sizes of every dot, if an operation takes `step` products and each `block` products have a sum of their own.
    pub(super) fn table(&mut self, step: usize, block: usize) -> &[Weighted] {
        let (a, columns) = (self.a, &self.columns);
        self.tables.entry((step, block)).or_insert_with(|| table(a, columns, &spans(a.columns, step, block)))
    }
}

/// The operations along k.
fn spans(k: usize, step: usize, block: usize) -> Vec<Span> {
    let blocks = k.div_ceil(block);
    let mut spans = Vec::new();
    for first in (0..k).step_by(block) {
        let end = (first + block).min(k);
        let steps = (end - first).div_ceil(step);
        let blocks = (blocks - first / block) as f64;
        spans.extend((0..steps).map(|at| {
            let from = first + at * step;
            Span { from, to: (from + step).min(end), later: (steps - 1 - at) as f64, blocks }
        }));
    }
    spans
}

fn table(a: &Matrix, columns: &[Vec<f64>], spans: &[Span]) -> Vec<Weighted> {
    let weighted = |size: &dyn Fn(&Span) -> f64| {
        spans.iter().fold([0.0; 3], |[all, later, blocks], span| {
            let size = size(span);
            [all + size, later + size * span.later, blocks + size * span.blocks]
        })
    };
    let sum = |of: &[f64]| weighted(&|span| of[span.from..span.to].iter().map(|value| value.abs()).sum());
    #[expect(clippy::cast_precision_loss, reason = "a count of products")]
    let counts = weighted(&|span| (span.to - span.from) as f64);
    let of_columns: Vec<[f64; 3]> = columns.iter().map(|column| sum(column)).collect();
    let mut found = Vec::with_capacity(a.rows * columns.len());
    for row in a.values.chunks(a.columns.max(1)) {
        let of_row = sum(row);
        for (column, of_column) in columns.iter().zip(&of_columns) {
            let products = weighted(&|span| products(&row[span.from..span.to], &column[span.from..span.to]));
            let [all, later, blocks] = [0, 1, 2].map(|at| Sizes {
                products: products[at],
                x: of_row[at],
                y: of_column[at],
                count: counts[at],
            });
            found.push(Weighted { all, later, blocks });
        }
    }
    found
}

/// Σ |x|·y for magnitudes y, in several independent sums.
fn products(x: &[f64], y: &[f64]) -> f64 {
    const LANES: usize = 8;
    let ((x_lanes, x_rest), (y_lanes, y_rest)) = (x.as_chunks::<LANES>(), y.as_chunks::<LANES>());
    let mut sums = [0.0; LANES];
    for (x, y) in x_lanes.iter().zip(y_lanes) {
        for lane in 0..LANES {
            sums[lane] += x[lane].abs() * y[lane];
        }
    }
    let rest: f64 = x_rest.iter().zip(y_rest).map(|(x, y)| x.abs() * y).sum();
    sums.iter().sum::<f64>() + rest
}
