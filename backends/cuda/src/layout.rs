//! Where the elements of an operand lie in memory before a kernel loads them: the one place that knows fragments.
//!
//! Operands are laid out on the host, so that each lane loads its registers with coalesced accesses and a kernel computes
//! no index of an element. For every `mma.sync` but Volta's one rule gives the place of an element (PTX ISA 9.0,
//! 9.7.14.5, whose formulas for each shape the tests of this module hold it against).

use mxprobe_api::{Elements, Format, OperationId};

use crate::instruction::{Instruction, Kind};

/// Lanes of a warp.
const LANES: usize = 32;

/// One operand of the tiles that are computed together (a group), in the order of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Bits that one element occupies: 4, 8, 16, 32 or 64.
    container_bits: usize,
    /// The element's lowest bit in its container.
    shift: u32,
    /// Containers are bytes, and of each 16 of them the elements stand one behind the other, so wide, with the rest of the
    /// 16 bytes unused.
    dense_bits: Option<u32>,
    /// For each container in the order of memory, which element of the group it holds, tile by tile, row-major.
    places: Vec<u32>,
    /// Elements of one tile.
    elements: usize,
    /// Tiles of a group.
    group: usize,
}

/// The operands of an instruction.
#[derive(Clone, Debug)]
pub(crate) struct Layouts {
    pub(crate) a: Layout,
    pub(crate) b: Layout,
    /// C; D lies alike where its format is as wide.
    pub(crate) c: Layout,
    pub(crate) d: Layout,
    /// Scales of A and B, where there are any.
    pub(crate) scales: Option<(Layout, Layout)>,
}

impl Layouts {
    pub(crate) fn of(instruction: &Instruction) -> Self {
        let id = &instruction.id;
        match instruction.kind {
            Kind::Warp => Self {
                a: warp_a(id),
                b: warp_b(id),
                c: warp_c(id, id.c),
                d: warp_c(id, id.d),
                scales: id.block_scale().map(|scale| scales(id, scale.block)),
            },
            Kind::Quarter => {
                Self { a: quarter_a(), b: quarter_b(), c: quarter_c(id.c), d: quarter_c(id.d), scales: None }
            }
            Kind::Opaque => Self {
                a: row_major(id, id.a, Side::Rows),
                b: row_major(id, id.b, Side::Columns),
                c: matrix(id, id.c),
                d: matrix(id, id.d),
                scales: None,
            },
            Kind::Warpgroup => Self {
                a: core_matrices(id, id.a, Side::Rows),
                b: core_matrices(id, id.b, Side::Columns),
                c: warpgroup_c(id, id.c),
                d: warpgroup_c(id, id.d),
                scales: None,
            },
            Kind::Tensor => Self {
                a: core_matrices(id, id.a, Side::Rows),
                b: core_matrices(id, id.b, Side::Columns),
                c: rows_by_lane(id),
                d: rows_by_lane(id),
                scales: id.block_scale().map(|scale| scales_by_lane(id, scale.block)),
            },
        }
    }
}

/// Bits that an element takes in a register or in shared memory.
fn container_bits(id: &OperationId, format: Format) -> usize {
    let bits = format.bits() as usize;
    // PTX ISA 9.0, 9.7.14.5.9: kind::f8f6f4 and kind::mxf8f6f4 take a byte for each 4-bit and 6-bit element; their k is 32.
    let is_padded = bits < 8 && !format.is_integer() && id.shape.k == 32;
    if is_padded { 8 } else { bits.next_power_of_two() }
}

/// Where an element lies in its container.
fn shift(id: &OperationId, format: Format) -> u32 {
    // Same section: e2m1 is in bits 2 to 5, 6-bit elements in bits 0 to 5.
    if container_bits(id, format) == 8 && format.bits() == 4 { 2 } else { 0 }
}

fn index(row: usize, column: usize, columns: usize) -> u32 {
    u32::try_from(row * columns + column).expect("a tile is small")
}

/// Elements of one 32-bit register, or 1 of a 64-bit one.
fn per_register(container_bits: usize) -> usize {
    (32 / container_bits).max(1)
}

