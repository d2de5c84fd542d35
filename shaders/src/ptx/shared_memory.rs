//! Operands in shared memory: copied there by a block, and described for `wgmma` and `tcgen05`.

use super::layout::Layout;
use super::text::Body;

/// Copies an operand of group `%group` from global to shared memory, 4 bytes per thread at a time.
pub(super) fn copy_to_shared(body: &mut Body, layout: &Layout, pointer: &str, shared: &str, threads: usize) {
    body.line(format!("mul.wide.u32 %at, %group, {};", layout.bytes()));
    body.line(format!("add.s64 %at, %at, {pointer};"));
    let mut done = 0;
    while done < layout.bytes() {
        let left = (layout.bytes() - done) / 4;
        let guard = if left < threads {
            body.line(format!("setp.lt.u32 %copies, %thread, {left};"));
            "@%copies "
        } else {
            ""
        };
        body.line(format!("{guard}ld.global.b32 %word, [%at+{done}];"));
        body.line(format!("{guard}st.shared.b32 [{shared}+{done}], %word;"));
        done += threads * 4;
    }
}

/// The descriptor of a matrix in shared memory without swizzle (PTX ISA 9.0, 9.7.15.5.1.2.2), without its address: core
/// matrices that are adjacent in k are `leading` bytes apart, those that are adjacent in m or n `stride` bytes.
pub(super) fn descriptor(leading: usize, stride: usize) -> u64 {
    (leading as u64 >> 4) << 16 | (stride as u64 >> 4) << 32
}

/// The size of a core matrix in bytes: 8 lines of 16 bytes.
pub(super) const CORE_MATRIX_BYTES: usize = 128;
