//! Simplifies a dot as long as it still shows something, for evidence that a person can follow.

use mxprobe_api::{Decoded, Format, OperationId, Overflow, Rounding, Subnormals};

use super::Dot;
use crate::in_order::InOrder;

/// The most steps that are taken; each queries one batch.
const STEPS: usize = 400;

/// The complexity of a dot, the most important part first: nonzero terms, NaN and infinities, bits of significands,
/// distances of exponents from 0, minus signs. Lower is simpler.
#[must_use]
pub fn cost(id: &OperationId, dot: &Dot) -> [u64; 5] {
    let mut total = [0; 5];
    let mut add = |cost: [u64; 5]| total.iter_mut().zip(cost).for_each(|(total, cost)| *total += cost);
    for (a, b) in dot.a.iter().zip(&dot.b) {
        let (of_a, of_b) = (of_element(id.a, *a), of_element(id.b, *b));
        let is_term = of_a[0] > 0 && of_b[0] > 0;
        add([u64::from(is_term), 0, 0, 0, 0]);
        [of_a, of_b].into_iter().for_each(|[filled, rest @ ..]| add([0, rest[0], rest[1] + filled, rest[2], rest[3]]));
    }
    add(of_element(id.c, dot.c));
    if let (Some(scale), Some((a, b))) = (id.block_scale(), &dot.scales) {
        for bits in a.iter().chain(b).filter(|bits| **bits != scale.format.one()) {
            let [filled, rest @ ..] = of_element(scale.format, *bits);
            add([0, rest[0], rest[1] + filled, rest[2], rest[3]]);
        }
    }
    total
}

fn of_element(format: Format, bits: u64) -> [u64; 5] {
    match format.decode(bits) {
        Decoded::Zero { negative } => [0, 0, 0, 0, u64::from(negative)],
        Decoded::Nan { negative, payload } => [1, 2, u64::from(payload.count_ones()), 0, u64::from(negative)],
        Decoded::Infinity { negative } => [1, 1, 0, 0, u64::from(negative)],
        Decoded::Finite { negative, significand, exponent } => {
            let odd = significand >> significand.trailing_zeros();
            let length = u64::from(64 - odd.leading_zeros());
            let size = if format.is_integer() { length * 2 + u64::from(odd.count_ones()) } else { length };
            [1, 0, size, u64::from(exponent.unsigned_abs()), u64::from(negative)]
        }
    }
}

/// The simplest dot near `dot` for which `holds` is still true: fewer terms, shorter significands, exponents nearer 0,
/// fewer signs. `holds` receives a batch of dots and answers for each.
///
/// `holds` must be true for `dot` itself; any other dot that is returned was seen to hold.
///
/// # Errors
/// The errors of `holds`.
pub fn simplest<E>(
    id: &OperationId,
    dot: &Dot,
    mut holds: impl FnMut(&[Dot]) -> Result<Vec<bool>, E>,
) -> Result<Dot, E> {
    let mut best = dot.clone();
    for _ in 0..STEPS {
        let dots = simpler_neighbours(id, &best);
        if dots.is_empty() {
            break;
        }
        let answers = holds(&dots)?;
        match dots.into_iter().zip(answers).find(|(_, holds)| *holds) {
            Some((dot, _)) => best = dot,
            None => break,
        }
    }
    Ok(best)
}

/// Those neighbours of a dot that are simpler than it, the simplest first.
fn simpler_neighbours(id: &OperationId, dot: &Dot) -> Vec<Dot> {
    let now = cost(id, dot);
    let mut simpler: Vec<([u64; 5], Dot)> =
        neighbours(id, dot).into_iter().map(|dot| (cost(id, &dot), dot)).filter(|(cost, _)| *cost < now).collect();
    simpler.order_by_key(|(cost, _)| *cost);
    simpler.dedup_by(|left, right| left.1 == right.1);
    simpler.into_iter().map(|(_, dot)| dot).collect()
}

/// Dots that are one small or large step simpler or close to that.
fn neighbours(id: &OperationId, dot: &Dot) -> Vec<Dot> {
    let mut found = Vec::new();
    without_terms(dot, &mut found);
    elements(id, dot, &mut found);
    together(id, dot, &mut found);
    scales(id, dot, &mut found);
    found
}

/// Leaves out runs of products, from all of them down to single ones, and c.
fn without_terms(dot: &Dot, found: &mut Vec<Dot>) {
    let filled: Vec<usize> = (0..dot.a.len()).filter(|at| dot.a[*at] != 0 || dot.b[*at] != 0).collect();
    let mut run = filled.len();
    while run > 0 {
        for out in filled.chunks(run) {
            let mut next = dot.clone();
            out.iter().for_each(|at| (next.a[*at], next.b[*at]) = (0, 0));
            found.push(next);
        }
        run /= 2;
    }
    if dot.c != 0 {
        found.push(Dot { c: 0, ..dot.clone() });
    }
}

