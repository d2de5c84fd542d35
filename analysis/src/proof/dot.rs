//! Evaluates a dot, or a part of one, over any logic.

use std::collections::BTreeMap;

use mxprobe_api::{Format, OperationId};
use mxprobe_models::{Adder, Class, Flush, Plan, Term as Place, Unit};

use super::{
    adder::{NotCovered, add, scales_sum},
    canonical::Bounds,
    conditions::{Conditions, narrowed},
    integer::Integer,
    logic::Logic,
    nan::quieted,
    number::{Candidate, Finite, Number, Scales, Term, flushed, product, read},
    words::{Word, Words},
};
use crate::dots::Dot;

/// The operands of a dot as words, and the earlier results that a part of a dot reads.
#[derive(Clone, Debug)]
pub struct Inputs<B> {
    /// The elements of A, by k.
    pub a: BTreeMap<usize, Word<B>>,
    /// The elements of B, by k.
    pub b: BTreeMap<usize, Word<B>>,
    /// c.
    pub c: Option<Word<B>>,
    /// The scales of A, by block.
    pub scale_a: BTreeMap<usize, Word<B>>,
    /// The scales of B, by block.
    pub scale_b: BTreeMap<usize, Word<B>>,
    /// The results of earlier nodes, by node.
    pub results: BTreeMap<usize, Word<B>>,
    /// The ranges that operands and c are known to be in; results are valid only if they are.
    pub conditions: Conditions,
}

/// The arithmetic of an operation, without its inputs.
#[derive(Clone, Copy, Debug)]
pub struct Arithmetic<'a> {
    /// The model's adders.
    pub adders: &'a [Adder],
    /// Its unit for the operation.
    pub unit: &'a Unit,
    /// The unit's plan for the operation's k.
    pub plan: &'a Plan,
    /// The operation.
    pub id: &'a OperationId,
    /// The known bounds of each addition's result, if any.
    pub bounds: &'a [Option<Bounds>],
    /// Extra bits of sums beyond the widest that can occur. They do not change any result; with them, a formula does
    /// not depend on the assumed width of sums.
    pub spare_bits: usize,
}

impl<B> Default for Inputs<B> {
    fn default() -> Self {
        let none = BTreeMap::new;
        Self {
            a: none(),
            b: none(),
            c: None,
            scale_a: none(),
            scale_b: none(),
            results: none(),
            conditions: Conditions::ANY,
        }
    }
}

impl Inputs<bool> {
    /// The bits of a dot.
    #[must_use]
    pub fn of(id: &OperationId, dot: &Dot) -> Self {
        let word = |bits: u64, width: u32| -> Word<bool> { (0..width).map(|place| bits >> place & 1 == 1).collect() };
        let words = |bits: &[u64], width: u32| bits.iter().map(|bits| word(*bits, width)).enumerate().collect();
        let scales = id.block_scale().zip(dot.scales.as_ref());
        Self {
            a: words(&dot.a, id.a.bits()),
            b: words(&dot.b, id.b.bits()),
            c: Some(word(dot.c, id.c.bits())),
            scale_a: scales.map(|(scale, (a, _))| words(a, scale.format.bits())).unwrap_or_default(),
            scale_b: scales.map(|(scale, (_, b))| words(b, scale.format.bits())).unwrap_or_default(),
            results: BTreeMap::new(),
            conditions: Conditions::ANY,
        }
    }
}

/// The bits of the result of the last of `nodes`; the others are computed on the way, and results of nodes that are not
/// among them are inputs.
///
/// # Errors
/// The part of the model that is not covered, in words.
///
/// # Panics
/// If an input is missing.
pub fn evaluate<L: Logic>(
    logic: &mut L,
    arithmetic: &Arithmetic<'_>,
    nodes: &[usize],
    inputs: &Inputs<L::Bit>,
) -> Result<Word<L::Bit>, NotCovered> {
    let mut scene = Scene { arithmetic, inputs, results: BTreeMap::new() };
    for node in nodes {
        let number = scene.node(logic, *node)?;
        scene.results.insert(*node, number);
    }
    let last = nodes.last().and_then(|node| scene.results.remove(node));
    let (_, bits) = last.and_then(|number| number.bits).ok_or("a part that ends in an unrounded sum")?;
    Ok(bits)
}

/// Terms with their places, sorted: products by index, then earlier results by node, c, +0.
pub(super) fn sorted(terms: &[Place]) -> Vec<(usize, Place)> {
    let mut terms: Vec<(usize, Place)> = terms.iter().copied().enumerate().collect();
    terms.sort_by_key(|(_, term)| match term {
        Place::Product(k) => (0, *k),
        Place::Node(node) => (1, *node),
        Place::C => (2, 0),
        Place::PositiveZero => (3, 0),
    });
    terms
}

struct Scene<'a, B> {
    arithmetic: &'a Arithmetic<'a>,
    inputs: &'a Inputs<B>,
    results: BTreeMap<usize, Number<B>>,
}

