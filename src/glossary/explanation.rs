//! The meanings of names, as `explain` shows them.

use super::{Entry, Explanation, Kind};
use crate::report::{Block, Cell, Layout, Page, Row, Show, Tone, to_json, wrap};

/// An explanation, in full or in brief.
#[derive(Clone, Copy, Debug)]
pub struct Explained<'a> {
    /// The explanation.
    pub found: &'a Explanation,
    /// Whether to show only the questions of probes and the names of other entries.
    pub brief: bool,
}

impl Show for Explained<'_> {
    fn page(&self, _: bool) -> Page {
        let found = self.found;
        let title = found.name.clone().unwrap_or_else(|| "What the words of a report mean".to_owned());
        let mut blocks = vec![Block::Paper(vec![Block::heading(1, &title)])];
        blocks.extend(if self.brief { names(&found.entries) } else { entries(&found.entries) });
        for model in &found.models {
            blocks.push(Block::Paper(vec![Block::heading(2, format!("Model {}", model.name))]));
            blocks.push(Block::Screen(outline(&model.lines)));
            blocks.push(Block::Paper(vec![Block::Lines(model.lines.clone())]));
        }
        if !found.fields.is_empty() {
            let rows = found.fields.iter();
            let rows = rows.map(|found| Row::plain(vec![Cell::code(&found.field), Cell::words(&found.description)]));
            blocks.push(Block::Screen(vec![Block::laid_out(Layout::Hanging, ["field", "description"], rows)]));
            let rows = found.fields.iter();
            let rows = rows.map(|found| Row::plain(vec![Cell::code(&found.field), Cell::marked(&found.description)]));
            blocks.push(Block::Paper(vec![Block::table(["field", "what it is for"], rows)]));
        }
        for (number, trace) in found.traces.iter().enumerate() {
            let heading = format!("{} on {}, dot {}", trace.model, trace.operation, number + 1);
            blocks.push(Block::Paper(vec![Block::heading(2, heading)]));
            blocks.extend((number > 0).then_some(Block::Gap));
            blocks.push(Block::Lines(trace.lines.clone()));
        }
        Page { title, blocks }
    }

    fn json(&self) -> String {
        to_json(self.found)
    }
}

/// Lines whose indents, of two columns a step, say what belongs to what: each is wrapped below its own beginning.
fn outline(lines: &[String]) -> Vec<Block> {
    let block = |line: &String| match line.trim_start() {
        "" => Block::Gap,
        words => {
            let steps = (line.len() - words.len()) / 2;
            let first = Block::List(vec![(Tone::Plain, words.to_owned())]);
            (0..steps).fold(first, |inner, _| Block::Inset(vec![inner]))
        }
    };
    lines.iter().map(block).collect()
}

/// Entries in full, with a heading for each kind.
fn entries(entries: &[Entry]) -> Vec<Block> {
    let mut blocks = Vec::new();
    for (at, entry) in entries.iter().enumerate() {
        if at == 0 || entries[at - 1].kind != entry.kind {
            blocks.push(Block::Paper(vec![Block::heading(2, title(entry.kind))]));
        }
        blocks.push(Block::Screen(on_screen(entry)));
        blocks.push(Block::Paper(on_paper(entry)));
    }
    blocks
}

fn on_screen(entry: &Entry) -> Vec<Block> {
    let fact = |name: &str, words: &str| Block::Facts(vec![(name.to_owned(), words.to_owned())]);
    let answers = entry.answers.iter().map(|(value, meaning)| Block::words(format!("{value}: {meaning}")));
    let inset = vec![
        Block::words(&entry.about),
        fact("how", &entry.how),
        Block::Inset(answers.collect()),
        fact("source", &entry.source),
    ];
    vec![Block::words(format!("{} ({})", entry.name, entry.kind.name())), Block::Inset(inset)]
}

fn on_paper(entry: &Entry) -> Vec<Block> {
    let mut blocks = vec![Block::heading(3, &entry.name), Block::Marked(entry.about.clone())];
    blocks.push(Block::Marked(format!("How: {}", entry.how)));
    if !entry.answers.is_empty() {
        let rows = entry.answers.iter();
        let rows = rows.map(|(value, meaning)| Row::plain(vec![Cell::marked(value), Cell::marked(meaning)]));
        blocks.push(Block::table(["answer", "what it means"], rows));
    }
    blocks.push(Block::Marked(format!("Source: {}", entry.source)));
    blocks
}

/// The width of lists of names on a terminal.
const WIDTH: usize = 76;

/// Probes with their questions, then the names of all other entries.
fn names(entries: &[Entry]) -> Vec<Block> {
    let of = |kind: Kind| entries.iter().filter(move |entry| entry.kind == kind);
    let questions = of(Kind::Probe).map(|entry| Row::plain(vec![Cell::code(&entry.name), Cell::words(&entry.about)]));
    let mut blocks = vec![Block::laid_out(Layout::Hanging, ["probe", "question"], questions)];
    for kind in [Kind::Format, Kind::Family, Kind::Field, Kind::Term] {
        // Terms contain spaces.
        let between = if kind == Kind::Term { ", " } else { " " };
        let names = of(kind).map(|entry| entry.name.as_str()).collect::<Vec<_>>().join(between);
        if !names.is_empty() {
            let head = title(kind);
            blocks.push(Block::Paper(vec![Block::heading(2, head), Block::words(&names)]));
            let lines = Block::Inset(vec![Block::Lines(wrap(&names, WIDTH))]);
            blocks.push(Block::Screen(vec![Block::Gap, Block::words(head.to_lowercase()), lines]));
        }
    }
    blocks
}

fn title(kind: Kind) -> &'static str {
    match kind {
        Kind::Probe => "Probes",
        Kind::Format => "Formats",
        Kind::Number => "Numbers",
        Kind::Family => "Families of operations",
        Kind::Field => "Fields of the report",
        Kind::Operation => "Operations",
        Kind::Term => "Terms",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        glossary::{EXPLANATION_SCHEMA, list::entries},
        report::{Form, this_tool},
    };

    #[test]
    fn every_entry_has_a_heading_below_that_of_its_kind() {
        let tool = this_tool(&[]);
        let entries = entries();
        let found = Explanation {
            schema: EXPLANATION_SCHEMA.into(),
            tool,
            name: None,
            entries: entries.clone(),
            models: Vec::new(),
            fields: Vec::new(),
            traces: Vec::new(),
        };
        let text = Form::Markdown { evidence: false }.text(&Explained { found: &found, brief: false });
        for entry in &entries {
            let name = entry.name.replace('*', r"\*");
            assert!(text.contains(&format!("\n### {name}\n")), "{}", entry.name);
        }
        let headings: Vec<&str> = text.lines().filter(|line| line.starts_with("## ")).collect();
        assert_eq!(
            headings,
            ["## Probes", "## Formats", "## Families of operations", "## Fields of the report", "## Terms"]
        );
        assert_eq!(text.matches("\nSource: ").count(), entries.len());
    }
}
