//! Converts the registers of warps to a tile batch of the model, and its results to registers.

use std::collections::BTreeMap;

use mxprobe_api::{Elements, Operation, TileBatch};

use super::fragments::Place;
use crate::ptx::Multiply;

/// The places of an `mma`'s operands in registers.
#[derive(Debug)]
pub(crate) struct Plan {
    pub operation: Operation,
    /// The number of multiplies per warp and instruction: 4 for Volta's shape.
    pub tiles: usize,
    pub(super) a: Vec<Place>,
    pub(super) b: Vec<Place>,
    pub(super) c: Vec<Place>,
    pub(super) d: Vec<Place>,
}

/// The plans of a module's instructions, by kernel and step.
pub(crate) type Plans = BTreeMap<(usize, usize), Plan>;

/// Sets elements by their indices; bits above the format's width are dropped.
pub(super) fn put(to: &mut Elements, values: impl Iterator<Item = (usize, u64)>) {
    fn chunks<const BYTES: usize>(to: &mut [u8], values: impl Iterator<Item = (usize, u64)>) {
        for (index, bits) in values {
            to[index * BYTES..][..BYTES].copy_from_slice(&bits.to_le_bytes()[..BYTES]);
        }
    }
    let (size, mask) = (to.format().storage_bytes(), to.format().mask());
    let values = values.map(|(index, bits)| (index, bits & mask));
    match size {
        1 => chunks::<1>(to.bytes_mut(), values),
        2 => chunks::<2>(to.bytes_mut(), values),
        4 => chunks::<4>(to.bytes_mut(), values),
        _ => chunks::<8>(to.bytes_mut(), values),
    }
}

/// A warp's registers, by number and lane.
pub(crate) trait Registers {
    fn read(&self, register: usize, lane: u32) -> u64;
    fn write(&mut self, register: usize, lane: u32, bits: u64);
}

impl Plan {
    /// Collects the operands of all warps into one batch; `warps` are their first lanes.
    pub(crate) fn gather(&self, multiply: &Multiply, registers: &impl Registers, warps: &[u32]) -> TileBatch {
        let mut batch = TileBatch::zeros(&self.operation, warps.len() * self.tiles);
        let operands = [
            (&self.a, &multiply.a, &mut batch.a),
            (&self.b, &multiply.b, &mut batch.b),
            (&self.c, &multiply.c, &mut batch.c),
        ];
        for (places, names, elements) in operands {
            let each = elements.len() / warps.len();
            let of_warp = |(at, warp): (usize, &u32)| {
                let warp = *warp;
                places.iter().map(move |place| {
                    let word = registers.read(names[place.register as usize], warp + place.lane);
                    (at * each + place.index as usize, word >> place.shift)
                })
            };
            put(elements, warps.iter().enumerate().flat_map(of_warp));
        }
        batch
    }

    /// Writes D of every warp to its registers.
    pub(crate) fn scatter(&self, multiply: &Multiply, registers: &mut impl Registers, warps: &[u32], d: &Elements) {
        let each = d.len() / warps.len();
        for (at, warp) in warps.iter().enumerate() {
            for place in &self.d {
                let name = multiply.d[place.register as usize];
                let bits = d.get(at * each + place.index as usize) << place.shift;
                let kept = if place.shift == 0 { 0 } else { registers.read(name, warp + place.lane) };
                registers.write(name, warp + place.lane, kept | bits);
            }
        }
    }
}
