//! IEEE 754 arithmetic in every rounding direction, by `rustc_apfloat`; to nearest, by the CPU where possible.

use std::cmp::Ordering;

use rustc_apfloat::{
    Float, FloatConvert, Round,
    ieee::{BFloat, Double, Half, Quad, Single},
};

use crate::ptx::{Conversion, Elementary, Function, Kind, Rounded, Type};

/// Computes a function of values of a type.
#[inline]
pub(super) fn compute(function: Function, kind: Type, values: [u64; 3], how: Rounded) -> u64 {
    match (kind.kind, kind.bits) {
        (Kind::Bfloat, _) => of::<BFloat>(function, values, how),
        (_, 16) => of::<Half>(function, values, how),
        (_, 32) => of::<Single>(function, values, how),
        _ => of::<Double>(function, values, how),
    }
}

/// The order of two values of a type; `None` for NaN.
pub(super) fn order(kind: Type, a: u64, b: u64, flush: bool) -> Option<Ordering> {
    fn of<F: Float>(a: u64, b: u64, flush: bool) -> Option<Ordering> {
        read::<F>(a, flush).partial_cmp(&read::<F>(b, flush))
    }
    match (kind.kind, kind.bits) {
        (Kind::Bfloat, _) => of::<BFloat>(a, b, flush),
        (_, 16) => of::<Half>(a, b, flush),
        (_, 32) => of::<Single>(a, b, flush),
        _ => of::<Double>(a, b, flush),
    }
}

fn of<F: Native>(function: Function, values: [u64; 3], how: Rounded) -> u64 {
    let native = if how.round == Round::NearestTiesToEven { F::to_nearest(function, values, how.flush) } else { None };
    native.unwrap_or_else(|| in_software::<F>(function, values, how))
}

fn in_software<F: Native>(function: Function, values: [u64; 3], how: Rounded) -> u64 {
    let [a, b, c] = values.map(|bits| read::<F>(bits, how.flush));
    let of_first = |a: F, c: F| match function {
        Function::Add => a.add_r(b, how.round).value,
        Function::Subtract => a.sub_r(b, how.round).value,
        Function::Multiply => a.mul_r(b, how.round).value,
        Function::FusedMultiplyAdd => a.mul_add_r(b, c, how.round).value,
        Function::Divide | Function::ApproximateDivide => a.div_r(b, how.round).value,
        Function::SquareRoot | Function::ApproximateSquareRoot => square_root(a, how.round),
        _ => a,
    };
    match function {
        Function::Reciprocal => return reciprocal::<F>(values[0], how),
        Function::Negate => return (-a).to_bits() as u64,
        Function::Absolute => return a.abs().to_bits() as u64,
        Function::CopySign => return b.copy_sign(a).to_bits() as u64,
        Function::Elementary(function) => return elementary(function, a.to_bits() as u32, how),
        _ => {}
    }
    match function {
        // The product with the rounded reciprocal: off by at most 2 ulp, as the PTX ISA allows (8.7, 9.7.3.8).
        Function::ApproximateDivide => {
            of::<F>(Function::Multiply, [values[0], reciprocal::<F>(values[1], how), 0], how)
        }
        // The reciprocal of the rounded reciprocal root, with both rounded toward zero.
        Function::ApproximateSquareRoot => {
            let how = Rounded { round: Round::TowardZero, ..how };
            reciprocal::<F>(reciprocal::<F>(of::<F>(Function::SquareRoot, values, how), how), how)
        }
        // Tiny sums are exact, and roots are never tiny.
        Function::Add | Function::Subtract | Function::SquareRoot => result(of_first(a, c), how.flush, || false),
        _ => result(of_first(a, c), how.flush, || is_tiny_doubled(of_first(a.scalbn(1), c.scalbn(1)))),
    }
}

/// Computes in f64 and rounds toward zero to f32: within one ulp of the value, which all bounds of the PTX ISA allow.
fn elementary(function: Elementary, bits: u32, how: Rounded) -> u64 {
    let x = f64::from(f32::from_bits(bits));
    let value = match function {
        Elementary::Reciprocal => x.recip(),
        Elementary::ReciprocalRoot => x.sqrt().recip(),
        Elementary::Exponential => x.exp2(),
        Elementary::Logarithm => x.log2(),
        Elementary::Sine => x.sin(),
        Elementary::Cosine => x.cos(),
        Elementary::Tangent => x.tanh(),
    };
    let wide: Quad = Double::from_bits(value.to_bits().into()).convert(&mut false).value;
    narrow::<Single>(wide, Round::TowardZero, how.flush)
}

