//! Whole matrices: one loop nest for every unit, with operands packed for it and rows shared among threads.
//!
//! D is that of one instruction after another along k, each taking the last one's d as c, so every bit is that of the tiles
//! multiplied one by one: a block of D stays in registers along a stretch of k, and between stretches in memory, where
//! nothing is lost. Edges are padded with +0.

use std::arch::asm;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use mxprobe_api::{Elements, GemmOperands};

use crate::amx::TileConfig;
use crate::pack::{ROW_BYTES, TILE_BYTES};

/// Multiplies a block: `steps` steps along k. A step of A is a group of consecutive k of each row of the block, of B vectors
/// of 16 groups (two tiles of both for AMX); `sums` holds C before and D after, row-major, its rows `stride` bytes apart.
///
/// # Safety
/// The instruction is usable in this process, `steps` is not 0, and the memory is as long as that.
type Kernel = unsafe fn(steps: usize, a: *const u8, b: *const u8, sums: *mut u8, stride: usize);

/// A unit's block of D, and what multiplies it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unit {
    /// Rows of a block.
    rows: usize,
    /// Columns of a block.
    columns: usize,
    /// Bytes of consecutive k that one step takes of a row of A: 4 of a dot instruction, 64 of a tile.
    step_bytes: usize,
    /// Steps that are multiplied before the next columns are: as many as leave a block's B in the first or second level
    /// of the caches.
    stretch: usize,
    /// Blocks of rows that share a block of B while it is there.
    group: usize,
    kernel: Kernel,
}

/// Elements of a vector of sums, and columns of a tile.
const VECTOR: usize = 16;

/// Bytes of a line of the caches.
const LINE_BYTES: usize = 64;

/// Bytes of a group: the consecutive k that go into one element of 32 bits.
const GROUP: usize = 4;

impl Unit {
    pub(crate) const fn dots(kernel: Kernel) -> Self {
        Self { rows: 6, columns: 64, step_bytes: GROUP, stretch: 256, group: 64, kernel }
    }

    pub(crate) const fn tiles(kernel: Kernel) -> Self {
        Self { rows: 32, columns: 32, step_bytes: ROW_BYTES, stretch: 16, group: 8, kernel }
    }

    /// D = A·B + C.
    ///
    /// # Safety
    /// The instruction is usable in this process; the product is a validated one of an operation with 32-bit sums and
    /// operands of 1 or 2 bytes.
    pub(crate) unsafe fn multiply(self, product: &GemmOperands<'_>, threads: usize) -> Elements {
        let GemmOperands { m, n, k, a, b, c, .. } = *product;
        let mut d = c.clone();
        if m == 0 || n == 0 {
            return d;
        }
        // At least one step: an operation with k = 0 is one on zeros and C.
        let row_bytes = k * a.format().storage_bytes();
        let steps = row_bytes.div_ceil(self.step_bytes).max(1);
        let packed_b = PackedB::new(self, b, (k, n), steps, threads);
        // As many groups for each thread, and fewer rows in a group for it.
        let blocks = m.div_ceil(self.rows);
        let threads = threads.clamp(1, blocks);
        let rows = blocks.div_ceil(blocks.div_ceil(self.group).next_multiple_of(threads)) * self.rows;
        let groups: Vec<Mutex<&mut [u8]>> = d.bytes_mut().chunks_mut(rows * n * GROUP).map(Mutex::new).collect();
        let next = AtomicUsize::new(0);
        let work = || {
            let mut packed_a = vec![0; rows * self.stretch * self.step_bytes];
            let mut edge = vec![0; self.rows * self.columns * GROUP];
            while let Some((group, part)) = taken(&next, &groups) {
                let part = &mut **part.lock().expect("no thread panics with it");
                for first in (0..steps).step_by(self.stretch) {
                    let count = self.stretch.min(steps - first);
                    let block_bytes = self.rows * count * self.step_bytes;
                    for (block, packed) in packed_a.chunks_exact_mut(block_bytes).take(rows / self.rows).enumerate() {
                        let from = (group * rows + block * self.rows, first * self.step_bytes);
                        self.pack_a(a.bytes(), (m, row_bytes), from, packed);
                    }
                    for column in 0..n.div_ceil(self.columns) {
                        let of_b = packed_b.stretch(column, first, count);
                        let blocks = part.chunks_mut(self.rows * n * GROUP);
                        for (sums, of_a) in blocks.zip(packed_a.chunks_exact(block_bytes)) {
                            // SAFETY: the caller vouches for the instruction; A and B were packed for this unit and
                            // `count` steps, at least one.
                            unsafe { self.block(count, of_a, of_b, sums, (n, column), &mut edge) };
                        }
                    }
                }
            }
        };
        on_threads(threads, work);
        drop(groups);
        d
    }

