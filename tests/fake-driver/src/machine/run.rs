//! The main loop: lanes at the same instruction execute it together, those furthest behind first.

use std::collections::BTreeMap;

use super::{
    arithmetic,
    launch::{Launch, Trap},
    plan::Registers,
    tensor_memory::Tensor,
    wave::{Lanes, Wave},
};
use crate::{
    memory::Memory,
    ptx::{Alu, Function, Instruction, Source, Step, TensorStep},
};

/// The number of lanes in one wave, if its blocks are small.
const LANES: usize = 2048;

/// Runs every block of a launch, one wave after another, and returns the number of cycles.
pub(crate) fn run(launch: &Launch<'_>, memory: &mut Memory) -> Result<u64, Trap> {
    let blocks: usize = launch.grid.iter().map(|size| *size as usize).product();
    let at_once = (LANES / (launch.warps() * 32)).max(1);
    let mut cycles = 0;
    for first in (0..blocks).step_by(at_once) {
        cycles += Wave::new(launch, memory, first, at_once.min(blocks - first)).run()?;
    }
    Ok(cycles)
}

/// The cycles of an instruction. Timed instructions take so many that a loop of a few of them takes nearly twice as
/// long for twice the iterations.
fn cycles(instruction: &Instruction) -> u64 {
    match instruction {
        Instruction::Multiply(_) | Instruction::GroupMultiply(_) => 256,
        Instruction::Tensor(step) if matches!(**step, TensorStep::Multiply(_)) => 256,
        Instruction::Compute { alu: Alu::Float(Function::FusedMultiplyAdd, _), .. } => 32,
        _ => 1,
    }
}

