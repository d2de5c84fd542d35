//! Nodes of sums and values that do not fit words, and cut values.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, unused_imports))]

use super::{
    outcome::{Outcome, Terms, grid},
    settle::finish,
};
use crate::{
    adder::Below,
    fast::{
        grids::{GridNode, GridOutput, GridTerm},
        operand::ABSENT,
        simd::halves::Halves,
    },
};

/// Adds sums and values that fit 51 bits.
#[inline(always)]
pub(super) unsafe fn in_doubles<V: Halves, const NG: usize>(
    node: &GridNode,
    terms: Terms<'_, V, NG>,
    out: &mut Outcome<V, NG>,
    flags: &mut [V::I; NG],
) {
    // SAFETY: upheld by the caller.
    unsafe {
        let zero = V::splat_i(0);
        let none = [V::splat_i(2 * ABSENT); NG];
        let (unit, _) = grid::<V, NG>(node, (none, none), terms);
        let cut_to = |x: V::D| if node.below == Below::Floor { V::floor_d(x) } else { V::truncate_d(x) };
        let mut total = [[V::splat_d(0.0); 2]; NG];
        for (index, term) in node.others.iter().enumerate() {
            let from = terms.get(*term);
            for g in 0..NG {
                let (of, power) = match term {
                    GridTerm::Sum(_) => {
                        let up = V::max(V::sub(from.unit[g], unit[g]), V::splat_i(-1000));
                        (V::widen_int(from.total[g]), V::wide_power(up))
                    }
                    GridTerm::Group(_) => {
                        let up = V::max(V::sub(from.unit[g], unit[g]), V::splat_i(-1000));
                        (V::widen(from.value[g]), V::wide_power(up))
                    }
                    GridTerm::C | GridTerm::Value(_) => {
                        let up = V::sub(V::splat_i(-node.value_cut_bits), unit[g]);
                        let mut value = from.value[g];
                        if let Some((below, unless)) = node.ignored {
                            let least = V::add(unit[g], V::splat_i(node.value_cut_bits - below));
                            let mut small = V::greater(least, from.leading(node, g));
                            if let Some(at_most) = unless {
                                small = V::and(small, V::greater(unit[g], V::splat_i(at_most)));
                            }
                            value = V::from_bits(V::select(small, zero, V::bits(value)));
                        }
                        (V::widen(value), V::wide_power(up))
                    }
                };
                let is_sum = matches!(term, GridTerm::Sum(_) | GridTerm::Group(_));
                for half in 0..2 {
                    let mut part = cut_to(V::mul_d(of[half], power[half]));
                    if is_sum {
                        // An unrounded sum that is cut to nothing is +0, whatever its sign.
                        part = V::add_d(part, V::splat_d(0.0));
                    }
                    if node.value_cut_bits != 0 && matches!(term, GridTerm::C | GridTerm::Value(_)) {
                        part = V::mul_d(part, V::splat_d(node.value_cut_unit));
                    }
                    total[g][half] = if index == 0 { part } else { V::add_d(total[g][half], part) };
                }
            }
        }
        out.has_met = false;
        for g in 0..NG {
            let mut sum = total[g];
            if let Some(cut) = node.normalised {
                let least = V::max(V::sub(V::splat_i(cut.least_unit), unit[g]), zero);
                let least = V::wide_power(least);
                for half in 0..2 {
                    let place = V::mul_d(V::leading_power(sum[half]), V::splat_d(cut.last_place));
                    let place = V::max_d(place, least[half]);
                    let units = V::mul_d(sum[half], V::reciprocal(place));
                    let whole = if cut.floors { V::floor_d(units) } else { V::truncate_d(units) };
                    sum[half] = V::mul_d(whole, place);
                }
            }
            let power = V::wide_power(unit[g]);
            let scaled = [V::mul_d(sum[0], power[0]), V::mul_d(sum[1], power[1])];
            out.value[g] = match node.output {
                GridOutput::F32 { toward_zero: true } => V::narrow_toward_zero(scaled),
                _ => V::narrow(scaled),
            };
        }
        finish::<V, NG>(node, terms, [V::splat_i(0); NG], out, flags);
    }
}

/// Cuts the last bits of a value.
#[inline(always)]
pub(super) unsafe fn cut_value<V: Halves, const NG: usize>(
    node: &GridNode,
    mask: i32,
    terms: Terms<'_, V, NG>,
    out: &mut Outcome<V, NG>,
    flags: &mut [V::I; NG],
) {
    // SAFETY: upheld by the caller.
    unsafe {
        let from = terms.get(node.others[0]);
        out.has_met = false;
        for g in 0..NG {
            out.value[g] = V::from_bits(V::and(V::bits(from.value[g]), V::splat_i(mask)));
        }
        finish::<V, NG>(node, terms, [V::splat_i(0); NG], out, flags);
    }
}
