//! A scalar unit that computes as IEEE 754 asks, with one thing changed.

use std::collections::BTreeMap;

use mxprobe_api::{
    Device, DeviceInfo, DeviceKind, DotOrder, Elements, Error, Format, Operation, OperationSet, Scalar, ScalarFunction,
    ScalarId, Scalars, TileBatch,
};

/// Implements `Device` for a type with a field `unit`: operations are the unit's, scalar functions the type's own.
macro_rules! device_around_its_unit {
    ($name:ty) => {
        impl mxprobe_api::Device for $name {
            fn info(&self) -> &mxprobe_api::DeviceInfo {
                self.unit.info()
            }

            fn operations(&self) -> &mxprobe_api::OperationSet {
                self.unit.operations()
            }

            fn execute(
                &self,
                operation: &mxprobe_api::Operation,
                batch: &mxprobe_api::TileBatch,
            ) -> Result<mxprobe_api::Elements, mxprobe_api::Error> {
                self.unit.execute(operation, batch)
            }

            fn scalars(&self) -> Option<&dyn mxprobe_api::Scalars> {
                Some(self)
            }
        }
    };
}
pub(crate) use device_around_its_unit;

/// The difference from IEEE 754 with rounding to nearest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Change {
    Nothing,
    TowardZero,
    FlushResults,
    FlushInputs,
    DivisionOff,
    FmaNotFused,
    Contracted,
    /// fma(a0, b0, p1) + fma(a2, b2, p3), and a serial sum that begins in the same way.
    ContractedFirst,
    /// fma(a0, b0, p1) + fma(a3, b3, p2).
    ContractedMixed,
    /// fma(a1, b1, p0) + (p2 + p3), and in a serial sum only the last product fused.
    ContractedPartly,
    FmaInF64,
    CanonicalNan,
    PairwiseReordered,
    SignallingFirst,
    TowardZeroFlushed,
}

pub(crate) struct Unit {
    info: DeviceInfo,
    operations: OperationSet,
    scalars: Vec<Scalar>,
    change: Change,
}

impl Unit {
    pub(crate) fn new(change: Change, mode: &[&str]) -> Self {
        let functions = ScalarFunction::of_shaders(Format::F32, &[Format::F64, Format::S32]);
        let is_required = |function: &ScalarFunction| !matches!(function, ScalarFunction::Elementary(_));
        let functions: BTreeMap<_, _> = functions.filter(is_required).map(|function| (function, None)).collect();
        let id = mode.iter().fold(ScalarId::new(Format::F32), |id, word| id.with(word));
        let info = DeviceInfo {
            backend: "test".into(),
            selector: "test:0".into(),
            name: "a unit for a test".into(),
            fingerprint: "test".into(),
            kind: DeviceKind::Software,
            emulated: false,
            aliases: Vec::new(),
            driver: None,
            properties: BTreeMap::new(),
        };
        Self { info, operations: OperationSet::new(), scalars: vec![Scalar { id, functions }], change }
    }

    /// Applies this unit's changes to a result: flushed subnormals, canonical NaN.
    fn written(&self, value: f32) -> f32 {
        match self.change {
            Change::FlushResults | Change::TowardZeroFlushed if value.is_subnormal() => 0f32.copysign(value),
            Change::CanonicalNan if value.is_nan() => f32::from_bits(0x7fff_ffff),
            _ => value,
        }
    }

    fn is_toward_zero(&self) -> bool {
        matches!(self.change, Change::TowardZero | Change::TowardZeroFlushed)
    }

    /// Rounds a value of f64, toward zero if this unit does; f64 is exact enough for products, quotients and roots.
    fn rounded(&self, wide: f64) -> f32 {
        #[allow(clippy::cast_possible_truncation, reason = "the conversion rounds to nearest")]
        let near = wide as f32;
        if self.is_toward_zero() && f64::from(near).abs() > wide.abs() {
            return f32::from_bits(near.to_bits() - 1);
        }
        near
    }

    fn binary(&self, x: f32, y: f32, near: fn(f32, f32) -> f32, wide: fn(f64, f64) -> f64) -> f32 {
        if self.change == Change::FlushResults && x.is_finite() && y.is_finite() {
            // A result is tiny if it is below the normal range when rounded with an unbounded exponent.
            let shift = 2f64.powi(64);
            #[allow(clippy::cast_possible_truncation, reason = "the conversion rounds to nearest")]
            let unbounded = f64::from((wide(x.into(), y.into()) * shift) as f32) / shift;
            if unbounded != 0.0 && unbounded.abs() < f64::from(f32::MIN_POSITIVE) {
                return 0f32.copysign(near(x, y));
            }
        }
        if !(self.is_toward_zero() && x.is_finite() && y.is_finite()) {
            return self.written(near(x, y));
        }
        let sum = wide(x.into(), y.into());
        self.written(if sum == 0.0 || !sum.is_finite() { near(x, y) } else { self.rounded(sum) })
    }

    fn multiply(&self, x: f32, y: f32) -> f32 {
        self.binary(x, y, |x, y| x * y, |x, y| x * y)
    }

    fn add(&self, x: f32, y: f32) -> f32 {
        let is_signalling = |x: f32| x.is_nan() && x.to_bits() & 1 << 22 == 0;
        if self.change == Change::SignallingFirst && is_signalling(y) && !is_signalling(x) {
            return f32::from_bits(y.to_bits() | 1 << 22);
        }
        self.binary(x, y, |x, y| x + y, |x, y| x + y)
    }

    fn fma(&self, x: f32, y: f32, z: f32) -> f32 {
        match self.change {
            Change::FmaNotFused => self.add(self.multiply(x, y), z),
            #[allow(clippy::cast_possible_truncation, reason = "rounded twice: that is the change")]
            Change::FmaInF64 => (f64::from(x) * f64::from(y) + f64::from(z)) as f32,
            _ => self.written(x.mul_add(y, z)),
        }
    }

