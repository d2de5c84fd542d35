//! The innermost loops of whole-matrix products, in assembly: a block of D stays in registers along a stretch of k.

use std::arch::asm;

use crate::pack::{ROW_BYTES, TILE_BYTES};

macro_rules! row {
    ($instruction:literal, $at:literal, $a:literal, $s0:literal, $s1:literal, $s2:literal, $s3:literal) => {
        concat!(
            "vpbroadcastd ",
            $a,
            ", dword ptr [",
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
        /// As for [`Kernel`](crate::unit::Kernel), with [`Unit::dots`](crate::unit::Unit::dots).
        #[target_feature(enable = "avx512f")]
        pub(crate) unsafe fn $name(
            steps: usize,
            a: *const u8,
            a_stride: usize,
            b: *const u8,
            c: *const u8,
            d: *mut u8,
            stride: usize,
        ) {
            // SAFETY: the caller vouches for the instruction and for `steps` steps of 256 bytes of B and of 4 bytes of
            // each of 6 rows of A, and for 6 rows of 256 bytes of C and of D, `stride` bytes apart. A is the second
            // operand and B the third, as in the kernels for single tiles; every register that is written is named.
            unsafe {
                asm!(
                    "lea {low}, [{c} + 2*{stride}]",
                    "add {low}, {stride}",
                    "vmovdqu32 zmm0, [{c}]",
                    "vmovdqu32 zmm1, [{c} + 64]",
                    "vmovdqu32 zmm2, [{c} + 128]",
                    "vmovdqu32 zmm3, [{c} + 192]",
                    "vmovdqu32 zmm4, [{c} + {stride}]",
                    "vmovdqu32 zmm5, [{c} + {stride} + 64]",
                    "vmovdqu32 zmm6, [{c} + {stride} + 128]",
                    "vmovdqu32 zmm7, [{c} + {stride} + 192]",
                    "vmovdqu32 zmm8, [{c} + 2*{stride}]",
                    "vmovdqu32 zmm9, [{c} + 2*{stride} + 64]",
                    "vmovdqu32 zmm10, [{c} + 2*{stride} + 128]",
                    "vmovdqu32 zmm11, [{c} + 2*{stride} + 192]",
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
                    "lea {low}, [{a} + 2*{a_stride}]",
                    "add {low}, {a_stride}",
                    ".p2align 5",
                    "2:",
                    "vmovdqu32 zmm24, [{b}]",
                    "vmovdqu32 zmm25, [{b} + 64]",
                    "vmovdqu32 zmm26, [{b} + 128]",
                    "vmovdqu32 zmm27, [{b} + 192]",
                    row!($instruction, "{a}", "zmm28", "zmm0", "zmm1", "zmm2", "zmm3"),
                    row!($instruction, "{a} + {a_stride}", "zmm29", "zmm4", "zmm5", "zmm6", "zmm7"),
                    row!($instruction, "{a} + 2*{a_stride}", "zmm28", "zmm8", "zmm9", "zmm10", "zmm11"),
                    row!($instruction, "{low}", "zmm29", "zmm12", "zmm13", "zmm14", "zmm15"),
                    row!($instruction, "{low} + {a_stride}", "zmm28", "zmm16", "zmm17", "zmm18", "zmm19"),
                    row!($instruction, "{low} + 2*{a_stride}", "zmm29", "zmm20", "zmm21", "zmm22", "zmm23"),
                    "add {a}, 4",
                    "add {low}, 4",
                    "add {b}, 256",
                    "sub {steps}, 1",
                    "jnz 2b",
                    "lea {low}, [{d} + 2*{stride}]",
                    "add {low}, {stride}",
                    "vmovdqu32 [{d}], zmm0",
                    "vmovdqu32 [{d} + 64], zmm1",
                    "vmovdqu32 [{d} + 128], zmm2",
                    "vmovdqu32 [{d} + 192], zmm3",
                    "vmovdqu32 [{d} + {stride}], zmm4",
                    "vmovdqu32 [{d} + {stride} + 64], zmm5",
                    "vmovdqu32 [{d} + {stride} + 128], zmm6",
                    "vmovdqu32 [{d} + {stride} + 192], zmm7",
                    "vmovdqu32 [{d} + 2*{stride}], zmm8",
                    "vmovdqu32 [{d} + 2*{stride} + 64], zmm9",
                    "vmovdqu32 [{d} + 2*{stride} + 128], zmm10",
                    "vmovdqu32 [{d} + 2*{stride} + 192], zmm11",
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
                    a_stride = in(reg) a_stride,
                    c = in(reg) c,
                    d = in(reg) d,
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
        /// As for [`Kernel`](crate::unit::Kernel), with [`Unit::tiles`](crate::unit::Unit::tiles).
        pub(crate) unsafe fn $name(
            steps: usize,
            a: *const u8,
            _a_stride: usize,
            b: *const u8,
            c: *const u8,
            d: *mut u8,
            stride: usize,
        ) {
            // SAFETY: the caller vouches for the instruction and for `steps` steps of two tiles of A and of B, 1024
            // bytes each, for 32 rows of 128 bytes of C and of D, `stride` bytes apart, and for eight whole tiles: each
            // TILELOADD steps 64 bytes per row in A and B, and `stride` bytes in C.
            unsafe {
                asm!(
                    "tileloadd tmm0, [{c} + {stride}*1]",
                    "tileloadd tmm1, [{c} + {stride}*1 + 64]",
                    "tileloadd tmm2, [{low_c} + {stride}*1]",
                    "tileloadd tmm3, [{low_c} + {stride}*1 + 64]",
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
                    "tilestored [{d} + {stride}*1], tmm0",
                    "tilestored [{d} + {stride}*1 + 64], tmm1",
                    "tilestored [{low_d} + {stride}*1], tmm2",
                    "tilestored [{low_d} + {stride}*1 + 64], tmm3",
                    row = in(reg) ROW_BYTES,
                    pair = const 2 * TILE_BYTES,
                    a = inout(reg) a => _,
                    b = inout(reg) b => _,
                    c = in(reg) c,
                    low_c = in(reg) c.add(16 * stride),
                    d = in(reg) d,
                    low_d = in(reg) d.add(16 * stride),
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
