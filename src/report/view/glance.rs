//! Rows of a summary as cells: of a table, and of a matrix that can be read at a glance.

use super::{
    page::{Block, Cell, Glimpse, Row, Shade, Tone},
    words,
};
use crate::report::{AtOnce, BitsKept, Notable, Summary, SummaryRow};

/// The column heads for [`row_cells`].
pub const ROW_HEADS: [&str; 6] = ["sums of", "by", "at once", "bits kept*", "dropped", "result"];

/// Returns a row as cells of a table with [`ROW_HEADS`].
#[must_use]
pub fn row_cells(row: &SummaryRow) -> Vec<Cell> {
    let unknown = || "?".to_owned();
    let texts = [
        row.sums(),
        by(row),
        row.products_at_once.map_or_else(unknown, words::at_once),
        row.bits_kept.map_or_else(unknown, words::bits_kept),
        words::dropped(row).to_owned(),
        words::result(row),
    ];
    texts.into_iter().map(Cell::words).collect()
}

/// Renders the rows of a summary as a table, the footnote for the star, and the notable facts.
pub(super) fn table(summary: &Summary) -> Vec<Block> {
    let mut blocks = Vec::new();
    if !summary.rows.is_empty() {
        let rows = summary.rows.iter().map(|row| {
            let tone = if row.is_short() { Tone::Warning } else { Tone::Plain };
            Row { tone, ..Row::plain(row_cells(row)) }
        });
        blocks.extend([Block::table(ROW_HEADS, rows), Block::Words(Tone::Muted, STAR.into())]);
    }
    blocks.extend(notable(&summary.notable));
    blocks
}

/// The footnote for the star of [`ROW_HEADS`].
pub const STAR: &str =
    "* fraction bits below the largest term, kept when terms are aligned; f32 has 23, exact loses none";

/// Returns the notable facts as a list.
#[must_use]
pub fn notable(facts: &[Notable]) -> Option<Block> {
    let list = facts.iter().map(|fact| (Tone::Warning, fact.text.clone())).collect();
    (!facts.is_empty()).then_some(Block::List(list))
}

/// Lists the families, with the shape if the row is for one shape.
fn by(row: &SummaryRow) -> String {
    let families = row.families.join(" ");
    row.shape.as_ref().map_or_else(|| families.clone(), |shape| format!("{families} {shape}"))
}

/// Returns the contents of one cell of a matrix, without duplicates.
pub fn glimpses<'a>(rows: impl IntoIterator<Item = &'a SummaryRow>) -> Vec<Glimpse> {
    let mut found: Vec<Glimpse> = Vec::new();
    for glimpse in rows.into_iter().map(glimpse) {
        if !found.contains(&glimpse) {
            found.push(glimpse);
        }
    }
    found
}

fn glimpse(row: &SummaryRow) -> Glimpse {
    let at_once = row.products_at_once.map(|count| format!("{} at once", words::at_once(count)));
    let dropped = Some(words::dropped(row)).filter(|dropped| !["-", "?"].contains(dropped)).map(str::to_owned);
    let result = Some(words::result(row)).filter(|result| result != "?");
    let parts: Vec<String> = [at_once, dropped, result].into_iter().flatten().collect();
    Glimpse {
        large: row.bits_kept.map_or_else(|| "?".to_owned(), words::bits_kept),
        words: parts.join(" · "),
        of: by(row),
        shade: shade(row),
    }
}

/// Rates the arithmetic of a row.
fn shade(row: &SummaryRow) -> Shade {
    let is_nearest = row.rounding.as_deref() == Some("RNE");
    let is_single = row.products_at_once == Some(AtOnce::Products(1));
    match row.bits_kept {
        _ if row.is_short() || row.result_bits.is_some() => Shade::Poor,
        None => Shade::Unknown,
        Some(BitsKept::Exact | BitsKept::AtLeast(_)) if row.is_integer() || (is_nearest && is_single) => Shade::Good,
        Some(BitsKept::Exact | BitsKept::AtLeast(_)) if is_nearest => Shade::Fair,
        Some(BitsKept::Bits(_)) if is_nearest && matches!(row.dropped.as_deref(), Some("nearest" | "sticky")) => {
            Shade::Fair
        }
        Some(_) => Shade::Lossy,
    }
}

/// Returns the legend of a matrix's colours.
#[must_use]
pub fn shades() -> Block {
    Block::Shades(vec![
        (Shade::Good, "as a loop of IEEE FMAs, or exact integers".into()),
        (Shade::Fair, "nothing visible is lost, rounds to nearest".into()),
        (Shade::Lossy, "bits are cut off, or results rounded toward zero".into()),
        (Shade::Poor, "fewer bits than the result has".into()),
        (Shade::Unknown, "not offered, or not known".into()),
    ])
}
