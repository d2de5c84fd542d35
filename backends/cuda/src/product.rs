//! Whole matrices: operands packed as fragments, one launch for a product, the loop along k in the kernel.

use std::collections::HashMap;

use cudarc::driver::{CudaFunction, CudaSlice, LaunchConfig, PushKernelArg};
use mxprobe_api::{Elements, Error, GemmOperands, OperationId};
use mxprobe_shaders::ptx::layout::Layouts;
use mxprobe_shaders::ptx::product::{Block, Order, ProductKernel, ProductKernels, name};
use mxprobe_shaders::ptx::{Instruction, Target};

use crate::session::{FILLINGS, Session, called};

/// The kernels of whole matrices of an instruction, one compiled for each block of D that was asked for.
pub(crate) struct Kernels {
    texts: ProductKernels,
    compiled: HashMap<Block, Compiled>,
}

/// A compiled kernel of whole matrices.
pub(crate) struct Compiled {
    function: CudaFunction,
    kernel: ProductKernel,
}

impl Kernels {
    /// No kernel yet; `None` if the instruction has none.
    pub(crate) fn new(instruction: &Instruction) -> Option<Self> {
        Some(Self { texts: ProductKernels::new(instruction)?, compiled: HashMap::new() })
    }

    /// The block of D for a product on so many multiprocessors.
    pub(crate) fn block(&self, id: &OperationId, product: &GemmOperands<'_>, multiprocessors: u32) -> Block {
        self.texts.block(id, product, multiprocessors)
    }

    /// Whether the kernel for a block was compiled.
    pub(crate) fn has(&self, block: Block) -> bool {
        self.compiled.contains_key(&block)
    }

    /// The kernel for a block.
    ///
    /// # Errors
    /// What the driver's compiler says.
    pub(crate) fn compile(
        &self,
        session: &Session,
        (instruction, target): (&Instruction, Target),
        block: Block,
    ) -> Result<Compiled, Error> {
        let kernel = self.texts.kernel(instruction, target, block);
        let loaded = session
            .load(&name(&instruction.id, block), &kernel.kernel.text)
            .map_err(|error| error.context(&instruction.id))?;
        Ok(Compiled { function: loaded.function, kernel })
    }

    pub(crate) fn insert(&mut self, block: Block, compiled: Compiled) {
        self.compiled.insert(block, compiled);
    }
}

/// D = A·B + C with the kernel for a block; `None` if the device's memory does not hold it, or 32 bits do not count its tiles.
///
/// # Errors
/// What the driver reports; [`Error::is_nothing_written`] with the first tile that no launch wrote.
pub(crate) fn multiply(
    session: &Session,
    kernels: &Kernels,
    block: Block,
    id: &OperationId,
    product: &GemmOperands<'_>,
) -> Result<Option<Elements>, Error> {
    let layouts = kernels.texts.layouts();
    let order = Order::new(product, id.shape.sizes(), layouts.d.group(), block);
    let blocks = order.down * order.across;
    if blocks == 0 || u32::try_from(order.steps).is_err() || u32::try_from(blocks).is_err() {
        return Ok(None);
    }
    match launch_checked(session, &kernels.compiled[&block], layouts, &order) {
        Err(error) if error.is_out_of_memory() => Ok(None),
        Err(error) => Err(error.context(id)),
        Ok(packed) => {
            let tiles = blocks * order.tiles_of_block();
            let unpacked = layouts.d.unpack(&packed, id.d, tiles);
            Ok(Some(order.scatter(&unpacked)))
        }
    }
}

/// Launches; if a tile still holds what was there before, launches once more over another filling.
fn launch_checked(
    session: &Session,
    compiled: &Compiled,
    layouts: &Layouts,
    order: &Order<'_>,
) -> Result<Vec<u8>, Error> {
    let all = order.down * order.across * order.tiles_of_block();
    let d_bytes = all / layouts.d.group() * layouts.d.bytes();
    let ProductKernel { a, b, .. } = &compiled.kernel;
    let inputs = [
        session.upload(&a.arrange(layouts.a.pack_all(&order.gather_a())))?,
        session.upload(&b.arrange(layouts.b.pack_all(&order.gather_b())))?,
        session.upload(&layouts.c.pack_all(&order.gather_c()))?,
    ];
    let lengths = [order.steps, order.across, order.down].map(|length| length as u64);
    let unwritten = |d: &[u8], filling: u8| layouts.d.tiles_where(d, |word| word.iter().all(|byte| *byte == filling));
    let mut suspects: Option<Vec<usize>> = None;
    for filling in FILLINGS {
        let d = launch(session, compiled, &inputs, (d_bytes, filling), lengths)?;
        let found = unwritten(&d, filling);
        let known = suspects.get_or_insert_with(|| found.clone());
        known.retain(|tile| found.contains(tile));
        if known.is_empty() {
            return Ok(d);
        }
    }
    let suspects = suspects.unwrap_or_default();
    Err(Error::nothing_written(format!(
        "the launch succeeded and {} of {all} tiles of a product were never written, tile {} first",
        suspects.len(),
        suspects[0]
    )))
}

fn launch(
    session: &Session,
    compiled: &Compiled,
    inputs: &[CudaSlice<u8>; 3],
    (d_bytes, filling): (usize, u8),
    lengths: [u64; 3],
) -> Result<Vec<u8>, Error> {
    let ProductKernel { kernel, patch, .. } = &compiled.kernel;
    let mut d_device = session.filled(filling, d_bytes)?;
    let [_, across, down] = lengths;
    let patches = across.div_ceil(patch.across as u64) * down.div_ceil(patch.down as u64);
    let count = u32::try_from(patches).expect("no more than blocks, and 32 bits count those");
    let blocks = count.min(8 * session.multiprocessors);
    let configuration =
        LaunchConfig { grid_dim: (blocks, 1, 1), block_dim: (kernel.threads, 1, 1), shared_mem_bytes: 0 };
    let mut builder = session.stream.launch_builder(&compiled.function);
    inputs.iter().for_each(|input| {
        builder.arg(input);
    });
    builder.arg(&mut d_device).arg(&lengths[0]).arg(&lengths[1]).arg(&lengths[2]).arg(&count);
    let started = session.started()?;
    // SAFETY: the parameters are those of the kernel's text: pointers, three lengths in the size of one, a count; the buffers
    // hold what so many blocks read and write, and all outlive the synchronisation below.
    unsafe { builder.launch(configuration) }.map_err(called("cuLaunchKernel"))?;
    session.ended(&started)?;
    session.download(&d_device, d_bytes)
}
