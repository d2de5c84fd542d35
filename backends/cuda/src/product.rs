//! Whole matrices: operands packed as fragments, one launch per product, with the loop along k in the kernel.

use std::collections::{HashMap, hash_map::Entry};
use std::num::NonZero;
use std::ops::Range;
use std::thread;

use cudarc::driver::{CudaFunction, CudaSlice, PushKernelArg};
use mxprobe_api::{Elements, Error, Format, GemmOperands, OperationId, written::is_all};
use mxprobe_shaders::ptx::layout::{Layout, Layouts};
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
            Ok(packed) => Ok(Some(unpacked(&order, &layouts.d, &packed, id.d, product.m * product.n))),
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
    let of_a = packed(order.pieces_of_a(), |pieces| a.arrange(layouts.a.pack_all(&order.gather_a(pieces))));
    let of_a = session.upload(&of_a)?;
    let of_b = packed(order.pieces_of_b(), |pieces| b.arrange(layouts.b.pack_all(&order.gather_b(pieces))));
    let of_b = session.upload(&of_b)?;
    let of_c = packed(order.down, |down| layouts.c.pack_all(&order.gather_c(down)));
    let inputs = [of_a, of_b, session.upload(&of_c)?];
    let lengths = [order.steps, order.across, order.down].map(|length| length as u64);
    let filled_with = |d: &[u8], filling: u8| layouts.d.tiles_where(d, |word| is_all(word, filling));
    let words = |unwritten: &[usize]| {
        let (count, first) = (unwritten.len(), unwritten[0]);
        format!("the launch succeeded and {count} of {all} tiles of a product were never written, tile {first} first")
    };
    written(|filling| launch(session, compiled, &inputs, (d_bytes, filling), lengths), filled_with, words)
}

/// Packs this many pieces of equal size, on several threads.
fn packed(pieces: usize, pack: impl Fn(Range<usize>) -> Vec<u8> + Sync) -> Vec<u8> {
    let each = pieces.div_ceil(threads()).max(1);
    let parts: Vec<Range<usize>> = (0..pieces).step_by(each).map(|first| first..pieces.min(first + each)).collect();
    let parts: Vec<Vec<u8>> = thread::scope(|scope| {
        let begun: Vec<_> = parts.into_iter().map(|part| scope.spawn(|| pack(part))).collect();
        begun.into_iter().map(|part| part.join().expect("packing does not panic")).collect()
    });
    parts.concat()
}

/// Unpacks D, of this many elements, on several threads.
fn unpacked(order: &Order<'_>, layout: &Layout, packed: &[u8], format: Format, len: usize) -> Elements {
    let mut d = Elements::zeros(format, len);
    let tiles = order.tiles_across();
    let (bytes, packed_bytes) =
        (order.elements_across() * format.storage_bytes(), tiles / layout.group() * layout.bytes());
    let each = order.down.div_ceil(threads());
    thread::scope(|scope| {
        let parts = d.bytes_mut().chunks_mut(each * bytes).zip(packed.chunks(each * packed_bytes));
        for (at, (into, packed)) in parts.enumerate() {
            scope.spawn(move || {
                let rows = into.chunks_mut(bytes).zip(packed.chunks_exact(packed_bytes));
                for (down, (into, packed)) in rows.enumerate() {
                    order.scatter(at * each + down, &layout.unpack(packed, format, tiles), into);
                }
            });
        }
    });
    d
}

fn threads() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
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
