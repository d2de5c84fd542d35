//! Values that show what was added after two others met: a large one, its negation, and units that vanish beside it.

use std::sync::Arc;

use mxprobe_api::{Error, Format, Overflow, Random, Rounding, Subnormals};

use super::product::{Line, Product};

/// Values for questions about the order of a sum.
#[derive(Clone, Debug)]
pub(super) struct Scale {
    /// The shared operand, for each k; where `small` is another value, that of large values alone.
    pub(super) fixed: Arc<[u64]>,
    /// The shared operand beside units. If it is another than beside large values, units and large values cannot take each
    /// other's places in one request: formats with little range, of which both operands are needed.
    pub(super) small: u64,
    /// The large value and its negation, as bits of the varied operand.
    pub(super) large: (u64, u64),
    /// A unit, as bits of the varied operand.
    pub(super) unit: u64,
    /// What a unit adds to D.
    pub(super) unit_of_d: f64,
    /// So many units are counted exactly at once.
    pub(super) capacity: usize,
}

/// How often each count is asked.
const TRIALS: usize = 8;

/// 2^`exponent` in a format, or the nearest power of two that is normal in it.
fn power(format: Format, exponent: i32, negative: bool) -> u64 {
    format.encode(negative, 1, exponent, Rounding::NearestEven, Overflow::Saturate, Subnormals::Keep).bits
}

/// Exponents of the shared value beside the large one and beside the unit, of the large one and of the unit: one shared value
/// for both first, the farthest apart first.
fn ladders(shared: Format, varied: Format) -> Vec<(i32, i32, i32, i32)> {
    let range = |format: Format| format.as_float().map_or((0, 0), |float| float.exponents());
    let ((least, high), (low, most)) = (range(shared), range(varied));
    let lowest = low - varied.fraction_bits().cast_signed();
    let mut found = vec![(0, 60, -40), (0, 15, -24), (0, 15, -14), (0, 14, -9), (0, 60, -14), (0, 30, 0)];
    found.push((0, most, lowest));
    found.push((high.min(7), most, lowest));
    found.retain(|(one, large, unit)| *one <= high && *large <= most && *unit >= lowest);
    let mut found: Vec<_> = found.into_iter().map(|(one, large, unit)| (one, one, large, unit)).collect();
    if shared.bits() <= 8 && varied.bits() <= 8 {
        found.extend([(high, least, most, low), (high, least - shared.fraction_bits().cast_signed(), most, lowest)]);
    }
    found
}

impl Scale {
    /// The values that this product counts with, if it counts with any. Sums are multiplied by `alpha` before they are stored.
    ///
    /// # Errors
    /// What the device reports.
    pub(super) fn find(product: &Product<'_>, alpha: f64, seed: u64) -> Result<Option<Self>, Error> {
        let id = &product.operation.id;
        let (shared, varied) = if product.places.in_a_row { (id.a, id.b) } else { (id.b, id.a) };
        let mut best: Option<Self> = None;
        for (one, beside_units, large, unit) in ladders(shared, varied) {
            let scale = Self {
                fixed: vec![power(shared, one, false); product.k()].into(),
                small: power(shared, beside_units, false),
                large: (power(varied, large, false), power(varied, large, true)),
                unit: power(varied, unit, false),
                unit_of_d: alpha * f64::from(beside_units + unit).exp2(),
                capacity: 0,
            };
            let capacity = scale.counts_up_to(product, seed)?;
            if capacity > best.as_ref().map_or(0, |scale| scale.capacity) {
                best = Some(Self { capacity, ..scale });
            }
            if best.as_ref().is_some_and(|scale| scale.capacity >= product.k().min(1 << 12)) {
                break;
            }
        }
        Ok(best)
    }

