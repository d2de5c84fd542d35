//! Plain products of matrices, of which only blocks exist at a time.

use std::{ops::Range, sync::Mutex};

use crate::{
    fast::{COLUMNS, Number, Path, ROWS, Row, block_sums},
    pieces::in_threads,
    threads,
};

/// A matrix whose rows can be read in pieces.
pub trait Rows: Sync {
    /// Writes the values of a row from a column on.
    fn read(&self, row: usize, column: usize, into: &mut [f64]);
}

/// A row-major matrix of values.
#[derive(Clone, Copy, Debug)]
pub struct Plain<'a> {
    /// The values.
    pub values: &'a [f64],
    /// Columns.
    pub columns: usize,
}

impl Rows for Plain<'_> {
    fn read(&self, row: usize, column: usize, into: &mut [f64]) {
        into.copy_from_slice(&self.values[row * self.columns + column..][..into.len()]);
    }
}

/// The arithmetic of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// A·B in f64: some products at a time are added to +0 by fused multiply-adds, k ascending, and these sums
    /// are added one after another.
    Values,
    /// |A|·|B|, with the elements and these sums in f32, and the rest in f64.
    Sizes,
}

/// The two factors of a product.
#[derive(Clone, Copy)]
pub struct Factors<'a> {
    /// A, m×k.
    pub a: &'a dyn Rows,
    /// B, k×n.
    pub b: &'a dyn Rows,
    /// The number of products in a sum.
    pub k: usize,
    /// How they are added.
    pub arithmetic: Arithmetic,
}

/// Products along k that are added in registers: a panel of B then stays in the L1 cache.
const STRETCH: usize = 96;

impl Factors<'_> {
    /// The largest error of an element in units of the element of |A|·|B|: one rounding for each of 96 products,
    /// and one for each sum of these; for sizes, two more, of the elements. The last hundredth is for terms of higher order.
    #[must_use]
    pub fn loss(&self) -> f64 {
        let among_stretches = self.k.div_ceil(STRETCH) as f64 * f64::EPSILON;
        let within = match self.arithmetic {
            Arithmetic::Values => STRETCH as f64 * f64::EPSILON,
            Arithmetic::Sizes => (STRETCH + 2) as f64 * f64::from(f32::EPSILON),
        };
        (within + among_stretches) * (0.5 * 1.01)
    }
}

/// The largest number of rows and of columns of a block of sums: it stays in the second-level cache with its factors.
pub(super) const BLOCK_ROWS: usize = 192;
/// See [`BLOCK_ROWS`].
pub(super) const BLOCK_COLUMNS: usize = 224;

/// The rows and columns of a block.
#[derive(Clone, Debug)]
pub struct Region {
    /// Rows.
    pub rows: Range<usize>,
    /// Columns.
    pub columns: Range<usize>,
}

