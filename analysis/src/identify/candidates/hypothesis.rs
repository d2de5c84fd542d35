//! Hypotheses: skeletons with parameters, which are executable models of one operation.

use std::sync::Arc;

use mxprobe_api::{Error, Format, OperationId, Overflow, Rounding, Subnormals};
use mxprobe_models::{
    Adder, Below, Choices, Class, Evaluator, Exponent, Flush, GridRule, NanRules, Output, Path, Scale,
};

use super::{adders::Adders, nan};
use crate::identify::tree::{
    expression::Expression,
    skeleton::{Role, Skeleton},
};

/// An executable model of one operation.
#[derive(Clone, Debug)]
pub(in crate::identify) struct Hypothesis {
    pub(in crate::identify) skeleton: Arc<Skeleton>,
    /// The parameters of each of the skeleton's adders.
    pub(in crate::identify) adders: Adders,
    pub(in crate::identify) flush: Flush,
}

impl Hypothesis {
    /// Returns an evaluator that computes one dot at a time.
    ///
    /// # Errors
    /// Returns an error if no evaluator can be made of these parameters.
    pub(in crate::identify) fn evaluator(&self, id: &OperationId) -> Result<Evaluator, Error> {
        Evaluator::of_plan(self.adders.shared(), self.flush, &self.skeleton.plan, id, Path::Scalar)
    }

    /// As [`Hypothesis::evaluator`], but with the fastest path, which is worth its setup only for many dots.
    pub(in crate::identify) fn fastest_evaluator(&self, id: &OperationId) -> Result<Evaluator, Error> {
        Evaluator::of_plan(self.adders.shared(), self.flush, &self.skeleton.plan, id, Path::Avx512)
    }

    /// Returns the same hypothesis with equal adders merged into one and unused adders removed.
    pub(in crate::identify) fn merged(&self) -> Self {
        let same = |one: &Adder, other: &Adder| Adder { name: other.name.clone(), ..one.clone() } == *other;
        let mut kept: Vec<usize> = Vec::new();
        let used: Vec<usize> = self.skeleton.plan.nodes.iter().map(|node| node.adder).collect();
        let of: Vec<usize> = (0..self.adders.len())
            .map(|at| {
                let known = kept.iter().position(|other| same(&self.adders[at], &self.adders[*other]));
                known.unwrap_or_else(|| {
                    if !used.contains(&at) {
                        return 0;
                    }
                    kept.push(at);
                    kept.len() - 1
                })
            })
            .collect();
        let expression = self.skeleton.expression.recoloured(&of);
        let skeleton = Skeleton {
            plan: Arc::new(expression.plan()),
            expression,
            names: kept.iter().map(|at| self.skeleton.names[*at].clone()).collect(),
            roles: kept.iter().map(|at| self.skeleton.roles[*at]).collect(),
        };
        let adders = kept.iter().map(|at| Adder { name: self.skeleton.names[*at].clone(), ..self.adders[*at].clone() });
        Self { skeleton: Arc::new(skeleton), adders: adders.collect(), flush: self.flush }
    }

    /// Returns, for each addition of the untied tree, whether it shares its adder with another.
    pub(in crate::identify) fn shared(&self) -> Vec<bool> {
        let of = self.skeleton.expression.adders_by_addition();
        of.iter().map(|adder| of.iter().filter(|other| *other == adder).count() > 1).collect()
    }

