//! A case of a recipe, prepared to compute whole matrices.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use mxprobe_api::{Elements, Error, Format, GemmOperands, OperationId};

use super::{
    divide::{Addend, Parts, Run},
    epilogue::{Epilogue, Inputs},
    gather::{Part, Piece, check_scales, put, window},
    sum::Sum,
    types::{Case, Count, MergeOrder, Recipe, Rest, Start},
};
use crate::{adder::Adder, fast::Evaluator, model::Model};

/// One case of a recipe with its model, an operation and its parameters: computes whole matrices, bit for bit.
///
/// ```
/// use std::collections::BTreeMap;
///
/// use mxprobe_api::{Elements, Format, GemmOperands};
/// use mxprobe_models::{load, recipe::{Program, Recipe}};
///
/// let text = r#"
/// schema = "mxprobe-recipe/1"
/// name = "halves"
/// title = "two halves of k, added in f32"
/// model = "fma-chain"
/// [sources]
/// own = "an example"
/// [adder.f32]
/// output = "f32"
/// rounding = "nearest-even"
/// nan = "0x7fc00000"
/// basis = "assumed"
/// source = "own"
/// [[case]]
/// name = "all"
/// operations = ["dot.m1n1k16.f32.f16.f16.f32"]
/// basis = "assumed"
/// source = "own"
/// [[case.level]]
/// slices = 2
/// add = "f32"
/// "#;
/// let recipe = Recipe::parse("halves.toml", text)?;
/// let case = &recipe.cases[0];
/// let program = Program::new(&recipe, &load("fma-chain")?, case, &case.operations[0], &BTreeMap::new())?;
/// let a = Elements::from_bits(Format::F16, [0x3c00, 0x4000]); // 1 2
/// let b = Elements::from_bits(Format::F16, [0x4200, 0x3800]); // 3, 0.5
/// let c = Elements::zeros(Format::F32, 1);
/// let operands = GemmOperands { m: 1, n: 1, k: 2, a: &a, b: &b, c: &c, scale_a: None, scale_b: None };
/// let d = program.multiply(&operands, &BTreeMap::new(), 1)?;
/// assert_eq!(d.get(0), 0x4080_0000); // 4
/// # Ok::<(), mxprobe_api::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Program {
    case: Case,
    evaluator: Arc<Evaluator>,
    levels: Vec<Stage>,
    epilogue: Option<Epilogue>,
}

/// A level whose counts are resolved to numbers.
#[derive(Clone, Debug)]
pub(super) struct Stage {
    pub(super) parts: Parts,
    pub(super) rest: Rest,
    pub(super) partial: Option<Sum>,
    pub(super) merge: MergeOrder,
    pub(super) start: Start,
    pub(super) add: Sum,
}

impl Program {
    /// Prepares a case, with some of its parameters changed; the others keep the case's defaults.
    ///
    /// # Errors
    /// [`Error::is_invalid`] if the model lacks the operation, or the case does not cover it or has no such parameter.
    pub fn new(
        recipe: &Recipe,
        model: &Model,
        case: &Case,
        id: &OperationId,
        parameters: &BTreeMap<String, usize>,
    ) -> Result<Self, Error> {
        check_choice(case, id, parameters)?;
        let evaluator = Arc::new(Evaluator::new(model, id)?);
        Ok(Self::assemble(&recipe.adders, case, evaluator, parameters))
    }

    /// Prepares a case that does not come from a file: its levels and its epilogue refer to `adders`, and the evaluator
    /// of its operation exists already.
    ///
    /// # Errors
    /// [`Error::is_invalid`] if the case does not cover the evaluator's operation, an adder has no format, or a level's
    /// rest is chained to a sum whose format differs from that of the operation's accumulator.
    pub fn with_evaluator(adders: &[Adder], case: &Case, evaluator: Arc<Evaluator>) -> Result<Self, Error> {
        let id = evaluator.id();
        check_choice(case, id, &BTreeMap::new())?;
        if let Some(adder) = adders.iter().find(|adder| adder.output_format().is_none()) {
            return Err(Error::invalid(format!("the adder {} has no format", adder.name)));
        }
        for level in &case.levels {
            if let Some(misfit) = level.rest.misfit(adders[level.add].output_format(), id.c) {
                return Err(Error::invalid(misfit));
            }
        }
        Ok(Self::assemble(adders, case, evaluator, &BTreeMap::new()))
    }

    fn assemble(
        adders: &[Adder],
        case: &Case,
        evaluator: Arc<Evaluator>,
        parameters: &BTreeMap<String, usize>,
    ) -> Self {
        let number = |count: &Count| match count {
            Count::Fixed(number) => *number,
            Count::Parameter(name) => parameters.get(name).or_else(|| case.parameters.get(name)).copied().unwrap_or(1),
        };
        let sum = |adder: usize| Sum::new(&adders[adder]);
        let stage = |level: &super::types::Level| Stage {
            parts: Parts::new(&level.division, number),
            rest: level.rest,
            partial: level.partial.map(sum),
            merge: level.merge,
            start: level.start,
            add: sum(level.add),
        };
        Self {
            case: case.clone(),
            evaluator,
            levels: case.levels.iter().map(stage).collect(),
            epilogue: case.epilogue.as_ref().map(|expression| Epilogue::new(expression, adders)),
        }
    }

