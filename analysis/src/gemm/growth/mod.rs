//! The growth of a product's error with the length of its sums, and the part of the unit that causes it.

mod blame;
mod cause;
mod fit;
mod merge;
mod record;

use std::{collections::BTreeMap, ops::ControlFlow};

use mxprobe_api::{Elements, Error, Format, OperationId, Rounding};
use mxprobe_models::{Evaluator, Model, shipped};

use super::{
    Accumulation, Algorithm, Matrix, Method, Products, Rounded, Scaling, Split, Theory, Uniform, Unit,
    bound::{Bound, Limits, Magnitudes},
    multiply::{fits, join, words_of},
    reference::{Errors, Reference},
    unit::Lengths,
};
use crate::shard::Shard;
use blame::name_the_cause;
pub use cause::Cause;
pub use fit::{Fit, Fits};
pub use merge::merge;
pub use record::{Bounds, Curve, Drawn, Growth, Interval, Point};

/// A way to multiply that is drawn as a curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// Its name: `double-f16`.
    pub name: String,
    /// The operation; `None` is a loop in f32 that rounds every product and every sum to nearest, k ascending.
    pub operation: Option<OperationId>,
    /// The number of words.
    pub words: usize,
    /// The products of words that are computed.
    pub products: Products,
    /// Where A1·B1 is added.
    pub accumulation: Accumulation,
}

impl Variant {
    /// The loop in f32.
    #[must_use]
    pub fn single(accumulation: Accumulation) -> Self {
        let name = accumulation.block().map_or_else(|| "f32".to_owned(), |block| format!("f32, {block}"));
        Self { name, operation: None, words: 1, products: Products::Significant, accumulation }
    }
}

/// The matrices to draw, and the ways to multiply them.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Products in a sum, ascending.
    pub lengths: Vec<usize>,
    /// The ways to multiply.
    pub variants: Vec<Variant>,
    /// The seed of the elements.
    pub seed: u32,
    /// The words that each element is a sum of, if any.
    pub drawn: Option<Drawn>,
    /// The share of the points that is computed; all, if it is `None`.
    pub shard: Option<Shard>,
}

/// The progress of [`grow`].
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// The results so far.
    pub growth: &'a Growth,
    /// The interval of the newest point.
    pub interval: Interval,
    /// Its length.
    pub n: usize,
    /// The number of finished points.
    pub done: usize,
    /// The number of points in total.
    pub total: usize,
}

/// The longest n for units with a changed part: long enough to show what the part causes.
const LONGEST_WHAT_IF: usize = 1 << 14;

/// Rows of A and columns of B, as in the paper.
const M: usize = 16;

