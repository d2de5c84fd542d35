//! The output of `fleet`: kinds and classes, deviating and unhealthy devices, and changes.

use super::{
    csv::Rows,
    form::Show,
    page::{Block, Cell, Page, Row, Tone},
};
use crate::{
    plain::counted,
    report::{Counted, Drift, FleetClass, FleetKind, FleetReport, Health, to_json},
};

/// The fields of the rows.
const COLUMNS: &str = "schema tool_version node selector backend fingerprint driver class verdict";
/// The maximum number of a class's differences shown to people; the JSON has all.
const SHOWN: usize = 12;
/// The most letters of an answer that are shown to people.
const WIDEST: usize = 32;
/// The maximum number of a class's machines shown to people.
const NODES: usize = 16;

impl Show for FleetReport {
    fn page(&self, _: bool) -> Page {
        let title = format!(
            "{}, {} and {}",
            counted(self.nodes, "node"),
            counted(self.reports, "report"),
            counted(self.screens, "screen")
        );
        let mut blocks: Vec<Block> = Block::titled(1, &title).into();
        if !self.unhealthy.is_empty() {
            let head = ["node", "device", "verdict", "screened", "what"];
            let rows = self.unhealthy.iter().map(|found| {
                let what =
                    if found.what.is_empty() { "nothing was compared".to_owned() } else { found.what.join("; ") };
                let cells = [&found.node, &found.selector, found.verdict.name(), &found.start, &what];
                let tone = if found.verdict == Health::Wrong { Tone::Failure } else { Tone::Warning };
                Row { tone, ..Row::plain(cells.map(Cell::words).into()) }
            });
            blocks.push(Block::Gap);
            blocks.extend(Block::titled(2, counted(self.unhealthy.len() as u64, "unhealthy device")));
            blocks.push(Block::Inset(vec![Block::table(head, rows)]));
        }
        for kind in &self.kinds {
            blocks.push(Block::Gap);
            blocks.extend(of_kind(kind));
        }
        blocks.extend(self.since.as_ref().into_iter().flat_map(of_drift));
        if !self.skipped.is_empty() {
            blocks.push(Block::Gap);
            blocks.extend(Block::titled(2, counted(self.skipped.len() as u64, "file") + " not used"));
            let words = self.skipped.iter().take(SHOWN).map(|file| format!("{}: {}", file.path, file.reason));
            blocks.push(Block::Inset(vec![Block::list(words)]));
        }
        Page { title, blocks }
    }

    fn rows(&self) -> Rows {
        let rows = self.members.iter().map(|member| {
            vec![
                self.schema.clone(),
                self.tool.version.clone(),
                member.node.clone(),
                member.selector.clone(),
                member.backend.clone(),
                member.fingerprint.clone(),
                member.driver.clone().unwrap_or_default(),
                member.class.clone().unwrap_or_default(),
                member.verdict.map(|verdict| verdict.name().to_owned()).unwrap_or_default(),
            ]
        });
        Rows::new(COLUMNS, rows.collect())
    }

    fn json(&self) -> String {
        to_json(self)
    }
}

fn list(names: &[Counted]) -> String {
    names.iter().map(|of| format!("{} ({})", of.name, of.count)).collect::<Vec<_>>().join(", ")
}