    /// One block of D: rows of `n` elements, of which it has those from `column` blocks on. At an edge it is computed beside
    /// D, in full.
    ///
    /// # Safety
    /// As [`Kernel`] says of `count`, `of_a` and `of_b`.
    unsafe fn block(
        self,
        count: usize,
        of_a: &[u8],
        of_b: &[u8],
        sums: &mut [u8],
        (n, column): (usize, usize),
        edge: &mut [u8],
    ) {
        let (stride, first) = (n * GROUP, column * self.columns * GROUP);
        let width = (self.columns * GROUP).min(stride - first);
        let (of_a, of_b) = (of_a.as_ptr(), of_b.as_ptr());
        if sums.len() == self.rows * stride && width == self.columns * GROUP {
            // SAFETY: the caller vouches for the operands; the block's rows, `stride` bytes apart, lie within `sums`.
            unsafe { (self.kernel)(count, of_a, of_b, sums.as_mut_ptr().add(first), stride) };
            return;
        }
        let edge_stride = self.columns * GROUP;
        edge.fill(0);
        for (line, edge) in sums.chunks_exact(stride).zip(edge.chunks_exact_mut(edge_stride)) {
            edge[..width].copy_from_slice(&line[first..][..width]);
        }
        // SAFETY: as above; `edge` is a block by itself.
        unsafe { (self.kernel)(count, of_a, of_b, edge.as_mut_ptr(), edge_stride) };
        for (line, edge) in sums.chunks_exact_mut(stride).zip(edge.chunks_exact(edge_stride)) {
            line[first..][..width].copy_from_slice(&edge[..width]);
        }
    }

    /// Packs steps of a block's rows of A from `row` and byte `at` of k on, +0 beyond the ends. A step is the row groups one
    /// after another: a tile's rows for AMX.
    fn pack_a(self, a: &[u8], (m, row_bytes): (usize, usize), (row, at): (usize, usize), packed: &mut [u8]) {
        packed.fill(0);
        for line in 0..self.rows.min(m.saturating_sub(row)) {
            let bytes = a[(row + line) * row_bytes..][..row_bytes].get(at..).unwrap_or_default();
            match self.step_bytes {
                GROUP => pack_line::<GROUP>(bytes, packed, self.rows, line),
                _ => pack_line::<ROW_BYTES>(bytes, packed, self.rows, line),
            }
        }
    }
}

/// Puts `STEP` bytes of a line at a time where its row is in each step of `rows` rows; the last may be fewer.
fn pack_line<const STEP: usize>(line: &[u8], packed: &mut [u8], rows: usize, row: usize) {
    let (whole, rest) = line.as_chunks::<STEP>();
    let mut steps = packed.chunks_exact_mut(rows * STEP);
    for (bytes, step) in whole.iter().zip(&mut steps) {
        step[row * STEP..][..STEP].copy_from_slice(bytes);
    }
    if let Some(step) = steps.next() {
        step[row * STEP..][..rest.len()].copy_from_slice(rest);
    }
}

/// Packs a block of columns from `left` on: +0 beyond the ends.
fn pack_columns<const SIZE: usize>(unit: Unit, b: &[u8], (k, n): (usize, usize), left: usize, packed: &mut [u8]) {
    const { assert!(SIZE == 1 || SIZE == 2) }
    let per_group = GROUP / SIZE;
    let groups = unit.step_bytes / GROUP;
    let step = unit.columns * unit.step_bytes;
    let columns = unit.columns.min(n - left);
    for group in 0..k.div_ceil(per_group) {
        let (at_step, at_group) = (group / groups, group % groups);
        for (vector, first) in (0..columns).step_by(VECTOR).enumerate() {
            let count = VECTOR.min(columns - first);
            // The rows of consecutive k that share the group.
            let mut rows = [[0u8; 2 * VECTOR]; GROUP];
            for (line, row) in (group * per_group..k).zip(&mut rows[..per_group]) {
                let from = (line * n + left + first) * SIZE;
                if count == VECTOR {
                    // Of a length that the compiler knows.
                    row[..VECTOR * SIZE].copy_from_slice(&b[from..][..VECTOR * SIZE]);
                } else {
                    row[..count * SIZE].copy_from_slice(&b[from..][..count * SIZE]);
                }
            }
            // A tile's rows follow each other; of a dot instruction a tile has one row.
            let place = at_step * step + (vector * groups + at_group) * ROW_BYTES;
            let (words, _) = packed[place..][..ROW_BYTES].as_chunks_mut::<GROUP>();
            for (at, word) in words.iter_mut().enumerate() {
                *word = if SIZE == 1 {
                    [rows[0][at], rows[1][at], rows[2][at], rows[3][at]]
                } else {
                    [rows[0][2 * at], rows[0][2 * at + 1], rows[1][2 * at], rows[1][2 * at + 1]]
                };
            }
        }
    }
}

