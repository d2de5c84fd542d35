//! The nearly exact product of matrices of f64.

use std::ops::Range;

use super::exponent;
use crate::{Vectorised, fast::on_avx512, threads, vectorised};

/// A row-major matrix.
#[derive(Clone, Copy)]
struct Matrix<'a> {
    values: &'a [f64],
    columns: usize,
}

/// A·B as if in twice f64's precision and rounded once, and |A|·|B| in f64.
///
/// A sum starts at 1.5·2^e, where 2^e exceeds every possible sum of magnitudes, so that its last place never changes.
/// A fused multiply-add then rounds each product to that place, which adds it without an error, and the remainder
/// of the product is known exactly (Rump's extraction; "Ultimately fast accurate summation", SISC 2009). Remainders
/// have a sum of their own.
#[must_use]
pub fn product(a: &[f64], b: &[f64], lengths: (usize, usize, usize)) -> (Vec<f64>, Vec<f64>) {
    let (m, n, k) = lengths;
    let matrix = |values, columns| Matrix { values, columns };
    let (a, b) = (matrix(a, k), matrix(b, n));
    let signed = !(is_positive(a.values) && is_positive(b.values));
    let (of_rows, of_columns) = (largest_of_rows(a, m), largest_of_columns(b));
    let largest = (&of_rows[..], &of_columns[..]);
    let across = n.div_ceil(LANES);
    // Bands of rows, and also panels of columns if there are few rows.
    let threads = threads().min(1 + m * n * k / PRODUCTS_PER_THREAD);
    let down = threads.min(m.div_ceil(ROWS)).max(1);
    let per_band = m.div_ceil(down).next_multiple_of(ROWS).max(1);
    let per_part = across.div_ceil(threads.div_ceil(down)).max(1);
    let mut products = vec![0.0; m * n];
    let mut magnitudes = products.clone();
    std::thread::scope(|scope| {
        let mut parts = Vec::new();
        for first_row in (0..m).step_by(per_band) {
            for first_panel in (0..across).step_by(per_part) {
                let rows = first_row..(first_row + per_band).min(m);
                let panels = first_panel..(first_panel + per_part).min(across);
                let work = move || {
                    // Without signs, products are sizes as well. Only the widest vectors have a kernel for this, since
                    // each takes room in the program.
                    let positive = Dots::<'_, false> { a, b, k, largest, rows: rows.clone(), panels: panels.clone() };
                    let found = if signed { None } else { on_avx512(positive) };
                    let any = Dots::<'_, true> { a, b, k, largest, rows: rows.clone(), panels: panels.clone() };
                    let found = found.unwrap_or_else(|| vectorised(any));
                    (rows, panels, found)
                };
                parts.push(scope.spawn(work));
            }
        }
        for part in parts {
            let (rows, panels, found) = part.join().expect("sums do not panic");
            let mut found = found.into_iter();
            for panel in panels {
                let first = panel * LANES;
                let count = LANES.min(n - first);
                for row in rows.clone() {
                    let dots = found.next().expect("dots of every row and panel");
                    let at = row * n + first;
                    products[at..at + count].copy_from_slice(&dots.products()[..count]);
                    let sizes = if signed { &dots.magnitudes } else { &dots.products() };
                    magnitudes[at..at + count].copy_from_slice(&sizes[..count]);
                }
            }
        }
    });
    (products, magnitudes)
}

/// Columns whose dots are computed in parallel lanes: a single dot would wait for each of its own sums.
const LANES: usize = 16;

/// Rows that are computed in parallel, for the same reason.
const ROWS: usize = 2;

/// Products along k that are computed for every row before the next ones, so that their part of B stays in the L1
/// cache.
const AT_ONCE: usize = 128;

/// Starting a thread costs as much as some hundred thousand products.
const PRODUCTS_PER_THREAD: usize = 400_000;

/// Dots of one row and a panel of columns.
#[derive(Clone, Copy)]
struct Lanes {
    /// Where the sums started.
    starts: [f64; LANES],
    sums: [f64; LANES],
    /// Sums of the remainders.
    lows: [f64; LANES],
    /// Σ |x·y|, if some value is negative.
    magnitudes: [f64; LANES],
}

impl Lanes {
    const ZERO: Self = Self { starts: [0.0; LANES], sums: [0.0; LANES], lows: [0.0; LANES], magnitudes: [0.0; LANES] };

    /// Lanes for a row whose largest magnitude is `x`, and columns whose largest are `y`, with sums of `k` products.
    fn starting(x: f64, y: &[f64], k: usize) -> Self {
        let mut lanes = Self::ZERO;
        for (start, y) in lanes.starts.iter_mut().zip(y) {
            let bound = x * y * (k as f64 + 1.0);
            let above = if bound.is_infinite() { MOST_START } else { exponent(bound) + 2 };
            *start = 1.5 * f64::from(above.clamp(LEAST_START, MOST_START)).exp2();
        }
        lanes.sums = lanes.starts;
        lanes
    }

    fn products(&self) -> [f64; LANES] {
        std::array::from_fn(|lane| (self.sums[lane] - self.starts[lane]) + self.lows[lane])
    }