/// Simplifies single operands.
fn elements(id: &OperationId, dot: &Dot, found: &mut Vec<Dot>) {
    for at in 0..dot.a.len() {
        for bits in simpler(id.a, dot.a[at]) {
            let mut next = dot.clone();
            next.a[at] = bits;
            found.push(next);
        }
        for bits in simpler(id.b, dot.b[at]) {
            let mut next = dot.clone();
            next.b[at] = bits;
            found.push(next);
        }
    }
    found.extend(simpler(id.c, dot.c).into_iter().map(|c| Dot { c, ..dot.clone() }));
}

/// Changes all operands in one step: moves the exponents of a or b together with c, negates everything, moves a factor
/// from one operand to the other, or negates both factors of a product.
fn together(id: &OperationId, dot: &Dot, found: &mut Vec<Dot>) {
    if id.is_integer() {
        return;
    }
    for by in [-64, -16, -4, -1, 1, 4, 16, 64] {
        let moved = |format: Format, bits: &[u64]| bits.iter().map(|bits| shifted(format, *bits, by)).collect();
        let (a, b): (Option<Vec<u64>>, Option<Vec<u64>>) = (moved(id.a, &dot.a), moved(id.b, &dot.b));
        let c = shifted(id.c, dot.c, by);
        if let (Some(a), Some(c)) = (a, c) {
            found.push(Dot { a, c, ..dot.clone() });
        }
        if let (Some(b), Some(c)) = (b, c) {
            found.push(Dot { b, c, ..dot.clone() });
        }
    }
    for by in [-8, -1, 1, 8] {
        let mut next = dot.clone();
        let mut all = true;
        for (a, b) in next.a.iter_mut().zip(&mut next.b) {
            match (shifted(id.a, *a, by), shifted(id.b, *b, -by)) {
                (Some(up), Some(down)) => (*a, *b) = (up, down),
                _ => all = false,
            }
        }
        if all {
            found.push(next);
        }
    }
    let turned = |format: Format, bits: u64| match format.decode(bits) {
        Decoded::Finite { negative: true, .. } | Decoded::Finite { negative: false, .. } => negated(format, bits),
        _ => Some(bits),
    };
    let a: Option<Vec<u64>> = dot.a.iter().map(|bits| turned(id.a, *bits)).collect();
    if let (Some(a), Some(c)) = (a, turned(id.c, dot.c)) {
        found.push(Dot { a, c, ..dot.clone() });
    }
    for at in 0..dot.a.len() {
        if let (Some(a), Some(b)) = (negated(id.a, dot.a[at]), negated(id.b, dot.b[at])) {
            let mut next = dot.clone();
            (next.a[at], next.b[at]) = (a, b);
            found.push(next);
        }
    }
}

fn scales(id: &OperationId, dot: &Dot, found: &mut Vec<Dot>) {
    let (Some(scale), Some((a, b))) = (id.block_scale(), &dot.scales) else { return };
    let one = scale.format.one();
    found.push(Dot { scales: Some((vec![one; a.len()], vec![one; b.len()])), ..dot.clone() });
    for block in 0..a.len() {
        for in_a in [true, false] {
            let bits = if in_a { a[block] } else { b[block] };
            for simpler in simpler(scale.format, bits).into_iter().chain([one]) {
                let (mut a, mut b) = (a.clone(), b.clone());
                if in_a {
                    a[block] = simpler
                } else {
                    b[block] = simpler
                }
                found.push(Dot { scales: Some((a, b)), ..dot.clone() });
            }
        }
    }
}

