//! Which part of a unit makes errors grow.

use mxprobe_api::Rounding;
use mxprobe_models::{Model, Output};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Curve, Interval};

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
    pub(crate) fn applied(self, model: &Model) -> Model {
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

/// Which changes end the growth, at the longest n that the changed units were computed for: those that leave no more than
/// [`ENDED`] times the error that is left where both parts are mended. There is growth to explain where mending both leaves
/// a quarter or less.
pub(super) fn name_the_cause(curves: &[Curve], name: &str) -> String {
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
