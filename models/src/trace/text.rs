//! A trace for people: one table for each fused addition.

use std::fmt::Write as _;

use mxprobe_api::{Format, OperationId};

use super::Trace;
use crate::{
    adder::{Adder, Output},
    exact::{Dot, Exact, Step, Value},
    model::Model,
    parameters::{Choices, counted_bits},
    tree::{PlanNode, Term},
};

/// A term in the table of an addition.
struct Row {
    term: Term,
    operands: String,
    value: Value,
    exponent: Option<i32>,
    kept: Option<Exact>,
    ignored: bool,
}

impl Trace {
    /// The trace in words: for each addition its terms with their exact values and exponents, the grid, the kept and
    /// lost part of each term, the sum, and the rounded result. Values are exact, in hexadecimal as C's `%a` writes
    /// them; zero terms share a line.
    ///
    /// ```
    /// let model = mxprobe_models::load("v100")?;
    /// let id = "mma.m8n8k4.f32.f16.f16.f32".parse()?;
    /// let dot = mxprobe_models::Dot { a: &[0x3c00; 4], b: &[0x3c00; 4], c: 0, scales: None };
    /// let trace = mxprobe_models::Trace::of(&model, &id, dot).expect("it has the operation");
    /// assert!(trace.text(&model, &id, dot).contains("sum 0x1p+2"));
    /// # Ok::<(), mxprobe_api::Error>(())
    /// ```
    ///
    /// # Panics
    /// If the trace does not belong to this dot and model.
    #[must_use]
    pub fn text(&self, model: &Model, id: &OperationId, dot: Dot<'_>) -> String {
        let (_, plan) = model.plan(id).expect("the trace is one of this model");
        let mut text = String::new();
        let mut starts: Vec<usize> = Vec::new();
        for (at, step) in self.steps.iter().enumerate() {
            if matches!(step, Step::Addition { .. }) {
                starts.push(at);
            }
        }
        for (number, from) in starts.iter().enumerate() {
            let to = starts.get(number + 1).copied().unwrap_or(self.steps.len());
            let Step::Addition { node, adder } = &self.steps[*from] else { continue };
            let adder = &model.adders[*adder];
            let _ = writeln!(text, "n{node} = {}({})", adder.name, sum_of(&plan.nodes[*node]));
            let scene = Scene { id, dot, adder };
            scene.addition(&self.steps[from + 1..to], &mut text);
        }
        let _ = writeln!(text, "d = {} = {}", id.d.hex(self.result), shown(id.d, self.result));
        text
    }
}

/// The context of the steps of one addition.
struct Scene<'a> {
    id: &'a OperationId,
    dot: Dot<'a>,
    adder: &'a Adder,
}

impl Scene<'_> {
    fn addition(&self, steps: &[Step], text: &mut String) {
        let mut rows: Vec<Row> = Vec::new();
        let mut after = String::new();
        let mut special = false;
        for step in steps {
            match step {
                Step::Addition { .. } => {}
                Step::Term { term, value, exponent } => rows.push(Row {
                    term: *term,
                    operands: self.operands(*term),
                    value: value.clone(),
                    exponent: *exponent,
                    kept: None,
                    ignored: false,
                }),
                Step::Special => {
                    special = true;
                    let _ = writeln!(after, "  a NaN or an infinity decides");
                }
                Step::Grid { unit, exponent: Some(exponent) } => {
                    let bits = counted_bits(exponent - unit);
                    let below = self.adder.below.choice().words;
                    let _ = writeln!(
                        after,
                        "  grid 2^{unit}: {bits} below the largest exponent, {exponent}; the rest is {below}"
                    );
                }
                Step::Grid { exponent: None, .. } => {
                    let _ = writeln!(after, "  no grid: every bit is kept");
                }
                Step::Ignored { term } => {
                    if let Some(row) = rows.iter_mut().find(|row| row.term == *term && row.kept.is_none()) {
                        row.ignored = true;
                        row.kept = Some(Exact::decode(Format::F32, 0).expect("+0 is finite"));
                    }
                }
                Step::Aligned { term, kept } => {
                    if let Some(row) = rows.iter_mut().find(|row| row.term == *term && row.kept.is_none()) {
                        row.kept = Some(kept.clone());
                    }
                }
                Step::Sum(sum) => {
                    let _ = writeln!(after, "  sum {sum}");
                }
                Step::Wrapped { carry_bits, value } => {
                    let _ = writeln!(after, "  within {} {value}", counted(*carry_bits, "carry bit"));
                }
                Step::Scaled(value) => {
                    let _ = writeln!(after, "  times the block's scales {value}");
                }
                Step::Cut(value) => {
                    let bits = self.adder.normalised_fraction_bits.unwrap_or(0);
                    let _ =
                        writeln!(after, "  normalised, {} after the leading one kept: {value}", counted(bits, "bit"));
                }
                Step::Unrounded(value) => {
                    let _ = writeln!(after, "  handed on unrounded: {value}");
                }
                Step::Rounded { format, bits } => {
                    let how = match self.adder.output {
                        Output::Float { rounding, .. } if !special => {
                            format!("rounded {} to ", rounding.choice().words)
                        }
                        _ => String::new(),
                    };
                    let _ = writeln!(after, "  {how}{format}: {} = {}", format.hex(*bits), shown(*format, *bits));
                }
            }
        }
        table(&rows, text);
        *text += &after;
    }

    fn operands(&self, term: Term) -> String {
        let Term::Product(k) = term else {
            return if term == Term::C { self.id.c.hex(self.dot.c) } else { String::new() };
        };
        let mut words = format!("{} × {}", self.id.a.hex(self.dot.a[k]), self.id.b.hex(self.dot.b[k]));
        if let (Some(scale), Some((a, b))) = (self.id.block_scale(), self.dot.scales) {
            let block = k / scale.block;
            let _ = write!(words, " × {} × {}", scale.format.hex(a[block]), scale.format.hex(b[block]));
        }
        words
    }
}

