//! A chosen device and its origin.

use std::sync::Arc;

use crate::report::ListedDevice;
use mxprobe_api::{Shape, Sizes};
use mxprobe_models::Model;

use crate::cli::{
    arguments::{Devices, Reach},
    choose::registry::{Entry, MODELS},
    failure::Failure,
};

/// The backend name in selectors of devices of other programs.
pub(crate) const PROGRAMS: &str = "exec";

/// Options for device discovery.
#[derive(Clone, Debug)]
pub(crate) struct Search {
    /// Whether backends discover their devices in processes of their own.
    pub(crate) isolate: bool,
    /// The sizes given to operations that leave them open.
    pub(crate) sizes: Sizes,
}

impl Search {
    /// Takes the sizes from a shape, and from the whole ids among `--op`.
    pub(crate) fn new(isolate: bool, shape: Option<Shape>, operations: &[String]) -> Self {
        let ids = operations.iter().filter_map(|name| name.parse().ok()).collect();
        Self { isolate, sizes: Sizes { shape, ids } }
    }

    /// Builds the options from the arguments of a command with several devices and its `--op`.
    pub(crate) fn of(devices: &Devices, operations: &[String]) -> Self {
        Self::new(!devices.no_isolation, devices.shape, operations)
    }

    /// Builds the options from the arguments of a command with one device.
    pub(crate) fn by(reach: &Reach, operations: &[String]) -> Self {
        Self::new(!reach.no_isolation, reach.shape, operations)
    }
}

/// A device that was chosen.
#[derive(Clone)]
pub(crate) struct Target {
    /// The origin of the device.
    pub(crate) origin: Origin,
    /// The selector that opens it.
    pub(crate) selector: String,
    /// Its entry in a listing.
    pub(crate) listed: ListedDevice,
    /// The sizes of its operations that leave them open, if there are any.
    pub(crate) sizes: Option<Sizes>,
}

/// The origin of a device.
#[derive(Clone)]
pub(crate) enum Origin {
    /// A backend of this program.
    Backend(&'static Entry),
    /// Another program.
    Program(Arc<Program>),
}

/// A device of another program.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// The program and its arguments.
    pub(crate) words: Vec<String>,
    /// The program's name for the device.
    pub(crate) device: String,
}

impl Target {
    /// Whether some of its operations get their sizes from the caller.
    pub(crate) fn has_free_sizes(&self) -> bool {
        self.sizes.is_some()
    }

    /// The word before the colon of its selector.
    pub(crate) fn backend(&self) -> &'static str {
        match &self.origin {
            Origin::Backend(entry) => entry.name,
            Origin::Program(_) => PROGRAMS,
        }
    }

    /// Whether it is one of this program's models.
    pub(crate) fn is_model(&self) -> bool {
        self.backend() == MODELS
    }

    /// Returns the model, if the device is one.
    pub(crate) fn model(&self) -> Result<Option<Model>, Failure> {
        if !self.is_model() {
            return Ok(None);
        }
        let name = self.selector.split_once(':').map_or(self.selector.as_str(), |(_, name)| name);
        mxprobe_models::load(name).map(Some).map_err(Failure::usage)
    }
}