impl Wave<'_> {
    fn run(mut self) -> Result<u64, Trap> {
        while let Some((at, lanes)) = self.ready.pop_first() {
            self.advance(at, lanes)?;
        }
        match self.waiting.first() {
            None if self.tensors.iter().any(Tensor::is_held) => {
                let step = &self.launch.kernel.steps[self.launch.kernel.steps.len() - 1];
                Err(Trap::failure(step, "the kernel ended and did not free its tensor memory"))
            }
            None => Ok(self.clock),
            Some((_, at)) => {
                let step = &self.launch.kernel.steps[at - 1];
                Err(Trap::failure(step, "some threads of the block never come to this barrier"))
            }
        }
    }

    /// Runs lanes until others are as far behind, or all have ended.
    fn advance(&mut self, mut at: usize, mut lanes: Lanes) -> Result<(), Trap> {
        let kernel = self.launch.kernel;
        loop {
            let Some(step) = kernel.steps.get(at) else {
                self.end(&lanes);
                return Ok(());
            };
            self.clock += cycles(&step.instruction);
            match &step.instruction {
                Instruction::Branch { target } => {
                    let (taken, rest) = self.part(step, lanes);
                    match (taken.is_empty(), rest.is_empty()) {
                        (false, true) => (at, lanes) = (*target, taken),
                        (true, _) => (at, lanes) = (at + 1, rest),
                        (false, false) => {
                            self.join(*target, taken);
                            self.join(at + 1, rest);
                            return Ok(());
                        }
                    }
                }
                Instruction::Exit => {
                    let (ended, rest) = self.part(step, lanes);
                    self.end(&ended);
                    if rest.is_empty() {
                        return Ok(());
                    }
                    (at, lanes) = (at + 1, rest);
                }
                Instruction::Barrier => {
                    let (arrived, rest) = self.part(step, lanes);
                    self.waiting.extend(arrived.iter().map(|lane| (*lane, at + 1)));
                    if !rest.is_empty() {
                        self.join(at + 1, rest);
                    }
                    self.release();
                    return Ok(());
                }
                _ => {
                    let active = self.active(step, &lanes);
                    if !active.is_empty() {
                        self.execute(at, step, &active)?;
                    }
                    at += 1;
                }
            }
            if self.ready.first_key_value().is_some_and(|(first, _)| *first <= at) {
                self.join(at, lanes);
                return Ok(());
            }
        }
    }

    fn join(&mut self, at: usize, lanes: Lanes) {
        let there = self.ready.entry(at).or_default();
        let had = there.len();
        there.extend(lanes);
        if had > 0 {
            there.sort_unstable();
        }
    }

    fn end(&mut self, lanes: &[u32]) {
        for lane in lanes {
            self.live[*lane as usize / self.block_lanes] -= 1;
        }
        self.release();
    }

    /// Releases the blocks whose lanes have all reached the barrier.
    fn release(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let mut arrived = vec![0; self.live.len()];
        for (lane, _) in &self.waiting {
            arrived[*lane as usize / self.block_lanes] += 1;
        }
        let complete: Vec<bool> = arrived.iter().zip(&self.live).map(|(arrived, live)| arrived == live).collect();
        let mut released = BTreeMap::<usize, Lanes>::new();
        let block_lanes = self.block_lanes;
        self.waiting.retain(|(lane, at)| {
            let goes = complete[*lane as usize / block_lanes];
            if goes {
                released.entry(*at).or_default().push(*lane);
            }
            !goes
        });
        for (at, lanes) in released {
            for lane in &lanes {
                self.unsynchronised[*lane as usize] = false;
            }
            self.join(at, lanes);
        }
    }

    fn execute(&mut self, at: usize, step: &Step, lanes: &[u32]) -> Result<(), Trap> {
        match &step.instruction {
            Instruction::Load { space, kind, address, into } => self.load(step, lanes, (*space, *kind, *address), into),
            Instruction::Store { space, kind, address, from } => {
                self.store(step, lanes, (*space, *kind, *address), from)
            }
            Instruction::Compute { alu, kind, into, from } => {
                self.each(lanes, *into, *from, |values| arithmetic::compute(*alu, *kind, values));
                Ok(())
            }
            Instruction::Compare { comparison, kind, flush, into, from: [a, b] } => {
                let compare = |[a, b, _]: [u64; 3]| arithmetic::compare(*comparison, *kind, *flush, [a, b]).into();
                self.each(lanes, *into, [*a, *b, Source::Constant(0)], compare);
                Ok(())
            }
            Instruction::Convert { conversion, into, from } => {
                let mask = self.launch.kernel.register_masks[*into];
                let convert =
                    |[bits, ..]: [u64; 3]| conversion.to.extend(arithmetic::convert(*conversion, bits)) & mask;
                self.each(lanes, *into, [*from, Source::Constant(0), Source::Constant(0)], convert);
                Ok(())
            }
            Instruction::Pack { bits, into, from } => {
                for lane in lanes {
                    let packed = from.iter().rev().fold(0, |packed, part| packed << bits | self.value(*part, *lane));
                    self.write(*into, *lane, packed);
                }
                Ok(())
            }
            Instruction::Unpack { bits, into, from } => {
                for lane in lanes {
                    let packed = self.value(*from, *lane);
                    for (index, register) in into.iter().enumerate() {
                        let part = packed >> (index as u32 * bits) & (u64::MAX >> (64 - bits));
                        self.write(*register, *lane, part);
                    }
                }
                Ok(())
            }
            Instruction::Multiply(multiply) => self.multiply(at, step, multiply, lanes),
            Instruction::LoadMatrix(access) => self.load_matrix(step, access, lanes),
            Instruction::StoreMatrix(access) => self.store_matrix(step, access, lanes),
            Instruction::ProxyFence => {
                lanes.iter().for_each(|lane| self.unfenced[*lane as usize] = false);
                Ok(())
            }
            Instruction::GroupFence
            | Instruction::GroupMultiply(_)
            | Instruction::GroupCommit
            | Instruction::GroupWait(_) => self.group(step, lanes),
            Instruction::CopyAsync(copy) => self.copy_async(step, copy, lanes),
            Instruction::Tensor(tensor) => self.tensor(step, tensor, lanes),
            Instruction::WarpBarrier => {
                for first in self.together(step, lanes, 32)? {
                    self.unsynchronised[first as usize..first as usize + 32].fill(false);
                }
                Ok(())
            }
            Instruction::Nothing | Instruction::Branch { .. } | Instruction::Barrier | Instruction::Exit => Ok(()),
        }
    }

    /// Computes a register of each lane from three values of it.
    fn each(&mut self, lanes: &[u32], into: usize, from: [Source; 3], compute: impl Fn([u64; 3]) -> u64) {
        let mut columns = std::mem::take(&mut self.columns);
        for (column, source) in columns.iter_mut().zip(from) {
            column.clear();
            match source {
                Source::Register(register) => {
                    let of_lanes = &self.registers[register * self.lanes..][..self.lanes];
                    column.extend(lanes.iter().map(|lane| of_lanes[*lane as usize]));
                }
                Source::Constant(bits) => column.resize(lanes.len(), bits),
                Source::Special(special) => column.extend(lanes.iter().map(|lane| self.special(special, *lane))),
            }
        }
        let [a, b, c] = &columns;
        let of_lanes = &mut self.registers[into * self.lanes..][..self.lanes];
        for (((lane, a), b), c) in lanes.iter().zip(a).zip(b).zip(c) {
            of_lanes[*lane as usize] = compute([*a, *b, *c]);
        }
        self.columns = columns;
    }
}
