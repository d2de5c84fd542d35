//! Compiled evaluators: every model, bit for bit as the exact evaluator, some thousand times as fast.
//!
//! An [`Evaluator`] is made once for a model and an operation. It takes the fastest [`Path`] that this processor and
//! this plan allow; what a path cannot compute (a NaN, a sum wider than its words) goes down to the next one, element
//! by element, so that every path returns the same bits.

mod chain;
mod scalar;
mod simd;
mod unpack;

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

use mxprobe_api::{Elements, Error, OperationId, TileBatch};

use crate::{
    exact::{self, Dot},
    gemm::Matrices,
    model::{Adder, Model, Unit},
    tree::Plan,
};
use chain::ChainPlan;
use scalar::{Compiled, Scratch, UnpackedDot};
use simd::{NARROW_PANEL, PackedA, PackedB, WIDE_PANEL};
use unpack::{Reader, Unpacked, ZERO};

/// How a dot is computed. All give the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Path {
    /// Integers of any width: slow, obviously right.
    Exact,
    /// Words of 64 and 128 bits, one dot at a time.
    Scalar,
    /// Columns in lanes, without instructions beyond the target's baseline.
    Portable,
    /// Columns in lanes of AVX2.
    Avx2,
    /// Columns in lanes of AVX-512.
    Avx512,
}

impl Path {
    /// The paths that this processor has, the fastest last.
    #[must_use]
    pub fn available() -> Vec<Self> {
        let paths = [Self::Exact, Self::Scalar, Self::Portable, Self::Avx2, Self::Avx512];
        paths.into_iter().filter(|path| *path <= simd::fastest()).collect()
    }
}

/// One operation of one model, made ready to compute.
#[derive(Clone, Debug)]
pub struct Evaluator {
    id: OperationId,
    adders: Vec<Adder>,
    unit: Unit,
    plan: Plan,
    compiled: Compiled,
    kernel: Option<ChainPlan>,
    path: Path,
}

impl Evaluator {
    /// The fastest evaluator of an operation.
    ///
    /// # Errors
    /// If the model has no such operation.
    pub fn new(model: &Model, id: &OperationId) -> Result<Self, Error> {
        Self::with_path(model, id, Path::Avx512)
    }

    /// An evaluator that takes `path`, or the fastest one below it where the processor or the plan does not allow it.
    ///
    /// # Errors
    /// If the model has no such operation.
    pub fn with_path(model: &Model, id: &OperationId, path: Path) -> Result<Self, Error> {
        let missing = || Error::invalid(format!("the model {} has no operation {id}", model.name));
        let (unit, plan) = model.plan(id).ok_or_else(missing)?;
        let compiled = Compiled::new(&model.adders, unit, &plan, id);
        let kernel = chain::chain_of(&model.adders, unit, &plan, id);
        let path = path.min(if kernel.is_some() { simd::fastest() } else { Path::Scalar });
        Ok(Self { id: id.clone(), adders: model.adders.clone(), unit: unit.clone(), plan, compiled, kernel, path })
    }

    /// The operation.
    #[must_use]
    pub fn id(&self) -> &OperationId {
        &self.id
    }

    /// The path that whole matrices take.
    #[must_use]
    pub fn path(&self) -> Path {
        self.path
    }

    /// d of one dot of the operation's k products.
    ///
    /// # Panics
    /// If the dot has fewer products than that.
    #[must_use]
    pub fn dot(&self, dot: Dot<'_>) -> u64 {
        let compiled = &self.compiled;
        if self.path == Path::Exact || dot.scales.is_some() != compiled.scale.is_some() {
            return self.exact(dot);
        }
        let read = |reader: Reader, bits: &[u64]| bits.iter().map(|bits| reader.read(*bits)).collect::<Vec<_>>();
        let (a, b) = (read(compiled.a, dot.a), read(compiled.b, dot.b));
        let (scale_a, scale_b) = match (compiled.scale, dot.scales) {
            (Some(reader), Some((of_a, of_b))) => (read(reader, of_a), read(reader, of_b)),
            _ => (Vec::new(), Vec::new()),
        };
        let c = compiled.c.read(dot.c);
        let unpacked = UnpackedDot { a: &a, b: &b, c, scale_a: &scale_a, scale_b: &scale_b };
        compiled.evaluate(unpacked, &mut compiled.scratch()).unwrap_or_else(|| self.exact(dot))
    }

