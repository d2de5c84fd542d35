//! Settling rounded results that are small, zero, infinite or NaN.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, unused_imports))]

use super::outcome::{INVALID, NEGATIVE, OPERAND, Outcome, POSITIVE, Terms, VALUE};
use crate::{
    adder::NanCause,
    fast::{
        grids::{GridNode, GridOutput, GridTerm, GridWidth},
        simd::halves::Halves,
        tree::Flush,
    },
};

/// Collects the special cases of the terms. If the result is rounded, settles small ones, zeros, infinities and NaN.
/// `unknown` are the lanes that rounding left.
#[inline(always)]
pub(super) unsafe fn finish<V: Halves, const NG: usize>(
    node: &GridNode,
    terms: Terms<'_, V, NG>,
    mut unknown: [V::I; NG],
    out: &mut Outcome<V, NG>,
    flags: &mut [V::I; NG],
) {
    // SAFETY: upheld by the caller.
    unsafe {
        for term in &node.others {
            let from = terms.get(*term);
            if from.has_met {
                for g in 0..NG {
                    let before = if out.has_met { out.met[g] } else { V::splat_i(0) };
                    out.met[g] = V::or(before, from.met[g]);
                }
                out.has_met = true;
            }
        }
        let GridOutput::F32 { toward_zero } = node.output else {
            if node.output == GridOutput::F16 {
                if out.has_met {
                    settle::<V, NG>(node, terms, out, &mut unknown);
                }
                for g in 0..NG {
                    flags[g] = V::or(flags[g], unknown[g]);
                }
            }
            if out.has_met && node.output == GridOutput::Wide {
                pass_on::<V, NG>(&mut out.met);
            }
            return;
        };
        if node.flush != Flush::None {
            for g in 0..NG {
                let bits = V::bits(out.value[g]);
                let magnitude = V::and(bits, V::splat_i(i32::MAX));
                let tiny = V::greater(V::splat_i(0x0080_0000), magnitude);
                let mut zero = V::and(bits, V::splat_i(i32::MIN));
                if node.flush == Flush::Positive {
                    // A zero keeps its sign.
                    zero = V::and(zero, V::greater(V::splat_i(1), magnitude));
                }
                out.value[g] = V::from_bits(V::select(tiny, zero, bits));
                // 2^−126 may have been less before rounding.
                unknown[g] = V::equal(magnitude, V::splat_i(0x0080_0000));
            }
        }
        if toward_zero {
            for g in 0..NG {
                let magnitude = V::and(V::bits(out.value[g]), V::splat_i(i32::MAX));
                unknown[g] = V::or(unknown[g], V::greater(magnitude, V::splat_i(0x7f7f_fffe)));
            }
        }
        if node.positive_zero {
            for g in 0..NG {
                out.value[g] = V::add_f(out.value[g], V::splat_f(0.0));
            }
        }
        if out.has_met {
            settle::<V, NG>(node, terms, out, &mut unknown);
        }
        if node.flush != Flush::None || toward_zero || out.has_met {
            for g in 0..NG {
                flags[g] = V::or(flags[g], unknown[g]);
            }
        }
    }
}

/// What an unrounded sum passes on: the causes of a NaN if it is one, without its infinities.
#[inline(always)]
unsafe fn pass_on<V: Halves, const NG: usize>(met: &mut [V::I; NG]) {
    // SAFETY: upheld by the caller.
    unsafe {
        for met in met {
            let has = |bits: i32| V::greater(V::and(*met, V::splat_i(bits)), V::splat_i(0));
            let both = V::and(has(POSITIVE), has(NEGATIVE));
            let causes = V::or(V::and(*met, V::splat_i(OPERAND | VALUE | INVALID)), V::and(both, V::splat_i(INVALID)));
            *met = V::select(V::greater(causes, V::splat_i(0)), causes, *met);
        }
    }
}

/// The result if a special case was met: the NaN that the rules select, or an infinity.
#[inline(always)]
unsafe fn settle<V: Halves, const NG: usize>(
    node: &GridNode,
    terms: Terms<'_, V, NG>,
    out: &mut Outcome<V, NG>,
    unknown: &mut [V::I; NG],
) {
    // SAFETY: upheld by the caller.
    unsafe {
        let value = node.others.iter().find(|term| matches!(term, GridTerm::C | GridTerm::Value(_)));
        for g in 0..NG {
            let met = out.met[g];
            let has = |bits: i32| V::greater(V::and(met, V::splat_i(bits)), V::splat_i(0));
            // Values that are NaN may also come with an unrounded sum.
            let mut passed_on = V::splat_i(0);
            for term in node.others.iter().filter(|term| matches!(term, GridTerm::Sum(_) | GridTerm::Group(_))) {
                let from = terms.get(*term);
                if from.has_met {
                    passed_on = V::or(passed_on, V::and(from.met[g], V::splat_i(VALUE)));
                }
            }
            let passed_on = V::greater(passed_on, V::splat_i(0));
            let both = V::and(has(POSITIVE), has(NEGATIVE));
            let invalid = V::or(both, has(INVALID));
            let mut bits = V::select(has(NEGATIVE), V::splat_i(0xff80_0000_u32.cast_signed()), V::splat_i(0x7f80_0000));
            let mut left = V::splat_i(0);
            for (cause, nan) in node.nan.iter().rev() {
                let is = match cause {
                    NanCause::Operand | NanCause::B => has(OPERAND),
                    NanCause::Value => has(VALUE),
                    NanCause::Invalid => invalid,
                };
                match (nan, cause, value) {
                    (Some(nan), ..) => {
                        bits = V::select(is, V::splat_i(*nan), bits);
                        left = V::and(left, V::xor(is, V::splat_i(-1)));
                    }
                    (None, NanCause::Value, Some(term)) if node.quiet_values => {
                        let quiet = V::or(V::bits(terms.get(*term).value[g]), V::splat_i(0x0040_0000));
                        let quiet =
                            if let GridWidth::Cut(mask) = node.width { V::and(quiet, V::splat_i(mask)) } else { quiet };
                        bits = V::select(is, quiet, bits);
                        left = V::select(is, passed_on, left);
                    }
                    (None, NanCause::Operand, _) if node.quiet_operands => {
                        bits = V::select(is, out.nan[g], bits);
                        left = V::and(left, V::xor(is, V::splat_i(-1)));
                    }
                    _ => left = V::or(left, is),
                }
            }
            let any = V::greater(met, V::splat_i(0));
            out.value[g] = V::from_bits(V::select(any, bits, V::bits(out.value[g])));
            unknown[g] = V::select(any, left, unknown[g]);
        }
    }
}