/// The next of some parts that no thread has had, and its place.
fn taken<'a, T>(next: &AtomicUsize, parts: &'a [T]) -> Option<(usize, &'a T)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    parts.get(at).map(|part| (at, part))
}

/// Does the same on so many threads, this one among them.
fn on_threads(threads: usize, work: impl Fn() + Sync) {
    std::thread::scope(|scope| {
        (1..threads).for_each(|_| drop(scope.spawn(&work)));
        work();
    });
}

/// B as the units read it: for each block of columns, step after step, vectors (rows of a tile) of 16 columns, each with
/// a group of consecutive k.
struct PackedB {
    bytes: Vec<u8>,
    /// Where it begins in them: at a line of the caches, so that no vector lies in two.
    start: usize,
    /// Of one step of a block.
    step: usize,
    steps: usize,
}

impl PackedB {
    fn new(unit: Unit, b: &Elements, (k, n): (usize, usize), steps: usize, threads: usize) -> Self {
        let step = unit.columns * unit.step_bytes;
        let packed_bytes = n.div_ceil(unit.columns) * steps * step;
        let mut bytes = vec![0; packed_bytes + LINE_BYTES];
        let start = bytes.as_ptr().align_offset(LINE_BYTES).min(LINE_BYTES);
        let blocks: Vec<Mutex<&mut [u8]>> =
            bytes[start..][..packed_bytes].chunks_mut(steps * step).map(Mutex::new).collect();
        let next = AtomicUsize::new(0);
        on_threads(threads.min(blocks.len()), || {
            while let Some((at, block)) = taken(&next, &blocks) {
                let mut block = block.lock().expect("no thread panics with it");
                match b.format().storage_bytes() {
                    1 => pack_columns::<1>(unit, b.bytes(), (k, n), at * unit.columns, &mut block),
                    _ => pack_columns::<2>(unit, b.bytes(), (k, n), at * unit.columns, &mut block),
                }
            }
        });
        drop(blocks);
        Self { bytes, start, step, steps }
    }

    fn stretch(&self, block: usize, first: usize, count: usize) -> &[u8] {
        &self.bytes[self.start + (block * self.steps + first) * self.step..][..count * self.step]
    }
}

macro_rules! row {
    ($instruction:literal, $at:literal, $a:literal, $s0:literal, $s1:literal, $s2:literal, $s3:literal) => {
        concat!(
            "vpbroadcastd ",
            $a,
            ", dword ptr [{a} + ",
            $at,
            "]\n",
            $instruction,
            " ",
            $s0,
            ", ",
            $a,
            ", zmm24\n",
            $instruction,
            " ",
            $s1,
            ", ",
            $a,
            ", zmm25\n",
            $instruction,
            " ",
            $s2,
            ", ",
            $a,
            ", zmm26\n",
            $instruction,
            " ",
            $s3,
            ", ",
            $a,
            ", zmm27"
        )
    };
}