    fn exact(&self, dot: Dot<'_>) -> u64 {
        exact::evaluate(&self.adders, &self.unit, &self.plan, &self.id, dot)
    }

    /// D of every tile of a batch that fits the operation.
    pub(crate) fn tiles(&self, batch: &TileBatch, threads: usize) -> Elements {
        let id = &self.id;
        let (m, n, k) = id.shape.sizes();
        let d = Elements::zeros(id.d, batch.tiles * m * n);
        let tile_bytes = m * n * id.d.storage_bytes();
        let view = |tile: usize| View {
            matrices: Matrices {
                m,
                n,
                k,
                a: &batch.a,
                b: &batch.b,
                c: &batch.c,
                scale_a: batch.scale_a.as_ref(),
                scale_b: batch.scale_b.as_ref(),
            },
            tile,
        };
        // A thread costs as much as some hundred thousand products.
        let threads = threads.min(1 + batch.tiles * m * n * k / 400_000);
        let d = Mutex::new(d);
        in_threads(0..batch.tiles, threads, |tile, room: &mut Room| {
            let view = view(tile);
            let mut out = std::mem::take(&mut room.out);
            out.resize(tile_bytes, 0);
            match self.kernel() {
                Some(plan) => {
                    let panel = panel_for(n);
                    let a = self.pack_a(plan, &view, 0, m);
                    for first in (0..n).step_by(panel) {
                        self.panel(plan, &view, &a, (0, m), first, panel, &mut out, room);
                    }
                }
                None => self.rows(&view, 0, &mut out, room),
            }
            let mut d = d.lock().unwrap_or_else(PoisonError::into_inner);
            d.bytes_mut()[tile * tile_bytes..][..tile_bytes].copy_from_slice(&out);
            room.out = out;
        });
        d.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// D of one multiply of matrices whose lengths were checked.
    pub(crate) fn matrices(&self, matrices: &Matrices<'_>, threads: usize) -> Elements {
        let id = &self.id;
        let (m, n) = (matrices.m, matrices.n);
        let d = Elements::zeros(id.d, m * n);
        if m * n == 0 {
            return d;
        }
        let size = id.d.storage_bytes();
        let view = View { matrices: *matrices, tile: 0 };
        // Rows of one piece, and columns.
        let (rows, columns) = match self.kernel() {
            Some(_) => {
                let panels = n.div_ceil(WIDE_PANEL);
                let pieces = (4 * threads).div_ceil(panels);
                (if threads < 2 { m } else { m.div_ceil(pieces).next_multiple_of(16).min(m) }, panel_for(n))
            }
            None => (m.div_ceil(threads.max(1) * 4).clamp(1, 64), n),
        };
        let packed: Vec<_> = match self.kernel() {
            Some(plan) => (0..m).step_by(rows).map(|row| self.pack_a(plan, &view, row, rows.min(m - row))).collect(),
            None => Vec::new(),
        };
        let (across, down) = (n.div_ceil(columns), m.div_ceil(rows));
        let d = Mutex::new(d);
        in_threads(0..across * down, threads, |piece, room: &mut Room| {
            // Piece after piece takes the same rows, so that threads write to D far apart.
            let (band, first) = (piece / across, piece % across * columns);
            let first_row = band * rows;
            let rows = rows.min(m - first_row);
            let columns = columns.min(n - first);
            let mut out = std::mem::take(&mut room.out);
            out.resize(rows * columns * size, 0);
            match self.kernel() {
                Some(plan) => {
                    let view = &view;
                    self.panel(plan, view, &packed[band], (first_row, rows), first, panel_for(n), &mut out, room);
                }
                None => self.rows(&view, first_row, &mut out, room),
            }
            let mut d = d.lock().unwrap_or_else(PoisonError::into_inner);
            for (row, from) in out.chunks_exact(columns * size).enumerate() {
                let at = ((first_row + row) * n + first) * size;
                d.bytes_mut()[at..at + from.len()].copy_from_slice(from);
            }
            drop(d);
            room.out = out;
        });
        d.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// The plan for the kernel, where this evaluator's path has one.
    fn kernel(&self) -> Option<&ChainPlan> {
        self.kernel.as_ref().filter(|_| self.path >= Path::Portable)
    }

    fn steps(&self, k: usize) -> usize {
        k.div_ceil(self.id.shape.sizes().2).max(1)
    }

    fn pack_a(&self, plan: &ChainPlan, view: &View<'_>, first: usize, rows: usize) -> (PackedA, Vec<bool>) {
        let Matrices { m, k, a, scale_a, .. } = view.matrices;
        let mut packed = PackedA::default();
        let special = plan.pack_a(a, scale_a, k, view.tile * m + first, rows, self.steps(k), &mut packed);
        (packed, special)
    }

    /// D of some rows and the columns from `first` on that one panel holds, into `out`, rows of those columns.
    #[allow(clippy::too_many_arguments)]
    fn panel(
        &self,
        plan: &ChainPlan,
        view: &View<'_>,
        (a, special_rows): &(PackedA, Vec<bool>),
        (first_row, rows): (usize, usize),
        first: usize,
        panel: usize,
        out: &mut [u8],
        room: &mut Room,
    ) {
        let Matrices { m, n, k, b, c, scale_b, .. } = view.matrices;
        let (steps, step) = (self.steps(k), self.id.shape.sizes().2);
        let columns = panel.min(n - first);
        let size = self.id.d.storage_bytes();
        let mut packed = std::mem::take(&mut room.packed);
        packed.panel = panel;
        let blocks = self.id.block_scale().map_or(0, |scale| k.div_ceil(scale.block));
        let scales = scale_b.map(|scales| (scales, view.tile * blocks * n));
        let special_columns = plan.pack_b(b, view.tile * k * n, scales, (k, n), first, steps, &mut packed);
        // As many operations at a time as keep their part of the panel in the first cache, for as many rows as keep
        // their accumulators there.
        let steps_at_once = (64 / step).max(1);
        let rows_at_once = 16;
        let all = u64::MAX >> (64 - columns);
        let (mut accumulators, mut left) = (vec![0.0f32; rows_at_once * panel], vec![0u64; rows_at_once]);
        room.columns.iter_mut().for_each(|column| column.0 = false);
        for start in (0..rows).step_by(rows_at_once) {
            let rows = rows_at_once.min(rows - start);
            for row in 0..rows {
                let at = (view.tile * m + first_row + start + row) * n + first;
                let accumulators = &mut accumulators[row * panel..][..columns];
                left[row] = plan.load_c(c, at, accumulators) | special_columns;
                if special_rows[start + row] {
                    left[row] = all;
                }
            }
            if left[..rows].iter().any(|left| left & all != all) {
                for from in (0..steps).step_by(steps_at_once) {
                    let steps = from..(from + steps_at_once).min(steps);
                    let accumulators = &mut accumulators[..rows * panel];
                    simd::run_chain(self.path, &plan.chain, a, start, &packed, steps, accumulators, &mut left[..rows]);
                }
            }
            for row in 0..rows {
                let out = &mut out[(start + row) * columns * size..][..columns * size];
                plan.store_d(&accumulators[row * panel..][..columns], out);
                if left[row] & all != 0 {
                    self.left_over(view, (first_row + start + row, first, columns), left[row] & all, out, room);
                }
            }
        }
        room.packed = packed;
    }

    /// The elements of one row that the kernel left, a bit each from column `first` on, one by one.
    fn left_over(
        &self,
        view: &View<'_>,
        (row, first, columns): (usize, usize, usize),
        left: u64,
        out: &mut [u8],
        room: &mut Room,
    ) {
        let Matrices { m, n, k, c, .. } = view.matrices;
        let (steps, step) = (self.steps(k), self.id.shape.sizes().2);
        let scale_step = self.id.block_scale().map_or(0, |scale| step.div_ceil(scale.block));
        let size = self.id.d.storage_bytes();
        room.fit(&self.compiled, steps * step, steps * scale_step, 1);
        let (a, scale_a) = room.row_of_a(0, steps * step, steps * scale_step);
        view.row_of_a(self, row, a, scale_a);
        room.columns.resize_with(WIDE_PANEL, Default::default);
        for column in (0..columns).filter(|column| left >> column & 1 == 1) {
            // A column is taken apart when it is first needed, and kept for the other rows.
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

    /// Rows of D from `first` on, as many as `out` holds.
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

    /// One element of D, block after block through c.
    fn chain(&self, room: &mut Room, row: usize, c: u64, blocks: usize, scale_step: usize) -> u64 {
        let step = self.id.shape.sizes().2;
        let mut c = c;
        for block in 0..blocks {
            let from = row * blocks + block;
            let dot = UnpackedDot {
                a: &room.a[from * step..][..step],
                b: &room.b[block * step..][..step],
                c: self.compiled.c.read(c),
                scale_a: &room.scale_a[from * scale_step..][..scale_step],
                scale_b: &room.scale_b[block * scale_step..][..scale_step],
            };
            let compiled = (self.path != Path::Exact)
                .then(|| self.compiled.evaluate(dot, room.scratch.as_mut().expect("fitted")))
                .flatten();
            c = compiled.unwrap_or_else(|| self.exact_of(dot, c));
        }
        c
    }

    /// The exact evaluator on operands that were taken apart.
    fn exact_of(&self, dot: UnpackedDot<'_>, c: u64) -> u64 {
        let bits =
            |reader: Reader, of: &[Unpacked]| of.iter().map(|element| reader.write(*element)).collect::<Vec<_>>();
        let (a, b) = (bits(self.compiled.a, dot.a), bits(self.compiled.b, dot.b));
        let scales = self.compiled.scale.map(|reader| (bits(reader, dot.scale_a), bits(reader, dot.scale_b)));
        let scales = scales.as_ref().map(|(a, b)| (&a[..], &b[..]));
        self.exact(Dot { a: &a, b: &b, c, scales })
    }
}

/// Matrices, or one tile of a batch of them.
struct View<'a> {
    matrices: Matrices<'a>,
    tile: usize,
}

impl View<'_> {
    /// One row of A, and of its scales, padded with +0 and with scales of 1.
    fn row_of_a(&self, evaluator: &Evaluator, row: usize, a: &mut [Unpacked], scales: &mut [Unpacked]) {
        let Matrices { m, k, a: from, scale_a, .. } = self.matrices;
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

    /// One column of B, likewise.
    fn column_of_b(&self, evaluator: &Evaluator, column: usize, b: &mut [Unpacked], scales: &mut [Unpacked]) {
        let Matrices { n, k, b: from, scale_b, .. } = self.matrices;
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

/// What one thread works in.
#[derive(Default)]
struct Room {
    scratch: Option<Scratch>,
    a: Vec<Unpacked>,
    b: Vec<Unpacked>,
    scale_a: Vec<Unpacked>,
    scale_b: Vec<Unpacked>,
    packed: PackedB,
    /// Columns of a panel that were taken apart, whether they are those of this panel, and their scales.
    columns: Vec<(bool, Vec<Unpacked>, Vec<Unpacked>)>,
    out: Vec<u8>,
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

/// Gives each thread one piece after another until none is left.
fn in_threads<R: Default>(pieces: std::ops::Range<usize>, threads: usize, work: impl Fn(usize, &mut R) + Sync) {
    let threads = threads.min(pieces.len()).max(1);
    if threads == 1 {
        let mut room = R::default();
        pieces.for_each(|piece| work(piece, &mut room));
        return;
    }
    let next = AtomicUsize::new(pieces.start);
    let run = || {
        let mut room = R::default();
        loop {
            let piece = next.fetch_add(1, Ordering::Relaxed);
            if piece >= pieces.end {
                break;
            }
            work(piece, &mut room);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(run);
        }
        run();
    });
}

/// The width of the panels of B for n columns.
fn panel_for(n: usize) -> usize {
    if n <= 32 { NARROW_PANEL } else { WIDE_PANEL }
}
