//! The results that IEEE 754 specifies for a function in each mode, which answers are compared with.

use std::{
    cell::Cell,
    mem::{Discriminant, discriminant},
};

use mxprobe_api::{Decoded, Format, Rounding, ScalarFunction, Subnormals};

use super::{
    extended,
    known::Known,
    once::{Mode, Other, convert, flushed, is_subnormal, once, sign_of},
    sum::{Arithmetic, Sum},
};

/// How a function of several steps computes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Steps {
    /// As its name says: one rounding, or one for each operation of the expression.
    AsNamed,
    /// The multiplication is fused with its addition, although the name does not say so.
    Contracted,
    /// Each multiplication is rounded before the addition, although the name says that it is fused.
    Separate,
    /// Computed in f64, then rounded.
    ByWayOfF64,
    /// Computed in f32, then rounded again.
    ByWayOfF32,
    /// Computed in registers of 64 significand bits, then rounded to the format: x87.
    ByWayOfX87,
    /// The four products of a dot product are added in another order than its name says, or contracted differently.
    Summed(Sum),
}

impl Steps {
    /// The readings of a function, starting with the one that its name says.
    pub(super) fn of(function: ScalarFunction, format: Format) -> Vec<Self> {
        let narrow = format.bits() < 64;
        let mut found = vec![Self::AsNamed];
        match function {
            ScalarFunction::MultiplyAdd => found.push(Self::Contracted),
            ScalarFunction::Fma => found.push(Self::Separate),
            ScalarFunction::Dot4 { order } => {
                let named = Sum::named(order);
                found.extend(Sum::all().into_iter().filter(|sum| *sum != named).map(Self::Summed));
            }
            ScalarFunction::Convert { to } => {
                if format == Format::F64 && !to.is_integer() && to.bits() < 32 {
                    found.push(Self::ByWayOfF32);
                }
                return found;
            }
            _ => return found,
        }
        if narrow {
            found.push(Self::ByWayOfF64);
        }
        found
    }

    /// Like [`Steps::of`], for arithmetic in x87 registers.
    pub(super) fn of_x87(function: ScalarFunction, format: Format) -> Vec<Self> {
        let wide = extended::shows(function, format).then_some(Self::ByWayOfX87);
        Self::of(function, format).into_iter().chain(wide).collect()
    }

    /// Whether a product is fused with the sum that it is added to; `None` for functions of one step, and for dot
    /// products.
    pub(super) fn fuses(function: ScalarFunction, steps: Self) -> Option<bool> {
        let named = match function {
            ScalarFunction::Fma => true,
            ScalarFunction::MultiplyAdd => false,
            _ => return None,
        };
        Some(if steps == Self::AsNamed { named } else { !named })
    }
}

/// Whether the result of a function may depend on the direction of rounding: exact results do not.
pub(super) fn is_rounded(function: ScalarFunction) -> bool {
    !matches!(
        function,
        ScalarFunction::Remainder
            | ScalarFunction::TruncatedRemainder
            | ScalarFunction::Negate
            | ScalarFunction::Abs
            | ScalarFunction::CopySign
            | ScalarFunction::Compare
    )
}

/// The result of a function in a mode.
pub(super) fn result(
    function: ScalarFunction,
    format: Format,
    operands: &[u64],
    mode: Mode,
    steps: Steps,
) -> Result<u64, Other> {
    evaluate(function, format, operands, mode, steps, &Cell::new(false), None)
}

/// Operations of sums of the same products, of one format: their results, and whether a subnormal occurred.
pub(super) type Shared = Known<(Discriminant<ScalarFunction>, [u64; 3], Mode), (Result<u64, Other>, bool)>;

/// As [`result`], with operations that several readings of a call share.
pub(super) fn result_of(
    function: ScalarFunction,
    format: Format,
    operands: &[u64],
    mode: Mode,
    steps: Steps,
    shared: &Shared,
) -> Result<u64, Other> {
    evaluate(function, format, operands, mode, steps, &Cell::new(false), Some(shared))
}

/// The result of a function if subnormals are kept, and whether a subnormal occurs, or a value that a subnormal may
/// have been rounded to. If none occurs, the result does not depend on how subnormals are flushed.
pub(super) fn unflushed(
    function: ScalarFunction,
    format: Format,
    operands: &[u64],
    rounding: Rounding,
    steps: Steps,
    shared: &Shared,
) -> (Result<u64, Other>, bool) {
    let is_tiny = Cell::new(false);
    let mode = Mode { rounding, daz: false, results: Subnormals::Keep };
    (evaluate(function, format, operands, mode, steps, &is_tiny, Some(shared)), is_tiny.get())
}

