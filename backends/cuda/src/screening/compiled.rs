//! A compiled screening kernel, and how it is launched.

use cudarc::driver::CudaFunction;
use mxprobe_api::{Error, Format};
use mxprobe_shaders::ptx::layout::Layouts;
use mxprobe_shaders::ptx::screening::kernel;
use mxprobe_shaders::ptx::throughput_loop::blocks_of_multiprocessor;
use mxprobe_shaders::ptx::{Instruction, Kernel, Target};

use crate::session::Session;

/// A compiled kernel.
pub(super) struct Compiled {
    pub(super) function: CudaFunction,
    pub(super) kernel: Kernel,
    pub(super) layouts: Layouts,
    /// The format of D.
    pub(super) d: Format,
    /// The number of blocks on each multiprocessor.
    pub(super) blocks: u32,
}

impl Compiled {
    /// Compiles the kernel of an instruction; `None` if it has none.
    ///
    /// # Errors
    /// Whatever the driver's compiler reports.
    pub(super) fn compile(session: &Session, instruction: &Instruction, target: Target) -> Result<Option<Self>, Error> {
        let layouts = Layouts::new(instruction);
        let Some(kernel) = kernel(instruction, &layouts, target) else { return Ok(None) };
        let function = session.load(&format!("{}.screen", instruction.id), &kernel.text)?.function;
        Ok(Some(Self {
            function,
            kernel,
            layouts,
            d: instruction.id.d,
            blocks: blocks_of_multiprocessor(Some(instruction)),
        }))
    }
}
