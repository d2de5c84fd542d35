//! Models as devices.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use mxprobe_api::{
    Backend, Device, DeviceInfo, DeviceKind, Discovery, DotOperands, Elements, Error, GemmOperands, Matrices,
    Operation, OperationId, OperationSet, TileBatch,
};

use mxprobe_models::{Dot, Evaluator, Model, Path, load, shipped, threads};

/// The backend whose devices are models.
#[derive(Clone, Copy, Debug, Default)]
pub struct SimBackend;

impl Backend for SimBackend {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn discover(&self) -> Discovery {
        let devices = shipped().iter().map(|model| Box::new(ModelDevice::new(model.clone())) as Box<dyn Device>);
        Discovery { devices: devices.collect(), refusals: Vec::new() }
    }

    fn open(&self, name: &str) -> Result<Box<dyn Device>, Error> {
        Ok(Box::new(ModelDevice::new(load(name)?)))
    }
}

/// A model as a device.
#[derive(Clone, Debug)]
pub struct ModelDevice {
    model: Model,
    info: DeviceInfo,
    path: Path,
    evaluators: Arc<Mutex<BTreeMap<OperationId, Arc<Evaluator>>>>,
}

impl ModelDevice {
    /// A device that evaluates the model by the fastest path.
    #[must_use]
    pub fn new(model: Model) -> Self {
        Self::with_path(model, Path::Avx512)
    }

    /// A device that computes every element with the exact evaluator.
    #[must_use]
    pub fn exact(model: Model) -> Self {
        Self::with_path(model, Path::Exact)
    }

    /// A device that uses `path` where possible. The results do not depend on the path.
    #[must_use]
    pub fn with_path(model: Model, path: Path) -> Self {
        let variant = model.variant.as_ref().map(|variant| format!("@{variant}")).unwrap_or_default();
        let info = DeviceInfo {
            backend: "sim".into(),
            selector: format!("sim:{}{variant}", model.name),
            name: format!("model of {}", model.title),
            fingerprint: format!("{}{variant}", model.name),
            kind: DeviceKind::Model,
            emulated: false,
            aliases: model.aliases.clone(),
            driver: None,
            properties: BTreeMap::from([
                ("vendor".into(), model.vendor.clone()),
                ("models".into(), model.fingerprint.clone()),
                ("kernel_form".into(), "model".into()),
            ]),
        };
        Self { model, info, path, evaluators: Arc::default() }
    }

    /// The model.
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Returns the evaluator of an operation, which is created on first use.
    ///
    /// # Errors
    /// If the model has no such operation.
    pub fn evaluator(&self, id: &OperationId) -> Result<Arc<Evaluator>, Error> {
        let mut evaluators = self.evaluators.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(evaluator) = evaluators.get(id) {
            return Ok(Arc::clone(evaluator));
        }
        let evaluator = Arc::new(Evaluator::with_path(&self.model, id, self.path)?);
        evaluators.insert(id.clone(), Arc::clone(&evaluator));
        Ok(evaluator)
    }
}

impl Device for ModelDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn operations(&self) -> &OperationSet {
        &self.model.operations
    }

    fn execute(&self, operation: &Operation, batch: &TileBatch) -> Result<Elements, Error> {
        Ok(self.evaluator(&operation.id)?.tiles(batch, threads()))
    }

    fn matrices(&self) -> Option<&dyn Matrices> {
        Some(self)
    }
}

impl Matrices for ModelDevice {
    fn multiply(&self, operation: &Operation, operands: &GemmOperands<'_>) -> Result<Option<Elements>, Error> {
        let evaluator = self.evaluator(&operation.id)?;
        let GemmOperands { m, n, k, a, b, c, scale_a, scale_b } = *operands;
        if (m, n, k) != (1, 1, operation.id.shape.sizes().2) {
            return evaluator.multiply(operands, threads()).map(Some);
        }
        // A single dot: packing matrices would cost many times as much as computing it.
        let bits = |elements: &Elements| elements.iter().collect::<Vec<u64>>();
        let scales = scale_a.zip(scale_b).map(|(a, b)| (bits(a), bits(b)));
        let scales = scales.as_ref().map(|(a, b)| (&a[..], &b[..]));
        let d = evaluator.dot(Dot { a: &bits(a), b: &bits(b), c: c.get(0), scales })?;
        Ok(Some(Elements::from_bits(operation.id.d, [d])))
    }

    /// Computes the dots one by one: in tiles, everything off the diagonal would be wasted, up to 255 of 256 elements.
    fn dots(&self, operation: &Operation, operands: &DotOperands<'_>) -> Result<Option<Elements>, Error> {
        Ok(Some(self.evaluator(&operation.id)?.dots(operands)))
    }

    fn has_tiles(&self) -> bool {
        false
    }
}
