//! Dots around others: one to three of their values are changed a little.

use mxprobe_api::{Decoded, Format, OperationId};

use crate::dots::{Dot, Random};

/// The most values of a dot that are changed.
const MOST: usize = 3;
/// The largest distance by which an exponent is moved.
const NEAR: i32 = 3;

/// Draws `each` dots around each of these: dots with one to three values of A, B and C that have another sign, another
/// exponent nearby, other bits, or are zero. Returns nothing for operations on integers.
pub(in crate::identify) fn around(id: &OperationId, dots: &[&Dot], each: usize, seed: u64) -> Vec<Dot> {
    let mut random = Random(seed);
    let mut found = Vec::new();
    if id.is_integer() {
        return found;
    }
    for dot in dots {
        for _ in 0..each {
            let mut changed = (*dot).clone();
            for _ in 0..1 + random.below(MOST) {
                let at = random.below(changed.a.len());
                let (format, bits) = match random.below(3) {
                    0 => (id.c, &mut changed.c),
                    1 => (id.a, &mut changed.a[at]),
                    _ => (id.b, &mut changed.b[at]),
                };
                *bits = near(&mut random, format, *bits);
            }
            if changed != **dot {
                found.push(changed);
            }
        }
    }
    found
}

/// Returns a value near a finite one, or the same bits if there is none of the kind that was drawn.
fn near(random: &mut Random, format: Format, bits: u64) -> u64 {
    let Some(float) = format.as_float() else { return bits };
    let fraction = ((1u64 << float.fraction_bits) - 1) << float.unread_bits;
    let sign = format.negative_zero().unwrap_or(0);
    let changed = match random.below(6) {
        0 => bits ^ sign,
        1 | 2 => {
            let one = 1i64 << (float.fraction_bits + float.unread_bits);
            let moved = bits.wrapping_add_signed(i64::from(random.between(-NEAR, NEAR)) * one);
            if moved & sign == bits & sign { moved } else { bits }
        }
        3 => bits & !fraction | random.bits() & fraction,
        4 => bits ^ 1 << float.unread_bits << random.below(float.fraction_bits.max(1) as usize),
        _ => 0,
    };
    let is_finite = |bits: u64| matches!(format.decode(bits), Decoded::Finite { .. } | Decoded::Zero { .. });
    if changed & !format.mask() == 0 && is_finite(changed) && is_finite(bits) { changed } else { bits }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dots::draw;

    #[test]
    fn dots_around_others_are_near_them_and_differ() {
        for id in ["mma.m16n8k16.f32.f16.f16.f32", "mma.m16n8k8.f32.tf32.tf32.f32", "mma.m16n8k32.f32.e4m3.e5m2.f32"] {
            let id: OperationId = id.parse().unwrap();
            let dots = draw(&id, 1, 40);
            let found = around(&id, &dots.iter().collect::<Vec<_>>(), 30, 1);
            assert!(found.len() > 40 * 20, "{}", found.len());
            let of_format = |bits: &u64, format: Format| *bits & !format.mask() == 0;
            let (mut signs, mut zeros, mut exponents, mut far) = (0, 0, 0, 0);
            for (dot, before) in found.iter().filter_map(|dot| Some((dot, nearest(&dots, dot)?))) {
                assert!(dot.a.iter().all(|bits| of_format(bits, id.a)) && of_format(&dot.c, id.c), "{dot:?}");
                let (one, other) = (id.c.decode(dot.c), id.c.decode(before.c));
                signs += usize::from(Some(dot.c ^ before.c) == id.c.negative_zero());
                zeros += usize::from(dot.c == 0 && before.c != 0);
                if let (Decoded::Finite { exponent, .. }, Decoded::Finite { exponent: from, .. }) = (one, other) {
                    exponents += usize::from(exponent != from);
                    // Only what was zero in between moves farther.
                    far += usize::from((exponent - from).abs() > 3 * NEAR);
                }
            }
            assert!(
                signs > 10 && zeros > 10 && exponents > 10 && far * 20 < exponents,
                "{signs} {zeros} {exponents} {far}"
            );
        }
    }

    /// Returns the dot that another one was made of: at most three of its values differ.
    fn nearest<'d>(dots: &'d [Dot], of: &Dot) -> Option<&'d Dot> {
        let differ = |one: &[u64], other: &[u64]| one.iter().zip(other).filter(|(one, other)| one != other).count();
        let distance = |dot: &&Dot| differ(&dot.a, &of.a) + differ(&dot.b, &of.b) + usize::from(dot.c != of.c);
        dots.iter().min_by_key(distance).filter(|dot| distance(dot) <= MOST)
    }

    #[test]
    fn integers_have_no_dots_around_them() {
        let id: OperationId = "mma.m16n8k32.s32.s8.s8.s32".parse().unwrap();
        let dots = draw(&id, 1, 4);
        assert!(around(&id, &dots.iter().collect::<Vec<_>>(), 30, 1).is_empty());
    }
}
