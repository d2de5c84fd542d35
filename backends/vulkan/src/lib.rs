//! Reaches matrix and scalar units through Vulkan: `VK_KHR_cooperative_matrix`, with bf16 (`VK_KHR_shader_bfloat16`) and fp8
//! (`VK_EXT_shader_float8`), every configuration that a driver lists.
//!
//! Nothing of Vulkan is needed to build this: the loader is opened at run time, and `mxprobe-shaders` builds the shaders,
//! word by word. Operations are called `coopmat.mMnNkK.D.A.B.C`, then `satfinite` where the sum saturates, then a mode of
//! `SPV_KHR_float_controls` that the shader asks for — `denormpreserve`, `denormflush`, `rte` or `rtz` — where the
//! driver has it; an operation without a mode asks for none.
//!
//! Scalar arithmetic is there on every device, in f32 and, by their features, in f16 and f64: by default, and in each
//! float-controls mode that the driver has — `preserve`, `ftz.daz`, `rne`, `rz`, and `szinfnan` for
//! `SignedZeroInfNanPreserve`.
//!
//! One tile is computed by one workgroup of one subgroup. Before an operation's first batch its layout is checked with
//! sums of small integers ([`SelfTest`](mxprobe_api::SelfTest)), and output memory is filled before every batch, so that memory which the
//! device never wrote is not taken for a result.

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

/// How long a submission may take unless [`VulkanBackend::with_timeout`] says otherwise.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The backend `vulkan`.
///
/// ```
/// use mxprobe_api::Backend;
///
/// let found = mxprobe_vulkan::VulkanBackend::new().discover();
/// // Without a driver there is no device, and a reason.
/// assert!(!found.devices.is_empty() || !found.refusals.is_empty());
/// ```
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
    /// A backend with a time limit of 10 s a submission, and with the validation layers if the environment says
    /// `MXPROBE_VULKAN_VALIDATION=1`.
    #[must_use]
    pub fn new() -> Self {
        let validation = std::env::var_os("MXPROBE_VULKAN_VALIDATION").is_some_and(|value| value == "1");
        Self { timeout: TIMEOUT, validation, loader: search::LOADER.into(), messages: Arc::default() }
    }

    /// The same with another time limit for one submission, a chunk of at most 16 MiB an operand.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The same with another Vulkan loader than the system's.
    #[must_use]
    pub fn with_loader(mut self, library: impl Into<PathBuf>) -> Self {
        self.loader = library.into();
        self
    }

    /// Warnings and errors of the validation layers about every device that this backend discovered.
    #[must_use]
    pub fn validation_messages(&self) -> Vec<String> {
        self.messages.all()
    }

    /// As [`discover`](Backend::discover), with the devices' own type.
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
                // A driver without hardware answers ERROR_INITIALIZATION_FAILED (measured: RADV, NVK and ANV 26.1).
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

/// GPUs' nodes that this user may not open: their drivers then report no device, without a word.
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
