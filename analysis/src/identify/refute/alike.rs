//! Values of an adder that have no effect where it is used. A rival that differs in such a value only is the model itself:
//! no dot tells them apart, and none is worth looking for.

use mxprobe_api::{FloatEncoding, OperationId, Overflow, Rounding, Subnormals};
use mxprobe_models::{Adder, Below, Class, Exponent, GridRule, Output, Term};

use crate::identify::candidates::hypothesis::Hypothesis;

/// Whether one adder of a hypothesis and another in its place give the same results for any operands.
pub(super) fn is_alike(id: &OperationId, hypothesis: &Hypothesis, at: usize, other: &Adder) -> bool {
    let terms = Terms::of(hypothesis, at);
    without_effect(id, &terms, &hypothesis.adders[at]) == without_effect(id, &terms, other)
}

/// The most products, values and unrounded sums that one addition of an adder takes.
pub(super) struct Terms {
    products: usize,
    values: usize,
    sums: usize,
}

impl Terms {
    pub(super) fn of(hypothesis: &Hypothesis, at: usize) -> Self {
        let nodes = &hypothesis.skeleton.plan.nodes;
        let class = |term: &Term| match term {
            Term::Product(_) => Class::Products,
            Term::Node(index) if hypothesis.adders[nodes[*index].adder].output == Output::Wide => Class::Sums,
            Term::Node(_) | Term::C | Term::PositiveZero => Class::Values,
        };
        let most = |of: Class| {
            let own = nodes.iter().filter(|node| node.adder == at);
            own.map(|node| node.terms.iter().filter(|term| class(term) == of).count()).max().unwrap_or(0)
        };
        Self { products: most(Class::Products), values: most(Class::Values), sums: most(Class::Sums) }
    }

    /// Whether any term is of this class.
    pub(super) fn has(&self, class: Class) -> bool {
        match class {
            Class::All => true,
            Class::Products => self.products > 0,
            Class::Values => self.values > 0,
            Class::Sums => self.sums > 0,
        }
    }

    /// Whether every term is of one class.
    fn are(&self, class: Class) -> bool {
        let mut others = [Class::Products, Class::Values, Class::Sums].into_iter().filter(|other| *other != class);
        class == Class::All || others.all(|other| !self.has(other))
    }
}

/// Returns an adder with each value that has no effect at its default.
fn without_effect(id: &OperationId, terms: &Terms, adder: &Adder) -> Adder {
    let mut plain = adder.clone();
    for rule in plain.grid.iter_mut().filter(|rule| terms.are(rule.terms)) {
        rule.terms = Class::All;
    }
    if adder.carry_bits.is_some_and(|bits| is_enough(id, bits, terms, &plain)) {
        plain.carry_bits = None;
    }
    if !terms.has(Class::Values) {
        plain.value_cut_bits = 0;
        plain.ignored_values = None;
    }
    if !terms.has(Class::Products) || !reaches_128(id) {
        plain.product_overflow = false;
    }
    if let Output::Float { fraction_bits, rounding, overflow, subnormals, .. } = &mut plain.output {
        // Neither carries a tiny sum into the range of normal numbers.
        let stays = matches!(rounding, Rounding::TowardZero | Rounding::ToOdd);
        if stays && *subnormals == Subnormals::FlushBeforeRounding {
            *subnormals = Subnormals::FlushAfterRounding;
        }
        let as_ieee = if stays { Overflow::Saturate } else { Overflow::Infinity };
        if *overflow == as_ieee && (stays || *rounding == Rounding::NearestEven) {
            *overflow = Overflow::Ieee;
        }
        let cut = adder.normalised_fraction_bits.is_some_and(|bits| bits >= *fraction_bits);
        let truncates = adder.normalised_below == Below::Truncate && adder.normalised_exponent_floor.is_none();
        if cut && truncates && *rounding == Rounding::TowardZero {
            plain.normalised_fraction_bits = None;
        }
    }
    plain
}

/// Whether no sum of an adder reaches beyond so many carry bits. Only known if a rule counts every term: a product is
/// then below four times the power of two of the largest exponent, and a value below twice that power.
fn is_enough(id: &OperationId, carry_bits: u32, terms: &Terms, adder: &Adder) -> bool {
    let counts_all = |rule: &GridRule| rule.terms == Class::All;
    let is_known = id.block_scale().is_none() && !terms.has(Class::Sums) && adder.grid.iter().any(counts_all);
    if !is_known || adder.grid.iter().any(|rule| rule.fraction_bits < 3) {
        return false;
    }
    if adder.below != Below::Truncate && adder.value_cut_bits > 0 {
        return false;
    }
    let leading = adder.grid.iter().filter(|rule| counts_all(rule)).all(|rule| rule.exponent == Exponent::Leading);
    let of_products = if leading { 2 } else { 4 } * terms.products;
    // Bits that are not truncated add at most one unit for each term, here an eighth of that power.
    let lost = if adder.below == Below::Truncate { 0 } else { terms.products + terms.values };
    let most = 8 * (of_products + 2 * terms.values) + lost;
    // Truncated terms do not reach their limits.
    16usize.checked_shl(carry_bits).is_some_and(|limit| most < limit || most == limit && lost == 0)
}