/// Writes the nonzero terms, one per line, and the zeros in one line.
fn table(rows: &[Row], text: &mut String) {
    let is_zero = |row: &Row| matches!(&row.value, Value::Finite(exact) if exact.is_zero());
    let lines: Vec<[String; 6]> = rows
        .iter()
        .filter(|row| !is_zero(row) || row.kept.as_ref().is_some_and(|kept| !kept.is_zero()))
        .map(|row| {
            let exponent = row.exponent.map_or_else(String::new, |exponent| format!("exponent {exponent}"));
            let kept = row.kept.as_ref().map_or_else(String::new, |kept| format!("kept {kept}"));
            let lost = match (&row.value, &row.kept) {
                (Value::Finite(value), Some(kept)) if value != kept => match value.lost(kept) {
                    Some(lost) if lost.is_negative() => format!("grew by {lost}").replace('-', ""),
                    Some(lost) => format!("lost {lost}"),
                    None => "changed".to_owned(),
                },
                _ => String::new(),
            };
            let lost = if row.ignored { format!("{lost}, too small to count") } else { lost };
            [row.term.to_string(), row.operands.clone(), row.value.to_string(), exponent, kept, lost]
        })
        .collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 6] = std::array::from_fn(width);
    for line in &lines {
        let mut words = String::new();
        for (word, width) in line.iter().zip(widths).filter(|(_, width)| *width > 0) {
            let _ = write!(words, "  {word:width$}");
        }
        let _ = writeln!(text, "{}", words.trim_end());
    }
    let zeros: Vec<Term> = rows.iter().filter(|row| is_zero(row)).map(|row| row.term).collect();
    if !zeros.is_empty() {
        let are = if zeros.len() == 1 { "is zero" } else { "are zeros" };
        let _ = writeln!(text, "  {} {are}", listed(&zeros, ", "));
    }
}

/// Formats a sum as `p0…p7 + c`.
fn sum_of(node: &PlanNode) -> String {
    listed(&node.terms, " + ")
}

/// Lists terms; each run of consecutive products is written once.
fn listed(terms: &[Term], between: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut at = 0;
    while at < terms.len() {
        let mut end = at;
        while let (Some(Term::Product(this)), Some(Term::Product(next))) = (terms.get(end), terms.get(end + 1))
            && *next == this + 1
        {
            end += 1;
        }
        words.push(if end > at + 1 { format!("{}…{}", terms[at], terms[end]) } else { terms[at].to_string() });
        at = if end > at + 1 { end + 1 } else { at + 1 };
    }
    words.join(between)
}

/// Bits as a number: the exact value, or decimal if that is short.
fn shown(format: Format, bits: u64) -> String {
    match Exact::decode(format, bits) {
        None => format!("{}", format.to_f64(bits)),
        Some(exact) => {
            let decimal = format.to_f64(bits).to_string();
            if decimal.len() <= 12 { decimal } else { exact.to_string() }
        }
    }
}

fn counted(count: u32, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_products_are_written_once() {
        let terms = [Term::C, Term::Product(0), Term::Product(1), Term::Product(2), Term::Product(4), Term::Product(5)];
        assert_eq!(listed(&terms, " + "), "c + p0…p2 + p4 + p5");
        assert_eq!(listed(&[], " + "), "");
    }
}
