//! A device whose open sizes are fixed.

use std::sync::Arc;

use crate::{
    Code, Device, DeviceInfo, Elements, Error, FreeOperation, Matrices, Operation, OperationSet, Refusal, Scalars,
    Screening, Sizes, TileBatch, Timing,
};

/// A device with further operations: its open ones, with their sizes fixed.
struct WithSizes {
    device: Arc<dyn Device>,
    operations: OperationSet,
}

/// Returns the device with its [`free_operations`](Device::free_operations) among its operations, in these sizes; the
/// device itself if it leaves no size open.
///
/// ```
/// use std::sync::Arc;
///
/// use mxprobe_api::{Device, Sizes, with_sizes};
///
/// fn ids(device: Arc<dyn Device>) -> Vec<String> {
///     let sizes = Sizes { ids: vec!["gemm.m1n64k64.f32.bf16.bf16.f32".parse().unwrap()], ..Sizes::default() };
///     with_sizes(device, &sizes).operations().keys().map(ToString::to_string).collect()
/// }
/// ```
#[must_use]
pub fn with_sizes(device: Arc<dyn Device>, sizes: &Sizes) -> Arc<dyn Device> {
    if device.free_operations().is_empty() {
        return device;
    }
    let mut operations = device.operations().clone();
    for operation in device.free_operations().iter().flat_map(|free| free.of(sizes)) {
        operations.entry(operation.id.clone()).or_insert(operation);
    }
    Arc::new(WithSizes { device, operations })
}

impl Device for WithSizes {
    fn info(&self) -> &DeviceInfo {
        self.device.info()
    }

    fn operations(&self) -> &OperationSet {
        &self.operations
    }

    fn free_operations(&self) -> &[FreeOperation] {
        self.device.free_operations()
    }

    fn refusals(&self) -> &[Refusal] {
        self.device.refusals()
    }

    fn execute(&self, operation: &Operation, batch: &TileBatch) -> Result<Elements, Error> {
        self.device.execute(operation, batch)
    }

    fn matrices(&self) -> Option<&dyn Matrices> {
        self.device.matrices()
    }

    fn scalars(&self) -> Option<&dyn Scalars> {
        self.device.scalars()
    }

    fn timing(&self) -> Option<&dyn Timing> {
        self.device.timing()
    }

    fn screening(&self) -> Option<&dyn Screening> {
        self.device.screening()
    }

    fn code(&self) -> Option<&dyn Code> {
        self.device.code()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DeviceKind, OperationId, Shape, execute};

    /// A device that returns C, whatever the sizes.
    struct Copies {
        info: DeviceInfo,
        operations: OperationSet,
        free: Vec<FreeOperation>,
    }

    impl Device for Copies {
        fn info(&self) -> &DeviceInfo {
            &self.info
        }

        fn operations(&self) -> &OperationSet {
            &self.operations
        }

        fn free_operations(&self) -> &[FreeOperation] {
            &self.free
        }

        fn execute(&self, _: &Operation, batch: &TileBatch) -> Result<Elements, Error> {
            Ok(batch.c.clone())
        }
    }

    fn copies(patterns: &[&str]) -> Arc<dyn Device> {
        let info = DeviceInfo {
            backend: "test".into(),
            selector: "test:0".into(),
            name: "copies".into(),
            fingerprint: "copies".into(),
            kind: DeviceKind::Software,
            emulated: false,
            aliases: Vec::new(),
            driver: None,
            properties: std::collections::BTreeMap::new(),
        };
        let id: OperationId = "gemm.m1n2k4.f32.f16.f16.f32".parse().unwrap();
        let operations = [(id.clone(), Operation::new(id, "library"))].into();
        let free = patterns.iter().map(|pattern| FreeOperation::read(pattern).unwrap().unwrap()).collect();
        Arc::new(Copies { info, operations, free })
    }

    #[test]
    fn operations_with_sizes_can_be_executed_and_those_of_other_sizes_cannot() {
        let device = copies(&["gemm.m*n*k*.f32.f16.f16.f32", "gemm.m*n*k*.f32.bf16.bf16.f32"]);
        let sizes = Sizes { shape: Some(Shape { m: 2, n: 3, k: 5 }), ids: Vec::new() };
        let sized = with_sizes(device.clone(), &sizes);
        assert_eq!((sized.operations().len(), device.operations().len()), (3, 1));
        let id: OperationId = "gemm.m2n3k5.f32.bf16.bf16.f32".parse().unwrap();
        let operation = &sized.operations()[&id];
        let batch = TileBatch::zeros(operation, 2);
        assert_eq!(execute(sized.as_ref(), operation, &batch).unwrap().len(), 12);
        let error = execute(device.as_ref(), operation, &batch).unwrap_err().to_string();
        assert!(error.contains("test:0 has no operation gemm.m2n3k5.f32.bf16.bf16.f32"), "{error}");
    }

    #[test]
    fn a_device_without_open_sizes_stays_the_same() {
        let device = copies(&[]);
        assert!(Arc::ptr_eq(&with_sizes(device.clone(), &Sizes::default()), &device));
    }
}
