//! The model of the operations identified so far.

use crate::{
    identify::{Arithmetic, model_of},
    report::{DeviceRecord, IdentificationOutcome, IdentifiedOperation, Kind, ListedDevice, Time, build_version},
};
use mxprobe_api::{DeviceInfo, DeviceKind, Error, Operation};
use mxprobe_models::Model;

/// A model of every operation of a device that has been identified so far.
#[derive(Clone, Debug)]
pub struct IdentifiedModel {
    listed: ListedDevice,
    name: String,
    parts: Vec<(Arithmetic, Operation)>,
    /// The number of dots asked of the operations in `parts`, and of dots compared with their models.
    dots: [u64; 2],
}

impl IdentifiedModel {
    /// Creates a model without operations, with this name.
    #[must_use]
    pub fn new(listed: &ListedDevice, name: &str) -> Self {
        Self { listed: listed.clone(), name: name.to_owned(), parts: Vec::new(), dots: [0, 0] }
    }

    /// Whether no operation has been identified yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Adds an operation if it was identified; returns whether it was.
    ///
    /// # Errors
    /// If the model of the operation cannot be read.
    pub fn add(&mut self, found: &IdentifiedOperation) -> Result<bool, Error> {
        let Some(text) = found.model.as_ref().filter(|_| found.outcome == IdentificationOutcome::Identified) else {
            return Ok(false);
        };
        let model = Model::parse("the identified model", text, None)?;
        let (Some(unit), Some(of)) = (model.units.first(), model.operations.get(&found.id)) else { return Ok(false) };
        let arithmetic = Arithmetic {
            operation: found.id.clone(),
            tree: unit.tree.clone(),
            adders: model.adders.clone(),
            flush: unit.flush,
        };
        let mut of = of.clone();
        if let Some(listed) = self.listed.operations.iter().find(|listed| listed.id == found.id) {
            of.instruction.clone_from(&listed.instruction);
        }
        self.parts.push((arithmetic, of));
        self.dots = [self.dots[0] + found.dots, self.dots[1] + found.tested];
        Ok(true)
    }

    /// The model, with the device, its driver, the date and the number of dots as its source.
    ///
    /// # Errors
    /// If the operations do not form a model, in particular if there are none.
    pub fn model(&self) -> Result<Model, Error> {
        let device = &self.listed.device;
        let driver = device.driver.as_ref();
        let driver = driver.map(|driver| format!(", {} {}", driver.name, driver.version)).unwrap_or_default();
        let date = Time::starting().start;
        let date = date.split('T').next().unwrap_or_default();
        let [dots, tested] = self.dots;
        let source = format!(
            "measured on {} ({}{driver}), {date}, by mxprobe {}: {dots} dots asked, {tested} compared with the model, no mismatch",
            device.name,
            device.selector,
            build_version(),
        );
        model_of(&info(device), &self.name, &source, &self.parts)
    }
}

/// Reconstructs a device's description from the listing.
fn info(device: &DeviceRecord) -> DeviceInfo {
    DeviceInfo {
        backend: device.backend.clone(),
        selector: device.selector.clone(),
        name: device.name.clone(),
        fingerprint: device.fingerprint.clone(),
        kind: match device.kind {
            Kind::Hardware => DeviceKind::Hardware,
            Kind::Software => DeviceKind::Software,
            Kind::Model => DeviceKind::Model,
        },
        emulated: device.emulated,
        aliases: device.aliases.clone(),
        driver: None,
        properties: device.properties.clone(),
    }
}