    /// Returns the same hypothesis with an adder of their own for some additions: a copy of the one that they shared,
    /// added as the last adder.
    pub(in crate::identify) fn parted(&self, additions: &[usize]) -> Self {
        let mut of = self.skeleton.expression.adders_by_addition();
        let shared = of[additions[0]];
        additions.iter().for_each(|addition| of[*addition] = self.adders.len());
        let expression = self.skeleton.expression.untied().recoloured(&of);
        let (mut names, mut roles) = (self.skeleton.names.clone(), self.skeleton.roles.clone());
        let mut adders = self.adders.clone();
        let name =
            format!("{}-{}", names[shared].trim_end_matches(|c: char| c.is_ascii_digit() || c == '-'), adders.len());
        adders.push(Adder { name: name.clone(), ..adders[shared].clone() });
        names.push(name);
        roles.push(match (additions[0], roles[shared]) {
            (0, _) => Role::Root,
            (_, Role::Root) => Role::Inner,
            (_, role) => role,
        });
        let plan = Arc::new(expression.plan());
        Self { skeleton: Arc::new(Skeleton { expression, plan, names, roles }), adders, flush: self.flush }
    }

    /// Gives an adder these values, under the name that it has.
    pub(in crate::identify) fn set(&mut self, at: usize, values: Adder) {
        let name = self.adders[at].name.clone();
        self.adders.set(at, Adder { name, ..values });
    }

    /// Returns whether two hypotheses have the same adders, tree and flush rule.
    pub(in crate::identify) fn is_same(&self, other: &Self) -> bool {
        self.flush == other.flush
            && self.adders == other.adders
            && self.skeleton.expression == other.skeleton.expression
    }

    /// Returns the same adders in another tree.
    pub(in crate::identify) fn in_tree(&self, expression: Expression) -> Self {
        Self { skeleton: Arc::new(self.skeleton.with(expression)), ..self.clone() }
    }

    /// Returns the same adders in another tree, with one more that passes exact sums on unrounded: the last one.
    pub(in crate::identify) fn with_one_more(&self, expression: Expression, name: &str, role: Role) -> Self {
        let (mut names, mut roles) = (self.skeleton.names.clone(), self.skeleton.roles.clone());
        let mut adders = self.adders.clone();
        adders.push(Adder::exact(name, Output::Wide, NanRules::default()));
        names.push(name.into());
        roles.push(role);
        let skeleton = Skeleton { plan: Arc::new(expression.plan()), expression, names, roles };
        Self { skeleton: Arc::new(skeleton), adders, flush: self.flush }
    }

    /// Returns the number of additions, weighted by what they cost: those on a grid of many bits cut terms one by one.
    pub(in crate::identify) fn weighted_additions(&self) -> usize {
        let is_wide = |adder: &Adder| adder.grid.iter().any(|rule| rule.fraction_bits > FITS_A_WORD);
        let cost = |adder: usize| if is_wide(&self.adders[adder]) { ONE_BY_ONE } else { 1 };
        self.skeleton.plan.nodes.iter().map(|node| cost(node.adder)).sum()
    }

    /// Returns how many values differ from the simplest ones. Of two models that agree, the simpler is taken.
    pub(in crate::identify) fn complexity(&self) -> usize {
        let flush = [self.flush.a, self.flush.b, self.flush.c, self.flush.to_positive];
        let reading = flush.iter().filter(|flag| **flag).count() + usize::from(self.flush.converted.is_some());
        self.adders.iter().map(Adder::complexity).sum::<usize>() + reading
    }
}

/// The most bits of a grid on which sums fit a word of 64 bits, and how many additions one on a wider grid counts for.
const FITS_A_WORD: i32 = 56;
const ONE_BY_ONE: usize = 3;

/// The formats that intermediate results may have.
pub(in crate::identify) const ON_THE_WAY: [Format; 5] =
    [Format::F32, Format::F16, Format::BF16, Format::TF32, Format::F64];