    /// How many units at random places are counted exactly, and vanish beside a large value.
    fn counts_up_to(&self, product: &Product<'_>, seed: u64) -> Result<usize, Error> {
        let (k, d) = (product.k(), product.operation.id.d);
        let mut random = Random(seed);
        let (large, small) = if self.is_split() {
            let mut all = some(&mut random, k, k);
            let small = all.split_off(k.div_ceil(2));
            (all, small)
        } else {
            ((0..k).collect(), (0..k).collect())
        };
        if large.is_empty() || small.is_empty() {
            return Ok(0);
        }
        let fixed = self.beside(|at| large.contains(&at));
        let pick = |random: &mut Random, of: &[usize], count: usize| -> Vec<usize> {
            some(random, of.len(), count).into_iter().map(|at| of[at]).collect()
        };
        let mut sizes: Vec<usize> = (0..).map(|power| 1 << power).take_while(|size| *size < small.len()).collect();
        sizes.push(small.len());
        let (mut lines, mut beside) = (Vec::new(), Vec::new());
        for size in &sizes {
            for _ in 0..TRIALS {
                let places = pick(&mut random, &small, *size);
                lines.push(self.line(&places, &[]));
                // Beside the large value nothing is left of them, wherever it meets its negation.
                let mut apart = pick(&mut random, &large, 2.min(large.len()));
                let (i, j) = (apart.remove(0), apart.pop().unwrap_or(0));
                beside.push(places.iter().filter(|at| **at != i && **at != j).count());
                // Of two halves, that is what is left of both: if they vanish only in part, it is not.
                let (first, second) = places.split_at(size / 2);
                for places in [&places, first, second] {
                    lines.push(self.line(places, &[(i, self.large.0), (j, self.large.1)]));
                }
            }
        }
        let found = product.ask(&fixed, &lines, &[0])?;
        let (mut capacity, mut some_vanish) = (0, k <= 2);
        for ((size, found), beside) in sizes.iter().zip(found.chunks(4 * TRIALS)).zip(beside.chunks(TRIALS)) {
            let counts: Vec<Option<usize>> = found.iter().map(|bits| self.count(d, *bits)).collect();
            let is_counted = |trial: &[Option<usize>]| match trial {
                [Some(all), Some(left), Some(first), Some(second)] => {
                    all == size && left <= size && *left == first + second
                }
                [all, ..] => k == 1 && *all == Some(*size),
                [] => false,
            };
            if !counts.chunks(4).all(is_counted) {
                break;
            }
            some_vanish |=
                counts.chunks(4).zip(beside).any(|(trial, beside)| trial[1].is_some_and(|left| left < *beside));
            capacity = *size;
        }
        Ok(if some_vanish { capacity } else { 0 })
    }

    /// Whether large values and units have other values beside them.
    pub(super) fn is_split(&self) -> bool {
        self.fixed.first() != Some(&self.small)
    }

    /// The shared operand for large values in some places, and units in the others.
    pub(super) fn beside(&self, is_large: impl Fn(usize) -> bool) -> Arc<[u64]> {
        if !self.is_split() {
            return self.fixed.clone();
        }
        self.fixed.iter().enumerate().map(|(at, bits)| if is_large(at) { *bits } else { self.small }).collect()
    }

    /// Units in these places, zeros elsewhere, and some other values.
    pub(super) fn line(&self, units: &[usize], others: &[(usize, u64)]) -> Line {
        let mut base = vec![0; self.fixed.len()];
        units.iter().for_each(|at| base[*at] = self.unit);
        Line { base: base.into(), changes: others.to_vec() }
    }

    /// How many units a result is; `None` if it is no whole number of them.
    pub(super) fn count(&self, d: Format, bits: u64) -> Option<usize> {
        let units = (d.to_f64(bits) / self.unit_of_d).round();
        // No sum has more than 2^32 terms. What alpha makes of a whole number may be rounded in D.
        let is_whole =
            (0.0..4_294_967_296.0).contains(&units) && d.from_f64(units * self.unit_of_d) == d.from_f64(d.to_f64(bits));
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a whole number below 2^32")]
        is_whole.then_some(units as usize)
    }
}

/// So many of the numbers below `k`, in no order.
pub(super) fn some(random: &mut Random, k: usize, count: usize) -> Vec<usize> {
    let mut all: Vec<usize> = (0..k).collect();
    for at in 0..count.min(k) {
        let other = at + random.below(k - at);
        all.swap(at, other);
    }
    all.truncate(count);
    all
}