/// Computes products of m×n elements block by block, and hands the sums of each block to `visit`: for each product, rows
/// of 224 sums, +0 beyond the last column. Returns one result for each band of 192 rows; the blocks of a band are visited
/// from left to right.
///
/// The sums do not depend on the processor or the number of threads.
pub fn blocked<T: Default + Send>(
    factors: &[Factors<'_>],
    (m, n): (usize, usize),
    visit: impl Fn(&mut T, &Region, &[Vec<f64>]) + Sync,
) -> Vec<T> {
    blocked_on(Path::Avx512, factors, (m, n), visit)
}

/// Like [`blocked`], with the instructions of a path or fewer.
pub(super) fn blocked_on<T: Default + Send>(
    path: Path,
    factors: &[Factors<'_>],
    (m, n): (usize, usize),
    visit: impl Fn(&mut T, &Region, &[Vec<f64>]) + Sync,
) -> Vec<T> {
    let packed: Vec<Packed> = factors.iter().map(|factors| Packed::new(factors, n)).collect();
    let bands: Vec<Mutex<T>> = (0..m.div_ceil(BLOCK_ROWS)).map(|_| Mutex::default()).collect();
    let room = || {
        let work: Vec<Work<'_>> = packed.iter().zip(factors).map(|(b, factors)| Work::new(b, factors)).collect();
        (work, vec![vec![0.0; BLOCK_ROWS * BLOCK_COLUMNS]; factors.len()])
    };
    in_threads(bands.len(), threads(), room, |band, (work, sums)| {
        let result = &mut *bands[band].lock().expect("no thread panics with it");
        let rows = band * BLOCK_ROWS..m.min((band + 1) * BLOCK_ROWS);
        work.iter_mut().for_each(|work| work.pack_a(rows.clone()));
        for first in (0..n).step_by(BLOCK_COLUMNS) {
            let region = Region { rows: rows.clone(), columns: first..n.min(first + BLOCK_COLUMNS) };
            work.iter().zip(&mut *sums).for_each(|(work, sums)| work.multiply(path, &region, sums));
            visit(result, &region, sums);
        }
    });
    bands.into_iter().map(|band| band.into_inner().expect("no thread panics with it")).collect()
}

/// B: for each panel of columns, its rows.
enum Packed {
    Values(Vec<Row<f64>>),
    Sizes(Vec<Row<f32>>),
}

impl Packed {
    fn new(factors: &Factors<'_>, n: usize) -> Self {
        match factors.arithmetic {
            Arithmetic::Values => Self::Values(pack_b(factors, n, |value| value)),
            Arithmetic::Sizes => Self::Sizes(pack_b(factors, n, size)),
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "rounded")]
fn size(value: f64) -> f32 {
    value.abs() as f32
}

/// Columns of A that are packed at a time.
const COLUMNS_AT_ONCE: usize = 64;

fn pack_b<T: Number>(factors: &Factors<'_>, n: usize, number: impl Fn(f64) -> T + Sync) -> Vec<Row<T>> {
    let k = factors.k;
    let mut packed = vec![[T::default(); COLUMNS]; n.div_ceil(COLUMNS) * k];
    let panels: Vec<Mutex<&mut [Row<T>]>> = packed.chunks_mut(k.max(1)).map(Mutex::new).collect();
    in_threads(
        panels.len(),
        threads(),
        || [0.0; COLUMNS],
        |panel, values| {
            let first = panel * COLUMNS;
            let values = &mut values[..COLUMNS.min(n - first)];
            let rows = &mut **panels[panel].lock().expect("no thread panics with it");
            for (row, packed) in rows.iter_mut().enumerate() {
                factors.b.read(row, first, values);
                packed.iter_mut().zip(&*values).for_each(|(number_of, value)| *number_of = number(*value));
            }
        },
    );
    drop(panels);
    packed
}

/// Rows of A, beside the packed B.
enum Numbers<'a> {
    Values(Vec<[f64; ROWS]>, &'a [Row<f64>]),
    Sizes(Vec<[f32; ROWS]>, &'a [Row<f32>]),
}

/// One product of a thread.
struct Work<'a> {
    a: &'a dyn Rows,
    k: usize,
    numbers: Numbers<'a>,
}

impl<'a> Work<'a> {
    fn new(b: &'a Packed, factors: &Factors<'a>) -> Self {
        let numbers = match b {
            Packed::Values(b) => Numbers::Values(Vec::new(), b),
            Packed::Sizes(b) => Numbers::Sizes(Vec::new(), b),
        };
        Self { a: factors.a, k: factors.k, numbers }
    }

    fn pack_a(&mut self, rows: Range<usize>) {
        match &mut self.numbers {
            Numbers::Values(packed, _) => pack_rows(self.a, self.k, rows, packed, |value| value),
            Numbers::Sizes(packed, _) => pack_rows(self.a, self.k, rows, packed, size),
        }
    }

    fn multiply(&self, path: Path, region: &Region, sums: &mut [f64]) {
        match &self.numbers {
            Numbers::Values(a, b) => multiply(path, (a, b, self.k), region, sums, |sum| sum),
            Numbers::Sizes(a, b) => multiply(path, (a, b, self.k), region, sums, f64::from),
        }
    }
}

/// Packs blocks of `ROWS` rows, with +0 beyond the last one.
fn pack_rows<T: Number>(
    a: &dyn Rows,
    k: usize,
    rows: Range<usize>,
    packed: &mut Vec<[T; ROWS]>,
    number: impl Fn(f64) -> T,
) {
    packed.clear();
    packed.resize(rows.len().div_ceil(ROWS) * k, [T::default(); ROWS]);
    let mut values = [0.0; COLUMNS_AT_ONCE];
    for (first, packed) in rows.clone().step_by(ROWS).zip(packed.chunks_exact_mut(k.max(1))) {
        for (column, packed) in (0..k).step_by(COLUMNS_AT_ONCE).zip(packed.chunks_mut(COLUMNS_AT_ONCE)) {
            for row in first..rows.end.min(first + ROWS) {
                let values = &mut values[..packed.len()];
                a.read(row, column, values);
                packed.iter_mut().zip(&*values).for_each(|(packed, value)| packed[row - first] = number(*value));
            }
        }
    }
}

fn multiply<T: Number>(
    path: Path,
    (a, b, k): (&[[T; ROWS]], &[Row<T>], usize),
    region: &Region,
    sums: &mut [f64],
    wide: impl Fn(T) -> f64,
) {
    sums.fill(0.0);
    let mut block = [[T::default(); COLUMNS]; ROWS];
    let panels = region.columns.start / COLUMNS..region.columns.end.div_ceil(COLUMNS);
    for from in (0..k).step_by(STRETCH) {
        let count = STRETCH.min(k - from);
        for (at, panel) in panels.clone().enumerate() {
            let b = &b[panel * k + from..][..count];
            for (a, sums) in a.chunks_exact(k).zip(sums.chunks_exact_mut(ROWS * BLOCK_COLUMNS)) {
                block_sums(path, &a[from..][..count], b, &mut block);
                for (sums, block) in sums.chunks_exact_mut(BLOCK_COLUMNS).zip(&block) {
                    let sums = sums[at * COLUMNS..].first_chunk_mut::<COLUMNS>().expect("whole panels in a block");
                    sums.iter_mut().zip(block).for_each(|(sum, added)| *sum += wide(*added));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum of one element, as documented.
    fn sum(a: &[f64], b: &[f64], arithmetic: Arithmetic) -> f64 {
        let stretches = a.chunks(STRETCH).zip(b.chunks(STRETCH));
        let of = |(a, b): (&[f64], &[f64])| {
            let pairs = || a.iter().zip(b);
            match arithmetic {
                Arithmetic::Values => pairs().fold(0.0, |sum, (x, y)| x.mul_add(*y, sum)),
                Arithmetic::Sizes => f64::from(pairs().fold(0f32, |sum, (x, y)| size(*x).mul_add(size(*y), sum))),
            }
        };
        stretches.map(of).fold(0.0, |sum, added| sum + added)
    }

    #[test]
    fn every_path_adds_products_in_the_documented_order() {
        let mut random = mxprobe_api::Random(1);
        let mut draw = |count: usize| -> Vec<f64> {
            let mut value = || {
                let size = f64::from(u32::try_from(random.bits() >> 40).unwrap()) - f64::from(1 << 23);
                size * f64::from(random.between(-20, 20)).exp2()
            };
            (0..count).map(|_| value()).collect()
        };
        for (m, n, k) in [(1, 1, 1), (13, 33, 97), (205, 7, 10), (3, 230, 200), (4, 5, 0)] {
            let (a, b) = (draw(m * k), draw(k * n));
            let (of_a, of_b) = (Plain { values: &a, columns: k }, Plain { values: &b, columns: n });
            for path in Path::available() {
                for arithmetic in [Arithmetic::Values, Arithmetic::Sizes] {
                    let factors = Factors { a: &of_a, b: &of_b, k, arithmetic };
                    let bands: Vec<Vec<_>> =
                        blocked_on(path, &[factors], (m, n), |found: &mut Vec<_>, region, sums| {
                            for (row, sums) in region.rows.clone().zip(sums[0].chunks_exact(BLOCK_COLUMNS)) {
                                found.extend(region.columns.clone().zip(sums).map(|(column, sum)| (row, column, *sum)));
                            }
                        });
                    let found = bands.concat();
                    assert_eq!(found.len(), m * n);
                    for (row, column, found) in found {
                        let of_column: Vec<f64> = (0..k).map(|l| b[l * n + column]).collect();
                        let expected = sum(&a[row * k..][..k], &of_column, arithmetic);
                        assert_eq!(found.to_bits(), expected.to_bits(), "{path:?}, {m}×{n}×{k}: {row}, {column}");
                    }
                }
            }
        }
    }

    #[test]
    fn no_sum_loses_more_than_stated() {
        // Sums that cancel: 2^52, then small products whose bits are lost, then −2^52.
        for k in [3, 96, 97, 1000] {
            let value = |at: usize| match at {
                0 => f64::from(52).exp2(),
                _ if at == k - 1 => -f64::from(52).exp2(),
                _ => 0.75,
            };
            let (a, b): (Vec<f64>, Vec<f64>) = ((0..k).map(value).collect(), vec![1.0; k]);
            let (of_a, of_b) = (Plain { values: &a, columns: k }, Plain { values: &b, columns: 1 });
            let factors = |arithmetic| Factors { a: &of_a, b: &of_b, k, arithmetic };
            let both = [factors(Arithmetic::Values), factors(Arithmetic::Sizes)];
            let found = blocked(&both, (1, 1), |found: &mut Vec<f64>, _, sums| {
                found.extend(sums.iter().map(|sums| sums[0]));
            });
            let small = (k - 2) as f64 * 0.75;
            let sizes = 2.0 * value(0) + small;
            let loss = (found[0][0] - small).abs() / sizes;
            assert!(loss <= both[0].loss(), "{k}: {loss:e}");
            assert!(
                k == 3 || loss > both[0].loss() / 10.0,
                "{k}: {loss:e}, the loss of {:e} is pessimistic",
                both[0].loss()
            );
            assert!((found[0][1] - sizes).abs() <= both[1].loss() * sizes, "{k}");
        }
    }
}