/// Whether a product can have a magnitude of 2^128 or more.
fn reaches_128(id: &OperationId) -> bool {
    let most = |float: FloatEncoding| float.max_exponent() + 1;
    match (id.a.as_float().map(most), id.b.as_float().map(most)) {
        (Some(a), Some(b)) => id.block_scale().is_some() || a + b > 128,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use mxprobe_api::Format;
    use mxprobe_models::{Flush, NanRules, PARAMETERS, Parameter};

    use super::*;
    use crate::{
        dots::{Dot, Edges, draw},
        identify::{
            candidates::hypothesis::{float, grid},
            tree::{
                expression::Expression,
                skeleton::{Role, Skeleton},
            },
        },
    };

    /// Four products and c added at once to f32.
    fn at_once(adder: Adder) -> Hypothesis {
        let expression = Expression::Add(0, (0..4).map(Expression::Product).chain([Expression::C]).collect());
        let plan = Arc::new(expression.plan());
        let (names, roles) = (vec!["sum".into()], vec![Role::Root]);
        let skeleton = Arc::new(Skeleton { plan, expression, names, roles });
        Hypothesis { skeleton, adders: vec![adder].into(), flush: Flush::default() }
    }

    /// The near values of the adder's parameters that are alike: the parameter, its value, and the adder with it.
    fn alike(id: &OperationId, hypothesis: &Hypothesis) -> Vec<(String, Adder)> {
        let adder = &hypothesis.adders[0];
        let changed = |parameter: &'static Parameter<Adder>| {
            (parameter.near)(adder).into_iter().map(move |to| {
                let mut changed = adder.clone();
                (parameter.set)(&mut changed, to);
                (format!("{} {to:?}", parameter.key), changed)
            })
        };
        let all = PARAMETERS.iter().filter(|parameter| parameter.applies(adder)).flat_map(changed);
        all.filter(|(_, other)| other != adder && is_alike(id, hypothesis, 0, other)).collect()
    }

    #[test]
    fn no_dot_tells_values_apart_that_are_alike() {
        let id: OperationId = "dot.m1n1k4.f32.f16.f16.f32".parse().unwrap();
        let dots: Vec<Dot> = draw(&id, 1, 20_000).into_iter().chain(Edges::new(&id, 2).take(20_000)).collect();
        let results = |hypothesis: &Hypothesis| {
            let evaluator = hypothesis.evaluator(&id).unwrap();
            let of = |Dot { a, b, c, .. }: &Dot| {
                let dot = mxprobe_models::Dot { a, b, c: *c, scales: None };
                evaluator.dot(dot).unwrap()
            };
            dots.iter().map(of).collect::<Vec<u64>>()
        };
        let adder = |rounding, carry_bits| Adder {
            grid: grid(Exponent::Operands, 24),
            carry_bits,
            ..Adder::exact("sum", float(Format::F32, 23, rounding), NanRules::default())
        };
        let enough = ["carry_bits Whole(4)", "carry_bits Whole(5)", "carry_bits Whole(6)"];
        for (rounding, carry_bits, expected) in [
            (
                Rounding::TowardZero,
                None,
                [&["product_overflow Flag(true)"][..], &enough, &["overflow Choice(3)"]].concat(),
            ),
            (Rounding::NearestEven, Some(3), vec!["product_overflow Flag(true)", "overflow Choice(1)"]),
        ] {
            let hypothesis = at_once(adder(rounding, carry_bits));
            let own = results(&hypothesis);
            let (names, others): (Vec<String>, Vec<Adder>) = alike(&id, &hypothesis).into_iter().unzip();
            assert_eq!(names, expected);
            for (name, other) in names.iter().zip(others) {
                assert!(own == results(&at_once(other)), "{rounding:?}, carry {carry_bits:?}: {name}");
            }
        }
    }

    #[test]
    fn one_carry_bit_less_than_enough_is_seen() {
        let id: OperationId = "dot.m1n1k4.f32.f16.f16.f32".parse().unwrap();
        let adder = Adder::exact("sum", float(Format::F32, 23, Rounding::TowardZero), NanRules::default());
        let with = |carry_bits| Adder { grid: grid(Exponent::Operands, 24), carry_bits, ..adder.clone() };
        let hypothesis = at_once(with(None));
        assert!(is_alike(&id, &hypothesis, 0, &with(Some(4))));
        assert!(!is_alike(&id, &hypothesis, 0, &with(Some(3))));
        // 4 · 1.999² + 1.999 = 17.98, and three carry bits hold what is below 16.
        let (a, c) = (vec![0x3fff; 4], 0x3fff_ffff);
        let dot = mxprobe_models::Dot { a: &a, b: &a, c, scales: None };
        let d = |carry_bits| at_once(with(carry_bits)).evaluator(&id).unwrap().dot(dot).unwrap();
        assert_eq!(d(Some(4)), d(None));
        assert_ne!(d(Some(3)), d(None));
    }
}
