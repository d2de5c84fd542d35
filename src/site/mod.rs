//! Pages to link to, generated from reports and models: a table of all units, a page per unit and a page per format.

mod classes;
mod format;
mod index;
mod models;
mod saved;
mod subject;
mod unit;

pub use classes::{Class, classes};
pub use models::modelled;
pub use saved::saved;
pub use subject::Subject;

use std::collections::BTreeMap;

use subject::Found;

use crate::{
    in_order::InOrder,
    plot::Strips,
    report::{Block, Form, Page, PapersReport, Show, Summary, SummaryRow, Unit, drawn_strips},
};

/// The page on the claims of papers.
const PAPERS: &str = "papers.html";

/// The files of the site, by name. `classes` lists operations of models with the same arithmetic; `papers` holds the
/// results computed for claims of papers.
#[must_use]
pub fn files(subjects: &[Subject], classes: &[Class], papers: Option<&PapersReport>) -> BTreeMap<String, String> {
    let found: Vec<Found<'_>> =
        subjects.iter().map(|subject| Found { subject, rows: Summary::cells(&subject.report().operations) }).collect();
    let kinds = kinds(&found);
    let mut pages: Vec<(String, Page)> = vec![("index.html".into(), index::page(&found, &kinds, papers.is_some()))];
    pages.extend(kinds.iter().map(|kind| (format::file(kind), format::page(&found, kind))));
    pages.extend(found.iter().map(|found| (found.subject.page(), unit::page(found, subjects, classes))));
    pages.extend(papers.map(|papers| {
        let Page { title, blocks } = papers.page(true);
        (PAPERS.into(), Page { title, blocks: std::iter::once(subject::to_index()).chain(blocks).collect() })
    }));
    let pages = pages.into_iter().map(|(file, page)| (file, Form::Html.text(&Shown(page))));
    pages.chain(picture(&found).map(|svg| ("bits.svg".to_owned(), svg))).collect()
}

/// The sums that the picture shows, because most units have them.
const PICTURED: (&str, &str) = ("f16", "f32");

/// Draws the bits that every unit keeps for one kind of sums, as a separate file.
fn picture(found: &[Found<'_>]) -> Option<String> {
    let (input, result) = PICTURED;
    let is_pictured = |row: &&SummaryRow| {
        row.result == result
            && row.inputs.iter().any(|kind| kind == input)
            && row.unit == Unit::Matrix
            && !row.is_minor()
    };
    let rows = found
        .iter()
        .flat_map(|found| found.rows.iter().filter(is_pictured).map(|row| (found.subject.name.clone(), row)));
    let Some(Block::Strips(strips)) = drawn_strips(rows) else { return None };
    let title = format!("Bits kept when a matrix unit adds {input} products into {result}, below the largest term");
    Some(Strips { title, ..strips }.svg())
}

/// A finished page.
struct Shown(Page);

impl Show for Shown {
    fn page(&self, _: bool) -> Page {
        self.0.clone()
    }

    fn json(&self) -> String {
        String::new()
    }
}

/// All kinds of inputs of any unit, in the order of the tables.
fn kinds(found: &[Found<'_>]) -> Vec<String> {
    let mut kinds: Vec<String> = Vec::new();
    let mut rows: Vec<&SummaryRow> = found.iter().flat_map(|found| &found.rows).collect();
    rows.order_by_key(|row| row.place());
    for kind in rows.iter().filter_map(|row| row.inputs.first()) {
        if !kinds.contains(kind) {
            kinds.push(kind.clone());
        }
    }
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers;

    #[test]
    fn the_page_of_papers_is_there_if_they_were_computed_and_the_index_leads_to_it() {
        let Ok(poster) = papers::check(papers::named("poster").unwrap(), None, &mut |_| Ok::<(), ()>(())) else {
            panic!("nobody interrupts it")
        };
        let report = PapersReport {
            schema: crate::report::PAPERS_SCHEMA.into(),
            tool: crate::report::this_tool(&[]),
            device: None,
            papers: vec![poster],
            duration_ns: 0,
        };
        let pages = files(&[], &[], Some(&report));
        assert!(pages["index.html"].contains("href=\"papers.html\""), "{}", pages["index.html"]);
        assert!(pages["papers.html"].contains("href=\"index.html\"") && pages["papers.html"].contains("a misprint"));
        let without = files(&[], &[], None);
        assert!(!without["index.html"].contains("papers.html") && !without.contains_key("papers.html"));
    }
}
