//! The model file of `identify`, which grows with the run.

use std::path::Path;

use crate::{
    identify::{Arithmetic, model_of},
    report::{DeviceRecord, IdentificationOutcome, IdentifiedOperation, Kind, Time, build_version},
};
use mxprobe_api::{DeviceInfo, DeviceKind, Operation};
use mxprobe_models::Model;

use crate::cli::{choose::target::Target, failure::Failure, io::output};

/// The model of every operation that was identified so far, and its file.
pub(crate) struct ModelFile<'a> {
    target: &'a Target,
    path: &'a Path,
    /// The model's name: that of the file.
    name: String,
    parts: Vec<(Arithmetic, Operation)>,
    /// Dots asked of the operations in `parts`, and dots compared with their models.
    dots: [u64; 2],
}

impl<'a> ModelFile<'a> {
    /// A file that is written when the first operation is identified.
    ///
    /// # Errors
    /// If the path names no file.
    pub(crate) fn new(target: &'a Target, path: &'a Path) -> Result<Self, Failure> {
        Ok(Self { target, path, name: model_name(path)?, parts: Vec::new(), dots: [0, 0] })
    }

    /// Whether an operation was identified, so that the file was written.
    pub(crate) fn is_written(&self) -> bool {
        !self.parts.is_empty()
    }

    /// Writes the file again if the operation was identified.
    ///
    /// # Errors
    /// If the file cannot be written, or the model of the operation cannot be read.
    pub(crate) fn add(&mut self, found: &IdentifiedOperation) -> Result<(), Failure> {
        let Some(text) = found.model.as_ref().filter(|_| found.outcome == IdentificationOutcome::Identified) else {
            return Ok(());
        };
        let model = Model::parse("the identified model", text, None).map_err(Failure::incomplete)?;
        let (Some(unit), Some(of)) = (model.units.first(), model.operations.get(&found.id)) else { return Ok(()) };
        let arithmetic = Arithmetic {
            operation: found.id.clone(),
            tree: unit.tree.clone(),
            adders: model.adders.clone(),
            flush: unit.flush,
        };
        let mut of = of.clone();
        if let Some(listed) = self.target.listed.operations.iter().find(|listed| listed.id == found.id) {
            of.instruction.clone_from(&listed.instruction);
        }
        self.parts.push((arithmetic, of));
        self.dots = [self.dots[0] + found.dots, self.dots[1] + found.tested];
        self.write()
    }

    fn write(&self) -> Result<(), Failure> {
        let device = &self.target.listed.device;
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
        let model = model_of(&info(device), &self.name, &source, &self.parts).map_err(Failure::incomplete)?;
        output::replace(self.path, &model.to_toml())
    }
}

/// What a backend said of the device, from what the listing keeps of it.
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

/// The name of the file without its extension, as a model may be called.
fn model_name(path: &Path) -> Result<String, Failure> {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let name: String = stem.chars().map(plain).collect();
    if name.is_empty() {
        return Err(Failure::usage(format!("`{}` is not the name of a file", path.display())));
    }
    Ok(name)
}
