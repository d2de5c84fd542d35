//! `wgmma`: 128 threads, operands in shared memory through descriptors, results that arrive only when waited for.

use mxprobe_api::Format;

use super::{fragments, launch::Trap, plan::Registers, under_way::GroupResult, unit::Product, wave::Wave};
use crate::ptx::{GroupMultiply, GroupOperand, Instruction, SHARED_BASE, Source, Step};

impl Wave<'_> {
    pub(super) fn group(&mut self, step: &Step, lanes: &[u32]) -> Result<(), Trap> {
        for first in self.together(step, lanes, 128)? {
            let index = first as usize / 128;
            match &step.instruction {
                Instruction::GroupFence => self.groups[index].fenced = true,
                Instruction::GroupCommit => {
                    let group = &mut self.groups[index];
                    let commit = group.committed;
                    group.committed += 1;
                    group.under_way.iter_mut().for_each(|one| {
                        one.commit.get_or_insert(commit);
                    });
                }
                Instruction::GroupWait(pending) => self.wait(first, u64::from(*pending)),
                Instruction::GroupMultiply(multiply) => self.group_multiply(step, multiply, first)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Writes the results of all but the latest `pending` committed groups to their registers.
    fn wait(&mut self, first: u32, pending: u64) {
        let group = &mut self.groups[first as usize / 128];
        let arrives_before = group.committed.saturating_sub(pending);
        let (arrived, left) = std::mem::take(&mut group.under_way)
            .into_iter()
            .partition(|one| one.commit.is_some_and(|commit| commit < arrives_before));
        group.under_way = left;
        let arrived: Vec<GroupResult> = arrived;
        for one in arrived {
            for (register, values) in one.registers.iter().zip(one.values.chunks(128)) {
                for (thread, bits) in (0..).zip(values) {
                    self.write(*register, first + thread, *bits);
                }
            }
        }
    }

    fn group_multiply(&mut self, step: &Step, multiply: &GroupMultiply, first: u32) -> Result<(), Trap> {
        let group = &self.groups[first as usize / 128];
        if !group.fenced {
            return Err(Trap::failure(step, "no `wgmma.fence` before the first `wgmma.mma_async`"));
        }
        self.check_shared(step, first)?;
        let id = &multiply.id;
        let a = self.rows_of_a(step, multiply, first)?;
        let b = self.columns_of_b(step, multiply, first)?;
        let c = self.accumulator(multiply, first);
        let product = Product { a: &a, b: &b, c: &c, scale_a: &[], scale_b: &[] };
        let d = self.launch.unit.product(id, &product).map_err(|error| Trap::failure(step, error.to_string()))?;
        let d = self.launch.unit.flipped(id, self.multiprocessor(first), d);
        let n = id.shape.n;
        let reads = self.read_by(multiply, first);
        let one = GroupResult { commit: None, registers: multiply.d.clone(), values: in_registers(&d, n, id.d), reads };
        self.groups[first as usize / 128].under_way.push(one);
        Ok(())
    }

    /// The ranges of shared memory that a multiply reads through descriptors.
    fn read_by(&self, multiply: &GroupMultiply, first: u32) -> Vec<(u64, u64)> {
        let id = &multiply.id;
        let of_a = match multiply.a {
            GroupOperand::Descriptor(source) => Some((source, id.shape.m)),
            GroupOperand::Registers(_) => None,
        };
        let extent = |(source, lines): (Source, u32)| {
            let [start, leading, stride] = fields(self.value(source, first));
            let (lines, cores) = (u64::from(lines / 8), u64::from(id.shape.k * id.a.bits() / 128));
            (start, start + (lines - 1) * stride + (cores - 1) * leading + 128)
        };
        of_a.into_iter().chain([(multiply.b, id.shape.n)]).map(extent).collect()
    }

    /// Checks that no `wgmma` under way in the block of a lane reads memory that is about to be written.
    pub(super) fn check_not_read(&self, step: &Step, lane: u32, at: u64, len: usize) -> Result<(), Trap> {
        let block = lane as usize / self.block_lanes * self.block_lanes;
        let groups = &self.groups[block / 128..(block + self.block_lanes).div_ceil(128)];
        let mut reads = groups.iter().flat_map(|group| &group.under_way).flat_map(|one| &one.reads);
        if reads.any(|(from, to)| at < *to && *from < at + len as u64) {
            return Err(Trap::failure(step, format!("shared memory at {at:#x} is written while a `wgmma` reads it")));
        }
        Ok(())
    }

    /// Checks that the block's writes to shared memory are visible through a descriptor.
    pub(super) fn check_shared(&self, step: &Step, lane: u32) -> Result<(), Trap> {
        let block = lane as usize / self.block_lanes;
        let of_block = block * self.block_lanes..(block + 1) * self.block_lanes;
        if self.unfenced[of_block.clone()].contains(&true) {
            return Err(Trap::failure(step, "shared memory was written and no `fence.proxy.async` followed"));
        }
        if self.unsynchronised[of_block].contains(&true) {
            return Err(Trap::failure(step, "shared memory was written and no barrier followed"));
        }
        Ok(())
    }

    /// Reads A, row-major.
    fn rows_of_a(&self, step: &Step, multiply: &GroupMultiply, first: u32) -> Result<Vec<u64>, Trap> {
        let id = &multiply.id;
        let (k, bits) = (id.shape.k, id.a.bits());
        let mut a = vec![0; (64 * k) as usize];
        match &multiply.a {
            GroupOperand::Descriptor(source) => {
                let descriptor = self.uniform(step, *source, first)?;
                a = self.shared_lines(step, descriptor, first, (64, k, 128 / bits), bits)?;
                self.launch.unit.misplace_rows(&mut a, k);
            }
            GroupOperand::Registers(registers) => {
                let each = 32 / bits;
                for (thread, i) in (0..128).flat_map(|thread| (0..k / 2).map(move |i| (thread, i))) {
                    let word = self.register(registers[(i / each) as usize], first + thread);
                    let (row, column) = fragments::group_a(bits, k, thread, i)
                        .ok_or_else(|| Trap::failure(step, format!("{id} takes no A in registers")))?;
                    let row = self.launch.unit.row_of_a(row);
                    a[(row * k + column) as usize] = word >> (i % each * bits) & id.a.mask();
                }
            }
        }
        negate(&mut a, id.a, multiply.negate_a);
        Ok(a)
    }

    /// Reads B, column by column.
    fn columns_of_b(&self, step: &Step, multiply: &GroupMultiply, first: u32) -> Result<Vec<u64>, Trap> {
        let id = &multiply.id;
        let descriptor = self.uniform(step, multiply.b, first)?;
        let bits = id.b.bits();
        let mut b = self.shared_lines(step, descriptor, first, (id.shape.n, id.shape.k, 128 / bits), bits)?;
        negate(&mut b, id.b, multiply.negate_b);
        Ok(b)
    }

    /// C, row-major: zeros, or the registers of D with pending results applied.
    fn accumulator(&self, multiply: &GroupMultiply, first: u32) -> Vec<u64> {
        let id = &multiply.id;
        let n = id.shape.n;
        let mut c = vec![0; (64 * n) as usize];
        if self.value(multiply.scale_d, first) == 0 {
            return c;
        }
        let under_way = &self.groups[first as usize / 128].under_way;
        let latest = under_way.iter().rev().find(|one| one.registers == multiply.d);
        let each = 32 / id.d.bits();
        for (thread, i) in (0..128).flat_map(|thread| (0..n / 2).map(move |i| (thread, i))) {
            let index = (i / each) as usize;
            let word = match latest {
                Some(one) => one.values[index * 128 + thread as usize],
                None => self.register(multiply.d[index], first + thread),
            };
            let (row, column) = fragments::group_accumulator(thread, i);
            c[(row * n + column) as usize] = word >> (i % each * id.d.bits()) & id.d.mask();
        }
        c
    }

    /// Reads a descriptor, which must be the same in all 128 threads.
    fn uniform(&self, step: &Step, source: Source, first: u32) -> Result<u64, Trap> {
        let value = self.value(source, first);
        let same = (first..first + 128).all(|lane| self.value(source, lane) == value);
        same.then_some(value).ok_or_else(|| Trap::failure(step, "the threads have different descriptors"))
    }

    /// Reads a matrix in shared memory, line by line: its lines (rows of A, columns of B) run along k. It consists of
    /// core matrices of 8 lines by 16 bytes without swizzle, which are `stride` apart across lines and `leading` apart
    /// along k (PTX ISA 8.7, 9.7.15.5.1.2; bits 0 to 13 of the descriptor are the address, 16 to 29 the leading and 32
    /// to 45 the stride offset, each without its low 4 bits). Each 16 bytes hold `in_sixteen_bytes` elements of `bits`
    /// bits, from the lowest bit on.
    pub(super) fn shared_lines(
        &self,
        step: &Step,
        descriptor: u64,
        first: u32,
        (lines, k, in_sixteen_bytes): (u32, u32, u32),
        bits: u32,
    ) -> Result<Vec<u64>, Trap> {
        let [start, leading, stride] = fields(descriptor);
        if descriptor >> 49 != 0 {
            return Err(Trap::failure(step, format!("descriptor {descriptor:#x} has a swizzle or a base offset")));
        }
        let memory = &self.shared[first as usize / self.block_lanes];
        let mask = u128::MAX >> (128 - bits);
        let mut elements = Vec::with_capacity((lines * k) as usize);
        for (line, core) in (0..lines).flat_map(|line| (0..k / in_sixteen_bytes).map(move |core| (line, core))) {
            let at = start + u64::from(line / 8) * stride + u64::from(core) * leading + u64::from(line % 8) * 16;
            let offset = at.checked_sub(SHARED_BASE).and_then(|offset| usize::try_from(offset).ok());
            let bytes = offset.and_then(|offset| memory.get(offset..)?.first_chunk());
            let bytes = bytes.ok_or_else(|| {
                Trap::failure(step, format!("descriptor {descriptor:#x} leads to {at:#x}, outside shared memory"))
            })?;
            let sixteen = u128::from_le_bytes(*bytes);
            elements.extend((0..in_sixteen_bytes).map(|at| (sixteen >> (at * bits) & mask) as u64));
        }
        Ok(elements)
    }
}

/// The address of a descriptor, its leading and its stride offset, in bytes.
fn fields(descriptor: u64) -> [u64; 3] {
    [0, 16, 32].map(|low| (descriptor >> low & 0x3fff) << 4)
}

fn negate(elements: &mut [u64], format: Format, negate: bool) {
    if negate {
        elements.iter_mut().for_each(|bits| *bits ^= 1 << (format.bits() - 1));
    }
}

/// Packs D into the registers of 128 threads.
fn in_registers(d: &[u64], n: u32, format: Format) -> Vec<u64> {
    let each = 32 / format.bits();
    let mut values = vec![0; (n / 2 / each * 128) as usize];
    for (thread, i) in (0..128).flat_map(|thread| (0..n / 2).map(move |i| (thread, i))) {
        let (row, column) = fragments::group_accumulator(thread, i);
        values[(i / each * 128 + thread) as usize] |= d[(row * n + column) as usize] << (i % each * format.bits());
    }
    values
}
