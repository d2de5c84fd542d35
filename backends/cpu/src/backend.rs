use mxprobe_api::{Backend, Discovery};

/// The backend `cpu`: the matrix units of the CPU that runs this process.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuBackend {}

impl CpuBackend {
    /// Creates the backend; it reads nothing before [`discover`](Backend::discover) is called.
    #[must_use]
    pub fn new() -> Self {
        Self {}
    }
}

impl Backend for CpuBackend {
    fn name(&self) -> &'static str {
        "cpu"
    }

    /// Finds at most one device, `cpu:0`. Requests the tile registers from the kernel if the CPU has them.
    fn discover(&self) -> Discovery {
        discover()
    }
}

#[cfg(target_arch = "x86_64")]
fn discover() -> Discovery {
    crate::device::discover(&crate::detect::Readings::here())
}

#[cfg(not(target_arch = "x86_64"))]
fn discover() -> Discovery {
    use mxprobe_api::{Error, Refusal};

    let refusal = Refusal {
        what: "the matrix units of the CPU".to_owned(),
        reason: Error::unsupported(format!("this is {}; only units of x86_64 are known here", std::env::consts::ARCH)),
        help: None,
    };
    Discovery { devices: Vec::new(), refusals: vec![refusal] }
}
