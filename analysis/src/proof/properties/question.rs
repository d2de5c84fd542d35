//! Questions about a model.

use mxprobe_models::Model;

use crate::proof::neighbours::Neighbour;

/// A property of the arithmetic of a unit: one of the queries of Valpey et al., arXiv:2502.15999, table 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property {
    /// Whether products are exact.
    Products,
    /// Whether sums are kept in the operands' format or in a wider one.
    Accumulation,
    /// How the final result is rounded.
    ResultRounding,
    /// The treatment of the bits that do not fit into the accumulator.
    AccumulatorRounding,
    /// Whether the result depends on the order of the terms.
    Order,
    /// Whether intermediate sums are normalised.
    Normalisation,
    /// The number of carry bits that a sum needs.
    Carry,
}

impl Property {
    /// All properties, in the order of the paper's table.
    pub const ALL: [Self; 7] = [
        Self::Products,
        Self::Accumulation,
        Self::ResultRounding,
        Self::AccumulatorRounding,
        Self::Order,
        Self::Normalisation,
        Self::Carry,
    ];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Products => "products",
            Self::Accumulation => "accumulation",
            Self::ResultRounding => "result-rounding",
            Self::AccumulatorRounding => "accumulator-rounding",
            Self::Order => "order",
            Self::Normalisation => "normalisation",
            Self::Carry => "carry",
        }
    }

    /// The question in words.
    #[must_use]
    pub fn question(self) -> &'static str {
        match self {
            Self::Products => "are products exact?",
            Self::Accumulation => "are sums kept in a wider format than the operands'?",
            Self::ResultRounding => "how is the final result rounded?",
            Self::AccumulatorRounding => "what becomes of the bits that do not fit into the accumulator?",
            Self::Order => "does the result depend on the order of the terms?",
            Self::Normalisation => "are sums normalised on the way?",
            Self::Carry => "how many carry bits does a sum need?",
        }
    }
}

/// A question about a model: the model as it is compared, and the alternative answers.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The model's own answer, in words.
    pub unit: String,
    /// The model as it is compared.
    pub base: Model,
    /// The alternatives: the model with one thing changed in each.
    pub alternatives: Vec<Neighbour>,
    /// Alternatives that no model of this operation can express, each with the reason.
    pub left_out: Vec<(String, String)>,
}