    /// The operation that the unit performs.
    #[must_use]
    pub fn id(&self) -> &OperationId {
        self.evaluator.id()
    }

    /// The case.
    #[must_use]
    pub fn case(&self) -> &Case {
        &self.case
    }

    /// The format of D.
    #[must_use]
    pub fn format(&self) -> Format {
        let merged = self.levels.first().map(|level| level.add.format());
        self.epilogue.as_ref().map(Epilogue::format).or(merged).unwrap_or(self.id().d)
    }

    /// The format of C.
    #[must_use]
    pub fn c_format(&self) -> Format {
        self.case.c_format.unwrap_or(self.id().c)
    }

    /// Whether D depends on C.
    #[must_use]
    pub fn reads_c(&self) -> bool {
        self.case.reads_c()
    }

    /// Computes D, m×n and row-major, in [`format`](Self::format).
    ///
    /// `operands` are those of the operation, except that C has [`c_format`](Self::c_format). Each input has one
    /// element, m, n or m·n, as the case says. NaN, infinities and the signs of zeros follow the model and the recipe's
    /// adders. D is divided among `threads` threads; the bits do not depend on their number.
    ///
    /// # Errors
    /// [`Error::is_invalid`] if the case does not hold for the shape, an operand or input does not fit or is missing,
    /// or slices cut through blocks of a scale; otherwise as [`GemmOperands::validate`].
    pub fn multiply(
        &self,
        operands: &GemmOperands<'_>,
        inputs: &BTreeMap<String, Elements>,
        threads: usize,
    ) -> Result<Elements, Error> {
        let GemmOperands { m, n, k, c, .. } = *operands;
        self.check(operands)?;
        let inputs = Inputs::new(&self.case, inputs, (m, n))?;
        let mut d = Elements::zeros(self.format(), m * n);
        let whole: Run = std::iter::once(0..k).filter(|run| !run.is_empty()).collect();
        let threads = threads.clamp(1, (m * n).saturating_mul(k) / PRODUCTS_PER_THREAD + 1);
        if self.levels.is_empty() {
            // The evaluator divides its own work.
            let unit_c = self.chain_start(c, m * n);
            let zeroed = GemmOperands { c: &unit_c, ..*operands };
            let acc = self.evaluator.multiply(&zeroed, threads)?;
            return Ok(match &self.epilogue {
                None => acc,
                Some(epilogue) => epilogue.apply(&acc, c, &inputs, &Piece { rows: 0..m, columns: 0..n }, n),
            });
        }
        let pieces = Piece::all((m, n), PIECE.min((m * n).div_ceil(threads)).max(1));
        let next = AtomicUsize::new(0);
        let work = || -> Result<Vec<(usize, Elements)>, Error> {
            let mut done = Vec::new();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(piece) = pieces.get(at) else { return Ok(done) };
                let acc = self.sum(&Task { operands, piece }, 0, &whole, true)?;
                let found = match &self.epilogue {
                    None => acc,
                    Some(epilogue) => epilogue.apply(&acc, c, &inputs, piece, n),
                };
                done.push((at, found));
            }
        };
        let all: Vec<Result<Vec<(usize, Elements)>, Error>> = if threads == 1 {
            vec![work()]
        } else {
            std::thread::scope(|scope| {
                let started: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
                started.into_iter().map(|thread| thread.join().expect("evaluating does not panic")).collect()
            })
        };
        for (at, elements) in all.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().flatten() {
            put(&mut d, n, &pieces[at], &elements);
        }
        Ok(d)
    }

    /// Checks that shape and operands fit the case.
    fn check(&self, operands: &GemmOperands<'_>) -> Result<(), Error> {
        let GemmOperands { m, n, k, c, .. } = *operands;
        if !self.case.shapes.contains((m, n, k)) {
            return Err(Error::invalid(format!("case {} does not hold for {m}×{n}×{k}", self.case.name)));
        }
        if c.format() != self.c_format() || Some(c.len()) != m.checked_mul(n) {
            return Err(Error::invalid(format!(
                "c holds {} elements of {}, not {m}×{n} of {}",
                c.len(),
                c.format(),
                self.c_format()
            )));
        }
        let unit_c = Elements::zeros(self.id().c, c.len());
        // A slice has at most k products, and is chained as the whole k would be.
        GemmOperands { c: &unit_c, ..*operands }.validate(self.id())
    }

    /// The starting value of the unit's own accumulator for the first partial sum: c or +0.
    fn chain_start(&self, c: &Elements, len: usize) -> Elements {
        if self.case.start == Start::C { c.clone() } else { Elements::zeros(self.id().c, len) }
    }

    /// The sum of some k by a level and those below it. Only the very first partial sum includes c.
    fn sum(&self, task: &Task<'_>, level: usize, run: &Run, first: bool) -> Result<Elements, Error> {
        let Some(stage) = self.levels.get(level) else {
            let starts_at_c = first && self.case.start == Start::C;
            let start = starts_at_c.then(|| window(task.operands.c, task.operands.n, task.piece));
            return self.chain(task, run, start);
        };
        let (slices, left) = stage.parts.slices(run, stage.rest);
        let partial = |slice: usize| -> Result<Elements, Error> {
            let sum = self.sum(task, level + 1, &slices[slice], first && slice == 0)?;
            Ok(match &stage.partial {
                None => sum,
                Some(partial) => partial.round(&sum),
            })
        };
        let start = match stage.start {
            Start::First => None,
            Start::C if first => Some(window(task.operands.c, task.operands.n, task.piece)),
            Start::Zero | Start::C => Some(Elements::zeros(stage.add.format(), task.piece.len())),
        };
        let mut merged = match stage.merge {
            // One after another, so that at most two are held.
            MergeOrder::Serial | MergeOrder::Reverse => {
                let last = slices.len() - 1;
                let at = |place: usize| if stage.merge == MergeOrder::Serial { place } else { last - place };
                let (mut merged, from) = match start {
                    Some(start) => (start, 0),
                    None => (partial(at(0))?, 1),
                };
                for place in from..slices.len() {
                    merged = stage.add.add(&merged, &partial(at(place))?);
                }
                merged
            }
            _ => {
                let mut partials: Vec<Option<Elements>> = (0..slices.len()).map(|_| None).collect();
                let mut earlier: Vec<Option<Elements>> = Vec::new();
                for (one, other) in stage.merge.additions(slices.len()) {
                    let mut take = |addend: Addend| match addend {
                        Addend::Partial(at) => partials[at].take().map_or_else(|| partial(at), Ok),
                        Addend::Earlier(at) => Ok(earlier[at].take().expect("each sum is added once")),
                    };
                    let (one, other) = (take(one)?, take(other)?);
                    earlier.push(Some(stage.add.add(&one, &other)));
                }
                match earlier.pop().flatten() {
                    Some(merged) => merged,
                    None => partial(0)?,
                }
            }
        };
        if merged.format() != stage.add.format() {
            // A single slice in another format.
            merged = stage.add.round(&merged);
        }
        match stage.rest {
            _ if left.is_empty() => Ok(merged),
            Rest::Chained => self.chain(task, &left, Some(merged)),
            Rest::Divided | Rest::Added => Ok(stage.add.add(&merged, &self.chain(task, &left, None)?)),
        }
    }

    /// Chains the unit's operations over some k, from +0 or from `start`.
    fn chain(&self, task: &Task<'_>, run: &Run, start: Option<Elements>) -> Result<Elements, Error> {
        let block = self.id().block_scale().map_or(1, |scale| scale.block);
        check_scales(run, task.operands.k, block)?;
        let c = start.unwrap_or_else(|| Elements::zeros(self.id().c, task.piece.len()));
        let part = Part::new(task.operands, task.piece, run, block);
        self.evaluator.multiply(&part.operands(&c), 1)
    }

    /// The evaluator of the unit.
    pub(super) fn evaluator(&self) -> &Evaluator {
        &self.evaluator
    }

    /// The levels, outermost first.
    pub(super) fn stages(&self) -> &[Stage] {
        &self.levels
    }
}

