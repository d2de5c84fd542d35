//! `gemm --recipe`: computes a product as a library does with a unit.

use std::time::Instant;

use crate::{
    gemm::{Scaling, Split, words},
    report::{Block, Page, Show, to_json},
};
use mxprobe_api::{Elements, GemmOperands, OperationId, Rounding};
use mxprobe_models::{recipe::Recipe, threads};
use serde_json::json;

use super::inputs::inputs;
use crate::cli::{
    arguments::{Gemm, Screen},
    choose::recipes::{chosen, inputs as given_inputs},
    failure::{Failure, Outcome},
    io::{npy, output, progress::Progress},
};

/// The shortest time for which a rate is shown.
const SHORTEST_S: f64 = 0.01;

/// One word of A and of B, rounded to nearest.
const ONE_WORD: Split = Split { words: 1, rounding: Rounding::NearestEven, scaling: Scaling::None, lift_bits: 0 };

/// Multiplies by a recipe, and shows the result.
pub(super) fn recipe(arguments: &Gemm, screen: Screen, name: &str) -> Outcome {
    let chosen = chosen(name)?;
    let recipe = &chosen.recipe;
    let Some(out) = &arguments.out else {
        return Err(Failure::usage("`--out FILE.npy` is missing (where to write D)"));
    };
    let id = chosen.operation(arguments.op.as_deref())?;
    let (a, b, c) = inputs(arguments, &id)?;
    output::can_write(out)?;
    let (m, k, n) = (a.rows, a.columns, b.columns);
    if b.rows != k {
        return Err(Failure::usage(format!("A is {m}×{k} and B {}×{n}: they cannot be multiplied", b.rows)));
    }
    let program = chosen.program(&id, (m, n, k))?;
    let case = program.case();
    let c = match c {
        None => Elements::zeros(program.c_format(), m * n),
        Some(_) if !program.reads_c() => {
            return Err(Failure::usage(format!("`--c`: case {} of {} does not add C", case.name, recipe.name)));
        }
        Some(path) => {
            npy::read(path, program.c_format(), false)?.exactly(program.c_format(), "C").map_err(Failure::usage)?
        }
    };
    let given = given_inputs(case, &arguments.input)?;
    let (a, b) = (words(&a, id.a, &ONE_WORD, true), words(&b, id.b, &ONE_WORD, false));
    let (scale_a, scale_b) = (a.scales.first(), b.scales.first());
    let operands = GemmOperands { m, n, k, a: &a.words[0], b: &b.words[0], c: &c, scale_a, scale_b };
    let progress = Progress::of_one(screen, format!("{} {id}, {m}×{k} by {k}×{n}", recipe.name));
    let started = Instant::now();
    let d = program.multiply(&operands, &given, threads()).map_err(Failure::of_device)?;
    let seconds = started.elapsed().as_secs_f64();
    drop(progress);
    output::replace_bytes(out, &npy::write(&d, m, n, arguments.bits))?;
    let made = Made {
        name: &chosen.name,
        recipe,
        case: &case.name,
        lines: program.words(recipe),
        operation: &id,
        sizes: [m, n, k],
        inexact: [a.inexact[0], b.inexact[0]],
        d: &d,
        seconds,
    };
    output::show(&made, arguments.format, screen.for_lines())
}

/// A product by a recipe.
struct Made<'a> {
    name: &'a str,
    recipe: &'a Recipe,
    case: &'a str,
    lines: Vec<String>,
    operation: &'a OperationId,
    /// m, n and k.
    sizes: [usize; 3],
    inexact: [usize; 2],
    d: &'a Elements,
    seconds: f64,
}

impl Made<'_> {
    /// Multiply-adds per second, if it took long enough.
    fn rate(&self) -> Option<f64> {
        let [m, n, k] = self.sizes;
        (self.seconds >= SHORTEST_S).then(|| (m * n * k) as f64 / self.seconds)
    }
}

impl Show for Made<'_> {
    fn page(&self, _: bool) -> Page {
        let Self { seconds, sizes: [m, n, k], .. } = self;
        let title = format!("{}  {}", self.name, self.operation);
        let mut lines = vec![format!("D of {m}×{k} by {k}×{n} as {}", self.d.format())];
        lines.extend(self.lines.iter().cloned());
        for (name, inexact, of) in [("A", self.inexact[0], m * k), ("B", self.inexact[1], k * n)] {
            if inexact > 0 {
                let format = if name == "A" { self.operation.a } else { self.operation.b };
                lines.push(format!("{inexact} of {of} elements of {name} were rounded to {format}"));
            }
        }
        lines.push(match self.rate() {
            Some(rate) => format!("{seconds:.3} s, {:.3} G multiply-adds/s", rate / 1e9),
            None => format!("{:.0} µs: too short for a rate", seconds * 1e6),
        });
        let inset = Block::Inset(lines.into_iter().map(Block::words).collect());
        Page { blocks: Block::titled(1, &title).into_iter().chain([inset]).collect(), title }
    }

    fn json(&self) -> String {
        let [m, n, k] = self.sizes;
        to_json(&json!({
            "recipe": self.recipe.name,
            "case": self.case,
            "model": self.recipe.model,
            "operation": self.operation,
            "m": m, "n": n, "k": k,
            "steps": self.lines,
            "d_format": self.d.format().to_string(),
            "inexact_a": self.inexact[0],
            "inexact_b": self.inexact[1],
            "duration_ns": (self.seconds * 1e9).round(),
            "multiply_adds_per_s": self.rate(),
        }))
    }
}
