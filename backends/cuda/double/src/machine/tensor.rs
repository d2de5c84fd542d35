//! Tensor memory: 128 lanes of 512 columns of 32 bits for each block, and the multiplies that add to it.

use std::collections::{BTreeMap, BTreeSet};

use mxprobe_api::{Format, OperationId};

use super::{Registers, Trap, Wave};
use crate::ptx::{Address, SHARED_BASE, Step, TensorKind, TensorMultiply, TensorStep};

const LANES: u32 = 128;
const COLUMNS: u32 = 512;
/// What tensor memory holds before it is written.
const FRESH: u32 = 0xcdcd_cdcd;

/// What one block has of tensor memory and of barriers.
#[derive(Debug, Default)]
pub(super) struct Tensor {
    /// The first column of the one allocation, and how many there are.
    allocated: Option<(u32, u32)>,
    /// By lane, then by column.
    cells: Vec<u32>,
    barriers: BTreeMap<u64, Barrier>,
    under_way: Vec<UnderWay>,
}

/// An `mbarrier`.
#[derive(Debug)]
struct Barrier {
    count: u64,
    pending: u64,
    phases: u64,
}

/// The result of a multiply that nobody has waited for.
#[derive(Debug)]
struct UnderWay {
    /// Where it arrives; `None` before it is committed.
    barrier: Option<u64>,
    /// Somebody asked for it: it is there when it is asked for again, so that one question is never enough.
    asked: bool,
    column: u32,
    n: u32,
    /// Row-major.
    d: Vec<u64>,
}

impl Tensor {
    /// Whether a kernel ended without giving its memory back.
    pub(super) fn is_held(&self) -> bool {
        self.allocated.is_some()
    }

    /// The index of a cell of the allocation.
    fn cell(&self, lane: u32, column: u32) -> Option<usize> {
        let (start, columns) = self.allocated?;
        (lane < LANES && (start..start + columns).contains(&column)).then_some((lane * COLUMNS + column) as usize)
    }
}

