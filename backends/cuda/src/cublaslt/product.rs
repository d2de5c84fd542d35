//! A product of one shape, as it is described to the library, and the algorithm that its heuristic chooses.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use cudarc::driver::{CudaSlice, DevicePtr, DevicePtrMut};
use mxprobe_api::{Elements, Error, OperationId, TileBatch, written::is_all};

use super::forms::{Form, data_type};
use super::library::{Algorithm, CublasLt, Held, HeuristicResult, INVALID_VALUE, NOT_SUPPORTED, Opaque, succeeded};
use crate::session::Session;
use crate::written::written;

/// Every matrix begins at a multiple of this many bytes, as the heuristic assumes unless it is told otherwise.
const ALIGNMENT: usize = 256;

/// D is checked for memory that was never written in pieces of this many bytes.
const PIECE: usize = 8;

/// `CUBLASLT_MATMUL_DESC_TRANSA` and `CUBLASLT_MATMUL_DESC_FAST_ACCUM`.
const TRANSPOSE_A: c_int = 3;
const FAST_ACCUMULATION: c_int = 25;
/// `CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES`.
const MAXIMUM_WORKSPACE: c_int = 1;
/// `CUBLAS_OP_T`.
const TRANSPOSED: c_int = 1;

/// A product of one shape: its description and the heuristic's first algorithm.
pub(super) struct Product {
    id: OperationId,
    form: Form,
    description: Held,
    /// The library's A, B, and C and D, which are alike.
    layouts: [Held; 3],
    algorithm: Algorithm,
    /// The library that made all of these; it must outlive them.
    library: Arc<CublasLt>,
}

impl Product {
    /// Describes a product, and asks the heuristic for its first algorithm.
    ///
    /// The library's matrices are column-major, so it is asked for Dᵀ = Bᵀ·Aᵀ + Cᵀ: its first operand is B. Operands of
    /// eight bits are described with consecutive elements along k, and its first operand as transposed.
    ///
    /// # Errors
    /// [`Error::is_unsupported`] with the library's status and the operation if it has no algorithm.
    pub(super) fn new(library: &Arc<CublasLt>, id: &OperationId, workspace_bytes: usize) -> Result<Self, Error> {
        let form = Form::of(id);
        let functions = &library.functions;
        let (m, n, k) = id.shape.sizes();
        // SAFETY: the pointer is to a variable.
        let create = |place| unsafe { (functions.create_product)(place, form.compute, form.scale) };
        let description = Held::new("cublasLtMatmulDescCreate", create, functions.destroy_product)?;
        let set = |attribute: c_int, value: &[u8]| {
            let value_at: *const c_void = value.as_ptr().cast();
            // SAFETY: the description exists, and the value has the size that is given; the library copies it.
            let status = unsafe { (functions.set_product)(description.pointer, attribute, value_at, value.len()) };
            succeeded("cublasLtMatmulDescSetAttribute", status)
        };
        if form.k_major {
            set(TRANSPOSE_A, &TRANSPOSED.to_ne_bytes())?;
        }
        if let Some(fast) = form.fast {
            set(FAST_ACCUMULATION, &[u8::from(fast)])?;
        }
        let layout = |format, rows: usize, columns: usize| {
            let (rows, columns) = (rows as u64, columns as u64);
            // SAFETY: the pointer is to a variable. The columns follow one another without gaps.
            let create = |place| unsafe {
                (functions.create_layout)(place, data_type(format), rows, columns, rows.cast_signed())
            };
            Held::new("cublasLtMatrixLayoutCreate", create, functions.destroy_layout)
        };
        let first = if form.k_major { layout(id.b, k, n)? } else { layout(id.b, n, k)? };
        let layouts = [first, layout(id.a, k, m)?, layout(id.d, n, m)?];
        // SAFETY: the pointer is to a variable.
        let create = |place| unsafe { (functions.create_preference)(place) };
        let preference = Held::new("cublasLtMatmulPreferenceCreate", create, functions.destroy_preference)?;
        let most = (workspace_bytes as u64).to_ne_bytes();
        // SAFETY: the preference exists, and this attribute is a number of 64 bits, which the library copies.
        let status = unsafe {
            (functions.set_preference)(preference.pointer, MAXIMUM_WORKSPACE, most.as_ptr().cast(), most.len())
        };
        succeeded("cublasLtMatmulPreferenceSetAttribute", status)?;
        let (mut result, mut count) = (HeuristicResult::default(), 0);
        let [a, b, d] = layouts.each_ref().map(|layout| layout.pointer);
        // SAFETY: everything was created above by this library; there is room for one result and for the number.
        let status = unsafe {
            (functions.heuristic)(
                library.handle,
                description.pointer,
                a,
                b,
                d,
                d,
                preference.pointer,
                1,
                &raw mut result,
                &raw mut count,
            )
        };
        let status = match (status, count) {
            (0, 1) => result.state,
            (0, _) => NOT_SUPPORTED,
            (status, _) => status,
        };
        succeeded("cublasLtMatmulAlgoGetHeuristic", status).map_err(|error| {
            // The description is well formed: what is impossible is the shape.
            let error = if status == INVALID_VALUE { Error::unsupported(error.to_string()) } else { error };
            error.context(format!("{} has no algorithm for {id}", library.title()))
        })?;
        if result.workspace_bytes > workspace_bytes {
            return Err(Error::driver(format!(
                "the algorithm for {id} needs a workspace of {} bytes, more than the {workspace_bytes} allowed",
                result.workspace_bytes
            )));
        }
        Ok(Self { id: id.clone(), form, description, layouts, algorithm: result.algorithm, library: library.clone() })
    }