fn reciprocal<F: Native>(bits: u64, how: Rounded) -> u64 {
    of::<F>(Function::Divide, [F::from_u128(1).value.to_bits() as u64, bits, 0], how)
}

/// The square root to nearest, or its neighbour if the root's square, which fits into 113 bits, is on the wrong side of
/// the value.
fn square_root<F: Native>(value: F, round: Round) -> F {
    let nearest = F::to_nearest(Function::SquareRoot, [value.to_bits() as u64, 0, 0], false);
    let root = F::from_bits(nearest.unwrap_or_default().into());
    let wide = |value: F| -> Quad { value.convert(&mut false).value };
    match ((wide(root) * wide(root)).value.partial_cmp(&wide(value)), round) {
        (Some(Ordering::Greater), Round::TowardZero | Round::TowardNegative) => root.next_down().value,
        (Some(Ordering::Less), Round::TowardPositive) => root.next_up().value,
        _ => root,
    }
}

/// The value of some bits; with `flush`, subnormals become zero of their sign.
fn read<F: Float>(bits: u64, flush: bool) -> F {
    flushed(F::from_bits(bits.into()), flush)
}

fn flushed<F: Float>(value: F, flush: bool) -> F {
    if flush && value.is_denormal() { F::ZERO.copy_sign(value) } else { value }
}

/// The bits of a result. NaN is the device's own (PTX ISA 8.7, 9.7.3 and 9.7.4: 0x7fffffff and 0x7fff; for f64, which
/// it does not specify, CUDA's `CUDART_NAN`). With `flush`, a result is flushed if it is tiny when rounded with an
/// unbounded exponent; for the smallest normal value `is_tiny` decides.
fn result<F: Float>(value: F, flush: bool, is_tiny: impl FnOnce() -> bool) -> u64 {
    if value.is_nan() {
        return if F::BITS == 64 { 0xfff8_0000_0000_0000 } else { u64::MAX >> (65 - F::BITS) };
    }
    let is_tiny = flush && value.abs() == F::smallest_normalized() && is_tiny();
    let value = if is_tiny { F::ZERO.copy_sign(value) } else { flushed(value, flush) };
    value.to_bits() as u64
}

/// Whether a value is tiny, from twice the value, which is rounded to all bits of its format.
fn is_tiny_doubled<F: Float>(doubled: F) -> bool {
    doubled.abs() < F::smallest_normalized().scalbn(1)
}

/// A format, with the functions that the CPU computes itself.
trait Native: Float + FloatConvert<Quad> {
    /// The function's result rounded to nearest; `None` if the CPU does not compute it, or cannot tell if it is tiny.
    fn to_nearest(_: Function, _: [u64; 3], _flush: bool) -> Option<u64> {
        None
    }
}

impl Native for Half {}
impl Native for BFloat {}

macro_rules! native {
    ($format:ty, $float:ty, $bits:ty, $nan:literal) => {
        impl Native for $format {
            #[inline]
            fn to_nearest(function: Function, values: [u64; 3], flush: bool) -> Option<u64> {
                let flushed = |value: $float| if flush && value.is_subnormal() { value * 0.0 } else { value };
                let [a, b, c] = values.map(|bits| flushed(<$float>::from_bits(bits as $bits)));
                let value = match function {
                    Function::Add => a + b,
                    Function::Subtract => a - b,
                    Function::Multiply => a * b,
                    Function::FusedMultiplyAdd => a.mul_add(b, c),
                    Function::Divide => a / b,
                    Function::SquareRoot => a.sqrt(),
                    _ => return None,
                };
                let is_least = flush && value.abs() == <$float>::MIN_POSITIVE;
                (!is_least).then(|| if value.is_nan() { $nan } else { flushed(value).to_bits().into() })
            }
        }
    };
}

native!(Single, f32, u32, 0x7fff_ffff);
native!(Double, f64, u64, 0xfff8_0000_0000_0000);

