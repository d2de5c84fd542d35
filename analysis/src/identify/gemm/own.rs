//! Identification of a unit that no model describes: its own dots are asked through a product and identified like those
//! of any other unit.
//!
//! Within one slice, only the unit adds. Two consecutive operations show how it adds products to its accumulator: their
//! products lie in the slice, with zeros everywhere else, and the arithmetic identified for both together is cut
//! between them.

use std::{collections::BTreeSet, sync::Arc};

use mxprobe_api::{Device, DeviceInfo, Elements, Error, Operation, OperationId, OperationSet, TileBatch, execute};
use mxprobe_models::{Evaluator, Model, Plan, Term, plan_of};

use super::{
    candidate::Unit,
    levels::{Split, slices},
    product::Product,
    tree::Tree,
};
use crate::{
    identify::{
        document::model_of,
        one::identify,
        outcome::{Arithmetic, Effort},
    },
    in_order::InOrder,
    nan_bits::NanBits,
};

/// Maximum number of elements of A, B and C that a dot may cost: each dot takes a whole product.
const ELEMENTS: usize = 1 << 15;

/// Maximum number of elements in one request, unless a single product has more.
const PER_REQUEST: usize = 1 << 22;

/// Maximum number of products that one operation of a unit takes.
const STEPS: usize = 32;

/// Maximum number of lengths of a unit's operation that are tried.
const LENGTHS: usize = 3;

/// The name of the unit's model.
const NAME: &str = "unit";

/// A device that computes two operations of a unit at one element of a product.
struct Window<'d> {
    device: &'d dyn Device,
    product: &'d Operation,
    /// The row and column of the element.
    element: (usize, usize),
    /// The places in k that hold the dot's products.
    places: &'d [usize],
    operations: OperationSet,
}

impl Device for Window<'_> {
    fn info(&self) -> &DeviceInfo {
        self.device.info()
    }

    fn operations(&self) -> &OperationSet {
        &self.operations
    }

    fn execute(&self, operation: &Operation, batch: &TileBatch) -> Result<Elements, Error> {
        let (m, n, k) = self.product.id.shape.sizes();
        let (row, column) = self.element;
        let mut d = Elements::zeros(operation.id.d, 0);
        let at_once = (PER_REQUEST / (m * k + k * n + m * n)).max(1);
        let count = self.places.len();
        for first in (0..batch.tiles).step_by(at_once) {
            let tiles = at_once.min(batch.tiles - first);
            let mut whole = TileBatch::zeros(self.product, tiles);
            for tile in 0..tiles {
                for (at, place) in self.places.iter().enumerate() {
                    let from = (first + tile) * count + at;
                    whole.a.set((tile * m + row) * k + place, batch.a.get(from));
                    whole.b.set((tile * k + place) * n + column, batch.b.get(from));
                }
                whole.c.set((tile * m + row) * n + column, batch.c.get(first + tile));
            }
            let found = execute(self.device, self.product, &whole)?;
            (0..tiles).for_each(|tile| d.push(found.get((tile * m + row) * n + column)));
        }
        Ok(d)
    }
}

/// Identifies units that no model describes, from operations of a few lengths that the tree shows, the shorter ones
/// first. Returns nothing if the product is so large that asking a whole product for each dot costs too much.
///
/// # Errors
/// Any error that the device reports.
pub(super) fn units(
    product: &Product<'_>,
    (tree, readings): (&Tree, &[Vec<Split>]),
    seed: u64,
    progress: &dyn Fn(&str),
) -> Result<Vec<Unit>, Error> {
    let (m, n, k) = product.operation.id.shape.sizes();
    let mut found = Vec::new();
    if m * k + k * n + m * n > ELEMENTS {
        return Ok(found);
    }
    let mut lengths: Vec<(usize, Vec<usize>)> = Vec::new();
    for levels in readings {
        let slice = longest(levels, k);
        let length = step(tree, &slice);
        if length <= STEPS && 2 * length <= slice.len() && lengths.iter().all(|(known, _)| *known != length) {
            // Take the last two operations: a unit may cut a sum again when it adds zeros to it.
            let from = (slice.len() / length - 2) * length;
            lengths.push((length, slice[from..][..2 * length].to_vec()));
        }
    }
    lengths.order_by_key(|(length, _)| *length);
    for (length, places) in lengths.into_iter().take(LENGTHS) {
        progress(&format!("identifying the unit itself from dots of {} products", places.len()));
        found.extend(unit(product, length, &places, seed, progress)?);
    }
    Ok(found)
}

/// Returns the products of the longest of the innermost slices.
fn longest(levels: &[Split], k: usize) -> Vec<usize> {
    levels.iter().fold((0..k).collect(), |products: Vec<usize>, level| {
        let (parts, _) = slices(level, &products);
        parts.into_iter().max_by_key(Vec::len).unwrap_or_default()
    })
}