/// Computes products of 16×n by n×16 matrices of f32 values for every n, with every variant, on both intervals.
///
/// `unit` opens the unit of an operation. With `model`, the variant `blame` is computed again with one part of the
/// model changed at a time, and the growth is attributed to the parts without which it ends; for shards, [`merge()`]
/// does that. `said` receives the
/// results so far after each point; if it returns `Break`, nothing more is computed, and no cause is named.
///
/// # Errors
/// The errors of the unit.
pub fn grow(
    experiment: &Experiment,
    unit: &dyn Fn(&OperationId) -> Result<Unit, Error>,
    blame: Option<(&Model, &Variant)>,
    said: &mut dyn FnMut(Step<'_>) -> ControlFlow<()>,
) -> Result<Growth, Error> {
    let Experiment { lengths, variants, seed, drawn, shard } = experiment;
    let mut growth = Growth::new(M as u64, *seed, *drawn);
    let what_ifs = if blame.is_some() { Cause::ALL.len() } else { 0 };
    let short = lengths.iter().filter(|n| **n <= LONGEST_WHAT_IF).count();
    let all = 2 * (lengths.len() * variants.len() + short * what_ifs);
    let (mut done, mut next) = (0, 0);
    let total = shard.map_or(all, |shard| usize::try_from(shard.count(all as u64)).unwrap_or(all));
    for interval in [Interval::Positive, Interval::Centred] {
        let mut curves: Vec<Curve> = variants.iter().map(|variant| curve(variant, None, interval)).collect();
        if let Some((_, variant)) = blame {
            curves.extend(Cause::ALL.map(|cause| curve(variant, Some(cause), interval)));
        }
        let units: Vec<Option<Unit>> = variants
            .iter()
            .map(|variant| variant.operation.as_ref().map(unit).transpose())
            .chain(blame.iter().flat_map(|(model, variant)| {
                Cause::ALL.map(|cause| {
                    variant.operation.as_ref().map(|id| Unit::of_model(&cause.applied(model), id)).transpose()
                })
            }))
            .collect::<Result<_, _>>()?;
        for (variant, unit) in variants.iter().zip(&units) {
            unit.iter().try_for_each(|unit| fits(unit, &algorithm(variant)))?;
        }
        let variant_of =
            |at: usize| variants.get(at).or(blame.map(|(_, variant)| variant)).expect("a curve has a variant");
        let mut bounds: Vec<Option<Bound>> = Vec::new();
        for (at, (unit, curve)) in units.iter().zip(&mut curves).enumerate() {
            let behind =
                blame.map(|(model, _)| curve.what_if.map_or_else(|| model.clone(), |cause| cause.applied(model)));
            let (bound, model) = bound(unit.as_ref(), behind.as_ref(), variant_of(at)).unzip();
            curve.bound_model = model.flatten();
            bounds.push(bound);
        }
        let first = growth.curves.len();
        growth.curves.extend(curves);
        for &n in lengths {
            let mut of_shard = |_: &usize| {
                next += 1;
                shard.is_none_or(|shard| shard.has(next - 1))
            };
            let is_computed = |at: &usize| growth.curves[first + at].what_if.is_none() || n <= LONGEST_WHAT_IF;
            let own: Vec<usize> = (0..units.len()).filter(is_computed).filter(&mut of_shard).collect();
            if own.is_empty() {
                continue;
            }
            let (low, high) = interval.ends();
            let mut uniform = Uniform::new(*seed);
            let mut a = uniform.matrix(M, n, low, high, true);
            let mut b = uniform.matrix(n, M, low, high, true);
            if let Some(drawn) = drawn {
                (a, b) = (a.in_words(drawn.a, drawn.words), b.in_words(drawn.b, drawn.words));
            }
            let reference = Reference::new(&a, &b);
            let split = in_words(&a, &b, variants);
            let mut magnitudes = Magnitudes::new(&a, &b);
            let lengths = Lengths { m: M, n: M, k: n };
            for at in own {
                let variant = variant_of(at);
                let errors = match &units[at] {
                    Some(unit) => {
                        let start = Elements::zeros(unit.id().c, M * M);
                        let (of_a, of_b) = &split[&kind_of_words(unit.id())];
                        let product = join(unit, lengths, (of_a, of_b), start, &algorithm(variant))?;
                        growth.products += (M * M * n * product.products) as u64;
                        reference.errors(&product.d)
                    }
                    None => reference.errors(&single(&a, &b, variant.accumulation)),
                };
                let limits = bounds[at].as_ref().and_then(|bound| bound.limits(&mut magnitudes));
                let curve = &mut growth.curves[first + at];
                curve.points.push(point(n, errors, limits, theory(variant)));
                curve.fits = Fits::of(&curve.points);
                done += 1;
                if said(Step { growth: &growth, interval, n, done, total }).is_break() {
                    return Ok(growth);
                }
            }
        }
    }
    if let Some((_, variant)) = blame.filter(|_| shard.is_none()) {
        growth.cause = Some(name_the_cause(&growth.curves, &variant.name));
    }
    Ok(growth)
}

fn curve(variant: &Variant, what_if: Option<Cause>, interval: Interval) -> Curve {
    let operation = variant.operation.as_ref().map(ToString::to_string);
    let name = variant.name.clone();
    Curve { name, operation, what_if, bound_model: None, interval, points: Vec::new(), fits: Fits::default() }
}

/// Splits A and B into words of every kind that the variants use, as many as the variant with the most of them needs.
fn in_words(a: &Matrix, b: &Matrix, variants: &[Variant]) -> BTreeMap<String, (Rounded, Rounded)> {
    let mut found: BTreeMap<String, (&OperationId, usize)> = BTreeMap::new();
    for (variant, id) in variants.iter().filter_map(|variant| Some((variant, variant.operation.as_ref()?))) {
        let entry = found.entry(kind_of_words(id)).or_insert((id, 1));
        entry.1 = entry.1.max(variant.words);
    }
    let split = |(kind, (id, count)): (String, (&OperationId, usize))| {
        let split = plain(count);
        (kind, (words_of(a, id, &split, true), words_of(b, id, &split, false)))
    };
    found.into_iter().map(split).collect()
}

/// The key of an operation's words: its formats and its scales.
fn kind_of_words(id: &OperationId) -> String {
    format!("{} {} {:?}", id.a, id.b, id.block_scale())
}

fn plain(words: usize) -> Split {
    Split { words, rounding: Rounding::NearestEven, scaling: Scaling::None, lift_bits: 0 }
}

pub(super) fn algorithm(variant: &Variant) -> Algorithm {
    Algorithm {
        method: Method::Multiword,
        split: plain(variant.words),
        products: variant.products,
        accumulation: variant.accumulation,
    }
}

/// The bound of a way to multiply, and the model that it is proved from: the model behind the unit, the shipped model
/// of a device with the same fingerprint, or IEEE 754 for the loop in f32.
fn bound(unit: Option<&Unit>, behind: Option<&Model>, variant: &Variant) -> Option<(Bound, Option<String>)> {
    let Some(unit) = unit else { return Some((Bound::single(variant.accumulation), None)) };
    let shipped = || shipped().iter().find(|model| model.fingerprint == unit.device().info().fingerprint);
    let model = behind.or_else(shipped)?;
    let evaluator = Evaluator::new(model, unit.id()).ok()?;
    let bound = Bound::of(&evaluator, variant.words, variant.products, variant.accumulation)?;
    Some((bound, behind.is_none().then(|| model.name.clone())))
}

/// The published bounds of a way to multiply. They do not apply to A and B with scales, or to integers.
fn theory(variant: &Variant) -> Option<Theory> {
    let Some(id) = &variant.operation else { return Some(Theory::single(variant.accumulation)) };
    let of = |format| Theory::of(format, variant.words, variant.accumulation);
    let (a, b) = (of(id.a)?, of(id.b)?);
    id.block_scale().is_none().then_some(if a.low >= b.low { a } else { b })
}

fn point(n: usize, errors: Errors, limits: Option<Limits>, theory: Option<Theory>) -> Point {
    let bounds = theory.map(|theory| Bounds {
        any: limits.map(|limits| limits.of_any),
        probable: limits.map(|limits| limits.probable),
        published: theory.published(n),
    });
    let Errors { componentwise, normwise } = errors;
    Point { n: n as u64, componentwise, normwise, bound: limits.map(|limits| limits.of_these), bounds }
}

/// A·B of f32 values in f32: every product and every sum is rounded to nearest, k ascending; sums of blocks start from
/// +0 and are added as the accumulation says.
#[expect(clippy::cast_possible_truncation, reason = "the values are f32's, and f64 is rounded to f32 at the end")]
pub fn single(a: &Matrix, b: &Matrix, accumulation: Accumulation) -> Elements {
    let columns: Vec<Vec<f32>> = (0..b.columns)
        .map(|column| (0..b.rows).map(|row| b.values[row * b.columns + column] as f32).collect())
        .collect();
    let block = accumulation.block().map_or(a.columns.max(1), |block| block.products(a.columns));
    let is_wide = matches!(accumulation, Accumulation::F64 { .. });
    let mut d = Elements::from_bits(Format::F32, []);
    for row in a.values.chunks(a.columns.max(1)) {
        let row: Vec<f32> = row.iter().map(|value| *value as f32).collect();
        for column in &columns {
            let blocks = row.chunks(block).zip(column.chunks(block));
            let sums = blocks.map(|(row, column)| row.iter().zip(column).fold(0f32, |sum, (a, b)| sum + a * b));
            let sum = if is_wide {
                sums.fold(0f64, |total, sum| total + f64::from(sum)) as f32
            } else {
                sums.fold(0f32, |total, sum| total + sum)
            };
            d.push(u64::from(sum.to_bits()));
        }
    }
    d
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use mxprobe_api::{Device, DeviceInfo, Operation, OperationSet, TileBatch};
    use mxprobe_models::load;
    use mxprobe_sim::ModelDevice;

    /// A device with the fingerprint of a unit.
    struct Hardware {
        computes: ModelDevice,
        info: DeviceInfo,
    }

    impl Device for Hardware {
        fn info(&self) -> &DeviceInfo {
            &self.info
        }

        fn operations(&self) -> &OperationSet {
            self.computes.operations()
        }

        fn execute(&self, operation: &Operation, batch: &TileBatch) -> Result<Elements, Error> {
            self.computes.execute(operation, batch)
        }
    }

    fn experiment(lengths: &[usize], variant: &Variant) -> Experiment {
        Experiment { lengths: lengths.into(), variants: vec![variant.clone()], seed: 1, drawn: None, shard: None }
    }

    /// The model and the bound of each curve at n = 64.
    fn bounds(device: Arc<dyn Device>, model: Option<&Model>, variant: &Variant) -> Vec<(Option<String>, Option<f64>)> {
        let unit = |id: &OperationId| Unit::new(device.clone(), id);
        let blame = model.map(|model| (model, variant));
        let growth = grow(&experiment(&[64], variant), &unit, blame, &mut |_| ControlFlow::Continue(())).unwrap();
        let as_it_is = growth.curves.into_iter().filter(|curve| curve.what_if.is_none());
        as_it_is.map(|curve| (curve.bound_model, curve.points[0].bound)).collect()
    }

    #[test]
    fn an_experiment_that_is_stopped_keeps_the_points_it_has() {
        let model = load("v100").unwrap();
        let id: OperationId = "mma.m8n8k4.f32.f16.f16.f32".parse().unwrap();
        let variant = Variant {
            name: "f16".into(),
            operation: Some(id),
            words: 1,
            products: Products::Significant,
            accumulation: Accumulation::Unit,
        };
        let unit = |id: &OperationId| Unit::of_model(&model, id);
        let all = |most: usize| {
            let mut steps = Vec::new();
            let mut said = |step: Step<'_>| {
                steps.push((step.done, step.total));
                if step.done == most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            let growth = grow(&experiment(&[16, 32], &variant), &unit, Some((&model, &variant)), &mut said).unwrap();
            (growth, steps)
        };
        let (whole, steps) = all(usize::MAX);
        assert_eq!(steps, (1..=20).map(|done| (done, 20)).collect::<Vec<_>>());
        assert!(whole.cause.is_some());
        for most in [1, 7, 19] {
            let (part, _) = all(most);
            assert_eq!(part.curves.iter().map(|curve| curve.points.len()).sum::<usize>(), most);
            assert!(part.cause.is_none());
            for (part, whole) in part.curves.iter().zip(&whole.curves) {
                assert!(whole.points.starts_with(&part.points), "{part:?}");
            }
        }
    }

    #[test]
    fn a_device_has_the_bound_of_the_shipped_model_of_its_fingerprint_and_the_curve_says_so() {
        let model = load("a100").unwrap();
        let id: OperationId = "mma.m16n8k16.f32.f16.f16.f32".parse().unwrap();
        let variant = Variant {
            name: "f16".into(),
            operation: Some(id),
            words: 1,
            products: Products::Significant,
            accumulation: Accumulation::Unit,
        };
        let computes = ModelDevice::new(model.clone());
        let info = DeviceInfo { fingerprint: "sm_80".into(), ..computes.info().clone() };
        let of_model = bounds(Arc::new(computes.clone()), Some(&model), &variant);
        let of_device = bounds(Arc::new(Hardware { computes, info }), None, &variant);
        for (model, device) in of_model.iter().zip(&of_device) {
            assert!(model.0.is_none() && device.0.as_deref() == Some("a100"), "{device:?}");
            assert!(model.1.is_some() && model.1 == device.1, "{model:?} {device:?}");
        }
    }
}
