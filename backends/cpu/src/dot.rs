//! Dot-product instructions: 16 independent dots in a 512-bit register, 8 in a 256-bit one.
//!
//! Every operand of every such instruction has four bytes a dot: 2 of bf16 or s16, 4 of 8 bits, one 32-bit c. The tiles
//! of a batch follow each other, so the registers are loaded from it as it is.

use std::arch::asm;

use mxprobe_api::{Elements, TileBatch};

/// `vector` bytes of A, B, C and D at a time; what is left at the end is padded with zeros.
fn run(batch: &TileBatch, d: &mut Elements, vector: usize, mut dots: impl FnMut(&[u8], &[u8], &[u8], &mut [u8])) {
    let (a, b, c, d) = (batch.a.bytes(), batch.b.bytes(), batch.c.bytes(), d.bytes_mut());
    assert!(
        [a.len(), b.len(), c.len(), d.len()] == [batch.tiles * 4; 4],
        "a validated batch has four bytes of A, B, C and D a dot"
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
            // SAFETY: as the caller vouches; `run` passes slices of one length, a multiple of the vector's and not 0.
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
