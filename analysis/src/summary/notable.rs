//! Notable facts: rules over findings. The rules are data, in `notable.toml`.

use std::{collections::BTreeSet, sync::LazyLock};

use mxprobe_api::{Format, OperationId};
use serde::Deserialize;
use serde_json::Value;

use super::class;
use crate::{
    contained,
    in_order::InOrder,
    record::{BitsKept, Notable, OperationReport, Summary, SummaryRow},
};

#[derive(Deserialize)]
struct Rules {
    rule: Vec<Rule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    name: String,
    probe: String,
    #[serde(default)]
    is: Vec<Value>,
    part: Option<String>,
    #[serde(default)]
    is_not_zero: bool,
    short_by: Option<u32>,
    text: String,
    headline: Option<String>,
    headline_of: Option<String>,
}

static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| contained::table::<Rules>(include_str!("notable.toml")).rule);

/// Returns the notable facts about these operations, which `rows` summarise.
pub(super) fn notable(operations: &[OperationReport], rows: &[SummaryRow]) -> Vec<Notable> {
    RULES.iter().flat_map(|rule| rule.of(operations, rows)).collect()
}

/// Placeholders in a text by name, with their values.
type Filled = Vec<(&'static str, String)>;

/// The maximum number of sentences in a headline.
const SENTENCES: usize = 5;

/// Says how devices differ, in a few sentences from rules that hold for some devices but not for all.
pub fn headline(devices: &[(&str, &Summary)]) -> Vec<String> {
    RULES.iter().flat_map(|rule| rule.sentences(devices)).take(SENTENCES).collect()
}

/// Joins names with commas, the last with `and`.
fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

impl Rule {
    /// Returns the sentences of this rule about the devices for which it holds, if it does not hold for all.
    fn sentences(&self, devices: &[(&str, &Summary)]) -> Vec<String> {
        let is_meant = |fact: &&Notable| {
            let of = |id: &OperationId| self.headline_of.as_ref().is_none_or(|result| id.d.name() == result);
            fact.rule == self.name && fact.operations.iter().any(of)
        };
        let facts: Vec<(&str, &Notable)> = devices
            .iter()
            .flat_map(|(name, summary)| summary.notable.iter().filter(is_meant).map(|fact| (*name, fact)))
            .collect();
        let has = |name: &str| facts.iter().any(|(known, _)| *known == name);
        let (some, others): (Vec<&str>, Vec<&str>) = devices.iter().map(|(name, _)| *name).partition(|name| has(name));
        if some.is_empty() || others.is_empty() {
            return Vec::new();
        }
        if let Some(text) = &self.headline {
            return vec![text.replace("{devices}", &listed(&some)).replace("{others}", &listed(&others))];
        }
        let mut texts: Vec<(&str, Vec<&str>)> = Vec::new();
        for (name, fact) in facts {
            match texts.iter_mut().find(|(text, _)| *text == fact.text) {
                Some((_, names)) => names.push(name),
                None => texts.push((&fact.text, vec![name])),
            }
        }
        texts.into_iter().map(|(text, names)| format!("{}: {text}", listed(&names))).collect()
    }

    /// Returns one fact for each notable value.
    fn of(&self, operations: &[OperationReport], rows: &[SummaryRow]) -> Vec<Notable> {
        let mut facts: Vec<(Filled, Vec<OperationId>)> = Vec::new();
        for report in operations {
            let id = &report.operation.id;
            let Some(row) = rows.iter().find(|row| row.operations.contains(id)) else { continue };
            // An operation that requests another rounding gets it, which is not notable.
            if class::modes(id) != class::modes(&row.operations[0]) {
                continue;
            }
            let value = report.finding(&self.probe).and_then(|finding| finding.value.as_ref());
            let Some(words) = value.and_then(|value| self.shown(value, id.d)) else { continue };
            match facts.iter_mut().find(|(known, _)| *known == words) {
                Some((_, ids)) => ids.push(id.clone()),
                None => facts.push((words, vec![id.clone()])),
            }
        }
        let fact = |(words, operations): (Filled, Vec<OperationId>)| {
            let mut text = self.text.replace("{subject}", &subject(rows, &operations));
            for (name, word) in &words {
                text = text.replace(&format!("{{{name}}}"), word);
            }
            Notable { rule: self.name.clone(), probe: self.probe.clone(), text, operations }
        };
        facts.into_iter().map(fact).collect()
    }

    /// Returns the placeholder values if a value is notable.
    fn shown(&self, value: &Value, d: Format) -> Option<Filled> {
        if let Some(least) = self.short_by {
            let (bits, all) = (u32::try_from(value.as_u64()?).ok()?, d.fraction_bits());
            let words = [("bits", bits), ("all_bits", bits + 1), ("result_bits", all)];
            return (bits + least <= all).then(|| words.map(|(name, count)| (name, count.to_string())).into());
        }
        let value = match &self.part {
            Some(part) => value.get(part)?,
            None => value,
        };
        if self.is_not_zero {
            let bits = d.parse_hex(value.as_str()?).ok()?;
            let number = d.to_f64(bits);
            return (number != 0.0).then(|| vec![("value", format!("{number:.2e}"))]);
        }
        self.is.contains(value).then(Vec::new)
    }
}

/// Describes the sums of operations: `f16 bf16→f32, fp8→f32 by wgmma`.
fn subject(rows: &[SummaryRow], operations: &[OperationId]) -> String {
    let has = |cell: &SummaryRow| cell.operations.iter().any(|id| operations.contains(id));
    // Minor shapes are named only if nothing else is covered, and are not counted against the others.
    let major = rows.iter().any(|row| !row.is_minor() && has(row));
    let cells: Vec<SummaryRow> = rows
        .iter()
        .filter(|row| !(major && row.is_minor()))
        .flat_map(|row| row.inputs.iter().map(|kind| of_kind(row, kind)))
        .collect();
    let floats = || cells.iter().filter(|cell| !cell.operations[0].is_integer());
    if floats().count() > 1 && floats().all(has) {
        return "every sum".to_owned();
    }
    let mut results: Vec<&str> = Vec::new();
    for cell in cells.iter().filter(|cell| has(cell)) {
        if !results.contains(&cell.result.as_str()) {
            results.push(&cell.result);
        }
    }
    let mut parts = Vec::new();
    for result in results {
        let of_result = || cells.iter().filter(move |cell| cell.result == result);
        if of_result().count() > 1 && of_result().all(has) {
            parts.push(format!("every {result} result"));
            continue;
        }
        // Inputs, with the families if not every operation with these inputs is covered.
        let mut said: Vec<(Vec<String>, String)> = Vec::new();
        let kinds: Vec<&Vec<String>> = of_result().filter(|cell| has(cell)).map(|cell| &cell.inputs).collect();
        let mut seen = BTreeSet::new();
        for inputs in kinds.into_iter().filter(|inputs| seen.insert(*inputs)) {
            let alike = || of_result().filter(|cell| cell.inputs == *inputs);
            let by =
                if alike().all(has) { String::new() } else { format!(" by {}", by(alike().filter(|cell| has(cell)))) };
            match said.iter_mut().find(|(_, known)| *known == by) {
                Some((all, _)) => {
                    all.extend(inputs.iter().filter(|kind| !all.contains(kind)).cloned().collect::<Vec<_>>())
                }
                None => said.push((inputs.clone(), by)),
            }
        }
        parts.extend(said.into_iter().map(|(mut inputs, by)| {
            inputs.order_by_key(|kind| class::place(kind));
            format!("{}→{result}{by}", class::label(&inputs))
        }));
    }
    parts.join(", ")
}

/// Restricts a row to the operations that take inputs of one kind.
fn of_kind(row: &SummaryRow, kind: &String) -> SummaryRow {
    let takes = |id: &&OperationId| class::inputs(id).contains(kind);
    let operations = row.operations.iter().filter(takes).cloned().collect();
    SummaryRow { inputs: vec![kind.clone()], operations, ..row.clone() }
}

/// Lists the families of cells, with the shape if a cell has one.
fn by<'a>(cells: impl Iterator<Item = &'a SummaryRow>) -> String {
    let mut names: Vec<String> = Vec::new();
    for cell in cells {
        let families = cell.families.join(" ");
        let name = cell.shape.as_ref().map_or_else(|| families.clone(), |shape| format!("{families} {shape}"));
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(", ")
}

impl SummaryRow {
    /// Whether integers are added.
    #[must_use]
    pub fn is_integer(&self) -> bool {
        self.operations.first().is_some_and(OperationId::is_integer)
    }

    /// The inputs and the result: `f16 bf16→f32`.
    #[must_use]
    pub fn sums(&self) -> String {
        format!("{}→{}", class::label(&self.inputs), self.result)
    }

    /// Whether fewer bits are kept than the result has.
    #[must_use]
    pub fn is_short(&self) -> bool {
        let result = Format::named(&self.result).map(Format::fraction_bits);
        matches!((self.bits_kept, result), (Some(BitsKept::Bits(kept)), Ok(bits)) if kept < bits)
    }
}