    /// Adds x·y in each lane; `sizes` are |y|.
    #[inline(always)]
    fn add<const SIGNED: bool>(&mut self, x: f64, y: &[f64; LANES], sizes: &[f64; LANES]) {
        let size = x.abs();
        for lane in 0..LANES {
            let sum = x.mul_add(y[lane], self.sums[lane]);
            let added = sum - self.sums[lane];
            self.lows[lane] += x.mul_add(y[lane], -added);
            self.sums[lane] = sum;
            if SIGNED {
                self.magnitudes[lane] = size.mul_add(sizes[lane], self.magnitudes[lane]);
            }
        }
    }
}

/// The exponents that sums start at: below, remainders would underflow; above, sums would overflow.
const LEAST_START: i32 = -900;
const MOST_START: i32 = 1022;

fn largest_of_rows(a: Matrix<'_>, rows: usize) -> Vec<f64> {
    if a.columns == 0 { vec![0.0; rows] } else { a.values.chunks_exact(a.columns).map(largest).collect() }
}

/// The largest magnitude of values, 0 if there is none.
fn largest(values: &[f64]) -> f64 {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut lanes = [0f64; LANES];
    for chunk in chunks {
        for lane in 0..LANES {
            lanes[lane] = lanes[lane].max(chunk[lane].abs());
        }
    }
    lanes.iter().chain(rest).fold(0f64, |largest, value| largest.max(value.abs()))
}

fn largest_of_columns(b: Matrix<'_>) -> Vec<f64> {
    let rows_at_once = AT_ONCE.div_ceil(b.columns.max(1));
    let mut several = vec![0f64; rows_at_once * b.columns];
    for chunk in b.values.chunks(several.len().max(1)) {
        several.iter_mut().zip(chunk).for_each(|(largest, value)| *largest = largest.max(value.abs()));
    }
    let mut largest = vec![0f64; b.columns];
    for row in several.chunks_exact(b.columns.max(1)) {
        largest.iter_mut().zip(row).for_each(|(largest, value)| *largest = largest.max(*value));
    }
    largest
}

/// Whether no value is negative or NaN.
fn is_positive(values: &[f64]) -> bool {
    values.chunks(AT_ONCE).all(|chunk| chunk.iter().fold(true, |all, value| all & (*value >= 0.0)))
}

/// Multiplies rows of A by panels of columns of B. Without `SIGNED`, every value is positive. Returns the dots of a
/// panel, row after row, then those of the next panel.
struct Dots<'a, const SIGNED: bool> {
    a: Matrix<'a>,
    b: Matrix<'a>,
    k: usize,
    /// The largest magnitudes of each row of A and of each column of B.
    largest: (&'a [f64], &'a [f64]),
    rows: Range<usize>,
    panels: Range<usize>,
}

impl<const SIGNED: bool> Vectorised for Dots<'_, SIGNED> {
    type Output = Vec<Lanes>;

    #[inline(always)]
    fn run(self) -> Vec<Lanes> {
        let Self { a, b, k, largest: (of_rows, of_columns), rows, panels } = self;
        let mut found = vec![Lanes::ZERO; rows.len() * panels.len()];
        let (mut part, mut sizes) = ([[0.0; LANES]; AT_ONCE], [[0.0; LANES]; AT_ONCE]);
        for (panel, found) in panels.zip(found.chunks_mut(rows.len().max(1))) {
            let first = panel * LANES;
            let count = LANES.min(b.columns - first);
            let starts = rows.clone().map(|row| Lanes::starting(of_rows[row], &of_columns[first..first + count], k));
            found.iter_mut().zip(starts).for_each(|(lanes, start)| *lanes = start);
            for from in (0..k).step_by(AT_ONCE) {
                let length = AT_ONCE.min(k - from);
                for (line, row) in part[..length].iter_mut().zip(from..) {
                    let values = &b.values[row * b.columns + first..];
                    // Lanes without a column may have any values: a copy of fixed length is faster.
                    match values.first_chunk() {
                        Some(values) => *line = *values,
                        None => line[..count].copy_from_slice(&values[..count]),
                    }
                }
                if SIGNED {
                    sizes.iter_mut().zip(&part).for_each(|(sizes, line)| *sizes = line.map(f64::abs));
                }
                let mut row = rows.start;
                for lanes in found.chunks_mut(ROWS) {
                    let x = |row: usize| &a.values[row * a.columns + from..][..length];
                    if let [one, other] = lanes {
                        // Copied, so that they stay in registers.
                        let (mut first, mut second) = (*one, *other);
                        for (((x, z), y), sizes) in x(row).iter().zip(x(row + 1)).zip(&part).zip(&sizes) {
                            first.add::<SIGNED>(*x, y, sizes);
                            second.add::<SIGNED>(*z, y, sizes);
                        }
                        (*one, *other) = (first, second);
                    } else {
                        for lanes in lanes {
                            let mut sums = *lanes;
                            let lines = x(row).iter().zip(&part).zip(&sizes);
                            lines.for_each(|((x, y), sizes)| sums.add::<SIGNED>(*x, y, sizes));
                            *lanes = sums;
                        }
                    }
                    row += ROWS;
                }
            }
        }
        found
    }
}