macro_rules! dot_block {
    ($name:ident, $instruction:literal) => {
        /// # Safety
        /// As [`Kernel`] says, with [`Unit::dots`].
        #[target_feature(enable = "avx512f")]
        pub(crate) unsafe fn $name(steps: usize, a: *const u8, b: *const u8, sums: *mut u8, stride: usize) {
            // SAFETY: the caller vouches for the instruction and for `steps` steps of 24 bytes of A and 256 of B, and for 6
            // rows of 256 bytes of sums, `stride` bytes apart. A is the second operand and B the third, as where tiles are multiplied one by
            // one; every register that is written is named.
            unsafe {
                asm!(
                    "lea {low}, [{sums} + 2*{stride}]",
                    "add {low}, {stride}",
                    "vmovdqu32 zmm0, [{sums}]",
                    "vmovdqu32 zmm1, [{sums} + 64]",
                    "vmovdqu32 zmm2, [{sums} + 128]",
                    "vmovdqu32 zmm3, [{sums} + 192]",
                    "vmovdqu32 zmm4, [{sums} + {stride}]",
                    "vmovdqu32 zmm5, [{sums} + {stride} + 64]",
                    "vmovdqu32 zmm6, [{sums} + {stride} + 128]",
                    "vmovdqu32 zmm7, [{sums} + {stride} + 192]",
                    "vmovdqu32 zmm8, [{sums} + 2*{stride}]",
                    "vmovdqu32 zmm9, [{sums} + 2*{stride} + 64]",
                    "vmovdqu32 zmm10, [{sums} + 2*{stride} + 128]",
                    "vmovdqu32 zmm11, [{sums} + 2*{stride} + 192]",
                    "vmovdqu32 zmm12, [{low}]",
                    "vmovdqu32 zmm13, [{low} + 64]",
                    "vmovdqu32 zmm14, [{low} + 128]",
                    "vmovdqu32 zmm15, [{low} + 192]",
                    "vmovdqu32 zmm16, [{low} + {stride}]",
                    "vmovdqu32 zmm17, [{low} + {stride} + 64]",
                    "vmovdqu32 zmm18, [{low} + {stride} + 128]",
                    "vmovdqu32 zmm19, [{low} + {stride} + 192]",
                    "vmovdqu32 zmm20, [{low} + 2*{stride}]",
                    "vmovdqu32 zmm21, [{low} + 2*{stride} + 64]",
                    "vmovdqu32 zmm22, [{low} + 2*{stride} + 128]",
                    "vmovdqu32 zmm23, [{low} + 2*{stride} + 192]",
                    ".p2align 5",
                    "2:",
                    "vmovdqu32 zmm24, [{b}]",
                    "vmovdqu32 zmm25, [{b} + 64]",
                    "vmovdqu32 zmm26, [{b} + 128]",
                    "vmovdqu32 zmm27, [{b} + 192]",
                    row!($instruction, "0", "zmm28", "zmm0", "zmm1", "zmm2", "zmm3"),
                    row!($instruction, "4", "zmm29", "zmm4", "zmm5", "zmm6", "zmm7"),
                    row!($instruction, "8", "zmm28", "zmm8", "zmm9", "zmm10", "zmm11"),
                    row!($instruction, "12", "zmm29", "zmm12", "zmm13", "zmm14", "zmm15"),
                    row!($instruction, "16", "zmm28", "zmm16", "zmm17", "zmm18", "zmm19"),
                    row!($instruction, "20", "zmm29", "zmm20", "zmm21", "zmm22", "zmm23"),
                    "add {a}, 24",
                    "add {b}, 256",
                    "sub {steps}, 1",
                    "jnz 2b",
                    "vmovdqu32 [{sums}], zmm0",
                    "vmovdqu32 [{sums} + 64], zmm1",
                    "vmovdqu32 [{sums} + 128], zmm2",
                    "vmovdqu32 [{sums} + 192], zmm3",
                    "vmovdqu32 [{sums} + {stride}], zmm4",
                    "vmovdqu32 [{sums} + {stride} + 64], zmm5",
                    "vmovdqu32 [{sums} + {stride} + 128], zmm6",
                    "vmovdqu32 [{sums} + {stride} + 192], zmm7",
                    "vmovdqu32 [{sums} + 2*{stride}], zmm8",
                    "vmovdqu32 [{sums} + 2*{stride} + 64], zmm9",
                    "vmovdqu32 [{sums} + 2*{stride} + 128], zmm10",
                    "vmovdqu32 [{sums} + 2*{stride} + 192], zmm11",
                    "vmovdqu32 [{low}], zmm12",
                    "vmovdqu32 [{low} + 64], zmm13",
                    "vmovdqu32 [{low} + 128], zmm14",
                    "vmovdqu32 [{low} + 192], zmm15",
                    "vmovdqu32 [{low} + {stride}], zmm16",
                    "vmovdqu32 [{low} + {stride} + 64], zmm17",
                    "vmovdqu32 [{low} + {stride} + 128], zmm18",
                    "vmovdqu32 [{low} + {stride} + 192], zmm19",
                    "vmovdqu32 [{low} + 2*{stride}], zmm20",
                    "vmovdqu32 [{low} + 2*{stride} + 64], zmm21",
                    "vmovdqu32 [{low} + 2*{stride} + 128], zmm22",
                    "vmovdqu32 [{low} + 2*{stride} + 192], zmm23",
                    a = inout(reg) a => _,
                    b = inout(reg) b => _,
                    sums = in(reg) sums,
                    stride = in(reg) stride,
                    low = out(reg) _,
                    steps = inout(reg) steps => _,
                    out("zmm0") _, out("zmm1") _, out("zmm2") _, out("zmm3") _,
                    out("zmm4") _, out("zmm5") _, out("zmm6") _, out("zmm7") _,
                    out("zmm8") _, out("zmm9") _, out("zmm10") _, out("zmm11") _,
                    out("zmm12") _, out("zmm13") _, out("zmm14") _, out("zmm15") _,
                    out("zmm16") _, out("zmm17") _, out("zmm18") _, out("zmm19") _,
                    out("zmm20") _, out("zmm21") _, out("zmm22") _, out("zmm23") _,
                    out("zmm24") _, out("zmm25") _, out("zmm26") _, out("zmm27") _,
                    out("zmm28") _, out("zmm29") _,
                    options(nostack),
                );
            }
        }
    };
}

