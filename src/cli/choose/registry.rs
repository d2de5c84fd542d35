//! The registry: the only place that names the backends.

use std::sync::OnceLock;

use mxprobe_api::{Backend, Device, Error};

/// The backends of a program: those enabled by this crate's features, and others.
///
/// For a backend in another crate, a program of three lines provides every command:
///
/// ```no_run
/// # #[derive(Default)]
/// # struct NpuBackend;
/// # impl mxprobe_api::Backend for NpuBackend {
/// #     fn name(&self) -> &'static str { "npu" }
/// #     fn discover(&self) -> mxprobe_api::Discovery { mxprobe_api::Discovery::default() }
/// # }
/// fn main() -> std::process::ExitCode {
///     mxprobe::Backends::included().register(|| Box::new(NpuBackend)).main()
/// }
/// ```
#[derive(Debug)]
pub struct Backends {
    entries: Vec<Entry>,
}

/// A backend of this program.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The word that selects the backend.
    pub(crate) name: &'static str,
    /// Whether its devices are reached through drivers or instructions that may hang or crash.
    pub(crate) isolated: bool,
    /// Whether the backend is available only by name.
    pub(crate) hidden: bool,
    make: fn() -> Box<dyn Backend>,
}

static ENTRIES: OnceLock<Vec<Entry>> = OnceLock::new();

impl Backends {
    /// Returns the backends enabled by this crate's features, in the order in which devices are listed.
    #[must_use]
    pub fn included() -> Self {
        let entries = vec![
            #[cfg(feature = "cpu")]
            Entry { name: "cpu", isolated: true, hidden: false, make: || Box::new(mxprobe_cpu::CpuBackend::new()) },
            #[cfg(feature = "cuda")]
            Entry { name: "cuda", isolated: true, hidden: false, make: || Box::new(mxprobe_cuda::CudaBackend::new()) },
            // By name only: it is a library on devices that `cuda` lists.
            #[cfg(feature = "cuda")]
            Entry {
                name: "cublaslt",
                isolated: true,
                hidden: true,
                make: || Box::new(mxprobe_cuda::CublasLtBackend::new()),
            },
            #[cfg(feature = "vulkan")]
            Entry {
                name: "vulkan",
                isolated: true,
                hidden: false,
                make: || Box::new(mxprobe_vulkan::VulkanBackend::new()),
            },
            #[cfg(feature = "wgpu")]
            Entry { name: "wgpu", isolated: true, hidden: false, make: || Box::new(mxprobe_wgpu::WgpuBackend::new()) },
            #[cfg(feature = "fault-devices")]
            Entry {
                name: "fault",
                isolated: true,
                hidden: true,
                make: || Box::new(crate::cli::choose::fault::FaultBackend),
            },
            Entry { name: MODELS, isolated: false, hidden: false, make: || Box::new(mxprobe_sim::SimBackend) },
        ];
        Self { entries }
    }

    /// Adds a backend, whose devices are listed after those of the others but before models. As with all hardware, they
    /// are reached from a process of their own, with a time limit: `make` is called in that process too.
    ///
    /// # Panics
    /// If a backend with this name already exists.
    #[must_use]
    pub fn register(mut self, make: fn() -> Box<dyn Backend>) -> Self {
        let name = make().name();
        assert!(self.entries.iter().all(|entry| entry.name != name), "there is a backend `{name}` already");
        let models = self.entries.iter().position(|entry| entry.name == MODELS).unwrap_or(self.entries.len());
        self.entries.insert(models, Entry { name, isolated: true, hidden: false, make });
        self
    }

    /// Makes these the backends of this process, unless some are installed already.
    pub(crate) fn install(self) {
        let Self { entries } = self;
        ENTRIES.get_or_init(|| entries);
    }
}

/// Returns every backend, in the order in which devices are listed.
pub(crate) fn entries() -> &'static [Entry] {
    ENTRIES.get_or_init(|| Backends::included().entries)
}

/// The backends that this program was built without; the cargo feature of the same name adds each.
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
    /// Returns the entry with a name.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        entries().iter().find(|entry| entry.name == name)
    }

    /// Creates the backend.
    pub(crate) fn backend(&self) -> Box<dyn Backend> {
        (self.make)()
    }

    /// Opens the device with an exact selector, in this process.
    ///
    /// # Errors
    /// If the device does not exist or cannot be opened.
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

/// Returns the names of the backends that are not hidden.
pub(crate) fn names() -> Vec<&'static str> {
    entries().iter().filter(|entry| !entry.hidden).map(|entry| entry.name).collect()
}