    fn multiply_add(&self, x: f32, y: f32, z: f32) -> f32 {
        if self.change == Change::Contracted { self.fma(x, y, z) } else { self.add(self.multiply(x, y), z) }
    }

    fn bits(&self, value: f32) -> u64 {
        u64::from(value.to_bits())
    }

    fn call(&self, function: ScalarFunction, x: &[f32]) -> u64 {
        let products = |at: usize| self.multiply(x[at], x[4 + at]);
        let value = match function {
            ScalarFunction::Add => self.add(x[0], x[1]),
            ScalarFunction::Subtract => self.binary(x[0], x[1], |x, y| x - y, |x, y| x - y),
            ScalarFunction::Multiply => self.multiply(x[0], x[1]),
            ScalarFunction::Divide => {
                let quotient = self.binary(x[0], x[1], |x, y| x / y, |x, y| x / y);
                let off = self.change == Change::DivisionOff && quotient.is_normal() && x[1].to_bits() & 7 == 5;
                if off { f32::from_bits(quotient.to_bits() ^ 1) } else { quotient }
            }
            ScalarFunction::SquareRoot => self.binary(x[0], x[0], |x, _| x.sqrt(), |x, _| x.sqrt()),
            ScalarFunction::Fma => self.fma(x[0], x[1], x[2]),
            ScalarFunction::MultiplyAdd => self.multiply_add(x[0], x[1], x[2]),
            ScalarFunction::Convert { to: Format::F64 } => return f64::from(x[0]).to_bits(),
            #[allow(clippy::cast_possible_truncation, reason = "as the language converts")]
            ScalarFunction::Convert { .. } => return u64::from((x[0] as i32).cast_unsigned()),
            ScalarFunction::Dot4 { order: DotOrder::Serial } if self.change == Change::ContractedFirst => {
                let first = self.fma(x[0], x[4], products(1));
                (2..4).fold(first, |sum, at| self.fma(x[at], x[4 + at], sum))
            }
            ScalarFunction::Dot4 { order: DotOrder::Serial } if self.change == Change::ContractedPartly => {
                let sum = (0..3).fold(0.0, |sum, at| self.add(sum, products(at)));
                self.fma(x[3], x[7], sum)
            }
            ScalarFunction::Dot4 { order: DotOrder::Serial } => {
                (0..4).fold(0.0, |sum, at| self.multiply_add(x[at], x[4 + at], sum))
            }
            ScalarFunction::Dot4 { order: DotOrder::Fma } => {
                (0..4).fold(0.0, |sum, at| self.fma(x[at], x[4 + at], sum))
            }
            ScalarFunction::Dot4 { order: DotOrder::Pairwise } if self.change == Change::PairwiseReordered => {
                self.add(self.add(self.add(products(2), products(3)), products(0)), products(1))
            }
            ScalarFunction::Dot4 { order: DotOrder::Pairwise } => {
                let first = |at: usize| self.fma(x[at], x[4 + at], products(at + 1));
                let second = |at: usize| self.fma(x[at + 1], x[5 + at], products(at));
                match self.change {
                    Change::ContractedFirst => return self.bits(self.add(first(0), first(2))),
                    Change::ContractedMixed => return self.bits(self.add(first(0), second(2))),
                    Change::ContractedPartly => {
                        return self.bits(self.add(second(0), self.add(products(2), products(3))));
                    }
                    _ => {}
                }
                let half = |at: usize| self.multiply_add(x[at + 1], x[5 + at], products(at));
                self.add(half(0), half(2))
            }
            ScalarFunction::Reciprocal => self.binary(1.0, x[0], |x, y| x / y, |x, y| x / y),
            ScalarFunction::TruncatedRemainder => self.written(x[0] % x[1]),
            ScalarFunction::Scale => {
                let scale = |x: f64, by: f64| x * by.exp2();
                #[allow(clippy::cast_possible_truncation, reason = "the conversion rounds to nearest")]
                self.binary(x[0], x[1], |x, by| (f64::from(x) * f64::from(by).exp2()) as f32, scale)
            }
            ScalarFunction::Compare => {
                let order = x[0].partial_cmp(&x[1]).map_or(2, |order| order as i32);
                return order.cast_unsigned().into();
            }
            ScalarFunction::Negate => self.written(-x[0]),
            ScalarFunction::Abs => self.written(x[0].abs()),
            _ => unreachable!("{function} is not one of the functions that this unit lists"),
        };
        u64::from(value.to_bits())
    }
}

impl Device for Unit {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn operations(&self) -> &OperationSet {
        &self.operations
    }

    fn execute(&self, operation: &Operation, _: &TileBatch) -> Result<Elements, Error> {
        Err(Error::unsupported(format!("this unit has no matrix operations, {} included", operation.id)))
    }

    fn scalars(&self) -> Option<&dyn Scalars> {
        Some(self)
    }
}

impl Scalars for Unit {
    fn members(&self) -> &[Scalar] {
        &self.scalars
    }

    fn call(&self, _: &Scalar, function: ScalarFunction, operands: &Elements) -> Result<Elements, Error> {
        #[allow(clippy::cast_possible_truncation, reason = "32 bits")]
        let read = |bits: u64| {
            let value = f32::from_bits(bits as u32);
            if self.change == Change::FlushInputs && value.is_subnormal() { 0f32.copysign(value) } else { value }
        };
        let values: Vec<f32> = (0..operands.len()).map(|at| read(operands.get(at))).collect();
        let results = values.chunks(function.arity()).map(|x| self.call(function, x));
        Ok(Elements::from_bits(function.result(Format::F32), results))
    }
}
