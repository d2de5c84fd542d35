//! `wmma`: loads and stores of fragments, whose layout programs must not know.

use super::{
    fragments::{self, Place},
    launch::Trap,
    plan::Registers,
    wave::Wave,
};
use crate::{
    ptx::{Layout, MatrixAccess, Space, Step},
    status::Status,
};

/// A matrix in memory, on which all threads of a warp agree.
struct Matrix {
    start: u64,
    stride: u64,
}

impl Wave<'_> {
    pub(super) fn load_matrix(&mut self, step: &Step, access: &MatrixAccess, lanes: &[u32]) -> Result<(), Trap> {
        let bits = access.format.bits();
        let (places, len) = (places(access), (bits / 8).max(1) as usize);
        for first in self.together(step, lanes, 32)? {
            let matrix = self.matrix(step, access, first)?;
            let mut words = vec![0; access.registers.len() * 32];
            for place in &places {
                let (at, shift) = matrix.element(access, place.index);
                let bytes = self.bytes(step, access.space, first, at, len)?;
                let element = bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)) >> shift;
                let element = element & (u64::MAX >> (64 - bits));
                words[(place.register * 32 + place.lane) as usize] |= element << place.shift;
            }
            for (register, words) in access.registers.iter().zip(words.chunks(32)) {
                for (lane, word) in (first..).zip(words) {
                    self.write(*register, lane, *word);
                }
            }
        }
        Ok(())
    }

    pub(super) fn store_matrix(&mut self, step: &Step, access: &MatrixAccess, lanes: &[u32]) -> Result<(), Trap> {
        let (places, len) = (places(access), (access.format.bits() / 8).max(1) as usize);
        for first in self.together(step, lanes, 32)? {
            let matrix = self.matrix(step, access, first)?;
            let (rows, columns) = access.sizes();
            let line = if access.layout == Layout::Row { columns } else { rows };
            if matrix.stride < u64::from(line) {
                let text = format!("lines of {line} elements are stored {} apart: they overlap", matrix.stride);
                return Err(Trap::failure(step, text));
            }
            for place in &places {
                let word = self.register(access.registers[place.register as usize], first + place.lane);
                let (at, _) = matrix.element(access, place.index);
                let bytes = self.bytes(step, access.space, first, at, len)?;
                bytes.copy_from_slice(&(word >> place.shift).to_le_bytes()[..len]);
            }
            if access.space == Space::Shared {
                for lane in first as usize..first as usize + 32 {
                    self.unfenced[lane] = true;
                    self.unsynchronised[lane] = true;
                }
            }
        }
        Ok(())
    }

    /// Checks that all threads have the same matrix, and that each of its rows (columns) begins at a multiple of the
    /// fragment's bytes (PTX ISA 9.0, 9.7.14.4.2).
    fn matrix(&self, step: &Step, access: &MatrixAccess, first: u32) -> Result<Matrix, Trap> {
        let of = |lane: u32| Matrix {
            start: self.value(access.address.base, lane).wrapping_add_signed(access.address.offset),
            stride: self.value(access.stride, lane),
        };
        let matrix = of(first);
        let same = |lane| (of(lane).start, of(lane).stride) == (matrix.start, matrix.stride);
        if !(first..first + 32).all(same) {
            return Err(Trap::failure(step, "the threads of a warp have different matrices"));
        }
        let bits = access.format.bits();
        let fragment = access.registers.len() as u64 * u64::from(bits.max(32) / 8);
        let stride_bytes = matrix.stride * u64::from(bits) / 8;
        if !matrix.start.is_multiple_of(fragment) || !stride_bytes.is_multiple_of(fragment) {
            let text = format!(
                "a matrix at {:#x} whose lines are {stride_bytes} bytes apart is not aligned to its fragment of {fragment} bytes",
                matrix.start
            );
            return Err(Trap { status: Status::MISALIGNED_ADDRESS, line: step.line, text });
        }
        Ok(matrix)
    }
}

fn places(access: &MatrixAccess) -> Vec<Place> {
    let (rows, columns) = access.sizes();
    let registers = access.registers.len() as u32;
    fragments::wmma(access.operand, access.layout, access.format.bits(), rows * columns, registers)
}

impl Matrix {
    /// The address of an element, by its row-major index, and its lowest bit there.
    fn element(&self, access: &MatrixAccess, index: u32) -> (u64, u32) {
        let columns = access.sizes().1;
        let (row, column) = (index / columns, index % columns);
        let (line, at) = if access.layout == Layout::Row { (row, column) } else { (column, row) };
        let bit = (u64::from(line) * self.stride + u64::from(at)) * u64::from(access.format.bits());
        (self.start + bit / 8, (bit % 8) as u32)
    }
}
