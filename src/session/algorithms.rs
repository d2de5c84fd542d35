//! The verdict of `distinguish --algorithm`.

use std::time::Duration;

use dashu_int::{IBig, ops::UnsignedAbs as _};
use mxprobe_api::{Format, OperationId};

use super::distinction::{exponents, how, line, nanoseconds};
use crate::{
    plain::counted,
    proof::{
        algorithms::{Algorithm, Asked, Found, Question, Refusal, Shown, error_words},
        conditions::Conditions,
    },
    report::{
        ALGORITHMS_SCHEMA, AlgorithmDot, AlgorithmRecord, AlgorithmsReport, Block, Cell, Layout, Page, Row, Show,
        this_tool, to_json,
    },
};

/// A comparison of two algorithms over a model's operation.
#[derive(Debug)]
pub struct Algorithms<'a> {
    /// The model's name.
    pub name: &'a str,
    /// The operation.
    pub id: &'a OperationId,
    /// The algorithms.
    pub algorithms: [Algorithm; 2],
    /// The question.
    pub question: &'a Question<'a>,
    /// The range of inputs.
    pub conditions: Conditions,
    /// The result, or the results of both algorithms on a dot that was given.
    pub found: &'a Result<Found, Shown>,
    /// The time taken.
    pub took: Duration,
    /// The program's arguments, for the report.
    pub arguments: Vec<String>,
}

impl Show for Algorithms<'_> {
    fn page(&self, _: bool) -> Page {
        let [one, other] = self.algorithms.map(Algorithm::name);
        let title = format!("{one} and {other} over {} of {}", self.id, self.name);
        let mut blocks = vec![Block::Paper(vec![Block::heading(1, &title)])];
        let asked = match self.question.asked {
            Asked::Different => "differ".to_owned(),
            Asked::Worse(which) => format!("differ, {} with the larger error", self.algorithms[which].name()),
        };
        let inputs = self.conditions.words();
        match self.found {
            Ok(Found::Dot(shown, found)) => {
                blocks.push(Block::words(format!("{title} {asked}: {}", how(*found))));
                blocks.extend(self.shown(shown));
            }
            Ok(Found::None(refusal)) => {
                blocks.push(Block::words(format!(
                    "{title} never {asked}: proved for {inputs}, where results are finite"
                )));
                blocks.push(Block::Inset(vec![Block::words(why(refusal))]));
            }
            Ok(Found::Undecided(undecided)) => {
                blocks.push(Block::words(format!("{title}: not decided")));
                let tried = counted(undecided.tried, "dot");
                blocks.push(Block::Inset(vec![
                    Block::words(format!("on none of {tried} tried, of {inputs}, do they {asked}")),
                    Block::words(format!("no proof: {}", undecided.why)),
                ]));
            }
            Err(shown) => {
                let not = if self.question.holds(&shown.dot) { "" } else { "do not " };
                blocks.push(Block::words(format!("{title} {not}{asked} on this dot")));
                blocks.extend(self.shown(shown));
            }
        }
        blocks.push(Block::Gap);
        let programs = self.algorithms.iter().zip(&self.question.programs);
        let rows = programs.map(|(algorithm, program)| {
            Row::plain(vec![
                Cell::words(algorithm.name()),
                Cell::words(algorithm.about()),
                Cell::code(program.to_string()),
            ])
        });
        blocks.push(Block::laid_out(Layout::Hanging, ["algorithm", "of", "program"], rows));
        Page { title, blocks }
    }

    fn json(&self) -> String {
        to_json(&self.report())
    }
}

fn why(refusal: &Refusal) -> String {
    match refusal.refuted {
        None => format!("the question is only a circuit of {} gates that is never true", refusal.gates),
        Some([variables, clauses, conflicts, steps]) => format!(
            "the formula that they do is refuted: {variables} variables, {clauses} clauses, {conflicts} conflicts; its proof of \
             {steps} steps was checked apart from the solver"
        ),
    }
}

