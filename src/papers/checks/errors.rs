//! Errors of products of drawn matrices: how they compare, cross and grow.

use mxprobe_api::{Error, Format, OperationId, Rounding};
use serde::Deserialize;

use crate::papers::computed::Computed;
use crate::{
    gemm::{
        Accumulation, Algorithm, Block, Cause, Fit, Interval, Matrix, Method, Products, Scaling, Split, Theory,
        Uniform, Unit, errors, multiply, single,
    },
    papers::Target,
    session::Asked,
};

/// Products of drawn matrices in several ways, and the expected property of their errors.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Errors {
    /// The products in a sum, each as an exponent of 2, ascending.
    exponents: Vec<u32>,
    /// Rows of A and columns of B.
    rows: usize,
    /// The interval that elements are drawn from. They are sums of two words of f16, as in the paper.
    interval: Interval,
    /// The ways to multiply.
    ways: Vec<Way>,
    /// The expected property of their largest errors, relative to |A|·|B|.
    holds: Holds,
}

/// A way to multiply.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Way {
    /// A pattern of the operation; missing for a loop in f32 that rounds every product and every sum.
    operation: Option<String>,
    #[serde(default = "one")]
    words: usize,
    /// Whether all products of words are computed.
    #[serde(default)]
    all_products: bool,
    /// Whether nothing is lost at alignment, and results are rounded to nearest.
    #[serde(default)]
    nearest: bool,
    /// Products per block.
    block: Option<usize>,
    /// The number of blocks, instead of `block`.
    blocks: Option<usize>,
    /// Whether sums of blocks are added in f64, not in f32.
    #[serde(default)]
    wide: bool,
}

fn one() -> usize {
    1
}

/// An expected property of errors.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Holds {
    /// The ratio of the first way's error to the second's is in this range, at every n.
    Ratio([f64; 2]),
    /// The error of the first way is larger at first, and meets that of the second between these n.
    Crossing([f64; 2]),
    /// A least-squares fit of the error of the first way has an exponent of n in this range.
    Exponent([f64; 2]),
    /// The errors of all ways are at most this multiple of the dominant terms of Table 2.1.
    Dominant(f64),
    /// The errors of all ways are at most the bound (2.7), or (2.5) if all products are computed.
    Bound,
}

impl Errors {
    pub(super) fn compute(&self, target: &Target<'_>) -> Result<Computed, Error> {
        let curves = self.curves(target)?;
        let at = |of: usize| curves.get(of).ok_or_else(|| Error::invalid("a way is missing"));
        match self.holds {
            Holds::Ratio([low, high]) => {
                let ratios: Vec<f64> = at(0)?.iter().zip(at(1)?).map(|(one, other)| one.1 / other.1).collect();
                let agrees = ratios.iter().all(|ratio| (low..=high).contains(ratio));
                Ok(Computed { text: format!("ratio of errors: {}", range(&ratios)), agrees })
            }
            Holds::Crossing([low, high]) => match crossing(at(0)?, at(1)?) {
                Some(n) => Ok(Computed { text: format!("n = {n:.1e}"), agrees: (low..=high).contains(&n) }),
                None => Ok(Computed { text: format!("not up to n = {}", self.longest()), agrees: false }),
            },
            Holds::Exponent([low, high]) => {
                let lengths = self.exponents.iter().map(|exponent| 1u64 << exponent);
                let points: Vec<(u64, f64)> = lengths.zip(at(0)?).map(|(n, (_, error))| (n, *error)).collect();
                let none = || Error::invalid("one n has no exponent");
                let fit = Fit::of(&points).ok_or_else(none)?;
                let text = format!("n^{:.2}, fitted from n = {} to {}", fit.exponent, fit.from, fit.to);
                Ok(Computed { text, agrees: (low..=high).contains(&fit.exponent) })
            }
            Holds::Dominant(part) => self.below(&curves, target, part, |theory, n| theory.dominant(n)),
            Holds::Bound => self.below(&curves, target, 1.0, |_, _| f64::NAN),
        }
    }

    fn longest(&self) -> u64 {
        1 << self.exponents.last().copied().unwrap_or(0)
    }

