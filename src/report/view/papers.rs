//! The output of `papers`: printed figures next to computed ones.

use super::{
    csv::Rows,
    form::Show,
    page::{Block, Cell, Page, Row, Tone},
};
use crate::{
    plain::counted,
    report::{PaperItem, PaperRecord, PapersReport, Verdict, to_json},
};

/// The fields of the rows.
const COLUMNS: &str = "schema tool_version device paper place asked unit printed computed verdict reason";

impl Show for PapersReport {
    fn page(&self, _: bool) -> Page {
        let title = match &self.device {
            Some(device) => format!("What papers print, asked of {device}"),
            None => "What papers print, and what is computed".to_owned(),
        };
        let papers = self.papers.iter().flat_map(paper);
        let sum = counts(self.items());
        let end = [
            Block::words(format!("{}, {sum}", counted(self.papers.len(), "paper"))),
            Block::Words(Tone::Muted, MARKS.to_owned()),
        ];
        let head = Block::Paper(vec![Block::heading(1, &title), Block::Contents]);
        Page { title, blocks: std::iter::once(head).chain(papers).chain(end).collect() }
    }

    fn rows(&self) -> Rows {
        let rows = self.papers.iter().flat_map(|paper| {
            paper.sections.iter().flat_map(move |section| {
                section.items.iter().map(move |item| {
                    vec![
                        self.schema.clone(),
                        self.tool.version.clone(),
                        self.device.clone().unwrap_or_default(),
                        paper.name.clone(),
                        section.place.clone(),
                        item.asked.clone(),
                        item.unit.clone().unwrap_or_default(),
                        item.printed.clone(),
                        item.computed.clone(),
                        word(item.verdict).to_owned(),
                        item.reason.clone().unwrap_or_default(),
                    ]
                })
            })
        });
        Rows::new(COLUMNS, rows.collect())
    }

    fn json(&self) -> String {
        to_json(self)
    }
}

/// The legend of the marks in the margin.
const MARKS: &str = "= equal   ~ differs, and why is known   ! differs   ? could not be asked";

fn paper(paper: &PaperRecord) -> Vec<Block> {
    let title = format!("{}: {}", paper.name, paper.title);
    let head = [
        Block::Paper(vec![Block::Heading { level: 2, text: title.clone(), anchor: Some(paper.name.clone()) }]),
        Block::Screen(vec![Block::Words(Tone::Strong, title)]),
        Block::Words(Tone::Muted, paper.reference.clone()),
    ];
    let on_screen = paper.sections.iter().flat_map(|section| {
        let none = section.none.as_ref().map_or_else(String::new, |none| format!(": {none}"));
        let items = section.items.iter().map(|item| Block::Words(tone(item.verdict), line(item))).collect();
        [Block::words(format!("{}  {}{none}", section.place, section.about)), Block::Inset(items)]
    });
    let rows = paper.sections.iter().flat_map(|section| {
        let items = section.items.iter().map(|item| row(&section.place, item));
        let none = section.none.iter().map(|none| {
            let about = format!("{}: {none}", section.about);
            Row {
                tone: Tone::Muted,
                ..Row::plain([section.place.as_str(), &about, "", "", ""].map(Cell::words).into())
            }
        });
        items.chain(none)
    });
    let table = Block::table(["place", "asked", "printed", "computed", "result"], rows);
    let end = [Block::words(counts(paper.items())), Block::Gap];
    head.into_iter().chain([Block::Screen(on_screen.collect()), Block::Paper(vec![table])]).chain(end).collect()
}

/// Formats an item as a paragraph.
fn line(item: &PaperItem) -> String {
    let computed = match (item.computed.as_str(), item.reason.as_deref()) {
        ("", Some(reason)) => reason.to_owned(),
        (computed, Some(reason)) => format!("here {computed}: {reason}"),
        (computed, None) => format!("here {computed}"),
    };
    format!("{} {}: {}; {computed}", mark(item.verdict), asked(item), item.printed)
}

/// Describes the question and the unit it was asked of.
fn asked(item: &PaperItem) -> String {
    match &item.unit {
        Some(unit) => format!("{} [{unit}]", item.asked),
        None => item.asked.clone(),
    }
}

fn row(place: &str, item: &PaperItem) -> Row {
    let result = match &item.reason {
        Some(reason) => format!("{}: {reason}", word(item.verdict)),
        None => word(item.verdict).to_owned(),
    };
    let cells = [place, &asked(item), &item.printed, &item.computed].map(Cell::words);
    let cells = cells.into_iter().chain([Cell::marked(result)]).collect();
    Row { tone: tone(item.verdict), mark: Some(mark(item.verdict)), cells }
}

fn tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Equal | Verdict::Explained => Tone::Plain,
        Verdict::Unsupported => Tone::Muted,
        Verdict::Differs | Verdict::Failed => Tone::Failure,
    }
}

fn mark(verdict: Verdict) -> char {
    match verdict {
        Verdict::Equal => '=',
        Verdict::Explained => '~',
        Verdict::Differs | Verdict::Failed => '!',
        Verdict::Unsupported => '?',
    }
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Equal => "equal",
        Verdict::Explained => "explained",
        Verdict::Differs => "differs",
        Verdict::Unsupported => "unsupported",
        Verdict::Failed => "failed",
    }
}

/// Counts the verdicts: `41 numbers: 38 equal, 3 explained`.
fn counts<'a>(items: impl Iterator<Item = &'a PaperItem>) -> String {
    let verdicts: Vec<Verdict> = items.map(|item| item.verdict).collect();
    let all = [Verdict::Equal, Verdict::Explained, Verdict::Differs, Verdict::Unsupported, Verdict::Failed];
    let parts = all.into_iter().filter_map(|verdict| {
        let count = verdicts.iter().filter(|found| **found == verdict).count();
        (count > 0).then(|| format!("{count} {}", word(verdict)))
    });
    format!("{}: {}", counted(verdicts.len(), "number"), parts.collect::<Vec<_>>().join(", "))
}
