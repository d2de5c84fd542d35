//! Devices that no model file can describe.

use std::sync::atomic::{AtomicU64, Ordering};

use mxprobe::probes::Number;
use mxprobe_api::{
    Decoded, Device, DeviceInfo, Elements, Error, Format, Operation, OperationSet, Rounding, Scalar, ScalarFunction,
    Scalars, TileBatch, scalars_of,
};
use mxprobe_sim::ModelDevice;

/// A unit that normalises after each addition: c first, then the products in the order of k, on a grid of 25 bits that
/// follows the running sum upward.
pub(crate) struct Normalising {
    info: DeviceInfo,
    operations: OperationSet,
}

impl Normalising {
    const FRACTION_BITS: i32 = 25;

    pub(crate) fn new() -> Self {
        let id = "dot.m1n1k8.f32.tf32.tf32.f32".parse().expect("an id");
        let info = ModelDevice::new(mxprobe_models::load("a100").unwrap()).info().clone();
        Self {
            info,
            operations: OperationSet::from([(
                id,
                Operation::new("dot.m1n1k8.f32.tf32.tf32.f32".parse().expect("an id"), "thread"),
            )]),
        }
    }

    fn dot(terms: &[Number]) -> u64 {
        let Some(mut largest) = terms.iter().filter_map(|term| term.leading()).max() else { return 0 };
        let mut sum = Number::ZERO;
        for term in terms {
            let unit = largest - Self::FRACTION_BITS;
            sum = sum.plus(term.rounded(unit, Rounding::TowardZero)).expect("120 bits are enough");
            // The sum moves the grid, and loses what falls below it.
            largest = largest.max(sum.leading().unwrap_or(largest));
            sum = sum.rounded(largest - Self::FRACTION_BITS, Rounding::TowardZero);
        }
        sum.encode(Format::F32, Rounding::TowardZero)
    }
}

impl Device for Normalising {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn operations(&self) -> &OperationSet {
        &self.operations
    }

    fn execute(&self, operation: &Operation, batch: &TileBatch) -> Result<Elements, Error> {
        let k = operation.id.shape.sizes().2;
        let value = |elements: &Elements, at: usize| Number::decode(elements.format(), elements.get(at));
        let dots = (0..batch.tiles).map(|tile| {
            let product = |at: usize| {
                let (a, b) = (value(&batch.a, tile * k + at)?, value(&batch.b, tile * k + at)?);
                let ((minus_a, a, of_a), (minus_b, b, of_b)) = (a.parts(), b.parts());
                let magnitude = (a * b).cast_signed();
                Some(Number::new(if minus_a == minus_b { magnitude } else { -magnitude }, of_a + of_b))
            };
            let terms: Option<Vec<Number>> = [value(&batch.c, tile)].into_iter().chain((0..k).map(product)).collect();
            terms.map_or(0x7fff_ffff, |terms| Self::dot(&terms))
        });
        Ok(Elements::from_bits(operation.id.d, dots))
    }
}

/// A device that fails at one call, or from that call on.
pub(crate) struct Failing {
    pub(crate) inner: Box<dyn Device>,
    pub(crate) calls: AtomicU64,
    pub(crate) at: u64,
    pub(crate) error: fn() -> Error,
}

impl Failing {
    fn check(&self) -> Result<(), Error> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        let lasts = (self.error)().is_device_lost();
        if call == self.at || lasts && call > self.at { Err((self.error)()) } else { Ok(()) }
    }
}

impl Device for Failing {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }

    fn operations(&self) -> &OperationSet {
        self.inner.operations()
    }

    fn execute(&self, operation: &Operation, batch: &TileBatch) -> Result<Elements, Error> {
        self.check()?;
        self.inner.execute(operation, batch)
    }

    fn scalars(&self) -> Option<&dyn Scalars> {
        Some(self)
    }
}

impl Scalars for Failing {
    fn members(&self) -> &[Scalar] {
        scalars_of(self.inner.as_ref())
    }

    fn call(&self, scalar: &Scalar, function: ScalarFunction, operands: &Elements) -> Result<Elements, Error> {
        self.check()?;
        mxprobe_api::call(self.inner.as_ref(), scalar, function, operands)
    }
}

/// A unit that reads the codes of infinity and NaN as numbers: sums that are invalid elsewhere are zero.
pub(crate) struct WithoutSpecials(pub(crate) Box<dyn Device>);

impl Device for WithoutSpecials {
    fn info(&self) -> &DeviceInfo {
        self.0.info()
    }

    fn operations(&self) -> &OperationSet {
        self.0.operations()
    }

    fn execute(&self, operation: &Operation, batch: &TileBatch) -> Result<Elements, Error> {
        let d = self.0.execute(operation, batch)?;
        let is_nan = |bits: u64| matches!(d.format().decode(bits), Decoded::Nan { .. });
        Ok(Elements::from_bits(d.format(), d.iter().map(|bits| if is_nan(bits) { 0 } else { bits })))
    }
}
