//! Whole matrix products through a model.

use std::ops::Range;

use mxprobe_api::{Elements, Error, GemmOperands, OperationId};

use crate::{fast::Evaluator, model::Model};

/// D = A·B + C, m×n and row-major, as a unit computes it that chains operations `id` along k.
///
/// Each element of D goes through ⌈k / the operation's k⌉ operations (at least one), k ascending. The d of one is the c
/// of the next, rounded as the unit rounds d. The last operation is padded with products of +0 by +0 and scales of 1.
/// The operation's own m and n do not matter, because elements of D do not depend on each other. NaN, infinities,
/// subnormals and the sign of zero follow the model.
///
/// The rows are distributed over `threads` threads; with 0 or 1 the calling thread does all the work. The result does
/// not depend on it.
///
/// ```
/// use mxprobe_api::{Elements, Format, GemmOperands};
/// use mxprobe_models::{load, multiply};
///
/// let model = load("fma-chain")?;
/// let id = "dot.m1n1k16.f32.f16.f16.f32".parse()?;
/// let a = Elements::from_bits(Format::F16, [0x3c00, 0x4000]); // 1 2
/// let b = Elements::from_bits(Format::F16, [0x4200, 0x3800]); // 3, 0.5
/// let c = Elements::zeros(Format::F32, 1);
/// let matrices = GemmOperands { m: 1, n: 1, k: 2, a: &a, b: &b, c: &c, scale_a: None, scale_b: None };
/// let d = multiply(&model, &id, &matrices, 1)?;
/// assert_eq!(d.get(0), 0x4080_0000); // 4
/// # Ok::<(), mxprobe_api::Error>(())
/// ```
///
/// # Errors
/// [`Error::is_invalid`] if the model has no such operation; otherwise as [`GemmOperands::validate`].
pub fn multiply(
    model: &Model,
    id: &OperationId,
    matrices: &GemmOperands<'_>,
    threads: usize,
) -> Result<Elements, Error> {
    Evaluator::new(model, id)?.multiply(matrices, threads)
}

impl Evaluator {
    /// Like [`multiply`], with an existing evaluator.
    ///
    /// # Errors
    /// As [`multiply`].
    pub fn multiply(&self, matrices: &GemmOperands<'_>, threads: usize) -> Result<Elements, Error> {
        matrices.validate(self.id())?;
        match self.window(matrices) {
            Some(window) => Ok(self.long(matrices, window, threads)),
            None => Ok(self.matrices(matrices, threads)),
        }
    }

    /// The number of k packed at a time, unless all are: whole operations, and whole blocks of a scale.
    fn window(&self, matrices: &GemmOperands<'_>) -> Option<usize> {
        let id = self.id();
        let step = id.shape.sizes().2;
        let block = id.block_scale().map_or(1, |scale| scale.block);
        // An operation that takes a part of a block does not end where the block does.
        if id.c != id.d || !step.is_multiple_of(block) {
            return None;
        }
        let lines = matrices.m.max(matrices.n).max(1);
        let window = (PACKED_ELEMENTS / lines).clamp(SHORTEST_WINDOW, LONGEST_WINDOW).next_multiple_of(step);
        (matrices.k > LONG).then_some(window)
    }

