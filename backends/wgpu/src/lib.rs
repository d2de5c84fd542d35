//! Reaches the matrix and scalar units of any desktop GPU through wgpu: Vulkan, Metal and Direct3D 12, with shaders in
//! WGSL that naga compiles.
//!
//! Building this needs no part of a graphics API: wgpu opens their libraries at run time. Operations are called
//! `coopmat.mMnNkK.D.A.B.C`, as in the backend `vulkan`. WGSL can express fewer of them than a driver lists: the others
//! are refusals of the device, with the reason. Every adapter has scalar arithmetic in f32 and, if it supports them, in
//! f16 and f64. WGSL cannot select a rounding direction and does not specify subnormals, so each format has only the
//! default mode.
//!
//! One workgroup computes one tile. Before an operation's first batch, its layout is checked with sums of small
//! integers ([`SelfTest`](mxprobe_api::SelfTest)), and output memory is filled before every batch, so that memory that
//! the device never wrote is not mistaken for a result.
//!
//! ```
//! use mxprobe_api::Backend;
//!
//! let found = mxprobe_wgpu::WgpuBackend::new().discover();
//! for device in &found.devices {
//!     println!("{}: {} operations", device.info().name, device.operations().len());
//! }
//! for refusal in &found.refusals {
//!     println!("{} cannot be used: {}", refusal.what, refusal.reason);
//! }
//! // Without an adapter, discovery returns a reason instead of a device.
//! assert!(!found.devices.is_empty() || !found.refusals.is_empty());
//! ```

mod adapter;
mod device;
mod failure;
mod matrix;
mod native;
mod session;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use mxprobe_api::{Backend, Device, Discovery, Error, Refusal};

pub use device::WgpuDevice;

/// The default time limit of a submission; see [`WgpuBackend::with_timeout`].
const TIMEOUT: Duration = Duration::from_secs(10);

/// The backend `wgpu`.
pub struct WgpuBackend {
    timeout: Duration,
}

impl Default for WgpuBackend {
    fn default() -> Self {
        Self::new()
    }
}

impl WgpuBackend {
    /// Creates a backend with a time limit of 10 s per submission.
    #[must_use]
    pub fn new() -> Self {
        Self { timeout: TIMEOUT }
    }

    /// Sets the time limit of a submission.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Like [`discover`](Backend::discover), but returns the concrete device type.
    #[must_use]
    pub fn devices(&self) -> (Vec<WgpuDevice>, Vec<Refusal>) {
        // wgpu panics on caller errors, and unexpected behaviour of a driver may look like one.
        let looked = catch_unwind(AssertUnwindSafe(|| self.look()));
        looked.unwrap_or_else(|payload| {
            let reason = Error::driver(format!("wgpu gave up while it looked for adapters: {}", said(&*payload)));
            (Vec::new(), vec![Refusal { what: "wgpu".to_owned(), reason, help: None }])
        })
    }

    fn look(&self) -> (Vec<WgpuDevice>, Vec<Refusal>) {
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
            backends: adapter::APIS,
            // Drivers that did not pass Khronos' tests are all the more worth probing.
            flags: wgpu::InstanceFlags::ALLOW_UNDERLYING_NONCOMPLIANT_ADAPTER,
            ..wgpu::InstanceDescriptor::new_without_display_handle()
        });
        let adapters = pollster::block_on(instance.enumerate_adapters(adapter::APIS));
        if adapters.is_empty() {
            return (Vec::new(), vec![no_adapter()]);
        }
        let (mut devices, mut refusals) = (Vec::new(), Vec::new());
        for (index, adapter) in adapters.into_iter().enumerate() {
            match adapter::examine(index, adapter) {
                Ok(found) => devices.push(WgpuDevice::new(found, self.timeout)),
                Err(refusal) => refusals.push(refusal),
            }
        }
        (devices, refusals)
    }
}

impl Backend for WgpuBackend {
    fn name(&self) -> &'static str {
        "wgpu"
    }

    fn discover(&self) -> Discovery {
        let (devices, refusals) = self.devices();
        let devices = devices.into_iter().map(|device| Box::new(device) as Box<dyn Device>).collect();
        Discovery { devices, refusals }
    }
}

/// The refusal for an empty list of adapters. wgpu gives no reason: it returns one for a missing library, a missing
/// driver and a missing device alike.
fn no_adapter() -> Refusal {
    let (apis, help) = if cfg!(target_vendor = "apple") {
        ("Metal", "Metal is part of the system; a virtual machine may have no device")
    } else if cfg!(windows) {
        ("Vulkan and Direct3D 12", "install the driver of the GPU")
    } else {
        (
            "Vulkan",
            "install the Vulkan loader and the Vulkan driver of the GPU; \
             `mxprobe list --backend vulkan` says what is missing",
        )
    };
    Refusal {
        what: "adapters".to_owned(),
        reason: Error::missing_driver(format!("wgpu found no adapter through {apis}")),
        help: Some(help.to_owned()),
    }
}

/// Returns the message of a panic.
fn said(payload: &(dyn std::any::Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("it does not say why")
}
