//! Compiled evaluators: every model, with the same bits as the exact evaluator, about a thousand times faster.
//!
//! An [`Evaluator`] is built once for a model and an operation. It uses the fastest [`Path`] that this processor and
//! this plan allow. Elements that a path cannot compute (a NaN, a sum wider than its words) fall back to the next
//! slower one, so that every path returns the same bits.
//!
//! The modules of this folder depend on each other in a cycle: an evaluator is built from the kernels, and a kernel
//! leaves to the evaluator the elements that it cannot compute.

mod alone;
mod chain;
mod dots;
mod double;
mod drive;
mod floats;
mod grids;
mod integer;
mod kernels;
mod operand;
mod path;
mod products;
mod sample;
mod scalar;
mod simd;
mod spare;
mod sums;
mod tree;
mod unpack;

use std::sync::{Arc, OnceLock};

use mxprobe_api::{Elements, Error, GemmOperands, OperationId, TileBatch};

use crate::{
    adder::Adder,
    convert::Conversion,
    exact::{self, Dot},
    model::{Flush, Model, Unit},
    tree::Plan,
};
pub use path::Path;
pub use sample::Sample;
pub(crate) use simd::{COLUMNS, Number, ROWS, Row, block_sums, on_avx512};
pub use simd::{Vectorised, vectorised};

use chain::ChainPlan;
use drive::{OneByOne, View};
use kernels::Kernels;
use scalar::{Compiled, Scratch, UnpackedDot};
use simd::WIDE_PANEL;
use spare::{OneNan, SpareBench};
use unpack::{Reader, Unpacked, ZERO};

impl Path {
    /// The paths that this processor supports, fastest last.
    #[must_use]
    pub fn available() -> Vec<Self> {
        let paths = [Self::Exact, Self::Scalar, Self::Portable, Self::Avx2, Self::Avx512];
        paths.into_iter().filter(|path| *path <= path::fastest()).collect()
    }
}

/// One operation of one model, prepared for computing.
///
/// If the unit converts A and B to another format, it computes the operation on operands in that format: `id` and `unit`
/// are those, and operands are converted before anything else.
#[derive(Clone, Debug)]
pub struct Evaluator {
    id: OperationId,
    converted: Option<Box<Converted>>,
    adders: Vec<Arc<Adder>>,
    unit: Unit,
    plan: Arc<Plan>,
    compiled: Compiled,
    kernel: Kernels,
    /// Computes what the chain or the tree kernel leaves, and is made when that first leaves something.
    spare: OnceLock<Kernels>,
    one_nan: Option<OneNan>,
    /// The path used for whole matrices, and the one that dots may use.
    path: Path,
    asked: Path,
}

impl Evaluator {
    /// Builds the fastest evaluator of an operation.
    ///
    /// # Errors
    /// If the model has no such operation.
    pub fn new(model: &Model, id: &OperationId) -> Result<Self, Error> {
        Self::with_path(model, id, Path::Avx512)
    }

    /// Builds an evaluator that uses `path`, or the fastest one below it if the processor or the plan does not allow
    /// it.
    ///
    /// # Errors
    /// If the model has no such operation.
    pub fn with_path(model: &Model, id: &OperationId, path: Path) -> Result<Self, Error> {
        let missing = || Error::invalid(format!("the model {} has no operation {id}", model.name));
        let (unit, plan) = model.plan(id).ok_or_else(missing)?;
        let adders = model.adders.iter().cloned().map(Arc::new).collect();
        let mut made = Self::of(adders, unit.clone(), Arc::new(plan), id, path);
        if matches!(made.kernel, Kernels::Chain(_)) {
            made.one_nan = OneNan::of(&made.adders, &made.plan, &made.id);
        }
        Ok(made)
    }

    fn of(adders: Vec<Arc<Adder>>, mut unit: Unit, plan: Arc<Plan>, id: &OperationId, path: Path) -> Self {
        let converted = Converted::of(id, unit.flush);
        let mut id = id.clone();
        if let Some(to) = unit.flush.converted.take() {
            (id.a, id.b, unit.flush.a, unit.flush.b) = (to, to, false, false);
        }
        let compiled = Compiled::new(&adders, &unit, &plan, &id);
        let asked = path.min(path::fastest());
        let kernel = Kernels::of(&adders, &unit, &plan, &id, asked);
        let path = if matches!(kernel, Kernels::None) { asked.min(Path::Scalar) } else { asked };
        let spare = OnceLock::new();
        Self { id, converted, adders, unit, plan, compiled, kernel, spare, one_nan: None, path, asked }
    }

