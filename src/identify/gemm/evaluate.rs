//! Candidates, and what they compute.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, Mutex},
};

use mxprobe_api::{Elements, Error, Format, GemmOperands, OperationId, Rounding, TileBatch};
use mxprobe_models::{
    Adder, Evaluator, Flush, NanRules, Output, Path, ZeroSign, plan_of,
    recipe::{Expression, Factor, MergeOrder, Rest, Start},
};

use super::levels::{Split, slices};

/// The unit of a recipe: an operation of a model.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    /// The name of the model, or its file.
    pub(super) model: String,
    pub(super) id: OperationId,
    pub(super) evaluator: Arc<Evaluator>,
}

/// One level with its numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Merge {
    pub(super) split: Split,
    pub(super) partial: Option<Adder>,
    pub(super) start: Start,
    pub(super) add: Adder,
}

/// What is stored, and from which adders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) adders: Vec<Adder>,
    pub(super) expression: Expression,
    /// Constants that it multiplies by.
    pub(super) constants: Vec<(String, Format, u64)>,
}

/// A recipe for one shape, as a candidate.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) unit: Unit,
    /// The unit's own accumulator starts at c.
    pub(super) from_c: bool,
    pub(super) merges: Vec<Merge>,
    pub(super) stored: Option<Stored>,
}

/// Numbers of one format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Values {
    pub(super) format: Format,
    pub(super) bits: Vec<u64>,
}

/// Rows of A, columns of B, and what is added: bits, row-major.
#[derive(Clone, Debug)]
pub(super) struct Operands {
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) k: usize,
    pub(super) a: Elements,
    pub(super) b: Elements,
    pub(super) c: Elements,
}

/// An adder that loses nothing before it rounds to nearest even into a format.
pub(super) fn nearest(format: Format) -> Adder {
    rounded(format, Rounding::NearestEven)
}

/// An adder that loses nothing before it rounds into a format.
pub(super) fn rounded(format: Format, rounding: Rounding) -> Adder {
    let output = match Output::in_format(format) {
        Output::Float { format, fraction_bits, overflow, subnormals, .. } => {
            Output::Float { format, fraction_bits, rounding, overflow, subnormals }
        }
        other => other,
    };
    let name = match rounding {
        Rounding::NearestEven => format.name().to_owned(),
        Rounding::TowardZero => format!("{format}-rz"),
        Rounding::Down => format!("{format}-rd"),
        Rounding::Up => format!("{format}-ru"),
        _ => format!("{format}-ro"),
    };
    Adder::exact(&name, output, NanRules { invalid: format.nan().unwrap_or(0), ..NanRules::default() })
}

impl Candidate {
    /// D, row-major.
    ///
    /// # Errors
    /// If formats do not fit one another.
    pub(super) fn compute(&self, operands: &Operands) -> Result<Values, Error> {
        let all: Vec<usize> = (0..operands.k).collect();
        let c = Values { format: operands.c.format(), bits: operands.c.iter().collect() };
        let sum = self.sum(operands, &self.merges, &all, self.from_c.then_some(&c), &c)?;
        match &self.stored {
            None => Ok(sum),
            Some(stored) => stored.value(&stored.expression, &sum, &c),
        }
    }

    fn sum(
        &self,
        operands: &Operands,
        merges: &[Merge],
        products: &[usize],
        start: Option<&Values>,
        c: &Values,
    ) -> Result<Values, Error> {
        let Some((merge, inner)) = merges.split_first() else { return self.chain(operands, products, start) };
        let (slices, rest) = slices(&merge.split, products);
        let mut partial = Vec::new();
        for (at, slice) in slices.iter().enumerate() {
            let sum = self.sum(operands, inner, slice, start.filter(|_| at == 0), c)?;
            partial.push(match &merge.partial {
                Some(adder) => add(adder, &[&sum])?,
                None => sum,
            });
        }
        let first = match merge.start {
            Start::First => None,
            Start::Zero => {
                Some(Values { format: merge.add.output_format().unwrap_or(Format::F32), bits: vec![0; c.bits.len()] })
            }
            Start::C => Some(c.clone()),
        };
        let merged = merged(&merge.add, merge.split.merge, first, partial)?;
        if rest.is_empty() {
            return merged.map_or_else(|| self.chain(operands, &rest, start), Ok);
        }
        match (merge.split.rest, merged) {
            (Rest::Added, Some(merged)) => {
                let rest = self.chain(operands, &rest, None)?;
                add(&merge.add, &[&merged, &rest])
            }
            (_, merged) => self.chain(operands, &rest, merged.as_ref().or(start)),
        }
    }