dot_block!(vdpbf16ps, "vdpbf16ps");
dot_block!(vpdpbusd, "vpdpbusd");
dot_block!(vpdpbusds, "vpdpbusds");
dot_block!(vpdpwssd, "vpdpwssd");
dot_block!(vpdpwssds, "vpdpwssds");

macro_rules! tile_block {
    ($name:ident, $instruction:literal) => {
        /// # Safety
        /// As [`Kernel`] says, with [`Unit::tiles`].
        pub(crate) unsafe fn $name(steps: usize, a: *const u8, b: *const u8, sums: *mut u8, stride: usize) {
            // SAFETY: the caller vouches for the instruction and for `steps` steps of two tiles of A and of B, 1024 bytes
            // each, and for 32 rows of 128 bytes of sums, `stride` bytes apart: each TILELOADD steps 64 bytes a row in A
            // and B, and `stride` in the sums. The tiles are released within the block.
            unsafe {
                asm!(
                    "ldtilecfg [{config}]",
                    "tileloadd tmm0, [{sums} + {stride}*1]",
                    "tileloadd tmm1, [{sums} + {stride}*1 + 64]",
                    "tileloadd tmm2, [{low} + {stride}*1]",
                    "tileloadd tmm3, [{low} + {stride}*1 + 64]",
                    "2:",
                    "tileloadd tmm4, [{a} + {row}*1]",
                    "tileloadd tmm6, [{b} + {row}*1]",
                    "tileloadd tmm7, [{b} + {row}*1 + 1024]",
                    concat!($instruction, " tmm0, tmm4, tmm6"),
                    "tileloadd tmm5, [{a} + {row}*1 + 1024]",
                    concat!($instruction, " tmm1, tmm4, tmm7"),
                    concat!($instruction, " tmm2, tmm5, tmm6"),
                    concat!($instruction, " tmm3, tmm5, tmm7"),
                    "add {a}, {pair}",
                    "add {b}, {pair}",
                    "sub {steps}, 1",
                    "jnz 2b",
                    "tilestored [{sums} + {stride}*1], tmm0",
                    "tilestored [{sums} + {stride}*1 + 64], tmm1",
                    "tilestored [{low} + {stride}*1], tmm2",
                    "tilestored [{low} + {stride}*1 + 64], tmm3",
                    "tilerelease",
                    config = in(reg) &TileConfig::EIGHT,
                    row = in(reg) ROW_BYTES,
                    pair = const 2 * TILE_BYTES,
                    a = inout(reg) a => _,
                    b = inout(reg) b => _,
                    sums = in(reg) sums,
                    low = in(reg) sums.add(16 * stride),
                    stride = in(reg) stride,
                    steps = inout(reg) steps => _,
                    out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                    out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                    options(nostack),
                );
            }
        }
    };
}

tile_block!(tdpbf16ps, "tdpbf16ps");
tile_block!(tdpbssd, "tdpbssd");
tile_block!(tdpbsud, "tdpbsud");
tile_block!(tdpbusd, "tdpbusd");
tile_block!(tdpbuud, "tdpbuud");
