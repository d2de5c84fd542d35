//! The part of a unit that makes errors grow.

use mxprobe_api::Rounding;
use mxprobe_models::{Model, Output};
use serde::{Deserialize, Serialize};

/// A change to one part of a unit's model, to see how much of the error that part causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// Results are rounded to nearest instead.
    ResultToNearest,
    /// One more bit is kept at alignment.
    OneBitMore,
    /// Nothing is lost at alignment.
    NothingLostAtAlignment,
    /// Nothing is lost at alignment, and results are rounded to nearest.
    Both,
}

impl Cause {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::ResultToNearest, Self::OneBitMore, Self::NothingLostAtAlignment, Self::Both];

    /// The change in words: "the unit, but …".
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::ResultToNearest => "results rounded to nearest",
            Self::OneBitMore => "one bit more kept at alignment",
            Self::NothingLostAtAlignment => "nothing lost at alignment",
            Self::Both => "nothing lost at alignment, results rounded to nearest",
        }
    }

    /// The model with this part changed.
    #[must_use]
    pub fn applied(self, model: &Model) -> Model {
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
