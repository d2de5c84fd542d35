//! Values that show what was added after two others met: a large value, its negation, and units that vanish next to it.

use std::sync::Arc;

use mxprobe_api::{Error, Format, Overflow, Random, Rounding, Subnormals};

use super::product::{Line, Product};

/// Values for questions about the order of a sum.
#[derive(Clone, Debug)]
pub(super) struct Scale {
    /// The shared operand at each k. If `small` differs from it, it applies to large values only.
    pub(super) fixed: Arc<[u64]>,
    /// The shared operand's value at units. If it differs from the one at large values, units and large values cannot
    /// take each other's places in one request. This happens in formats with a small range, where both operands are
    /// needed.
    pub(super) small: u64,
    /// The large value and its negation, as bits of the varied operand.
    pub(super) large: (u64, u64),
    /// A unit, as bits of the varied operand.
    pub(super) unit: u64,
    /// The value that a unit adds to D.
    pub(super) unit_of_d: f64,
    /// Number of units that are counted exactly in one dot.
    pub(super) capacity: usize,
}

/// Number of trials for each count.
const TRIALS: usize = 8;

/// Returns ±2^`exponent` in a format; a value out of range saturates.
fn power(format: Format, exponent: i32, negative: bool) -> u64 {
    format.encode(negative, 1, exponent, Rounding::NearestEven, Overflow::Saturate, Subnormals::Keep).bits
}

/// Returns the exponents to try: of the shared value at the large one and at the unit, of the large value, and of the
/// unit. Those with the same shared value for both come first.
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
    /// Finds the values with which this product counts the most units, if it counts any. `alpha` is the factor by which
    /// sums are multiplied before they are stored.
    ///
    /// # Errors
    /// Any error that the device reports.
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

    /// Returns how many units at random places are counted exactly and vanish next to a large value; 0 if none vanish.
    fn counts_up_to(&self, product: &Product<'_>, seed: u64) -> Result<usize, Error> {
        let (k, d) = (product.k(), product.operation.id.d);
        let mut random = Random(seed);
        let (large, small) = if self.is_split() {
            let mut all = some(&mut random, k, k);
            let mut small = all.split_off(k.div_ceil(2));
            small.sort_unstable();
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
        // D holds every count up to this one, and only some of the larger ones.
        let most = small.len().min(1 << (d.fraction_bits() + 1).min(30));
        let mut sizes: Vec<usize> = (0..).map(|power| 1 << power).take_while(|size| *size < most).collect();
        sizes.push(most);
        let (mut lines, mut beside, mut counted) = (Vec::new(), Vec::new(), Vec::new());
        for size in &sizes {
            for trial in 0..TRIALS {
                // Few bits hold an even count more often than an odd one.
                let size = (size - trial % 2).max(1);
                // Half of the time side by side, since they then meet in one slice, whose sum may not vanish.
                let places = if trial % 4 < 2 {
                    pick(&mut random, &small, size)
                } else {
                    let start = random.below(small.len() - size + 1);
                    small[start..start + size].to_vec()
                };
                counted.push(size);
                lines.push(self.line(&places, &[]));
                // Units next to the large value vanish until it meets its negation; the places of the two hold none.
                let mut apart = pick(&mut random, &large, 2.min(large.len()));
                let (i, j) = (apart.remove(0), apart.pop().unwrap_or(0));
                beside.push(places.iter().filter(|at| **at != i && **at != j).count());
                // The units left of two halves add up to those left of both; they do not if units vanish only in part.
                let every_other = |from: usize| places.iter().copied().skip(from).step_by(2).collect::<Vec<_>>();
                for places in [&places, &every_other(0), &every_other(1)] {
                    lines.push(self.line(places, &[(i, self.large.0), (j, self.large.1)]));
                }
            }
        }
        let found = product.ask(&fixed, &lines, &[0])?;
        let (mut capacity, mut some_vanish) = (0, k <= 2);
        let asked = sizes.iter().zip(counted.chunks(TRIALS));
        for (((size, counted), found), beside) in asked.zip(found.chunks(4 * TRIALS)).zip(beside.chunks(TRIALS)) {
            let counts: Vec<Option<usize>> = found.iter().map(|bits| self.count(d, *bits)).collect();
            let is_counted = |(trial, size): (&[Option<usize>], &usize)| match trial {
                [Some(all), Some(left), Some(first), Some(second)] => {
                    all == size && left <= size && *left == first + second
                }
                [all, ..] => k == 1 && *all == Some(*size),
                [] => false,
            };
            if !counts.chunks(4).zip(counted).all(is_counted) {
                break;
            }
            some_vanish |=
                counts.chunks(4).zip(beside).any(|(trial, beside)| trial[1].is_some_and(|left| left < *beside));
            capacity = *size;
        }
        Ok(if some_vanish { capacity } else { 0 })
    }

    /// Whether the shared operand differs between large values and units.
    pub(super) fn is_split(&self) -> bool {
        self.fixed.first() != Some(&self.small)
    }

    /// Returns the shared operand for large values in some places, and units in the others.
    pub(super) fn beside(&self, is_large: impl Fn(usize) -> bool) -> Arc<[u64]> {
        if !self.is_split() {
            return self.fixed.clone();
        }
        self.fixed.iter().enumerate().map(|(at, bits)| if is_large(at) { *bits } else { self.small }).collect()
    }

    /// Makes a line with units in these places, the other values in theirs, and zeros elsewhere.
    pub(super) fn line(&self, units: &[usize], others: &[(usize, u64)]) -> Line {
        let mut base = vec![0; self.fixed.len()];
        units.iter().for_each(|at| base[*at] = self.unit);
        Line { base: base.into(), changes: others.to_vec() }
    }

    /// Returns how many units a result is; `None` if it is not a whole number of them.
    pub(super) fn count(&self, d: Format, bits: u64) -> Option<usize> {
        let units = (d.to_f64(bits) / self.unit_of_d).round();
        // No sum has more than 2^32 terms. A whole number multiplied by alpha may be rounded in D.
        let is_whole =
            (0.0..4_294_967_296.0).contains(&units) && d.from_f64(units * self.unit_of_d) == d.from_f64(d.to_f64(bits));
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a whole number below 2^32")]
        is_whole.then_some(units as usize)
    }
}

/// Draws `count` different numbers below `k`, in random order.
pub(super) fn some(random: &mut Random, k: usize, count: usize) -> Vec<usize> {
    let mut all: Vec<usize> = (0..k).collect();
    for at in 0..count.min(k) {
        let other = at + random.below(k - at);
        all.swap(at, other);
    }
    all.truncate(count);
    all
}
