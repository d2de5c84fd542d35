//! When a dot loses nothing in any order: all of its terms lie on a grid that every partial sum keeps.

use mxprobe_api::{Format, OperationId, Subnormals};
use mxprobe_models::{Adder, Below, Output, Scale};

use super::{node::min_exponent, terms::range};

/// A dot whose terms are integer multiples of 2^ℓ, and whose sums have exponents of at most e, is exact in every order
/// if ℓ is at least `lowest` and e − ℓ is at most `span`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lossless {
    span: i32,
    lowest: i32,
}

impl Lossless {
    /// The rule for an operation with these adders. `None` if one of them changes values that lie on its grid (a one's
    /// complement), ignores such values, multiplies sums by block scales, or adds integers.
    pub(super) fn of<'a>(
        adders: impl Iterator<Item = &'a Adder>,
        id: &OperationId,
        reads_subnormal_c: bool,
    ) -> Option<Self> {
        let lowest = if reads_subnormal_c { i32::MIN } else { min_exponent(id.c) };
        adders.map(Self::of_adder).try_fold(Self { span: i32::MAX, lowest }, |least, of| {
            let of = of?;
            Some(Self { span: least.span.min(of.span), lowest: least.lowest.max(of.lowest) })
        })
    }

    fn of_adder(adder: &Adder) -> Option<Self> {
        let complements = adder.below == Below::OnesComplement || adder.normalised_below == Below::OnesComplement;
        let ignores = adder.ignored_values.is_some_and(|rule| rule.below_bits < 0);
        if complements || ignores || adder.scale == Scale::Sum {
            return None;
        }
        let cut = adder.value_cut_bits.cast_signed();
        let aligned = adder.grid.iter().map(|rule| rule.fraction_bits - cut);
        let normalised = adder.normalised_fraction_bits.map(u32::cast_signed);
        let span = aligned.chain(normalised).min().unwrap_or(i32::MAX);
        match adder.output {
            Output::Wide => Some(Self { span, lowest: i32::MIN }),
            Output::Float { format, fraction_bits, subnormals, .. } => Some(Self {
                span: span.min(fraction_bits.cast_signed()),
                lowest: if subnormals == Subnormals::Keep { i32::MIN } else { min_exponent(format) },
            }),
            Output::Integer { .. } => None,
        }
    }

    /// Whether the rule applies to terms that are integer multiples of 2^lowest and sums with exponents of at most
    /// `exponent`.
    pub(super) fn holds(self, lowest: i32, exponent: i32) -> bool {
        lowest >= self.lowest && exponent - lowest <= self.span
    }

    /// Whether the rule applies to every dot of `k` products of an operation without a c, if exponents below `least`
    /// count as `least`.
    pub(super) fn holds_for_all(self, id: &OperationId, k: usize, least: i32) -> bool {
        let largest = |format: Format| format.to_f64(format.largest(false));
        let most = k as f64 * largest(id.a) * largest(id.b);
        if id.block_scale().is_some() || !most.is_finite() {
            return false;
        }
        let max_exponent = |format: Format| format.as_float().map_or(0, mxprobe_api::FloatEncoding::max_exponent);
        let products = max_exponent(id.a) + max_exponent(id.b);
        let exponent =
            (1..).find(|exponent| f64::from(*exponent).exp2() > most).map_or(i32::MAX, |above: i32| above - 1);
        self.holds(range(id.a).0 + range(id.b).0, exponent.max(products).max(least))
    }
}