    /// Multiplies some tiles of a batch, one `cublasLtMatmul` each, and returns the bytes of D.
    ///
    /// # Errors
    /// Whatever the driver or the library reports; [`Error::is_nothing_written`] if a part of D was never written.
    pub(super) fn multiply(
        &self,
        session: &Session,
        (workspace, workspace_bytes): (&CudaSlice<u8>, usize),
        batch: &TileBatch,
        tiles: std::ops::Range<usize>,
    ) -> Result<Vec<u8>, Error> {
        let id = &self.id;
        let (m, n, k) = id.shape.sizes();
        let upload = |elements: &Elements, rows: usize, columns: usize, transpose: bool| {
            session.upload(&packed(elements, tiles.clone(), (rows, columns), transpose))
        };
        let a = upload(&batch.a, m, k, false)?;
        let b = upload(&batch.b, k, n, self.form.k_major)?;
        let c = upload(&batch.c, m, n, false)?;
        let count = tiles.len();
        let d_bytes = m * n * id.d.storage_bytes();
        let stride = stride_of(d_bytes);
        let launch = |filling: u8| {
            let mut d = session.filled(filling, count * stride)?;
            let started = session.started()?;
            {
                let starts = [&a, &b, &c].map(|operand| operand.device_ptr(&session.stream));
                let (target, _guard) = d.device_ptr_mut(&session.stream);
                // Only the library writes to it, and the stream orders its calls.
                let (scratch, _scratch) = workspace.device_ptr(&session.stream);
                let bytes_of = |rows: usize, columns: usize, bytes: usize| stride_of(rows * columns * bytes) as u64;
                let strides = [
                    bytes_of(m, k, id.a.storage_bytes()),
                    bytes_of(k, n, id.b.storage_bytes()),
                    bytes_of(m, n, id.c.storage_bytes()),
                ];
                for tile in 0..count as u64 {
                    let [a, b, c] = [0, 1, 2].map(|at| starts[at].0 + tile * strides[at]);
                    let d = target + tile * stride as u64;
                    self.launch(session, [a, b, c, d], (scratch, workspace_bytes))?;
                }
            }
            session.ended(&started)?;
            let padded = session.download(&d, count * stride)?;
            Ok(padded.chunks(stride).flat_map(|tile| &tile[..d_bytes]).copied().collect())
        };
        // Pieces do not cross from one tile to the next.
        let pieces = |d: &[u8]| d.chunks(d_bytes).flat_map(|tile| tile.chunks(PIECE)).map(<[u8]>::to_vec).collect();
        let filled_with = |d: &[u8], filling: u8| {
            let pieces: Vec<Vec<u8>> = pieces(d);
            (0..pieces.len()).filter(|at| is_all(&pieces[*at], filling)).collect()
        };
        let words = |unwritten: &[usize]| {
            let element = unwritten[0] % d_bytes.div_ceil(PIECE) * PIECE / id.d.storage_bytes();
            let (row, column) = (element / n, element % n);
            format!("{id}: cublasLtMatmul succeeded, and D was never written, row {row}, column {column} first")
        };
        written(launch, filled_with, words)
    }

