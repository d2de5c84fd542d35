//! Evaluating a dot, addition by addition: collecting the terms, and resolving NaN and infinities among them.

use std::borrow::Borrow;

use mxprobe_api::OperationId;

use super::{
    align::Aligned,
    number::{Finite, NanCauses, Number, Operands, Value, flushed, in_format, multiply, read},
    step::{self, Observer, Step},
    sum::sum,
};
use crate::{
    adder::{Adder, Class, Output, Scale},
    model::Unit,
    tree::{Plan, PlanNode, Term},
};

/// The operands of one dot, as bits.
#[derive(Clone, Copy, Debug)]
pub struct Dot<'a> {
    /// k elements of A.
    pub a: &'a [u64],
    /// k elements of B.
    pub b: &'a [u64],
    /// One element of C.
    pub c: u64,
    /// Scales of A and of B, one per block of k, if the operation has them.
    pub scales: Option<(&'a [u64], &'a [u64])>,
}

/// Computes d of one dot, bit for bit, by integer arithmetic of unbounded width.
///
/// # Panics
/// If `plan` is not a plan of `unit` for the operation's k, or the dot has fewer products than the plan.
#[must_use]
pub fn evaluate(adders: &[impl Borrow<Adder>], unit: &Unit, plan: &Plan, id: &OperationId, dot: Dot<'_>) -> u64 {
    evaluate_observed(adders, unit, plan, id, dot, &mut ())
}

/// Like [`evaluate`], and reports every step to `observer`.
pub(crate) fn evaluate_observed(
    adders: &[impl Borrow<Adder>],
    unit: &Unit,
    plan: &Plan,
    id: &OperationId,
    dot: Dot<'_>,
    observer: &mut impl Observer,
) -> u64 {
    let block = id.block_scale();
    let scale_of = |k: usize| -> Option<(Number, Number)> {
        let (block, (a, b)) = (block?, dot.scales?);
        let index = k / block.block;
        Some((read(block.format, a[index]), read(block.format, b[index])))
    };
    let product = |k: usize, scaled: bool| {
        let a = in_format(flushed(read(id.a, dot.a[k]), unit.flush.a, unit.flush), unit.flush.converted);
        let b = in_format(flushed(read(id.b, dot.b[k]), unit.flush.b, unit.flush), unit.flush.converted);
        let scales = if scaled { scale_of(k) } else { None };
        Operands { a, b, scales }
    };
    let c = flushed(read(id.c, dot.c), unit.flush.c, unit.flush);
    let mut results: Vec<Number> = Vec::with_capacity(plan.nodes.len());
    for (index, node) in plan.nodes.iter().enumerate() {
        let adder = adders[node.adder].borrow();
        observer.observe(|| Step::Addition { node: index, adder: node.adder });
        let result = add(adder, node, &product, &scale_of, &c, &results, observer);
        observer.observe(|| match &result {
            Number::Bits { format, bits, .. } => Step::Rounded { format: *format, bits: *bits },
            Number::Wide(value) => Step::Unrounded(value.traced()),
            Number::WideNan(_) => Step::Unrounded(step::Value::Nan),
        });
        results.push(result);
    }
    let last = results.last().expect("a plan has a node");
    match (last, adders[plan.nodes[plan.nodes.len() - 1].adder].borrow().output) {
        (Number::Bits { bits, .. }, _) => *bits,
        _ => unreachable!("the last adder of a plan gives a format"),
    }
}

pub(super) fn add(
    adder: &Adder,
    node: &PlanNode,
    product: &dyn Fn(usize, bool) -> Operands,
    scale_of: &dyn Fn(usize) -> Option<(Number, Number)>,
    c: &Number,
    results: &[Number],
    observer: &mut impl Observer,
) -> Number {
    let positive_zero = Number::Wide(Value::Finite(Finite::zero(false)));
    let scales_products = adder.scale == Scale::Products;
    let mut terms = Vec::with_capacity(node.terms.len());
    let mut causes = NanCauses::default();
    let mut infinities = [false, false];
    for term in &node.terms {
        let (class, value) = match term {
            Term::Product(k) => {
                let operands = product(*k, scales_products);
                let value = multiply(&operands);
                if !causes.note_operands(&operands) {
                    causes.invalid |= matches!(value, Value::Nan);
                }
                (Class::Products, overflowed(adder, value))
            }
            other => {
                let number = match other {
                    Term::C => c,
                    Term::Node(index) => &results[*index],
                    _ => &positive_zero,
                };
                causes.note_value(number);
                let class = if matches!(other, Term::Node(_)) && matches!(number, Number::Wide(_)) {
                    Class::Sums
                } else {
                    Class::Values
                };
                (class, number.value().clone())
            }
        };
        observer.observe(|| Step::Term { term: *term, value: value.traced(), exponent: value.exponent() });
        match value {
            Value::Nan => {}
            Value::Infinity { negative } => infinities[usize::from(negative)] = true,
            Value::Finite(finite) => terms.push(Aligned { from: *term, class, term: finite }),
        }
    }
    let group_scales = match (adder.scale, node.terms.first()) {
        (Scale::Sum, Some(Term::Product(k))) => scale_of(*k),
        _ => None,
    };
    if let Some((a, b)) = &group_scales {
        // A NaN scale makes the group NaN.
        causes.note_value(a);
        causes.note_value(b);
    }
    causes.invalid |= infinities == [true, true];
    if causes.any() || infinities != [false, false] {
        observer.observe(|| Step::Special);
    }
    if causes.any() {
        return match adder.output {
            Output::Float { format, .. } => {
                Number::Bits { format, bits: causes.bits(adder, format), value: Value::Nan }
            }
            _ => Number::WideNan(causes),
        };
    }
    if infinities != [false, false] {
        return infinite(adder, infinities[1]);
    }
    sum(adder, &terms, group_scales.as_ref(), observer)
}

/// Replaces a product that overflows this adder's multiplier by an infinity.
fn overflowed(adder: &Adder, value: Value) -> Value {
    match value {
        Value::Finite(finite) if adder.product_overflow && finite.leading().is_some_and(|leading| leading >= 128) => {
            Value::Infinity { negative: finite.negative }
        }
        value => value,
    }
}

fn infinite(adder: &Adder, negative: bool) -> Number {
    match adder.output {
        Output::Float { format, .. } => {
            let bits = format.infinity(negative).or_else(|| format.nan()).unwrap_or_else(|| format.largest(negative));
            Number::Bits { format, bits, value: Value::Infinity { negative } }
        }
        _ => Number::Wide(Value::Infinity { negative }),
    }
}
