//! Launches, and the traps that stop them.

use super::{plan::Plans, unit::Unit};
use crate::{
    ptx::{Kernel, Step},
    status::Status,
};

/// A kernel launch: the kernel, its grid and its arguments.
#[derive(Debug)]
pub(crate) struct Launch<'a> {
    pub kernel: &'a Kernel,
    /// The kernel's index in its module.
    pub kernel_index: usize,
    pub plans: &'a Plans,
    pub unit: &'a Unit,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub multiprocessors: u32,
    pub dynamic_shared_bytes: usize,
    pub parameters: Vec<u8>,
}

/// The reason why a kernel was stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trap {
    pub status: Status,
    pub line: usize,
    pub text: String,
}

impl Trap {
    pub(super) fn failure(step: &Step, text: impl Into<String>) -> Self {
        Self { status: Status::LAUNCH_FAILED, line: step.line, text: text.into() }
    }
}

impl Launch<'_> {
    /// The multiprocessor of a block: they take blocks in turn.
    pub(super) fn multiprocessor(&self, block: usize) -> u32 {
        block as u32 % self.multiprocessors
    }

    pub(super) fn threads(&self) -> usize {
        self.block.iter().map(|size| *size as usize).product()
    }

    pub(super) fn warps(&self) -> usize {
        self.threads().div_ceil(32)
    }
}
