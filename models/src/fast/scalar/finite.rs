//! Dots with a NaN or an infinity, whose results do not depend on finite numbers.

use super::compiled::{Compiled, Scratch, UnpackedDot};
use crate::{adder::Adder, fast::unpack::SPECIAL, tree::Term};

/// What products of two significands, and significands, are below.
const OF_PRODUCT: f64 = 4.0;
const OF_C: f64 = 2.0;

/// Products of no larger exponent are below 2^128.
const NO_OVERFLOW: i32 = 126;

fn power_of_two(exponent: i32) -> f64 {
    f64::from(exponent).exp2()
}

/// By how much an adder's result may exceed the sum of the magnitudes of its terms, as a share of the largest number so
/// far.
fn growth(rules: &Adder, terms: usize, fraction_bits: Option<u32>) -> f64 {
    // A term may lose a unit, and one more in one's complement.
    let units = 2.0 * f64::from(u32::try_from(terms).unwrap_or(u32::MAX));
    let cut = rules.value_cut_bits.cast_signed();
    let of_grid: f64 = rules.grid.iter().map(|rule| units * power_of_two(cut - rule.fraction_bits)).sum();
    let cuts = rules.normalised_fraction_bits.into_iter().chain(fraction_bits);
    of_grid + cuts.map(|bits| power_of_two(-bits.cast_signed())).sum::<f64>()
}

/// Plans of fewer nodes are computed sooner than it is found out that finite numbers do not matter.
const MANY_NODES: usize = 4;

impl Scratch {
    /// The largest exponent of finite products and c of which no addition makes an infinity or a NaN. `None` if it is not
    /// known.
    pub(in crate::fast) fn finite_up_to(&mut self, compiled: &Compiled) -> Option<i32> {
        *self.finite_up_to.get_or_insert_with(|| compiled.finite_up_to())
    }
}

impl Compiled {
    /// The exponent that [`Scratch::finite_up_to`] keeps.
    fn finite_up_to(&self) -> Option<i32> {
        if self.scale.is_some() || self.nodes.len() < MANY_NODES {
            return None;
        }
        // What the magnitudes of results are below, in units of two to the power of the largest exponent.
        let mut bounds: Vec<f64> = Vec::with_capacity(self.nodes.len());
        let mut largest = OF_PRODUCT;
        let (mut least, mut most) = (i32::MIN, i32::MAX);
        for node in &self.nodes {
            let adder = &self.adders[node.adder];
            let rules = &adder.rules;
            let terms = self.terms_of(node);
            let of_terms = terms.iter().map(|term| match *term {
                Term::Product(_) => OF_PRODUCT,
                Term::C => OF_C,
                Term::Node(index) => bounds[index],
                Term::PositiveZero => 0.0,
            });
            let rounder = adder.float.as_ref();
            let fraction_bits = rounder.map(|rounder| rounder.encoding.fraction_bits);
            let bound = of_terms.sum::<f64>() + growth(rules, terms.len(), fraction_bits) * largest;
            largest = largest.max(bound);
            bounds.push(bound);
            // Numbers of this exponent or a lower one may be as large as two to its power.
            let floors = rules.grid.iter().filter_map(|rule| rule.exponent_floor);
            let floors = floors.chain(rules.normalised_exponent_floor);
            least = floors.chain(rounder.map(|rounder| rounder.min_exponent)).fold(least, i32::max);
            if let Some(rounder) = rounder {
                let field = i32::try_from(rounder.largest >> rounder.encoding.fraction_bits).ok()?;
                // A bound that is no number is no bound.
                #[allow(clippy::cast_possible_truncation)]
                let above = if bound.is_finite() { bound.log2().ceil() as i32 } else { return None };
                most = most.min(field - rounder.encoding.bias - above);
            }
            if rules.product_overflow {
                most = most.min(NO_OVERFLOW);
            }
        }
        (least <= most).then_some(most)
    }

    /// Computes d of a dot of which only what is NaN or infinite is not +0. `None` if d is finite, or not known.
    pub(in crate::fast) fn evaluate_special(&self, dot: UnpackedDot<'_>, scratch: &mut Scratch) -> Option<u64> {
        let bits = self.evaluate(dot, scratch)?;
        let last = &self.adders[self.nodes.last()?.adder];
        (last.read(bits).kind & SPECIAL != 0).then_some(bits)
    }
}
