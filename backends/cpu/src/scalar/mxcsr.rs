//! Single instructions under a given value of MXCSR, which is changed and restored within the same assembly block.

use std::arch::asm;

use mxprobe_api::{Elementary, Format, ScalarFunction};

use crate::detect::Extension;

/// Runs one instruction under a value of MXCSR; returns its result, and MXCSR after it, which holds the raised flags.
///
/// # Safety
/// The instruction is usable in this process.
pub(super) type Instruction = unsafe fn(mxcsr: u32, operands: &[u64]) -> (u64, u32);

/// All exceptions masked: the value at the start of a program (*specified*: Intel SDM volume 1, 10.2.3).
pub(super) const DEFAULT: u32 = 0x1f80;
const DAZ: u32 = 1 << 6;
const FTZ: u32 = 1 << 15;
/// The rounding control, bits 13 and 14.
const ROUNDING: [(&str, u32); 4] = [("rne", 0), ("rz", 3 << 13), ("rd", 1 << 13), ("ru", 2 << 13)];

/// The words and the MXCSR value of every mode.
pub(super) fn modes() -> Vec<(Vec<&'static str>, u32)> {
    let mut found = Vec::new();
    for flush in [&[][..], &[("ftz", FTZ)], &[("daz", DAZ)], &[("ftz", FTZ), ("daz", DAZ)]] {
        for (word, rounding) in ROUNDING {
            let words = std::iter::once(word).chain(flush.iter().map(|(word, _)| *word)).collect();
            found.push((words, DEFAULT | rounding | flush.iter().map(|(_, bit)| bit).sum::<u32>()));
        }
    }
    found
}

/// Lowers the flags and runs a computation; returns its result and MXCSR after it. The previous MXCSR is restored.
#[inline(never)]
pub(super) fn around<T>(compute: impl FnOnce() -> T) -> (T, u32) {
    const RAISED: u32 = 0b11_1111;
    let (mut old, mut after) = (0u32, 0u32);
    // SAFETY: four bytes are written, and no other state is changed.
    unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut old, options(nostack)) };
    let lowered = old & !RAISED;
    // SAFETY: the control bits are unchanged, so arithmetic behaves as the compiler assumes.
    unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const lowered, options(nostack)) };
    let result = std::hint::black_box(compute());
    // SAFETY: four bytes are written; then MXCSR is restored.
    unsafe {
        asm!("stmxcsr [{after}]", "ldmxcsr [{old}]", after = in(reg) &raw mut after, old = in(reg) &raw const old, options(nostack));
    };
    (result, after)
}

macro_rules! instruction {
    // Operands in xmm0 to xmm2; `$read` puts the result into d.
    ($name:ident, $text:literal, $read:literal) => {
        /// # Safety
        /// The instruction is usable in this process.
        unsafe fn $name(mxcsr: u32, operands: &[u64]) -> (u64, u32) {
            let operand = |at: usize| operands.get(at).copied().unwrap_or(0);
            let (mut old, mut new) = (0u32, mxcsr);
            let result: u64;
            // SAFETY: the caller vouches for the instruction. MXCSR is restored before the block ends; `old` and `new`
            // have four bytes each, and no other memory is touched.
            unsafe {
                asm!(
                    "movq xmm0, {a}",
                    "movq xmm1, {b}",
                    "movq xmm2, {c}",
                    "stmxcsr [{old}]",
                    "ldmxcsr [{new}]",
                    $text,
                    $read,
                    "stmxcsr [{new}]",
                    "ldmxcsr [{old}]",
                    a = in(reg) operand(0),
                    b = in(reg) operand(1),
                    c = in(reg) operand(2),
                    old = in(reg) &raw mut old,
                    new = in(reg) &raw mut new,
                    d = out(reg) result,
                    out("xmm0") _,
                    out("xmm1") _,
                    out("xmm2") _,
                    options(nostack),
                );
            }
            (result, new)
        }
    };
}

instruction!(addss, "addss xmm0, xmm1", "movd {d:e}, xmm0");
instruction!(subss, "subss xmm0, xmm1", "movd {d:e}, xmm0");
instruction!(mulss, "mulss xmm0, xmm1", "movd {d:e}, xmm0");
instruction!(divss, "divss xmm0, xmm1", "movd {d:e}, xmm0");
instruction!(sqrtss, "sqrtss xmm0, xmm0", "movd {d:e}, xmm0");
instruction!(vfmadd213ss, "vfmadd213ss xmm0, xmm1, xmm2", "movd {d:e}, xmm0");
instruction!(cvtss2sd, "cvtss2sd xmm0, xmm0", "movq {d}, xmm0");
instruction!(vcvtps2ph, "vcvtps2ph xmm0, xmm0, 4", "movd {d:e}, xmm0");
instruction!(cvtss2si, "cvtss2si {d:e}, xmm0", "nop");