    /// The unit's operations one after another over these products.
    fn chain(&self, operands: &Operands, products: &[usize], start: Option<&Values>) -> Result<Values, Error> {
        let Operands { m, n, k, .. } = *operands;
        let id = &self.unit.id;
        let a = gathered(&operands.a, m, k, products);
        let b = rows(&operands.b, n, products);
        let c = match start {
            None => Elements::zeros(id.c, m * n),
            Some(start) if start.format == id.c => Elements::from_bits(id.c, start.bits.iter().copied()),
            Some(start) => return Err(Error::unsupported(format!("{id} does not start from {}", start.format))),
        };
        let operands = GemmOperands { m, n, k: products.len(), a: &a, b: &b, c: &c, scale_a: None, scale_b: None };
        let d = self.unit.evaluator.multiply(&operands, 2)?;
        Ok(Values { format: id.d, bits: d.iter().collect() })
    }
}

impl Stored {
    fn value(&self, expression: &Expression, acc: &Values, c: &Values) -> Result<Values, Error> {
        let count = acc.bits.len();
        let factor = |factor: &Factor| -> Result<Values, Error> {
            Ok(match factor {
                Factor::Acc => acc.clone(),
                Factor::C => c.clone(),
                Factor::PositiveZero => Values { format: acc.format, bits: vec![0; count] },
                Factor::Sum(sum) => self.value(sum, acc, c)?,
                Factor::Call(..) => return Err(Error::unsupported("a function in an epilogue")),
                Factor::Input(name) => {
                    let constant = self.constants.iter().find(|(known, ..)| known == name);
                    let (_, format, bits) = constant.ok_or_else(|| Error::invalid(format!("`{name}` has no value")))?;
                    Values { format: *format, bits: vec![*bits; count] }
                }
            })
        };
        let adder = &self.adders[expression.adder];
        let mut terms = Vec::new();
        for (one, other) in &expression.terms {
            terms.push((factor(one)?, other.as_ref().map(&factor).transpose()?));
        }
        match terms.as_slice() {
            [(x, None)] => add(adder, &[x]),
            [(x, None), (y, None)] => add(adder, &[x, y]),
            [(x, Some(by)), (c, None)] | [(c, None), (x, Some(by))] => fused(adder, x, by, c),
            [(x, Some(by))] => {
                let zero = Values { format: x.format, bits: vec![x.format.negative_zero().unwrap_or(0); count] };
                fused(adder, x, by, &zero)
            }
            _ => Err(Error::unsupported("an epilogue of more than two terms")),
        }
    }
}

/// Partial sums in one; `None` if there is none.
fn merged(
    adder: &Adder,
    order: MergeOrder,
    start: Option<Values>,
    partial: Vec<Values>,
) -> Result<Option<Values>, Error> {
    let plus = |one: Values, other: Values| add(adder, &[&one, &other]);
    let chain = |start: Option<Values>, mut all: Vec<Values>| -> Result<Option<Values>, Error> {
        if start.is_none() && all.is_empty() {
            return Ok(None);
        }
        let first = start.unwrap_or_else(|| all.remove(0));
        all.into_iter().try_fold(first, plus).map(Some)
    };
    let by_levels = |mut level: Vec<Values>, halves: bool| -> Result<Vec<Values>, Error> {
        while level.len() > 1 {
            let (count, half) = (level.len(), level.len().div_ceil(2));
            let mut next = Vec::new();
            for at in 0..half {
                let (one, other) = if halves { (at, at + half) } else { (2 * at, 2 * at + 1) };
                next.push(if other < count { add(adder, &[&level[one], &level[other]])? } else { level[one].clone() });
            }
            level = next;
        }
        Ok(level)
    };
    match order {
        MergeOrder::Serial => chain(start, partial),
        MergeOrder::Reverse => chain(start, partial.into_iter().rev().collect()),
        MergeOrder::Pairs => chain(start, by_levels(partial, false)?),
        MergeOrder::Halves => chain(start, by_levels(partial, true)?),
        MergeOrder::LastThenSlots => {
            let (count, half) = (partial.len(), partial.len().div_ceil(2));
            let mut all: Vec<Values> = partial.last().cloned().into_iter().collect();
            for at in 0..half.min(count.saturating_sub(1)) {
                all.push(if at + half + 1 < count {
                    add(adder, &[&partial[at], &partial[at + half]])?
                } else {
                    partial[at].clone()
                });
            }
            chain(start, all)
        }
    }
}

