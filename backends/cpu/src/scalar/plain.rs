//! Scalar functions as Rust operators and functions, compiled with this program's options.
//!
//! The elementary functions of Rust's standard library are those of the C library that the program is linked with. The
//! IEEE 754 remainder and scaling, which Rust does not have, come from the C library too.

use std::{borrow::Cow, hint::black_box};

use mxprobe_api::{DotOrder, Elementary, Format, ScalarFunction};

use super::library;

/// A function from operand bits to result bits.
pub(super) type Call = fn(&[u64]) -> u64;

macro_rules! plain {
    ($name:ident, $float:ident, $bits:ident, $other:ident, $remainder:ident, $scale:ident) => {
        mod $name {
            use super::{black_box, library};

            fn of(bits: u64) -> $float {
                // The bits above the format's width are zero.
                #[allow(clippy::cast_possible_truncation)]
                black_box($float::from_bits(bits as $bits))
            }

            fn bits(value: $float) -> u64 {
                black_box(value).to_bits().into()
            }

            pub(super) fn add(x: &[u64]) -> u64 {
                bits(of(x[0]) + of(x[1]))
            }

            pub(super) fn subtract(x: &[u64]) -> u64 {
                bits(of(x[0]) - of(x[1]))
            }

            pub(super) fn multiply(x: &[u64]) -> u64 {
                bits(of(x[0]) * of(x[1]))
            }

            pub(super) fn divide(x: &[u64]) -> u64 {
                bits(of(x[0]) / of(x[1]))
            }

            pub(super) fn square_root(x: &[u64]) -> u64 {
                bits(of(x[0]).sqrt())
            }

            pub(super) fn fma(x: &[u64]) -> u64 {
                bits(of(x[0]).mul_add(of(x[1]), of(x[2])))
            }

            pub(super) fn multiply_add(x: &[u64]) -> u64 {
                #[allow(clippy::suboptimal_flops, reason = "whether it is contracted is the question")]
                bits(of(x[0]) * of(x[1]) + of(x[2]))
            }

            pub(super) fn convert(x: &[u64]) -> u64 {
                #[allow(
                    clippy::cast_possible_truncation,
                    clippy::cast_lossless,
                    reason = "the conversion is the question"
                )]
                let value = of(x[0]) as $other;
                black_box(value).to_bits().into()
            }

            pub(super) fn to_s32(x: &[u64]) -> u64 {
                #[allow(clippy::cast_possible_truncation, reason = "the conversion is the question")]
                let value = of(x[0]) as i32;
                u64::from(black_box(value).cast_unsigned())
            }

            #[allow(clippy::suboptimal_flops, reason = "whether it is contracted is the question")]
            pub(super) fn serial(x: &[u64]) -> u64 {
                let mut sum = 0.0;
                for at in 0..4 {
                    sum += of(x[at]) * of(x[4 + at]);
                }
                bits(sum)
            }

            pub(super) fn chain(x: &[u64]) -> u64 {
                let mut sum = 0.0;
                for at in 0..4 {
                    sum = of(x[at]).mul_add(of(x[4 + at]), sum);
                }
                bits(sum)
            }

            #[allow(clippy::suboptimal_flops, reason = "whether it is contracted is the question")]
            pub(super) fn pairwise(x: &[u64]) -> u64 {
                let half = |at: usize| of(x[at]) * of(x[4 + at]) + of(x[at + 1]) * of(x[5 + at]);
                bits(half(0) + half(2))
            }

            pub(super) fn reciprocal(x: &[u64]) -> u64 {
                bits(of(x[0]).recip())
            }

            pub(super) fn remainder(x: &[u64]) -> u64 {
                bits(library::$remainder(of(x[0]), of(x[1])))
            }

            pub(super) fn truncated_remainder(x: &[u64]) -> u64 {
                bits(of(x[0]) % of(x[1]))
            }

            pub(super) fn scale(x: &[u64]) -> u64 {
                #[allow(clippy::cast_possible_truncation, reason = "an integer, or beyond every exponent")]
                let by = of(x[1]) as i32;
                bits(library::$scale(of(x[0]), by))
            }

            pub(super) fn negate(x: &[u64]) -> u64 {
                bits(-of(x[0]))
            }

            pub(super) fn abs(x: &[u64]) -> u64 {
                bits(of(x[0]).abs())
            }

            pub(super) fn copy_sign(x: &[u64]) -> u64 {
                bits(of(x[0]).copysign(of(x[1])))
            }

            pub(super) fn compare(x: &[u64]) -> u64 {
                let order = of(x[0]).partial_cmp(&of(x[1])).map_or(2, |order| order as i32);
                u64::from(black_box(order).cast_unsigned())
            }

            pub(super) fn reciprocal_square_root(x: &[u64]) -> u64 {
                bits(of(x[0]).sqrt().recip())
            }

            pub(super) fn exp(x: &[u64]) -> u64 {
                bits(of(x[0]).exp())
            }

            pub(super) fn exp2(x: &[u64]) -> u64 {
                bits(of(x[0]).exp2())
            }

            pub(super) fn log(x: &[u64]) -> u64 {
                bits(of(x[0]).ln())
            }

            pub(super) fn log2(x: &[u64]) -> u64 {
                bits(of(x[0]).log2())
            }

            pub(super) fn sin(x: &[u64]) -> u64 {
                bits(of(x[0]).sin())
            }

            pub(super) fn cos(x: &[u64]) -> u64 {
                bits(of(x[0]).cos())
            }

            pub(super) fn tanh(x: &[u64]) -> u64 {
                bits(of(x[0]).tanh())
            }
        }
    };
}

