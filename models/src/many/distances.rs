//! Distances between matrices of which only blocks exist at a time, relative to the sizes of products.

use super::{
    blocked::{BLOCK_COLUMNS, BLOCK_ROWS, Factors, Region, Rows, blocked},
    product,
};
use crate::{Vectorised, vectorised};

/// A sum of matrices with signs.
#[derive(Clone, Debug)]
pub struct Signed {
    /// Whether the given matrix, D, is added.
    pub given: bool,
    /// The products that are added or subtracted.
    pub products: Vec<(usize, f64)>,
}

/// What is asked of products and a given matrix.
pub struct Question<'a> {
    /// D, m×n.
    pub given: &'a dyn Rows,
    /// The products. The first is the one to which norms are relative.
    pub products: &'a [Factors<'a>],
    /// The product with the sizes |A|·|B|: the first, or one of [`Arithmetic::Sizes`](super::Arithmetic::Sizes).
    pub sizes: usize,
    /// The matrices whose distance from zero is wanted.
    pub signed: &'a [Signed],
    /// For each product: the largest error of an element, in units of the element of |A|·|B|.
    pub loss: &'a [f64],
}

/// The distance of a matrix from zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Distance {
    /// The largest magnitude of an element, divided by the element of |A|·|B|, or by 1 if that is 0. Infinite if an element
    /// is NaN.
    pub componentwise: f64,
    /// The Frobenius norm, divided by that of the first product, or by 1 if that is 0.
    pub normwise: f64,
}

/// The relative error up to which norms are accepted: 2^-16.
const NORM_ERROR: f64 = 1.0 / 65536.0;

/// The elements among which the largest is looked for with nearly exact dots, at most.
const MOST_CANDIDATES: usize = 64;

/// The distances of matrices from zero. The largest element is found with plain products, and then computed from nearly
/// exact dots ([`product`]); norms are those of plain products. `None` if the loss of plain products could change the
/// fifth digit of a norm, or if too many elements may be the largest.
#[must_use]
pub fn distances(question: &Question<'_>, (m, n): (usize, usize)) -> Option<Vec<Distance>> {
    let limits: Vec<Limit> = question.signed.iter().map(|signed| Limit::of(question, signed)).collect();
    let bands = blocked(question.products, (m, n), |band: &mut Band, region, sums| {
        band.add(question, &limits, region, sums);
    });
    let norm_of = |of: &dyn Fn(&Band) -> &[f64]| bands.iter().flat_map(of).sum::<f64>().sqrt();
    let (norm, sizes) = (norm_of(&|band| &band.norms[0]), norm_of(&|band| &band.norms[1]));
    let is_right = |loss: f64, norm: f64| loss == 0.0 || loss * sizes <= NORM_ERROR * norm;
    if !is_right(question.loss[0], norm) {
        return None;
    }
    let distance = |at: usize| {
        let (signed, limit) = (&question.signed[at], &limits[at]);
        let found: Vec<&Found> = bands.iter().map(|band| &band.found[at]).collect();
        let difference = norm_of(&|band| &band.found[at].squares);
        let normwise = if norm > 0.0 { difference / norm } else { difference };
        if !difference.is_finite() {
            let largest = found.iter().fold(0.0, |largest: f64, found| largest.max(found.largest));
            let componentwise = if difference.is_nan() { f64::INFINITY } else { largest };
            return Some(Distance { componentwise, normwise });
        }
        let is_right = is_right(limit.loss, difference);
        let componentwise = is_right.then(|| limit.largest(question, signed, &found)).flatten()?;
        Some(Distance { componentwise, normwise })
    };
    (0..limits.len()).map(distance).collect()
}

/// How far the quotients of a matrix may be from those of exact products.
struct Limit {
    /// The error of an element in units of the sizes.
    loss: f64,
    /// The relative error of sizes.
    of_sizes: f64,
}

impl Limit {
    fn of(question: &Question<'_>, signed: &Signed) -> Self {
        // The sum of several matrices is rounded, once for each.
        let terms = signed.products.len() + usize::from(signed.given);
        let rounding = if terms > 2 { 2.0 * f64::EPSILON } else { 0.0 };
        let loss = signed.products.iter().map(|(at, _)| question.loss[*at]).sum::<f64>();
        let loss = if loss == 0.0 { 0.0 } else { loss + rounding };
        Self { loss, of_sizes: question.loss[question.sizes] }
    }

    /// The least quotient that may be that of the largest element, if this one is the largest so far.
    fn least(&self, largest: f64) -> f64 {
        largest * (1.0 - 4.0 * self.of_sizes - 4.0 * f64::EPSILON) - 4.0 * self.loss
    }