impl Wave<'_> {
    pub(super) fn tensor(&mut self, step: &Step, tensor: &TensorStep, lanes: &[u32]) -> Result<(), Trap> {
        match tensor {
            TensorStep::Initialise { barrier, count } => {
                for lane in lanes {
                    let at = self.at(*barrier, *lane);
                    let count = self.value(*count, *lane);
                    if !at.is_multiple_of(8) || count == 0 {
                        return Err(Trap::failure(step, format!("no barrier can be at {at:#x} with count {count}")));
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
                        return Err(Trap::failure(step, format!("{given:x?} is freed, and {held:x?} was allocated")));
                    }
                }
                Ok(())
            }
            TensorStep::Store { address, from } => {
                self.access(step, lanes, *address, from.len(), |wave, lane, index, cell| {
                    let block = wave.block_of(lane);
                    wave.tensors[block].cells[cell] = wave.register(from[index], lane) as u32;
                    wave.unstored[lane as usize] = true;
                    wave.unsynchronised[lane as usize] = true;
                })
            }
            TensorStep::Load { address, into } => {
                self.access(step, lanes, *address, into.len(), |wave, lane, index, cell| {
                    let bits = wave.tensors[wave.block_of(lane)].cells[cell];
                    wave.loading.push((lane, into[index], u64::from(bits)));
                })
            }
            TensorStep::WaitStores => {
                self.together(step, lanes, 32)?;
                lanes.iter().for_each(|lane| self.unstored[*lane as usize] = false);
                Ok(())
            }
            TensorStep::WaitLoads => {
                self.together(step, lanes, 32)?;
                let (arrived, left): (Vec<_>, Vec<_>) = std::mem::take(&mut self.loading)
                    .into_iter()
                    .partition(|(lane, ..)| lanes.binary_search(lane).is_ok());
                self.loading = left;
                arrived.into_iter().for_each(|(lane, register, bits)| self.write(register, lane, bits));
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
                        return Err(Trap::failure(step, format!("there is no barrier at {at:#x}")));
                    }
                    for one in &mut self.tensors[block].under_way {
                        one.barrier.get_or_insert(at);
                    }
                }
                Ok(())
            }
        }
    }

    fn block_of(&self, lane: u32) -> usize {
        lane as usize / self.block_lanes
    }

    fn at(&self, address: Address, lane: u32) -> u64 {
        self.value(address.base, lane).wrapping_add_signed(address.offset)
    }

    /// Lets the multiplies that were committed to a barrier arrive there.
    fn arrive(&mut self, step: &Step, block: usize, at: u64) -> Result<(), Trap> {
        let tensor = &mut self.tensors[block];
        let barrier = tensor.barriers.get_mut(&at);
        let barrier = barrier.ok_or_else(|| Trap::failure(step, format!("there is no barrier at {at:#x}")))?;
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
            for (index, bits) in (0..).zip(one.d) {
                if let Some(cell) = tensor.cell(index / one.n, one.column + index % one.n) {
                    tensor.cells[cell] = bits as u32;
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
            // Not at 0 where there is room, so that a forgotten base is found.
            let start = COLUMNS - columns;
            self.tensors[block].allocated = Some((start, columns));
            self.tensors[block].cells = vec![FRESH; (LANES * COLUMNS) as usize];
            let at = self.at(slot, first);
            let offset = at.checked_sub(SHARED_BASE).map(|offset| offset as usize);
            let room = offset.and_then(|offset| self.shared[block].get_mut(offset..offset + 4));
            let room = room.ok_or_else(|| Trap::failure(step, format!("{at:#x} is outside shared memory")))?;
            room.copy_from_slice(&start.to_le_bytes());
            (first..first + 32).for_each(|lane| self.unsynchronised[lane as usize] = true);
        }
        Ok(())
    }

    /// Visits the cells that each lane of a warp reaches: its own lane, and so many columns.
    fn access(
        &mut self,
        step: &Step,
        lanes: &[u32],
        address: Address,
        columns: usize,
        visit: impl Fn(&mut Self, u32, usize, usize),
    ) -> Result<(), Trap> {
        for first in self.together(step, lanes, 32)? {
            let start = self.at(address, first) as u32;
            // A warp reaches a quarter of the lanes (PTX ISA 8.7, 9.7.16.8.1).
            let quarter = first % self.block_lanes as u32 / 32 % 4 * 32;
            if start >> 16 != quarter {
                let text =
                    format!("address {start:#x} begins in lane {}; this warp's lanes begin at {quarter}", start >> 16);
                return Err(Trap::failure(step, text));
            }
            for lane in first..first + 32 {
                if self.at(address, lane) as u32 != start {
                    return Err(Trap::failure(step, "the threads of a warp have different addresses"));
                }
                for index in 0..columns {
                    let column = (start & 0xffff) + index as u32;
                    let cell = self.tensors[self.block_of(lane)].cell(quarter + lane % 32, column);
                    let cell = cell.ok_or_else(|| {
                        Trap::failure(step, format!("column {column} of tensor memory was not allocated"))
                    })?;
                    visit(self, lane, index, cell);
                }
            }
        }
        Ok(())
    }

    fn tensor_multiply(&mut self, step: &Step, multiply: &TensorMultiply, lane: u32) -> Result<(), Trap> {
        self.check_shared(step, lane)?;
        let block = self.block_of(lane);
        let of_block = block * self.block_lanes..(block + 1) * self.block_lanes;
        if self.unstored[of_block].contains(&true) {
            return Err(Trap::failure(step, "tensor memory was written and no `tcgen05.wait::st` followed"));
        }
        let descriptor = self.value(multiply.descriptor, lane) as u32;
        let id = operation(multiply.kind, descriptor).map_err(|text| Trap::failure(step, text))?;
        let (n, k) = (id.shape.n, id.shape.k);
        let start = self.at(multiply.d, lane) as u32;
        if start >> 16 != 0 {
            return Err(Trap::failure(step, format!("D at {start:#x} does not begin in lane 0")));
        }
        let adds = self.value(multiply.adds, lane) != 0;
        let tensor = &self.tensors[block];
        let mut c = vec![0; (LANES * n) as usize];
        for (index, bits) in (0..).zip(&mut c) {
            let cell = tensor.cell(index / n, start + index % n);
            let cell = cell.ok_or_else(|| Trap::failure(step, "D reaches beyond what was allocated"))?;
            if adds {
                *bits = u64::from(tensor.cells[cell]) & id.c.mask();
            }
        }
        let matrix = |source, lines: u32, format: Format, row: fn(&Self, u32) -> u32| {
            let descriptor = self.value(source, lane);
            // Bits 46 to 48 hold 1 in this generation (PTX ISA 8.7, 9.7.16.4.1).
            if descriptor >> 46 & 7 != 1 {
                return Err(Trap::failure(step, format!("descriptor {descriptor:#x} has not 1 in bits 46 to 48")));
            }
            let mut elements = vec![0; (lines * k) as usize];
            for (line, column) in (0..lines).flat_map(|line| (0..k).map(move |column| (line, column))) {
                let bits = self.shared_element(step, descriptor & !(7 << 46), lane, (line, column), format.bits())?;
                elements[(row(self, line) * k + column) as usize] = bits;
            }
            Ok(elements)
        };
        let a = matrix(multiply.a, LANES, id.a, |wave, row| wave.launch.unit.row_of_a(row))?;
        let b = matrix(multiply.b, n, id.b, |_, column| column)?;
        let d = self.launch.unit.product(&id, &a, &b, &c).map_err(|error| Trap::failure(step, error.to_string()))?;
        self.tensors[block].under_way.push(UnderWay { barrier: None, asked: false, column: start, n, d });
        Ok(())
    }
}

