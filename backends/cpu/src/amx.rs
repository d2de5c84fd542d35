//! Intel AMX: one tile multiplication per instruction.
//!
//! Written as assembly because the intrinsics and the target features are unstable (rust-lang/rust#126622).

use std::{arch::asm, marker::PhantomData};

use mxprobe_api::{Elements, TileBatch};

use crate::pack::{ROW_BYTES, TILE_BYTES, pack_b};

/// The operand of LDTILECFG (*specified*: Intel SDM volume 2, LDTILECFG).
#[repr(C, align(64))]
struct TileConfig {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    row_bytes: [u16; 16],
    rows: [u8; 16],
}

impl TileConfig {
    /// All eight tiles of palette 1, 16 rows of 64 bytes each.
    ///
    /// As C and D, a tile is 16 rows of 16 32-bit elements; as A, 16 rows of 64 bytes of k; as B, 16 rows of 16 four-byte
    /// groups of k.
    const EIGHT: Self = Self {
        palette: 1,
        start_row: 0,
        reserved: [0; 14],
        row_bytes: [64, 64, 64, 64, 64, 64, 64, 64, 0, 0, 0, 0, 0, 0, 0, 0],
        rows: [16, 16, 16, 16, 16, 16, 16, 16, 0, 0, 0, 0, 0, 0, 0, 0],
    };
}

/// The eight whole tiles of this thread, configured until this is dropped: LDTILECFG takes as long as several products.
///
/// The configuration is that of the thread, so this does not leave it.
pub(crate) struct Tiles(PhantomData<*const ()>);

impl Tiles {
    /// # Safety
    /// AMX is usable in this process, and no other configuration of this thread is in use.
    pub(crate) unsafe fn configure() -> Self {
        // SAFETY: the caller vouches for the instruction; it reads the 64 bytes of the configuration, which is valid.
        unsafe { asm!("ldtilecfg [{}]", in(reg) &TileConfig::EIGHT, options(nostack, readonly)) };
        Self(PhantomData)
    }
}

impl Drop for Tiles {
    fn drop(&mut self) {
        // SAFETY: AMX is usable, or the tiles would not have been configured. Nothing else on this thread uses them.
        unsafe { asm!("tilerelease", options(nostack, nomem)) };
    }
}

/// The number of B tiles packed ahead: 16 KiB, so that A, B, C and D of one round stay in the first-level cache.
const TILES_AT_ONCE: usize = 16;

/// Multiplies `tiles` tiles, contiguous in memory, with 1024 bytes each of A, B, C and D; B is packed.
type Multiply = unsafe fn(tiles: usize, a: *const u8, packed_b: *const u8, c: *const u8, d: *mut u8);

macro_rules! multiply {
    ($name:ident, $instruction:literal) => {
        /// # Safety
        /// The instruction is usable in this process, the tiles of this thread are configured ([`Tiles`]), `tiles` is not
        /// 0, and `a`, `packed_b` and `c` can be read and `d` written for `tiles` · 1024 bytes each.
        unsafe fn $name(tiles: usize, a: *const u8, packed_b: *const u8, c: *const u8, d: *mut u8) {
            // SAFETY: the caller vouches for the instruction, for tiles of 16 rows of 64 bytes and for the memory. Each
            // TILELOADD and TILESTORED steps 64 bytes per row: 1024 bytes per tile. The loop ends after `tiles` rounds.
            unsafe {
                asm!(
                    "2:",
                    "tileloadd tmm0, [{c} + {row}*1]",
                    "tileloadd tmm1, [{a} + {row}*1]",
                    "tileloadd tmm2, [{b} + {row}*1]",
                    concat!($instruction, " tmm0, tmm1, tmm2"),
                    "tilestored [{d} + {row}*1], tmm0",
                    "add {a}, {tile}",
                    "add {b}, {tile}",
                    "add {c}, {tile}",
                    "add {d}, {tile}",
                    "sub {tiles}, 1",
                    "jnz 2b",
                    row = in(reg) ROW_BYTES,
                    tile = const TILE_BYTES,
                    tiles = inout(reg) tiles => _,
                    a = inout(reg) a => _,
                    b = inout(reg) packed_b => _,
                    c = inout(reg) c => _,
                    d = inout(reg) d => _,
                    out("tmm0") _,
                    out("tmm1") _,
                    out("tmm2") _,
                    options(nostack),
                );
            }
        }
    };
}

multiply!(multiply_bf16, "tdpbf16ps");
multiply!(multiply_ss, "tdpbssd");
multiply!(multiply_su, "tdpbsud");
multiply!(multiply_us, "tdpbusd");
multiply!(multiply_uu, "tdpbuud");

/// # Safety
/// `multiply` is usable in this process, and its elements of A and B have `E` bytes.
unsafe fn run<const E: usize>(multiply: Multiply, batch: &TileBatch, d: &mut Elements) {
    let round = TILES_AT_ONCE * TILE_BYTES;
    let mut packed = vec![0; round.min(batch.tiles * TILE_BYTES)];
    // SAFETY: the caller vouches for the instruction.
    let _configured = unsafe { Tiles::configure() };
    let inputs = batch.a.bytes().chunks(round).zip(batch.b.bytes().chunks(round)).zip(batch.c.bytes().chunks(round));
    for (((a, b), c), d) in inputs.zip(d.bytes_mut().chunks_mut(round)) {
        let tiles = d.len() / TILE_BYTES;
        assert!(
            tiles > 0 && [a.len(), b.len(), c.len(), d.len()] == [tiles * TILE_BYTES; 4],
            "a validated batch has 1024 bytes of A, B, C and D per tile"
        );
        for (b, packed) in b.chunks_exact(TILE_BYTES).zip(packed.chunks_exact_mut(TILE_BYTES)) {
            pack_b::<E>(b, packed);
        }
        // SAFETY: the caller vouches for the instruction; tiles are configured; the lengths were checked above, and
        // `packed` holds as many tiles as the longest round.
        unsafe { multiply(tiles, a.as_ptr(), packed.as_ptr(), c.as_ptr(), d.as_mut_ptr()) }
    }
}

macro_rules! kernel {
    ($name:ident, $multiply:ident, $element_bytes:literal) => {
        /// # Safety
        /// The instruction is usable in this process.
        pub(crate) unsafe fn $name(batch: &TileBatch, d: &mut Elements) {
            // SAFETY: the caller vouches for the instruction; the element size is the instruction's.
            unsafe { run::<$element_bytes>($multiply, batch, d) }
        }
    };
}

kernel!(tdpbf16ps, multiply_bf16, 2);
kernel!(tdpbssd, multiply_ss, 1);
kernel!(tdpbsud, multiply_su, 1);
kernel!(tdpbusd, multiply_us, 1);
kernel!(tdpbuud, multiply_uu, 1);