/// Formats an exact result as an integer multiple of a power of two.
fn exact_words(value: &IBig) -> String {
    let sign = if *value < IBig::ZERO { "-" } else { "" };
    format!("{sign}{}", error_words(&value.clone().unsigned_abs()))
}

impl Algorithms<'_> {
    /// The verdict as a report.
    #[must_use]
    pub fn report(&self) -> AlgorithmsReport {
        let record = |at: usize| AlgorithmRecord {
            name: self.algorithms[at].name().to_owned(),
            program: self.question.programs[at].to_string(),
        };
        let (verdict, dot, reason) = match self.found {
            Ok(Found::Dot(shown, found)) => ("found", Some(self.dot(shown)), Some(how(*found))),
            Ok(Found::None(refusal)) => ("none", None, Some(why(refusal))),
            Ok(Found::Undecided(undecided)) => ("undecided", None, Some(undecided.why.clone())),
            Err(shown) => {
                (if self.question.holds(&shown.dot) { "found" } else { "not-here" }, Some(self.dot(shown)), None)
            }
        };
        AlgorithmsReport {
            schema: ALGORITHMS_SCHEMA.into(),
            tool: this_tool(&self.arguments),
            model: self.name.to_owned(),
            operation: self.id.clone(),
            inputs: self.question.of_dots.clone(),
            exponents: exponents(&self.conditions),
            algorithms: [record(0), record(1)],
            worse: match self.question.asked {
                Asked::Different => None,
                Asked::Worse(which) => Some(self.algorithms[which].name().to_owned()),
            },
            verdict: verdict.to_owned(),
            dot,
            reason,
            duration_ns: nanoseconds(self.took),
        }
    }

    fn exact(&self, shown: &Shown) -> String {
        self.question.exact(&shown.dot).as_ref().map_or_else(String::new, exact_words)
    }

    fn dot(&self, shown: &Shown) -> AlgorithmDot {
        let of = &self.question.of_dots;
        let hex = |bits: &[u64]| bits.iter().map(|bits| of.a.hex(*bits)).collect();
        AlgorithmDot {
            a: hex(&shown.dot.a),
            b: hex(&shown.dot.b),
            c: of.c.hex(shown.dot.c),
            exact: self.exact(shown),
            d: shown.outcomes.each_ref().map(|outcome| Format::F32.hex(outcome.bits)),
            errors: shown.outcomes.each_ref().map(|outcome| error_words(&outcome.error)),
        }
    }

    /// Shows the dot in bits and values, the exact result, and each algorithm's result and error.
    fn shown(&self, shown: &Shown) -> Vec<Block> {
        let of = &self.question.of_dots;
        let value = |bits: u64| format!("{}", of.a.to_f64(bits));
        let pairs = shown.dot.a.iter().zip(&shown.dot.b).filter(|(a, b)| (**a, **b) != (0, 0));
        let mut terms: Vec<String> = pairs.map(|(a, b)| format!("({}) × ({})", value(*a), value(*b))).collect();
        terms.push(of.c.to_f64(shown.dot.c).to_string());
        let mut rows =
            vec![Row::plain(vec![Cell::words("exact"), Cell::code(self.exact(shown)), Cell::words(terms.join(" + "))])];
        for (algorithm, outcome) in self.algorithms.iter().zip(&shown.outcomes) {
            let result = format!("d = {} = {}", Format::F32.hex(outcome.bits), Format::F32.to_f64(outcome.bits));
            let error = format!("off by {}", error_words(&outcome.error));
            rows.push(Row::plain(vec![Cell::words(algorithm.name()), Cell::code(result), Cell::words(error)]));
        }
        vec![
            Block::Gap,
            Block::Lines(vec![line(of, &shown.dot)]),
            Block::laid_out(Layout::Bare, ["algorithm", "result", "error"], rows),
        ]
    }
}
