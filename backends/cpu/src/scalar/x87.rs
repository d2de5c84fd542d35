//! Arithmetic in x87 registers, which have 64 significand bits and 15-bit exponents, with one rounding to the format
//! when the result is stored: how compilers for 32-bit x86 compile float and double expressions (NVIDIA, Precision &
//! Performance, 5.2).
//!
//! The control word is that of FNINIT and of program start: 64 bits, to nearest even, all exceptions masked
//! (*specified*: Intel SDM volume 1, 8.1.5).

use std::arch::asm;

use mxprobe_api::{DotOrder, Elementary, Format, ScalarFunction};

/// A sequence of instructions: takes operands; returns the result's bits and the status word, whose bits 0 to 5 are the
/// flags.
pub(super) type Instructions = fn(operands: &[u64]) -> (u64, u32);

/// C0, C2 and C3 of the status word, which a comparison sets.
const CONDITIONS: u64 = 0x4500;

macro_rules! instructions {
    // Operands lie in memory, eight bytes each, starting at {x}; the result is stored to {d}.
    ($name:ident, $($text:expr),+ $(,)?) => {
        fn $name(operands: &[u64]) -> (u64, u32) {
            let mut x = [0u64; 8];
            x[..operands.len()].copy_from_slice(operands);
            let (mut d, mut control) = (0u64, 0u16);
            let status: u16;
            // SAFETY: every x86-64 CPU has x87. The instructions read from `x`, and write at most eight bytes to `d`
            // and two to `control`. The register stack is empty before and after, and the control word is restored.
            unsafe {
                asm!(
                    "fnstcw [{control}]",
                    "fninit",
                    $($text,)+
                    "fnstsw ax",
                    "fninit",
                    "fldcw [{control}]",
                    x = in(reg) x.as_ptr(),
                    d = in(reg) &raw mut d,
                    control = in(reg) &raw mut control,
                    out("ax") status,
                    out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                    out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                    options(nostack),
                );
            }
            (d, u32::from(status))
        }
    };
}

macro_rules! of_format {
    ($module:ident, $own:literal, $other:literal) => {
        mod $module {
            use super::{CONDITIONS, asm};

            instructions!(
                add,
                concat!("fld ", $own, " [{x}]"),
                concat!("fadd ", $own, " [{x} + 8]"),
                concat!("fstp ", $own, " [{d}]")
            );
            instructions!(
                subtract,
                concat!("fld ", $own, " [{x}]"),
                concat!("fsub ", $own, " [{x} + 8]"),
                concat!("fstp ", $own, " [{d}]")
            );
            instructions!(
                multiply,
                concat!("fld ", $own, " [{x}]"),
                concat!("fmul ", $own, " [{x} + 8]"),
                concat!("fstp ", $own, " [{d}]")
            );
            instructions!(
                divide,
                concat!("fld ", $own, " [{x}]"),
                concat!("fdiv ", $own, " [{x} + 8]"),
                concat!("fstp ", $own, " [{d}]")
            );
            instructions!(square_root, concat!("fld ", $own, " [{x}]"), "fsqrt", concat!("fstp ", $own, " [{d}]"));
            instructions!(
                multiply_add,
                concat!("fld ", $own, " [{x}]"),
                concat!("fmul ", $own, " [{x} + 8]"),
                concat!("fadd ", $own, " [{x} + 16]"),
                concat!("fstp ", $own, " [{d}]"),
            );
            instructions!(convert, concat!("fld ", $own, " [{x}]"), concat!("fstp ", $other, " [{d}]"));
            instructions!(to_s32, concat!("fld ", $own, " [{x}]"), "fistp dword ptr [{d}]");
            instructions!(
                serial,
                "fldz",
                concat!("fld ", $own, " [{x}]"),
                concat!("fmul ", $own, " [{x} + 32]"),
                "faddp",
                concat!("fld ", $own, " [{x} + 8]"),
                concat!("fmul ", $own, " [{x} + 40]"),
                "faddp",
                concat!("fld ", $own, " [{x} + 16]"),
                concat!("fmul ", $own, " [{x} + 48]"),
                "faddp",
                concat!("fld ", $own, " [{x} + 24]"),
                concat!("fmul ", $own, " [{x} + 56]"),
                "faddp",
                concat!("fstp ", $own, " [{d}]"),
            );
            instructions!(
                pairwise,
                concat!("fld ", $own, " [{x}]"),
                concat!("fmul ", $own, " [{x} + 32]"),
                concat!("fld ", $own, " [{x} + 8]"),
                concat!("fmul ", $own, " [{x} + 40]"),
                "faddp",
                concat!("fld ", $own, " [{x} + 16]"),
                concat!("fmul ", $own, " [{x} + 48]"),
                concat!("fld ", $own, " [{x} + 24]"),
                concat!("fmul ", $own, " [{x} + 56]"),
                "faddp",
                "faddp",
                concat!("fstp ", $own, " [{d}]"),
            );
            instructions!(reciprocal, "fld1", concat!("fdiv ", $own, " [{x}]"), concat!("fstp ", $own, " [{d}]"));
            // A step of FPREM1 or FPREM may reduce the operand only partially; C2 is then set.
            macro_rules! remainders {
                ($name:ident, $step:literal) => {
                    instructions!(
                        $name,
                        concat!("fld ", $own, " [{x} + 8]"),
                        concat!("fld ", $own, " [{x}]"),
                        "2:",
                        $step,
                        "fnstsw ax",
                        "test ax, 0x400",
                        "jnz 2b",
                        concat!("fstp ", $own, " [{d}]"),
                        "fstp st(0)",
                    );
                };
            }
            remainders!(remainder, "fprem1");
            remainders!(truncated_remainder, "fprem");
            instructions!(
                scale,
                concat!("fld ", $own, " [{x} + 8]"),
                concat!("fld ", $own, " [{x}]"),
                "fscale",
                concat!("fstp ", $own, " [{d}]"),
                "fstp st(0)",
            );
            instructions!(negate, concat!("fld ", $own, " [{x}]"), "fchs", concat!("fstp ", $own, " [{d}]"));
            instructions!(abs, concat!("fld ", $own, " [{x}]"), "fabs", concat!("fstp ", $own, " [{d}]"));
            instructions!(sin, concat!("fld ", $own, " [{x}]"), "fsin", concat!("fstp ", $own, " [{d}]"));
            instructions!(cos, concat!("fld ", $own, " [{x}]"), "fcos", concat!("fstp ", $own, " [{d}]"));
            instructions!(log, "fldln2", concat!("fld ", $own, " [{x}]"), "fyl2x", concat!("fstp ", $own, " [{d}]"));
            instructions!(log2, "fld1", concat!("fld ", $own, " [{x}]"), "fyl2x", concat!("fstp ", $own, " [{d}]"));
            instructions!(
                compared,
                concat!("fld ", $own, " [{x} + 8]"),
                concat!("fld ", $own, " [{x}]"),
                "fucompp",
                "fnstsw word ptr [{d}]"
            );

            pub(super) fn compare(operands: &[u64]) -> (u64, u32) {
                let (conditions, status) = compared(operands);
                let order: i32 = match conditions & CONDITIONS {
                    0 => 1,
                    0x100 => -1,
                    0x4000 => 0,
                    _ => 2,
                };
                (order.cast_unsigned().into(), status)
            }

            /// The functions in the order of `names` in [`super::functions`].
            pub(super) const ALL: [super::Instructions; 19] = [
                add,
                subtract,
                multiply,
                divide,
                square_root,
                multiply_add,
                convert,
                to_s32,
                serial,
                pairwise,
                reciprocal,
                remainder,
                truncated_remainder,
                scale,
                negate,
                abs,
                sin,
                cos,
                compare,
            ];
            pub(super) const LOGARITHMS: [super::Instructions; 2] = [log, log2];
        }
    };
}

