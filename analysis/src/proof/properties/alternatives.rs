//! The alternative answers to each question, as models.

use mxprobe_api::{Error, Format, OperationId, Overflow, Rounding, Subnormals};
use mxprobe_models::{Adder, Choices, Class, Exponent, GridRule, Model, NanRules, Output, Plan, Term};

use super::{
    question::{Asked, Property},
    trees::{Rewrite, call, with_tree},
};
use crate::{
    plain::counted,
    proof::{
        carry::sufficient_carry_bits,
        neighbours::{Neighbour, adders, of_parameters, with_sufficient_carry},
    },
};

/// The roundings of IEEE 754 that other roundings are compared with.
const ROUNDINGS: [Rounding; 4] = [Rounding::NearestEven, Rounding::TowardZero, Rounding::Down, Rounding::Up];

/// Names of adders that are added to a model.
const ROUNDED: &str = "rounded_on_the_way";
const RESULT: &str = "final_result";

/// The question of a property for a model; the inner `Err` says why it does not apply.
pub(super) fn of(model: &Model, id: &OperationId, property: Property) -> Result<Result<Asked, String>, Error> {
    let missing = || Error::invalid(format!("the model {} has no operation {id}", model.name));
    let (_, plan) = model.plan(id).ok_or_else(missing)?;
    if id.is_integer() {
        return Ok(Err("products and sums of integers are exact, or wrap or saturate".into()));
    }
    let scene = Scene { model, id, plan };
    Ok(match property {
        Property::Products => Ok(scene.products()),
        Property::Accumulation => Ok(scene.accumulation()),
        Property::ResultRounding => Ok(scene.result_rounding()),
        Property::AccumulatorRounding => Ok(scene.accumulator_rounding()),
        Property::Order => Ok(scene.order()),
        Property::Normalisation => Ok(scene.normalisation()),
        Property::Carry => scene.carry(),
    })
}

struct Scene<'a> {
    model: &'a Model,
    id: &'a OperationId,
    plan: Plan,
}

fn plain_product(k: usize) -> String {
    k.to_string()
}

fn plain_c() -> String {
    "c".to_owned()
}

/// An adder with this name that adds exactly and rounds once into a format.
fn rounding_adder(like: &Adder, name: &str, format: Format, rounding: Rounding) -> Adder {
    let nan = format.nan().unwrap_or_default();
    let overflow = if format.infinity(false).is_some() { Overflow::Ieee } else { Overflow::Saturate };
    let fraction_bits = format.fraction_bits();
    Adder {
        name: name.to_owned(),
        output: Output::Float { format, fraction_bits, rounding, overflow, subnormals: Subnormals::Keep },
        nan: NanRules { operand: Some(nan), value: Some(nan), invalid: nan, ..like.nan.clone() },
        ..exact(like)
    }
}

/// The adder without a grid: nothing is lost before its result is rounded.
fn exact(adder: &Adder) -> Adder {
    Adder {
        product_overflow: adder.product_overflow,
        zero: adder.zero,
        provenance: adder.provenance.clone(),
        ..Adder::exact(&adder.name, adder.output, adder.nan.clone())
    }
}

fn words(rounding: Rounding) -> &'static str {
    rounding.choice().words
}

