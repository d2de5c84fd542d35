//! How the error of a product grows with the length of its sums, and which part of the unit makes it grow.

use std::collections::BTreeMap;

use mxprobe_api::{Elements, Error, Format, OperationId, Rounding};
use mxprobe_sim::{Model, Output};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Accumulation, Algorithm, Matrix, Method, Products, Rounded, Scaling, Split, Uniform, Unit,
    multiply::{fits, join},
    reference::{Errors, Reference},
    unit::Lengths,
    words,
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
    /// The worst case by Table 2.1 of Fasi et al., SISC 2023, where it has one.
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

/// Units that do not exist are computed up to this length: by then it shows what they are to blame for.
const LONGEST_WHAT_IF: usize = 1 << 14;

/// Rows of A and columns of B, as in the paper.
const M: usize = 16;

/// Computes products of 16×n by n×16 matrices of f32 values for every n, with every variant, on both intervals.
///
/// `unit` opens the unit of an operation. With `model`, the variant `blame` is computed again with one part of the model
/// changed at a time, and the growth is put down to the parts without which it ends. `said` is told each finished n.
///
/// # Errors
/// What the unit reports.
pub fn grow<'a>(
    lengths: &[usize],
    variants: &[Variant],
    seed: u32,
    unit: &dyn Fn(&OperationId) -> Result<Unit<'a>, Error>,
    blame: Option<(&Model, &Variant)>,
    said: &mut dyn FnMut(Interval, usize),
) -> Result<Growth, Error> {
    let mut growth = Growth { m: M as u64, seed, products: 0, curves: Vec::new(), cause: None };
    for interval in [Interval::Positive, Interval::Centred] {
        let mut curves: Vec<Curve> = variants.iter().map(|variant| curve(variant, None, interval)).collect();
        if let Some((_, variant)) = blame {
            curves.extend(Cause::ALL.map(|cause| curve(variant, Some(cause), interval)));
        }
        let units: Vec<Option<Unit<'_>>> = variants
            .iter()
            .map(|variant| variant.operation.as_ref().map(unit).transpose())
            .chain(blame.iter().flat_map(|(model, variant)| {
                Cause::ALL.map(|cause| {
                    variant.operation.as_ref().map(|id| Unit::model(&cause.applied(model), id)).transpose()
                })
            }))
            .collect::<Result<_, _>>()?;
        for (variant, unit) in variants.iter().zip(&units) {
            unit.iter().try_for_each(|unit| fits(unit, &algorithm(variant)))?;
        }
        for &n in lengths {
            let (low, high) = interval.ends();
            let mut uniform = Uniform::new(seed);
            let a = uniform.matrix(M, n, low, high, true);
            let b = uniform.matrix(n, M, low, high, true);
            let reference = Reference::new(&a, &b);
            let split = in_words(&a, &b, variants);
            let lengths = Lengths { m: M, n: M, k: n };
            for (at, curve) in curves.iter_mut().enumerate() {
                let variant = variants.get(at).or(blame.map(|(_, variant)| variant)).expect("a curve has a variant");
                if curve.what_if.is_some() && n > LONGEST_WHAT_IF {
                    continue;
                }
                let errors = match &units[at] {
                    Some(unit) => {
                        let start = Elements::zeros(unit.id().c, M * M);
                        let (of_a, of_b) = &split[unit.id().a.to_string().as_str()];
                        let product = join(unit, lengths, (of_a, of_b), start, &algorithm(variant))?;
                        growth.products += (M * M * n * product.products) as u64;
                        reference.errors(&product.d)
                    }
                    None => reference.errors(&single(&a, &b)),
                };
                curve.points.push(point(n, errors, bound(variant, n)));
            }
            said(interval, n);
        }
        growth.curves.extend(curves);
    }
    if let Some((_, variant)) = blame {
        growth.cause = Some(name_the_cause(&growth.curves, &variant.name));
    }
    Ok(growth)
}

fn curve(variant: &Variant, what_if: Option<Cause>, interval: Interval) -> Curve {
    let operation = variant.operation.as_ref().map(ToString::to_string);
    Curve { name: variant.name.clone(), operation, what_if, interval, points: Vec::new() }
}

/// A and B in words of every format that the variants use, as many as any of them uses.
fn in_words(a: &Matrix, b: &Matrix, variants: &[Variant]) -> BTreeMap<String, (Rounded, Rounded)> {
    let mut found: BTreeMap<String, (Format, usize)> = BTreeMap::new();
    for (variant, id) in variants.iter().filter_map(|variant| Some((variant, variant.operation.as_ref()?))) {
        let entry = found.entry(id.a.to_string()).or_insert((id.a, 1));
        entry.1 = entry.1.max(variant.words);
    }
    let split = |(name, (format, count)): (String, (Format, usize))| {
        let split = plain(count);
        (name, (words(a, format, &split, true), words(b, format, &split, false)))
    };
    found.into_iter().map(split).collect()
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

fn point(n: usize, errors: Errors, bound: Option<f64>) -> Point {
    Point { n: n as u64, componentwise: errors.componentwise, normwise: errors.normwise, bound }
}

/// The dominant terms of Table 2.1: (p + 1)·u^p of the words, and n·2^−24 of the sums.
fn bound(variant: &Variant, n: usize) -> Option<f64> {
    let sums = n as f64 * f64::from(-24).exp2();
    let Some(id) = &variant.operation else { return Some(sums) };
    if id.d != Format::F32 || variant.accumulation != Accumulation::Unit {
        return None;
    }
    let bits = if id.a == Format::TF32 { 10 } else { id.a.fraction_bits() };
    let words = i32::try_from(variant.words).ok()?;
    let unit_roundoff = f64::from(-(i32::try_from(bits).ok()? + 1)).exp2();
    // Where the words hold all of f32's 24 bits their term is not there.
    let split = if (bits + 1) * u32::try_from(variant.words).ok()? >= 22 && variant.words > 1 && bits > 8 || words >= 3
    {
        0.0
    } else {
        f64::from(words + 1) * unit_roundoff.powi(words)
    };
    Some(split + sums)
}

/// A·B of f32 values in f32: every product and every sum rounded to nearest, k ascending.
#[expect(clippy::cast_possible_truncation, reason = "the values are f32's")]
fn single(a: &Matrix, b: &Matrix) -> Elements {
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
