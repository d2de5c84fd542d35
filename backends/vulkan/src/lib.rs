//! Reaches matrix and scalar units through Vulkan: `VK_KHR_cooperative_matrix`, with bf16 (`VK_KHR_shader_bfloat16`)
//! and fp8 (`VK_EXT_shader_float8`), every configuration that a driver lists.
//!
//! Building this needs no part of Vulkan: the loader is opened at run time, and `mxprobe-shaders` builds the shaders,
//! word by word. Operations are called `coopmat.mMnNkK.D.A.B.C`, followed by `satfinite` if the sum saturates, and by a
//! mode of `SPV_KHR_float_controls` that the shader requests, if the driver supports it: `denormpreserve`,
//! `denormflush`, `rte` or `rtz`. An operation without a mode requests none.
//!
//! Every device has scalar arithmetic in f32 and, if it has the features, in f16 and f64: in the default mode, and in
//! each float-controls mode that the driver supports — `preserve`, `ftz.daz`, `rne`, `rz`, and `szinfnan` for
//! `SignedZeroInfNanPreserve`.
//!
//! One workgroup of one subgroup computes one tile. Before an operation's first batch, its layout is checked with sums
//! of small integers ([`SelfTest`](mxprobe_api::SelfTest)), and output memory is filled before every batch, so that
//! memory that the device never wrote is not mistaken for a result.
//!
//! ```
//! use mxprobe_api::Backend;
//!
//! let found = mxprobe_vulkan::VulkanBackend::new().discover();
//! for device in &found.devices {
//!     println!("{}: {} operations", device.info().name, device.operations().len());
//! }
//! for refusal in &found.refusals {
//!     println!("{} cannot be used: {}", refusal.what, refusal.reason);
//! }
//! // Without a driver, discovery returns a reason instead of a device.
//! assert!(!found.devices.is_empty() || !found.refusals.is_empty());
//! ```

mod component;
mod device;
mod disassembly;
mod failure;
mod features;
mod float_mode;
mod instance;
mod matrices;
mod physical;
mod product;
mod scalar;
mod search;
mod session;
mod timed;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mxprobe_api::{Backend, Device, Discovery, Error, Refusal};

pub use device::VulkanDevice;

use failure::failure;
use instance::{Instance, Messages};

/// The default time limit of a submission; see [`VulkanBackend::with_timeout`].
const TIMEOUT: Duration = Duration::from_secs(10);

/// The backend `vulkan`.
pub struct VulkanBackend {
    timeout: Duration,
    validation: bool,
    loader: PathBuf,
    messages: Arc<Messages>,
}

impl Default for VulkanBackend {
    fn default() -> Self {
        Self::new()
    }
}

impl VulkanBackend {
    /// Creates a backend with a time limit of 10 s per submission, and with the validation layers if the environment
    /// sets `MXPROBE_VULKAN_VALIDATION=1`.
    #[must_use]
    pub fn new() -> Self {
        let validation = std::env::var_os("MXPROBE_VULKAN_VALIDATION").is_some_and(|value| value == "1");
        Self { timeout: TIMEOUT, validation, loader: search::LOADER.into(), messages: Arc::default() }
    }

    /// Sets the time limit of a submission, which is a chunk of at most 16 MiB per operand.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets a Vulkan loader to use instead of the system's.
    #[must_use]
    pub fn with_loader(mut self, library: impl Into<PathBuf>) -> Self {
        self.loader = library.into();
        self
    }

    /// The warnings and errors of the validation layers about all devices that this backend discovered.
    #[must_use]
    pub fn validation_messages(&self) -> Vec<String> {
        self.messages.all()
    }

    /// Like [`discover`](Backend::discover), but returns the concrete device type.
    #[must_use]
    pub fn devices(&self) -> (Vec<VulkanDevice>, Vec<Refusal>) {
        let mut refusals = closed_nodes();
        let instance = match Instance::new(&self.loader, self.validation, &self.messages, &mut refusals) {
            Ok(instance) => instance,
            Err(refusal) => {
                refusals.push(refusal);
                return (Vec::new(), refusals);
            }
        };
        // SAFETY: the instance is alive.
        let handles = match unsafe { instance.handle.enumerate_physical_devices() } {
            Ok(handles) if !handles.is_empty() => handles,
            result => {
                // A driver without hardware returns ERROR_INITIALIZATION_FAILED (*measured*: RADV, NVK and ANV 26.1).
                let reason = match result {
                    Ok(_) => Error::missing_driver("the Vulkan drivers found no device"),
                    Err(ash::vk::Result::ERROR_INITIALIZATION_FAILED) => {
                        Error::missing_driver("the Vulkan drivers found no device (ERROR_INITIALIZATION_FAILED)")
                    }
                    Err(other) => failure("vkEnumeratePhysicalDevices", other),
                };
                let help = format!("`vulkaninfo --summary` shows the same from outside; {}", search::searched());
                refusals.push(Refusal { what: "Vulkan".to_owned(), reason, help: Some(help) });
                return (Vec::new(), refusals);
            }
        };
        let mut devices = Vec::new();
        for (index, handle) in handles.into_iter().enumerate() {
            match physical::examine(&instance, index, handle) {
                Ok(found) => devices.push(VulkanDevice::new(found, self.timeout)),
                Err(refusal) => refusals.push(refusal),
            }
        }
        (devices, refusals)
    }
}

impl Backend for VulkanBackend {
    fn name(&self) -> &'static str {
        "vulkan"
    }

    fn discover(&self) -> Discovery {
        let (devices, refusals) = self.devices();
        let devices = devices.into_iter().map(|device| Box::new(device) as Box<dyn Device>).collect();
        Discovery { devices, refusals }
    }
}

/// Finds GPU device nodes that this user may not open; their drivers then silently report no device.
fn closed_nodes() -> Vec<Refusal> {
    let Ok(folder) = std::fs::read_dir("/dev/dri") else { return Vec::new() };
    let mut nodes: Vec<_> = folder
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("renderD"))
        .map(|entry| entry.path())
        .collect();
    nodes.sort();
    nodes
        .into_iter()
        .filter_map(|node| {
            let error = std::fs::OpenOptions::new().read(true).write(true).open(&node).err()?;
            (error.kind() == std::io::ErrorKind::PermissionDenied).then(|| Refusal {
                what: node.display().to_string(),
                reason: Error::missing_driver(format!("the GPU's node cannot be opened: {error}")),
                help: Some("the node's group (`ls -l /dev/dri`) says who may; add this user to it".to_owned()),
            })
        })
        .collect()
}