/// A of `mma.sync`: row and k of sub-element s of register r in a lane.
fn warp_a(id: &OperationId) -> Layout {
    let (m, _, k) = id.shape.sizes();
    let container_bits = container_bits(id, id.a);
    let e = per_register(container_bits);
    let rows_at_once = m / 8;
    let registers = m * k / LANES / e;
    let places = registers_of(LANES, registers, e, |lane, r, s| {
        let (g, t) = (lane / 4, lane % 4);
        index(g + 8 * (r % rows_at_once), t * e + s + 4 * e * (r / rows_at_once), k)
    });
    Layout { container_bits, shift: shift(id, id.a), dense_bits: None, places, elements: m * k, group: 1 }
}

/// B of `mma.sync`.
fn warp_b(id: &OperationId) -> Layout {
    let (_, n, k) = id.shape.sizes();
    let container_bits = container_bits(id, id.b);
    let e = per_register(container_bits);
    let places = registers_of(LANES, k * n / LANES / e, e, |lane, r, s| {
        let (g, t) = (lane / 4, lane % 4);
        index(t * e + s + 4 * e * r, g, n)
    });
    Layout { container_bits, shift: shift(id, id.b), dense_bits: None, places, elements: k * n, group: 1 }
}

/// C and D of `mma.sync`: two neighbours of a row to a lane, in one register if they fit.
fn warp_c(id: &OperationId, format: Format) -> Layout {
    let (m, n, _) = id.shape.sizes();
    let container_bits = format.bits() as usize;
    let e = per_register(container_bits);
    let places = registers_of(LANES, m * n / LANES / e, e, |lane, r, s| {
        let (g, t, i) = (lane / 4, lane % 4, r * e + s);
        index(g + 8 * (i / 2), 2 * t + i % 2, n)
    });
    Layout { container_bits, shift: 0, dense_bits: None, places, elements: m * n, group: 1 }
}

/// Scales of A and of B: every lane gets those of its row (one of two, by the parity of its place among four) and of its
/// column, repeated to fill the word, so that any thread selector and any byte selector reads the right ones.
fn scales(id: &OperationId, block: usize) -> (Layout, Layout) {
    let (m, n, k) = id.shape.sizes();
    let blocks = k / block;
    let a = registers_of(LANES, 1, 4, |lane, _, s| index(lane / 4 + 8 * (lane % 2), s % blocks, blocks));
    let b = registers_of(LANES, 1, 4, |lane, _, s| index(s % blocks, lane / 4, n));
    let layout =
        |places, elements| Layout { container_bits: 8, shift: 0, dense_bits: None, places, elements, group: 1 };
    (layout(a, m * blocks), layout(b, blocks * n))
}

/// Volta's quarters of a warp: lanes 4q to 4q+3 and 16+4q to 19+4q compute tile q (PTX ISA 9.0, 9.7.14.5.1).
fn quarter(lane: usize) -> (usize, usize) {
    (lane / 4 % 4, if lane < 16 { 0 } else { 4 })
}

const QUARTERS: usize = 4;

/// A of the f16 `m8n8k4`, `.row`.
fn quarter_a() -> Layout {
    let places = registers_of(LANES, 2, 2, |lane, r, s| {
        let (tile, high) = quarter(lane);
        index(tile * 8 + lane % 4 + high, 2 * r + s, 4)
    });
    Layout { container_bits: 16, shift: 0, dense_bits: None, places, elements: 32, group: QUARTERS }
}

/// B of the f16 `m8n8k4`, `.col`.
fn quarter_b() -> Layout {
    let places = registers_of(LANES, 2, 2, |lane, r, s| {
        let (tile, high) = quarter(lane);
        index(tile * 4 + 2 * r + s, lane % 4 + high, 8)
    });
    Layout { container_bits: 16, shift: 0, dense_bits: None, places, elements: 32, group: QUARTERS }
}

/// C and D of the f16 `m8n8k4`.
fn quarter_c(format: Format) -> Layout {
    let container_bits = format.bits() as usize;
    let e = per_register(container_bits);
    let places = registers_of(LANES, 8 / e, e, |lane, r, s| {
        let (tile, high) = quarter(lane);
        let i = r * e + s;
        let (row, column) = if container_bits == 16 {
            (lane % 4 + high, i)
        } else {
            (lane % 2 + (i & 2) + high, (i & 4) + (lane & 2) + (i & 1))
        };
        index(tile * 8 + row, column, 8)
    });
    Layout { container_bits, shift: 0, dense_bits: None, places, elements: 64, group: QUARTERS }
}