    fn launch(
        &self,
        session: &Session,
        [a, b, c, d]: [u64; 4],
        (workspace, workspace_bytes): (u64, usize),
    ) -> Result<(), Error> {
        let one: *const c_void = self.form.one.as_ptr().cast();
        let [first, second, of_d] = self.layouts.each_ref().map(|layout| -> Opaque { layout.pointer });
        // The library's first operand is B, see `new`. SAFETY: the context is current; the buffers have the sizes and
        // the alignment that the layouts describe, the workspace the size that the heuristic was told; alpha and beta
        // are on the host, which is the default, and have at least the size of the scale's type. The stream orders the
        // copies before this call, which all buffers outlive, since D is downloaded after it.
        let status = unsafe {
            (self.library.functions.multiply)(
                self.library.handle,
                self.description.pointer,
                one,
                b,
                first,
                a,
                second,
                one,
                c,
                of_d,
                d,
                of_d,
                &raw const self.algorithm,
                workspace,
                workspace_bytes,
                session.stream.cu_stream().cast(),
            )
        };
        succeeded("cublasLtMatmul", status).map_err(|error| error.context(&self.id))
    }
}

/// The bytes from the start of one matrix to the start of the next.
pub(super) fn stride_of(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGNMENT)
}

/// Copies matrices of `rows`×`columns`, row-major, each padded to the alignment, and transposed if so asked.
fn packed(
    elements: &Elements,
    tiles: std::ops::Range<usize>,
    (rows, columns): (usize, usize),
    transpose: bool,
) -> Vec<u8> {
    let size = elements.format().storage_bytes();
    let bytes = rows * columns * size;
    let mut all = vec![0; tiles.len() * stride_of(bytes)];
    for (tile, target) in tiles.zip(all.chunks_mut(stride_of(bytes))) {
        let source = &elements.bytes()[tile * bytes..][..bytes];
        if !transpose {
            target[..bytes].copy_from_slice(source);
            continue;
        }
        for (at, element) in source.chunks_exact(size).enumerate() {
            let (row, column) = (at / columns, at % columns);
            target[(column * rows + row) * size..][..size].copy_from_slice(element);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use mxprobe_api::Format;

    use super::*;

    #[test]
    fn matrices_are_padded_to_the_alignment_and_transposed_if_asked() {
        let elements = Elements::from_bits(Format::E4M3, 0..12);
        let plain = packed(&elements, 1..2, (2, 3), false);
        assert_eq!((plain.len(), &plain[..7]), (256, &[6, 7, 8, 9, 10, 11, 0][..]));
        let turned = packed(&elements, 0..2, (2, 3), true);
        assert_eq!(
            (turned.len(), &turned[..6], &turned[256..262]),
            (512, &[0, 3, 1, 4, 2, 5][..], &[6, 9, 7, 10, 8, 11][..])
        );
        let wide = packed(&Elements::from_bits(Format::BF16, [1, 2, 3, 4]), 0..1, (2, 2), true);
        assert_eq!(wide[..8], [1, 0, 3, 0, 2, 0, 4, 0]);
    }

    #[test]
    fn the_results_of_the_heuristic_have_the_size_that_the_header_gives_them() {
        assert_eq!((size_of::<HeuristicResult>(), size_of::<Algorithm>()), (96, 64));
    }
}
