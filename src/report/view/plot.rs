//! Drawings of the rows of a summary: the bits that are kept when terms are aligned, and the order of the sum.

use mxprobe_api::Format;
use serde_json::Value;

use super::{page::Block, words};
use crate::{
    plot::{Ends, Kept, Strip, Strips, Sum, Tree, Trees},
    probes::{ORDER_BLOCKS, ORDER_TREE},
    report::{BitsKept, OperationReport, Report, SummaryRow},
};

/// The caption of a figure of strips.
const STRIPS: &str = "Each strip is the adder: the leading bit of the largest term at the left. Filled: kept. A slash: dropped. \
                      The line is where the format of the result ends; an arrow: nothing is lost.";
/// The caption of a figure of trees.
const TREES: &str = "A bar is one addition: what hangs below it is added at once and rounded once. d leaves at the top; dots stand \
                     for more of the same.";

/// Draws the bits that survive alignment: one strip, with its name, for each of these rows that states their number.
#[must_use]
pub fn drawn_strips<'a>(rows: impl IntoIterator<Item = (String, &'a SummaryRow)>) -> Option<Block> {
    let strips: Vec<Strip> = rows.into_iter().filter_map(|(label, row)| strip(label, row)).collect();
    (!strips.is_empty()).then(|| Block::Strips(Strips { title: STRIPS.into(), strips }))
}

fn strip(label: String, row: &SummaryRow) -> Option<Strip> {
    if row.is_integer() {
        return None;
    }
    let kept = match row.bits_kept? {
        BitsKept::Bits(bits) => Kept::Bits(bits),
        BitsKept::AtLeast(bits) => Kept::AtLeast(bits),
        BitsKept::Exact => Kept::All,
    };
    let dropped = match (kept, words::dropped(row)) {
        (Kept::Bits(_), "?") | (Kept::AtLeast(_) | Kept::All, _) => None,
        (Kept::Bits(_), dropped) => Some(format!("then {dropped}")),
    };
    let result = Some(words::result(row)).filter(|result| result != "?").map(|result| format!("result {result}"));
    let words: Vec<String> = [dropped, result].into_iter().flatten().collect();
    let bits = Format::named(&row.result).ok().map(Format::fraction_bits);
    let ends = bits.map(|bits| Ends { format: row.result.clone(), bits });
    Some(Strip { label, kept, ends, words: words.join("; ") })
}

/// Draws the order of sums: one tree for each of these rows whose tree is known; equal trees are drawn once. Of a row's
/// operations, the one with the most products is drawn.
#[must_use]
pub fn drawn_trees<'a>(rows: impl IntoIterator<Item = (String, &'a SummaryRow, &'a Report)>) -> Option<Block> {
    let mut trees: Vec<Tree> = Vec::new();
    for (label, row, report) in rows {
        let of_row = report.operations.iter().filter(|known| row.operations.contains(&known.operation.id));
        let drawn = of_row.filter_map(|operation| Some((operation, order(operation)?)));
        // The first of those with the most products.
        let longest = drawn.rev().max_by_key(|(operation, _)| operation.operation.id.shape.k);
        let Some((operation, sum)) = longest else { continue };
        let label = format!("{label} k{}", operation.operation.id.shape.k);
        match trees.iter_mut().find(|tree| tree.sum == sum) {
            Some(tree) => tree.label = format!("{}, {label}", tree.label),
            None => trees.push(Tree { label, words: in_steps(operation), sum }),
        }
    }
    (!trees.is_empty()).then(|| Block::Trees(Trees { title: TREES.into(), trees }))
}

/// `2 steps of 8 products each`.
fn in_steps(operation: &OperationReport) -> String {
    let words = operation.finding(ORDER_BLOCKS).map_or("", |found| &found.statement);
    words.split(':').next().unwrap_or_default().to_owned()
}

/// Returns the order of a sum, if its tree is known.
fn order(operation: &OperationReport) -> Option<Sum> {
    sum(operation.finding(ORDER_TREE)?.value.as_ref()?, 0)
}

/// The maximum depth of a drawn tree: that of a chain of this many products. A report may come from an untrusted
/// source.
const DEEPEST: usize = 300;

/// Parses a tree from nested lists.
fn sum(value: &Value, depth: usize) -> Option<Sum> {
    match value {
        Value::Number(k) => k.as_u64().and_then(|k| usize::try_from(k).ok()).map(Sum::Product),
        Value::String(c) if c == "c" => Some(Sum::C),
        Value::Array(terms) if depth < DEEPEST => {
            terms.iter().map(|term| sum(term, depth + 1)).collect::<Option<_>>().map(Sum::Added)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{AtOnce, Unit};
    use serde_json::json;

    fn row(bits_kept: BitsKept) -> SummaryRow {
        SummaryRow {
            inputs: vec!["f16".into()],
            result: "f32".into(),
            families: vec!["mma".into()],
            shape: None,
            unit: Unit::Matrix,
            products_at_once: Some(AtOnce::Products(8)),
            bits_kept: Some(bits_kept),
            dropped: None,
            rounding: Some("RNE".into()),
            result_bits: None,
            rounded_to_bits: None,
            overflow: None,
            modes: Vec::new(),
            operations: vec!["mma.m16n8k8.f32.f16.f16.f32".parse().unwrap()],
        }
    }

    #[test]
    fn an_exact_unit_is_drawn_as_keeping_every_bit_and_not_the_23_of_its_results() {
        let drawn = |bits| strip("unit".into(), &row(bits)).unwrap();
        assert_eq!(drawn(BitsKept::Exact).kept, Kept::All);
        assert_eq!(drawn(BitsKept::AtLeast(30)).kept, Kept::AtLeast(30));
        assert_eq!(drawn(BitsKept::Bits(25)).kept, Kept::Bits(25));
        assert_eq!(drawn(BitsKept::Exact).ends, Some(Ends { format: "f32".into(), bits: 23 }));
        assert_eq!(drawn(BitsKept::Exact).words, "result to nearest");
    }

    #[test]
    fn nested_lists_are_trees_and_what_is_none_is_not_drawn() {
        let added = |terms: Vec<Sum>| Sum::Added(terms);
        let tree = added(vec![Sum::Product(1), added(vec![Sum::Product(0), Sum::C])]);
        assert_eq!(sum(&json!([1, [0, "c"]]), 0), Some(tree));
        assert_eq!([sum(&json!([1, "x"]), 0), sum(&json!({ "c": 1 }), 0), sum(&json!([-1]), 0)], [None, None, None]);
        let deep = (0..2 * DEEPEST).fold(json!("c"), |tree, k| json!([k, tree]));
        assert_eq!(sum(&deep, 0), None);
    }
}
