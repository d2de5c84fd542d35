//! Values that show what was added after two others met: a large one, its negation, and units that vanish beside it.

use std::sync::Arc;

use mxprobe_api::{Error, Format, Overflow, Random, Rounding, Subnormals};

use super::product::{Line, Product};

/// Values for questions about the order of a sum.
#[derive(Clone, Debug)]
pub(super) struct Scale {
    /// The shared operand, for each k.
    pub(super) fixed: Arc<[u64]>,
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

/// Exponents of the shared value, of the large one and of the unit, the farthest apart first.
fn ladders(shared: Format, varied: Format) -> Vec<(i32, i32, i32)> {
    let range = |format: Format| format.as_float().map_or((0, 0), |float| float.exponents());
    let ((_, high), (low, most)) = (range(shared), range(varied));
    let lowest = low - varied.fraction_bits().cast_signed();
    let mut found = vec![(0, 60, -40), (0, 15, -24), (0, 15, -14), (0, 14, -9), (0, 60, -14), (0, 30, 0)];
    found.push((0, most, lowest));
    found.push((high.min(7), most, lowest));
    found.retain(|(one, large, unit)| *one <= high && *large <= most && *unit >= lowest);
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
        for (one, large, unit) in ladders(shared, varied) {
            let scale = Self {
                fixed: vec![power(shared, one, false); product.k()].into(),
                large: (power(varied, large, false), power(varied, large, true)),
                unit: power(varied, unit, false),
                unit_of_d: alpha * f64::from(one + unit).exp2(),
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
        let mut sizes: Vec<usize> = (0..).map(|power| 1 << power).take_while(|size| *size < k).collect();
        sizes.push(k);
        let mut lines = Vec::new();
        for size in &sizes {
            for _ in 0..TRIALS {
                let places = some(&mut random, k, *size);
                lines.push(self.line(&places, &[]));
                // Beside the large value nothing is left of them, wherever it meets its negation.
                let mut apart = some(&mut random, k, 2.min(k));
                let (i, j) = (apart.remove(0), apart.pop().unwrap_or(0));
                lines.push(self.line(&places, &[(i, self.large.0), (j, self.large.1)]));
            }
        }
        let found = product.ask(&self.fixed, &lines, &[0])?;
        let mut capacity = 0;
        for (size, found) in sizes.iter().zip(found.chunks(2 * TRIALS)) {
            let counts: Vec<Option<usize>> = found.iter().map(|bits| self.count(d, *bits)).collect();
            let all_counted = counts.iter().step_by(2).all(|count| *count == Some(*size));
            let some_left = counts.iter().skip(1).step_by(2).all(|count| count.is_some_and(|count| count <= *size));
            if !(all_counted && (some_left || k == 1)) {
                break;
            }
            capacity = *size;
        }
        Ok(capacity)
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
