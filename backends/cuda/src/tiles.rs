//! Batches of tiles: one kernel per instruction, one launch for as many tiles as fit.

use std::collections::HashMap;

use cudarc::driver::{CudaFunction, PushKernelArg};
use mxprobe_api::{Elements, Error, Issued, OperationId, TileBatch, written::is_all};
use mxprobe_shaders::ptx::layout::{Layout, Layouts};
use mxprobe_shaders::ptx::{Instruction, Kernel};

use crate::opcodes::Code;
use crate::session::{BYTES_PER_LAUNCH, Loaded, Session, called, grid};
use crate::written::written;

/// The kernels compiled so far.
#[derive(Default)]
pub(crate) struct Kernels(HashMap<OperationId, Compiled>);

/// A compiled kernel.
pub(crate) struct Compiled {
    function: CudaFunction,
    kernel: Kernel,
    layouts: Layouts,
    /// The instructions in its machine code, or the reason why they are not known.
    pub(crate) issued: Result<Issued, Error>,
}

impl Kernels {
    /// Returns the kernel of an instruction, compiling it on first use.
    ///
    /// # Errors
    /// Whatever the driver's compiler reports.
    pub(crate) fn compiled(
        &mut self,
        session: &Session,
        instruction: &Instruction,
        make: impl FnOnce() -> (Layouts, Kernel),
    ) -> Result<&Compiled, Error> {
        if !self.0.contains_key(&instruction.id) {
            let compiled = compile(session, instruction, make()).map_err(|error| error.context(&instruction.id))?;
            self.0.insert(instruction.id.clone(), compiled);
        }
        Ok(&self.0[&instruction.id])
    }

    /// Computes every tile of a batch with a kernel that [`compiled`](Self::compiled) returned earlier.
    ///
    /// # Errors
    /// Whatever the driver reports; [`Error::is_nothing_written`] with the first tile that was never written.
    pub(crate) fn run(&self, session: &Session, id: &OperationId, batch: &TileBatch) -> Result<Elements, Error> {
        let compiled = &self.0[id];
        let layouts = &compiled.layouts;
        let group = layouts.c.group();
        let widest = [&layouts.a, &layouts.b, &layouts.c, &layouts.d].map(Layout::bytes).into_iter().max();
        let groups_per_launch = (BYTES_PER_LAUNCH / widest.expect("four operands")).max(1);
        let mut d = Vec::new();
        for first in (0..batch.tiles).step_by(groups_per_launch * group) {
            let tiles = (batch.tiles - first).min(groups_per_launch * group);
            let filled_with = |d: &[u8], filling: u8| {
                let mut found = layouts.d.tiles_where(d, |word| is_all(word, filling));
                found.retain(|tile| *tile < tiles);
                found
            };
            let words = |unwritten: &[usize]| {
                let (count, at) = (unwritten.len(), first + unwritten[0]);
                format!("{id}: the launch succeeded and {count} of {tiles} tiles were never written, tile {at} first")
            };
            let launch = |filling| compiled.launch(session, batch, (first, tiles.div_ceil(group)), filling);
            let packed = written(launch, filled_with, words)?;
            d.extend_from_slice(layouts.d.unpack(&packed, id.d, tiles).bytes());
        }
        Elements::from_bytes(id.d, d)
    }
}

fn compile(
    session: &Session,
    instruction: &Instruction,
    (layouts, kernel): (Layouts, Kernel),
) -> Result<Compiled, Error> {
    let Loaded { function, cubin } = session.load(&instruction.id.to_string(), &kernel.text)?;
    let issued = match cubin {
        Ok(cubin) => Ok(Code::of(&cubin, session.capability)?.issued(instruction.unit, &cubin)),
        Err(error) => Err(error),
    };
    Ok(Compiled { function, kernel, layouts, issued })
}

impl Compiled {
    /// Launches the kernel for `groups` groups of tiles starting at tile `first`, and returns the packed D.
    fn launch(
        &self,
        session: &Session,
        batch: &TileBatch,
        (first, groups): (usize, usize),
        filling: u8,
    ) -> Result<Vec<u8>, Error> {
        let layouts = &self.layouts;
        let upload = |layout: &Layout, elements: &Elements| session.upload(&layout.pack(elements, first, groups));
        let (a, b, c) = (upload(&layouts.a, &batch.a)?, upload(&layouts.b, &batch.b)?, upload(&layouts.c, &batch.c)?);
        let d_bytes = groups * layouts.d.bytes();
        let mut d_device = session.filled(filling, d_bytes)?;
        let scales = match (&layouts.scales, &batch.scale_a, &batch.scale_b) {
            (Some((of_a, of_b)), Some(a), Some(b)) => Some((upload(of_a, a)?, upload(of_b, b)?)),
            _ => None,
        };
        let count = u32::try_from(groups).expect("a launch has few groups");
        let blocks = count.div_ceil(self.kernel.groups_at_once).min(8 * session.multiprocessors).max(1);
        let mut builder = session.stream.launch_builder(&self.function);
        builder.arg(&a).arg(&b).arg(&c).arg(&mut d_device);
        if let Some((of_a, of_b)) = &scales {
            builder.arg(of_a).arg(of_b);
        }
        builder.arg(&count);
        // SAFETY: the parameters are those of the kernel's text, pointers then a count; every buffer holds `groups`
        // groups of the layouts that the text was made for, and all outlive the synchronisation below.
        unsafe { builder.launch(grid(blocks, self.kernel.threads)) }.map_err(called("cuLaunchKernel"))?;
        session.download(&d_device, d_bytes)
    }
}