impl<B: Copy + std::fmt::Debug> Scene<'_, B> {
    fn node<L: Logic<Bit = B>>(&self, logic: &mut L, node: usize) -> Result<Number<B>, NotCovered> {
        let Arithmetic { adders, plan, spare_bits, .. } = self.arithmetic;
        let node = &plan.nodes[node];
        let adder = &adders[node.adder];
        let mut terms = Vec::with_capacity(node.terms.len());
        for (at, place) in sorted(&node.terms) {
            terms.push(Term { place: at, ..self.term(logic, adder, place)? });
        }
        let scales = match node.terms.first() {
            Some(Place::Product(k)) if scales_sum(adder) => self.scales(logic, *k),
            _ => None,
        };
        add(logic, adder, &terms, scales.as_ref(), *spare_bits)
    }

    fn term<L: Logic<Bit = B>>(&self, logic: &mut L, adder: &Adder, place: Place) -> Result<Term<B>, NotCovered> {
        let Arithmetic { adders, plan, unit, id, .. } = self.arithmetic;
        let no = logic.constant(false);
        let value =
            |number: Number<B>| Term { place: 0, class: Class::Values, number, operands: Vec::new(), invalid: no };
        match place {
            Place::Product(k) => Ok(self.product(logic, adder, k)),
            Place::C => {
                let bits = self.inputs.c.as_ref().expect("a part that reads c is given one");
                let number = read(logic, id.c, bits);
                let number = narrowed(logic, id.c, self.inputs.conditions.c, number);
                let number = if unit.flush.c { flushed(logic, number, unit.flush.to_positive) } else { number };
                Ok(value(number))
            }
            Place::PositiveZero => {
                let finite = super::number::Finite::zero(logic);
                Ok(value(Number { bits: None, nan: no, infinite: no, finite, causes: None }))
            }
            Place::Node(node) => match self.results.get(&node) {
                Some(number) => {
                    let class = if number.bits.is_none() { Class::Sums } else { Class::Values };
                    Ok(Term { class, ..value(number.clone()) })
                }
                None => {
                    let bits = self.inputs.results.get(&node).expect("a part is given the results it reads");
                    let format = adders[plan.nodes[node].adder].output_format();
                    let format = format.ok_or("a part that starts from an unrounded sum")?;
                    if format.infinity(false).is_none() && !format.is_integer() {
                        return Err(format!("results of {format}, which has no infinity, on their way to another sum"));
                    }
                    Ok(value(read(logic, format, bits)))
                }
            },
        }
    }

    fn scales<L: Logic<Bit = B>>(&self, logic: &mut L, k: usize) -> Option<Scales<B>> {
        let scale = self.arithmetic.id.block_scale()?;
        let block = k / scale.block;
        let (a, b) = (self.inputs.scale_a.get(&block)?, self.inputs.scale_b.get(&block)?);
        Some((read(logic, scale.format, a), read(logic, scale.format, b)))
    }

    fn product<L: Logic<Bit = B>>(&self, logic: &mut L, adder: &Adder, k: usize) -> Term<B> {
        let Arithmetic { unit, id, .. } = self.arithmetic;
        let (flush, conditions) = (unit.flush, self.inputs.conditions);
        let a = read(logic, id.a, &self.inputs.a[&k]);
        let a = narrowed(logic, id.a, conditions.a, a);
        let a = if flush.a { flushed(logic, a, flush.to_positive) } else { a };
        let a = converted(logic, a, id.a, flush);
        let b = read(logic, id.b, &self.inputs.b[&k]);
        let b = narrowed(logic, id.b, conditions.b, b);
        let b = if flush.b { flushed(logic, b, flush.to_positive) } else { b };
        let b = converted(logic, b, id.b, flush);
        let scales = if scales_sum(adder) { None } else { self.scales(logic, k) };
        let mut factors = vec![&a, &b];
        factors.extend(scales.iter().flat_map(|(a, b)| [a, b]));
        let operands = factors
            .iter()
            .filter_map(|factor| {
                let (format, bits) = factor.bits.as_ref()?;
                Some(Candidate { nan: factor.nan, format: *format, bits: bits.clone() })
            })
            .collect();
        let (mut number, invalid) = product(logic, &factors);
        if adder.product_overflow {
            let leading = number.finite.leading(logic);
            let beyond = Integer::constant(127).less(logic, &leading);
            let nonzero = number.finite.has_exponent;
            let beyond = logic.and(beyond, nonzero);
            let beyond = logic.and_not(beyond, number.nan);
            number.infinite = logic.or(number.infinite, beyond);
        }
        Term { place: 0, class: Class::Products, number, operands, invalid }
    }
}

/// Converts an operand to the format in which it is multiplied, if that is another one. A subnormal that is a normal number
/// there has the exponent of its leading bit.
fn converted<L: Logic>(logic: &mut L, number: Number<L::Bit>, from: Format, flush: Flush) -> Number<L::Bit> {
    let Some(to) = flush.converted else { return number };
    let Number { bits, nan, infinite, finite, causes } = number;
    // The bits of an operand count only if it is NaN.
    let bits = bits.and_then(|(format, bits)| {
        let own = quieted(logic, &Candidate { nan, format, bits }, to);
        own.or_else(|| Some(logic.number(u128::from(to.nan()?), to.bits() as usize)))
    });
    let finite = if flush.normalises(from) {
        Finite { exponent: finite.leading(logic), lsb_below_exponent: None, ..finite }
    } else {
        finite
    };
    Number { bits: bits.map(|bits| (to, bits)), nan, infinite, finite, causes }
}