/// C and D of `wgmma`: each warp has 16 rows (PTX ISA 9.0, 9.7.15.5.1.2).
fn warpgroup_c(id: &OperationId, format: Format) -> Layout {
    let (m, n, _) = id.shape.sizes();
    let container_bits = format.bits() as usize;
    let e = per_register(container_bits);
    let threads = 4 * LANES;
    let places = registers_of(threads, m * n / threads / e, e, |thread, r, s| {
        let (warp, g, t, i) = (thread / LANES, thread % LANES / 4, thread % 4, r * e + s);
        index(16 * warp + g + 8 * (i / 2 % 2), 8 * (i / 4) + 2 * t + i % 2, n)
    });
    Layout { container_bits, shift: 0, dense_bits: None, places, elements: m * n, group: 1 }
}

/// Whether k follows the rows of an operand (A, m×k) or stands before its columns (B, k×n).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Rows,
    Columns,
}

/// A, m×k, or the transpose of B, n×k, as a matrix in memory.
fn row_major(id: &OperationId, format: Format, side: Side) -> Layout {
    let (m, n, k) = id.shape.sizes();
    let lines = if side == Side::Rows { m } else { n };
    let place = |line, at| if side == Side::Rows { index(line, at, k) } else { index(at, line, n) };
    let places = (0..lines).flat_map(|line| (0..k).map(move |at| place(line, at))).collect();
    Layout { container_bits: format.bits() as usize, shift: 0, dense_bits: None, places, elements: lines * k, group: 1 }
}

/// C or D as a matrix in memory.
fn matrix(id: &OperationId, format: Format) -> Layout {
    let (m, n, _) = id.shape.sizes();
    let places = (0..u32::try_from(m * n).expect("a tile is small")).collect();
    Layout { container_bits: format.bits() as usize, shift: 0, dense_bits: None, places, elements: m * n, group: 1 }
}

/// An operand in shared memory without swizzle, k contiguous: core matrices of 8 rows (or columns) of 16 bytes, first all
/// those of the first 16 bytes of k (PTX ISA 9.0, 9.7.15.5.1.1).
fn core_matrices(id: &OperationId, format: Format, side: Side) -> Layout {
    let (m, n, k) = id.shape.sizes();
    let lines = if side == Side::Rows { m } else { n };
    let container_bits = container_bits(id, format);
    let per_core = 128 / container_bits;
    let mut places = Vec::with_capacity(lines * k);
    for core in 0..k / per_core {
        for line in 0..lines {
            for at in core * per_core..(core + 1) * per_core {
                places.push(match side {
                    Side::Rows => index(line, at, k),
                    Side::Columns => index(at, line, n),
                });
            }
        }
    }
    // PTX ISA 9.0, 9.7.16.3.1: 4-bit and 6-bit elements beside 8-bit ones take 16 bytes for 16 of them.
    let dense_bits = (container_bits > format.bits() as usize).then_some(format.bits());
    Layout { container_bits, shift: 0, dense_bits, places, elements: lines * k, group: 1 }
}

/// Scales of A and of B in tensor memory: the scales of a line are the bytes of one word, lines 32c to 32c+31 are lanes of
/// column c, and each of the four warps has its own copy (PTX ISA 9.0, 9.7.16.10.7).
fn scales_by_lane(id: &OperationId, block: usize) -> (Layout, Layout) {
    let (m, n, k) = id.shape.sizes();
    let blocks = k / block;
    let threads = 4 * LANES;
    // Where there are fewer than 32 lines the other lanes' words are not read.
    let a = registers_of(threads, m.div_ceil(LANES), 4, |thread, column, s| {
        index((column * LANES + thread % LANES) % m, s % blocks, blocks)
    });
    let b = registers_of(threads, n.div_ceil(LANES), 4, |thread, column, s| {
        index(s % blocks, (column * LANES + thread % LANES) % n, n)
    });
    let layout =
        |places, elements| Layout { container_bits: 8, shift: 0, dense_bits: None, places, elements, group: 1 };
    (layout(a, m * blocks), layout(b, blocks * n))
}

/// C and D of `tcgen05` with m = 128: row i is lane i of tensor memory, each element has a 32-bit column of its own
/// (PTX ISA 9.0, 9.7.16.10.5), and each lane loads its row.
fn rows_by_lane(id: &OperationId) -> Layout {
    let (m, n, _) = id.shape.sizes();
    let places = registers_of(m, n, 1, |lane, column, _| index(lane, column, n));
    Layout { container_bits: 32, shift: 0, dense_bits: None, places, elements: m * n, group: 1 }
}

