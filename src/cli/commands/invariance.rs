//! `invariance`: whether an element of a product depends on how many other rows and columns are computed with it.

use crate::{
    identify::{
        GemmEffort, GemmIdentification, Invariance as Measured, SameRecipe, ShapeOf, compare_shapes, same_recipe,
    },
    report::{Block, Page, Show, Tone, to_json},
};
use mxprobe_api::{Device, Operation, OperationId, operation_of};
use serde::Serialize;

use crate::cli::{
    arguments::{Invariance, Screen},
    choose::limits::Limits,
    commands::shapes::{INTERRUPTED_EARLY, Open, of_shape, table_of},
    failure::{Failure, INCOMPLETE, INTERRUPTED, NO, Outcome},
    io::{interrupt::Interrupt, output, progress::Progress},
};

/// Compares shapes of one device with the first of them.
pub(crate) fn invariance(arguments: &Invariance, screen: Screen) -> Outcome {
    let [base, others @ ..] = arguments.shapes.as_slice() else {
        return Err(Failure::usage("`--shapes` names no shape"));
    };
    if others.is_empty() {
        return Err(Failure::usage("only one shape: a comparison takes two or more")
            .help("name several with the same k: `--shapes 1x64x256,16x64x256`"));
    }
    if let Some(other) = others.iter().find(|other| other.k != base.k) {
        return Err(Failure::usage(format!("k is {} in one shape and {} in another", base.k, other.k))
            .help("elements of different k are different sums: name shapes with the same k"));
    }
    let limits = Limits::new(arguments.reach.timeout, None, Interrupt::listen());
    let open = Open { device: &arguments.device, reach: &arguments.reach, limits: &limits };
    let (name, id) = open.named(&arguments.op)?;
    let base = of_shape(&id, *base);
    let effort = GemmEffort { seed: arguments.seed, elements: arguments.elements };
    let mut progress = Progress::new(screen, others.len() + usize::from(arguments.recipes));
    let with_own = arguments.recipes.then_some(&base);
    let ids: Vec<OperationId> = others.iter().map(|shape| of_shape(&id, *shape)).collect();
    progress.begin(with_own.into_iter().chain(&ids).map(|id| format!("{} {id}", arguments.device)).collect());
    let mut found =
        Compared { device: arguments.device.clone(), name, base: base.clone(), interrupted: false, shapes: Vec::new() };
    let compare = Compare { open: &open, base: &base, effort };
    let mut own = None;
    if arguments.recipes {
        own = open.identify(&base, effort, &mut |words| progress.part(words, 0.0))?;
        found.interrupted = own.is_none();
        progress.step();
    }
    for other in &ids {
        if found.interrupted {
            break;
        }
        match compare.with(other, own.as_ref(), &mut |words| progress.part(words, 0.0))? {
            Some(shape) => found.shapes.push(shape),
            None => found.interrupted = true,
        }
        progress.step();
    }
    drop(progress);
    output::show(&found, arguments.format.into(), screen)?;
    Ok(found.code())
}

/// The base shape that others are compared with.
struct Compare<'a> {
    open: &'a Open<'a>,
    base: &'a OperationId,
    effort: GemmEffort,
}

impl Compare<'_> {
    /// Compares another shape with the base, including the recipes of both if that of the base was identified; `None`
    /// if interrupted.
    fn with(
        &self,
        other: &OperationId,
        own: Option<&Result<GemmIdentification, String>>,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Option<Other>, Failure> {
        let second = match self.open.device(other) {
            Ok(device) => device,
            Err(error) => return Ok(Some(Other::failed(other, error.to_string()))),
        };
        let (id, seed) = (other.clone(), self.effort.seed);
        let ask = move |first: &dyn Device, operation: &Operation, _: &dyn Fn(&str)| {
            let second = ShapeOf { device: &*second, operation: operation_of(&*second, &id)? };
            compare_shapes(ShapeOf { device: first, operation }, second, seed)
        };
        let measured = match self.open.ask(self.base, ask, progress)? {
            None => return Ok(None),
            Some(Err(reason)) => return Ok(Some(Other::failed(other, reason))),
            Some(Ok(measured)) => measured,
        };
        let Some(own) = own else { return Ok(Some(Other::of(other, &measured, None))) };
        let Some(theirs) = self.open.identify(other, self.effort, progress)? else { return Ok(None) };
        let recipes = match (own, &theirs) {
            (Ok(own), Ok(theirs)) => same_recipe(own, theirs, self.effort.seed).map_err(Failure::of_device)?,
            _ => SameRecipe::Unknown,
        };
        Ok(Some(Other::of(other, &measured, Some(recipes))))
    }
}

/// Describes a comparison of recipes, and lists their differences.
fn in_words(recipes: SameRecipe) -> (&'static str, Vec<String>) {
    match recipes {
        SameRecipe::Proved => {
            ("proved: both recipes are the same unit and additions, whose bits are equal for every input", Vec::new())
        }
        SameRecipe::Differ(lines) => ("the recipes give other bits for some inputs", lines),
        SameRecipe::Open(lines) => ("the recipes are not the same, and no input was found on which they differ", lines),
        SameRecipe::Unknown => ("a part of one shape has no recipe, so nothing is proved", Vec::new()),
    }
}

