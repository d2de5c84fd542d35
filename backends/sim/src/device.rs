//! Models as devices.

use std::collections::BTreeMap;

use mxprobe_api::{
    Backend, Device, DeviceInfo, DeviceKind, Discovery, Elements, Error, Operation, OperationSet, TileBatch,
};

use crate::{
    exact::{Dot, evaluate},
    library,
    model::Model,
};

/// The backend whose devices are models.
#[derive(Clone, Copy, Debug, Default)]
pub struct SimBackend;

impl Backend for SimBackend {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn discover(&self) -> Discovery {
        let devices =
            library::shipped().iter().map(|model| Box::new(ModelDevice::new(model.clone())) as Box<dyn Device>);
        Discovery { devices: devices.collect(), refusals: Vec::new() }
    }

    fn open(&self, name: &str) -> Result<Box<dyn Device>, Error> {
        Ok(Box::new(ModelDevice::new(library::load(name)?)))
    }
}

/// A model as a device.
#[derive(Clone, Debug)]
pub struct ModelDevice {
    model: Model,
    info: DeviceInfo,
}

impl ModelDevice {
    /// A device that computes as the model says.
    #[must_use]
    pub fn new(model: Model) -> Self {
        let variant = model.variant.as_ref().map(|variant| format!("@{variant}")).unwrap_or_default();
        let info = DeviceInfo {
            backend: "sim".into(),
            selector: format!("sim:{}{variant}", model.name),
            name: format!("model of {}", model.title),
            fingerprint: format!("{}{variant}", model.name),
            kind: DeviceKind::Model,
            aliases: model.aliases.clone(),
            driver: None,
            properties: BTreeMap::from([
                ("vendor".into(), model.vendor.clone()),
                ("models".into(), model.fingerprint.clone()),
            ]),
        };
        Self { model, info }
    }

    /// The model.
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.model
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
        let id = &operation.id;
        let missing = || Error::invalid(format!("{} has no operation {id}", self.info.selector));
        let (unit, plan) = self.model.plan(id).ok_or_else(missing)?;
        let (m, n, k) = id.shape.sizes();
        let blocks = id.block_scale().map_or(0, |scale| k.div_ceil(scale.block));
        let mut d = Elements::zeros(id.d, batch.tiles * m * n);
        let (mut a, mut b) = (vec![0; k], vec![0; k]);
        let (mut scale_a, mut scale_b) = (vec![0; blocks], vec![0; blocks]);
        for tile in 0..batch.tiles {
            for column in 0..n {
                for (index, value) in b.iter_mut().enumerate() {
                    *value = batch.b.get((tile * k + index) * n + column);
                }
                for row in 0..m {
                    for (index, value) in a.iter_mut().enumerate() {
                        *value = batch.a.get((tile * m + row) * k + index);
                    }
                    let scales = match (&batch.scale_a, &batch.scale_b) {
                        (Some(of_a), Some(of_b)) => {
                            for index in 0..blocks {
                                scale_a[index] = of_a.get((tile * m + row) * blocks + index);
                                scale_b[index] = of_b.get((tile * blocks + index) * n + column);
                            }
                            Some((&scale_a[..], &scale_b[..]))
                        }
                        _ => None,
                    };
                    let at = (tile * m + row) * n + column;
                    let dot = Dot { a: &a, b: &b, c: batch.c.get(at), scales };
                    d.set(at, evaluate(&self.model.adders, unit, &plan, id, dot));
                }
            }
        }
        Ok(d)
    }
}
