//! Which properties of a result can affect d.

use mxprobe_api::Rounding;
use mxprobe_models::{Below, Class, Exponent, NanCause, Output, Term, ZeroSign};

use super::{facts::Facts, form::Form};

/// The properties of a result, apart from its value, that can affect d.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Observed {
    /// The sign of a zero.
    pub zero_sign: bool,
    /// The bits of a NaN, for a rounded result.
    pub nan_bits: bool,
    /// The exponent by operands of an unrounded sum.
    pub exponent: bool,
    /// For an unrounded sum that is NaN: the NaN bits of operands and of values among the terms.
    pub operand_bits: bool,
    pub value_bits: bool,
    /// For an unrounded sum that is NaN by an operand or a value: whether infinities cancelled too, or a product is
    /// invalid.
    pub invalid: bool,
}

impl Observed {
    fn and(&mut self, other: Self) {
        self.zero_sign |= other.zero_sign;
        self.nan_bits |= other.nan_bits;
        self.exponent |= other.exponent;
        self.operand_bits |= other.operand_bits;
        self.value_bits |= other.value_bits;
        self.invalid |= other.invalid;
    }
}

impl Form<'_> {
    /// The observed properties of each result.
    pub(super) fn observed(&self, facts: &[Facts]) -> Vec<Observed> {
        let mut observed = vec![Observed::default(); self.nodes.len()];
        if let Some(last) = observed.last_mut() {
            (last.zero_sign, last.nan_bits) = (true, true);
        }
        for node in (0..self.nodes.len()).rev() {
            let own = observed[node];
            for (at, term) in self.nodes[node].terms.iter().enumerate() {
                if let Term::Node(below) = *term {
                    let by = self.observed_by(node, own, at, facts);
                    observed[below].and(by);
                }
            }
        }
        observed
    }

    /// The observed properties of a node's term, given those of the node's result (`own`).
    pub(super) fn observed_by(&self, node: usize, own: Observed, at: usize, facts: &[Facts]) -> Observed {
        let terms = self.terms(node, facts);
        let adder = &self.nodes[node].adder;
        let term = &terms[at];
        let by_operands = |class: Class| {
            adder
                .grid
                .iter()
                .any(|rule| rule.exponent == Exponent::Operands && (rule.terms == Class::All || rule.terms == class))
        };
        let exponent = match adder.output {
            // An unrounded sum has the exponent of its grid, or the greatest of its terms.
            Output::Wide if adder.grid.is_empty() => own.exponent,
            _ => by_operands(term.class),
        };
        let (operand_bits, value_bits, invalid) = self.nan_shown(node, own);
        Observed {
            zero_sign: self.shows_zero_sign(node, own, at, &terms),
            nan_bits: value_bits,
            exponent,
            operand_bits,
            value_bits,
            invalid,
        }
    }

    /// Whether a node, with `own` observed of its result, shows the NaN bits of operands, those of values, and an
    /// invalid operation next to another cause.
    pub(super) fn nan_shown(&self, node: usize, own: Observed) -> (bool, bool, bool) {
        let adder = &self.nodes[node].adder;
        match adder.output {
            Output::Integer { .. } => (false, false, false),
            Output::Wide => (own.operand_bits, own.value_bits, own.invalid),
            Output::Float { .. } if !own.nan_bits => (false, false, false),
            Output::Float { .. } => {
                let rules = &adder.nan;
                let last = rules.order.last() == Some(&NanCause::Invalid);
                let same = rules.operand == Some(rules.invalid) && rules.value == Some(rules.invalid);
                (rules.operand.is_none(), rules.value.is_none(), !last && !same)
            }
        }
    }

    /// Whether the sign of a term that is zero shows in a node's result.
    fn shows_zero_sign(&self, node: usize, own: Observed, at: usize, terms: &[Facts]) -> bool {
        let adder = &self.nodes[node].adder;
        if adder.below == Below::OnesComplement {
            // The adder complements by the signs of its terms, zeros included.
            return true;
        }
        match adder.output {
            // An unrounded zero is positive, and integers have only one zero.
            Output::Wide | Output::Integer { .. } => false,
            Output::Float { .. } if adder.zero == ZeroSign::Positive || !own.zero_sign => false,
            // Unless it is rounded down, a zero is +0 if any term is not −0.
            Output::Float { rounding: Rounding::Down, .. } => true,
            Output::Float { .. } => terms.iter().enumerate().all(|(other, term)| other == at || term.negative_zero),
        }
    }
}
