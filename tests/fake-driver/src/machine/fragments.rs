//! The element of a matrix that each register of each lane holds, as the PTX ISA documents it, shape by shape.
//!
//! The formulas are copied from there (PTX ISA 8.7, sections 9.7.14.5.1 to 9.7.14.5.13), with `groupID` as `g` and
//! `threadID_in_group` as `t`. Code that packs fragments is checked against them, so they are not simplified into one
//! rule.

use mxprobe_api::Shape;

use crate::ptx::{Layout, MatrixOperand as Operand};

/// A row and a column.
pub(crate) type Position = (u32, u32);

/// The place of one element: the register of the operand, the lane, the shift within the register, and the element's
/// index in the matrices of one warp.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub register: u32,
    pub lane: u32,
    pub shift: u32,
    pub index: u32,
}

/// The row and column of element `i` of a lane, for a shape whose elements take `bits` in a register; `None` if no such
/// instruction exists. A is m×k, B is k×n.
pub(crate) fn element(operand: Operand, shape: Shape, bits: u32, lane: u32, i: u32) -> Option<Position> {
    let (g, t) = (lane >> 2, lane % 4);
    match operand {
        Operand::A => a(shape, bits, g, t, i),
        Operand::B => b(shape, bits, g, t, i).map(|row| (row, g)),
        Operand::Accumulator => accumulator(shape, g, t, i),
    }
}

/// `g` if `lower`, else `g + 8`.
fn upper_or_lower(lower: bool, g: u32) -> u32 {
    if lower { g } else { g + 8 }
}

fn a(shape: Shape, bits: u32, g: u32, t: u32, i: u32) -> Option<Position> {
    let position = match (shape.m, shape.k, bits) {
        // 9.7.14.5.2, .m8n8k4 with .f64: a lane holds one element.
        (8, 4, 64) => (g, t),
        // 9.7.14.5.3, .m8n8k16: col = threadID_in_group * 4 + i, i = 0..3.
        (8, 16, 8) => (g, t * 4 + i),
        // 9.7.14.5.4, .m8n8k32.
        (8, 32, 4) => (g, t * 8 + i),
        // 9.7.14.5.6, .m16n8k4 with .tf32 and .f64: row = groupID for a0, groupID + 8 for a1.
        (16, 4, 32 | 64) => (upper_or_lower(i == 0, g), t),
        // 9.7.14.5.7, .m16n8k8 with .f16 and .bf16.
        (16, 8, 16) => (upper_or_lower(i < 2, g), t * 2 + (i & 1)),
        // 9.7.14.5.7, .m16n8k8 with .tf32 and .f64: rows of a0, a2 and a1, a3; columns of a0, a1 and a2, a3.
        (16, 8, 32 | 64) => (upper_or_lower(i == 0 || i == 2, g), if i < 2 { t } else { t + 4 }),
        // 9.7.14.5.8, .m16n8k16 with .f16 and .bf16.
        (16, 16, 16) => {
            let row = upper_or_lower(i < 2 || (4..6).contains(&i), g);
            (row, if i < 4 { t * 2 + (i & 1) } else { t * 2 + (i & 1) + 8 })
        }
        // 9.7.14.5.8, .m16n8k16 with .f64.
        (16, 16, 64) => {
            (upper_or_lower(i.is_multiple_of(2), g), if i.is_multiple_of(2) { i * 2 + t } else { i * 2 - 2 + t })
        }
        // 9.7.14.5.9, .m16n8k16 with .u8, .s8, .e4m3, .e5m2.
        (16, 16, 8) => (upper_or_lower(i < 4, g), t * 4 + (i & 3)),
        // 9.7.14.5.10, .m16n8k32 with .u4 and .s4.
        (16, 32, 4) => (upper_or_lower(i < 8, g), t * 8 + (i & 7)),
        // 9.7.14.5.10, .m16n8k32 with .u8, .s8 and the floats of 8, 6 and 4 bits in a byte each.
        (16, 32, 8) => {
            let row = upper_or_lower(i < 4 || (8..12).contains(&i), g);
            (row, if i < 8 { t * 4 + (i & 3) } else { t * 4 + (i & 3) + 16 })
        }
        // 9.7.14.5.11, .m16n8k64 with .u4, .s4 and .e2m1.
        (16, 64, 4) => {
            let row = upper_or_lower(i < 8 || (16..24).contains(&i), g);
            (row, if i < 16 { t * 8 + (i & 7) } else { t * 8 + (i & 7) + 32 })
        }
        _ => return None,
    };
    Some(position)
}

