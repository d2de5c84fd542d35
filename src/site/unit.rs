//! One page per unit: its rows and drawings, notable findings, units with the same arithmetic, and changes between
//! drivers.

use std::collections::BTreeMap;

use mxprobe_api::OperationId;

use super::{
    classes::Class,
    subject::{Found, Subject, is_measured, to_index},
};
use crate::report::{
    Block, Cell, Page, ROW_HEADS, Row, STAR, Summary, Tone, compare, drawn_strips, drawn_trees, is_layout, notable,
    row_cells, verdict,
};

pub(super) fn page(found: &Found<'_>, subjects: &[Subject], classes: &[Class]) -> Page {
    let subject = found.subject;
    let report = subject.report();
    let title = format!("How {} adds", subject.name);
    let mut blocks = vec![to_index(), Block::heading(1, &title), origin(subject), Block::Contents];
    blocks.push(Block::heading(2, "At a glance"));
    let summary = Summary::of(&report.operations);
    blocks.push(Block::table(ROW_HEADS, summary.rows.iter().map(|row| Row::plain(row_cells(row)))));
    blocks.push(Block::Words(Tone::Muted, STAR.into()));
    if let Some(notable) = notable(&summary.notable) {
        blocks.extend([Block::heading(2, "To know before use"), notable]);
    }
    let rows = || {
        summary.rows.iter().filter(|row| !row.is_minor()).map(|row| {
            let label = format!("{} {}", row.sums(), row.families.join(" "));
            (label, row, report)
        })
    };
    if let Some(strips) = drawn_strips(rows().map(|(label, row, _)| (label, row))) {
        blocks.extend([Block::heading(2, "What survives beside a large term"), strips]);
    }
    if let Some(trees) = drawn_trees(rows()) {
        blocks.extend([Block::heading(2, "In which order products and c are added"), trees]);
    }
    blocks.extend(same(subject, subjects, classes));
    blocks.extend(timeline(subject));
    Page { title, blocks }
}

/// Shows whether the unit was measured, and with which driver and when.
fn origin(subject: &Subject) -> Block {
    let report = subject.report();
    let mut facts = vec![("this page".to_owned(), is_measured(subject).to_owned())];
    if let Some(model) = &subject.model {
        facts.push((
            "model".to_owned(),
            format!("sim:{model}; `mxprobe explain sim:{model}` names the source of each value"),
        ));
    }
    if !subject.aliases.is_empty() {
        facts.push(("also".to_owned(), subject.aliases.join(", ")));
    }
    if let Some(driver) = &report.device.driver {
        facts.push(("driver".to_owned(), format!("{} {}", driver.name, driver.version)));
    }
    facts.push(("made".to_owned(), report.time.start.clone()));
    Block::Facts(facts)
}

/// Lists operations of other units that are proved to have the same arithmetic.
fn same(subject: &Subject, subjects: &[Subject], classes: &[Class]) -> Vec<Block> {
    let Some(model) = &subject.model else { return Vec::new() };
    let name = |model: &str| {
        let known = subjects.iter().find(|subject| subject.model.as_deref() == Some(model));
        known.map_or(model, |subject| subject.name.as_str()).to_owned()
    };
    let mut rows = Vec::new();
    for class in classes.iter().filter(|class| class.members.iter().any(|(name, _)| name == model)) {
        let mut others: BTreeMap<String, Vec<&OperationId>> = BTreeMap::new();
        for (other, id) in class.members.iter().filter(|(name, _)| name != model) {
            others.entry(name(other)).or_default().push(id);
        }
        if others.is_empty() {
            continue;
        }
        let ours = class.members.iter().filter(|(name, _)| name == model).map(|(_, id)| id);
        let others: Vec<String> =
            others.into_iter().map(|(name, ids)| format!("{name} ({})", families(ids.into_iter()))).collect();
        let of = &class.computes;
        let computes = format!("{}·{}→{} k {}", of.a, of.b, of.d, of.shape.k);
        rows.push(Row::plain(vec![Cell::words(computes), Cell::words(families(ours)), Cell::words(others.join("; "))]));
    }
    if rows.is_empty() {
        return Vec::new();
    }
    vec![
        Block::heading(2, "Same arithmetic as"),
        Block::words("Proved for every input, NaN and infinities included, model against model."),
        Block::Details {
            summary: format!("{} kinds of operations", rows.len()),
            blocks: vec![Block::table(["operations", "here by", "same arithmetic as"], rows)],
        },
    ]
}

/// The families of operations, without duplicates, with the modes that change results.
fn families<'a>(ids: impl Iterator<Item = &'a OperationId>) -> String {
    let mut names: Vec<String> = Vec::new();
    for id in ids {
        let modes = id.qualifiers.iter().filter(|word| !is_layout(word));
        let is_scale = |word: &&String| word.starts_with("block") || word.starts_with("ue");
        let name = [id.family.clone()].into_iter().chain(modes.filter(|word| !is_scale(word)).cloned());
        let name = name.collect::<Vec<_>>().join(".");
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(" ")
}

/// Lists the changes from each report to the next.
fn timeline(subject: &Subject) -> Vec<Block> {
    if subject.reports.len() < 2 {
        return Vec::new();
    }
    let driver = |at: usize| {
        let driver = subject.reports[at].device.driver.as_ref();
        driver.map_or_else(|| "—".to_owned(), |driver| format!("{} {}", driver.name, driver.version))
    };
    let rows = (0..subject.reports.len()).map(|at| {
        let changed = match at {
            0 => "first report".to_owned(),
            _ => {
                let pair = [at - 1, at].map(|at| (subject.file.clone(), subject.reports[at].clone()));
                verdict(&compare(&pair))
            }
        };
        let made = subject.reports[at].time.start.clone();
        Row::plain(vec![Cell::words(made), Cell::words(driver(at)), Cell::words(changed)])
    });
    vec![Block::heading(2, "Over drivers"), Block::table(["made", "driver", "what changed"], rows)]
}
