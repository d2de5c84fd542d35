//! Runs kernels: many warps in lockstep, an instruction at a time.
//!
//! Blocks are run in waves. All lanes of a wave that stand at the same instruction execute it together; where they part,
//! the ones that are furthest behind go first, so that they meet again after loops and branches.

mod arithmetic;
mod copy;
mod float;
mod fragments;
mod group;
mod memory;
mod quotient;
mod tensor;
mod tensor_multiply;
mod unit;
mod wmma;

use std::{borrow::Cow, collections::BTreeMap};

use crate::{
    memory::Memory,
    ptx::{Alu, Instruction, Kernel, Multiply, Source, Special, Step, TensorStep},
    status::Status,
};

use copy::Copies;
use group::Group;
use tensor::Tensor;
pub(crate) use tensor_multiply::describe;
use unit::Registers;
pub(crate) use unit::{Plans, Unit};

/// Lanes of one wave, if its blocks are small.
const LANES: usize = 2048;

/// What a launch asks for.
#[derive(Debug)]
pub(crate) struct Launch<'a> {
    pub kernel: &'a Kernel,
    /// Which kernel of its module that is.
    pub kernel_index: usize,
    pub plans: &'a Plans,
    pub unit: &'a Unit,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub dynamic_shared_bytes: usize,
    pub parameters: Vec<u8>,
}

/// Why a kernel was stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trap {
    pub status: Status,
    pub line: usize,
    pub text: String,
}

impl Trap {
    fn failure(step: &Step, text: impl Into<String>) -> Self {
        Self { status: Status::LAUNCH_FAILED, line: step.line, text: text.into() }
    }
}

impl Launch<'_> {
    fn threads(&self) -> usize {
        self.block.iter().map(|size| *size as usize).product()
    }

    fn warps(&self) -> usize {
        self.threads().div_ceil(32)
    }
}

/// Runs every block of a launch, one wave after another, and returns the cycles that took.
pub(crate) fn run(launch: &Launch<'_>, memory: &mut Memory) -> Result<u64, Trap> {
    let blocks: usize = launch.grid.iter().map(|size| *size as usize).product();
    let at_once = (LANES / (launch.warps() * 32)).max(1);
    let mut cycles = 0;
    for first in (0..blocks).step_by(at_once) {
        cycles += Wave::new(launch, memory, first, at_once.min(blocks - first)).run()?;
    }
    Ok(cycles)
}

/// Cycles of an instruction, those that are timed taking so many that a loop of a few of them takes nearly twice as long if it
/// turns twice as often.
fn cycles(instruction: &Instruction) -> u64 {
    match instruction {
        Instruction::Multiply(_) | Instruction::GroupMultiply(_) => 256,
        Instruction::Tensor(step) if matches!(**step, TensorStep::Multiply(_)) => 256,
        Instruction::Compute { alu: Alu::FusedMultiplyAdd(_), .. } => 32,
        _ => 1,
    }
}

/// Lanes that stand at the same instruction, in order.
type Lanes = Vec<u32>;

struct Wave<'a> {
    launch: &'a Launch<'a>,
    memory: &'a mut Memory,
    /// Which allocation was used last.
    hint: usize,
    first_block: usize,
    /// Lanes of one block, whole warps.
    block_lanes: usize,
    lanes: usize,
    parameters: Vec<u8>,
    /// By register, then by lane.
    registers: Vec<u64>,
    shared: Vec<Vec<u8>>,
    /// Lanes whose writes to shared memory a descriptor may not see yet.
    unfenced: Vec<bool>,
    /// Lanes whose writes to shared memory other lanes may not see yet.
    unsynchronised: Vec<bool>,
    /// Lanes whose writes to tensor memory may be under way.
    unstored: Vec<bool>,
    /// By warp, register and words of loads from tensor memory that nobody has waited for.
    loading: Vec<Vec<(usize, [u32; 32])>>,
    tensors: Vec<Tensor>,
    groups: Vec<Group>,
    /// By lane, once there is one.
    copies: Vec<Copies>,
    /// Lanes by the instruction that they stand at.
    ready: BTreeMap<usize, Lanes>,
    /// Lanes at a barrier, and where they go on.
    waiting: Vec<(u32, usize)>,
    /// Lanes of each block that have not ended.
    live: Vec<usize>,
    clock: u64,
}