/// One value rounded, or two added, element by element.
pub(super) fn add(adder: &Adder, terms: &[&Values]) -> Result<Values, Error> {
    let format = adder.output_format().ok_or_else(|| Error::unsupported("a merge has no format"))?;
    if let [one, other] = terms
        && is_addition_of_f32(adder)
        && one.format == Format::F32
        && other.format == Format::F32
    {
        let sums = one.bits.iter().zip(&other.bits).map(|(one, other)| sum_of_f32(*one, *other));
        if let Some(bits) = sums.collect::<Option<Vec<u64>>>() {
            return Ok(Values { format, bits });
        }
    }
    match terms {
        [one] => elementwise(adder, "sum(c)", None, one),
        [one, other] => {
            let by = Values { format: other.format, bits: vec![other.format.one(); other.bits.len()] };
            elementwise(adder, "sum(c, all)", Some((other, &by)), one)
        }
        _ => Err(Error::unsupported(format!("{} terms are merged at once", terms.len()))),
    }
}

/// x·by + c, rounded once.
fn fused(adder: &Adder, x: &Values, by: &Values, c: &Values) -> Result<Values, Error> {
    elementwise(adder, "sum(c, all)", Some((x, by)), c)
}

/// Whether an adder is IEEE 754's addition of f32, to nearest even.
fn is_addition_of_f32(adder: &Adder) -> bool {
    let plain = nearest(Format::F32);
    adder.grid.is_empty()
        && adder.output == plain.output
        && adder.zero == ZeroSign::Ieee
        && adder.carry_bits.is_none()
        && adder.normalised_fraction_bits.is_none()
        && adder.value_cut_bits == 0
}

/// The sum of two f32 by the processor's own addition; `None` for a NaN, whose bits IEEE 754 leaves open.
fn sum_of_f32(one: u64, other: u64) -> Option<u64> {
    let value = |bits: u64| f32::from_bits(u32::try_from(bits).unwrap_or(u32::MAX));
    let sum = value(one) + value(other);
    (!sum.is_nan()).then(|| u64::from(sum.to_bits()))
}

type Key = (String, Format, Format, Format);
type Additions = Vec<(Adder, Arc<Evaluator>)>;

/// Evaluators of single additions, which are made once.
static ADDITIONS: LazyLock<Mutex<HashMap<Key, Additions>>> = LazyLock::new(Mutex::default);

fn elementwise(adder: &Adder, tree: &str, product: Option<(&Values, &Values)>, c: &Values) -> Result<Values, Error> {
    let format = adder.output_format().ok_or_else(|| Error::unsupported("a merge has no format"))?;
    let (a, b) = product.map_or((c.format, c.format), |(a, b)| (a.format, b.format));
    let key = (tree.to_owned(), a, b, c.format);
    let mut id = OperationId::new("add", (1, 1, 1), format, a, b, c.format);
    id.qualifiers.clear();
    let evaluator = {
        let mut known = ADDITIONS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let of = known.entry(key).or_default();
        match of.iter().find(|(known, _)| known == adder) {
            Some((_, evaluator)) => evaluator.clone(),
            None => {
                let plan = plan_of(tree, &["sum"], 1)?;
                let adders = std::slice::from_ref(adder);
                let evaluator = Arc::new(Evaluator::of_plan(adders, Flush::default(), &plan, &id, Path::Scalar)?);
                of.push((adder.clone(), evaluator.clone()));
                evaluator
            }
        }
    };
    let count = c.bits.len();
    let elements = |values: Option<&Values>, format: Format| match values {
        Some(values) => Elements::from_bits(format, values.bits.iter().copied()),
        None => Elements::zeros(format, count),
    };
    let batch = TileBatch {
        tiles: count,
        a: elements(product.map(|(a, _)| a), a),
        b: elements(product.map(|(_, b)| b), b),
        c: elements(Some(c), c.format),
        scale_a: None,
        scale_b: None,
    };
    Ok(Values { format, bits: evaluator.tiles(&batch, 1).iter().collect() })
}

/// Some columns of a matrix of m rows.
fn gathered(matrix: &Elements, m: usize, k: usize, products: &[usize]) -> Elements {
    let size = matrix.format().storage_bytes();
    let mut bytes = Vec::with_capacity(m * products.len() * size);
    for row in 0..m {
        for product in products {
            bytes.extend_from_slice(&matrix.bytes()[(row * k + product) * size..][..size]);
        }
    }
    Elements::from_bytes(matrix.format(), bytes).expect("elements of a matrix")
}

/// Some rows of a matrix of n columns.
fn rows(matrix: &Elements, n: usize, products: &[usize]) -> Elements {
    let size = matrix.format().storage_bytes();
    let mut bytes = Vec::with_capacity(n * products.len() * size);
    for product in products {
        bytes.extend_from_slice(&matrix.bytes()[product * n * size..][..n * size]);
    }
    Elements::from_bytes(matrix.format(), bytes).expect("elements of a matrix")
}