/// Returns the adder with its result in another format. A result that uses every fraction bit of its format uses every
/// one of the new format; a narrower one keeps its number of bits if the new format has as many. An adder that passes
/// its sum on unrounded gets the rounding of its normalisation if it has one, and rounds to nearest even otherwise.
/// `None` if the result is in that format already or is an integer, or if an unrounded sum is to get a format without a
/// NaN.
pub(in crate::identify) fn in_format(adder: &Adder, to: Format) -> Option<Adder> {
    if adder.output == Output::Wide {
        let bits = adder.normalised_fraction_bits.unwrap_or(to.fraction_bits()).min(to.fraction_bits());
        let rounding = match adder.normalised_fraction_bits {
            Some(_) => adder.normalised_below.as_rounding(),
            None => Rounding::NearestEven,
        };
        return Some(Adder {
            output: float(to, bits, rounding),
            nan: NanRules { invalid: to.nan()?, ..NanRules::default() },
            normalised_fraction_bits: None,
            normalised_exponent_floor: None,
            normalised_below: Below::Truncate,
            ..adder.clone()
        });
    }
    let Output::Float { format, fraction_bits, rounding, overflow, subnormals } = adder.output else { return None };
    if format == to {
        return None;
    }
    // A result that uses every bit of its format also uses every bit of the new one.
    let bits = if fraction_bits == format.fraction_bits() { to.fraction_bits() } else { fraction_bits };
    let fraction_bits = bits.min(to.fraction_bits());
    let output = Output::Float { format: to, fraction_bits, rounding, overflow, subnormals };
    Some(Adder { output, nan: nan::in_format(&adder.nan, format, to), ..adder.clone() })
}

/// Returns an output in a format that overflows as IEEE 754 asks and keeps subnormals.
pub(in crate::identify) fn float(format: Format, fraction_bits: u32, rounding: Rounding) -> Output {
    Output::Float { format, fraction_bits, rounding, overflow: Overflow::Ieee, subnormals: Subnormals::Keep }
}

/// Returns a rule of a grid for all terms.
pub(in crate::identify) fn plain_rule(exponent: Exponent, fraction_bits: i32) -> GridRule {
    GridRule { terms: Class::All, exponent, fraction_bits, exponent_floor: None }
}

/// Returns a grid of one rule for all terms.
pub(in crate::identify) fn grid(exponent: Exponent, fraction_bits: i32) -> Vec<GridRule> {
    vec![plain_rule(exponent, fraction_bits)]
}

/// Returns adders with the output of `base` and every grid of one rule, each with 0 to 12 bits cut from values.
pub(in crate::identify) fn plain_grids(base: &Adder) -> Vec<Adder> {
    let base = Adder {
        zero: base.zero,
        scale: base.scale,
        product_overflow: base.product_overflow,
        ..Adder::exact(&base.name, base.output, base.nan.clone())
    };
    let mut found = Vec::new();
    for bits in (16..=44).rev() {
        for exponent in [Exponent::Operands, Exponent::Leading] {
            for below in Below::values() {
                for value_cut_bits in 0..=12 {
                    found.push(Adder { grid: grid(exponent, bits), below, value_cut_bits, ..base.clone() });
                }
            }
        }
    }
    found
}

/// The name of the adder of single products.
pub(in crate::identify) const EACH_PRODUCT: &str = "each";

/// Fraction bits of a grid whose floor lies at any exponent: more than a product has in most formats.
const FIXED_BITS: i32 = 24;

/// Returns adders that cut or round every product at the same place and pass it on, for each place that products of these
/// exponents reach.
pub(in crate::identify) fn on_fixed_grids((low, high): (i32, i32)) -> impl Iterator<Item = Adder> {
    let floors = Below::values().flat_map(move |below| (low..=high + FIXED_BITS).map(move |floor| (below, floor)));
    floors.map(|(below, floor)| {
        let rule = GridRule { exponent_floor: Some(floor), ..plain_rule(Exponent::Operands, FIXED_BITS) };
        Adder { grid: vec![rule], below, ..Adder::exact("", Output::Wide, NanRules::default()) }
    })
}