impl<'a> Wave<'a> {
    fn new(launch: &'a Launch<'a>, memory: &'a mut Memory, first_block: usize, blocks: usize) -> Self {
        let block_lanes = launch.warps() * 32;
        let lanes = block_lanes * blocks;
        let threads = launch.threads();
        let all = (0..lanes).filter(|lane| lane % block_lanes < threads).map(|lane| lane as u32).collect();
        let shared_bytes = launch.kernel.shared_bytes + launch.dynamic_shared_bytes;
        Self {
            launch,
            memory,
            hint: 0,
            first_block,
            block_lanes,
            lanes,
            parameters: launch.parameters.clone(),
            registers: vec![0; launch.kernel.register_masks.len() * lanes],
            shared: vec![vec![0xcd; shared_bytes]; blocks],
            unfenced: vec![false; lanes],
            unsynchronised: vec![false; lanes],
            unstored: vec![false; lanes],
            loading: vec![Vec::new(); lanes / 32],
            tensors: (0..blocks).map(|_| Tensor::default()).collect(),
            groups: (0..lanes.div_ceil(128)).map(|_| Group::default()).collect(),
            copies: Vec::new(),
            ready: BTreeMap::from([(0, all)]),
            waiting: Vec::new(),
            live: vec![threads; blocks],
            clock: 0,
        }
    }

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

    /// Runs lanes until others are as far behind, or none is left.
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

    fn guard(&self, step: &Step, lane: u32) -> bool {
        step.guard.is_none_or(|guard| (self.register(guard.register, lane) != 0) != guard.negated)
    }

    /// Those whose predicate holds, and the others.
    fn part(&self, step: &Step, lanes: Lanes) -> (Lanes, Lanes) {
        if step.guard.is_none() {
            (lanes, Lanes::new())
        } else {
            lanes.into_iter().partition(|lane| self.guard(step, *lane))
        }
    }

