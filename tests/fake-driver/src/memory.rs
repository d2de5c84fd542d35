//! The device's memory: allocations with exact bounds and unmapped gaps between them.

use crate::status::Status;

/// The first address of an allocation: far from all host addresses, so that the two cannot be confused.
const FIRST_ADDRESS: u64 = 0x0000_0b00_0000_0000;
/// Addresses are multiples of this, as the driver's are.
const ALIGNMENT: u64 = 512;
/// Addresses between two allocations that belong to neither.
const GAP: u64 = 1 << 16;
/// The content of fresh memory.
const FRESH: u8 = 0xcd;

/// One allocation.
#[derive(Debug)]
struct Block {
    address: u64,
    bytes: Vec<u8>,
}

/// All allocations, by address.
#[derive(Debug)]
pub(crate) struct Memory {
    blocks: Vec<Block>,
    next: u64,
    capacity: usize,
}

impl Memory {
    /// Creates memory of this many bytes.
    pub(crate) fn new(capacity: usize) -> Self {
        Self { blocks: Vec::new(), next: FIRST_ADDRESS, capacity }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    pub(crate) fn free_bytes(&self) -> usize {
        self.capacity - self.blocks.iter().map(|block| block.bytes.len()).sum::<usize>()
    }

    /// Allocates memory, whose bytes are not zero.
    pub(crate) fn allocate(&mut self, len: usize) -> Result<u64, Status> {
        if len == 0 {
            return Err(Status::INVALID_VALUE);
        }
        if len > self.free_bytes() {
            return Err(Status::OUT_OF_MEMORY);
        }
        let address = self.next;
        self.blocks.push(Block { address, bytes: vec![FRESH; len] });
        self.next = (address + len as u64 + GAP).next_multiple_of(ALIGNMENT);
        Ok(address)
    }

    pub(crate) fn release(&mut self, address: u64) -> Result<(), Status> {
        let at =
            self.blocks.binary_search_by_key(&address, |block| block.address).map_err(|_| Status::INVALID_VALUE)?;
        self.blocks.remove(at);
        Ok(())
    }

    /// The `len` bytes at `address`, which must be in one allocation; `hint` remembers which one.
    pub(crate) fn bytes(&mut self, address: u64, len: usize, hint: &mut usize) -> Option<&mut [u8]> {
        let inside = |block: &Block| {
            let offset = usize::try_from(address.checked_sub(block.address)?).ok()?;
            (offset.checked_add(len)? <= block.bytes.len()).then_some(offset)
        };
        if let Some(offset) = self.blocks.get(*hint).and_then(inside) {
            return self.blocks[*hint].bytes.get_mut(offset..offset + len);
        }
        let after = self.blocks.partition_point(|block| block.address <= address);
        *hint = after.checked_sub(1)?;
        let offset = inside(&self.blocks[*hint])?;
        self.blocks[*hint].bytes.get_mut(offset..offset + len)
    }

    /// The start and the bytes of the allocation that contains an address.
    pub(crate) fn allocation(&mut self, address: u64, hint: &mut usize) -> Option<(u64, &mut [u8])> {
        self.bytes(address, 1, hint)?;
        let block = &mut self.blocks[*hint];
        Some((block.address, &mut block.bytes))
    }

    /// As [`bytes`](Self::bytes), for copies by the host.
    pub(crate) fn span(&mut self, address: u64, len: usize) -> Result<&mut [u8], Status> {
        if len == 0 {
            return Ok(&mut []);
        }
        self.bytes(address, len, &mut 0).ok_or(Status::INVALID_VALUE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_has_to_lie_in_one_allocation() {
        let mut memory = Memory::new(1 << 20);
        let first = memory.allocate(100).unwrap();
        let second = memory.allocate(8).unwrap();
        let mut hint = 0;
        assert!(memory.bytes(first + 96, 4, &mut hint).is_some());
        assert!(memory.bytes(first + 97, 4, &mut hint).is_none());
        assert!(memory.bytes(second, 8, &mut hint).is_some());
        assert!(memory.bytes(first.wrapping_sub(1), 1, &mut hint).is_none());
        assert!(memory.bytes(u64::MAX, 8, &mut hint).is_none());
        memory.release(first).unwrap();
        assert!(memory.bytes(first, 4, &mut hint).is_none());
        assert!(memory.bytes(second, 8, &mut hint).is_some());
        assert_eq!(memory.release(first), Err(Status::INVALID_VALUE));
    }

    #[test]
    fn more_than_there_is_cannot_be_had() {
        let mut memory = Memory::new(1000);
        let address = memory.allocate(600).unwrap();
        assert_eq!(memory.allocate(600), Err(Status::OUT_OF_MEMORY));
        memory.release(address).unwrap();
        assert!(memory.allocate(600).is_ok());
    }
}
