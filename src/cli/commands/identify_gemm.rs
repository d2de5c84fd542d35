//! `identify --gemm`: the recipe of a library's product, shape by shape.

use std::{collections::BTreeMap, path::Path, time::Instant};

use crate::{
    identify::{Found, GemmEffort, GemmIdentification, GemmOutcome, Part, Unexplained},
    report::{Block, Page, Show, Tone, Tool, this_tool, to_json},
};
use mxprobe_api::{Format as Number, OperationId, Shape};
use mxprobe_models::{
    Adder, Model,
    recipe::{Case, Recipe},
};
use serde::Serialize;

use crate::cli::{
    arguments::{Identify, Screen, given},
    choose::limits::Limits,
    commands::{
        boundary::{Bisection, Boundary, text},
        shapes::{INTERRUPTED_EARLY, Open, of_shape, table_of},
    },
    failure::{Failure, INCOMPLETE, INTERRUPTED, NO, Outcome},
    io::{interrupt::Interrupt, output, progress::Progress},
};

/// Identifies the recipes of one device and writes them.
pub(crate) fn identify_shapes(arguments: &Identify, screen: Screen) -> Outcome {
    let device = arguments.device.as_deref().unwrap_or_default();
    let limits = Limits::new(arguments.inputs.reach.timeout, None, Interrupt::listen());
    let (out, saved) = (&arguments.out, &arguments.report);
    if let Some(out) = out {
        output::can_write(out)?;
    }
    if let Some(path) = saved {
        output::is_for_json(path)?;
        output::can_write(path)?;
    }
    let open = Open { device, reach: &arguments.inputs.reach, limits: &limits };
    let (name, id) = open.named(&arguments.op)?;
    let effort = GemmEffort { seed: arguments.inputs.seed, elements: arguments.elements };
    let mut progress = Progress::new(screen, arguments.shapes.len());
    progress.begin(arguments.shapes.iter().map(|shape| format!("{device} {}", of_shape(&id, *shape))).collect());
    let mut all = Recipes {
        tool: this_tool(&given()),
        device: device.to_owned(),
        name,
        seed: effort.seed,
        interrupted: true,
        shapes: Vec::new(),
        changes: Vec::new(),
        boundaries: Vec::new(),
        unit_file: unit_file(out.as_deref()),
        unit: None,
        recipe: None,
        left_out: Vec::new(),
    };
    let mut found: Vec<(Shape, Result<GemmIdentification, String>)> = Vec::new();
    for shape in &arguments.shapes {
        let start = Instant::now();
        let id = of_shape(&id, *shape);
        let Some(one) = open.identify(&id, effort, &mut |words| progress.part(words, 0.0))? else {
            break;
        };
        all.shapes.push(ShapeRecord::of(&id, &one, start));
        found.push((*shape, one));
        all.conclude(&found);
        // Results are saved after each shape, whatever happens with the next one.
        if let (Some(out), Some(text)) = (out, &all.recipe) {
            if let Some(unit) = &all.unit {
                output::replace(&out.with_file_name(&all.unit_file), unit)?;
            }
            output::replace(out, text)?;
        }
        if let Some(path) = saved {
            output::replace(path, &to_json(&all))?;
        }
        progress.step();
    }
    all.interrupted = found.len() < arguments.shapes.len();
    if arguments.boundary && !all.interrupted {
        let bisection = Bisection { open: &open, id: &id, effort };
        let between = boundaries(&bisection, &found, &mut |words| progress.part(words, 0.0))?;
        all.interrupted = between.is_none();
        all.boundaries = between.unwrap_or_default();
    }
    drop(progress);
    if let Some(path) = saved {
        output::replace(path, &to_json(&all))?;
    }
    output::show(&all, arguments.inputs.format, screen)?;
    Ok(all.code())
}

/// The name of the file for a unit that no shipped model has, next to that of the recipe.
fn unit_file(out: Option<&Path>) -> String {
    let stem = out.and_then(Path::file_stem).map(|stem| stem.to_string_lossy().into_owned() + "-");
    stem.unwrap_or_default() + "unit.toml"
}

/// Returns the recipe of the largest identified part of a shape.
fn first(found: &Result<GemmIdentification, String>) -> Option<&Found> {
    found.as_ref().ok()?.parts.iter().find_map(|part| match &part.outcome {
        GemmOutcome::Identified(found) => Some(found),
        GemmOutcome::Refused { .. } => None,
    })
}

/// Lists the shapes whose recipe differs from that of the previous shape.
fn changes(found: &[(Shape, Result<GemmIdentification, String>)]) -> Vec<Change> {
    let known: Vec<(Shape, &Found)> = found.iter().filter_map(|(shape, one)| Some((*shape, first(one)?))).collect();
    let differ = known.windows(2).filter(|pair| !pair[0].1.is_same(pair[1].1));
    differ.map(|pair| Change { from: text(pair[0].0), to: text(pair[1].0) }).collect()
}

