//! How the error of a product grows with the length of its sums, and which part of the unit makes it grow.

use std::{collections::BTreeMap, ops::ControlFlow};

use mxprobe_api::{Elements, Error, Format, OperationId, Rounding};
use mxprobe_models::{Evaluator, Model, Output, shipped};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Accumulation, Algorithm, Matrix, Method, Products, Rounded, Scaling, Split, Uniform, Unit,
    bound::{Bound, Magnitudes},
    multiply::{fits, join, words_of},
    reference::{Errors, Reference},
    unit::Lengths,
};

/// Where elements are drawn from, uniformly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Interval {
    /// (0, 1]: sums grow, and every truncation goes the same way.
    #[serde(rename = "(0, 1]")]
    Positive,
    /// (−0.5, 0.5]: mean zero.
    #[serde(rename = "(-0.5, 0.5]")]
    Centred,
}

impl Interval {
    /// Its ends, the lower one open.
    #[must_use]
    pub fn ends(self) -> (f64, f64) {
        match self {
            Self::Positive => (0.0, 1.0),
            Self::Centred => (-0.5, 0.5),
        }
    }

    /// As people write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Positive => "(0, 1]",
            Self::Centred => "(-0.5, 0.5]",
        }
    }
}

/// A way to multiply that is drawn as a curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// Its name: `double-f16`.
    pub name: String,
    /// The operation; `None` is a loop in f32 that rounds every product and every sum to nearest, k ascending.
    pub operation: Option<OperationId>,
    /// How many words.
    pub words: usize,
    /// Where A1·B1 is added.
    pub accumulation: Accumulation,
}

/// One part of a unit, changed in its model to see what it is to blame for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// Results are rounded to nearest instead.
    ResultToNearest,
    /// One bit more is kept at alignment.
    OneBitMore,
    /// Nothing is lost at alignment.
    NothingLostAtAlignment,
    /// Nothing is lost at alignment, and results are rounded to nearest.
    Both,
}

impl Cause {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::ResultToNearest, Self::OneBitMore, Self::NothingLostAtAlignment, Self::Both];

    /// In words: the unit, but …
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::ResultToNearest => "results rounded to nearest",
            Self::OneBitMore => "one bit more kept at alignment",
            Self::NothingLostAtAlignment => "nothing lost at alignment",
            Self::Both => "nothing lost at alignment, results rounded to nearest",
        }
    }

    /// The model with the part changed.
    fn applied(self, model: &Model) -> Model {
        let mut model = model.clone();
        for adder in &mut model.adders {
            if matches!(self, Self::ResultToNearest | Self::Both)
                && let Output::Float { rounding, .. } = &mut adder.output
            {
                *rounding = Rounding::NearestEven;
            }
            match self {
                Self::OneBitMore => adder.grid.iter_mut().for_each(|rule| rule.fraction_bits += 1),
                Self::NothingLostAtAlignment | Self::Both => {
                    adder.grid.clear();
                    adder.value_cut_bits = 0;
                    adder.ignored_values = None;
                }
                Self::ResultToNearest => {}
            }
        }
        model
    }
}

/// The error at one length.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// Products in a sum.
    pub n: u64,
    /// max |Ĉ − C| / (|A|·|B|).
    pub componentwise: f64,
    /// ‖Ĉ − C‖ / ‖C‖, Frobenius.
    pub normwise: f64,
    /// What `componentwise` is at the most, proved from the unit's model and the sizes of A and B (docs/gemm.md): the error of
    /// the words, of every alignment and of every rounding at its worst. Missing if no model of the unit is shipped, or a sum may
    /// overflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<f64>,
}

/// The errors of one way to multiply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Curve {
    /// The way: `double-f16`.
    pub name: String,
    /// The operation, where it is not the loop in f32.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// What is changed in the unit's model, if anything: then this is no unit that exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what_if: Option<Cause>,
    /// The model that bounds are proved from, of a device that is not a model itself: the shipped one of its fingerprint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound_model: Option<String>,
    /// Where elements are drawn from.
    pub interval: Interval,
    /// The errors, n ascending.
    pub points: Vec<Point>,
}

/// What an experiment found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Growth {
    /// Rows of A, and columns of B.
    pub m: u64,
    /// The seed of the elements.
    pub seed: u32,
    /// Products of words that the unit computed, in units of one multiply-add.
    pub products: u64,
    /// The curves.
    pub curves: Vec<Curve>,
    /// Which parts of the unit make the error grow on (0, 1], in words, where that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