    fn active<'b>(&self, step: &Step, lanes: &'b Lanes) -> Cow<'b, [u32]> {
        match step.guard {
            None => Cow::Borrowed(lanes),
            Some(_) => Cow::Owned(lanes.iter().copied().filter(|lane| self.guard(step, *lane)).collect()),
        }
    }

    fn end(&mut self, lanes: &[u32]) {
        for lane in lanes {
            self.live[*lane as usize / self.block_lanes] -= 1;
        }
        self.release();
    }

    /// Lets go on the blocks all of whose lanes wait.
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

    #[inline]
    fn register(&self, register: usize, lane: u32) -> u64 {
        self.registers[register * self.lanes + lane as usize]
    }

    #[inline]
    fn value(&self, source: Source, lane: u32) -> u64 {
        match source {
            Source::Register(register) => self.register(register, lane),
            Source::Constant(bits) => bits,
            Source::Special(special) => self.special(special, lane),
        }
    }

    fn special(&self, special: Special, lane: u32) -> u64 {
        let thread = lane as usize % self.block_lanes;
        let block = self.first_block + lane as usize / self.block_lanes;
        let place = |index: usize, sizes: [u32; 3], axis: usize| {
            let [x, y] = [sizes[0] as usize, sizes[1] as usize];
            [index % x, index / x % y, index / x / y][axis] as u64
        };
        match special {
            Special::Thread(axis) => place(thread, self.launch.block, axis),
            Special::Threads(axis) => u64::from(self.launch.block[axis]),
            Special::Block(axis) => place(block, self.launch.grid, axis),
            Special::Blocks(axis) => u64::from(self.launch.grid[axis]),
            Special::Lane => u64::from(lane % 32),
            Special::Warp => thread as u64 / 32,
            Special::Clock => self.clock,
        }
    }

    fn execute(&mut self, at: usize, step: &Step, lanes: &[u32]) -> Result<(), Trap> {
        match &step.instruction {
            Instruction::Load { space, kind, address, into } => self.load(step, lanes, (*space, *kind, *address), into),
            Instruction::Store { space, kind, address, from } => {
                self.store(step, lanes, (*space, *kind, *address), from)
            }
            Instruction::Compute { alu: Alu::Add, kind, into, from: [Source::Register(a), Source::Constant(b), _] } => {
                // Addresses and counters, in every loop of every kernel.
                for lane in lanes {
                    let sum = self.register(*a, *lane).wrapping_add(*b) & kind.mask();
                    self.write(*into, *lane, sum);
                }
                Ok(())
            }
            Instruction::Compute { alu, kind, into, from } => {
                self.each(lanes, *into, |wave, lane| {
                    arithmetic::compute(*alu, *kind, from.map(|source| wave.value(source, lane)))
                });
                Ok(())
            }
            Instruction::Compare { comparison, unordered, kind, into, from } => {
                self.each(lanes, *into, |wave, lane| {
                    let [a, b] = from.map(|source| wave.value(source, lane));
                    u64::from(arithmetic::compare(*comparison, *unordered, *kind, a, b))
                });
                Ok(())
            }
            Instruction::Convert { conversion, into, from } => {
                self.each(lanes, *into, |wave, lane| {
                    let bits = arithmetic::convert(*conversion, wave.value(*from, lane));
                    wave.widened(*into, conversion.to.extend(bits))
                });
                Ok(())
            }
            Instruction::Pack { bits, into, from } => {
                self.each(lanes, *into, |wave, lane| {
                    from.iter().rev().fold(0, |packed, part| packed << bits | wave.value(*part, lane))
                });
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
            Instruction::Nothing | Instruction::Branch { .. } | Instruction::Barrier | Instruction::Exit => Ok(()),
        }
    }

    fn each(&mut self, lanes: &[u32], into: usize, compute: impl Fn(&Self, u32) -> u64) {
        for lane in lanes {
            let bits = compute(self, *lane);
            self.write(into, *lane, bits);
        }
    }

    /// The first lanes of the groups of `size` lanes that execute a step together.
    fn together(&self, step: &Step, lanes: &[u32], size: u32) -> Result<Vec<u32>, Trap> {
        let mut firsts = Vec::new();
        for group in lanes.chunks(size as usize) {
            let first = group[0];
            let whole =
                group.len() == size as usize && (first as usize % self.block_lanes).is_multiple_of(size as usize);
            if !whole || group.iter().zip(first..).any(|(lane, expected)| *lane != expected) {
                let text = format!("not all {size} threads that compute together execute this");
                return Err(Trap::failure(step, text));
            }
            firsts.push(first);
        }
        Ok(firsts)
    }

    fn multiply(&mut self, at: usize, step: &Step, multiply: &Multiply, lanes: &[u32]) -> Result<(), Trap> {
        let warps = self.together(step, lanes, 32)?;
        let plan = &self.launch.plans[&(self.launch.kernel_index, at)];
        let mut batch = plan.gather(multiply, self, &warps);
        if let Some(scales) = &multiply.scales {
            self.gather_scales(step, scales, &warps, &mut batch)?;
        }
        let d = self.launch.unit.compute(&plan.operation, &batch);
        let d = d.map_err(|error| Trap::failure(step, error.to_string()))?;
        plan.scatter(multiply, self, &warps, &d);
        Ok(())
    }

    /// PTX ISA 8.7, 9.7.14.3 (block scaling): the pair of threads `thread-id-a` of each quad holds the scales of rows
    /// groupID and groupID + 8; thread `thread-id-b` holds those of column groupID; the first byte is `byte-id`.
    fn gather_scales(
        &self,
        step: &Step,
        scales: &crate::ptx::Scales,
        warps: &[u32],
        batch: &mut mxprobe_api::TileBatch,
    ) -> Result<(), Trap> {
        let count = scales.count;
        let (Some(scale_a), Some(scale_b)) = (&mut batch.scale_a, &mut batch.scale_b) else { return Ok(()) };
        for (tile, warp) in warps.iter().enumerate() {
            let select = |(byte, thread): (Source, Source), threads: u64| {
                let (byte, thread) = (self.value(byte, *warp), self.value(thread, *warp));
                let fits = byte < 4 && byte.is_multiple_of(u64::from(count)) && thread < threads;
                let text = format!("{{{byte}, {thread}}} selects no scales of `.scale_vec::{count}X`");
                fits.then_some((byte as u32, thread as u32)).ok_or_else(|| Trap::failure(step, text))
            };
            let (byte_a, thread_a) = select(scales.a_select, 2)?;
            let (byte_b, thread_b) = select(scales.b_select, 4)?;
            for chunk in 0..count {
                for row in 0..16 {
                    let lane = warp + row % 8 * 4 + thread_a * 2 + row / 8;
                    let bits = self.register(scales.a, lane) >> (8 * (byte_a + chunk));
                    scale_a.set(tile * 16 * count as usize + (row * count + chunk) as usize, bits);
                }
                for column in 0..8 {
                    let lane = warp + column * 4 + thread_b;
                    let bits = self.register(scales.b, lane) >> (8 * (byte_b + chunk));
                    scale_b.set(tile * 8 * count as usize + (chunk * 8 + column) as usize, bits);
                }
            }
        }
        Ok(())
    }
}

impl Registers for Wave<'_> {
    fn read(&self, register: usize, lane: u32) -> u64 {
        self.register(register, lane)
    }

    #[inline]
    fn write(&mut self, register: usize, lane: u32, bits: u64) {
        self.registers[register * self.lanes + lane as usize] = bits;
    }
}