/// Locates the changes of the recipe between neighbouring shapes that differ in one dimension; `None` if interrupted.
fn boundaries(
    bisection: &Bisection<'_>,
    found: &[(Shape, Result<GemmIdentification, String>)],
    progress: &mut dyn FnMut(&str),
) -> Result<Option<Vec<Boundary>>, Failure> {
    let known: Vec<(Shape, &Found)> = found.iter().filter_map(|(shape, one)| Some((*shape, first(one)?))).collect();
    let mut boundaries = Vec::new();
    for pair in known.windows(2).filter(|pair| !pair[0].1.is_same(pair[1].1)) {
        match bisection.between(pair[0], pair[1], progress)? {
            None => {}
            Some(None) => return Ok(None),
            Some(Some(boundary)) => boundaries.push(boundary),
        }
    }
    Ok(Some(boundaries))
}

/// Builds a recipe file of all shapes, if any was identified; the model of its unit, if no shipped model has it; and
/// the list of shapes that do not fit into the file, since a file names one model.
fn recipe(
    found: &[(Shape, Result<GemmIdentification, String>)],
    all: &Recipes,
) -> (Option<Recipe>, Option<String>, Vec<LeftOut>) {
    let mut adders: Vec<Adder> = Vec::new();
    let mut cases: Vec<Case> = Vec::new();
    let mut unit: Option<(String, Option<String>)> = None;
    let mut left_out = Vec::new();
    for (shape, one) in found {
        let (Ok(GemmIdentification { operation, .. }), Some(one)) = (one, first(one)) else { continue };
        let own = (one.model().to_owned(), one.own_model().map(Model::to_toml));
        if *unit.get_or_insert_with(|| own.clone()) == own {
            cases.push(one.case(&operation.id, &mut adders));
        } else {
            left_out.push(LeftOut { shape: text(*shape), model: one.model().to_owned() });
        }
    }
    let source = format!(
        "measured by {} identify --gemm on {} ({}), seed {}",
        env!("CARGO_PKG_NAME"),
        all.device,
        all.name,
        all.seed
    );
    let (model, unit) = unit.unzip();
    let unit = unit.flatten();
    let file = model.map(|model| Recipe {
        name: "identified".to_owned(),
        title: format!("{}, as identified", all.name),
        model: if unit.is_some() { all.unit_file.clone() } else { model },
        aliases: Vec::new(),
        sources: BTreeMap::from([("measured".to_owned(), source)]),
        adders,
        cases,
    });
    (file, unit, left_out)
}

/// The results for all shapes.
#[derive(Serialize)]
struct Recipes {
    tool: Tool,
    device: String,
    name: String,
    seed: u64,
    /// Whether shapes are missing: the run is still going on, or was interrupted.
    interrupted: bool,
    shapes: Vec<ShapeRecord>,
    /// The changes of the recipe from one shape to the next.
    changes: Vec<Change>,
    /// The sizes between which the recipe changes, with `--boundary`.
    boundaries: Vec<Boundary>,
    /// The file name for the recipe's unit, if no shipped model has it.
    #[serde(skip)]
    unit_file: String,
    /// The text of that file.
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<String>,
    /// The text of the recipe file.
    #[serde(skip_serializing_if = "Option::is_none")]
    recipe: Option<String>,
    /// Shapes that were identified but are missing from the recipe file, since their unit belongs to another model.
    left_out: Vec<LeftOut>,
}

/// A shape whose unit does not belong to the recipe file's model.
#[derive(Serialize)]
struct LeftOut {
    shape: String,
    model: String,
}

/// Two consecutive shapes whose recipes differ.
#[derive(Serialize)]
struct Change {
    from: String,
    to: String,
}

/// One shape.
#[derive(Serialize)]
struct ShapeRecord {
    operation: OperationId,
    parts: Vec<PartRecord>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
    elements: u64,
    requests: u64,
    duration_ns: u64,
}

/// One part of D.
#[derive(Serialize)]
struct PartRecord {
    elements: usize,
    rows: (usize, usize),
    columns: (usize, usize),
    /// The recipe, level by level; for a refusal, that of the nearest candidate.
    recipe: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verified_elements: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unexplained: Option<UnexplainedRecord>,
}

/// The smallest input that shows the reason for a refusal.
#[derive(Serialize)]
struct UnexplainedRecord {
    /// k, A and B of the products that are not zero.
    products: Vec<(usize, String, String)>,
    c: String,
    d: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    nearest: Option<String>,
}

impl ShapeRecord {
    fn of(id: &OperationId, found: &Result<GemmIdentification, String>, start: Instant) -> Self {
        let duration_ns = crate::clock::elapsed_ns(start);
        let empty =
            |failed| Self { operation: id.clone(), parts: Vec::new(), failed, elements: 0, requests: 0, duration_ns };
        match found {
            Err(reason) => empty(Some(reason.clone())),
            Ok(found) => Self {
                parts: found.parts.iter().map(|part| PartRecord::of(id, part)).collect(),
                elements: found.elements,
                requests: found.requests,
                ..empty(None)
            },
        }
    }
}

