//! The common part of the kernels of whole matrices: blocks of D, the address of each, and operands in wide words.
//!
//! The kernels are `tiles(a, b, c, d, steps, across, down, count)`: `down` × `across` blocks of D, `steps` operations
//! along k, k ascending, the sum of one being C of the next. Operands are ordered as [`Order`](super::Order) describes;
//! those of warps are also arranged in the wide words of [`Wide`]. A thread block computes a patch of neighbouring
//! blocks at a time, `count` patches in a loop over the grid. The warps of a patch read the same rows of A and columns
//! of B, which the multiprocessor's cache then holds.

use mxprobe_api::OperationId;

use crate::ptx::layout::Layout;
use crate::ptx::text::{Body, Kernel};

/// A block of D that one warp or thread block computes: groups of tiles, one below the other, and tiles side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Block {
    /// The number of groups of tiles, one below the other.
    pub down: usize,
    /// The number of tiles side by side.
    pub across: usize,
}

impl Block {
    /// The least number of blocks that a multiprocessor computes in parallel: one per warp for the four that it
    /// schedules, or one.
    pub(super) fn at_once(self, id: &OperationId) -> usize {
        if id.family == "wgmma" { 1 } else { 4 }
    }
}

/// A kernel of whole matrices.
pub struct ProductKernel {
    /// The text, and the number of threads in a block.
    pub kernel: Kernel,
    /// The blocks of D that a thread block computes at a time.
    pub patch: Block,
    /// The arrangement of a step of A in memory.
    pub a: Wide,
    /// The arrangement of a step of B.
    pub b: Wide,
}

/// Registers of a step that a thread loads with one instruction: they are adjacent in memory, lane after lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wide {
    /// The number of registers that each lane loads for one step.
    pub(super) registers: usize,
    /// The number of bytes in a register.
    pub(super) bytes: usize,
    /// The number of registers in one load, which takes at most 16 bytes.
    pub(super) at_once: usize,
}

const LANES: usize = 32;

impl Wide {
    /// The widest loads for this many fragments of a warp's operand.
    pub(super) fn new(layout: &Layout, fragments: usize) -> Self {
        let (registers, bytes) = (fragments * layout.registers(LANES), layout.register_bytes());
        let fits = |at_once: &usize| at_once * bytes <= 16 && registers.is_multiple_of(*at_once);
        Self { registers, bytes, at_once: [4, 2].into_iter().find(fits).unwrap_or(1) }
    }

    /// An operand that stays as it is packed.
    pub(super) const fn none() -> Self {
        Self { registers: 1, bytes: 1, at_once: 1 }
    }

    /// Makes registers that are loaded together adjacent: in each step, first those of lane 0, then those of lane 1.
    #[must_use]
    pub fn arrange(self, packed: Vec<u8>) -> Vec<u8> {
        if self.at_once == 1 {
            return packed;
        }
        let line = LANES * self.bytes;
        let mut arranged = Vec::with_capacity(packed.len());
        for together in packed.chunks_exact(self.at_once * line) {
            for lane in (0..line).step_by(self.bytes) {
                let of_lane = (0..self.at_once).map(|at| &together[at * line + lane..][..self.bytes]);
                of_lane.for_each(|register| arranged.extend_from_slice(register));
            }
        }
        arranged
    }
}

pub(super) const PARAMETERS: [&str; 7] = ["a", "b", "c", "d", "steps", "across", "down"];

/// The number of patches, one below the other, that are computed before those next to them. Concurrent patches then
/// read few rows and few columns, which the device's cache holds.
const PATCHES_DOWN: usize = 8;

/// Reads the lengths and begins the loop over patches, up to where `%row` and `%column` hold the first block of patch
/// `%group`.
pub(super) fn patch_loop(body: &mut Body, patch: Block) {
    body.lines(
        ".reg .b64 %length, %at_a, %at_b;
        .reg .b32 %steps, %across, %down, %row, %column, %rest;
        .reg .b32 %group, %stride, %count, %patches_across, %patches_down, %width, %height, %part;
        .reg .pred %more;",
    );
    for name in ["steps", "across", "down"] {
        body.line(format!("ld.param.u64 %length, [{name}];"));
        body.line(format!("cvt.u32.u64 %{name}, %length;"));
    }
    for (name, size) in [("across", patch.across), ("down", patch.down)] {
        body.line(format!("add.u32 %patches_{name}, %{name}, {};", size - 1));
        body.line(format!("div.u32 %patches_{name}, %patches_{name}, {size};"));
    }
    body.lines(
        "ld.param.u32 %count, [count];
        mov.u32 %group, %ctaid.x;
        mov.u32 %stride, %nctaid.x;
        setp.lt.u32 %more, %group, %count;
        @!%more bra finish;",
    );
    body.label("next");
    // Bands of this many rows of patches, column after column.
    body.line(format!("mul.lo.u32 %width, %patches_across, {PATCHES_DOWN};"));
    body.lines(
        "div.u32 %row, %group, %width;
        mul.lo.u32 %part, %row, %width;
        sub.u32 %part, %group, %part;",
    );
    body.line(format!("mul.lo.u32 %row, %row, {PATCHES_DOWN};"));
    body.line("sub.u32 %height, %patches_down, %row;");
    body.line(format!("min.u32 %height, %height, {PATCHES_DOWN};"));
    body.lines(
        "div.u32 %column, %part, %height;
        mul.lo.u32 %width, %column, %height;
        sub.u32 %part, %part, %width;
        add.u32 %row, %row, %part;",
    );
    body.line(format!("mul.lo.u32 %row, %row, {};", patch.down));
    body.line(format!("mul.lo.u32 %column, %column, {};", patch.across));
}

/// Continues with the next patch, or ends.
pub(super) fn patch_loop_end(body: &mut Body) {
    body.lines(
        "add.u32 %group, %group, %stride;
        setp.lt.u32 %more, %group, %count;
        @%more bra next;",
    );
    body.label("finish");
    body.line("ret;");
}

/// Computes where the rows of A and the columns of B for the block at `%row` and `%column` begin; a step takes `a`
/// bytes of A and `b` bytes of B. `%part` becomes the block's index among the blocks of C and D.
pub(super) fn places(body: &mut Body, a: usize, b: usize) {
    for (side, line, bytes) in [('a', "row", a), ('b', "column", b)] {
        body.line(format!("mul.wide.u32 %at_{side}, %{line}, %steps;"));
        body.line(format!("mad.lo.u64 %at_{side}, %at_{side}, {bytes}, %p_{side};"));
    }
    body.line("mad.lo.u32 %part, %row, %across, %column;");
    body.line("mov.u32 %rest, %steps;");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_that_are_loaded_together_lie_side_by_side() {
        let wide = Wide { registers: 4, bytes: 4, at_once: 2 };
        let packed: Vec<u8> = (0..4u32)
            .flat_map(|register| (0..32).flat_map(move |lane| (register * 100 + lane).to_le_bytes()))
            .collect();
        let arranged = wide.arrange(packed.clone());
        let words: Vec<u32> = arranged.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
        assert_eq!(words[..4], [0, 100, 1, 101]);
        assert_eq!(words[64..68], [200, 300, 201, 301]);
        assert_eq!(Wide::none().arrange(packed.clone()), packed);
    }
}
