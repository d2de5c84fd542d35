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
mod one_by_one;
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
use kernels::Kernels;
use scalar::{Compiled, UnpackedDot};
use spare::OneNan;
use unpack::Reader;

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