/// The places of every register of every lane: register 0 of all lanes first.
fn registers_of(
    lanes: usize,
    registers: usize,
    per_register: usize,
    place: impl Fn(usize, usize, usize) -> u32,
) -> Vec<u32> {
    let words = (0..registers).flat_map(|r| (0..lanes).map(move |lane| (lane, r)));
    words
        .flat_map(|(lane, r)| (0..per_register).map(move |s| (lane, r, s)))
        .map(|(lane, r, s)| place(lane, r, s))
        .collect()
}

impl Layout {
    /// Tiles of a group.
    pub(crate) fn group(&self) -> usize {
        self.group
    }

    /// Bytes of a group.
    pub(crate) fn bytes(&self) -> usize {
        self.places.len() * self.container_bits / 8
    }

    /// Registers of 32 or 64 bits that each of so many threads holds.
    pub(crate) fn registers(&self, threads: usize) -> usize {
        self.bytes() / threads / self.register_bytes()
    }

    /// Bytes of one register: 8 for a double, else 4.
    pub(crate) fn register_bytes(&self) -> usize {
        if self.container_bits == 64 { 8 } else { 4 }
    }

    /// Lays out some groups, beginning with tile `first`; what lies beyond the last tile is zero.
    pub(crate) fn pack(&self, elements: &Elements, first: usize, groups: usize) -> Vec<u8> {
        let source = elements.bytes();
        let size = elements.format().storage_bytes();
        let mut packed = Vec::with_capacity(groups * self.bytes());
        for group in 0..groups {
            let start = (first + group * self.group) * self.elements;
            let at = |place: u32| (start + place as usize) * size;
            if let Some(bits) = self.dense_bits {
                for sixteen in self.places.chunks_exact(16) {
                    let element = |place: &u32| u128::from(source.get(at(*place)).copied().unwrap_or(0));
                    let dense = sixteen.iter().rev().fold(0, |dense, place| dense << bits | element(place));
                    packed.extend_from_slice(&dense.to_le_bytes());
                }
            } else if self.container_bits == 4 {
                let nibble = |place: u32| source.get(at(place)).copied().unwrap_or(0);
                packed.extend(self.places.chunks_exact(2).map(|pair| nibble(pair[0]) | nibble(pair[1]) << 4));
            } else if self.shift > 0 {
                packed.extend(
                    self.places.iter().map(|place| source.get(at(*place)).map_or(0, |byte| byte << self.shift)),
                );
            } else {
                let filled = packed.len();
                packed.resize(filled + self.bytes(), 0);
                let elements = packed[filled..].chunks_exact_mut(self.container_bits / 8).zip(&self.places);
                let source = source.get(start * size..).unwrap_or_default();
                match size {
                    1 => elements.for_each(|(to, place)| copy_element::<1>(to, source, *place)),
                    2 => elements.for_each(|(to, place)| copy_element::<2>(to, source, *place)),
                    4 => elements.for_each(|(to, place)| copy_element::<4>(to, source, *place)),
                    _ => elements.for_each(|(to, place)| copy_element::<8>(to, source, *place)),
                }
            }
        }
        packed
    }

    /// Lays out whole groups.
    pub(crate) fn pack_all(&self, elements: &Elements) -> Vec<u8> {
        self.pack(elements, 0, elements.len() / (self.elements * self.group))
    }

    /// Takes `tiles` tiles out of whole groups: the reverse of [`pack`](Self::pack).
    pub(crate) fn unpack(&self, packed: &[u8], format: Format, tiles: usize) -> Elements {
        let size = format.storage_bytes();
        let mut elements = Elements::zeros(format, tiles * self.elements);
        let target = elements.bytes_mut();
        let container = self.container_bits / 8;
        for (group, words) in packed.chunks_exact(self.bytes()).enumerate() {
            let start = group * self.group * self.elements;
            for (word, place) in words.chunks_exact(container).zip(&self.places) {
                let at = (start + *place as usize) * size;
                if let Some(element) = target.get_mut(at..at + size) {
                    element.copy_from_slice(&word[..size]);
                }
            }
        }
        elements
    }