/// Converts from or to floats, as `cvt`. The 113 bits of the intermediate format hold all values of both types.
pub(super) fn convert(conversion: Conversion, bits: u64) -> u64 {
    let Conversion { to, from, how: Rounded { round, flush } } = conversion;
    let bits = from.extend(bits);
    let value = match (from.kind, from.bits) {
        (Kind::Signed, _) => Quad::from_i128(bits.cast_signed().into()).value,
        _ if from.is_integer() => Quad::from_u128(bits.into()).value,
        (Kind::Bfloat, _) => wide::<BFloat>(bits, flush),
        (_, 16) => wide::<Half>(bits, flush),
        (_, 32) => wide::<Single>(bits, flush),
        _ => wide::<Double>(bits, flush),
    };
    match (to.kind, to.bits) {
        // Saturates; NaN gives 0 (PTX ISA 8.7, 9.7.9.21).
        (Kind::Signed, bits) => value.to_i128_r(bits as usize, round, &mut false).value as u64 & to.mask(),
        (_, bits) if to.is_integer() => value.to_u128_r(bits as usize, round, &mut false).value as u64,
        (Kind::Bfloat, _) => narrow::<BFloat>(value, round, flush),
        (_, 16) => narrow::<Half>(value, round, flush),
        (_, 32) => narrow::<Single>(value, round, flush),
        _ => narrow::<Double>(value, round, flush),
    }
}

fn wide<F: Float + FloatConvert<Quad>>(bits: u64, flush: bool) -> Quad {
    read::<F>(bits, flush).convert(&mut false).value
}

fn narrow<F: Float>(value: Quad, round: Round, flush: bool) -> u64
where
    Quad: FloatConvert<F>,
{
    let rounded = |value: Quad| FloatConvert::<F>::convert_r(value, round, &mut false).value;
    result(rounded(value), flush, || is_tiny_doubled(rounded(value.scalbn(1))))
}

#[cfg(test)]
mod tests {
    use mxprobe_api::Format;

    use super::*;

    const FUNCTIONS: [Function; 6] = [
        Function::Add,
        Function::Subtract,
        Function::Multiply,
        Function::FusedMultiplyAdd,
        Function::Divide,
        Function::SquareRoot,
    ];
    const F64: Type = Type { kind: Kind::Float, bits: 64 };
    const NEAREST: Rounded = rounded(Round::NearestTiesToEven);

    const fn rounded(round: Round) -> Rounded {
        Rounded { round, flush: false }
    }