/// The operation of an instruction descriptor (PTX ISA 8.7, 9.7.16.4.2, table 44): bit 3 saturates, 4 and 5 the format
/// of D, 7 to 9 that of A, 10 to 12 that of B, 17 to 22 n/8, 24 to 28 m/16; the others sparsity, signs and transposition.
fn operation(kind: TensorKind, descriptor: u32) -> Result<OperationId, String> {
    let wrong =
        || format!("instruction descriptor {descriptor:#x} is none of {kind:?} that the test double understands");
    let field = |low: u32, bits: u32| descriptor >> low & ((1 << bits) - 1);
    let understood = 0b1011_1000 | 0b11 << 4 | 0b11_1111 << 7 | 0b11_1111 << 17 | 0b1_1111 << 24;
    if descriptor & !understood != 0 || field(24, 5) != 8 || field(17, 6) == 0 || field(17, 6) > 32 {
        return Err(wrong());
    }
    let operand = |code: u32| match (kind, code) {
        (TensorKind::F16, 0) => Some(Format::F16),
        (TensorKind::F16, 1) => Some(Format::BF16),
        (TensorKind::Tf32, 2) => Some(Format::TF32),
        (TensorKind::F8F6F4, 0) => Some(Format::E4M3),
        (TensorKind::F8F6F4, 1) => Some(Format::E5M2),
        (TensorKind::I8, 0) => Some(Format::U8),
        (TensorKind::I8, 1) => Some(Format::S8),
        _ => None,
    };
    let (a, b) = (operand(field(7, 3)).ok_or_else(wrong)?, operand(field(10, 3)).ok_or_else(wrong)?);
    let d = match (kind, field(4, 2)) {
        (TensorKind::I8, 2) => Format::S32,
        (TensorKind::F16 | TensorKind::F8F6F4, 0) => Format::F16,
        (TensorKind::F16 | TensorKind::Tf32 | TensorKind::F8F6F4, 1) => Format::F32,
        _ => return Err(wrong()),
    };
    if (a != b && kind == TensorKind::F16) || (field(3, 1) == 1 && kind != TensorKind::I8) {
        return Err(wrong());
    }
    let id = OperationId::new("tcgen05", (128, field(17, 6) * 8, 256 / a.bits()), d, a, b, d);
    Ok(if field(3, 1) == 1 { id.with("satfinite") } else { id })
}
