//! Timing loops: the instruction with its operands in registers, a counter and a jump.
//!
//! Written as assembly, so that no compiler hoists, drops or reorders the timed instructions. Each loop has enough
//! independent sums to hide the instruction's latency at its full throughput, and loads and stores them once.

use std::arch::asm;

use crate::amx::Tiles;
use crate::pack::{ROW_BYTES, TILE_BYTES};

/// Runs `steps` rounds; `sums` holds C before and D after.
///
/// # Safety
/// The instruction is usable in this process, `steps` is not 0, and the pointers are valid for as many registers as the
/// loop's [`Registers`] say: `a` and `b` for reads, `sums` for reads and writes.
pub(crate) type Loop = unsafe fn(steps: u64, a: *const u8, b: *const u8, sums: *mut u8);

/// The registers of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Registers {
    /// Bytes of a register.
    pub(crate) bytes: usize,
    /// Tiles of the operation in one register.
    pub(crate) lanes: usize,
    /// The number of registers of A, and of B.
    pub(crate) operands: usize,
    /// The number of registers of sums. Sum `i` uses register `i` modulo `operands` of A and `i / operands` modulo
    /// `operands` of B.
    pub(crate) sums: usize,
}

/// Registers of 512 bits: 16 sums hide a latency of up to 8 cycles at 2 instructions per cycle.
pub(crate) const ZMM: Registers = Registers { bytes: 64, lanes: 16, operands: 4, sums: 16 };
/// Registers of 256 bits: 12 sums hide a latency of up to 6 cycles at 2 instructions per cycle, and no more fit in the
/// 16 registers.
pub(crate) const YMM: Registers = Registers { bytes: 32, lanes: 8, operands: 2, sums: 12 };
/// Tile registers: all 8 are in use, 4 for sums, 2 for A and 2 for B.
pub(crate) const TMM: Registers = Registers { bytes: TILE_BYTES, lanes: 1, operands: 2, sums: 4 };

macro_rules! zmm_loop {
    ($name:ident, $instruction:literal) => {
        /// # Safety
        /// As for [`Loop`], with [`ZMM`].
        #[target_feature(enable = "avx512f")]
        pub(crate) unsafe fn $name(steps: u64, a: *const u8, b: *const u8, sums: *mut u8) {
            // SAFETY: the caller vouches for the instruction and for 4 vectors of A and of B and 16 of sums; the loop
            // ends after `steps` rounds, and every register that it writes is named.
            unsafe {
                asm!(
                    "vmovdqu32 zmm16, [{a}]",
                    "vmovdqu32 zmm17, [{a} + 64]",
                    "vmovdqu32 zmm18, [{a} + 128]",
                    "vmovdqu32 zmm19, [{a} + 192]",
                    "vmovdqu32 zmm20, [{b}]",
                    "vmovdqu32 zmm21, [{b} + 64]",
                    "vmovdqu32 zmm22, [{b} + 128]",
                    "vmovdqu32 zmm23, [{b} + 192]",
                    ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",
                    r"vmovdqu32 zmm\n, [{sums} + 64*\n]",
                    ".endr",
                    ".p2align 6",
                    "2:",
                    concat!($instruction, " zmm0, zmm16, zmm20"),
                    concat!($instruction, " zmm1, zmm17, zmm20"),
                    concat!($instruction, " zmm2, zmm18, zmm20"),
                    concat!($instruction, " zmm3, zmm19, zmm20"),
                    concat!($instruction, " zmm4, zmm16, zmm21"),
                    concat!($instruction, " zmm5, zmm17, zmm21"),
                    concat!($instruction, " zmm6, zmm18, zmm21"),
                    concat!($instruction, " zmm7, zmm19, zmm21"),
                    concat!($instruction, " zmm8, zmm16, zmm22"),
                    concat!($instruction, " zmm9, zmm17, zmm22"),
                    concat!($instruction, " zmm10, zmm18, zmm22"),
                    concat!($instruction, " zmm11, zmm19, zmm22"),
                    concat!($instruction, " zmm12, zmm16, zmm23"),
                    concat!($instruction, " zmm13, zmm17, zmm23"),
                    concat!($instruction, " zmm14, zmm18, zmm23"),
                    concat!($instruction, " zmm15, zmm19, zmm23"),
                    "sub {steps}, 1",
                    "jnz 2b",
                    ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",
                    r"vmovdqu32 [{sums} + 64*\n], zmm\n",
                    ".endr",
                    a = in(reg) a,
                    b = in(reg) b,
                    sums = in(reg) sums,
                    steps = inout(reg) steps => _,
                    out("zmm0") _, out("zmm1") _, out("zmm2") _, out("zmm3") _,
                    out("zmm4") _, out("zmm5") _, out("zmm6") _, out("zmm7") _,
                    out("zmm8") _, out("zmm9") _, out("zmm10") _, out("zmm11") _,
                    out("zmm12") _, out("zmm13") _, out("zmm14") _, out("zmm15") _,
                    out("zmm16") _, out("zmm17") _, out("zmm18") _, out("zmm19") _,
                    out("zmm20") _, out("zmm21") _, out("zmm22") _, out("zmm23") _,
                    options(nostack),
                );
            }
        }
    };
}