    /// The operation that it computes.
    #[must_use]
    pub fn id(&self) -> &OperationId {
        self.converted.as_ref().map_or(&self.id, |converted| &converted.id)
    }

    /// The adders of its model.
    #[must_use]
    pub fn adders(&self) -> &[Arc<Adder>] {
        &self.adders
    }

    /// The fused additions of one dot of the operation's k products.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// How operands are read.
    #[must_use]
    pub fn flush(&self) -> Flush {
        self.converted.as_ref().map_or(self.unit.flush, |converted| converted.flush)
    }

    /// The path used for whole matrices.
    #[must_use]
    pub fn path(&self) -> Path {
        self.path
    }

    /// Computes d of one dot of the operation's k products.
    ///
    /// # Errors
    /// [`Error::is_invalid`] if the number of elements of A or B differs from k, or that of scales from the blocks of
    /// k.
    pub fn dot(&self, dot: Dot<'_>) -> Result<u64, Error> {
        self.validate(dot)?;
        let Some(converted) = &self.converted else { return Ok(self.value(dot)) };
        let [of_a, of_b] = &converted.operands;
        let a: Vec<u64> = dot.a.iter().map(|bits| of_a.bits(*bits)).collect();
        let b: Vec<u64> = dot.b.iter().map(|bits| of_b.bits(*bits)).collect();
        Ok(self.value(Dot { a: &a, b: &b, ..dot }))
    }

    fn validate(&self, dot: Dot<'_>) -> Result<(), Error> {
        let k = self.id.shape.sizes().2;
        let fits = |what: &str, found: usize, wanted: usize| {
            if found == wanted {
                return Ok(());
            }
            Err(Error::invalid(format!("{}: a dot takes {wanted} {what}, but has {found}", self.id)))
        };
        fits("elements of A", dot.a.len(), k)?;
        fits("elements of B", dot.b.len(), k)?;
        let (Some(scale), Some((a, b))) = (self.id.block_scale(), dot.scales) else { return Ok(()) };
        fits("scales of A", a.len(), k.div_ceil(scale.block))?;
        fits("scales of B", b.len(), k.div_ceil(scale.block))
    }

    fn value(&self, dot: Dot<'_>) -> u64 {
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
        let unpacked = UnpackedDot { a: &a, b: &b, products: &[], c, scale_a: &scale_a, scale_b: &scale_b };
        compiled.evaluate(unpacked, &mut compiled.scratch()).unwrap_or_else(|| self.exact(dot))
    }

    fn exact(&self, dot: Dot<'_>) -> u64 {
        exact::evaluate(&self.adders, &self.unit, &self.plan, &self.id, dot)
    }

    /// Computes D of every tile of a batch, m×n per tile, row-major; at most `threads` threads share the tiles.
    ///
    /// # Panics
    /// If the batch does not fit the operation; [`TileBatch::validate`] checks this.
    #[must_use]
    pub fn tiles(&self, batch: &TileBatch, threads: usize) -> Elements {
        if let Some(operands) = self.alone(batch, threads) {
            return self.dots(&operands);
        }
        let in_format = self.in_format(&batch.a, &batch.b).map(|(a, b)| TileBatch {
            tiles: batch.tiles,
            a,
            b,
            c: batch.c.clone(),
            scale_a: batch.scale_a.clone(),
            scale_b: batch.scale_b.clone(),
        });
        let batch = in_format.as_ref().unwrap_or(batch);
        match self.kernels() {
            Kernels::None => drive::tiles(self, None::<&ChainPlan>, batch, threads),
            Kernels::Chain(kernel) => drive::tiles(self, Some(kernel), batch, threads),
            Kernels::Tree(kernel) => drive::tiles(self, Some(kernel), batch, threads),
            Kernels::Double(kernel) => drive::tiles(self, Some(kernel), batch, threads),
            Kernels::Integer(kernel) => drive::tiles(self, Some(kernel), batch, threads),
            Kernels::Sums(kernel) => drive::tiles(self, Some(kernel), batch, threads),
            Kernels::Grids(kernel) => drive::tiles(self, Some(&**kernel), batch, threads),
        }
    }

