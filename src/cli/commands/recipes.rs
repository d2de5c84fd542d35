//! `compare` and `distinguish` for recipes: the differences between two, and a dot that shows them.

use std::time::{Duration, Instant};

use crate::report::{Block, Page, Show, to_json};
use mxprobe_api::{Elements, OperationId};
use mxprobe_models::recipe::{Side, Verdict, decide, differences};
use serde_json::{Value, json};

use crate::cli::{
    arguments::{Format, Screen},
    choose::recipes::{Chosen, PREFIX, chosen},
    failure::{Failure, INCOMPLETE, NO, Outcome},
    io::{output, progress::Progress},
};

/// The operation and inputs on which two recipes are compared.
pub(super) struct Question<'a> {
    pub(super) op: Option<&'a str>,
    /// Number of products of a dot.
    pub(super) k: usize,
    pub(super) seed: u64,
    pub(super) budget: Duration,
}

/// The default number of products of a dot.
pub(super) const USUAL_K: usize = 512;

/// How long `compare` draws dots.
pub(super) const COMPARE_BUDGET: Duration = Duration::from_secs(20);

/// Whether an argument names a recipe.
pub(super) fn is_recipe(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// Compares two recipes: 0 if they are equal, 1 if they differ, 4 if undecided.
pub(super) fn compare(names: &[String], question: &Question<'_>, format: Format, screen: Screen) -> Outcome {
    if let Some(other) = names.iter().find(|name| !is_recipe(name)) {
        return Err(Failure::usage(format!("`{other}` is not a recipe, but recipes are only compared with recipes"))
            .help(format!("`{PREFIX}NAME[@CASE][,slices=4]` names one")));
    }
    let [one, other] = names else {
        return Err(Failure::usage(format!("{} recipes are given: a comparison takes two", names.len())));
    };
    let (one, other) = (chosen(one)?, chosen(other)?);
    let (id, theirs) = operations(&one, &other, question.op)?;
    let shape = (1, 1, question.k);
    let (mine_program, their_program) = (one.program(&id, shape)?, other.program(&theirs, shape)?);
    let sides =
        [Side { recipe: &one.recipe, program: &mine_program }, Side { recipe: &other.recipe, program: &their_program }];
    let progress = Progress::of_one(screen, format!("comparing {} and {} on {id}", one.name, other.name));
    let started = Instant::now();
    let verdict = decide(sides[0], sides[1], question.k, question.seed, question.budget).map_err(Failure::of_device)?;
    let took = started.elapsed();
    drop(progress);
    let code = match verdict {
        Verdict::Equal => 0,
        Verdict::Differ(_) => NO,
        Verdict::Open { .. } => INCOMPLETE,
    };
    let found = RecipeDifferences {
        names: [&one.name, &other.name],
        id: &id,
        k: question.k,
        differences: differences(sides[0], sides[1]),
        verdict: &verdict,
        took,
    };
    output::show(&found, format, screen.for_lines())?;
    Ok(code)
}

/// Returns the named operation, or the first that both recipes support; in the second recipe, of another shape or
/// family if need be.
fn operations(one: &Chosen, other: &Chosen, op: Option<&str>) -> Result<(OperationId, OperationId), Failure> {
    if let Some(op) = op {
        let id = one.operation(Some(op))?;
        return Ok((id.clone(), counterpart(other, &id)?));
    }
    let shared = one.operations().into_iter().find_map(|id| Some((id.clone(), counterpart(other, id).ok()?)));
    shared.ok_or_else(|| {
        Failure::usage(format!("{} and {} are for operations of different formats", one.name, other.name))
    })
}

/// Returns the same operation of another recipe, or one that multiplies the same formats.
fn counterpart(other: &Chosen, id: &OperationId) -> Result<OperationId, Failure> {
    let known = other.operations();
    let alike = |known: &&&OperationId| (known.a, known.b) == (id.a, id.b);
    let found = known.iter().find(|known| **known == id).or_else(|| known.iter().find(alike));
    found.map(|id| (*id).clone()).ok_or_else(|| {
        let known = known.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        Failure::usage(format!("{} has no operation on {} and {}; it is for {known}", other.name, id.a, id.b))
    })
}

/// The results for two recipes.
struct RecipeDifferences<'a> {
    names: [&'a str; 2],
    id: &'a OperationId,
    k: usize,
    differences: Vec<String>,
    verdict: &'a Verdict,
    took: Duration,
}

/// Lists the elements of a dot that are not +0: their k and bits.
fn elements(elements: &Elements) -> Vec<(usize, String)> {
    let format = elements.format();
    elements.iter().enumerate().filter(|(_, bits)| *bits != 0).map(|(k, bits)| (k, format.hex(bits))).collect()
}

impl Show for RecipeDifferences<'_> {
    fn page(&self, _: bool) -> Page {
        let title = format!("{} and {}, {} products of {}", self.names[0], self.names[1], self.k, self.id);
        let mut lines = Vec::new();
        match &self.differences[..] {
            [] => lines.push("no difference in unit, levels or what is stored".to_owned()),
            [same, rest @ ..] if same == "same unit" => {
                lines.push(format!("same unit; the difference is {}", rest.join("; and ")));
            }
            several => lines.push(format!("they differ in {}", several.join("; and "))),
        }
        match self.verdict {
            Verdict::Equal => lines.push(format!(
                "equal for every input at k = {}: the same additions of the same k in the same order",
                self.k
            )),
            Verdict::Differ(witness) => {
                let list = |name: &str, of: &Elements| {
                    let words: Vec<String> =
                        elements(of).into_iter().map(|(k, bits)| format!("{name}[{k}] {bits}")).collect();
                    words.join(", ")
                };
                lines.push("a dot on which they differ; what is not named is +0:".to_owned());
                lines.push(format!("  {}", list("a", &witness.a)));
                lines.push(format!("  {}", list("b", &witness.b)));
                if witness.c != 0 {
                    lines.push(format!("  c {}", mxprobe_api::Format::F32.hex(witness.c)));
                }
                for (name, (format, bits)) in self.names.iter().zip(witness.d) {
                    lines.push(format!("  {name}: {} = {:e}", format.hex(bits), format.to_f64(bits)));
                }
            }
            Verdict::Open { dots } => {
                lines.push(format!("open: {dots} dots give the same bits, but the recipes are not the same"))
            }
        }
        lines.push(format!("{:.1} s", self.took.as_secs_f64()));
        let inset = Block::Inset(lines.into_iter().map(Block::words).collect());
        Page { blocks: Block::titled(1, &title).into_iter().chain([inset]).collect(), title }
    }

    fn json(&self) -> String {
        let (verdict, witness) = match self.verdict {
            Verdict::Equal => ("equal", Value::Null),
            Verdict::Open { .. } => ("open", Value::Null),
            Verdict::Differ(witness) => {
                let all = |of: &Elements| of.iter().map(|bits| of.format().hex(bits)).collect::<Vec<_>>();
                let results = witness.d.map(|(format, bits)| json!({"format": format, "bits": format.hex(bits)}));
                let c = mxprobe_api::Format::F32.hex(witness.c);
                ("differ", json!({"a": all(&witness.a), "b": all(&witness.b), "c_f32": c, "d": results}))
            }
        };
        to_json(&json!({
            "recipes": self.names,
            "operation": self.id,
            "k": self.k,
            "verdict": verdict,
            "differences": self.differences,
            "witness": witness,
            "duration_ns": u64::try_from(self.took.as_nanos()).unwrap_or(u64::MAX),
        }))
    }
}