plain!(f32s, f32, u32, f64, remainderf, scalbnf);
plain!(f64s, f64, u64, f32, remainder, scalbn);

/// The functions of a format, each with its name in Rust or in C.
pub(super) fn functions(format: Format) -> Vec<(ScalarFunction, Cow<'static, str>, Call)> {
    use ScalarFunction as F;
    let other = if format == Format::F64 { Format::F32 } else { Format::F64 };
    macro_rules! of {
        ($module:ident, $convert:literal) => {
            [
                (F::Add, "a + b", $module::add as Call),
                (F::Subtract, "a - b", $module::subtract),
                (F::Multiply, "a * b", $module::multiply),
                (F::Divide, "a / b", $module::divide),
                (F::SquareRoot, "a.sqrt()", $module::square_root),
                (F::Fma, "a.mul_add(b, c)", $module::fma),
                (F::MultiplyAdd, "a * b + c", $module::multiply_add),
                (F::Convert { to: other }, $convert, $module::convert),
                (F::Convert { to: Format::S32 }, "a as i32", $module::to_s32),
                (F::Dot4 { order: DotOrder::Serial }, "sum += a * b", $module::serial),
                (F::Dot4 { order: DotOrder::Fma }, "sum = a.mul_add(b, sum)", $module::chain),
                (F::Dot4 { order: DotOrder::Pairwise }, "(a * b + a * b) + (a * b + a * b)", $module::pairwise),
                (F::Reciprocal, "a.recip()", $module::reciprocal),
                (F::TruncatedRemainder, "a % b", $module::truncated_remainder),
                (F::Negate, "-a", $module::negate),
                (F::Abs, "a.abs()", $module::abs),
                (F::CopySign, "a.copysign(b)", $module::copy_sign),
                (F::Compare, "a.partial_cmp(&b)", $module::compare),
                (F::Elementary(Elementary::ReciprocalSquareRoot), "a.sqrt().recip()", $module::reciprocal_square_root),
            ]
        };
    }
    macro_rules! of_library {
        ($module:ident) => {
            [
                (F::Remainder, "remainder", $module::remainder as Call),
                (F::Scale, "scalbn", $module::scale),
                (F::Elementary(Elementary::Exp), "exp", $module::exp),
                (F::Elementary(Elementary::Exp2), "exp2", $module::exp2),
                (F::Elementary(Elementary::Log), "log", $module::log),
                (F::Elementary(Elementary::Log2), "log2", $module::log2),
                (F::Elementary(Elementary::Sin), "sin", $module::sin),
                (F::Elementary(Elementary::Cos), "cos", $module::cos),
                (F::Elementary(Elementary::Tanh), "tanh", $module::tanh),
            ]
        };
    }
    let is_double = format == Format::F64;
    let own = if is_double { of!(f64s, "a as f32") } else { of!(f32s, "a as f64") };
    let of_library = if is_double { of_library!(f64s) } else { of_library!(f32s) };
    let (suffix, library) = (if is_double { "" } else { "f" }, library::name());
    let own = own.into_iter().map(|(function, name, call)| (function, Cow::Borrowed(name), call));
    let named = |(function, name, call)| (function, Cow::Owned(format!("{name}{suffix} of {library}")), call);
    own.chain(of_library.into_iter().map(named)).collect()
}