of_format!(single, "dword ptr", "qword ptr");
of_format!(double, "qword ptr", "dword ptr");

/// The functions of a format, each with its instructions. *Specified*: Intel SDM volume 2.
pub(super) fn functions(format: Format) -> Vec<(ScalarFunction, &'static str, Instructions)> {
    use ScalarFunction as F;
    let is_double = format == Format::F64;
    let other = if is_double { Format::F32 } else { Format::F64 };
    let names = [
        (F::Add, "FADD"),
        (F::Subtract, "FSUB"),
        (F::Multiply, "FMUL"),
        (F::Divide, "FDIV"),
        (F::SquareRoot, "FSQRT"),
        (F::MultiplyAdd, "FMUL, FADD"),
        (F::Convert { to: other }, "FLD, FSTP"),
        (F::Convert { to: Format::S32 }, "FISTP"),
        (F::Dot4 { order: DotOrder::Serial }, "FMUL, FADDP"),
        (F::Dot4 { order: DotOrder::Pairwise }, "FMUL, FADDP"),
        (F::Reciprocal, "FLD1, FDIV"),
        (F::Remainder, "FPREM1"),
        (F::TruncatedRemainder, "FPREM"),
        (F::Scale, "FSCALE"),
        (F::Negate, "FCHS"),
        (F::Abs, "FABS"),
        (F::Elementary(Elementary::Sin), "FSIN"),
        (F::Elementary(Elementary::Cos), "FCOS"),
        (F::Compare, "FUCOMPP"),
    ];
    let logarithms =
        [(F::Elementary(Elementary::Log), "FLDLN2, FYL2X"), (F::Elementary(Elementary::Log2), "FLD1, FYL2X")];
    let (of_all, of_logarithms) =
        if is_double { (double::ALL, double::LOGARITHMS) } else { (single::ALL, single::LOGARITHMS) };
    let all = names.into_iter().zip(of_all).chain(logarithms.into_iter().zip(of_logarithms));
    all.map(|((function, name), call)| (function, name, call)).collect()
}
