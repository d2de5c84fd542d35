//! Calls of scalar functions, one thread per call.

use std::collections::HashMap;

use cudarc::driver::{CudaFunction, PushKernelArg};
use mxprobe_api::{Elements, Error, ScalarFunction, ScalarId, written::is_all};
use mxprobe_shaders::ptx::ENTRY;
use mxprobe_shaders::ptx::scalar::{self, ScalarKernel};

use crate::session::{BYTES_PER_LAUNCH, Session, called, grid};
use crate::written::written;

/// The kernels compiled so far.
#[derive(Default)]
pub(crate) struct Kernels(HashMap<(ScalarId, ScalarFunction), CudaFunction>);

impl Kernels {
    /// Calls a scalar function once for each group of operands, compiling its kernel on first use.
    ///
    /// # Errors
    /// Whatever the driver reports; [`Error::is_nothing_written`] with the first call whose result was never written.
    pub(crate) fn call(
        &mut self,
        session: &Session,
        kernel: &ScalarKernel,
        operands: &Elements,
    ) -> Result<Elements, Error> {
        let (key, name) = ((kernel.id.clone(), kernel.function), format!("{} of {}", kernel.function, kernel.id));
        if !self.0.contains_key(&key) {
            let loaded = session.load(&format!("{}.{}", kernel.id, kernel.function), &kernel.text(ENTRY));
            self.0.insert(key.clone(), loaded.map_err(|error| error.context(&name))?.function);
        }
        let function = &self.0[&key];
        let to = kernel.function.result(kernel.id.format);
        let bytes_of_call = operands.format().storage_bytes() * kernel.function.arity();
        let mut results = Vec::new();
        for part in operands.bytes().chunks((BYTES_PER_LAUNCH / bytes_of_call).max(1) * bytes_of_call) {
            let calls = part.len() / bytes_of_call;
            let filled_with = |results: &[u8], filling: u8| {
                let elements = results.chunks_exact(to.storage_bytes()).enumerate();
                elements.filter(|(_, one)| is_all(one, filling)).map(|(at, _)| at).collect()
            };
            let words = |unwritten: &[usize]| {
                format!(
                    "{name}: the launch succeeded and the result of call {} of {calls} was never written",
                    unwritten[0]
                )
            };
            let launch = |filling| launch(session, function, part, (calls, to.storage_bytes()), filling);
            results.extend(written(launch, filled_with, words)?);
        }
        Elements::from_bytes(to, results)
    }
}

fn launch(
    session: &Session,
    function: &CudaFunction,
    operands: &[u8],
    (calls, result_bytes): (usize, usize),
    filling: u8,
) -> Result<Vec<u8>, Error> {
    let a = session.upload(operands)?;
    let mut d_device = session.filled(filling, calls * result_bytes)?;
    let count = u32::try_from(calls).expect("a launch has few calls");
    let mut builder = session.stream.launch_builder(function);
    builder.arg(&a).arg(&mut d_device).arg(&count);
    // SAFETY: the parameters are those of the kernel's text, two pointers then a count; the buffers hold the operands
    // and the results of `count` calls, and both outlive the synchronisation below.
    unsafe { builder.launch(grid(count.div_ceil(scalar::THREADS), scalar::THREADS)) }
        .map_err(called("cuLaunchKernel"))?;
    session.download(&d_device, calls * result_bytes)
}
