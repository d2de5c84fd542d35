//! Extends what the solver found for a part to whole dots, which must produce the earlier results that the part reads.

use mxprobe_api::{Decoded, Format, OperationId, Overflow, Rounding, Subnormals};
use mxprobe_models::{Plan, Term};

use super::{
    circuit::Signal,
    cnf::Encoded,
    parts::{Place, Query, Variable},
};
use crate::dots::Dot;

/// Dots on which a part has the inputs that the solver found, if earlier results can be produced in a simple way: one
/// is passed as c or as products that add up to it, and everything else is +0, or −0. The caller must check whether the
/// models differ on these dots.
pub(super) fn lifted(query: &Query, encoded: &Encoded, values: &[bool], part: usize, plan: &Plan) -> Vec<Dot> {
    let id = &query.id;
    let bit = |signal: &Signal| {
        let literal = encoded.literal(*signal);
        literal != 0 && values[literal.unsigned_abs() as usize - 1] == (literal > 0)
    };
    let number = |variable: &Variable| -> u64 {
        variable.bits.iter().enumerate().map(|(place, signal)| u64::from(bit(signal)) << place).sum()
    };
    let mut dot = Dot::zeros(id);
    let mut free = vec![true; dot.a.len()];
    let mut c_is_free = true;
    let mut results = Vec::new();
    for variable in query.variables.iter().filter(|variable| variable.part == part) {
        let bits = number(variable);
        match variable.place {
            Place::A(k) => (dot.a[k], free[k]) = (bits, false),
            Place::B(k) => (dot.b[k], free[k]) = (bits, false),
            Place::C => (dot.c, c_is_free) = (bits, false),
            Place::Result(node) => results.push((node, variable.format, bits)),
            Place::ScaleA(block) => set_scale(&mut dot, true, block, bits),
            Place::ScaleB(block) => set_scale(&mut dot, false, block, bits),
        }
    }
    for (node, format, bits) in results {
        let (mut products, mut reads_c) = (Vec::new(), false);
        leaves(plan, node, &mut products, &mut reads_c);
        if c_is_free && format == id.c && (reads_c || products.is_empty()) {
            (dot.c, c_is_free) = (bits, false);
            continue;
        }
        products.retain(|k| free[*k]);
        for (k, (a, b)) in products.iter().zip(pieces(id, format, bits)) {
            (dot.a[*k], dot.b[*k], free[*k]) = (a, b, false);
        }
    }
    let mut negative = dot.clone();
    if let (Some(a), Some(c)) = (id.a.negative_zero(), id.c.negative_zero()) {
        for k in (0..free.len()).filter(|k| free[*k]) {
            (negative.a[k], negative.b[k]) = (a, id.b.one());
        }
        if c_is_free {
            negative.c = c;
        }
    }
    vec![dot, negative]
}

fn set_scale(dot: &mut Dot, of_a: bool, block: usize, bits: u64) {
    if let Some((a, b)) = &mut dot.scales {
        let scales = if of_a { a } else { b };
        scales[block] = bits;
    }
}

/// Collects the products below a node of a plan, in order, and whether c is below it.
fn leaves(plan: &Plan, node: usize, products: &mut Vec<usize>, reads_c: &mut bool) {
    let mut waiting = vec![node];
    let mut seen = vec![false; plan.nodes.len()];
    while let Some(node) = waiting.pop() {
        if std::mem::replace(&mut seen[node], true) {
            continue;
        }
        for term in &plan.nodes[node].terms {
            match term {
                Term::Product(k) => products.push(*k),
                Term::C => *reads_c = true,
                Term::Node(below) => waiting.push(*below),
                Term::PositiveZero => {}
            }
        }
    }
    products.sort_unstable();
    products.dedup();
}

/// Products that add up to a value: one, if the value has two factors that the formats hold, otherwise pieces of its
/// significand.
fn pieces(id: &OperationId, format: Format, bits: u64) -> Vec<(u64, u64)> {
    let (one, negative_zero) = (id.b.one(), id.a.negative_zero());
    let (negative, significand, lsb) = match format.decode(bits) {
        Decoded::Zero { negative } => {
            return if negative { negative_zero.map(|zero| (zero, one)).into_iter().collect() } else { Vec::new() };
        }
        Decoded::Nan { .. } => return id.a.nan().map(|nan| (nan, one)).into_iter().collect(),
        Decoded::Infinity { negative } => {
            return id.a.infinity(negative).map(|infinity| (infinity, one)).into_iter().collect();
        }
        Decoded::Finite { negative, significand, exponent } => {
            (negative, significand, exponent - format.fraction_bits().cast_signed())
        }
    };
    let shift = significand.trailing_zeros();
    let (significand, lsb) = (significand >> shift, lsb + shift.cast_signed());
    let limit = |format: Format| 2_u64 << format.fraction_bits().min(12);
    for factor in (1..limit(id.b)).step_by(2).filter(|factor| significand % factor == 0) {
        if let Some(product) = product(id, negative, significand / factor, factor, lsb) {
            return vec![product];
        }
    }
    let width = id.a.fraction_bits() + 1;
    let piece = |at: u32| {
        let piece = significand >> (at * width) & ((1 << width) - 1);
        let lsb = lsb + (at * width).cast_signed();
        (piece != 0).then(|| product(id, negative, piece, 1, lsb)).flatten()
    };
    (0..u64::BITS.div_ceil(width)).rev().filter(|at| at * width < u64::BITS).filter_map(piece).collect()
}

/// Operands whose product is ±a·b·2^lsb, if the formats hold such operands exactly.
fn product(id: &OperationId, negative: bool, a: u64, b: u64, lsb: i32) -> Option<(u64, u64)> {
    let exactly = |format: Format, negative: bool, significand: u64, lsb: i32| {
        let (rounding, overflow) = (Rounding::TowardZero, Overflow::Saturate);
        let encoded = format.encode(negative, u128::from(significand), lsb, rounding, overflow, Subnormals::Keep);
        (!encoded.inexact && !encoded.overflow).then_some(encoded.bits)
    };
    let range = |format: Format| format.as_float().map_or((0, 0), |float| (float.min_exponent(), float.max_exponent()));
    let (low, high) = range(id.b);
    // Exponents of B's factor, those near the middle first, in search of one that leaves A a factor it holds.
    let mut exponents: Vec<i32> = (low - id.b.fraction_bits().cast_signed()..=high).collect();
    exponents.sort_by_key(|exponent| (2 * exponent - lsb).abs());
    exponents
        .into_iter()
        .find_map(|exponent| Some((exactly(id.a, negative, a, lsb - exponent)?, exactly(id.b, false, b, exponent)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_add_up_to_the_value_they_are_made_for() {
        for (text, few) in [("mma.m16n8k16.f32.f16.f16.f32", 3), ("mma.m16n8k16.f32.bf16.bf16.f32", 3)] {
            let id: OperationId = text.parse().unwrap();
            for bits in [0x3f80_0001, 0xc07f_ffff, 0x3f80_0000, 0x4049_0fdb, 0x3b00_1234_u64] {
                let pieces = pieces(&id, Format::F32, bits);
                let sum: f64 = pieces.iter().map(|(a, b)| id.a.to_f64(*a) * id.b.to_f64(*b)).sum();
                assert!(pieces.len() <= few, "{text} {bits:#x}");
                assert_eq!(sum.to_bits(), Format::F32.to_f64(bits).to_bits(), "{text} {bits:#x}");
            }
            assert_eq!(pieces(&id, Format::F32, 0x8000_0000).len(), 1);
            assert!(pieces(&id, Format::F32, 0).is_empty());
        }
    }
}