    /// The largest quotient, from nearly exact dots.
    fn largest(&self, question: &Question<'_>, signed: &Signed, found: &[&Found]) -> Option<f64> {
        let largest = found.iter().fold(0.0, |largest: f64, found| largest.max(found.largest));
        if self.loss == 0.0 && largest == 0.0 {
            return Some(0.0);
        }
        let least = self.least(largest);
        if least <= 0.0 || found.iter().any(|found| found.dropped >= least) {
            return None;
        }
        let near = || found.iter().flat_map(|found| &found.candidates).filter(|(quotient, _)| *quotient >= least);
        if near().count() > MOST_CANDIDATES {
            return None;
        }
        let exact = near().map(|(_, (row, column))| question.quotient(signed, *row, *column));
        Some(exact.fold(0.0, f64::max))
    }
}

impl Question<'_> {
    /// The quotient of one element, from nearly exact dots.
    fn quotient(&self, signed: &Signed, row: usize, column: usize) -> f64 {
        let dot = |at: usize| {
            let factors = &self.products[at];
            let (mut of_a, mut of_b) = (vec![0.0; factors.k], vec![0.0; factors.k]);
            factors.a.read(row, 0, &mut of_a);
            for (k, value) in of_b.iter_mut().enumerate() {
                factors.b.read(k, column, std::slice::from_mut(value));
            }
            product(&of_a, &of_b, (1, 1, factors.k))
        };
        let mut given = [0.0];
        self.given.read(row, column, &mut given);
        let start = if signed.given { given[0] } else { 0.0 };
        let sum = signed.products.iter().fold(start, |sum, (at, sign)| sum + sign * dot(*at).0[0]);
        let size = dot(0).1[0];
        if size > 0.0 { sum.abs() / size } else { sum.abs() }
    }
}

/// What was found in a band of rows.
#[derive(Default)]
struct Band {
    found: Vec<Found>,
    /// For each row, the sums of squares of the first product and of the sizes.
    norms: [Vec<f64>; 2],
    /// Buffers for a block.
    given: Vec<f64>,
    quotients: Vec<f64>,
}

/// What was found of one matrix in a band of rows.
#[derive(Default)]
struct Found {
    /// For each row, the sum of squares.
    squares: Vec<f64>,
    /// The largest quotient.
    largest: f64,
    /// Quotients that may be the largest, and the places of their elements.
    candidates: Vec<(f64, (usize, usize))>,
    /// The largest quotient when candidates were too many and were dropped.
    dropped: f64,
}

impl Band {
    fn add(&mut self, question: &Question<'_>, limits: &[Limit], region: &Region, sums: &[Vec<f64>]) {
        let (rows, columns) = (region.rows.len(), region.columns.len());
        if self.found.is_empty() {
            let squares = || vec![0.0; rows];
            self.norms = [squares(), squares()];
            self.found = limits.iter().map(|_| Found { squares: squares(), ..Found::default() }).collect();
            self.given = vec![0.0; BLOCK_ROWS * BLOCK_COLUMNS];
            self.quotients = self.given.clone();
        }
        self.given.fill(0.0);
        for (row, line) in region.rows.clone().zip(self.given.chunks_exact_mut(BLOCK_COLUMNS)) {
            question.given.read(row, region.columns.start, &mut line[..columns]);
        }
        let sizes = &sums[question.sizes][..rows * BLOCK_COLUMNS];
        for (norms, of) in self.norms.iter_mut().zip([&sums[0][..], sizes]) {
            vectorised(Squares { of, sums: norms });
        }
        for ((signed, limit), found) in question.signed.iter().zip(limits).zip(&mut self.found) {
            let terms: Vec<(&[f64], f64)> = signed.products.iter().map(|(at, sign)| (&sums[*at][..], *sign)).collect();
            let given = signed.given.then_some(&self.given[..]);
            let quotients = &mut self.quotients[..rows * BLOCK_COLUMNS];
            let largest = vectorised(Quotients { given, terms: &terms, sizes, quotients, squares: &mut found.squares });
            found.keep(limit, largest, region, quotients);
        }
    }
}

impl Found {
    /// Keeps the elements of a block that may be the largest.
    fn keep(&mut self, limit: &Limit, largest: f64, region: &Region, quotients: &[f64]) {
        self.largest = self.largest.max(largest);
        let least = limit.least(self.largest);
        if largest < least || self.largest == 0.0 {
            return;
        }
        for (row, quotients) in region.rows.clone().zip(quotients.chunks_exact(BLOCK_COLUMNS)) {
            let near = region.columns.clone().zip(quotients).filter(|(_, quotient)| **quotient >= least);
            self.candidates.extend(near.map(|(column, quotient)| (*quotient, (row, column))));
            if self.candidates.len() > MOST_CANDIDATES {
                self.candidates.retain(|(quotient, _)| *quotient >= least);
            }
            if self.candidates.len() > MOST_CANDIDATES {
                self.candidates.clear();
                self.dropped = self.largest;
            }
        }
    }
}