    /// The tiles of a group whose every word in `packed` satisfies the predicate.
    pub(crate) fn tiles_where(&self, packed: &[u8], is: impl Fn(&[u8]) -> bool) -> Vec<usize> {
        let container = self.container_bits / 8;
        let mut found = Vec::new();
        for (group, words) in packed.chunks_exact(self.bytes()).enumerate() {
            let mut all = vec![true; self.group];
            for (word, place) in words.chunks_exact(container).zip(&self.places) {
                all[*place as usize / self.elements] &= is(word);
            }
            found.extend((0..self.group).filter(|tile| all[*tile]).map(|tile| group * self.group + tile));
        }
        found
    }
}

/// Puts element `place` of `source` into the beginning of its container; one that is beyond the last leaves it as it is.
fn copy_element<const BYTES: usize>(container: &mut [u8], source: &[u8], place: u32) {
    let element = source.get(place as usize * BYTES..).and_then(<[u8]>::first_chunk::<BYTES>);
    if let (Some(element), Some(container)) = (element, container.first_chunk_mut::<BYTES>()) {
        *container = *element;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::instruction::table;

    fn of(text: &str) -> Layouts {
        let table = table();
        let found = table.iter().find(|instruction| instruction.id.to_string() == text);
        Layouts::of(found.unwrap_or_else(|| panic!("{text}")))
    }

    #[test]
    fn every_layout_holds_every_element_exactly_once() {
        for instruction in table() {
            let layouts = Layouts::of(&instruction);
            for layout in [&layouts.a, &layouts.b, &layouts.c, &layouts.d] {
                let mut places = layout.places.clone();
                places.sort_unstable();
                let all: Vec<u32> = (0..u32::try_from(layout.elements * layout.group).unwrap()).collect();
                assert_eq!(places, all, "{}", instruction.id);
            }
        }
    }

    #[test]
    fn what_was_packed_is_unpacked() {
        for instruction in table() {
            let Layouts { d, .. } = Layouts::of(&instruction);
            let format = instruction.id.d;
            let tiles = d.group + 1;
            let elements = Elements::from_bits(format, (0..tiles * d.elements).map(|at| at as u64 * 0x9e37_79b9));
            let groups = tiles.div_ceil(d.group);
            let packed = d.pack(&elements, 0, groups);
            assert_eq!(packed.len(), groups * d.bytes());
            assert_eq!(d.unpack(&packed, format, tiles), elements, "{}", instruction.id);
        }
    }

    /// Row and column as the PTX ISA writes them, from groupID, threadID_in_group and the index i of an element.
    type Formula = fn(usize, usize, usize) -> (usize, usize);

    /// PTX ISA 9.0, 9.7.14.5.2 to 9.7.14.5.12: the fragments of A, shape by shape, as they stand there.
    const A_FORMULAS: &[(&str, Formula)] = &[
        ("mma.m8n8k4.f64.f64.f64.f64", |g, t, _| (g, t)),
        ("mma.m8n8k16.s32.s8.s8.s32", |g, t, i| (g, t * 4 + i)),
        ("mma.m8n8k32.s32.s4.s4.s32", |g, t, i| (g, t * 8 + i)),
        ("mma.m16n8k4.f32.tf32.tf32.f32", |g, t, i| (if i == 0 { g } else { g + 8 }, t)),
        ("mma.m16n8k4.f64.f64.f64.f64", |g, t, i| (if i == 0 { g } else { g + 8 }, t)),
        ("mma.m16n8k8.f32.f16.f16.f32", |g, t, i| (if i < 2 { g } else { g + 8 }, t * 2 + (i & 1))),
        ("mma.m16n8k8.f32.tf32.tf32.f32", |g, t, i| {
            (if i == 0 || i == 2 { g } else { g + 8 }, if i < 2 { t } else { t + 4 })
        }),
        ("mma.m16n8k8.f64.f64.f64.f64", |g, t, i| {
            (if i == 0 || i == 2 { g } else { g + 8 }, if i < 2 { t } else { t + 4 })
        }),
        ("mma.m16n8k16.f32.f16.f16.f32", |g, t, i| {
            let row = if i < 2 || (4..6).contains(&i) { g } else { g + 8 };
            (row, if i < 4 { t * 2 + (i & 1) } else { t * 2 + (i & 1) + 8 })
        }),
        ("mma.m16n8k16.f64.f64.f64.f64", |g, t, i| (if i % 2 == 0 { g } else { g + 8 }, i / 2 * 4 + t)),
        ("mma.m16n8k16.s32.s8.s8.s32", |g, t, i| (if i < 4 { g } else { g + 8 }, t * 4 + (i & 3))),
        ("mma.m16n8k16.f32.e4m3.e4m3.f32", |g, t, i| (if i < 4 { g } else { g + 8 }, t * 4 + (i & 3))),
        ("mma.m16n8k32.s32.s8.s8.s32", |g, t, i| {
            let row = if i < 4 || (8..12).contains(&i) { g } else { g + 8 };
            (row, if i < 8 { t * 4 + (i & 3) } else { t * 4 + (i & 3) + 16 })
        }),
        ("mma.m16n8k32.f32.e2m1.e3m2.f32", |g, t, i| {
            let row = if i < 4 || (8..12).contains(&i) { g } else { g + 8 };
            (row, if i < 8 { t * 4 + (i & 3) } else { t * 4 + (i & 3) + 16 })
        }),
        ("mma.m16n8k32.s32.s4.s4.s32", |g, t, i| (if i < 8 { g } else { g + 8 }, t * 8 + (i & 7))),
        ("mma.m16n8k64.s32.s4.s4.s32", |g, t, i| {
            let row = if i < 8 || (16..24).contains(&i) { g } else { g + 8 };
            (row, if i < 16 { t * 8 + (i & 7) } else { t * 8 + (i & 7) + 32 })
        }),
        ("mma.m16n8k64.f32.e2m1.e2m1.f32.block16.ue4m3", |g, t, i| {
            let row = if i < 8 || (16..24).contains(&i) { g } else { g + 8 };
            (row, if i < 16 { t * 8 + (i & 7) } else { t * 8 + (i & 7) + 32 })
        }),
    ];

    /// The same of B: row (k) and column.
    const B_FORMULAS: &[(&str, Formula)] = &[
        ("mma.m8n8k4.f64.f64.f64.f64", |g, t, _| (t, g)),
        ("mma.m8n8k16.s32.s8.s8.s32", |g, t, i| (t * 4 + i, g)),
        ("mma.m8n8k32.s32.s4.s4.s32", |g, t, i| (t * 8 + i, g)),
        ("mma.m16n8k4.f32.tf32.tf32.f32", |g, t, _| (t, g)),
        ("mma.m16n8k8.f32.f16.f16.f32", |g, t, i| (t * 2 + i, g)),
        ("mma.m16n8k8.f32.tf32.tf32.f32", |g, t, i| (if i == 0 { t } else { t + 4 }, g)),
        ("mma.m16n8k16.f32.f16.f16.f32", |g, t, i| (if i < 2 { t * 2 + (i & 1) } else { t * 2 + (i & 1) + 8 }, g)),
        ("mma.m16n8k16.f64.f64.f64.f64", |g, t, i| (t + i * 4, g)),
        ("mma.m16n8k16.s32.s8.s8.s32", |g, t, i| (t * 4 + i, g)),
        ("mma.m16n8k32.s32.s8.s8.s32", |g, t, i| (if i < 4 { t * 4 + (i & 3) } else { t * 4 + (i & 3) + 16 }, g)),
        ("mma.m16n8k32.s32.s4.s4.s32", |g, t, i| (t * 8 + (i & 7), g)),
        ("mma.m16n8k64.s32.s4.s4.s32", |g, t, i| (if i < 8 { t * 8 + (i & 7) } else { t * 8 + (i & 7) + 32 }, g)),
    ];

    /// The same of C and D.
    const C_FORMULAS: &[(&str, Formula)] = &[
        ("mma.m8n8k4.f64.f64.f64.f64", |g, t, i| (g, t * 2 + (i & 1))),
        ("mma.m8n8k16.s32.s8.s8.s32", |g, t, i| (g, t * 2 + i)),
        ("mma.m16n8k8.f16.f16.f16.f16", |g, t, i| (if i < 2 { g } else { g + 8 }, t * 2 + (i & 1))),
        ("mma.m16n8k16.f32.f16.f16.f32", |g, t, i| (if i < 2 { g } else { g + 8 }, t * 2 + (i & 1))),
        ("mma.m16n8k16.f64.f64.f64.f64", |g, t, i| (if i < 2 { g } else { g + 8 }, t * 2 + (i & 1))),
        ("mma.m16n8k64.s32.s4.s4.s32", |g, t, i| (if i < 2 { g } else { g + 8 }, t * 2 + (i & 1))),
    ];

    #[test]
    fn fragments_lie_where_the_documentation_says() {
        type Operand = fn(&Layouts) -> &Layout;
        let tables: [(&[(&str, Formula)], Operand); 3] =
            [(A_FORMULAS, |of| &of.a), (B_FORMULAS, |of| &of.b), (C_FORMULAS, |of| &of.d)];
        for (formulas, operand) in tables {
            for (id, formula) in formulas {
                let layouts = of(id);
                let layout = operand(&layouts);
                let shape = id.parse::<OperationId>().unwrap().shape;
                let columns = if std::ptr::eq(layout, &layouts.a) { shape.k } else { shape.n } as usize;
                let e = per_register(layout.container_bits);
                for (at, place) in layout.places.iter().enumerate() {
                    let (word, s) = (at / e, at % e);
                    let (r, lane) = (word / LANES, word % LANES);
                    let (row, column) = formula(lane / 4, lane % 4, r * e + s);
                    assert_eq!(*place, index(row, column, columns), "{id}: lane {lane}, element {}", r * e + s);
                }
            }
        }
    }

    #[test]
    fn voltas_quarters_lie_where_the_documentation_says() {
        // PTX ISA 9.0, 9.7.14.5.1: computation c is done by threads 4c..4c+3 and 16+4c..16+4c+3.
        let layouts = of("mma.m8n8k4.f32.f16.f16.f32");
        for (at, place) in layouts.d.places.iter().enumerate() {
            let (i, lane) = (at / LANES, at % LANES);
            let x = if lane < 16 { lane & 1 } else { (lane & 1) + 4 };
            let (row, column) = (if i & 2 == 0 { x } else { x + 2 }, (i & 4) + (lane & 2) + (i & 1));
            assert_eq!(*place, index(lane / 4 % 4 * 8 + row, column, 8), "lane {lane}, element {i}");
        }
        let layouts = of("mma.m8n8k4.f16.f16.f16.f16");
        for (at, place) in layouts.d.places.iter().enumerate() {
            let (word, s) = (at / 2, at % 2);
            let (i, lane) = (word / LANES * 2 + s, word % LANES);
            let row = if lane < 16 { lane % 4 } else { lane % 4 + 4 };
            assert_eq!(*place, index(lane / 4 % 4 * 8 + row, i, 8), "lane {lane}, element {i}");
        }
    }

    #[test]
    fn narrow_floats_stand_where_their_kind_wants_them() {
        let padded = of("mma.m16n8k32.f32.e2m1.e3m2.f32");
        assert_eq!((padded.a.container_bits, padded.a.shift), (8, 2));
        assert_eq!((padded.b.container_bits, padded.b.shift), (8, 0));
        let packed = of("mma.m16n8k64.f32.e2m1.e2m1.f32.block32.ue8m0");
        assert_eq!((packed.a.container_bits, packed.a.shift), (4, 0));
        let elements = Elements::from_bits(Format::E2M1, (0..16 * 32).map(|_| 0xf));
        assert!(padded.a.pack(&elements, 0, 1).iter().all(|byte| *byte == 0xf << 2));
    }

    #[test]
    fn each_lane_is_given_the_scales_of_its_row_and_column() {
        let (a, b) = of("mma.m16n8k64.f32.e2m1.e2m1.f32.block16.ue4m3").scales.unwrap();
        for lane in 0..LANES {
            for chunk in 0..4 {
                assert_eq!(a.places[lane * 4 + chunk], index(lane / 4 + 8 * (lane % 2), chunk, 4));
                assert_eq!(b.places[lane * 4 + chunk], index(chunk, lane / 4, 8));
            }
        }
    }

    #[test]
    fn core_matrices_are_eight_lines_of_sixteen_bytes() {
        let layouts = of("wgmma.m64n8k16.f32.f16.f16.f32");
        // Element (row, k) of A is at byte (k / 8) · 1024 + row · 16 + (k mod 8) · 2.
        let offsets: HashMap<u32, usize> =
            layouts.a.places.iter().enumerate().map(|(at, place)| (*place, at * 2)).collect();
        for row in 0..64 {
            for k in 0..16 {
                assert_eq!(offsets[&index(row, k, 16)], k / 8 * 1024 + row * 16 + k % 8 * 2);
            }
        }
        assert_eq!(layouts.b.bytes(), 256);
    }
}
