//! The state of the blocks that run together, and the accesses to it that all instructions share.

use std::{borrow::Cow, collections::BTreeMap};

use super::{
    launch::{Launch, Trap},
    plan::Registers,
    tensor_memory::Tensor,
    under_way::{Copies, Group},
};
use crate::{
    memory::Memory,
    ptx::{Address, SHARED_BASE, Source, Space, Special, Step},
    status::Status,
};

/// Lanes at the same instruction, in order.
pub(super) type Lanes = Vec<u32>;

/// Some blocks that run together: their registers, their memory, and the position of each lane.
pub(super) struct Wave<'a> {
    pub launch: &'a Launch<'a>,
    pub memory: &'a mut Memory,
    /// The allocation that was used last.
    pub hint: usize,
    pub first_block: usize,
    /// The number of lanes of one block, a multiple of 32.
    pub block_lanes: usize,
    pub lanes: usize,
    pub parameters: Vec<u8>,
    /// By register, then by lane.
    pub registers: Vec<u64>,
    /// The operands of one instruction, by lane.
    pub columns: [Vec<u64>; 3],
    pub shared: Vec<Vec<u8>>,
    /// Lanes whose writes to shared memory a descriptor may not see yet.
    pub unfenced: Vec<bool>,
    /// Lanes whose writes to shared memory other lanes may not see yet.
    pub unsynchronised: Vec<bool>,
    /// Lanes whose writes to tensor memory may not have arrived yet.
    pub unstored: Vec<bool>,
    /// Loads from tensor memory that have not been waited for: by warp, the register and the words.
    pub loading: Vec<Vec<(usize, [u32; 32])>>,
    pub tensors: Vec<Tensor>,
    pub groups: Vec<Group>,
    /// By lane; empty until the first copy.
    pub copies: Vec<Copies>,
    /// Lanes by the instruction they are at.
    pub ready: BTreeMap<usize, Lanes>,
    /// Lanes at a barrier, each with the instruction at which it continues.
    pub waiting: Vec<(u32, usize)>,
    /// The number of lanes of each block that have not ended.
    pub live: Vec<usize>,
    pub clock: u64,
}

impl<'a> Wave<'a> {
    pub(super) fn new(launch: &'a Launch<'a>, memory: &'a mut Memory, first_block: usize, blocks: usize) -> Self {
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
            columns: Default::default(),
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

    pub(super) fn guard(&self, step: &Step, lane: u32) -> bool {
        step.guard.is_none_or(|guard| (self.register(guard.register, lane) != 0) != guard.negated)
    }

    /// Splits lanes into those whose predicate holds and the others.
    pub(super) fn part(&self, step: &Step, lanes: Lanes) -> (Lanes, Lanes) {
        if step.guard.is_none() {
            (lanes, Lanes::new())
        } else {
            lanes.into_iter().partition(|lane| self.guard(step, *lane))
        }
    }

    pub(super) fn active<'b>(&self, step: &Step, lanes: &'b Lanes) -> Cow<'b, [u32]> {
        match step.guard {
            None => Cow::Borrowed(lanes),
            Some(_) => Cow::Owned(lanes.iter().copied().filter(|lane| self.guard(step, *lane)).collect()),
        }
    }

    #[inline]
    pub(super) fn register(&self, register: usize, lane: u32) -> u64 {
        self.registers[register * self.lanes + lane as usize]
    }

    #[inline]
    pub(super) fn value(&self, source: Source, lane: u32) -> u64 {
        match source {
            Source::Register(register) => self.register(register, lane),
            Source::Constant(bits) => bits,
            Source::Special(special) => self.special(special, lane),
        }
    }

    pub(super) fn special(&self, special: Special, lane: u32) -> u64 {
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
            Special::Multiprocessor => u64::from(self.multiprocessor(lane)),
            Special::Clock => self.clock,
        }
    }

    /// The multiprocessor of a lane.
    pub(super) fn multiprocessor(&self, lane: u32) -> u32 {
        self.launch.multiprocessor(self.first_block + lane as usize / self.block_lanes)
    }

    /// The first lanes of the groups of `size` lanes that execute a step together.
    pub(super) fn together(&self, step: &Step, lanes: &[u32], size: u32) -> Result<Vec<u32>, Trap> {
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

    pub(super) fn block_of(&self, lane: u32) -> usize {
        lane as usize / self.block_lanes
    }

    pub(super) fn at(&self, address: Address, lane: u32) -> u64 {
        self.value(address.base, lane).wrapping_add_signed(address.offset)
    }

    /// Cuts bits to the width of a register. A signed value is extended to 64 bits, of which a narrower register
    /// keeps its own.
    pub(super) fn widened(&self, register: usize, bits: u64) -> u64 {
        bits & self.launch.kernel.register_masks[register]
    }

    /// An address, which must be a multiple of the number of bytes accessed.
    pub(super) fn checked_address(&self, step: &Step, lane: u32, address: Address, len: usize) -> Result<u64, Trap> {
        let at = self.value(address.base, lane).wrapping_add_signed(address.offset);
        if at.is_multiple_of(len as u64) {
            return Ok(at);
        }
        // The driver has its own code for this, 716; like any trap it is sticky.
        let text = format!("address {at:#x} is not a multiple of {len}");
        Err(Trap { status: Status::MISALIGNED_ADDRESS, line: step.line, text })
    }

    /// The bytes at an address.
    pub(super) fn bytes(
        &mut self,
        step: &Step,
        space: Space,
        lane: u32,
        at: u64,
        len: usize,
    ) -> Result<&mut [u8], Trap> {
        self.span(space, lane, at, len).ok_or_else(|| outside(step, space, at, len))
    }

    /// The bytes at an address, if all of them exist. Parameters are read-only.
    fn span(&mut self, space: Space, lane: u32, at: u64, len: usize) -> Option<&mut [u8]> {
        match space {
            Space::Global => self.memory.bytes(at, len, &mut self.hint),
            Space::Shared => {
                let start = usize::try_from(at.checked_sub(SHARED_BASE)?).ok()?;
                self.shared[lane as usize / self.block_lanes].get_mut(start..start.checked_add(len)?)
            }
            Space::Parameter => {
                let start = usize::try_from(at).ok()?;
                self.parameters.get_mut(start..start.checked_add(len)?)
            }
        }
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

fn outside(step: &Step, space: Space, at: u64, len: usize) -> Trap {
    let space = match space {
        Space::Global => "global",
        Space::Shared => "shared",
        Space::Parameter => "parameter",
    };
    let text = format!("{len} bytes at {at:#x} lie outside {space} memory");
    Trap { status: Status::ILLEGAL_ADDRESS, line: step.line, text }
}