/// Simpler replacements for these bits.
fn simpler(format: Format, bits: u64) -> Vec<u64> {
    let mut found = vec![0];
    match format.decode(bits) {
        Decoded::Zero { .. } => {}
        Decoded::Nan { .. } => {
            found.extend(format.nan().into_iter().chain(format.infinity(false)).chain([format.one()]))
        }
        Decoded::Infinity { negative } => {
            found.extend(format.infinity(false).into_iter().chain([format.one(), format.largest(negative)]));
        }
        Decoded::Finite { negative, significand, exponent } if format.is_integer() => {
            let _ = exponent;
            for magnitude in [1, significand / 2, significand.saturating_sub(1), significand & (significand - 1)] {
                found.push(format.truncated(negative, magnitude, 0));
                found.push(format.truncated(false, magnitude, 0));
            }
            found.push(format.truncated(false, significand, 0));
        }
        Decoded::Finite { negative, significand, exponent } => {
            let lowest = exponent - format.fraction_bits().cast_signed();
            let length = (64 - significand.leading_zeros()).cast_signed();
            // Fewer significant bits, truncated or rounded up.
            for kept in [1, 2, 3, length / 2, length - 1] {
                let drop = length - kept;
                if kept > 0 && drop > 0 {
                    let cut = significand >> drop;
                    found.push(format.truncated(negative, cut, lowest + drop));
                    found.push(format.truncated(negative, cut + 1, lowest + drop));
                }
            }
            let leading = lowest + length - 1;
            for to in [0, leading / 2, leading - leading.signum()] {
                found.push(format.truncated(negative, significand, lowest + to - leading));
            }
            found.push(format.truncated(negative, 1, 0));
            found.push(format.truncated(false, significand, lowest));
        }
    }
    found.retain(|other| *other != bits);
    found
}

/// The value times 2^by, if that is exact.
fn shifted(format: Format, bits: u64, by: i32) -> Option<u64> {
    let Decoded::Finite { negative, significand, exponent } = format.decode(bits) else { return Some(bits) };
    let lowest = exponent - format.fraction_bits().cast_signed() + by;
    let (rounding, overflow) = (Rounding::TowardZero, Overflow::Saturate);
    let encoded = format.encode(negative, u128::from(significand), lowest, rounding, overflow, Subnormals::Keep);
    (!encoded.inexact && !encoded.overflow).then_some(encoded.bits)
}

/// The negation, if the format has it.
fn negated(format: Format, bits: u64) -> Option<u64> {
    let Decoded::Finite { negative, significand, exponent } = format.decode(bits) else { return Some(bits) };
    let lowest = exponent - format.fraction_bits().cast_signed();
    let other = format.truncated(!negative, significand, lowest);
    (matches!(format.decode(other), Decoded::Finite { negative: turned, .. } if turned != negative)).then_some(other)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::dots::draw;

    fn id() -> OperationId {
        "mma.m16n8k16.f32.f16.f16.f32".parse().unwrap()
    }

    #[test]
    fn what_does_not_matter_goes_away() {
        let id = id();
        let dot = draw(&id, 3, 20).into_iter().find(|dot| dot.a[5] & 0x7fff > 0x0400 && dot.b[5] & 0x7fff > 0).unwrap();
        // Only a normal operand in A of product 5 matters.
        let holds = |dots: &[Dot]| -> Result<Vec<bool>, Infallible> {
            Ok(dots.iter().map(|dot| (0x0400..0x7c00).contains(&(dot.a[5] & 0x7fff))).collect())
        };
        let found = simplest(&id, &dot, holds).unwrap();
        let mut wanted = Dot::zeros(&id);
        wanted.a[5] = 0x3c00;
        assert_eq!(found, wanted);
    }

    #[test]
    fn a_dot_that_is_simple_stays() {
        let id = id();
        let zeros = Dot::zeros(&id);
        assert_eq!(cost(&id, &zeros), [0; 5]);
        let found =
            simplest(&id, &zeros, |dots: &[Dot]| -> Result<Vec<bool>, Infallible> { Ok(vec![true; dots.len()]) });
        assert_eq!(found.unwrap(), zeros);
    }

    #[test]
    fn integers_shrink_to_the_least_that_holds() {
        let id: OperationId = "mma.m16n8k32.s32.s8.s8.s32".parse().unwrap();
        let mut dot = Dot::zeros(&id);
        dot.a.fill(0x81);
        dot.b.fill(0x7f);
        let sum = |dot: &Dot| -> i64 {
            let value = |bits: u64| i64::from(i8::from_le_bytes([bits.to_le_bytes()[0]]));
            dot.a.iter().zip(&dot.b).map(|(a, b)| value(*a) * value(*b)).sum()
        };
        let holds = |dots: &[Dot]| -> Result<Vec<bool>, Infallible> {
            Ok(dots.iter().map(|dot| sum(dot).abs() > 200).collect())
        };
        let found = simplest(&id, &dot, holds).unwrap();
        assert_eq!(cost(&id, &found)[0], 1, "{found:?}");
        assert!(sum(&found).abs() > 200);
    }

    #[test]
    fn a_device_error_ends_it() {
        let id = id();
        let dot = draw(&id, 3, 1).remove(0);
        assert_eq!(simplest(&id, &dot, |_: &[Dot]| Err("lost")), Err("lost"));
    }
}
