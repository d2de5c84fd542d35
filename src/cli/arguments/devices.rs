//! Arguments that select devices.

use clap::Args;
use mxprobe_api::Shape;

use super::{Format, values::shape};

/// Arguments that select devices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub(crate) struct Devices {
    /// Only devices of this backend (repeatable)
    #[arg(long, value_name = "BACKEND")]
    pub(crate) backend: Vec<String>,
    /// Use this device (repeatable): BACKEND:INDEX, BACKEND:NAME or a unique part of its name, BACKEND:all, sim:MODEL,
    /// sim:FILE.toml, or 'exec:COMMAND ARGUMENTS' for a program that speaks the device protocol. `run` and `eval`
    /// default to MXPROBE_DEVICE
    #[arg(long, value_name = "SELECTOR")]
    pub(crate) device: Vec<String>,
    /// The sizes of operations that leave them open (devices of programs only) [default: 8x8x16]
    #[arg(long, value_name = "MxNxK", value_parser = shape)]
    pub(crate) shape: Option<Shape>,
    /// Reach devices from this process, without a time limit: for use under a debugger
    #[arg(long)]
    pub(crate) no_isolation: bool,
}

impl Devices {
    /// Returns the values of `--device`, or those of the environment if neither it nor `--backend` is given.
    pub(crate) fn selectors(&self) -> Vec<String> {
        let own = self.device.iter().filter(|text| !text.is_empty()).cloned().collect::<Vec<_>>();
        if !own.is_empty() || !self.backend.is_empty() {
            return own;
        }
        std::env::var("MXPROBE_DEVICE").ok().filter(|text| !text.is_empty()).into_iter().collect()
    }
}

#[derive(Debug, Args)]
pub(crate) struct Worker {
    /// Offer the devices of this backend (repeatable) [default: all but models]
    #[arg(long, value_name = "BACKEND")]
    pub(crate) backend: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    pub(crate) devices: Devices,
    /// Output format: for people or for programs
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
    /// The same as `--format json`
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,
}
