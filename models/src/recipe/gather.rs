//! Parts of matrices: some rows or columns, and runs of k.

use std::ops::Range;

use mxprobe_api::{Elements, Error, GemmOperands};

use super::divide::{Run, length};

/// Rows and columns of D.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) rows: Range<usize>,
    pub(super) columns: Range<usize>,
}

impl Piece {
    /// The number of elements of D in it.
    pub(super) fn len(&self) -> usize {
        self.rows.len() * self.columns.len()
    }

    /// D in pieces of about this many elements, rows before columns.
    pub(super) fn all((m, n): (usize, usize), elements: usize) -> Vec<Self> {
        let width = n.min((elements / m.clamp(1, HEIGHT)).max(HEIGHT));
        let height = (elements / width.max(1)).clamp(1, m.max(1));
        let rows = (0..m).step_by(height).map(|row| row..(row + height).min(m));
        rows.flat_map(|rows| {
            let columns = (0..n).step_by(width.max(1)).map(move |column| column..(column + width).min(n));
            columns.map(move |columns| Self { rows: rows.clone(), columns })
        })
        .collect()
    }
}

/// The height of a piece, which is about as wide as high.
const HEIGHT: usize = 256;

/// Operands of a piece of D over some k.
pub(super) struct Part {
    lengths: (usize, usize, usize),
    a: Elements,
    b: Elements,
    scales: Option<(Elements, Elements)>,
}

impl Part {
    /// Gathers the operands of a piece; `block` is the number of k that share a scale.
    pub(super) fn new(whole: &GemmOperands<'_>, piece: &Piece, run: &Run, block: usize) -> Self {
        let GemmOperands { n, k, .. } = *whole;
        let (m, width) = (piece.rows.len(), piece.columns.len());
        let (a, b) = (rows_of(whole.a, k, &piece.rows, run), columns_of(whole.b, n, &piece.columns, run));
        let scales = whole.scale_a.zip(whole.scale_b).map(|(of_a, of_b)| {
            let blocks: Run = run.iter().map(|run| run.start / block..run.end.div_ceil(block)).collect();
            (rows_of(of_a, k.div_ceil(block), &piece.rows, &blocks), columns_of(of_b, n, &piece.columns, &blocks))
        });
        Self { lengths: (m, width, length(run)), a, b, scales }
    }

    /// The part as operands of a multiplication.
    pub(super) fn operands<'a>(&'a self, c: &'a Elements) -> GemmOperands<'a> {
        let (m, n, k) = self.lengths;
        let (scale_a, scale_b) = (self.scales.as_ref().map(|(a, _)| a), self.scales.as_ref().map(|(_, b)| b));
        GemmOperands { m, n, k, a: &self.a, b: &self.b, c, scale_a, scale_b }
    }
}

/// The piece of a matrix with as many rows and columns as D.
pub(super) fn window(matrix: &Elements, n: usize, piece: &Piece) -> Elements {
    rows_of(matrix, n, &piece.rows, &vec![piece.columns.clone()])
}

/// Runs of the columns of some rows of a matrix of `width` columns.
fn rows_of(matrix: &Elements, width: usize, rows: &Range<usize>, runs: &Run) -> Elements {
    let size = matrix.format().storage_bytes();
    let mut bytes = Vec::with_capacity(rows.len() * length(runs) * size);
    for row in rows.clone() {
        for run in runs {
            bytes.extend_from_slice(&matrix.bytes()[(row * width + run.start) * size..(row * width + run.end) * size]);
        }
    }
    Elements::from_bytes(matrix.format(), bytes).expect("elements of a matrix")
}

/// Some columns of runs of the rows of a matrix of `width` columns.
fn columns_of(matrix: &Elements, width: usize, columns: &Range<usize>, runs: &Run) -> Elements {
    let size = matrix.format().storage_bytes();
    let mut bytes = Vec::with_capacity(columns.len() * length(runs) * size);
    for row in runs.iter().cloned().flatten() {
        let from = row * width;
        bytes.extend_from_slice(&matrix.bytes()[(from + columns.start) * size..(from + columns.end) * size]);
    }
    Elements::from_bytes(matrix.format(), bytes).expect("elements of a matrix")
}

/// Copies a piece of D to its place.
pub(super) fn put(d: &mut Elements, n: usize, piece: &Piece, elements: &Elements) {
    let size = elements.format().storage_bytes();
    if piece.columns.is_empty() {
        return;
    }
    for (row, line) in piece.rows.clone().zip(elements.bytes().chunks_exact(piece.columns.len() * size)) {
        d.bytes_mut()[(row * n + piece.columns.start) * size..][..line.len()].copy_from_slice(line);
    }
}

/// Checks that blocks of k are not separated from their scales.
pub(super) fn check_scales(run: &Run, k: usize, block: usize) -> Result<(), Error> {
    match run.iter().find(|run| run.start % block != 0 || (run.end % block != 0 && run.end != k)) {
        None => Ok(()),
        Some(run) => Err(Error::invalid(format!(
            "a slice takes k {} to {}, and a block of {block} k shares a scale: slices and tiles must be whole blocks",
            run.start,
            run.end - 1
        ))),
    }
}
