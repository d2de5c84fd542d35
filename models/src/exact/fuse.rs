//! A single addition, outside a unit's tree.

use mxprobe_api::Format;

use super::{
    evaluate::add,
    number::{Number, Operands, read},
    step::{Observer, Step},
};
use crate::{
    adder::Adder,
    tree::{PlanNode, Term},
};

/// Bits in a format.
pub(crate) type Bits = (Format, u64);

/// A term of an addition: a value, or the exact product of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fused(pub(crate) Bits, pub(crate) Option<Bits>);

/// Adds the terms as the adder does and returns bits in its format. Reports every step to `observer`, the i-th term
/// being product or node i.
///
/// # Panics
/// If the adder has no output format.
pub(crate) fn fuse(adder: &Adder, terms: &[Fused], observer: &mut impl Observer) -> u64 {
    let number = |(format, bits): Bits| read(format, bits);
    let numbers: Vec<Number> = terms.iter().map(|term| number(term.0)).collect();
    let term = |(at, term): (usize, &Fused)| if term.1.is_some() { Term::Product(at) } else { Term::Node(at) };
    let node = PlanNode { adder: 0, terms: terms.iter().enumerate().map(term).collect() };
    let product = |at: usize, _: bool| {
        let Fused(a, b) = terms[at];
        Operands { a: number(a), b: number(b.expect("a product has two factors")), scales: None }
    };
    let zero = read(Format::F32, 0);
    match add(adder, &node, &product, &|_| None, &zero, &numbers, observer) {
        Number::Bits { format, bits, .. } => {
            observer.observe(|| Step::Rounded { format, bits });
            bits
        }
        _ => unreachable!("an adder outside of a unit gives a format"),
    }
}
