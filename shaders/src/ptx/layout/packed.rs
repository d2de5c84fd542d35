//! One operand of the tiles that are computed together: the place of each element, packing and unpacking.

use mxprobe_api::{Elements, Format, OperationId};

/// The number of lanes in a warp.
pub(super) const LANES: usize = 32;

/// One operand of the tiles that are computed together (a group), in memory order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The number of bits that one element occupies: 4, 8, 16, 32 or 64.
    pub(super) container_bits: usize,
    /// The position of the element's lowest bit in its container.
    pub(super) shift: u32,
    /// If set, containers are bytes, and in every 16 of them the elements, this many bits wide, are packed without
    /// gaps; the rest of the 16 bytes is unused.
    pub(super) dense_bits: Option<u32>,
    /// For each container in memory order, the element of the group that it holds, counted tile by tile, row-major.
    pub(super) places: Vec<u32>,
    /// The number of elements in one tile.
    pub(super) elements: usize,
    /// The number of tiles in a group.
    pub(super) group: usize,
}

impl Layout {
    /// The number of tiles in a group.
    pub fn group(&self) -> usize {
        self.group
    }

    /// The number of bytes in a group.
    pub fn bytes(&self) -> usize {
        self.places.len() * self.container_bits / 8
    }

    /// The number of 32- or 64-bit registers that each of `threads` threads holds.
    pub fn registers(&self, threads: usize) -> usize {
        self.bytes() / threads / self.register_bytes()
    }

    /// The number of bytes in one register: 8 for an f64, else 4.
    pub fn register_bytes(&self) -> usize {
        if self.container_bits == 64 { 8 } else { 4 }
    }

    /// Packs `groups` groups, beginning with tile `first`; elements beyond the last tile are zero.
    pub fn pack(&self, elements: &Elements, first: usize, groups: usize) -> Vec<u8> {
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

    /// Packs the tiles of `elements` that fill whole groups.
    pub fn pack_all(&self, elements: &Elements) -> Vec<u8> {
        self.pack(elements, 0, elements.len() / (self.elements * self.group))
    }

    /// Unpacks `tiles` tiles from whole groups: the inverse of [`pack`](Self::pack).
    pub fn unpack(&self, packed: &[u8], format: Format, tiles: usize) -> Elements {
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

    /// The tiles of a group for which every word in `packed` satisfies the predicate.
    pub fn tiles_where(&self, packed: &[u8], is: impl Fn(&[u8]) -> bool) -> Vec<usize> {
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

/// Copies element `place` of `source` to the beginning of its container. Elements beyond the last one leave it
/// unchanged.
fn copy_element<const BYTES: usize>(container: &mut [u8], source: &[u8], place: u32) {
    let element = source.get(place as usize * BYTES..).and_then(<[u8]>::first_chunk::<BYTES>);
    if let (Some(element), Some(container)) = (element, container.first_chunk_mut::<BYTES>()) {
        *container = *element;
    }
}

/// The number of bits that an element takes in a register or in shared memory.
pub(super) fn container_bits(id: &OperationId, format: Format) -> usize {
    let bits = format.bits() as usize;
    // PTX ISA 9.0, 9.7.14.5.9: kind::f8f6f4 and kind::mxf8f6f4 take a byte for each 4-bit and 6-bit element; their k is
    // 32.
    let is_padded = bits < 8 && !format.is_integer() && id.shape.k == 32;
    if is_padded { 8 } else { bits.next_power_of_two() }
}

/// The position of an element in its container.
pub(super) fn shift(id: &OperationId, format: Format) -> u32 {
    // Same section: e2m1 is in bits 2 to 5, 6-bit elements in bits 0 to 5.
    if container_bits(id, format) == 8 && format.bits() == 4 { 2 } else { 0 }
}

pub(super) fn index(row: usize, column: usize, columns: usize) -> u32 {
    u32::try_from(row * columns + column).expect("a tile is small")
}

/// The number of elements in one 32-bit register, or 1 for a 64-bit one.
pub(super) fn per_register(container_bits: usize) -> usize {
    (32 / container_bits).max(1)
}

/// The places of every register of every lane: register 0 of all lanes first.
pub(super) fn registers_of(
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