zmm_loop!(vdpbf16ps, "vdpbf16ps");
zmm_loop!(vpdpbusd, "vpdpbusd");
zmm_loop!(vpdpbusds, "vpdpbusds");
zmm_loop!(vpdpwssd, "vpdpwssd");
zmm_loop!(vpdpwssds, "vpdpwssds");
zmm_loop!(vfmadd231ps, "vfmadd231ps");

macro_rules! ymm_loop {
    ($name:ident, $instruction:literal) => {
        /// # Safety
        /// As for [`Loop`], with [`YMM`].
        #[target_feature(enable = "avx")]
        pub(crate) unsafe fn $name(steps: u64, a: *const u8, b: *const u8, sums: *mut u8) {
            // SAFETY: the caller vouches for the instruction and for 2 vectors of A and of B and 12 of sums; the loop
            // ends after `steps` rounds, and every register that it writes is named.
            unsafe {
                asm!(
                    "vmovdqu ymm12, [{a}]",
                    "vmovdqu ymm13, [{a} + 32]",
                    "vmovdqu ymm14, [{b}]",
                    "vmovdqu ymm15, [{b} + 32]",
                    ".irp n,0,1,2,3,4,5,6,7,8,9,10,11",
                    r"vmovdqu ymm\n, [{sums} + 32*\n]",
                    ".endr",
                    ".p2align 6",
                    "2:",
                    concat!($instruction, " ymm0, ymm12, ymm14"),
                    concat!($instruction, " ymm1, ymm13, ymm14"),
                    concat!($instruction, " ymm2, ymm12, ymm15"),
                    concat!($instruction, " ymm3, ymm13, ymm15"),
                    concat!($instruction, " ymm4, ymm12, ymm14"),
                    concat!($instruction, " ymm5, ymm13, ymm14"),
                    concat!($instruction, " ymm6, ymm12, ymm15"),
                    concat!($instruction, " ymm7, ymm13, ymm15"),
                    concat!($instruction, " ymm8, ymm12, ymm14"),
                    concat!($instruction, " ymm9, ymm13, ymm14"),
                    concat!($instruction, " ymm10, ymm12, ymm15"),
                    concat!($instruction, " ymm11, ymm13, ymm15"),
                    "sub {steps}, 1",
                    "jnz 2b",
                    ".irp n,0,1,2,3,4,5,6,7,8,9,10,11",
                    r"vmovdqu [{sums} + 32*\n], ymm\n",
                    ".endr",
                    a = in(reg) a,
                    b = in(reg) b,
                    sums = in(reg) sums,
                    steps = inout(reg) steps => _,
                    out("ymm0") _, out("ymm1") _, out("ymm2") _, out("ymm3") _,
                    out("ymm4") _, out("ymm5") _, out("ymm6") _, out("ymm7") _,
                    out("ymm8") _, out("ymm9") _, out("ymm10") _, out("ymm11") _,
                    out("ymm12") _, out("ymm13") _, out("ymm14") _, out("ymm15") _,
                    options(nostack),
                );
            }
        }
    };
}