/// Returns those of [`cores`] that lose no bit before they round.
pub(in crate::identify) fn exact_cores(
    role: Role,
    base: &Adder,
    id: &OperationId,
    fraction_bits: u32,
    formats: &[Format],
) -> Vec<Adder> {
    with_grids(role, base, id, fraction_bits, formats, vec![(Vec::new(), Below::Truncate)])
}

/// Returns every adder that a role allows, as far as ordinary values tell them apart, the simplest first. If the adder
/// does not give d, its result is in d's format, f32 or one of `formats`, or unrounded unless it rounds a single
/// product.
pub(in crate::identify) fn cores(
    role: Role,
    base: &Adder,
    id: &OperationId,
    fraction_bits: u32,
    formats: &[Format],
) -> Vec<Adder> {
    let mut grids: Vec<(Vec<GridRule>, Below)> = vec![(Vec::new(), Below::Truncate)];
    if role != Role::Product {
        let most = id.d.fraction_bits().cast_signed() + 34;
        for bits in (4..=most.max(44)).rev() {
            for exponent in [Exponent::Operands, Exponent::Leading] {
                grids.extend(Below::values().map(|below| (grid(exponent, bits), below)));
            }
        }
        grids.push((Vec::new(), Below::OnesComplement));
    }
    with_grids(role, base, id, fraction_bits, formats, grids)
}

/// Returns adders with every output that a role allows, each with each of these grids.
fn with_grids(
    role: Role,
    base: &Adder,
    id: &OperationId,
    fraction_bits: u32,
    formats: &[Format],
    grids: Vec<(Vec<GridRule>, Below)>,
) -> Vec<Adder> {
    let mut outputs = Vec::new();
    let mut on_the_way = if id.d == Format::F32 || id.d == Format::F64 { vec![id.d] } else { vec![Format::F32, id.d] };
    for format in formats {
        if !on_the_way.contains(format) {
            on_the_way.push(*format);
        }
    }
    match role {
        Role::Root => outputs.extend(Rounding::values().map(|rounding| float(id.d, fraction_bits, rounding))),
        Role::Group => outputs.push(Output::Wide),
        Role::Inner | Role::Product => {
            if role == Role::Inner {
                outputs.push(Output::Wide);
            }
            for format in on_the_way {
                let bits = if format == id.d { fraction_bits } else { format.fraction_bits() };
                outputs.extend(Rounding::values().map(|rounding| float(format, bits, rounding)));
            }
        }
    }
    let scales = if role == Role::Group && id.block_scale().is_some() {
        &[Scale::Products, Scale::Sum][..]
    } else {
        &[Scale::Products][..]
    };
    let mut found = Vec::with_capacity(grids.len() * outputs.len());
    for output in outputs {
        let base = match (base.output, output) {
            (Output::Float { format: from, .. }, Output::Float { format: to, .. }) if from != to => {
                Adder { nan: nan::in_format(&base.nan, from, to), ..base.clone() }
            }
            // An adder that only passed its sum on does not give a NaN of its own.
            (Output::Wide, Output::Float { format, .. }) => {
                Adder { nan: NanRules { invalid: format.nan().unwrap_or(0), ..NanRules::default() }, ..base.clone() }
            }
            _ => base.clone(),
        };
        for scale in scales {
            for (grid, below) in &grids {
                found.push(Adder { grid: grid.clone(), below: *below, output, scale: *scale, ..base.clone() });
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_that_takes_the_place_of_a_sum_as_it_is_has_a_nan_of_its_format() {
        let id = OperationId::new("dot", (4, 4, 8), Format::F32, Format::F16, Format::F16, Format::F32);
        let found = cores(Role::Inner, &Adder::exact("sum", Output::Wide, NanRules::default()), &id, 23, &ON_THE_WAY);
        let mut counted = 0;
        for adder in found {
            let Output::Float { format, .. } = adder.output else { continue };
            counted += 1;
            assert_eq!(Some(adder.nan.invalid), format.nan(), "{format}");
        }
        assert!(counted > 1_000, "{counted}");
    }
}