fn evaluate(
    function: ScalarFunction,
    format: Format,
    operands: &[u64],
    mode: Mode,
    steps: Steps,
    is_tiny: &Cell<bool>,
    shared: Option<&Shared>,
) -> Result<u64, Other> {
    if steps == Steps::ByWayOfX87 {
        return by_way_of_x87(function, format, operands, mode, is_tiny);
    }
    if steps == Steps::ByWayOfF64 {
        return by_way_of_f64(function, format, operands, mode, is_tiny);
    }
    let is_sum = matches!(function, ScalarFunction::Dot4 { .. });
    let call = |function: ScalarFunction, operands: &[u64]| {
        let compute = |is_tiny: &Cell<bool>| {
            let mut x = [0; 3];
            for (x, operand) in x.iter_mut().zip(operands) {
                *x = read(format, *operand, mode, is_tiny);
            }
            let result = once(format, function, &x, mode);
            note_tiny_result(function.result(format), result, is_tiny);
            result
        };
        let Some(shared) = shared.filter(|_| is_sum) else { return compute(is_tiny) };
        let mut x = [0; 3];
        x[..operands.len()].copy_from_slice(operands);
        let words = [x[0], x[1], x[2] ^ (mode.rounding as u64) << 60];
        let (result, was_tiny) = shared.value((discriminant(&function), x, mode), words, || {
            let is_tiny = Cell::new(false);
            (compute(&is_tiny), is_tiny.get())
        });
        is_tiny.set(is_tiny.get() || was_tiny);
        result
    };
    let multiply = |a: u64, b: u64| call(ScalarFunction::Multiply, &[a, b]);
    let add = |a: u64, b: u64| call(ScalarFunction::Add, &[a, b]);
    let fma = |a: u64, b: u64, c: u64| call(ScalarFunction::Fma, &[a, b, c]);
    let separate = |a: u64, b: u64, c: u64| add(multiply(a, b)?, c);
    let x = operands;
    let fused = Steps::fuses(function, steps) == Some(true);
    match (function, steps) {
        (ScalarFunction::Convert { .. }, Steps::ByWayOfF32) => {
            let narrow = call(ScalarFunction::Convert { to: Format::F32 }, x)?;
            evaluate(function, Format::F32, &[narrow], mode, Steps::AsNamed, is_tiny, None)
        }
        (ScalarFunction::Dot4 { order }, _) => {
            let sum = if let Steps::Summed(sum) = steps { sum } else { Sum::named(order) };
            sum.of(&Arithmetic {
                product: &|at| multiply(x[at], x[4 + at]),
                add: &add,
                fma: &|at, other| fma(x[at], x[4 + at], other),
            })
        }
        (ScalarFunction::Fma | ScalarFunction::MultiplyAdd, _) => {
            if fused {
                fma(x[0], x[1], x[2])
            } else {
                separate(x[0], x[1], x[2])
            }
        }
        _ => call(function, x),
    }
}

fn by_way_of_f64(
    function: ScalarFunction,
    format: Format,
    operands: &[u64],
    mode: Mode,
    is_tiny: &Cell<bool>,
) -> Result<u64, Other> {
    let wide = |x: &u64| convert(format, read(format, *x, mode, is_tiny), Format::F64, mode.rounding, Subnormals::Keep);
    let operands = operands.iter().map(wide).collect::<Result<Vec<u64>, Other>>()?;
    let plain = Mode { daz: false, results: Subnormals::Keep, ..mode };
    let unfused = if function == ScalarFunction::Fma { ScalarFunction::MultiplyAdd } else { function };
    let sum = result(unfused, Format::F64, &operands, plain, Steps::AsNamed)?;
    let narrow = convert(Format::F64, sum, format, mode.rounding, mode.results);
    note_tiny_result(format, narrow, is_tiny);
    narrow
}

fn by_way_of_x87(
    function: ScalarFunction,
    format: Format,
    operands: &[u64],
    mode: Mode,
    is_tiny: &Cell<bool>,
) -> Result<u64, Other> {
    let operands: Vec<u64> = operands.iter().map(|bits| read(format, *bits, mode, is_tiny)).collect();
    let bits = extended::result(function, format, &operands, mode.rounding).ok_or(Other::Open)?;
    if matches!(format.decode(bits), Decoded::Nan { .. }) {
        return Err(Other::Nan);
    }
    note_tiny_result(format, Ok(bits), is_tiny);
    let is_flushed = mode.results != Subnormals::Keep && is_subnormal(format, bits);
    Ok(if is_flushed { flushed(format, bits, mode.results) } else { bits })
}

/// An operand as a mode reads it.
fn read(format: Format, bits: u64, mode: Mode, is_tiny: &Cell<bool>) -> u64 {
    is_tiny.set(is_tiny.get() || is_subnormal(format, bits));
    if mode.daz && is_subnormal(format, bits) { bits & sign_of(format) } else { bits }
}

/// Records a result that may be subnormal, or that may have been rounded to zero or to the smallest normal value.
fn note_tiny_result(format: Format, result: Result<u64, Other>, is_tiny: &Cell<bool>) {
    let is_small = |bits: u64| !format.is_integer() && bits & !sign_of(format) <= 1 << format.fraction_bits();
    is_tiny.set(is_tiny.get() || result.is_ok_and(is_small));
}

/// The number of steps between two results among the values of a format; `None` if one of them is NaN.
pub(super) fn distance(format: Format, a: u64, b: u64) -> Option<u64> {
    let place = |bits: u64| -> Option<i128> {
        let number =
            matches!(format.decode(bits), Decoded::Finite { .. } | Decoded::Zero { .. } | Decoded::Infinity { .. });
        if format.is_integer() {
            let width = format.bits();
            return Some((i128::from(bits) << (128 - width)) >> (128 - width));
        }
        let sign = 1u64 << (format.bits() - 1);
        let magnitude = i128::from(bits & (sign - 1));
        number.then_some(if bits & sign == 0 { magnitude } else { -magnitude })
    };
    u64::try_from((place(a)? - place(b)?).unsigned_abs()).ok()
}
