//! Multiplies whole matrices of bits with one operation.

use std::sync::Arc;

use mxprobe_api::{
    Device, Elements, Error, GemmOperands, Operation, OperationId, multiply, multiply_by_tiles, operation_of,
};
use mxprobe_models::Model;
use mxprobe_sim::ModelDevice;

/// An operation of a device, ready to compute.
#[derive(Clone)]
pub struct Unit {
    device: Arc<dyn Device>,
    operation: Operation,
}

/// The lengths of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lengths {
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) k: usize,
}

impl Unit {
    /// An operation of a device.
    ///
    /// # Errors
    /// If the device has no such operation.
    pub fn new(device: Arc<dyn Device>, id: &OperationId) -> Result<Self, Error> {
        let operation = operation_of(device.as_ref(), id)?.clone();
        Ok(Self { device, operation })
    }

    /// An operation of a model, on every core.
    ///
    /// # Errors
    /// If the model has no such operation.
    pub fn of_model(model: &Model, id: &OperationId) -> Result<Self, Error> {
        Self::new(Arc::new(ModelDevice::new(model.clone())), id)
    }

    /// The device.
    pub(super) fn device(&self) -> &dyn Device {
        self.device.as_ref()
    }

    /// The operation's id.
    #[must_use]
    pub fn id(&self) -> &OperationId {
        &self.operation.id
    }

    /// Nanoseconds that kernels have run so far, if the device measures it ([`mxprobe_api::Matrices::kernel_ns`]).
    pub(super) fn kernel_ns(&self) -> Option<u64> {
        self.device.matrices()?.kernel_ns()
    }

    /// D = A·B + C, row-major, computed by one operation after another along k, each of which takes the previous d as
    /// c. Edges are padded with +0, and scales with 1. k = 0 is one operation on zeros and C.
    ///
    /// # Errors
    /// [`Error::is_unsupported`] if k is longer than the operation's and its d cannot be the next c; otherwise the
    /// errors of the device.
    pub(super) fn multiply(&self, operands: &GemmOperands<'_>) -> Result<Elements, Error> {
        match multiply(self.device(), &self.operation, operands)? {
            Some(d) => Ok(d),
            None => multiply_by_tiles(self.device(), &self.operation, operands),
        }
    }
}
