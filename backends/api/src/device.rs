use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    Code, Elements, Error, FreeOperation, Matrices, Operation, OperationId, OperationSet, Scalars, Screening,
    TileBatch, Timing,
};

/// A way to reach matrix units: CUDA, Vulkan, the CPU's own instructions, models.
pub trait Backend: Send + Sync {
    /// The word that selects it: `vulkan`, `cuda`, `cpu`, `sim`.
    fn name(&self) -> &'static str;

    /// Finds every device, and reports what it found but cannot use, with the reason.
    ///
    /// Never panics and never hides a failure: a missing driver is a [`Refusal`], not an empty answer.
    fn discover(&self) -> Discovery;

    /// Opens a device that discovery does not list, such as a model file; `name` is the part of the selector after the
    /// colon.
    ///
    /// # Errors
    /// If no such device exists (the text contains the name), or if it could not be opened.
    fn open(&self, name: &str) -> Result<Box<dyn Device>, Error> {
        Err(Error::invalid(format!("there is no device `{}:{name}`", self.name())))
    }
}

/// The result of discovery.
#[derive(Default)]
pub struct Discovery {
    /// The usable devices.
    pub devices: Vec<Box<dyn Device>>,
    /// Hardware that is present, or should be, but cannot be used.
    pub refusals: Vec<Refusal>,
}

/// Something that was found or expected but cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The subject: a device, a driver, an operation.
    pub what: String,
    /// Why it cannot be used, with the value that decided it.
    pub reason: Error,
    /// One fact and one action for a person, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

/// The hardware or software that computes a device's results.
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
    /// Its version, as it reports it.
    pub version: String,
    /// The version of the API that it offers.
    pub api_version: String,
}

/// The identity of a device. The name is for people; decisions and keys use the fingerprint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// The name of its backend.
    pub backend: String,
    /// Its selector: `cpu:0`, `sim:h100`.
    pub selector: String,
    /// Its name for people.
    pub name: String,
    /// A name for programs, the same on every machine for the same kind of device: `sm_90a`, `gfx1100`, `amx`.
    pub fingerprint: String,
    /// Silicon, software or model.
    pub kind: DeviceKind,
    /// Whether this is a test double used to test the code path to the device: none of its results was measured.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub emulated: bool,
    /// Other selectors, without the backend: part numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// The driver, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<Driver>,
    /// Everything else worth keeping in a report.
    #[serde(default)]
    pub properties: BTreeMap<String, String>,
}

/// A computing device that a backend found.
///
/// Each optional ability is an object of its own, which a device returns or not, so that a wrapper forwards the whole
/// object.
pub trait Device: Send + Sync {
    /// Its identity.
    fn info(&self) -> &DeviceInfo;

    /// The operations that it claims to support, as data.
    fn operations(&self) -> &OperationSet;

    /// Operations whose sizes the caller chooses, such as the products of a library. [`with_sizes`](crate::with_sizes)
    /// returns the device with some sizes among its [`operations`](Self::operations).
    fn free_operations(&self) -> &[FreeOperation] {
        &[]
    }

    /// Operations that are listed or expected but cannot be used, with the reason.
    fn refusals(&self) -> &[Refusal] {
        &[]
    }

    /// Computes the D of every tile: `m·n` elements of the operation's D per tile, row-major.
    ///
    /// Call [`execute`] instead, which validates. An implementation may rely on `operation` being one of its
    /// [`operations`](Self::operations), or one of its [`free_operations`](Self::free_operations) with sizes, and on
    /// `batch` fitting it.
    ///
    /// # Errors
    /// Whatever the driver or the device reports. An implementation never returns memory that the device did not write.
    fn execute(&self, operation: &Operation, batch: &TileBatch) -> Result<Elements, Error>;

    /// Multiplication of whole matrices, if there is a faster way than tile by tile.
    fn matrices(&self) -> Option<&dyn Matrices> {
        None
    }

    /// The scalar arithmetic next to the matrix unit, if it can be called.
    fn scalars(&self) -> Option<&dyn Scalars> {
        None
    }

    /// The device's clock, if it has one; with it, throughput can be measured.
    fn timing(&self) -> Option<&dyn Timing> {
        None
    }

    /// The device's individual units, if they can be screened for wrong results.
    fn screening(&self) -> Option<&dyn Screening> {
        None
    }

    /// The code handed to the driver and what the driver compiles it to, as far as either is visible.
    fn code(&self) -> Option<&dyn Code> {
        None
    }
}

/// Finds the operation with the given id among those that a device claims.
///
/// # Errors
/// [`Error::is_invalid`] if there is none.
pub fn operation_of<'d>(device: &'d dyn Device, id: &OperationId) -> Result<&'d Operation, Error> {
    let missing = || Error::invalid(format!("{} has no operation {id}", device.info().selector));
    device.operations().get(id).ok_or_else(missing)
}

/// Runs an operation: validates, computes, and checks the shape of the result. The only way to run one.
///
/// # Errors
/// [`Error::is_invalid`] if the device does not claim the operation or the batch does not fit it; otherwise what the
/// device reports.
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