fn of_kind(kind: &FleetKind) -> Vec<Block> {
    let title = format!("{} {}: {}", kind.backend, kind.fingerprint, counted(kind.devices, "device"));
    let mut blocks: Vec<Block> = Block::titled(2, title).into();
    let mut facts = vec![("called".to_owned(), kind.names.join(", "))];
    if !kind.drivers.is_empty() {
        facts.push(("drivers".to_owned(), list(&kind.drivers)));
    }
    let mut inner = vec![Block::Facts(facts)];
    if !kind.classes.is_empty() {
        let head = ["class", "devices", "drivers", "differs in", "nodes"];
        inner.push(Block::table(head, kind.classes.iter().enumerate().map(row)));
    }
    for class in kind.classes.iter().filter(|class| !class.differs.is_empty()) {
        inner.push(Block::Gap);
        inner.extend(Block::titled(3, format!("class {}, beside the largest", class.class)));
        let head = ["operation", "probe", "usual", "here"];
        let rows = class.differs.iter().take(SHOWN).map(|found| {
            let [usual, here] = [&found.usual, &found.here].map(|answer| answer.as_deref().unwrap_or("not asked"));
            let (usual, here) = shortened(usual, here);
            let names = [&found.operation, &found.probe].map(Cell::code);
            Row::plain(names.into_iter().chain([Cell::code(usual), Cell::code(here)]).collect())
        });
        inner.push(Block::table(head, rows));
        if class.differs.len() > SHOWN {
            inner.push(Block::words(format!("and {} more", class.differs.len() - SHOWN)));
        }
    }
    blocks.push(Block::Inset(inner));
    blocks
}

/// Cuts two answers that differ to the part of each around their first difference; the JSON has all of both.
fn shortened(one: &str, other: &str) -> (String, String) {
    let alike = one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
    let from =
        if one.chars().count().max(other.chars().count()) > WIDEST { alike.saturating_sub(WIDEST / 4) } else { 0 };
    let cut = |text: &str| {
        let part: String = text.chars().skip(from).take(WIDEST).collect();
        let before = if from > 0 { "…" } else { "" };
        let after = if text.chars().count() > from + WIDEST { "…" } else { "" };
        format!("{before}{part}{after}")
    };
    (cut(one), cut(other))
}

fn row((at, class): (usize, &FleetClass)) -> Row {
    let mut nodes = class.nodes.iter().take(NODES).cloned().collect::<Vec<_>>().join(", ");
    if class.devices > NODES.min(class.nodes.len()) as u64 {
        nodes += ", …";
    }
    let differs = if at == 0 { String::new() } else { counted(class.differs.len() as u64, "answer") };
    let tone = if at == 0 { Tone::Plain } else { Tone::Warning };
    let words = [class.devices.to_string(), list(&class.drivers), differs, nodes].map(Cell::words);
    Row { tone, ..Row::plain([Cell::code(&*class.class)].into_iter().chain(words).collect()) }
}

fn of_drift(drift: &Drift) -> Vec<Block> {
    let mut blocks = vec![Block::Gap];
    blocks.extend(Block::titled(
        2,
        format!("since {}: {} changed", drift.time, counted(drift.changed.len() as u64, "answer")),
    ));
    let mut inner = Vec::new();
    for (name, places) in [("new", &drift.new), ("gone", &drift.gone)] {
        if !places.is_empty() {
            let shown: Vec<_> = places.iter().take(NODES).cloned().collect();
            let more = if places.len() > NODES { ", …" } else { "" };
            inner.push(Block::words(format!("{} {name}: {}{more}", places.len(), shown.join(", "))));
        }
    }
    if !drift.changed.is_empty() {
        let rows = drift.changed.iter().map(|change| {
            let cells = [&change.node, &change.selector, &change.what, &change.before, &change.now];
            Row::plain(cells.map(Cell::words).into())
        });
        inner.push(Block::table(["node", "device", "what", "before", "now"], rows));
    }
    blocks.push(Block::Inset(inner));
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_answers_are_cut_to_their_first_difference_and_short_ones_are_not() {
        let pair = |one: &str, other: &str| (one.to_owned(), other.to_owned());
        assert_eq!(shortened("true", "not asked"), pair("true", "not asked"));
        let (one, other) = shortened(&"é".repeat(99), "not asked");
        assert_eq!((one, &*other), (format!("{}…", "é".repeat(WIDEST)), "not asked"));
        let long = |letter: &str| format!("{}{letter}{}", "x".repeat(70), "y".repeat(70));
        let (one, other) = shortened(&long("1"), &long("2"));
        assert_eq!((one.matches('1').count(), other.matches('2').count()), (1, 1), "{one} {other}");
        assert_ne!(one, other);
        assert_eq!(one.chars().count(), WIDEST + 2);
    }
}
