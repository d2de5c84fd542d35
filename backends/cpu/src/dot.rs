//! Dot-product instructions: 16 independent dots in a 512-bit register, 8 in a 256-bit one.
//!
//! Every operand of every such instruction has four bytes per dot: 2 bf16 or s16 elements, 4 elements of 8 bits, or one
//! 32-bit c. The tiles of a batch are contiguous, so registers are loaded directly from it.

use std::arch::asm;

use mxprobe_api::{Elements, TileBatch};

/// Runs `dots` on whole vectors of `vector` bytes of A, B, C and D, and then on the remainder, padded with zeros.
fn run(batch: &TileBatch, d: &mut Elements, vector: usize, mut dots: impl FnMut(&[u8], &[u8], &[u8], &mut [u8])) {
    let (a, b, c, d) = (batch.a.bytes(), batch.b.bytes(), batch.c.bytes(), d.bytes_mut());
    assert!(
        [a.len(), b.len(), c.len(), d.len()] == [batch.tiles * 4; 4],
        "a validated batch has four bytes of A, B, C and D per dot"
    );
    let whole = d.len() / vector * vector;
    let (d, d_tail) = d.split_at_mut(whole);
    if whole > 0 {
        dots(&a[..whole], &b[..whole], &c[..whole], d);
    }
    if !d_tail.is_empty() {
        let padded = |tail: &[u8]| {
            let mut bytes = [0; 64];
            bytes[..tail.len()].copy_from_slice(tail);
            bytes
        };
        let mut padded_d = [0; 64];
        let (a, b, c) = (padded(&a[whole..]), padded(&b[whole..]), padded(&c[whole..]));
        dots(&a[..vector], &b[..vector], &c[..vector], &mut padded_d[..vector]);
        d_tail.copy_from_slice(&padded_d[..d_tail.len()]);
    }
}

macro_rules! kernel {
    ($name:ident, $instruction:literal, $register:ident, $feature:literal, $move:literal, $vector:literal) => {
        /// # Safety
        /// The instruction is usable in this process.
        pub(crate) unsafe fn $name(batch: &TileBatch, d: &mut Elements) {
            /// # Safety
            /// The instruction is usable in this process; the slices have the same length, a multiple of the vector's
            /// and not 0.
            #[target_feature(enable = $feature)]
            unsafe fn dots(a: &[u8], b: &[u8], c: &[u8], d: &mut [u8]) {
                // SAFETY: the caller vouches for the instruction and the lengths; every access lies between the start
                // of a slice and `d.len()` bytes after it, and only `d` is written.
                unsafe {
                    asm!(
                        "2:",
                        concat!($move, " {va}, [{a} + {at}]"),
                        concat!($move, " {vb}, [{b} + {at}]"),
                        concat!($move, " {vd}, [{c} + {at}]"),
                        concat!($instruction, " {vd}, {va}, {vb}"),
                        concat!($move, " [{d} + {at}], {vd}"),
                        "add {at}, {vector}",
                        "cmp {at}, {end}",
                        "jb 2b",
                        a = in(reg) a.as_ptr(),
                        b = in(reg) b.as_ptr(),
                        c = in(reg) c.as_ptr(),
                        d = in(reg) d.as_mut_ptr(),
                        at = inout(reg) 0usize => _,
                        end = in(reg) d.len(),
                        vector = const $vector,
                        va = out($register) _,
                        vb = out($register) _,
                        vd = out($register) _,
                        options(nostack),
                    );
                }
            }
            // SAFETY: the caller vouches for the instruction; `run` passes slices of equal length, a multiple of the
            // vector's and not 0.
            run(batch, d, $vector, |a, b, c, d| unsafe { dots(a, b, c, d) });
        }
    };
}

kernel!(vdpbf16ps, "vdpbf16ps", zmm_reg, "avx512f", "vmovdqu32", 64);
kernel!(vpdpbusd, "vpdpbusd", zmm_reg, "avx512f", "vmovdqu32", 64);
kernel!(vpdpbusds, "vpdpbusds", zmm_reg, "avx512f", "vmovdqu32", 64);
kernel!(vpdpwssd, "vpdpwssd", zmm_reg, "avx512f", "vmovdqu32", 64);
kernel!(vpdpwssds, "vpdpwssds", zmm_reg, "avx512f", "vmovdqu32", 64);

