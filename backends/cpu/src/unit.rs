//! The blocking of whole-matrix products for a unit.

use crate::{amx::Tiles, pack::ROW_BYTES};

/// Multiplies a block: `steps` steps along k. `a` is the block's rows of A, `a_stride` bytes apart (for AMX, two tiles for
/// each step, one step after another), a step of B is vectors of 16 groups of consecutive k (for AMX, two tiles); `c` holds
/// C and `d` takes D, row-major, their rows `stride` bytes apart. Both may be the same memory.
///
/// # Safety
/// The instruction is usable in this process, `steps` is not 0, and the memory has the length that this implies. For AMX,
/// the tiles of this thread are configured ([`Tiles`]).
pub(crate) type Kernel =
    unsafe fn(steps: usize, a: *const u8, a_stride: usize, b: *const u8, c: *const u8, d: *mut u8, stride: usize);

/// The blocking for a unit, and the kernel that multiplies a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unit {
    /// Rows of a block.
    pub(crate) rows: usize,
    /// Columns of a block.
    pub(crate) columns: usize,
    /// Bytes of consecutive k that one step takes from a row of A: 4 for a dot instruction, 64 for a tile.
    pub(crate) step_bytes: usize,
    /// Steps before the loop moves on to the next columns: few enough that a block's B stays in the second-level cache.
    pub(crate) stretch: usize,
    /// Blocks of rows that share a block of B while it is cached.
    pub(crate) group: usize,
    pub(crate) kernel: Kernel,
    /// Configures the tiles of a thread, if the kernel needs them.
    ///
    /// # Safety
    /// The instruction is usable in this process.
    pub(crate) configure: Option<unsafe fn() -> Tiles>,
}

/// Bytes of a cache line.
pub(crate) const LINE_BYTES: usize = 64;

/// Bytes of a group: the consecutive k that contribute to one 32-bit element in one instruction.
pub(crate) const GROUP: usize = 4;

impl Unit {
    pub(crate) const fn dots(kernel: Kernel) -> Self {
        Self { rows: 6, columns: 64, step_bytes: GROUP, stretch: 1024, group: 16, kernel, configure: None }
    }

    pub(crate) const fn tiles(kernel: Kernel) -> Self {
        let configure: Option<unsafe fn() -> Tiles> = Some(Tiles::configure);
        Self { rows: 32, columns: 32, step_bytes: ROW_BYTES, stretch: 64, group: 8, kernel, configure }
    }

    /// Whether its operands are tiles.
    pub(crate) fn has_tiles(self) -> bool {
        self.step_bytes == ROW_BYTES
    }
}