/// The results for all shapes.
#[derive(Serialize)]
struct Compared {
    device: String,
    name: String,
    /// The base shape.
    base: OperationId,
    /// Whether an interruption prevented the shapes after those listed from being asked.
    interrupted: bool,
    shapes: Vec<Other>,
}

impl Compared {
    fn code(&self) -> u8 {
        if self.interrupted {
            INTERRUPTED
        } else if self.shapes.iter().any(|shape| shape.failed.is_some()) {
            INCOMPLETE
        } else if self.shapes.iter().any(|shape| shape.verdict == Some(Word::Differ)) {
            NO
        } else if self.shapes.iter().any(|shape| shape.recipes.is_some() && shape.verdict != Some(Word::Proved)) {
            // A proof was requested and there is none.
            INCOMPLETE
        } else {
            0
        }
    }
}

/// The result of comparing two shapes.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    /// An element differs.
    Differ,
    /// No compared element differs.
    Measured,
    /// No compared element differs, and the recipes of both are the same for every input.
    Proved,
}

/// One shape compared with the first.
#[derive(Serialize)]
struct Other {
    operation: OperationId,
    /// Why nothing was compared, if nothing was.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
    /// The result, if anything was compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<Word>,
    elements: u64,
    differ: u64,
    /// The comparison of the recipes, if they were identified.
    #[serde(skip_serializing_if = "Option::is_none")]
    recipes: Option<&'static str>,
    /// Differences between the recipes, one per line.
    differences: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    witness: Option<Witness>,
}

/// One element that depends on the shape.
#[derive(Serialize)]
struct Witness {
    row: usize,
    column: usize,
    /// k, A and B of the products that are not zero.
    products: Vec<(usize, String, String)>,
    first: String,
    second: String,
}

impl Other {
    fn failed(id: &OperationId, reason: String) -> Self {
        Self {
            operation: id.clone(),
            failed: Some(reason),
            verdict: None,
            elements: 0,
            differ: 0,
            recipes: None,
            differences: Vec::new(),
            witness: None,
        }
    }

    fn of(id: &OperationId, measured: &Measured, recipes: Option<SameRecipe>) -> Self {
        let witness = measured.witness.as_ref().map(|witness| Witness {
            row: witness.element.0,
            column: witness.element.1,
            products: witness.products.iter().map(|(k, a, b)| (*k, id.a.hex(*a), id.b.hex(*b))).collect(),
            first: id.d.hex(witness.d.0),
            second: id.d.hex(witness.d.1),
        });
        let Measured { elements, differ, .. } = *measured;
        let verdict = match (differ, &recipes) {
            (0, Some(SameRecipe::Proved)) => Word::Proved,
            (0, _) => Word::Measured,
            _ => Word::Differ,
        };
        let (recipes, differences) = recipes.map(in_words).unzip();
        let differences = differences.unwrap_or_default();
        Self {
            operation: id.clone(),
            failed: None,
            verdict: Some(verdict),
            elements,
            differ,
            recipes,
            differences,
            witness,
        }
    }
}

impl Show for Compared {
    fn page(&self, _: bool) -> Page {
        let title = format!("{}  {}", self.device, self.name);
        let mut blocks: Vec<Block> = Block::titled(1, &title).into();
        for shape in &self.shapes {
            blocks.push(Block::Gap);
            blocks.extend(Block::titled(2, format!("{} and {}", self.base, shape.operation)));
            if let Some(reason) = &shape.failed {
                blocks.push(Block::Words(Tone::Failure, format!("failed: {reason}")));
            } else if shape.differ == 0 {
                blocks.push(Block::words(format!("{} elements of both have the same bits", shape.elements)));
            } else {
                let words = format!("{} of {} elements of both have other bits", shape.differ, shape.elements);
                blocks.push(Block::Words(Tone::Warning, words));
            }
            blocks.extend(shape.recipes.iter().map(|words| Block::words(*words)));
            if !shape.differences.is_empty() {
                let lines = shape.differences.iter().map(|line| (Tone::Plain, line.clone())).collect();
                blocks.push(Block::Inset(vec![Block::List(lines)]));
            }
            blocks.extend(shape.witness.iter().map(|witness| Block::Inset(witness.blocks())));
        }
        if self.interrupted {
            blocks.extend([Block::Gap, Block::Words(Tone::Warning, INTERRUPTED_EARLY.to_owned())]);
        }
        Page { title, blocks }
    }

    fn json(&self) -> String {
        to_json(self)
    }
}

impl Witness {
    fn blocks(&self) -> Vec<Block> {
        let mut blocks = table_of(&self.products);
        let Self { row, column, first, second, .. } = self;
        blocks.push(Block::words(format!(
            "row {row}, column {column}: {first} in the first shape, {second} in the second"
        )));
        blocks
    }
}