/// Numbers that are added in parallel.
const LANES: usize = 16;

/// Sums of numbers by lanes.
#[inline(always)]
fn sum(lanes: [f64; LANES]) -> f64 {
    lanes.iter().sum()
}

/// Adds the squares of each row of a block to its sum.
struct Squares<'a> {
    of: &'a [f64],
    sums: &'a mut [f64],
}

impl Vectorised for Squares<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (values, total) in self.of.chunks_exact(BLOCK_COLUMNS).zip(self.sums) {
            let mut lanes = [0.0; LANES];
            for values in values.as_chunks::<LANES>().0 {
                for lane in 0..LANES {
                    lanes[lane] += values[lane] * values[lane];
                }
            }
            *total += sum(lanes);
        }
    }
}

/// The numbers of one step.
#[inline(always)]
fn part(of: &[f64], step: usize) -> &[f64; LANES] {
    of[step * LANES..].first_chunk().expect("whole blocks")
}

/// Adds matrices, and divides by sizes. Adds the squares of each row to its sum, and returns the largest quotient, NaN
/// left aside.
struct Quotients<'a> {
    given: Option<&'a [f64]>,
    terms: &'a [(&'a [f64], f64)],
    sizes: &'a [f64],
    quotients: &'a mut [f64],
    squares: &'a mut [f64],
}