impl Scene<'_> {
    fn last(&self) -> &Adder {
        &self.model.adders[self.plan.nodes[self.plan.nodes.len() - 1].adder]
    }

    fn name(&self, node: usize) -> &str {
        &self.model.adders[self.plan.nodes[node].adder].name
    }

    /// The rounding of the final result.
    fn rounding(&self) -> Rounding {
        match self.last().output {
            Output::Float { rounding, .. } => rounding,
            _ => Rounding::NearestEven,
        }
    }

    /// The format that a narrower unit would compute in: that of the operands, but at least f16, and f32 for f64.
    fn narrow(&self) -> Format {
        let wider = if self.id.a.fraction_bits() >= self.id.b.fraction_bits() { self.id.a } else { self.id.b };
        match wider {
            Format::F64 => Format::F32,
            wider if wider.bits() < Format::F16.bits() => Format::F16,
            wider => wider,
        }
    }

    /// The format for additions one after another: f32, and f64 for f64.
    fn wide(&self) -> Format {
        if self.id.d == Format::F64 { Format::F64 } else { Format::F32 }
    }

    fn asked(&self, unit: String) -> Asked {
        Asked { unit, base: self.model.clone(), alternatives: Vec::new(), left_out: Vec::new() }
    }

    fn add(&self, asked: &mut Asked, what: String, more: Vec<Adder>, tree: &str) {
        match with_tree(self.model, self.id, more, tree) {
            Ok(model) => asked.alternatives.push(Neighbour { what, model }),
            Err(why) => asked.left_out.push((what, why)),
        }
    }

    fn products(&self) -> Asked {
        let alone = self.plan.nodes.iter().filter(|node| matches!(node.terms[..], [Term::Product(_)]));
        let mut rounded: Vec<String> =
            alone.filter_map(|node| Some(self.model.adders[node.adder].output_format()?.to_string())).collect();
        rounded.dedup();
        let mut asked = self.asked(match rounded.as_slice() {
            [] => "products enter the sum exactly".to_owned(),
            formats => format!("products are rounded to {} before they are added", formats.join(", ")),
        });
        let wider = if self.id.a.fraction_bits() >= self.id.b.fraction_bits() { self.id.a } else { self.id.b };
        for rounding in ROUNDINGS {
            let adder = rounding_adder(self.last(), ROUNDED, wider, rounding);
            let node = |node: usize, terms: &[String]| call(self.name(node), terms);
            let product = |k: usize| format!("{ROUNDED}({k})");
            let tree = Rewrite { product: &product, c: &plain_c, node: &node }.text(&self.plan);
            self.add(&mut asked, format!("products rounded {} to {wider}", words(rounding)), vec![adder], &tree);
        }
        asked
    }

    /// The result of additions one after another, each rounded into a format: the adders and the tree.
    fn one_by_one(&self, format: Format, rounding: Rounding, products: &str) -> (Vec<Adder>, String) {
        let adder = rounding_adder(self.last(), ROUNDED, format, rounding);
        let chain = format!("fold(c, {products}/1, {ROUNDED}(acc, 0))");
        if format == self.id.d {
            return (vec![adder], chain);
        }
        let last = rounding_adder(self.last(), RESULT, self.id.d, self.rounding());
        (vec![adder, last], format!("{RESULT}({chain})"))
    }

    fn accumulation(&self) -> Asked {
        let formats: Vec<String> = adders(&self.plan)
            .into_iter()
            .map(|number| {
                let adder = &self.model.adders[number];
                let kept = match adder.grid.first() {
                    Some(rule) => format!("{} fraction bits below the largest exponent", rule.fraction_bits),
                    None => "every bit".to_owned(),
                };
                let into =
                    adder.output_format().map_or("not rounded".to_owned(), |format| format!("rounded to {format}"));
                format!("{} keeps {kept}, {into}", adder.name)
            })
            .collect();
        let mut asked = self.asked(formats.join("; "));
        let narrow = self.narrow();
        for rounding in [Rounding::NearestEven, Rounding::TowardZero] {
            let more = vec![
                rounding_adder(self.last(), ROUNDED, narrow, rounding),
                rounding_adder(self.last(), RESULT, self.id.d, self.rounding()),
            ];
            let tree = format!("{RESULT}(fold(none, all/1, {ROUNDED}(acc, {ROUNDED}(0))), c)");
            let what = format!("products and each of their sums rounded {} to {narrow}", words(rounding));
            self.add(&mut asked, what, more, &tree);
        }
        asked
    }

    fn result_rounding(&self) -> Asked {
        let mut asked = self.asked(format!("the last sum is rounded {} to {}", words(self.rounding()), self.id.d));
        let last = self.plan.nodes.len() - 1;
        for rounding in ROUNDINGS.into_iter().filter(|rounding| *rounding != self.rounding()) {
            let mut adder = Adder { name: RESULT.to_owned(), ..self.last().clone() };
            if let Output::Float { rounding: of_adder, .. } = &mut adder.output {
                *of_adder = rounding;
            }
            let node = |node: usize, terms: &[String]| call(if node == last { RESULT } else { self.name(node) }, terms);
            let tree = Rewrite { product: &plain_product, c: &plain_c, node: &node }.text(&self.plan);
            self.add(&mut asked, format!("the last sum rounded {}", words(rounding)), vec![adder], &tree);
        }
        asked
    }

    fn accumulator_rounding(&self) -> Asked {
        let used = adders(&self.plan);
        let of = |number: &usize| {
            let adder = &self.model.adders[*number];
            let lost = if adder.grid.is_empty() { "nothing is lost" } else { adder.below.choice().words };
            format!("{}: bits below the grid: {lost}", adder.name)
        };
        let mut asked = self.asked(used.iter().map(of).collect::<Vec<_>>().join("; "));
        let gridded: Vec<usize> =
            used.into_iter().filter(|number| !self.model.adders[*number].grid.is_empty()).collect();
        asked.alternatives = of_parameters(self.model, &gridded, |key| key == "below");
        let wide = self.wide();
        let last = self.plan.nodes.len() - 1;
        for rounding in ROUNDINGS {
            let mut more = vec![rounding_adder(self.last(), ROUNDED, wide, rounding)];
            let is_converted = self.id.d != wide;
            if is_converted {
                more.push(rounding_adder(self.last(), RESULT, self.id.d, self.rounding()));
            }
            let node = |node: usize, terms: &[String]| {
                let sum = call(ROUNDED, terms);
                if node == last && is_converted { call(RESULT, &[sum]) } else { sum }
            };
            let tree = Rewrite { product: &plain_product, c: &plain_c, node: &node }.text(&self.plan);
            let exact = if self.plan.nodes.len() == 1 { "the exact sum" } else { "each exact sum" };
            self.add(&mut asked, format!("{exact} rounded {}", words(rounding)), more, &tree);
        }
        asked
    }

    fn order(&self) -> Asked {
        let k = self.id.shape.sizes().2;
        let sums = self.plan.nodes.len();
        let mut asked = self.asked(match sums {
            1 => "all terms are in one sum".to_owned(),
            _ => format!("{sums} sums, each of some of the terms"),
        });
        let node = |node: usize, terms: &[String]| call(self.name(node), terms);
        let reversed = |k_of: usize| (k - 1 - k_of).to_string();
        let tree = Rewrite { product: &reversed, c: &plain_c, node: &node }.text(&self.plan);
        self.add(&mut asked, "products in reverse order".into(), Vec::new(), &tree);
        if sums > 1 && self.plan.nodes.iter().any(|node| node.terms.len() > 2) {
            let backwards =
                |node: usize, terms: &[String]| call(self.name(node), &terms.iter().rev().cloned().collect::<Vec<_>>());
            let tree = Rewrite { product: &plain_product, c: &plain_c, node: &backwards }.text(&self.plan);
            self.add(&mut asked, "products of each sum in reverse order".into(), Vec::new(), &tree);
        }
        let wide = self.wide();
        let rounding = if self.id.d == wide { self.rounding() } else { Rounding::TowardZero };
        for (products, direction) in [("all", "first to the last"), ("reverse", "last to the first")] {
            let (more, tree) = self.one_by_one(wide, rounding, products);
            let what =
                format!("c and one product after another, from the {direction}, rounded {} to {wide}", words(rounding));
            self.add(&mut asked, what, more, &tree);
        }
        asked
    }

    /// Adders that add two terms, or an unrounded sum and a term, on an adder's grid, and normalise: one passes on the
    /// sum, the other gives the adder's result.
    fn normalising(&self, adder: &Adder, number: usize) -> Option<[Adder; 2]> {
        let [rule] = adder.grid.as_slice() else { return None };
        let fraction_bits = u32::try_from(rule.fraction_bits).ok()?;
        let of = |terms: Class, exponent: Exponent| GridRule { terms, exponent, ..*rule };
        // A sum that is normalised has the exponent of its leading bit.
        let grid = vec![
            of(Class::Products, rule.exponent),
            of(Class::Values, rule.exponent),
            of(Class::Sums, Exponent::Leading),
        ];
        let result = Adder { name: format!("normalised_result_{number}"), grid, carry_bits: None, ..adder.clone() };
        let sum = Adder {
            name: format!("normalised_sum_{number}"),
            output: Output::Wide,
            normalised_fraction_bits: Some(fraction_bits),
            normalised_below: adder.below,
            ..result.clone()
        };
        Some([sum, result])
    }

    fn normalisation(&self) -> Asked {
        let most = self.plan.nodes.iter().map(|node| node.terms.len()).max().unwrap_or(0);
        let mut asked = self.asked(match most {
            0..=2 => "each sum has two terms and is normalised and rounded".to_owned(),
            _ => format!("up to {most} terms are added before the sum is normalised"),
        });
        let used = adders(&self.plan);
        let pairs: Option<Vec<(usize, [Adder; 2])>> = used
            .iter()
            .map(|number| Some((*number, self.normalising(&self.model.adders[*number], *number)?)))
            .collect();
        if let Some(pairs) = pairs.filter(|_| most > 2) {
            let node = |node: usize, terms: &[String]| {
                let number = self.plan.nodes[node].adder;
                let [sum, result] = &pairs.iter().find(|(of, _)| *of == number).expect("adders that are used").1;
                let Some((last, before)) = terms.split_last().filter(|(_, before)| !before.is_empty()) else {
                    return call(self.name(node), terms);
                };
                let before = before.iter().cloned().reduce(|one, other| call(&sum.name, &[one, other]));
                call(&result.name, &[before.expect("a term"), last.clone()])
            };
            let tree = Rewrite { product: &plain_product, c: &plain_c, node: &node }.text(&self.plan);
            let more = pairs.iter().flat_map(|(_, adders)| adders.clone()).collect();
            self.add(&mut asked, "normalised after each addition, as many bits kept".into(), more, &tree);
        }
        let wide = self.wide();
        let rounding = if self.id.d == wide { self.rounding() } else { Rounding::TowardZero };
        if most > 2 {
            let (more, tree) = self.one_by_one(wide, rounding, "all");
            let what = format!("each addition normalised and rounded {} to {wide}", words(rounding));
            self.add(&mut asked, what, more, &tree);
        } else {
            let last = rounding_adder(self.last(), RESULT, self.id.d, self.rounding());
            self.add(
                &mut asked,
                "normalised and rounded once, at the end".into(),
                vec![last],
                &format!("{RESULT}(c, all)"),
            );
        }
        asked
    }

    fn carry(&self) -> Result<Asked, String> {
        let used = adders(&self.plan);
        let gridded: Vec<usize> =
            used.into_iter().filter(|number| !self.model.adders[*number].grid.is_empty()).collect();
        if gridded.is_empty() {
            return Err("sums are exact: no register is too narrow for them".into());
        }
        let base = with_sufficient_carry(self.model, self.id, &gridded).map_err(|error| error.to_string())?;
        let words = gridded.iter().map(|number| {
            let adder = &base.adders[*number];
            let nodes = self.plan.nodes.iter().filter(|node| node.adder == *number);
            let terms = nodes.clone().map(|node| node.terms.len()).max().unwrap_or(0);
            let mut normalised = adder.clone();
            normalised.grid.iter_mut().for_each(|rule| rule.exponent = Exponent::Leading);
            let needed = nodes
                .map(|node| sufficient_carry_bits(&normalised, node, self.id, &base.adders, &self.plan.nodes))
                .collect::<Option<Vec<u32>>>()
                .and_then(|bits| bits.into_iter().max());
            let bits = counted(adder.carry_bits.unwrap_or_default(), "carry bit");
            let convention = match (adder.grid.first().map(|rule| rule.exponent), needed) {
                (Some(Exponent::Operands), Some(needed)) => {
                    format!(", as products are not normalised; normalised ones would need {needed}")
                }
                _ => String::new(),
            };
            format!("{}: {terms} terms need {bits}{convention}", adder.name)
        });
        let unit = words.collect::<Vec<_>>().join("; ");
        let alternatives = of_parameters(&base, &gridded, |key| key == "carry_bits");
        Ok(Asked { unit, base, alternatives, left_out: Vec::new() })
    }
}