/// What `grow` has finished.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// All that is known so far.
    pub growth: &'a Growth,
    /// Where the elements of the newest point are drawn from.
    pub interval: Interval,
    /// Its length.
    pub n: usize,
    /// Points that are known.
    pub done: usize,
    /// Points in all.
    pub total: usize,
}

/// Units that do not exist are computed up to this length: by then it shows what they are to blame for.
const LONGEST_WHAT_IF: usize = 1 << 14;

/// Rows of A and columns of B, as in the paper.
const M: usize = 16;

/// Computes products of 16×n by n×16 matrices of f32 values for every n, with every variant, on both intervals.
///
/// `unit` opens the unit of an operation. With `model`, the variant `blame` is computed again with one part of the model
/// changed at a time, and the growth is put down to the parts without which it ends. `said` hears what is known after each
/// point; if it returns `Break`, nothing more is computed, and no cause is named.
///
/// # Errors
/// What the unit reports.
pub fn grow(
    lengths: &[usize],
    variants: &[Variant],
    seed: u32,
    unit: &dyn Fn(&OperationId) -> Result<Unit, Error>,
    blame: Option<(&Model, &Variant)>,
    said: &mut dyn FnMut(Step<'_>) -> ControlFlow<()>,
) -> Result<Growth, Error> {
    let mut growth = Growth { m: M as u64, seed, products: 0, curves: Vec::new(), cause: None };
    let what_ifs = if blame.is_some() { Cause::ALL.len() } else { 0 };
    let short = lengths.iter().filter(|n| **n <= LONGEST_WHAT_IF).count();
    let (mut done, total) = (0, 2 * (lengths.len() * variants.len() + short * what_ifs));
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
            let (low, high) = interval.ends();
            let mut uniform = Uniform::new(seed);
            let a = uniform.matrix(M, n, low, high, true);
            let b = uniform.matrix(n, M, low, high, true);
            let reference = Reference::new(&a, &b);
            let split = in_words(&a, &b, variants);
            let mut magnitudes = Magnitudes::new(&a, &b);
            let lengths = Lengths { m: M, n: M, k: n };
            for at in 0..units.len() {
                let variant = variant_of(at);
                if growth.curves[first + at].what_if.is_some() && n > LONGEST_WHAT_IF {
                    continue;
                }
                let errors = match &units[at] {
                    Some(unit) => {
                        let start = Elements::zeros(unit.id().c, M * M);
                        let (of_a, of_b) = &split[&kind_of_words(unit.id())];
                        let product = join(unit, lengths, (of_a, of_b), start, &algorithm(variant))?;
                        growth.products += (M * M * n * product.products) as u64;
                        reference.errors(&product.d)
                    }
                    None => reference.errors(&single(&a, &b)),
                };
                let bound = bounds[at].as_ref().and_then(|bound| bound.componentwise(&mut magnitudes));
                growth.curves[first + at].points.push(point(n, errors, bound));
                done += 1;
                if said(Step { growth: &growth, interval, n, done, total }).is_break() {
                    return Ok(growth);
                }
            }
        }
    }
    if let Some((_, variant)) = blame {
        growth.cause = Some(name_the_cause(&growth.curves, &variant.name));
    }
    Ok(growth)
}

fn curve(variant: &Variant, what_if: Option<Cause>, interval: Interval) -> Curve {
    let operation = variant.operation.as_ref().map(ToString::to_string);
    Curve { name: variant.name.clone(), operation, what_if, bound_model: None, interval, points: Vec::new() }
}

/// A and B in words of every kind that the variants use, as many as any of them uses.
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

/// What decides the words of an operation: its formats and its scales.
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
        products: Products::Significant,
        accumulation: variant.accumulation,
    }
}

/// The bound of a way to multiply, and whose arithmetic it is proved from: the model behind the unit, the shipped one of a device of
/// the same fingerprint, or IEEE 754 for the loop in f32.
fn bound(unit: Option<&Unit>, behind: Option<&Model>, variant: &Variant) -> Option<(Bound, Option<String>)> {
    let Some(unit) = unit else { return Some((Bound::single(), None)) };
    let shipped = || shipped().iter().find(|model| model.fingerprint == unit.device().info().fingerprint);
    let model = behind.or_else(shipped)?;
    let evaluator = Evaluator::new(model, unit.id()).ok()?;
    let bound = Bound::of(&evaluator, variant.words, variant.accumulation)?;
    Some((bound, behind.is_none().then(|| model.name.clone())))
}

fn point(n: usize, errors: Errors, bound: Option<f64>) -> Point {
    Point { n: n as u64, componentwise: errors.componentwise, normwise: errors.normwise, bound }
}

