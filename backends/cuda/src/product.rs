//! Whole matrices: operands packed as fragments, one launch per product, with the loop along k in the kernel.

use std::collections::{HashMap, hash_map::Entry};

use cudarc::driver::{CudaFunction, CudaSlice, PushKernelArg};
use mxprobe_api::{Elements, Error, GemmOperands, OperationId, written::is_all};
use mxprobe_shaders::ptx::layout::Layouts;
use mxprobe_shaders::ptx::product::{Block, Order, ProductKernel, ProductKernels, name};
use mxprobe_shaders::ptx::{Instruction, Target};

use crate::session::{Session, called, grid};
use crate::written::written;

/// The kernels for whole matrices; `None` for instructions that have none.
#[derive(Default)]
pub(crate) struct Kernels(HashMap<OperationId, Option<OfInstruction>>);

/// The kernels of an instruction, one compiled for each block shape in use.
struct OfInstruction {
    texts: ProductKernels,
    compiled: HashMap<Block, Compiled>,
}

/// A compiled kernel for whole matrices.
struct Compiled {
    function: CudaFunction,
    kernel: ProductKernel,
}

impl Kernels {
    /// Computes D = A·B + C with a kernel for whole matrices, compiled on first use; `None` if there is none, if the
    /// product is empty or does not fit in the device's memory, or if the number of its blocks or steps exceeds 32
    /// bits.
    ///
    /// # Errors
    /// Whatever the driver and its compiler report; [`Error::is_nothing_written`] with the first tile that was never
    /// written.
    pub(crate) fn multiply(
        &mut self,
        session: &Session,
        (instruction, target): (&Instruction, Target),
        product: &GemmOperands<'_>,
    ) -> Result<Option<Elements>, Error> {
        let id = &instruction.id;
        let of_instruction = self.0.entry(id.clone()).or_insert_with(|| {
            let texts = ProductKernels::new(instruction)?;
            Some(OfInstruction { texts, compiled: HashMap::new() })
        });
        let Some(OfInstruction { texts, compiled }) = of_instruction else { return Ok(None) };
        let block = texts.block(id, product, session.multiprocessors);
        let compiled = match compiled.entry(block) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let kernel = texts.kernel(instruction, target, block);
                let loaded = session.load(&name(id, block), &kernel.kernel.text);
                place.insert(Compiled { function: loaded.map_err(|error| error.context(id))?.function, kernel })
            }
        };
        let layouts = texts.layouts();
        let order = Order::new(product, id.shape.sizes(), layouts.d.group(), block);
        let blocks = order.down * order.across;
        if blocks == 0 || u32::try_from(order.steps).is_err() || u32::try_from(blocks).is_err() {
            return Ok(None);
        }
        match launch_checked(session, compiled, layouts, &order) {
            Err(error) if error.is_out_of_memory() => Ok(None),
            Err(error) => Err(error.context(id)),
            Ok(packed) => {
                let unpacked = layouts.d.unpack(&packed, id.d, blocks * order.tiles_of_block());
                Ok(Some(order.scatter(&unpacked)))
            }
        }
    }
}

/// Computes the packed D of every tile.
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
    let filled_with = |d: &[u8], filling: u8| layouts.d.tiles_where(d, |word| is_all(word, filling));
    let words = |unwritten: &[usize]| {
        let (count, first) = (unwritten.len(), unwritten[0]);
        format!("the launch succeeded and {count} of {all} tiles of a product were never written, tile {first} first")
    };
    written(|filling| launch(session, compiled, &inputs, (d_bytes, filling), lengths), filled_with, words)
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
    let mut builder = session.stream.launch_builder(&compiled.function);
    inputs.iter().for_each(|input| {
        builder.arg(input);
    });
    builder.arg(&mut d_device).arg(&lengths[0]).arg(&lengths[1]).arg(&lengths[2]).arg(&count);
    let started = session.started()?;
    // SAFETY: the parameters are those of the kernel's text: pointers, three lengths of pointer size, a count; the
    // buffers hold what that many blocks read and write, and all outlive the synchronisation below.
    unsafe { builder.launch(grid(blocks, kernel.threads)) }.map_err(called("cuLaunchKernel"))?;
    session.ended(&started)?;
    session.download(&d_device, d_bytes)
}
