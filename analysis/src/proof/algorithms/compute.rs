//! Executes programs: the unit with its model's evaluator, everything else in f32 and f64 arithmetic.

use dashu_int::{IBig, UBig};
use mxprobe_api::{Decoded, Error, Format, OperationId};
use mxprobe_models::{Evaluator, Model};

use super::program::{Scalar, Vector};
use crate::dots::Dot;

/// A unit that programs can call: f32 results of floating operands without block scales.
#[derive(Debug)]
pub struct Machine {
    pub(super) id: OperationId,
    evaluator: Evaluator,
    /// The format of a and b.
    inputs: Format,
}

/// The result of a program for a dot: the bits of an f32, and its distance from the exact result in units of
/// 2^[`ERROR_LSB`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The result.
    pub bits: u64,
    /// The absolute error.
    pub error: UBig,
}

/// The exponent of the unit in which errors are counted: every product of two f32 values is a multiple of it.
pub const ERROR_LSB: i32 = -298;

impl Machine {
    /// Prepares the unit of a model's operation for inputs of a format.
    ///
    /// # Errors
    /// If the model has no such operation, or programs cannot call it, or f32 does not hold the inputs.
    pub fn new(model: &Model, id: &OperationId, inputs: Format) -> Result<Self, Error> {
        if id.is_integer() || id.block_scale().is_some() || [id.c, id.d] != [Format::F32; 2] {
            return Err(Error::unsupported(format!(
                "{id} does not add products of floating operands to an f32 c without block scales, as algorithms need it"
            )));
        }
        let is_held = |format: Format| {
            format.as_float().is_some_and(|float| {
                let (low, high) = float.exponents();
                float.fraction_bits <= 23 && low >= -149 && high <= 127
            })
        };
        for format in [inputs, id.a, id.b] {
            if !is_held(format) {
                return Err(Error::unsupported(format!("f32 does not hold every value of {format}")));
            }
        }
        Ok(Self { id: id.clone(), evaluator: Evaluator::new(model, id)?, inputs })
    }

    /// The result of a program for a dot whose a and b are in the machine's format and c is f32.
    #[must_use]
    pub fn compute(&self, program: &Scalar, dot: &Dot) -> u64 {
        u64::from(self.f32(program, dot).to_bits())
    }

    /// The result with its error; `None` if the result or an input is not finite.
    #[must_use]
    pub fn outcome(&self, program: &Scalar, dot: &Dot) -> Option<Outcome> {
        let bits = self.compute(program, dot);
        let distance = units(Format::F32, bits)? - self.exact(dot)?;
        Some(Outcome { bits, error: distance.into_parts().1 })
    }

    /// The exact result in units of 2^[`ERROR_LSB`]; `None` if an input is not finite.
    #[must_use]
    pub fn exact(&self, dot: &Dot) -> Option<IBig> {
        let mut sum = units(Format::F32, dot.c)?;
        for (a, b) in dot.a.iter().zip(&dot.b) {
            let half = ERROR_LSB / 2;
            let [a, b] = [a, b].map(|bits| whole(self.inputs, *bits, half));
            sum += a? * b?;
        }
        Some(sum)
    }

    #[expect(clippy::cast_possible_truncation, reason = "rounded to f32, which is what is asked for")]
    fn f32(&self, program: &Scalar, dot: &Dot) -> f32 {
        self.value(program, dot) as f32
    }

    /// The value of a program, in f32 or f64, as f64.
    #[expect(clippy::cast_possible_truncation, reason = "each rounding to f32 is a step of the program")]
    fn value(&self, program: &Scalar, dot: &Dot) -> f64 {
        match program {
            Scalar::C => Format::F32.to_f64(dot.c),
            Scalar::Zero => 0.0,
            Scalar::Unit(a, b, c, [from, to]) => {
                let (a, b) = (self.vector(a, dot), self.vector(b, dot));
                let mut sum = u64::from(self.f32(c, dot).to_bits());
                let k = self.id.shape.sizes().2;
                for first in (*from..*to).step_by(k) {
                    let part = |values: &[f32], format: Format| {
                        let part = &values[first..(*to).min(first + k)];
                        let mut bits: Vec<u64> = part.iter().map(|value| format.from_f64(f64::from(*value))).collect();
                        bits.resize(k, 0);
                        bits
                    };
                    let (a, b) = (part(&a, self.id.a), part(&b, self.id.b));
                    let dot = mxprobe_models::Dot { a: &a, b: &b, c: sum, scales: None };
                    sum = self.evaluator.dot(dot).expect("k products");
                }
                Format::F32.to_f64(sum)
            }
            // The sum of two f32 values is rounded at most once in f32, whether it is computed in f32 or in f64 first.
            Scalar::Add(Format::F32, one, other) => f64::from(self.f32(one, dot) + self.f32(other, dot)),
            Scalar::Add(_, one, other) => self.value(one, dot) + self.value(other, dot),
            Scalar::Scaled(of, by) => f64::from(scaled(self.f32(of, dot), *by)),
            Scalar::Rounded(_, of) => f64::from(self.value(of, dot) as f32),
        }
    }

    fn vector(&self, vector: &Vector, dot: &Dot) -> Vec<f32> {
        let format = if is_of_a(vector) { self.id.a } else { self.id.b };
        match vector {
            Vector::A | Vector::B => {
                let bits = if *vector == Vector::A { &dot.a } else { &dot.b };
                bits.iter().map(|bits| narrow_f64(self.inputs.to_f64(*bits))).collect()
            }
            Vector::Narrow(of) => {
                let round = |value: f32| narrow_f64(format.to_f64(format.from_f64(f64::from(value))));
                self.vector(of, dot).into_iter().map(round).collect()
            }
            Vector::Minus(of, less) => {
                let (of, less) = (self.vector(of, dot), self.vector(less, dot));
                of.into_iter().zip(less).map(|(of, less)| of - less).collect()
            }
            Vector::Scaled(of, by) => self.vector(of, dot).into_iter().map(|value| scaled(value, *by)).collect(),
        }
    }
}

/// Converts a value that f32 holds.
#[expect(clippy::cast_possible_truncation, reason = "f32 holds it")]
fn narrow_f64(value: f64) -> f32 {
    value as f32
}

/// Whether a vector is computed from the row of A.
pub(super) fn is_of_a(vector: &Vector) -> bool {
    match vector {
        Vector::A => true,
        Vector::B => false,
        Vector::Narrow(of) | Vector::Minus(of, _) | Vector::Scaled(of, _) => is_of_a(of),
    }
}

/// value·2^by, rounded to f32 once: the product is exact in f64 for the few bits that programs scale by.
fn scaled(value: f32, by: i32) -> f32 {
    narrow_f64(f64::from(value) * f64::from(by).exp2())
}

/// A finite value in units of 2^[`ERROR_LSB`].
fn units(format: Format, bits: u64) -> Option<IBig> {
    whole(format, bits, ERROR_LSB)
}

/// A finite value in units of 2^lsb, which must not exceed the value's own.
fn whole(format: Format, bits: u64, lsb: i32) -> Option<IBig> {
    match format.decode(bits) {
        Decoded::Zero { .. } => Some(IBig::ZERO),
        Decoded::Finite { negative, significand, exponent } => {
            let shift = exponent - format.fraction_bits().cast_signed() - lsb;
            let magnitude = IBig::from(significand) << usize::try_from(shift).ok()?;
            Some(if negative { -magnitude } else { magnitude })
        }
        Decoded::Nan { .. } | Decoded::Infinity { .. } => None,
    }
}