ymm_loop!(vex_vpdpbusd, "{{vex}} vpdpbusd");
ymm_loop!(vex_vpdpbusds, "{{vex}} vpdpbusds");
ymm_loop!(vex_vpdpwssd, "{{vex}} vpdpwssd");
ymm_loop!(vex_vpdpwssds, "{{vex}} vpdpwssds");
ymm_loop!(vex_vfmadd231ps, "vfmadd231ps");

macro_rules! tile_loop {
    ($name:ident, $instruction:literal) => {
        /// # Safety
        /// As for [`Loop`], with [`TMM`]; B is packed.
        pub(crate) unsafe fn $name(steps: u64, a: *const u8, b: *const u8, sums: *mut u8) {
            // SAFETY: the caller vouches for the instruction.
            let _configured = unsafe { Tiles::configure() };
            // SAFETY: the caller vouches for the instruction and for 2 tiles of A and of B and 4 of sums, 1024 bytes
            // each; 8 tiles of 16 rows of 64 bytes are configured, and each TILELOADD and TILESTORED steps 64 bytes per
            // row. The loop ends after `steps` rounds.
            unsafe {
                asm!(
                    "tileloadd tmm0, [{sums} + {row}*1]",
                    "tileloadd tmm1, [{sums} + {row}*1 + 1024]",
                    "tileloadd tmm2, [{sums} + {row}*1 + 2048]",
                    "tileloadd tmm3, [{sums} + {row}*1 + 3072]",
                    "tileloadd tmm4, [{a} + {row}*1]",
                    "tileloadd tmm5, [{a} + {row}*1 + 1024]",
                    "tileloadd tmm6, [{b} + {row}*1]",
                    "tileloadd tmm7, [{b} + {row}*1 + 1024]",
                    ".p2align 6",
                    "2:",
                    concat!($instruction, " tmm0, tmm4, tmm6"),
                    concat!($instruction, " tmm1, tmm5, tmm6"),
                    concat!($instruction, " tmm2, tmm4, tmm7"),
                    concat!($instruction, " tmm3, tmm5, tmm7"),
                    "sub {steps}, 1",
                    "jnz 2b",
                    "tilestored [{sums} + {row}*1], tmm0",
                    "tilestored [{sums} + {row}*1 + 1024], tmm1",
                    "tilestored [{sums} + {row}*1 + 2048], tmm2",
                    "tilestored [{sums} + {row}*1 + 3072], tmm3",
                    row = in(reg) ROW_BYTES,
                    a = in(reg) a,
                    b = in(reg) b,
                    sums = in(reg) sums,
                    steps = inout(reg) steps => _,
                    out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                    out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                    options(nostack),
                );
            }
        }
    };
}

tile_loop!(tdpbf16ps, "tdpbf16ps");
tile_loop!(tdpbssd, "tdpbssd");
tile_loop!(tdpbsud, "tdpbsud");
tile_loop!(tdpbusd, "tdpbusd");
tile_loop!(tdpbuud, "tdpbuud");

/// The latency in cycles of IMUL of two 64-bit registers (*measured*, on every x86-64 core of Intel since Nehalem and
/// of AMD since Zen: Fog, Instruction tables).
const IMUL_CYCLES: u64 = 3;

/// Runs `rounds` rounds of 10 multiplications, each of which depends on the last, and returns how many cycles that
/// takes.
pub(crate) fn dependent_multiplications(rounds: u64) -> u64 {
    // SAFETY: the loop ends after `rounds` rounds, at least one, and writes the two registers that are named.
    unsafe {
        asm!(
            "2:",
            "imul {x}, {x}",
            "imul {x}, {x}",
            "imul {x}, {x}",
            "imul {x}, {x}",
            "imul {x}, {x}",
            "imul {x}, {x}",
            "imul {x}, {x}",
            "imul {x}, {x}",
            "imul {x}, {x}",
            "imul {x}, {x}",
            "sub {rounds}, 1",
            "jnz 2b",
            x = inout(reg) 3u64 => _,
            rounds = inout(reg) rounds.max(1) => _,
            options(nomem, nostack),
        );
    }
    rounds.max(1) * 10 * IMUL_CYCLES
}