    /// Computes D of one product of matrices whose lengths were checked.
    pub(crate) fn matrices(&self, matrices: &GemmOperands<'_>, threads: usize) -> Elements {
        let in_format = self.in_format(matrices.a, matrices.b);
        let matrices = match &in_format {
            Some((a, b)) => &GemmOperands { a, b, ..*matrices },
            None => matrices,
        };
        match self.kernels() {
            Kernels::None => drive::matrices(self, None::<&ChainPlan>, matrices, threads),
            Kernels::Chain(kernel) => drive::matrices(self, Some(kernel), matrices, threads),
            Kernels::Tree(kernel) => drive::matrices(self, Some(kernel), matrices, threads),
            Kernels::Double(kernel) => drive::matrices(self, Some(kernel), matrices, threads),
            Kernels::Integer(kernel) => drive::matrices(self, Some(kernel), matrices, threads),
            Kernels::Sums(kernel) => drive::matrices(self, Some(kernel), matrices, threads),
            Kernels::Grids(kernel) => drive::matrices(self, Some(&**kernel), matrices, threads),
        }
    }

    /// A and B in the format to which they are converted; `None` if they stay in theirs.
    fn in_format(&self, a: &Elements, b: &Elements) -> Option<(Elements, Elements)> {
        let [of_a, of_b] = &self.converted.as_ref()?.operands;
        Some((of_a.elements(a), of_b.elements(b)))
    }

    /// The kernel of this evaluator's path.
    fn kernels(&self) -> &Kernels {
        if self.path >= Path::Portable { &self.kernel } else { &Kernels::None }
    }

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

/// An operation whose operands are converted to another format.
#[derive(Clone, Debug)]
struct Converted {
    id: OperationId,
    flush: Flush,
    /// Of A and of B.
    operands: [Conversion; 2],
}

impl Converted {
    /// `None` if operands stay in their formats.
    fn of(id: &OperationId, flush: Flush) -> Option<Box<Self>> {
        Some(Box::new(Self { id: id.clone(), flush, operands: Conversion::of_operands(id, flush)? }))
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
struct Room {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dot_of_another_length_than_the_operations_is_an_error() {
        let dot = |name: &str, id: &str, a: usize, b: usize, scales: Option<(usize, usize)>| {
            let model = crate::load(name).expect("a shipped model");
            let (a, b) = (vec![0; a], vec![0; b]);
            let scales = scales.map(|(of_a, of_b)| (vec![0; of_a], vec![0; of_b]));
            let scales = scales.as_ref().map(|(a, b)| (&a[..], &b[..]));
            let id: OperationId = id.parse().expect("an id");
            Path::available()
                .into_iter()
                .map(|path| Evaluator::with_path(&model, &id, path).expect("an operation"))
                .map(|evaluator| evaluator.dot(Dot { a: &a, b: &b, c: 0, scales }).map_err(|error| error.to_string()))
                .reduce(|one, other| if one == other { one } else { panic!("{one:?} and {other:?}") })
                .expect("a path")
        };
        let plain = "mma.m16n8k16.f32.f16.f16.f32";
        assert_eq!(dot("h100", plain, 16, 16, None), Ok(0));
        for (a, b, words) in
            [(15, 16, "16 elements of A, but has 15"), (16, 17, "16 elements of B, but has 17"), (0, 0, "has 0")]
        {
            let error = dot("h100", plain, a, b, None).unwrap_err();
            assert!(error.contains(words) && error.contains(plain), "{error}");
        }
        let scaled = "mma.m16n8k64.f32.e2m1.e2m1.f32.block16.ue4m3";
        assert_eq!(dot("rtx5090", scaled, 64, 64, Some((4, 4))), Ok(0));
        let error = dot("rtx5090", scaled, 64, 64, Some((4, 3))).unwrap_err();
        assert!(error.contains("4 scales of B, but has 3"), "{error}");
    }
}