    fn random(state: &mut u64) -> u64 {
        *state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (*state ^ (*state >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ (*state >> 17)
    }

    /// Calls a function with the bits of 40 000 triples of f64, or of f32; every second one has similar exponents, so
    /// that sums cancel.
    fn with_random_operands(check: impl Fn(Function, Type, [u64; 3])) {
        let mut state = 1;
        for round in 0..40_000 {
            let mut words = [random(&mut state), random(&mut state), random(&mut state)];
            if round % 2 == 0 {
                words = words.map(|word| word & !(0x7f0 << 52) | 0x3f0 << 52);
            }
            for function in FUNCTIONS {
                check(function, F64, words);
                check(function, Type::F32, words.map(|word| word >> 32));
            }
        }
    }

    fn value(kind: Type, bits: u64) -> f64 {
        if kind == F64 { f64::from_bits(bits) } else { f32::from_bits(bits as u32).into() }
    }

    #[test]
    fn in_software_to_nearest_is_what_the_cpu_computes() {
        with_random_operands(|function, kind, values| {
            let [ours, theirs] = if kind == F64 {
                [Some(in_software::<Double>(function, values, NEAREST)), Double::to_nearest(function, values, false)]
            } else {
                [Some(in_software::<Single>(function, values, NEAREST)), Single::to_nearest(function, values, false)]
            };
            assert_eq!(ours, theirs, "{function:?} {values:x?}");
        });
    }

    #[test]
    fn one_of_two_directions_is_to_nearest_and_the_other_its_neighbour() {
        with_random_operands(|function, kind, values| {
            let by = |round| compute(function, kind, values, rounded(round));
            let [down, up] = [by(Round::TowardNegative), by(Round::TowardPositive)];
            let (nearest, zero) = (by(Round::NearestTiesToEven), by(Round::TowardZero));
            let is_negative = value(kind, nearest).is_sign_negative();
            assert!(nearest == down || nearest == up, "{function:?} {values:x?}");
            if value(kind, nearest) != 0.0 {
                assert_eq!(zero, if is_negative { up } else { down }, "{function:?} {values:x?}");
                assert!(down.abs_diff(up) <= 1, "{function:?} {values:x?}");
                assert!(
                    value(kind, down) <= value(kind, up) || value(kind, nearest).is_nan(),
                    "{function:?} {values:x?}"
                );
            }
        });
    }

    #[test]
    fn a_root_lies_between_its_neighbours_squares() {
        let mut state = 3;
        for _ in 0..40_000 {
            let bits = random(&mut state) >> 33;
            let root = |round| value(Type::F32, compute(Function::SquareRoot, Type::F32, [bits, 0, 0], rounded(round)));
            let (down, up) = (root(Round::TowardNegative), root(Round::TowardPositive));
            let wanted = value(Type::F32, bits);
            // Squares of f32 are exact in f64.
            assert!(down * down <= wanted && wanted <= up * up || wanted.is_nan(), "{bits:x}: {down} {up}");
        }
    }

    #[test]
    fn narrow_formats_are_rounded_once_from_the_exact_result() {
        let mut state = 5;
        for _ in 0..40_000 {
            let [a, b] = [random(&mut state) & 0xffff, random(&mut state) & 0xffff];
            // f64 holds the sums and products of f16 and the products of bf16.
            for (word, format, function) in [
                ("f16", Format::F16, Function::Add),
                ("f16", Format::F16, Function::Multiply),
                ("bf16", Format::BF16, Function::Multiply),
            ] {
                let (x, y) = (format.to_f64(a), format.to_f64(b));
                let exact = if function == Function::Add { x + y } else { x * y };
                let ours = compute(function, Type::parse(word).unwrap(), [a, b, 0], NEAREST);
                let wanted = if exact.is_nan() { 0x7fff } else { format.from_f64(exact) };
                assert_eq!(ours, wanted, "{function:?} {a:x} {b:x} of {word}");
            }
        }
    }

    #[test]
    fn exact_zeros_have_the_sign_of_the_direction() {
        let one = u64::from(1f32.to_bits());
        let less = |round| compute(Function::Subtract, Type::F32, [one, one, 0], rounded(round));
        assert_eq!([less(Round::TowardNegative), less(Round::TowardPositive)], [0x8000_0000, 0]);
    }

    #[test]
    fn flushing_takes_subnormals_for_zero_on_both_sides() {
        let how = Rounded { flush: true, ..NEAREST };
        let f32s = |function, values, how| compute(function, Type::F32, values, how);
        assert_eq!(f32s(Function::Add, [1, 1, 0], how), 0);
        assert_eq!(f32s(Function::Multiply, [0x0080_0000, 0xbf00_0000, 0], how), 0x8000_0000);
        assert_eq!(f32s(Function::Multiply, [0x0080_0000, 0xbf00_0000, 0], NEAREST), 0x8040_0000);
    }

    #[test]
    fn what_is_tiny_with_an_unbounded_exponent_is_flushed_although_it_becomes_the_smallest_normal_value() {
        for round in [Round::NearestTiesToEven, Round::TowardPositive] {
            let [kept, flushed] = [false, true].map(|flush| {
                let how = Rounded { round, flush };
                let product = compute(Function::Multiply, Type::F32, [0x1500_0000, 0x2aff_ffff, 0], how);
                let quotient = compute(Function::Divide, Type::F32, [0x01ff_ffff, 0x4100_0000, 0], how);
                let conversion = Conversion { to: Type::F32, from: F64, how };
                [product, quotient, convert(conversion, 0x380f_ffff_e000_0000)]
            });
            assert_eq!((kept, flushed), ([0x0080_0000; 3], [0; 3]));
        }
        // Half a place more, and it is normal.
        let how = Rounded { flush: true, ..NEAREST };
        let conversion = Conversion { to: Type::F32, from: F64, how };
        assert_eq!(convert(conversion, 0x380f_ffff_f000_0000), 0x0080_0000);
    }
}
