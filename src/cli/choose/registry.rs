//! The one place that names the backends.

use mxprobe_api::{Backend, Device, Error};

/// A backend of this program.
pub(crate) struct Entry {
    /// The word that selects it.
    pub(crate) name: &'static str,
    /// Its devices are reached through drivers or instructions that may hang or crash.
    pub(crate) isolated: bool,
    /// Only there when it is asked for by name.
    pub(crate) hidden: bool,
    make: fn() -> Box<dyn Backend>,
}

/// Every backend, in the order in which devices are listed.
pub(crate) const ENTRIES: &[Entry] = &[
    #[cfg(feature = "cpu")]
    Entry { name: "cpu", isolated: true, hidden: false, make: || Box::new(mxprobe_cpu::CpuBackend::new()) },
    #[cfg(feature = "cuda")]
    Entry { name: "cuda", isolated: true, hidden: false, make: || Box::new(mxprobe_cuda::CudaBackend::new()) },
    #[cfg(feature = "vulkan")]
    Entry { name: "vulkan", isolated: true, hidden: false, make: || Box::new(mxprobe_vulkan::VulkanBackend::new()) },
    #[cfg(feature = "wgpu")]
    Entry { name: "wgpu", isolated: true, hidden: false, make: || Box::new(mxprobe_wgpu::WgpuBackend::new()) },
    #[cfg(feature = "fault-devices")]
    Entry { name: "fault", isolated: true, hidden: true, make: || Box::new(crate::cli::choose::fault::FaultBackend) },
    Entry { name: MODELS, isolated: false, hidden: false, make: || Box::new(mxprobe_sim::SimBackend) },
];

/// Backends that this program was built without; the cargo feature of its name adds each.
pub(crate) const LEFT_OUT: &[&str] = &[
    #[cfg(not(feature = "cpu"))]
    "cpu",
    #[cfg(not(feature = "cuda"))]
    "cuda",
    #[cfg(not(feature = "vulkan"))]
    "vulkan",
    #[cfg(not(feature = "wgpu"))]
    "wgpu",
];

/// The backend whose devices are models.
pub(crate) const MODELS: &str = "sim";

impl Entry {
    /// The entry of a name.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        ENTRIES.iter().find(|entry| entry.name == name)
    }

    /// The backend itself.
    pub(crate) fn backend(&self) -> Box<dyn Backend> {
        (self.make)()
    }

    /// Opens the device of an exact selector, in this process.
    ///
    /// # Errors
    /// If there is no such device, or it cannot be opened.
    pub(crate) fn open(&self, selector: &str) -> Result<Box<dyn Device>, Error> {
        let backend = self.backend();
        let name = selector.strip_prefix(self.name).and_then(|rest| rest.strip_prefix(':')).unwrap_or(selector);
        if self.name == MODELS {
            return backend.open(name);
        }
        let found = backend.discover();
        match found.devices.into_iter().find(|device| device.info().selector == selector) {
            Some(device) => Ok(device),
            None => backend.open(name),
        }
    }
}

/// The names of the backends that are not hidden.
pub(crate) fn names() -> Vec<&'static str> {
    ENTRIES.iter().filter(|entry| !entry.hidden).map(|entry| entry.name).collect()
}
