//! Candidate recipes: a unit, levels with their parameters, and an epilogue.

use std::sync::Arc;

use mxprobe_api::{Format, OperationId, Rounding};
use mxprobe_models::{
    Adder, Evaluator, Model, NanRules, Output,
    recipe::{Expression, Start},
};

use super::levels::Split;

/// The unit of a recipe: an operation of a model.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    /// The name of the model, or its file.
    pub(super) model: String,
    /// The model, if it was made for this product.
    pub(super) own: Option<Arc<Model>>,
    pub(super) id: OperationId,
    pub(super) evaluator: Arc<Evaluator>,
}

/// One level with its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Merge {
    pub(super) split: Split,
    pub(super) partial: Option<Adder>,
    pub(super) start: Start,
    pub(super) add: Adder,
}

/// An epilogue: the expression that is stored, and its adders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) adders: Vec<Adder>,
    pub(super) expression: Expression,
    /// The constants that it multiplies by: name, format and bits.
    pub(super) constants: Vec<(String, Format, u64)>,
}

/// A recipe for one shape, as a candidate.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) unit: Unit,
    /// Whether the unit's own accumulator starts at c.
    pub(super) from_c: bool,
    pub(super) merges: Vec<Merge>,
    pub(super) stored: Option<Stored>,
}

/// Returns an adder that loses nothing before it rounds to nearest even in a format.
pub(super) fn nearest(format: Format) -> Adder {
    rounded(format, Rounding::NearestEven)
}

/// Returns an adder that loses nothing before it rounds in a format.
pub(super) fn rounded(format: Format, rounding: Rounding) -> Adder {
    let output = match Output::in_format(format) {
        Output::Float { format, fraction_bits, overflow, subnormals, .. } => {
            Output::Float { format, fraction_bits, rounding, overflow, subnormals }
        }
        other => other,
    };
    let name = match rounding {
        Rounding::NearestEven => format.name().to_owned(),
        Rounding::TowardZero => format!("{format}-rz"),
        Rounding::Down => format!("{format}-rd"),
        Rounding::Up => format!("{format}-ru"),
        _ => format!("{format}-ro"),
    };
    Adder::exact(&name, output, NanRules { invalid: format.nan().unwrap_or(0), ..NanRules::default() })
}