/// Checks that a case covers an operation and has these parameters.
fn check_choice(case: &Case, id: &OperationId, parameters: &BTreeMap<String, usize>) -> Result<(), Error> {
    if !case.operations.contains(id) {
        let operations: Vec<String> = case.operations.iter().map(ToString::to_string).collect();
        return Err(Error::invalid(format!("case {} is for {}, not for {id}", case.name, operations.join(", "))));
    }
    for (name, number) in parameters {
        if !case.parameters.contains_key(name) {
            let known: Vec<&str> = case.parameters.keys().map(String::as_str).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(Error::invalid(format!("case {} has no parameter `{name}`; it has {known}", case.name)));
        }
        if !(1..=LARGEST).contains(number) {
            return Err(Error::invalid(format!("{name} is {number}, which is not between 1 and {LARGEST}")));
        }
    }
    Ok(())
}

/// A piece of a product.
struct Task<'a> {
    operands: &'a GemmOperands<'a>,
    piece: &'a Piece,
}

/// The largest parameter.
const LARGEST: usize = 1 << 20;

/// The number of elements of D computed together, chosen so that their partial sums stay in a cache.
const PIECE: usize = 1 << 16;

/// The work that pays for a thread, which costs as much as a few hundred thousand products.
const PRODUCTS_PER_THREAD: usize = 400_000;