/// The row of B; its column is groupID in every shape.
fn b(shape: Shape, bits: u32, _g: u32, t: u32, i: u32) -> Option<u32> {
    let row = match (shape.k, bits) {
        (4, 32 | 64) => t,
        // .m16n8k8 with .f16 and .bf16, then with .tf32 and .f64.
        (8, 16) => t * 2 + i,
        (8, 32 | 64) => {
            if i == 0 {
                t
            } else {
                t + 4
            }
        }
        // .m16n8k16 with .f16 and .bf16, then with .f64, then .m8n8k16 and .m16n8k16 with bytes.
        (16, 16) => {
            if i < 2 {
                t * 2 + (i & 1)
            } else {
                t * 2 + (i & 1) + 8
            }
        }
        (16, 64) => t + i * 4,
        (16, 8) => t * 4 + i,
        // .m8n8k32 and .m16n8k32 with 4 bits, then .m16n8k32 with bytes.
        (32, 4) => t * 8 + i,
        (32, 8) => {
            if i < 4 {
                t * 4 + (i & 3)
            } else {
                t * 4 + (i & 3) + 16
            }
        }
        (64, 4) => {
            if i < 8 {
                t * 8 + (i & 7)
            } else {
                t * 8 + (i & 7) + 32
            }
        }
        _ => return None,
    };
    Some(row)
}

/// C and D.
fn accumulator(shape: Shape, g: u32, t: u32, i: u32) -> Option<Position> {
    match shape.m {
        8 => Some((g, t * 2 + (i & 1))),
        // row = groupID for c0 and c1, groupID + 8 for c2 and c3.
        16 => Some((upper_or_lower(i < 2, g), t * 2 + (i & 1))),
        _ => None,
    }
}

/// `.m8n8k4` with f16 (9.7.14.5.1): the one of the warp's four multiplies that a lane takes part in.
pub(crate) fn volta_quad_pair(lane: u32) -> u32 {
    lane % 16 / 4
}

/// `.m8n8k4` with f16: the row and column of element `i` of a lane, within the multiply of its quad pair.
pub(crate) fn volta(operand: Operand, layout: Layout, bits: u32, lane: u32, i: u32) -> Position {
    let low = lane < 16;
    let plus4 = |value: u32| if low { value } else { value + 4 };
    match (operand, layout) {
        (Operand::A, Layout::Row) => (plus4(lane % 4), i),
        (Operand::A, Layout::Column) => (plus4(i % 4), lane % 4),
        (Operand::B, Layout::Row) => (lane % 4, plus4(i)),
        (Operand::B, Layout::Column) => (i, plus4(lane % 4)),
        (Operand::Accumulator, _) if bits == 16 => (plus4(lane % 4), i),
        (Operand::Accumulator, _) => {
            let x = (lane & 0b1) + (i & 0b10);
            (plus4(x), (i & 0b100) + (lane & 0b10) + (i & 0b1))
        }
    }
}

/// `wgmma` (9.7.15.5.1): the row and column of element `i` of D in thread `thread` of 128. In the figures a warp has
/// 16 rows, pairs of elements alternate between groupID and groupID + 8, and every second pair is 8 columns on.
pub(crate) fn group_accumulator(thread: u32, i: u32) -> Position {
    let (warp, lane) = (thread / 32, thread % 32);
    let (g, t) = (lane >> 2, lane % 4);
    (16 * (warp % 4) + upper_or_lower(i % 4 < 2, g), 8 * (i / 4) + t * 2 + (i & 1))
}

/// `wgmma` with A in registers (9.7.15.5.1): as A of the `mma` of 16 rows and the same k, with 16 rows for each warp.
pub(crate) fn group_a(bits: u32, k: u32, thread: u32, i: u32) -> Option<Position> {
    let shape = Shape { m: 16, n: 8, k };
    let (row, column) = element(Operand::A, shape, bits, thread % 32, i)?;
    Some((16 * (thread / 32 % 4) + row, column))
}