    /// Multiplies parts of k one after another, each with the d of the previous one as its c: the same operations, but
    /// the packed operands stay in a cache. D is divided among threads.
    fn long(&self, matrices: &GemmOperands<'_>, window: usize, threads: usize) -> Elements {
        let GemmOperands { m, n, k, c, .. } = *matrices;
        let threads = threads.min((m * n).saturating_mul(k) / PRODUCTS_PER_THREAD).max(1);
        // Columns first, because rows share the packing of B.
        let across = threads.min(n.div_ceil(COLUMNS));
        let width = n.div_ceil(across.max(1)).next_multiple_of(COLUMNS).max(1);
        let height = m.div_ceil(threads.div_ceil(across.max(1))).max(1);
        let pieces = (0..m).step_by(height).flat_map(|row| (0..n).step_by(width).map(move |column| (row, column)));
        let one = |(row, column): (usize, usize)| {
            let (rows, columns) = (row..(row + height).min(m), column..(column + width).min(n));
            let mut d = window_of(c, n, rows.clone(), columns.clone());
            for first in (0..k).step_by(window) {
                let part = part(matrices, rows.clone(), columns.clone(), first..(first + window).min(k), self.id());
                d = self.matrices(&part.matrices(&d), 1);
            }
            (rows, columns, d)
        };
        let mut d = Elements::zeros(self.id().d, m * n);
        let size = self.id().d.storage_bytes();
        let mut put = |(rows, columns, piece): (Range<usize>, Range<usize>, Elements)| {
            for (row, line) in rows.zip(piece.bytes().chunks_exact(columns.len() * size)) {
                d.bytes_mut()[(row * n + columns.start) * size..][..line.len()].copy_from_slice(line);
            }
        };
        if threads == 1 {
            pieces.map(one).for_each(put);
            return d;
        }
        std::thread::scope(|scope| {
            let started: Vec<_> = pieces.map(|piece| scope.spawn(move || one(piece))).collect();
            started.into_iter().for_each(|piece| put(piece.join().expect("evaluating does not panic")));
        });
        d
    }
}

/// The largest number of products in a sum that are packed as a whole.
const LONG: usize = 1 << 12;

/// The number of elements of the larger matrix that are packed at a time.
const PACKED_ELEMENTS: usize = 1 << 19;

/// The smallest window: with fewer k, passing D on costs more than is saved.
const SHORTEST_WINDOW: usize = 1 << 8;

/// The largest window: this many k of a panel of B stay in the second-level cache, and their memory with the allocator.
const LONGEST_WINDOW: usize = 1 << 11;

/// The fewest columns that one thread takes.
const COLUMNS: usize = 64;

/// The work that pays for a thread, which costs as much as a few hundred thousand products.
const PRODUCTS_PER_THREAD: usize = 400_000;

/// A part of matrices.
struct Part {
    lengths: (usize, usize, usize),
    a: Elements,
    b: Elements,
    scales: Option<(Elements, Elements)>,
}

impl Part {
    fn matrices<'a>(&'a self, c: &'a Elements) -> GemmOperands<'a> {
        let (m, n, k) = self.lengths;
        let (scale_a, scale_b) = (self.scales.as_ref().map(|(a, _)| a), self.scales.as_ref().map(|(_, b)| b));
        GemmOperands { m, n, k, a: &self.a, b: &self.b, c, scale_a, scale_b }
    }
}

/// Copies a part of a matrix of `width` columns.
fn window_of(matrix: &Elements, width: usize, rows: Range<usize>, columns: Range<usize>) -> Elements {
    let size = matrix.format().storage_bytes();
    let mut bytes = Vec::with_capacity(rows.len() * columns.len() * size);
    if columns.len() == width {
        bytes.extend_from_slice(&matrix.bytes()[rows.start * width * size..rows.end * width * size]);
    } else {
        for row in rows {
            let line = &matrix.bytes()[row * width * size..][..width * size];
            bytes.extend_from_slice(&line[columns.start * size..columns.end * size]);
        }
    }
    Elements::from_bytes(matrix.format(), bytes).expect("elements of a matrix")
}

/// Some rows and columns of D, and some k, which start at the first of a block of scales.
fn part(
    whole: &GemmOperands<'_>,
    rows: Range<usize>,
    columns: Range<usize>,
    of_k: Range<usize>,
    id: &OperationId,
) -> Part {
    let GemmOperands { n, k, .. } = *whole;
    let scales = id.block_scale().zip(whole.scale_a).zip(whole.scale_b).map(|((scale, of_a), of_b)| {
        let blocks = of_k.start / scale.block..of_k.end.div_ceil(scale.block);
        let of_a = window_of(of_a, k.div_ceil(scale.block), rows.clone(), blocks.clone());
        (of_a, window_of(of_b, n, blocks, columns.clone()))
    });
    let lengths = (rows.len(), columns.len(), of_k.len());
    let (a, b) = (window_of(whole.a, k, rows, of_k.clone()), window_of(whole.b, n, of_k, columns));
    Part { lengths, a, b, scales }
}