instruction!(rcpss, "rcpss xmm0, xmm0", "movd {d:e}, xmm0");
instruction!(rsqrtss, "rsqrtss xmm0, xmm0", "movd {d:e}, xmm0");

instruction!(addsd, "addsd xmm0, xmm1", "movq {d}, xmm0");
instruction!(subsd, "subsd xmm0, xmm1", "movq {d}, xmm0");
instruction!(mulsd, "mulsd xmm0, xmm1", "movq {d}, xmm0");
instruction!(divsd, "divsd xmm0, xmm1", "movq {d}, xmm0");
instruction!(sqrtsd, "sqrtsd xmm0, xmm0", "movq {d}, xmm0");
instruction!(vfmadd213sd, "vfmadd213sd xmm0, xmm1, xmm2", "movq {d}, xmm0");
instruction!(cvtsd2ss, "cvtsd2ss xmm0, xmm0", "movd {d:e}, xmm0");
instruction!(cvtsd2si, "cvtsd2si {d:e}, xmm0", "nop");

instruction!(vaddsh, "vaddsh xmm0, xmm0, xmm1", "movd {d:e}, xmm0");
instruction!(vsubsh, "vsubsh xmm0, xmm0, xmm1", "movd {d:e}, xmm0");
instruction!(vmulsh, "vmulsh xmm0, xmm0, xmm1", "movd {d:e}, xmm0");
instruction!(vdivsh, "vdivsh xmm0, xmm0, xmm1", "movd {d:e}, xmm0");
instruction!(vsqrtsh, "vsqrtsh xmm0, xmm0, xmm0", "movd {d:e}, xmm0");
instruction!(vfmadd213sh, "vfmadd213sh xmm0, xmm1, xmm2", "movd {d:e}, xmm0");
instruction!(vcvtsh2ss, "vcvtsh2ss xmm0, xmm0, xmm0", "movd {d:e}, xmm0");

/// SSE approximations, available on every x86-64 CPU, with a relative error of at most 1.5 · 2^-12 (*specified*: Intel
/// SDM volume 2).
pub(super) const APPROXIMATIONS: [(ScalarFunction, &str, Instruction); 2] = [
    (ScalarFunction::Reciprocal, "RCPSS", rcpss),
    (ScalarFunction::Elementary(Elementary::ReciprocalSquareRoot), "RSQRTSS", rsqrtss),
];

/// A function, its instruction, and the extension that it needs beyond SSE2, which every x86-64 CPU has.
pub(super) type Entry = (ScalarFunction, &'static str, Option<Extension>, Instruction);

/// The instructions of a format. *Specified*: Intel SDM volume 2. VCVTPS2PH takes its rounding direction from MXCSR
/// here.
pub(super) fn instructions(format: Format) -> Vec<Entry> {
    use ScalarFunction as F;
    match format {
        Format::F32 => vec![
            (F::Add, "ADDSS", None, addss),
            (F::Subtract, "SUBSS", None, subss),
            (F::Multiply, "MULSS", None, mulss),
            (F::Divide, "DIVSS", None, divss),
            (F::SquareRoot, "SQRTSS", None, sqrtss),
            (F::Fma, "VFMADD213SS", Some(Extension::Fma), vfmadd213ss),
            (F::Convert { to: Format::F64 }, "CVTSS2SD", None, cvtss2sd),
            (F::Convert { to: Format::F16 }, "VCVTPS2PH", Some(Extension::F16c), vcvtps2ph),
            (F::Convert { to: Format::S32 }, "CVTSS2SI", None, cvtss2si),
        ],
        Format::F64 => vec![
            (F::Add, "ADDSD", None, addsd),
            (F::Subtract, "SUBSD", None, subsd),
            (F::Multiply, "MULSD", None, mulsd),
            (F::Divide, "DIVSD", None, divsd),
            (F::SquareRoot, "SQRTSD", None, sqrtsd),
            (F::Fma, "VFMADD213SD", Some(Extension::Fma), vfmadd213sd),
            (F::Convert { to: Format::F32 }, "CVTSD2SS", None, cvtsd2ss),
            (F::Convert { to: Format::S32 }, "CVTSD2SI", None, cvtsd2si),
        ],
        Format::F16 => [
            (F::Add, "VADDSH", vaddsh as Instruction),
            (F::Subtract, "VSUBSH", vsubsh),
            (F::Multiply, "VMULSH", vmulsh),
            (F::Divide, "VDIVSH", vdivsh),
            (F::SquareRoot, "VSQRTSH", vsqrtsh),
            (F::Fma, "VFMADD213SH", vfmadd213sh),
            (F::Convert { to: Format::F32 }, "VCVTSH2SS", vcvtsh2ss),
        ]
        .map(|(function, name, instruction)| (function, name, Some(Extension::Avx512Fp16), instruction))
        .to_vec(),
        _ => Vec::new(),
    }
}
