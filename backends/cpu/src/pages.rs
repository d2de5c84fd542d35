//! Memory for large matrices: in huge pages, if the system hands them out on request.
//!
//! A page of 4096 bytes costs a fault at its first use: 4096 of them for the D of a product with m = n = 2048.

use crate::unit::LINE_BYTES;

/// The fewest bytes for which it is worth asking: one huge page of 2 MiB lies within, wherever the memory begins.
const FEWEST_BYTES: usize = 4 << 20;

/// An empty vector with room for `len` bytes.
pub(crate) fn room(len: usize) -> Vec<u8> {
    let bytes = Vec::with_capacity(len);
    in_huge_pages(bytes.as_ptr(), len);
    bytes
}

/// `len` bytes of zeros, which are not written if the system hands out clear memory.
pub(crate) fn zeros(len: usize) -> Vec<u8> {
    let bytes = vec![0; len];
    in_huge_pages(bytes.as_ptr(), len);
    bytes
}

/// Where the first cache line begins in memory that is a line longer than what is asked of it, so that no vector and no row
/// of a tile straddles two.
pub(crate) fn first_line(bytes: &[u8]) -> usize {
    bytes.as_ptr().align_offset(LINE_BYTES).min(LINE_BYTES)
}

/// Asks for huge pages. What a system answers changes no byte, so that a refusal is not reported.
#[cfg(target_os = "linux")]
fn in_huge_pages(start: *const u8, len: usize) {
    use rustix::{
        mm::{Advice, madvise},
        param::page_size,
    };
    let before = start.align_offset(page_size());
    if len < FEWEST_BYTES || before >= len {
        return;
    }
    let start = start.wrapping_add(before).cast_mut().cast();
    // SAFETY: the advice concerns whole pages of memory that is ours, and does not change what is in them.
    let _ = unsafe { madvise(start, (len - before) / page_size() * page_size(), Advice::LinuxHugepage) };
}

#[cfg(not(target_os = "linux"))]
fn in_huge_pages(_start: *const u8, _len: usize) {}