    /// Whether every error is at most `part` times its published bound; if `bound` is NaN, times (2.5) or (2.7).
    fn below(
        &self,
        curves: &[Vec<(f64, f64)>],
        target: &Target<'_>,
        part: f64,
        bound: fn(&Theory, usize) -> f64,
    ) -> Result<Computed, Error> {
        let mut parts = Vec::new();
        for (way, curve) in self.ways.iter().zip(curves) {
            let theory = match &way.operation {
                None => Theory::single(way.accumulation()),
                Some(pattern) => {
                    let id = target.operation(&target.asked()?, pattern, 0)?.id;
                    let of_integers = || Error::unsupported(format!("{id} multiplies integers"));
                    Theory::of(id.a, way.words, way.accumulation()).ok_or_else(of_integers)?
                }
            };
            for (exponent, (_, error)) in self.exponents.iter().zip(curve) {
                let n = 1usize << exponent;
                let published = match bound(&theory, n) {
                    bound if !bound.is_nan() => bound,
                    _ if way.all_products => theory.all_products(n),
                    _ => theory.significant_products(n),
                };
                parts.push(error / published);
            }
        }
        let agrees = parts.iter().all(|of| *of <= part);
        Ok(Computed { text: format!("errors over their bound: {}", range(&parts)), agrees })
    }

    /// n and the largest error, for each way.
    fn curves(&self, target: &Target<'_>) -> Result<Vec<Vec<(f64, f64)>>, Error> {
        let unit = |way: &Way| match &way.operation {
            None => Ok(None),
            Some(pattern) => way.unit(target, &target.asked()?, pattern).map(Some),
        };
        let units = self.ways.iter().map(unit).collect::<Result<Vec<_>, Error>>()?;
        let mut curves = vec![Vec::new(); self.ways.len()];
        let (low, high) = self.interval.ends();
        for exponent in &self.exponents {
            let n = 1usize << exponent;
            let mut uniform = Uniform::new(1);
            let mut drawn = |rows, columns| uniform.matrix(rows, columns, low, high, true).in_words(Format::F16, 2);
            let (a, b) = (drawn(self.rows, n), drawn(n, self.rows));
            for ((way, unit), curve) in self.ways.iter().zip(&units).zip(&mut curves) {
                curve.push((n as f64, way.error(unit.as_ref(), &a, &b)?));
            }
        }
        Ok(curves)
    }
}

impl Way {
    fn accumulation(&self) -> Accumulation {
        let block = self.block.map(Block::Products).or(self.blocks.map(Block::Count));
        match block {
            None => Accumulation::Unit,
            Some(block) if self.wide => Accumulation::F64 { block },
            Some(block) => Accumulation::F32 { block },
        }
    }

    fn unit(&self, target: &Target<'_>, asked: &Asked, pattern: &str) -> Result<Unit, Error> {
        let id: OperationId = target.operation(asked, pattern, 0)?.id;
        if !self.nearest {
            return Unit::new(asked.device.clone(), &id);
        }
        if target.device.is_some() {
            return Err(Error::unsupported("a device cannot be told to round to nearest; a model can"));
        }
        Unit::of_model(&Cause::Both.applied(&target.model()?), &id)
    }

    fn error(&self, unit: Option<&Unit>, a: &Matrix, b: &Matrix) -> Result<f64, Error> {
        let d = match unit {
            None => single(a, b, self.accumulation()),
            Some(unit) => {
                let split =
                    Split { words: self.words, rounding: Rounding::NearestEven, scaling: Scaling::None, lift_bits: 0 };
                let products = if self.all_products { Products::All } else { Products::Significant };
                let accumulation = self.accumulation();
                multiply(unit, a, b, None, &Algorithm { method: Method::Multiword, split, products, accumulation })?.d
            }
        };
        Ok(errors(a, b, &d).componentwise)
    }
}

/// The n at which the first curve comes down to the second, by linear interpolation in logarithms.
fn crossing(one: &[(f64, f64)], other: &[(f64, f64)]) -> Option<f64> {
    let above: Vec<(f64, f64)> =
        one.iter().zip(other).map(|((n, one), (_, other))| (n.log2(), (one / other).log2())).collect();
    let (before, after) =
        above.windows(2).map(|pair| (pair[0], pair[1])).find(|(one, next)| one.1 > 0.0 && next.1 <= 0.0)?;
    Some((before.0 + (after.0 - before.0) * before.1 / (before.1 - after.1)).exp2())
}

/// The range of values as text: `0.12`, or `0.12 to 3.4`.
fn range(values: &[f64]) -> String {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    match values {
        [one] => format!("{one:.2}"),
        _ => format!("{least:.2} to {most:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_cross_between_the_points_where_one_comes_below_the_other() {
        let curve = |power: f64| -> Vec<(f64, f64)> {
            (4..=10).map(|e| f64::from(e).exp2()).map(|n| (n, n.powf(power))).collect()
        };
        let flat: Vec<(f64, f64)> = curve(0.0).into_iter().map(|(n, one)| (n, 100.0 * one)).collect();
        let found = crossing(&flat, &curve(1.0)).unwrap();
        assert!((found / 100.0 - 1.0).abs() < 1e-9, "{found}");
        assert_eq!(crossing(&curve(1.0), &flat), None, "it begins below");
    }
}
