//! `gemm --recipe`: a product as a library makes it of a unit.

use std::{collections::BTreeMap, path::Path, time::Instant};

use crate::{
    gemm::{Scaling, Split, words},
    report::{Block, Page, Show, to_json},
};
use mxprobe_api::{Elements, GemmOperands, OperationId, Rounding};
use mxprobe_models::{
    Model,
    recipe::{Input, Program, Recipe, load},
};
use serde_json::json;

use super::inputs;
use crate::cli::{
    arguments::{Gemm, Screen},
    failure::{Failure, Outcome},
    io::{npy, output, progress::Progress},
};

/// A product took so long at the least, or no rate is shown.
const SHORTEST_S: f64 = 0.01;

/// One word of A and of B, rounded to nearest.
const ONE_WORD: Split = Split { words: 1, rounding: Rounding::NearestEven, scaling: Scaling::None, lift_bits: 0 };

/// Multiplies by a recipe, and shows what it did.
pub(super) fn recipe(arguments: &Gemm, screen: Screen, name: &str) -> Outcome {
    let (recipe, model) = load(name).map_err(Failure::usage)?;
    let Some(out) = &arguments.out else {
        return Err(Failure::usage("`--out FILE.npy` is missing (where to write D)"));
    };
    let id = operation(arguments, &recipe, &model)?;
    let (a, b, c) = inputs(arguments, &id)?;
    output::can_write(out)?;
    let (m, k, n) = (a.rows, a.columns, b.columns);
    if b.rows != k {
        return Err(Failure::usage(format!("A is {m}×{k} and B {}×{n}: they cannot be multiplied", b.rows)));
    }
    let case = recipe.case_for(arguments.case.as_deref(), Some(&id), (m, n, k)).map_err(Failure::usage)?;
    let parameters: BTreeMap<String, usize> = arguments.set.iter().cloned().collect();
    let program = Program::new(&recipe, &model, case, &id, &parameters).map_err(Failure::usage)?;
    let c = match c {
        None => Elements::zeros(program.c_format(), m * n),
        Some(_) if !program.reads_c() => {
            return Err(Failure::usage(format!("`--c`: case {} of {} does not add C", case.name, recipe.name)));
        }
        Some(path) => {
            npy::read(path, program.c_format(), false)?.exactly(program.c_format(), "C").map_err(Failure::usage)?
        }
    };
    let given =
        arguments.input.iter().map(|(name, text)| Ok((name.clone(), input(case.inputs.get(name), name, text)?)));
    let given: BTreeMap<String, Elements> = given.collect::<Result<_, Failure>>()?;
    let (a, b) = (words(&a, id.a, &ONE_WORD, true), words(&b, id.b, &ONE_WORD, false));
    let (scale_a, scale_b) = (a.scales.first(), b.scales.first());
    let operands = GemmOperands { m, n, k, a: &a.words[0], b: &b.words[0], c: &c, scale_a, scale_b };
    let progress = Progress::of_one(screen, format!("{} {id}, {m}×{k} by {k}×{n}", recipe.name));
    let started = Instant::now();
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let d = program.multiply(&operands, &given, threads).map_err(Failure::of_device)?;
    let seconds = started.elapsed().as_secs_f64();
    drop(progress);
    output::replace_bytes(out, &npy::write(&d, m, n, arguments.bits))?;
    let made = Made {
        recipe: &recipe,
        case: &case.name,
        lines: program.words(&recipe),
        operation: &id,
        sizes: [m, n, k],
        inexact: [a.inexact[0], b.inexact[0]],
        d: &d,
        seconds,
    };
    output::show(&made, arguments.format, screen.unwrapped())
}

/// The operation that is named, or the only one of the recipe's cases.
fn operation(arguments: &Gemm, recipe: &Recipe, model: &Model) -> Result<OperationId, Failure> {
    let called = recipe.cases.iter().filter(|case| arguments.case.as_ref().is_none_or(|name| *name == case.name));
    let mut known: Vec<&OperationId> = called.flat_map(|case| &case.operations).collect();
    known.sort();
    known.dedup();
    let listed = || known.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let Some(op) = &arguments.op else {
        return match known[..] {
            [id] => Ok(id.clone()),
            // That there is no such case is said with the cases that there are.
            [] => recipe
                .case_for(arguments.case.as_deref(), None, (0, 0, 0))
                .map(|case| case.operations[0].clone())
                .map_err(Failure::usage),
            _ => Err(Failure::usage(format!("`--op OP` is missing: {} is for {}", recipe.name, listed()))),
        };
    };
    let id = model.operation_named(op).map_err(Failure::usage)?.id.clone();
    // A name may mean several shapes of one arithmetic.
    let alike = |known: &&&OperationId| {
        let formats = |id: &OperationId| (id.a, id.b, id.c, id.d, id.qualifiers.clone());
        **known == &id || (id.to_string() != *op && formats(known) == formats(&id))
    };
    known
        .iter()
        .find(alike)
        .map(|id| (*id).clone())
        .ok_or_else(|| Failure::usage(format!("`--op {op}`: {} is for {}", recipe.name, listed())))
}

/// What is given for an input: a number, bits in hexadecimal, or a NumPy file.
fn input(input: Option<&Input>, name: &str, text: &str) -> Result<Elements, Failure> {
    // A name that the case lacks is refused with those that it has.
    let Some(input) = input else { return Ok(Elements::zeros(mxprobe_api::Format::F32, 0)) };
    let format = input.format;
    if text.ends_with(".npy") {
        return npy::read(Path::new(text), format, false)?.exactly(format, name).map_err(Failure::usage);
    }
    let bits = if text.starts_with("0x") {
        format.parse_hex(text).map_err(|error| Failure::usage(format!("`--input {name}={text}`: {error}")))?
    } else {
        let number: f64 = text.parse().map_err(|_| {
            Failure::usage(format!(
                "`--input {name}={text}`: neither a number, bits such as 0x3f800000, nor a FILE.npy"
            ))
        })?;
        format.from_f64(number)
    };
    Ok(Elements::from_bits(format, [bits]))
}

/// A product by a recipe.
struct Made<'a> {
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
    /// Multiply-adds a second, if it took long enough.
    fn rate(&self) -> Option<f64> {
        let [m, n, k] = self.sizes;
        (self.seconds >= SHORTEST_S).then(|| (m * n * k) as f64 / self.seconds)
    }
}

impl Show for Made<'_> {
    fn page(&self, _: bool) -> Page {
        let Self { recipe, case, seconds, sizes: [m, n, k], .. } = self;
        let title = format!("{} {case}  {}", recipe.name, self.operation);
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