kernel!(vex_vpdpbusd, "{{vex}} vpdpbusd", ymm_reg, "avx", "vmovdqu", 32);
kernel!(vex_vpdpbusds, "{{vex}} vpdpbusds", ymm_reg, "avx", "vmovdqu", 32);
kernel!(vex_vpdpwssd, "{{vex}} vpdpwssd", ymm_reg, "avx", "vmovdqu", 32);
kernel!(vex_vpdpwssds, "{{vex}} vpdpwssds", ymm_reg, "avx", "vmovdqu", 32);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::{Extension, Readings};

    /// Runs one VDPBF16PS with MXCSR set to `mxcsr`; returns its result and MXCSR after it.
    ///
    /// # Safety
    /// AVX512-BF16 is usable.
    #[target_feature(enable = "avx512f")]
    unsafe fn vdpbf16ps_with(mxcsr: u32, a: &[u32; 16], b: &[u32; 16], c: &[u32; 16]) -> ([u32; 16], u32) {
        let (mut saved, mut after, mut d) = (0u32, 0u32, [0; 16]);
        // SAFETY: the caller vouches for the instruction; every pointer points to an array of 64 bytes or to one word;
        // MXCSR is restored before the block ends.
        unsafe {
            asm!(
                "stmxcsr [{saved}]",
                "ldmxcsr [{wanted}]",
                "vmovdqu32 {va}, [{a}]",
                "vmovdqu32 {vb}, [{b}]",
                "vmovdqu32 {vd}, [{c}]",
                "vdpbf16ps {vd}, {va}, {vb}",
                "vmovdqu32 [{d}], {vd}",
                "stmxcsr [{after}]",
                "ldmxcsr [{saved}]",
                saved = in(reg) &raw mut saved,
                after = in(reg) &raw mut after,
                wanted = in(reg) &raw const mxcsr,
                a = in(reg) a.as_ptr(),
                b = in(reg) b.as_ptr(),
                c = in(reg) c.as_ptr(),
                d = in(reg) d.as_mut_ptr(),
                va = out(zmm_reg) _,
                vb = out(zmm_reg) _,
                vd = out(zmm_reg) _,
                options(nostack),
            );
        }
        (d, after)
    }

    #[test]
    #[cfg_attr(not(avx512_bf16), ignore = "this CPU has no AVX512-BF16")]
    fn mxcsr_neither_changes_vdpbf16ps_nor_is_changed_by_it() {
        assert_eq!(Readings::here().extension(Extension::Avx512Bf16).err(), None);
        // Inexact ties both ways, tiny, subnormal, overflowing, invalid and NaN dots; the upper half of a pair is k 1.
        let a = [
            0x0000_3380,
            0x0000_b380,
            0x0000_3381,
            0x0000_b381,
            0x0000_1c80,
            0x0000_9c80,
            0x0000_0001,
            0x0000_a000,
            0x0000_7f00,
            0x0000_ff00,
            0x0000_7f80,
            0x0000_7f81,
            0x7f80_ff80,
            0x3f81_3f81,
            0x1a00_0080,
            0x9a00_0080,
        ];
        let b = [
            0x0000_3f80,
            0x0000_3f80,
            0x0000_3f80,
            0x0000_3f80,
            0x0000_1c80,
            0x0000_1c80,
            0x0000_7f00,
            0x0000_1f80,
            0x0000_7f00,
            0x0000_7f00,
            0x0000_0000,
            0x0000_3f80,
            0x3f80_3f80,
            0x3f83_3f83,
            0x1a00_3f80,
            0x1a00_3f80,
        ];
        let c = [
            0x3f80_0001,
            0xbf80_0001,
            0x3f80_0000,
            0xbf80_0000,
            0x0000_0000,
            0x0000_0000,
            0x0000_0001,
            0x0000_0000,
            0x7f7f_ffff,
            0xff7f_ffff,
            0x0000_0000,
            0x0000_0000,
            0x0000_0000,
            0x3300_0000,
            0x0000_0000,
            0x8000_0001,
        ];
        // SAFETY: AVX512-BF16 was detected.
        let (expected, _) = unsafe { vdpbf16ps_with(0x1f80, &a, &b, &c) };
        // Every exception masked; rounding (bits 13 and 14), FTZ (15) and DAZ (6) in every combination.
        for controls in 0..16 {
            let mxcsr = 0x1f80 | (controls & 7) << 13 | (controls >> 3) << 6;
            // SAFETY: AVX512-BF16 was detected.
            let (d, after) = unsafe { vdpbf16ps_with(mxcsr, &a, &b, &c) };
            assert_eq!(d, expected, "MXCSR {mxcsr:#06x}");
            assert_eq!(after, mxcsr, "status flags were set");
        }
        // With every exception unmasked, none is raised. SAFETY: AVX512-BF16 was detected.
        assert_eq!(unsafe { vdpbf16ps_with(0, &a, &b, &c) }, (expected, 0));
    }
}