/// `wmma`: the places of the elements of a fragment, in an order of the fake driver's own, different for each operand
/// and layout, so that only the loads, multiplies and stores of one shape fit together. If a fragment has more places
/// than elements, it holds every element several times.
pub(super) fn wmma(operand: Operand, layout: Layout, bits: u32, elements: u32, registers: u32) -> Vec<Place> {
    let in_register = if bits == 64 { 1 } else { 32 / bits };
    // The factors are odd and the numbers of elements powers of two, so that each element occurs once.
    let (factor, first) = match (operand, layout) {
        (Operand::A, Layout::Row) => (37, 5),
        (Operand::A, Layout::Column) => (43, 11),
        (Operand::B, Layout::Row) => (53, 3),
        (Operand::B, Layout::Column) => (59, 13),
        (Operand::Accumulator, _) => (29, 7),
    };
    let slots = 32 * registers * in_register;
    let place = |slot: u32| Place {
        register: slot / in_register % registers,
        lane: slot / in_register / registers,
        shift: slot % in_register * bits,
        index: (slot * factor + first) % elements,
    };
    (0..slots).map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const SHAPES: [(u32, u32, u32); 15] = [
        (8, 4, 64),
        (8, 16, 8),
        (8, 32, 4),
        (16, 4, 32),
        (16, 4, 64),
        (16, 8, 16),
        (16, 8, 32),
        (16, 8, 64),
        (16, 16, 16),
        (16, 16, 64),
        (16, 16, 8),
        (16, 32, 4),
        (16, 32, 8),
        (16, 64, 4),
        (8, 4, 64),
    ];

    #[test]
    fn every_element_of_every_operand_is_held_exactly_once() {
        for (m, k, bits) in SHAPES {
            let shape = Shape { m, n: 8, k };
            for (operand, rows, columns) in [(Operand::A, m, k), (Operand::B, k, 8), (Operand::Accumulator, m, 8)] {
                let each = rows * columns / 32;
                let held: BTreeSet<Position> = (0..32)
                    .flat_map(|lane| (0..each).map(move |i| element(operand, shape, bits, lane, i).unwrap()))
                    .collect();
                assert_eq!(held.len(), (rows * columns) as usize, "{operand:?} of {shape} with {bits} bits");
                assert!(held.iter().all(|(row, column)| *row < rows && *column < columns));
            }
        }
    }

    #[test]
    fn every_element_of_voltas_four_multiplies_is_held_exactly_once() {
        for layout in [Layout::Row, Layout::Column] {
            for (operand, bits, columns) in
                [(Operand::A, 16, 4), (Operand::B, 16, 8), (Operand::Accumulator, 16, 8), (Operand::Accumulator, 32, 8)]
            {
                let rows = if operand == Operand::B { 4 } else { 8 };
                let each = rows * columns / 8;
                let held: BTreeSet<(u32, Position)> = (0..32)
                    .flat_map(|lane| {
                        (0..each).map(move |i| (volta_quad_pair(lane), volta(operand, layout, bits, lane, i)))
                    })
                    .collect();
                assert_eq!(held.len(), (4 * rows * columns) as usize, "{operand:?} {layout:?} {bits}");
                assert!(held.iter().all(|(_, (row, column))| *row < rows && *column < columns));
            }
        }
    }

    #[test]
    fn every_element_of_a_warpgroups_accumulator_is_held_exactly_once() {
        for n in [8, 64, 256] {
            let held: BTreeSet<Position> =
                (0..128).flat_map(|thread| (0..n / 2).map(move |i| group_accumulator(thread, i))).collect();
            assert_eq!(held.len(), 64 * n as usize);
        }
        for (bits, k) in [(16, 16), (32, 8), (8, 32)] {
            let held: BTreeSet<Position> =
                (0..128).flat_map(|thread| (0..k / 2).map(move |i| group_a(bits, k, thread, i).unwrap())).collect();
            assert_eq!(held.len(), 64 * k as usize);
        }
    }

    #[test]
    fn a_shape_that_does_not_exist_has_no_layout() {
        assert_eq!(element(Operand::A, Shape { m: 16, n: 8, k: 16 }, 4, 0, 0), None);
        assert_eq!(element(Operand::A, Shape { m: 32, n: 8, k: 16 }, 16, 0, 0), None);
    }
    #[test]
    fn every_element_is_in_a_fragment_and_no_place_holds_two() {
        for (bits, elements, registers) in
            [(16, 256, 8), (16, 128, 8), (16, 512, 8), (8, 128, 1), (4, 256, 1), (32, 256, 8), (64, 32, 1), (64, 64, 2)]
        {
            for operand in [Operand::A, Operand::B, Operand::Accumulator] {
                for layout in [Layout::Row, Layout::Column] {
                    let places = wmma(operand, layout, bits, elements, registers);
                    let held: BTreeSet<u32> = places.iter().map(|place| place.index).collect();
                    assert_eq!(held, (0..elements).collect(), "{operand:?} {layout:?} {bits}");
                    let slots: BTreeSet<_> =
                        places.iter().map(|place| (place.register, place.lane, place.shift)).collect();
                    assert_eq!(slots.len(), places.len());
                    assert!(places.iter().all(|place| place.lane < 32 && place.register < registers));
                }
            }
        }
    }
}
