use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    Code, Elements, Error, Matrices, Operation, OperationId, OperationSet, Scalars, Screening, TileBatch, Timing,
};

/// A way to reach matrix units: CUDA, Vulkan, the CPU's own instructions, models.
pub trait Backend: Send + Sync {
    /// The word that selects it: `vulkan`, `cuda`, `cpu`, `sim`.
    fn name(&self) -> &'static str;

    /// Finds every device, and says what was found and cannot be used, and why.
    ///
    /// Never panics, and never hides: a missing driver is a [`Refusal`], not an empty answer.
    fn discover(&self) -> Discovery;

    /// Opens a device that discovery does not list, such as a model file; `name` is what follows the colon of a
    /// selector.
    ///
    /// # Errors
    /// That no such device exists, with the name in it, or why it could not be opened.
    fn open(&self, name: &str) -> Result<Box<dyn Device>, Error> {
        Err(Error::invalid(format!("there is no device `{}:{name}`", self.name())))
    }
}

/// What a backend found.
#[derive(Default)]
pub struct Discovery {
    /// The devices that can be asked.
    pub devices: Vec<Box<dyn Device>>,
    /// What is there, or should be, and cannot be used.
    pub refusals: Vec<Refusal>,
}

/// Something that was found or looked for and cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// What: a device, a driver, an operation.
    pub what: String,
    /// Why not, with the value that decided it.
    pub reason: Error,
    /// One fact and one action for a person, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

/// What stands behind a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceKind {
    /// Silicon.
    Hardware,
    /// A driver that computes in software on the CPU.
    Software,
    /// An executable model.
    Model,
}

/// The driver that reaches a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Driver {
    /// Its name.
    pub name: String,
    /// Its version, as it says it.
    pub version: String,
    /// The version of the API it offers.
    pub api_version: String,
}

/// Who a device is. The name is shown to people; the fingerprint is what decisions and keys are made from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// The name of its backend.
    pub backend: String,
    /// What selects it: `cpu:0`, `sim:h100`.
    pub selector: String,
    /// Its name for people.
    pub name: String,
    /// A name for programs that the same kind of device has on every machine: `sm_90a`, `gfx1100`, `amx`.
    pub fingerprint: String,
    /// Silicon, software or model.
    pub kind: DeviceKind,
    /// A double stands in for the device, so that the way to it can be tested: nothing it computes was measured.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub emulated: bool,
    /// Other selectors, without the backend: part numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// The driver, where one stands between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<Driver>,
    /// Everything else worth keeping in a report.
    #[serde(default)]
    pub properties: BTreeMap<String, String>,
}

/// One thing that a backend found, and that computes.
///
/// What not every device can do is an object of its own, which a device gives or does not: who wraps a device hands the
/// whole object on.
pub trait Device: Send + Sync {
    /// Who it is.
    fn info(&self) -> &DeviceInfo;

    /// The operations that it claims, as data.
    fn operations(&self) -> &OperationSet;

    /// Operations that are listed or expected and cannot be used, and why.
    fn refusals(&self) -> &[Refusal] {
        &[]
    }

    /// Computes D of every tile: `m·n` elements of the operation's D a tile, row-major.
    ///
    /// Call [`execute`] instead, which validates. An implementation may rely on `operation` being one of its
    /// [`operations`](Self::operations) and on `batch` fitting it.
    ///
    /// # Errors
    /// Whatever the driver or the device reports. An implementation never returns memory that the device did not write.
    fn execute(&self, operation: &Operation, batch: &TileBatch) -> Result<Elements, Error>;

    /// Whole matrices at once, where there is a faster way than tile by tile.
    fn matrices(&self) -> Option<&dyn Matrices> {
        None
    }

    /// The scalar arithmetic beside the matrix unit, where it can be called.
    fn scalars(&self) -> Option<&dyn Scalars> {
        None
    }

    /// The device's clock, where it has one: throughput can be measured then.
    fn timing(&self) -> Option<&dyn Timing> {
        None
    }

    /// The device's units one by one, where they can be screened for wrong results.
    fn screening(&self) -> Option<&dyn Screening> {
        None
    }

    /// What is handed to the driver, and what the driver makes of it, where something of it can be seen.
    fn code(&self) -> Option<&dyn Code> {
        None
    }
}

/// The operation of an id, among those that a device claims.
///
/// # Errors
/// [`Error::is_invalid`] if there is none.
pub fn operation_of<'d>(device: &'d dyn Device, id: &OperationId) -> Result<&'d Operation, Error> {
    let missing = || Error::invalid(format!("{} has no operation {id}", device.info().selector));
    device.operations().get(id).ok_or_else(missing)
}

/// Validates, computes, and checks the shape of what came back: the one way to run an operation.
///
/// # Errors
/// [`Error::is_invalid`] if the device does not claim the operation or the batch does not fit it; else what the device
/// reports.
pub fn execute(device: &dyn Device, operation: &Operation, batch: &TileBatch) -> Result<Elements, Error> {
    operation_of(device, &operation.id)?;
    batch.validate(operation)?;
    let d = device.execute(operation, batch)?;
    let (m, n, _) = operation.id.shape.sizes();
    if d.format() != operation.id.d || d.len() != batch.tiles * m * n {
        return Err(Error::driver(format!(
            "{} returned {} elements of {} for {} tiles of {}",
            device.info().selector,
            d.len(),
            d.format(),
            batch.tiles,
            operation.id
        )));
    }
    Ok(d)
}
