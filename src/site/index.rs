//! The first page: a table of units and kinds of inputs.

use super::{
    format,
    subject::{Found, is_measured},
};
use crate::report::{Block, GlimpseRow, Matrix, Page, SummaryRow, glimpses, shades};

/// The results that the table shows; the pages of units have the others.
const RESULT: [&str; 3] = ["f32", "f64", "s32"];

pub(super) fn page(found: &[Found<'_>], kinds: &[String], has_papers: bool) -> Page {
    let title = "How matrix units add";
    let shown: Vec<&String> = kinds.iter().filter(|kind| found.iter().any(|found| has(found, kind))).collect();
    let columns = shown.iter().map(|kind| ((*kind).clone(), Some(format::file(kind)))).collect();
    let rows = found.iter().map(|found| GlimpseRow {
        head: format!("{} ({})", found.subject.name, is_measured(found.subject)),
        link: Some(found.subject.page()),
        cells: shown.iter().map(|kind| glimpses(found.rows.iter().filter(|row| is_of(row, kind)))).collect(),
    });
    let matrix = Matrix { corner: "unit".into(), groups: Vec::new(), columns, rows: rows.collect() };
    let measured = found.iter().filter(|found| found.subject.model.is_none()).count();
    let about = format!(
        "{} units: {measured} measured, the others executable models, whose pages say where their values come from. Large: \
         fraction bits kept below the largest term when terms are aligned; f32 itself has 23. Below: products added at once, \
         what becomes of lower bits, how the result is rounded. Results are f32, f64 or s32; each unit's page has the others.",
        found.len()
    );
    let mut blocks = vec![Block::heading(1, title), Block::words(about), shades(), Block::Matrix(matrix)];
    blocks.push(Block::heading(2, "By format"));
    blocks.push(Block::Links(kinds.iter().map(|kind| (kind.clone(), format::file(kind))).collect()));
    if has_papers {
        blocks.push(Block::heading(2, "By paper"));
        let link = ("What papers print, and what is computed".to_owned(), super::PAPERS.to_owned());
        blocks.push(Block::Links(vec![link]));
    }
    Page { title: title.into(), blocks }
}

fn has(found: &Found<'_>, kind: &str) -> bool {
    found.rows.iter().any(|row| is_of(row, kind))
}

fn is_of(row: &SummaryRow, kind: &str) -> bool {
    row.inputs.iter().any(|input| input == kind) && RESULT.contains(&row.result.as_str()) && !row.is_minor()
}
