//! Whole matrices: operands packed as fragments, one launch per product, with the loop along k in the kernel.

use std::collections::{HashMap, hash_map::Entry};
use std::ops::Range;
use std::thread;

use cudarc::driver::{CudaFunction, CudaSlice, PushKernelArg};
use mxprobe_api::{Elements, Error, GemmOperands, OperationId, threads, written::is_all};
use mxprobe_shaders::ptx::layout::{Layout, Layouts};
use mxprobe_shaders::ptx::product::{Block, Order, ProductKernel, ProductKernels, name};
use mxprobe_shaders::ptx::{Instruction, Target};

use crate::session::{Session, called, grid};
use crate::written::written;

/// A thread takes at least this many elements: starting it takes as long as packing them.
const ELEMENTS_PER_THREAD: usize = 1 << 15;

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
        match launch_checked(session, compiled, layouts, (product, &order)) {
            Err(error) if error.is_out_of_memory() => Ok(None),
            Err(error) => Err(error.context(id)),
            Ok(packed) => {
                let mut d = Elements::zeros(id.d, product.m * product.n);
                unpack(&order, &layouts.d, &packed, &mut d, threads_for(product.c));
                Ok(Some(d))
            }
        }
    }
}

/// Computes the packed D of every tile.
fn launch_checked(
    session: &Session,
    compiled: &Compiled,
    layouts: &Layouts,
    (product, order): (&GemmOperands<'_>, &Order<'_>),
) -> Result<Vec<u8>, Error> {
    let all = order.down * order.across * order.tiles_of_block();
    let d_bytes = all / layouts.d.group() * layouts.d.bytes();
    let ProductKernel { a, b, .. } = &compiled.kernel;
    let of_a = |pieces| a.arrange(layouts.a.pack_all(&order.gather_a(pieces)));
    let of_b = |pieces| b.arrange(layouts.b.pack_all(&order.gather_b(pieces)));
    let of_c = |down| layouts.c.pack_all(&order.gather_c(down));
    let inputs = [
        session.upload(&packed(order.pieces_of_a(), threads_for(product.a), of_a))?,
        session.upload(&packed(order.pieces_of_b(), threads_for(product.b), of_b))?,
        session.upload(&packed(order.down, threads_for(product.c), of_c))?,
    ];
    let lengths = [order.steps, order.across, order.down].map(|length| length as u64);
    let filled_with = |d: &[u8], filling: u8| layouts.d.tiles_where(d, |word| is_all(word, filling));
    let words = |unwritten: &[usize]| {
        let (count, first) = (unwritten.len(), unwritten[0]);
        format!("the launch succeeded and {count} of {all} tiles of a product were never written, tile {first} first")
    };
    written(|filling| launch(session, compiled, &inputs, (d_bytes, filling), lengths), filled_with, words)
}

/// The number of threads among which the elements of a matrix are divided.
fn threads_for(matrix: &Elements) -> usize {
    threads().min(1 + matrix.len() / ELEMENTS_PER_THREAD)
}

/// Packs this many pieces on this many threads.
fn packed(pieces: usize, threads: usize, pack: impl Fn(Range<usize>) -> Vec<u8> + Sync) -> Vec<u8> {
    let each = pieces.div_ceil(threads);
    if each == pieces {
        return pack(0..pieces);
    }
    let parts: Vec<Vec<u8>> = thread::scope(|scope| {
        let share = |first: usize| first..pieces.min(first + each);
        let pack = &pack;
        let begun: Vec<_> = (0..pieces).step_by(each).map(|first| scope.spawn(move || pack(share(first)))).collect();
        begun.into_iter().map(|part| part.join().expect("packing does not panic")).collect()
    });
    parts.concat()
}

/// Unpacks D on this many threads.
fn unpack(order: &Order<'_>, layout: &Layout, packed: &[u8], d: &mut Elements, threads: usize) {
    let (format, tiles) = (d.format(), order.tiles_across());
    let (bytes, packed_bytes) =
        (order.elements_across() * format.storage_bytes(), tiles / layout.group() * layout.bytes());
    let each = order.down.div_ceil(threads);
    let rows = |first: usize, into: &mut [u8], packed: &[u8]| {
        for (down, (into, packed)) in into.chunks_mut(bytes).zip(packed.chunks_exact(packed_bytes)).enumerate() {
            order.scatter(first + down, &layout.unpack(packed, format, tiles), into);
        }
    };
    if each == order.down {
        return rows(0, d.bytes_mut(), packed);
    }
    thread::scope(|scope| {
        let shares = d.bytes_mut().chunks_mut(each * bytes).zip(packed.chunks(each * packed_bytes));
        for (at, (into, packed)) in shares.enumerate() {
            let rows = &rows;
            scope.spawn(move || rows(at * each, into, packed));
        }
    });
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

#[cfg(test)]
mod tests {
    use mxprobe_api::Format;

    use super::*;

    #[test]
    fn several_threads_pack_and_unpack_what_one_does() {
        let all = mxprobe_shaders::ptx::instructions();
        for id in ["mma.m16n8k16.f32.f16.f16.f32", "mma.m8n8k4.f32.f16.f16.f32", "wgmma.m64n64k16.f32.f16.f16.f32"] {
            let instruction = all.iter().find(|instruction| instruction.id.to_string() == id).unwrap();
            let texts = ProductKernels::new(instruction).unwrap();
            // Partial blocks at both edges, and several steps.
            let (m, n, k) = (1_000, 530, 70);
            let of =
                |format: Format, len: usize| Elements::from_bits(format, (0..len as u64).map(|at| at * 7 % 15_013));
            let (a, b, c) = (of(Format::F16, m * k), of(Format::F16, k * n), of(Format::F32, m * n));
            let product = GemmOperands { m, n, k, a: &a, b: &b, c: &c, scale_a: None, scale_b: None };
            for block in texts.blocks() {
                let layouts = texts.layouts();
                let order = Order::new(&product, instruction.id.shape.sizes(), layouts.d.group(), *block);
                let of_c = |threads| packed(order.down, threads, |down| layouts.c.pack_all(&order.gather_c(down)));
                let of_a = |threads| {
                    packed(order.pieces_of_a(), threads, |pieces| layouts.a.pack_all(&order.gather_a(pieces)))
                };
                let of_b = |threads| {
                    packed(order.pieces_of_b(), threads, |pieces| layouts.b.pack_all(&order.gather_b(pieces)))
                };
                let (one, of_one_a, of_one_b) = (of_c(1), of_a(1), of_b(1));
                for threads in [1, 2, 3, 64] {
                    assert_eq!(
                        (of_c(threads) == one, of_a(threads) == of_one_a, of_b(threads) == of_one_b),
                        (true, true, true)
                    );
                    let mut d = Elements::zeros(Format::F32, m * n);
                    unpack(&order, &layouts.d, &one, &mut d, threads);
                    assert!(d == c, "{id}, {threads} threads");
                }
            }
        }
    }
}