impl Vectorised for Quotients<'_> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let Self { given, terms, sizes, quotients, squares } = self;
        let mut largest = [0f64; LANES];
        let (quotients, _) = quotients.as_chunks_mut::<LANES>();
        let (sizes, _) = sizes.as_chunks::<LANES>();
        let rows = quotients.chunks_exact_mut(BLOCK_COLUMNS / LANES).zip(sizes.chunks_exact(BLOCK_COLUMNS / LANES));
        for (row, ((quotients, sizes), total)) in rows.zip(squares).enumerate() {
            let mut lanes = [0.0; LANES];
            for (at, (quotients, sizes)) in quotients.iter_mut().zip(sizes).enumerate() {
                let at = row * (BLOCK_COLUMNS / LANES) + at;
                let mut sum = match given {
                    Some(given) => *part(given, at),
                    None => [0.0; LANES],
                };
                for (of, sign) in terms {
                    let of = part(of, at);
                    for lane in 0..LANES {
                        sum[lane] += sign * of[lane];
                    }
                }
                for lane in 0..LANES {
                    lanes[lane] += sum[lane] * sum[lane];
                    let divisor = if sizes[lane] > 0.0 { sizes[lane] } else { 1.0 };
                    quotients[lane] = sum[lane].abs() / divisor;
                    largest[lane] = if quotients[lane] > largest[lane] { quotients[lane] } else { largest[lane] };
                }
            }
            *total += self::sum(lanes);
        }
        largest.into_iter().fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::many::{Arithmetic, Plain};

    /// Integers that cancel: each row of A is followed by its negative, except for a small remainder.
    fn cancelling((m, n, k): (usize, usize, usize), seed: u64) -> (Vec<f64>, Vec<f64>) {
        let mut random = mxprobe_api::Random(seed);
        let mut integer = |bits: u32| f64::from(u32::try_from(random.bits() >> (64 - bits)).unwrap());
        let mut a = vec![0.0; m * k];
        for row in a.chunks_exact_mut(k) {
            let (first, second) = row.split_at_mut(k / 2);
            first.iter_mut().for_each(|value| *value = integer(24) + 1.0);
            second.iter_mut().zip(first).for_each(|(value, first)| *value = -*first);
            row[k - 1] += 1.0;
        }
        let half: Vec<f64> = (0..k / 2 * n).map(|_| integer(24) + 1.0).collect();
        (a, [half.clone(), half].concat())
    }

    /// A·B and |A|·|B| of integers.
    #[expect(clippy::cast_possible_truncation, reason = "the values are small integers")]
    fn integers(a: &[f64], b: &[f64], (m, n, k): (usize, usize, usize)) -> Vec<(i128, i128)> {
        let dot = |at: usize| {
            let products = (0..k).map(|l| a[at / n * k + l] as i128 * b[l * n + at % n] as i128);
            products.fold((0, 0), |(dot, size), product| (dot + product, size + product.abs()))
        };
        (0..m * n).map(dot).collect()
    }

    fn found(a: &[f64], b: &[f64], d: &[f64], (m, n, k): (usize, usize, usize)) -> Option<Distance> {
        let (of_a, of_b) = (Plain { values: a, columns: k }, Plain { values: b, columns: n });
        let values = Factors { a: &of_a, b: &of_b, k, arithmetic: Arithmetic::Values };
        let products = [values, Factors { arithmetic: Arithmetic::Sizes, ..values }];
        let loss = [products[0].loss(), products[1].loss()];
        let signed = [Signed { given: true, products: vec![(0, -1.0)] }];
        let given = Plain { values: d, columns: n };
        let question = Question { given: &given, products: &products, sizes: 1, signed: &signed, loss: &loss };
        distances(&question, (m, n)).map(|found| found[0])
    }

    #[test]
    fn distances_from_sums_that_cancel_are_those_of_integers() {
        for lengths in [(7, 5, 40), (200, 3, 200), (3, 230, 202)] {
            let (m, n, _) = lengths;
            let (a, b) = cancelling(lengths, 3);
            let exact = integers(&a, &b, lengths);
            // A result far from all others, in the last row and column, and one with a smaller distance and smaller sizes.
            let mut d: Vec<f64> = exact.iter().map(|(dot, size)| *dot as f64 + *size as f64 / 1e6).collect();
            d[m * n - 1] += exact[m * n - 1].1 as f64 / 1e4;
            let (mut largest, mut difference, mut norm) = (0f64, 0f64, 0f64);
            for ((dot, size), d) in exact.iter().zip(&d) {
                #[expect(clippy::cast_possible_truncation, reason = "only the fraction is lost, which is added")]
                let error = ((*d as i128 - dot) as f64 + d.fract()).abs();
                largest = largest.max(error / *size as f64);
                difference += error * error;
                norm += *dot as f64 * *dot as f64;
            }
            let normwise = (difference / norm).sqrt();
            let found = found(&a, &b, &d, lengths);
            // With more products, f64 may lose the norm of A·B.
            let Some(found) = found else {
                assert!(lengths.2 > 40, "{norm:e}");
                continue;
            };
            assert!((found.componentwise - largest).abs() <= 1e-13 * largest, "{found:?} {largest:e}");
            assert!((found.normwise - normwise).abs() <= 2e-5 * normwise, "{found:?} {normwise:e}");
        }
    }

    #[test]
    fn the_largest_of_close_quotients_is_found_by_nearly_exact_dots() {
        let lengths = (13, 70, 300);
        let (m, n, k) = lengths;
        let mut random = mxprobe_api::Random(9);
        let mut draw = |count: usize| -> Vec<f64> {
            (0..count).map(|_| f64::from(u32::try_from(random.bits() >> 40).unwrap()) - 8e6).collect()
        };
        let (a, b) = (draw(m * k), draw(k * n));
        let exact = integers(&a, &b, lengths);
        // Quotients of 1e-3, two of which are larger by parts in 10^9 and 10^8: sizes in f32 do not tell them apart.
        let d: Vec<f64> = exact.iter().map(|(dot, size)| *dot as f64 + *size as f64 * 1e-4).collect();
        for (most, least) in [(77, 500), (500, 77)] {
            let mut d = d.clone();
            d[most] += exact[most].1 as f64 * 9e-4 * (1.0 + 1e-8);
            d[least] += exact[least].1 as f64 * 9e-4 * (1.0 + 1e-9);
            let expected = (d[most] - exact[most].0 as f64).abs() / exact[most].1 as f64;
            let found = found(&a, &b, &d, lengths).unwrap();
            assert!((found.componentwise - expected).abs() <= 1e-12 * expected, "{found:?} {expected:e}");
        }
    }

    #[test]
    fn a_distance_near_the_loss_of_f64_and_many_equal_ones_are_refused() {
        let lengths = (13, 70, 300);
        let (a, b) = cancelling(lengths, 4);
        let exact = integers(&a, &b, lengths);
        let nearest: Vec<f64> = exact.iter().map(|(dot, _)| *dot as f64).collect();
        assert_eq!(found(&a, &b, &nearest, lengths), None);
        let (ones, more) = (vec![1.0; 13 * 300], vec![-1.0; 300 * 70]);
        assert_eq!(found(&ones, &more, &vec![-299.0; 13 * 70], lengths), None);
    }

    #[test]
    fn a_result_that_is_nan_or_infinite_is_infinitely_far() {
        for (value, is_nan) in [(f64::NAN, true), (f64::NEG_INFINITY, false)] {
            let d = [1.0, value, 1.0, 1.0];
            let found = found(&[1.0, 2.0], &[3.0, 4.0], &d, (2, 2, 1)).unwrap();
            assert!(found.componentwise.is_infinite() && found.normwise.is_nan() == is_nan, "{found:?}");
        }
    }
}
