//! Elements of matrices one after the other: all of them on the paths without lanes, and those that lanes leave.

use mxprobe_api::{GemmOperands, OperationId};

use super::{
    Evaluator, Path,
    drive::{self, OneByOne, View},
    kernels::Kernels,
    scalar::{Compiled, Scratch, UnpackedDot},
    simd::WIDE_PANEL,
    spare::{self, SpareBench},
    unpack::{Reader, Unpacked, ZERO},
};
use crate::exact::Dot;

impl Evaluator {
    /// Computes what the kernel leaves of a row and can be computed in lanes or needs no sum; returns the rest.
    fn left_over_in_lanes(
        &self,
        view: &View<'_>,
        place: (usize, usize, usize),
        left: u64,
        out: &mut [u8],
        bench: &mut SpareBench,
    ) -> u64 {
        let left = match &self.one_nan {
            Some(nan) => nan.fill((&self.id, view), place, left, out, bench),
            None => left,
        };
        let made = || match &self.kernel {
            Kernels::Chain(_) => Kernels::on_grids(&self.adders, &self.unit, &self.plan, &self.id, self.path),
            Kernels::Tree(kernel) => {
                kernel.with_specials(&self.adders, &self.plan, self.path).map_or(Kernels::None, Kernels::Tree)
            }
            _ => Kernels::None,
        };
        spare::row(self.spare.get_or_init(made), (&self.id, self.path), view, place, left, out, bench)
    }

    /// Computes one element of D, block after block, chained through c.
    fn chain(&self, room: &mut Room, row: usize, c: u64, blocks: usize, scale_step: usize) -> u64 {
        let step = self.id.shape.sizes().2;
        let mut c = c;
        for block in 0..blocks {
            let from = row * blocks + block;
            let (rest, length) = (&room.a[from * step..], (blocks - block) * step);
            let rest = (&rest[..length], &room.b[block * step..][..length]);
            let unit = (&self.kernel, self.one_nan.as_ref(), self.id.d);
            if block > 0 && spare::is_final(unit, self.compiled.scale.is_some(), c, rest) {
                break;
            }
            let dot = UnpackedDot {
                a: &room.a[from * step..][..step],
                b: &room.b[block * step..][..step],
                products: &[],
                c: self.compiled.c.read(c),
                scale_a: &room.scale_a[from * scale_step..][..scale_step],
                scale_b: &room.scale_b[block * scale_step..][..scale_step],
            };
            c = self.one(dot, c, room.scratch.as_mut().expect("fitted"));
        }
        c
    }

    /// Computes d of one unpacked dot; c and d are bits.
    fn one(&self, dot: UnpackedDot<'_>, c: u64, scratch: &mut Scratch) -> u64 {
        if self.path != Path::Exact
            && let Some(d) = self.compiled.evaluate(dot, scratch)
        {
            return d;
        }
        let bits =
            |reader: Reader, of: &[Unpacked]| of.iter().map(|element| reader.write(*element)).collect::<Vec<_>>();
        let (a, b) = (bits(self.compiled.a, dot.a), bits(self.compiled.b, dot.b));
        let scales = self.compiled.scale.map(|reader| (bits(reader, dot.scale_a), bits(reader, dot.scale_b)));
        let scales = scales.as_ref().map(|(a, b)| (&a[..], &b[..]));
        self.exact(Dot { a: &a, b: &b, c, scales })
    }
}

impl OneByOne for Evaluator {
    type Room = Room;

    fn id(&self) -> &OperationId {
        &self.id
    }

    fn path(&self) -> Path {
        self.path
    }

    fn forget_columns(room: &mut Room) {
        room.columns.iter_mut().for_each(|column| column.0 = false);
        room.spare.forget();
    }

    fn left_over(
        &self,
        view: &View<'_>,
        (row, first, columns): (usize, usize, usize),
        left: u64,
        out: &mut [u8],
        room: &mut Room,
    ) {
        let left = self.left_over_in_lanes(view, (row, first, columns), left, out, &mut room.spare);
        if left == 0 {
            return;
        }
        let GemmOperands { m, n, k, c, .. } = view.matrices;
        let (steps, step) = (drive::steps(&self.id, k), self.id.shape.sizes().2);
        let scale_step = self.id.block_scale().map_or(0, |scale| step.div_ceil(scale.block));
        let size = self.id.d.storage_bytes();
        room.fit(&self.compiled, steps * step, steps * scale_step, 1);
        let (a, scale_a) = room.row_of_a(0, steps * step, steps * scale_step);
        view.row_of_a(self, row, a, scale_a);
        room.columns.resize_with(WIDE_PANEL, Default::default);
        for column in (0..columns).filter(|column| left >> column & 1 == 1) {
            // A column is unpacked when it is first needed, and kept for the other rows.
            let mut kept = std::mem::take(&mut room.columns[column]);
            std::mem::swap(&mut kept.1, &mut room.b);
            std::mem::swap(&mut kept.2, &mut room.scale_b);
            if !kept.0 {
                room.b.resize(steps * step, Unpacked::default());
                room.scale_b.resize(steps * scale_step, Unpacked::default());
                view.column_of_b(self, first + column, &mut room.b, &mut room.scale_b);
                kept.0 = true;
            }
            let c = c.get((view.tile * m + row) * n + first + column);
            let bits = self.chain(room, 0, c, steps, scale_step);
            out[column * size..][..size].copy_from_slice(&bits.to_le_bytes()[..size]);
            std::mem::swap(&mut kept.1, &mut room.b);
            std::mem::swap(&mut kept.2, &mut room.scale_b);
            room.columns[column] = kept;
        }
    }