/// A·B of f32 values in f32: every product and every sum rounded to nearest, k ascending.
#[expect(clippy::cast_possible_truncation, reason = "the values are f32's")]
pub(super) fn single(a: &Matrix, b: &Matrix) -> Elements {
    let columns: Vec<Vec<f32>> = (0..b.columns)
        .map(|column| (0..b.rows).map(|row| b.values[row * b.columns + column] as f32).collect())
        .collect();
    let mut d = Elements::from_bits(Format::F32, []);
    for row in a.values.chunks(a.columns.max(1)) {
        let row: Vec<f32> = row.iter().map(|value| *value as f32).collect();
        for column in &columns {
            let sum = row.iter().zip(column).fold(0f32, |sum, (a, b)| sum + a * b);
            d.push(u64::from(sum.to_bits()));
        }
    }
    d
}

/// Which changes end the growth, at the longest n that the changed units were computed for: those that leave no more than
/// [`ENDED`] times the error that is left where both parts are mended. There is growth to explain where mending both leaves
/// a quarter or less.
fn name_the_cause(curves: &[Curve], name: &str) -> String {
    let curve = |what_if: Option<Cause>| {
        let of_variant = |curve: &&Curve| curve.name == name && curve.interval == Interval::Positive;
        curves.iter().filter(of_variant).find(|curve| curve.what_if == what_if)
    };
    let Some(n) = curve(Some(Cause::Both)).and_then(|curve| curve.points.last()).map(|point| point.n) else {
        return "no length was computed".into();
    };
    let error = |what_if: Option<Cause>| {
        let point = curve(what_if).and_then(|curve| curve.points.iter().find(|point| point.n == n));
        point.map_or(f64::NAN, |point| point.componentwise)
    };
    let (is, both) = (error(None), error(Some(Cause::Both)));
    let (nearest, aligned) = (error(Some(Cause::ResultToNearest)), error(Some(Cause::NothingLostAtAlignment)));
    let ends = |error: f64| error <= both * ENDED;
    let words = match (both * 4.0 <= is, ends(nearest), ends(aligned)) {
        (false, _, _) => {
            "neither the truncation at alignment nor the rounding of results: with both mended the error is much the same"
        }
        (true, true, false) => "the rounding of results: rounded to nearest, the error does not grow so",
        (true, false, true) => "the truncation at alignment: where nothing is lost there, the error does not grow so",
        (true, true, true) => "the rounding of results and the truncation at alignment, each enough to end it",
        (true, false, false) => {
            "the truncation at alignment and the rounding of results together: mending one of them alone leaves the \
             growth, mending both ends it"
        }
    };
    format!(
        "{words} (at n = {n}: {is:.1e} as it is, {nearest:.1e} with results rounded to nearest, {aligned:.1e} with nothing \
         lost at alignment, {both:.1e} with both)"
    )
}

/// Errors that differ by less are of one growth: two means of rounding errors that are drawn at random.
const ENDED: f64 = 3.0;

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

    /// The model and the bound of each curve at n = 64.
    fn bounds(device: Arc<dyn Device>, model: Option<&Model>, variant: &Variant) -> Vec<(Option<String>, Option<f64>)> {
        let unit = |id: &OperationId| Unit::new(device.clone(), id);
        let blame = model.map(|model| (model, variant));
        let growth =
            grow(&[64], std::slice::from_ref(variant), 1, &unit, blame, &mut |_| ControlFlow::Continue(())).unwrap();
        let as_it_is = growth.curves.into_iter().filter(|curve| curve.what_if.is_none());
        as_it_is.map(|curve| (curve.bound_model, curve.points[0].bound)).collect()
    }

    #[test]
    fn an_experiment_that_is_stopped_keeps_the_points_it_has() {
        let model = load("v100").unwrap();
        let id: OperationId = "mma.m8n8k4.f32.f16.f16.f32".parse().unwrap();
        let variant = Variant { name: "f16".into(), operation: Some(id), words: 1, accumulation: Accumulation::Unit };
        let unit = |id: &OperationId| Unit::of_model(&model, id);
        let all = |most: usize| {
            let mut steps = Vec::new();
            let mut said = |step: Step<'_>| {
                steps.push((step.done, step.total));
                if step.done == most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            let growth =
                grow(&[16, 32], std::slice::from_ref(&variant), 1, &unit, Some((&model, &variant)), &mut said).unwrap();
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
        let variant = Variant { name: "f16".into(), operation: Some(id), words: 1, accumulation: Accumulation::Unit };
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