impl PartRecord {
    fn of(id: &OperationId, part: &Part) -> Self {
        let (recipe, verified_elements, refused, unexplained) = match &part.outcome {
            GemmOutcome::Identified(found) => (found.words(), Some(found.verified), None, None),
            GemmOutcome::Refused { reason, unexplained, nearest } => {
                let unexplained = unexplained.as_ref().map(|found| UnexplainedRecord::of(id, found));
                (nearest.clone(), None, Some(reason.clone()), unexplained)
            }
        };
        let Part { elements, rows, columns, .. } = part;
        Self { elements: *elements, rows: *rows, columns: *columns, recipe, verified_elements, refused, unexplained }
    }
}

impl UnexplainedRecord {
    fn of(id: &OperationId, found: &Unexplained) -> Self {
        let shown = |format: Number, bits: u64| format!("{} ({})", format.hex(bits), format.to_f64(bits));
        Self {
            products: found.products.iter().map(|(k, a, b)| (*k, shown(id.a, *a), shown(id.b, *b))).collect(),
            c: shown(id.c, found.c),
            d: shown(id.d, found.d),
            nearest: found.expected.map(|bits| shown(id.d, bits)),
        }
    }
}

impl Recipes {
    /// Derives the conclusions from the shapes so far.
    fn conclude(&mut self, found: &[(Shape, Result<GemmIdentification, String>)]) {
        self.changes = changes(found);
        let (file, unit, left_out) = recipe(found, self);
        self.unit = unit;
        self.recipe = file.as_ref().map(Recipe::to_toml);
        self.left_out = left_out;
    }

    fn code(&self) -> u8 {
        if self.interrupted {
            INTERRUPTED
        } else if self.shapes.iter().any(|shape| shape.failed.is_some()) {
            INCOMPLETE
        } else if self.shapes.iter().flat_map(|shape| &shape.parts).any(|part| part.refused.is_some()) {
            NO
        } else {
            0
        }
    }
}

impl Show for Recipes {
    fn page(&self, _: bool) -> Page {
        let title = format!("{}  {}", self.device, self.name);
        let mut blocks: Vec<Block> = Block::titled(1, &title).into();
        for shape in &self.shapes {
            blocks.push(Block::Gap);
            blocks.extend(Block::titled(2, shape.operation.to_string()));
            if let Some(reason) = &shape.failed {
                blocks.push(Block::Words(Tone::Failure, format!("failed: {reason}")));
            }
            for part in &shape.parts {
                blocks.extend(part.blocks(shape.parts.len() > 1));
            }
            let seconds = shape.duration_ns / 100_000_000;
            blocks.push(Block::Words(
                Tone::Muted,
                format!(
                    "{} elements in {} requests, {}.{} s",
                    shape.elements,
                    shape.requests,
                    seconds / 10,
                    seconds % 10
                ),
            ));
        }
        let changes = self.changes.iter();
        let changes = changes.map(|change| format!("the recipe of {} is not that of {}", change.to, change.from));
        let left_out = self.left_out.iter().map(|LeftOut { shape, model }| {
            format!("the recipe file has no case for {shape}: a file names one model, and this unit is {model}'s")
        });
        let boundaries = self.boundaries.iter().map(Boundary::words);
        let own = self.unit.iter().map(|_| {
            let file = &self.unit_file;
            format!("no shipped model has this unit: it was identified, and `--out` writes its model beside the recipe, as {file}")
        });
        let notes: Vec<(Tone, String)> =
            own.chain(changes).chain(boundaries).chain(left_out).map(|note| (Tone::Plain, note)).collect();
        if !notes.is_empty() {
            blocks.extend([Block::Gap, Block::List(notes)]);
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

impl PartRecord {
    fn blocks(&self, of_several: bool) -> Vec<Block> {
        let mut blocks = Vec::new();
        if of_several {
            let ((top, bottom), (left, right)) = (self.rows, self.columns);
            let place = format!("{} elements in rows {top}–{bottom}, columns {left}–{right}", self.elements);
            blocks.push(Block::words(place));
        }
        if let Some(reason) = &self.refused {
            blocks.push(Block::Words(Tone::Warning, format!("refused: {reason}")));
            if let Some(unexplained) = &self.unexplained {
                blocks.push(Block::Inset(unexplained.blocks()));
            }
            if !self.recipe.is_empty() {
                blocks.push(Block::words("the nearest candidate:"));
            }
        }
        blocks.push(Block::Inset(vec![Block::List(
            self.recipe.iter().map(|level| (Tone::Plain, level.clone())).collect(),
        )]));
        if let Some(verified) = self.verified_elements {
            blocks.push(Block::words(format!("compared on {verified} random elements without a mismatch")));
        }
        blocks
    }
}

impl UnexplainedRecord {
    fn blocks(&self) -> Vec<Block> {
        let mut blocks = table_of(&self.products);
        let nearest =
            self.nearest.as_ref().map_or(String::new(), |nearest| format!("; the nearest candidate gives {nearest}"));
        blocks.push(Block::words(format!("with c = {} the device gives {}{nearest}", self.c, self.d)));
        blocks
    }
}
