//! Loads and stores of a wave.

use super::{launch::Trap, plan::Registers, wave::Wave};
use crate::ptx::{Address, Source, Space, Step, Type};

/// The space, type and address of a load or store.
type Access = (Space, Type, Address);

impl Wave<'_> {
    pub(super) fn load(&mut self, step: &Step, lanes: &[u32], access: Access, into: &[usize]) -> Result<(), Trap> {
        let (space, kind, _) = access;
        let size = kind.bytes();
        let len = size * into.len();
        if self.load_from_one_allocation(lanes, access, into).is_some() {
            return Ok(());
        }
        for lane in lanes {
            let at = self.checked_address(step, *lane, access.2, len)?;
            let mut buffer = [0; 16];
            buffer[..len].copy_from_slice(self.bytes(step, space, *lane, at, len)?);
            for (register, part) in into.iter().zip(buffer.chunks(size)) {
                let mut word = [0; 8];
                word[..size].copy_from_slice(part);
                self.write(*register, *lane, self.widened(*register, kind.extend(u64::from_le_bytes(word))));
            }
        }
        Ok(())
    }

    /// Fast path: all lanes load one or more 32-bit words from one allocation. `None` if it does not apply; the slow
    /// path then reports errors, if any.
    fn load_from_one_allocation(&mut self, lanes: &[u32], access: Access, into: &[usize]) -> Option<()> {
        let (Space::Global, Type { bits: 32, .. }, address) = access else { return None };
        let Source::Register(base) = address.base else { return None };
        let is_word = |into: &usize| self.launch.kernel.register_masks[*into] == u64::from(u32::MAX);
        if !into.iter().all(is_word) {
            return None;
        }
        let len = 4 * into.len();
        let first = self.register(base, *lanes.first()?).wrapping_add_signed(address.offset);
        let (start, bytes) = self.memory.allocation(first, &mut self.hint)?;
        for lane in lanes {
            let at = self.registers[base * self.lanes + *lane as usize].wrapping_add_signed(address.offset);
            let offset = aligned_offset(at, start, len)?;
            let words = bytes.get(offset..offset + len)?;
            for (into, word) in into.iter().zip(words.chunks_exact(4)) {
                let word = u32::from_le_bytes(*word.first_chunk()?);
                self.registers[into * self.lanes + *lane as usize] = u64::from(word);
            }
        }
        Some(())
    }

    /// The same for stores.
    fn store_to_one_allocation(&mut self, lanes: &[u32], access: Access, from: &[Source]) -> Option<()> {
        let (Space::Global, Type { bits: 32, .. }, address) = access else { return None };
        let (Source::Register(base), [Source::Register(from)]) = (address.base, from) else { return None };
        let first = self.register(base, *lanes.first()?).wrapping_add_signed(address.offset);
        let (start, bytes) = self.memory.allocation(first, &mut self.hint)?;
        for lane in lanes {
            let at = self.registers[base * self.lanes + *lane as usize].wrapping_add_signed(address.offset);
            let word = self.registers[from * self.lanes + *lane as usize] as u32;
            *bytes.get_mut(aligned_offset(at, start, 4)?..)?.first_chunk_mut()? = word.to_le_bytes();
        }
        Some(())
    }

    pub(super) fn store(&mut self, step: &Step, lanes: &[u32], access: Access, from: &[Source]) -> Result<(), Trap> {
        let (space, kind, _) = access;
        let size = kind.bytes();
        let len = size * from.len();
        if self.store_to_one_allocation(lanes, access, from).is_some() {
            return Ok(());
        }
        for lane in lanes {
            let at = self.checked_address(step, *lane, access.2, len)?;
            let mut buffer = [0; 16];
            for (part, source) in buffer.chunks_mut(size).zip(from) {
                part.copy_from_slice(&self.value(*source, *lane).to_le_bytes()[..size]);
            }
            self.bytes(step, space, *lane, at, len)?.copy_from_slice(&buffer[..len]);
            if space == Space::Shared {
                self.unfenced[*lane as usize] = true;
                self.unsynchronised[*lane as usize] = true;
            }
        }
        Ok(())
    }
}

/// The offset of an access in its allocation, unless it is misaligned or before the start.
#[inline]
fn aligned_offset(at: u64, start: u64, len: usize) -> Option<usize> {
    if at.is_multiple_of(len as u64) { usize::try_from(at.checked_sub(start)?).ok() } else { None }
}