/// Returns the largest number of products by which a sum grows at once within a slice.
fn step(tree: &Tree, slice: &[usize]) -> usize {
    let Some(first) = slice.first() else { return usize::MAX };
    let sizes: Vec<usize> = tree.around(*first, slice.len()).iter().map(Vec::len).collect();
    let before = std::iter::once(0).chain(sizes.iter().copied());
    // A chain of single products begins with a sum of two.
    let grows: Vec<usize> = sizes.iter().zip(before).map(|(size, before)| size - before).collect();
    if grows.iter().skip(1).all(|more| *more == 1) { 1 } else { grows.into_iter().max().unwrap_or(usize::MAX) }
}

/// Identifies the unit from two of its operations of `length` products each, at these places of k. `None` if no
/// arithmetic explains the dots or it cannot be cut between the two.
fn unit(
    product: &Product<'_>,
    length: usize,
    places: &[usize],
    seed: u64,
    progress: &dyn Fn(&str),
) -> Result<Option<Unit>, Error> {
    let of = &product.operation;
    let id = dot(&of.id, 2 * length);
    let operation = Operation::new(id.clone(), &of.scope);
    let varied = product.places.varied.first().copied().unwrap_or(0);
    let fixed = product.places.fixed;
    let window = Window {
        device: product.device(),
        product: of,
        element: if product.places.in_a_row { (fixed, varied) } else { (varied, fixed) },
        places,
        operations: OperationSet::from([(id, operation.clone())]),
    };
    let effort = Effort {
        seed,
        first: 1_500,
        attack: 6_000,
        rounds: 8,
        terms: 400_000_000,
        nan: NanBits::Any,
        ..Effort::default()
    };
    let identified = identify(&window, &operation, effort, progress)?;
    let Some(arithmetic) = identified.arithmetic() else { return Ok(None) };
    let Some((tree, acc)) = cut(arithmetic, length)? else { return Ok(None) };
    let id = OperationId { c: acc, d: acc, ..dot(&of.id, length) };
    let arithmetic = Arithmetic { operation: id.clone(), tree, ..arithmetic.clone() };
    let source = format!("identified by dots of {} products of {}", places.len(), of.id);
    let own = Operation::new(id.clone(), &of.scope);
    let model: Model = model_of(product.device().info(), NAME, &source, &[(arithmetic, own)])?;
    let evaluator = Arc::new(Evaluator::new(&model, &id)?);
    Ok(Some(Unit { model: NAME.to_owned(), own: Some(Arc::new(model)), id, evaluator }))
}

/// Returns the id of a dot of `k` products in the formats of an operation.
fn dot(of: &OperationId, k: usize) -> OperationId {
    let k = u32::try_from(k).expect("few products");
    OperationId::new("dot", (1, 1, k), of.d, of.a, of.b, of.c)
}

/// Cuts the second of two operations from the arithmetic of both. Returns its tree, and the format of its result; it
/// adds its products to the result of the first, which is its c. `None` if the two are not alike.
fn cut(arithmetic: &Arithmetic, length: usize) -> Result<Option<(String, mxprobe_api::Format)>, Error> {
    let names: Vec<&str> = arithmetic.adders.iter().map(|adder| adder.name.as_str()).collect();
    let plan = plan_of(&arithmetic.tree, &names, 2 * length)?;
    let mut below: Vec<BTreeSet<usize>> = Vec::new();
    for node in &plan.nodes {
        let mut products = BTreeSet::new();
        for term in &node.terms {
            match term {
                Term::Product(at) => drop(products.insert(*at)),
                Term::Node(at) => products.extend(&below[*at]),
                Term::C | Term::PositiveZero => {}
            }
        }
        below.push(products);
    }
    let both: BTreeSet<usize> = (0..2 * length).collect();
    let one: BTreeSet<usize> = (0..length).collect();
    // The lowest node that has both, and the highest below it that has the first.
    let Some(second) = below.iter().position(|products| *products == both) else { return Ok(None) };
    let Some(first) = below[..second].iter().rposition(|products| *products == one) else { return Ok(None) };
    let format = |node: usize| arithmetic.adders[plan.nodes[node].adder].output_format();
    let (Some(acc), true) = (format(second), format(first) == format(second)) else { return Ok(None) };
    Ok(Cut { plan: &plan, names: &names, first, length }.text(second).map(|tree| (tree, acc)))
}

/// A tree to be written in the syntax of model files, with c in the place of the node `first`.
struct Cut<'a> {
    plan: &'a Plan,
    names: &'a [&'a str],
    first: usize,
    length: usize,
}

impl Cut<'_> {
    /// Returns the text of a node; `None` if a product of the first operation, or the product's own c, joins the
    /// second.
    fn text(&self, node: usize) -> Option<String> {
        let of = &self.plan.nodes[node];
        let term = |term: &Term| match term {
            Term::Product(at) => at.checked_sub(self.length).map(|at| at.to_string()),
            Term::Node(at) if *at == self.first => Some("c".to_owned()),
            Term::Node(at) => self.text(*at),
            Term::PositiveZero => Some("+0".to_owned()),
            Term::C => None,
        };
        let terms: Option<Vec<String>> = of.terms.iter().map(term).collect();
        Some(format!("{}({})", self.names[of.adder], terms?.join(", ")))
    }
}
