//! Tensor memory: 128 lanes of 512 columns of 32 bits for each block, and the multiplies that add to it.

use std::collections::BTreeSet;

use super::{
    launch::Trap,
    plan::Registers,
    tensor_memory::{Barrier, COLUMNS, FRESH, LANES, PITCH},
    wave::Wave,
};
use crate::ptx::{Address, SHARED_BASE, Step, TensorStep};

/// The part of tensor memory that a warp can access.
struct Reach {
    /// The warp's first lane.
    first: usize,
    block: usize,
    /// The index of the first cell, in the row of the warp's first lane.
    cell: usize,
}

impl Wave<'_> {
    pub(super) fn tensor(&mut self, step: &Step, tensor: &TensorStep, lanes: &[u32]) -> Result<(), Trap> {
        match tensor {
            TensorStep::Initialise { barrier, count } => {
                for lane in lanes {
                    let at = self.at(*barrier, *lane);
                    let count = self.value(*count, *lane);
                    if !at.is_multiple_of(8) || count == 0 {
                        return Err(Trap::failure(step, format!("invalid barrier at {at:#x} with count {count}")));
                    }
                    let block = self.block_of(*lane);
                    self.tensors[block].barriers.insert(at, Barrier { count, pending: count, phases: 0 });
                    self.unsynchronised[*lane as usize] = true;
                }
                Ok(())
            }
            TensorStep::TryWait { into, barrier, parity } => {
                let mut asked = BTreeSet::new();
                for lane in lanes {
                    let at = self.at(*barrier, *lane);
                    let block = self.block_of(*lane);
                    if asked.insert((block, at)) {
                        self.arrive(step, block, at)?;
                    }
                    let phases = self.tensors[block].barriers[&at].phases;
                    // True once the phase of that parity is complete (PTX ISA 8.7, 9.7.13.15.16).
                    let complete = phases & 1 != self.value(*parity, *lane) & 1;
                    self.write(*into, *lane, u64::from(complete));
                }
                Ok(())
            }
            TensorStep::Allocate { slot, columns } => self.allocate(step, lanes, *slot, *columns),
            TensorStep::Free { start, columns } => {
                for first in self.together(step, lanes, 32)? {
                    let given = (self.value(*start, first) as u32, *columns);
                    let block = self.block_of(first);
                    let held = self.tensors[block].allocated.take();
                    if held != Some(given) {
                        return Err(Trap::failure(step, format!("{given:x?} is freed, but {held:x?} was allocated")));
                    }
                }
                Ok(())
            }
            TensorStep::Store { address, from } => {
                for reach in self.reach(step, lanes, *address, from.len())? {
                    for (index, register) in from.iter().enumerate() {
                        let words = &self.registers[register * self.lanes + reach.first..][..32];
                        let column = &mut self.tensors[reach.block].cells[reach.cell + index..];
                        for (cell, word) in column.iter_mut().step_by(PITCH as usize).zip(words) {
                            *cell = *word as u32;
                        }
                    }
                    let of_warp = reach.first..reach.first + 32;
                    self.unstored[of_warp.clone()].fill(true);
                    self.unsynchronised[of_warp].fill(true);
                }
                Ok(())
            }
            TensorStep::Load { address, into } => {
                for reach in self.reach(step, lanes, *address, into.len())? {
                    let cells = &self.tensors[reach.block].cells;
                    for (index, register) in into.iter().enumerate() {
                        let mut column = cells[reach.cell + index..].iter().step_by(PITCH as usize);
                        let words = std::array::from_fn(|_| column.next().copied().unwrap_or(FRESH));
                        self.loading[reach.first / 32].push((*register, words));
                    }
                }
                Ok(())
            }
            TensorStep::WaitStores => {
                self.together(step, lanes, 32)?;
                lanes.iter().for_each(|lane| self.unstored[*lane as usize] = false);
                Ok(())
            }
            TensorStep::WaitLoads => {
                for first in self.together(step, lanes, 32)? {
                    for (register, words) in std::mem::take(&mut self.loading[first as usize / 32]) {
                        for (lane, word) in (first..).zip(words) {
                            self.write(register, lane, u64::from(word));
                        }
                    }
                }
                Ok(())
            }
            TensorStep::Multiply(multiply) => {
                lanes.iter().try_for_each(|lane| self.tensor_multiply(step, multiply, *lane))
            }
            TensorStep::Commit { barrier } => {
                for lane in lanes {
                    let at = self.at(*barrier, *lane);
                    let block = self.block_of(*lane);
                    if !self.tensors[block].barriers.contains_key(&at) {
                        return Err(Trap::failure(step, format!("no barrier at {at:#x}")));
                    }
                    for one in &mut self.tensors[block].under_way {
                        one.barrier.get_or_insert(at);
                    }
                }
                Ok(())
            }
        }
    }

    /// Completes the multiplies that were committed to a barrier.
    fn arrive(&mut self, step: &Step, block: usize, at: u64) -> Result<(), Trap> {
        let tensor = &mut self.tensors[block];
        let barrier = tensor.barriers.get_mut(&at);
        let barrier = barrier.ok_or_else(|| Trap::failure(step, format!("no barrier at {at:#x}")))?;
        let (arrived, left): (Vec<_>, Vec<_>) =
            std::mem::take(&mut tensor.under_way).into_iter().partition(|one| one.barrier == Some(at) && one.asked);
        tensor.under_way = left;
        tensor.under_way.iter_mut().filter(|one| one.barrier == Some(at)).for_each(|one| one.asked = true);
        if arrived.is_empty() {
            return Ok(());
        }
        barrier.pending -= 1;
        if barrier.pending == 0 {
            barrier.pending = barrier.count;
            barrier.phases += 1;
        }
        for one in arrived {
            for (row, of_d) in (0..).zip(one.d.chunks_exact(one.n as usize)) {
                let cells = tensor.cell(row, one.column).and_then(|cell| tensor.cells.get_mut(cell..));
                for (cell, bits) in cells.into_iter().flatten().zip(of_d) {
                    *cell = *bits as u32;
                }
            }
        }
        Ok(())
    }

    fn allocate(&mut self, step: &Step, lanes: &[u32], slot: Address, columns: u32) -> Result<(), Trap> {
        for first in self.together(step, lanes, 32)? {
            let block = self.block_of(first);
            if self.tensors[block].allocated.is_some() {
                return Err(Trap::failure(
                    step,
                    "the block has tensor memory already: a real device would wait forever",
                ));
            }
            // Not at 0 if there is room, so that a forgotten base is detected.
            let start = COLUMNS - columns;
            self.tensors[block].allocated = Some((start, columns));
            self.tensors[block].cells = vec![FRESH; (LANES * PITCH) as usize];
            let at = self.at(slot, first);
            let offset = at.checked_sub(SHARED_BASE).map(|offset| offset as usize);
            let room = offset.and_then(|offset| self.shared[block].get_mut(offset..offset + 4));
            let room = room.ok_or_else(|| Trap::failure(step, format!("{at:#x} is outside shared memory")))?;
            room.copy_from_slice(&start.to_le_bytes());
            (first..first + 32).for_each(|lane| self.unsynchronised[lane as usize] = true);
        }
        Ok(())
    }

    /// The part of tensor memory that each warp accesses: its own lanes, and this many columns.
    fn reach(&self, step: &Step, lanes: &[u32], address: Address, columns: usize) -> Result<Vec<Reach>, Trap> {
        let mut reaches = Vec::new();
        for first in self.together(step, lanes, 32)? {
            let start = self.at(address, first) as u32;
            // A warp can access a quarter of the lanes (PTX ISA 8.7, 9.7.16.8.1).
            let quarter = first % self.block_lanes as u32 / 32 % 4 * 32;
            if start >> 16 != quarter {
                let text =
                    format!("address {start:#x} begins in lane {}; this warp's lanes begin at {quarter}", start >> 16);
                return Err(Trap::failure(step, text));
            }
            if (first..first + 32).any(|lane| self.at(address, lane) as u32 != start) {
                return Err(Trap::failure(step, "the threads of a warp have different addresses"));
            }
            let (block, column) = (self.block_of(first), start & 0xffff);
            let tensor = &self.tensors[block];
            let (cell, last) = (tensor.cell(quarter, column), tensor.cell(quarter, column + columns as u32 - 1));
            let (Some(cell), Some(_)) = (cell, last) else {
                let text = format!("{columns} columns from {column} of tensor memory were not all allocated");
                return Err(Trap::failure(step, text));
            };
            reaches.push(Reach { first: first as usize, block, cell });
        }
        Ok(reaches)
    }
}