    fn rows(&self, view: &View<'_>, first: usize, out: &mut [u8], room: &mut Room) {
        let matrices = &view.matrices;
        let (n, step) = (matrices.n, self.id.shape.sizes().2);
        let size = self.id.d.storage_bytes();
        let rows = out.len() / (n * size);
        let blocks = matrices.k.div_ceil(step).max(1);
        let scale_step = self.id.block_scale().map_or(0, |scale| step.div_ceil(scale.block));
        let padded = blocks * step;
        room.fit(&self.compiled, padded, blocks * scale_step, rows);
        for row in 0..rows {
            let (a, scale_a) = room.row_of_a(row, padded, blocks * scale_step);
            view.row_of_a(self, first + row, a, scale_a);
        }
        for column in 0..n {
            view.column_of_b(self, column, &mut room.b, &mut room.scale_b);
            for row in 0..rows {
                let c = matrices.c.get((view.tile * matrices.m + first + row) * n + column);
                let bits = self.chain(room, row, c, blocks, scale_step);
                let at = (row * n + column) * size;
                out[at..at + size].copy_from_slice(&bits.to_le_bytes()[..size]);
            }
        }
    }
}

impl View<'_> {
    /// Unpacks one row of A and its scales, padded with +0 and with scales of 1.
    fn row_of_a(&self, evaluator: &Evaluator, row: usize, a: &mut [Unpacked], scales: &mut [Unpacked]) {
        let GemmOperands { m, k, a: from, scale_a, .. } = self.matrices;
        let row = self.tile * m + row;
        evaluator.compiled.a.gather(from, row * k, 1, &mut a[..k]);
        a[k..].fill(Unpacked { kind: ZERO, ..Unpacked::default() });
        if let (Some(scale_a), Some(reader), Some(rule)) =
            (scale_a, evaluator.compiled.scale, evaluator.id.block_scale())
        {
            let blocks = k.div_ceil(rule.block);
            reader.gather(scale_a, row * blocks, 1, &mut scales[..blocks]);
            scales[blocks..].fill(reader.read(rule.format.one()));
        }
    }

    /// Unpacks one column of B and its scales, padded likewise.
    fn column_of_b(&self, evaluator: &Evaluator, column: usize, b: &mut [Unpacked], scales: &mut [Unpacked]) {
        let GemmOperands { n, k, b: from, scale_b, .. } = self.matrices;
        evaluator.compiled.b.gather(from, self.tile * k * n + column, n, &mut b[..k]);
        b[k..].fill(Unpacked { kind: ZERO, ..Unpacked::default() });
        if let (Some(scale_b), Some(reader), Some(rule)) =
            (scale_b, evaluator.compiled.scale, evaluator.id.block_scale())
        {
            let blocks = k.div_ceil(rule.block);
            reader.gather(scale_b, self.tile * blocks * n + column, n, &mut scales[..blocks]);
            scales[blocks..].fill(reader.read(rule.format.one()));
        }
    }
}

/// The working memory of one thread.
#[derive(Default)]
pub(super) struct Room {
    scratch: Option<Scratch>,
    a: Vec<Unpacked>,
    b: Vec<Unpacked>,
    scale_a: Vec<Unpacked>,
    scale_b: Vec<Unpacked>,
    /// The unpacked columns of a panel and their scales, each with a flag: whether it belongs to the current panel.
    columns: Vec<(bool, Vec<Unpacked>, Vec<Unpacked>)>,
    spare: SpareBench,
}

impl Room {
    fn fit(&mut self, compiled: &Compiled, k: usize, scales: usize, rows: usize) {
        if self.scratch.is_none() {
            self.scratch = Some(compiled.scratch());
        }
        self.a.resize(rows * k, Unpacked::default());
        self.b.resize(k, Unpacked::default());
        self.scale_a.resize(rows * scales, Unpacked::default());
        self.scale_b.resize(scales, Unpacked::default());
    }

    fn row_of_a(&mut self, row: usize, k: usize, scales: usize) -> (&mut [Unpacked], &mut [Unpacked]) {
        (&mut self.a[row * k..][..k], &mut self.scale_a[row * scales..][..scales])
    }
}
