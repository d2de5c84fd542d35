//! How a chosen device is reached: in a process of its own, or in this one.

use std::sync::Arc;

use crate::{
    isolate::{Health, RemoteDevice},
    session::{self, Asked},
};
use mxprobe_api::{Device, Error, Sizes, with_sizes};

use crate::cli::choose::{
    limits::Limits,
    process,
    target::{Origin, Target},
};

/// A device that can be asked.
pub(crate) struct Reached {
    pub(crate) device: Arc<dyn Device>,
    /// The health of its process, if it has one of its own.
    health: Option<Health>,
    /// Whether it is a model in this process.
    is_model: bool,
}

impl Reached {
    /// Returns why the device is asked nothing more, if it is not.
    fn gave_up(&self) -> Option<String> {
        self.health.as_ref().and_then(Health::gave_up)
    }

    /// As [`session::threads_each`].
    pub(crate) fn threads_each(&self, operations: usize) -> usize {
        session::threads_each(self.is_model, operations)
    }

    /// Converts the device into the form that a session uses.
    pub(crate) fn asked(self) -> Asked {
        let device = self.device.clone();
        Asked { device, several: self.is_model, gave_up: Arc::new(move || self.gave_up()) }
    }
}

/// Whether hardware devices are reached through a process of their own, and whether its messages are forwarded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Isolation {
    /// Whether hardware gets its own process. Models never do, since they do not crash; other programs always do.
    pub(crate) wanted: bool,
    /// Whether standard error of that process is forwarded.
    pub(crate) forward_stderr: bool,
}

/// Opens a device.
///
/// # Errors
/// If it has disappeared, or its process does not start or does not answer.
pub(crate) fn reach(target: &Target, isolation: Isolation, limits: &Limits) -> Result<Reached, Error> {
    let none = Sizes::default();
    let sizes = target.sizes.as_ref().unwrap_or(&none);
    let stop = limits.clone();
    let stop = move || stop.stop();
    let device = match &target.origin {
        Origin::Program(foreign) => {
            let program = process::of(foreign.starts(), limits.request, isolation.forward_stderr, stop);
            RemoteDevice::of_program(program, &foreign.device, sizes, &target.selector)?
        }
        Origin::Backend(entry) if entry.isolated && isolation.wanted => {
            let program = process::program(limits.request, isolation.forward_stderr, stop);
            RemoteDevice::open(program, &target.selector, sizes)?
        }
        Origin::Backend(entry) => {
            let device = with_sizes(Arc::from(entry.open(&target.selector)?), sizes);
            return Ok(Reached { device, health: None, is_model: !entry.isolated });
        }
    };
    let health = Some(device.health());
    Ok(Reached { device: Arc::new(device), health, is_model: false })
}
