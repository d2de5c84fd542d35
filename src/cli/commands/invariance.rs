//! `invariance`: whether an element of a product depends on how many other rows and columns are computed with it.

use crate::{
    identify::{GemmEffort, Invariance as Measured, ShapeOf, compare_shapes},
    report::{Block, Cell, Page, Row, Show, Tone, to_json},
};
use mxprobe_api::{OperationId, operation_of};
use serde::Serialize;

use crate::cli::{
    arguments::{Invariance, Screen},
    choose::limits::Limits,
    commands::identify_gemm::{Open, first, of_shape},
    failure::{Failure, NO, Outcome},
    io::{interrupt::Interrupt, output},
};

/// Compares shapes of one device with the first of them.
pub(crate) fn invariance(arguments: &Invariance, screen: Screen) -> Outcome {
    let [base, others @ ..] = arguments.shapes.as_slice() else {
        return Err(Failure::usage("`--shapes` names no shape"));
    };
    if others.is_empty() {
        return Err(Failure::usage("one shape has nothing to be compared with")
            .help("name several, of the same k: `--shapes 1x64x256,16x64x256`"));
    }
    if let Some(other) = others.iter().find(|other| other.k != base.k) {
        return Err(Failure::usage(format!("k is {} in one shape and {} in another", base.k, other.k))
            .help("elements of different k are different sums: name shapes of the same k"));
    }
    let limits = Limits::new(arguments.reach.timeout, None, Interrupt::listen());
    let open = Open { device: &arguments.device, reach: &arguments.reach, limits: &limits };
    let (name, id) = open.named(&arguments.op)?;
    let base = of_shape(&id, *base);
    let effort = GemmEffort { seed: arguments.seed, elements: arguments.elements };
    let own = if arguments.recipes { Some(open.identify(&base, effort, &|_| {})) } else { None };
    let mut found = Compared { device: arguments.device.clone(), name, base: base.clone(), shapes: Vec::new() };
    for shape in others {
        let other = of_shape(&id, *shape);
        let (one, two) = (open.device(&base)?, open.device(&other)?);
        let failed = |error: mxprobe_api::Error| Failure::usage(error);
        let (first_operation, second_operation) =
            (operation_of(&*one, &base).map_err(failed)?, operation_of(&*two, &other).map_err(failed)?);
        let measured = compare_shapes(
            ShapeOf { device: &*one, operation: first_operation },
            ShapeOf { device: &*two, operation: second_operation },
            effort.seed,
        )
        .map_err(failed)?;
        let recipes = match (&own, measured.differ) {
            (Some(own), 0) => {
                let theirs = open.identify(&other, effort, &|_| {});
                Some(match (first(own), first(&theirs)) {
                    (Some(own), Some(theirs)) if own.is_same(theirs) => {
                        "the same recipe was identified at both".to_owned()
                    }
                    (Some(_), Some(_)) => "other recipes were identified, which may give the same bits".to_owned(),
                    _ => "no recipe was identified at one of them, so nothing is proved".to_owned(),
                })
            }
            _ => None,
        };
        found.shapes.push(Other::of(&other, &measured, recipes));
    }
    output::show(&found, arguments.format.into(), screen)?;
    Ok(if found.shapes.iter().any(|shape| shape.differ > 0) { NO } else { 0 })
}

/// What was found of all shapes.
#[derive(Serialize)]
struct Compared {
    device: String,
    name: String,
    /// The shape that the others are compared with.
    base: OperationId,
    shapes: Vec<Other>,
}

/// One shape beside the first.
#[derive(Serialize)]
struct Other {
    operation: OperationId,
    elements: u64,
    differ: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    recipes: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    witness: Option<Witness>,
}

/// One element that depends on the shape.
#[derive(Serialize)]
struct Witness {
    row: usize,
    column: usize,
    /// k, A and B of products that are not zero.
    products: Vec<(usize, String, String)>,
    first: String,
    second: String,
}

impl Other {
    fn of(id: &OperationId, measured: &Measured, recipes: Option<String>) -> Self {
        let witness = measured.witness.as_ref().map(|witness| Witness {
            row: witness.element.0,
            column: witness.element.1,
            products: witness.products.iter().map(|(k, a, b)| (*k, id.a.hex(*a), id.b.hex(*b))).collect(),
            first: id.d.hex(witness.d.0),
            second: id.d.hex(witness.d.1),
        });
        Self { operation: id.clone(), elements: measured.elements, differ: measured.differ, recipes, witness }
    }
}

/// Products that are shown of a witness.
const SHOWN: usize = 12;

impl Show for Compared {
    fn page(&self, _: bool) -> Page {
        let title = format!("{}  {}", self.device, self.name);
        let mut blocks: Vec<Block> = Block::titled(1, &title).into();
        for shape in &self.shapes {
            blocks.push(Block::Gap);
            blocks.extend(Block::titled(2, format!("{} and {}", self.base, shape.operation)));
            if shape.differ == 0 {
                blocks.push(Block::words(format!("{} elements of both have the same bits", shape.elements)));
            } else {
                let words = format!("{} of {} elements of both have other bits", shape.differ, shape.elements);
                blocks.push(Block::Words(Tone::Warning, words));
            }
            blocks.extend(shape.recipes.iter().map(Block::words));
            blocks.extend(shape.witness.iter().map(|witness| Block::Inset(witness.blocks())));
        }
        Page { title, blocks }
    }

    fn json(&self) -> String {
        to_json(self)
    }
}

impl Witness {
    fn blocks(&self) -> Vec<Block> {
        let rows = self
            .products
            .iter()
            .take(SHOWN)
            .map(|(k, a, b)| Row::plain(vec![Cell::code(format!("k = {k}")), Cell::code(a), Cell::code(b)]));
        let mut blocks = vec![Block::table(["product", "a", "b"], rows)];
        if self.products.len() > SHOWN {
            blocks.push(Block::words(format!("and {} products more", self.products.len() - SHOWN)));
        }
        let Self { row, column, first, second, .. } = self;
        blocks.push(Block::words(format!(
            "row {row}, column {column}: {first} in the first shape, {second} in the second"
        )));
        blocks
    }
}
