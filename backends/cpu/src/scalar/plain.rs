//! Scalar functions as Rust's operators and functions, compiled as this program is.

use std::hint::black_box;

use mxprobe_api::{DotOrder, Format, ScalarFunction};

/// One call: operands in, the result's bits out.
pub(super) type Call = fn(&[u64]) -> u64;

macro_rules! plain {
    ($name:ident, $float:ident, $bits:ident, $other:ident) => {
        mod $name {
            use super::black_box;

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
        }
    };
}

plain!(f32s, f32, u32, f64);
plain!(f64s, f64, u64, f32);

/// A function, what it is called in Rust, and the function itself.
pub(super) fn functions(format: Format) -> [(ScalarFunction, &'static str, Call); 12] {
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
            ]
        };
    }
    if format == Format::F64 { of!(f64s, "a as f32") } else { of!(f32s, "a as f64") }
}
