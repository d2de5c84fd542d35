//! What is drawn of operations: the bits that are kept when terms are aligned, and the order of the sum.

use mxprobe_api::{Format, OperationId};
use serde_json::Value;

use super::groups::more;
use crate::{
    plot::{Ends, Kept, Strip, Strips, Sum, Tree, Trees},
    probes::{ALIGNMENT_BELOW, FRACTION_BITS_KEPT, ORDER_BLOCKS, ORDER_TREE, RESULT_ROUNDING},
    report::record::OperationReport,
};

/// Says what the figure of [`strips`] shows.
const STRIPS: &str = "Each strip is the adder: the leading bit of the largest term at the left. Filled: kept. A slash: dropped. \
                      The line is where the format of the result ends; an arrow: nothing is lost, as far as was seen.";
/// Says what the figure of [`trees`] shows.
const TREES: &str = "A bar is one addition: what hangs below it is added at once and rounded once. d leaves at the top; dots stand \
                     for more of the same.";

/// Bits that survive alignment, a strip for each of these operations that has an answer.
pub(super) fn strips<'a>(operations: impl IntoIterator<Item = (String, &'a OperationReport)>) -> Option<Strips> {
    let strips: Vec<Strip> = operations.into_iter().filter_map(|(label, operation)| strip(label, operation)).collect();
    (!strips.is_empty()).then(|| Strips { title: STRIPS.into(), strips })
}

/// The order of sums, a tree for each of these operations whose tree shows.
pub(super) fn trees<'a>(operations: impl IntoIterator<Item = (String, &'a OperationReport)>) -> Option<Trees> {
    let trees: Vec<Tree> = operations.into_iter().filter_map(|(label, operation)| tree(label, operation)).collect();
    (!trees.is_empty()).then(|| Trees { title: TREES.into(), trees })
}

/// Operations of which `drawn` draws the same, as one: each drawing once, with the name of the first that has it.
pub(super) fn once<'a, T: PartialEq>(
    groups: &[Vec<&'a OperationReport>],
    drawn: impl Fn(&OperationReport) -> Option<T>,
) -> Vec<(String, &'a OperationReport)> {
    let mut found: Vec<(T, Vec<&'a OperationReport>)> = Vec::new();
    for group in groups {
        let Some(drawing) = drawn(group[0]) else { continue };
        match found.iter_mut().find(|(known, _)| *known == drawing) {
            Some((_, operations)) => operations.extend(group),
            None => found.push((drawing, group.clone())),
        }
    }
    let named = |(_, operations): (T, Vec<&'a OperationReport>)| {
        (format!("{}{}", name(&operations[0].operation.id), more(&operations)), operations[0])
    };
    found.into_iter().map(named).collect()
}

/// `mma k16 f16→f32`: what tells an operation from others of its device.
fn name(id: &OperationId) -> String {
    let inputs = if id.a == id.b { id.a.to_string() } else { format!("{}·{}", id.a, id.b) };
    format!("{} {inputs}→{} k{}", id.family, id.d, id.shape.k)
}

/// What tells one strip from another.
pub(super) fn strip_once(operation: &OperationReport) -> Option<(Kept, String, Format)> {
    let (kept, words) = kept_bits(operation)?;
    Some((kept, words, operation.operation.id.d))
}

fn strip(label: String, operation: &OperationReport) -> Option<Strip> {
    let (kept, words) = kept_bits(operation)?;
    let d = operation.operation.id.d;
    let ends = (!d.is_integer()).then(|| Ends { format: d.to_string(), bits: d.fraction_bits() });
    Some(Strip { label, kept, ends, words })
}

/// How many bits are kept, and what becomes of the others, in words.
fn kept_bits(operation: &OperationReport) -> Option<(Kept, String)> {
    let kept = kept(operation.finding(FRACTION_BITS_KEPT)?.value.as_ref()?)?;
    let word = |probe: &str| operation.finding(probe)?.value.as_ref()?.as_str();
    let below = match kept {
        Kept::All => None,
        Kept::Bits(_) => word(ALIGNMENT_BELOW).map(below),
    };
    let rounding = word(RESULT_ROUNDING).map(|rounding| format!("result {}", toward(rounding)));
    let words: Vec<String> = below.map(str::to_owned).into_iter().chain(rounding).collect();
    Some((kept, words.join("; ")))
}

/// How many bits: a number, or all as far as was seen.
fn kept(value: &Value) -> Option<Kept> {
    match value {
        Value::Number(bits) => bits.as_u64().and_then(|bits| u32::try_from(bits).ok()).map(Kept::Bits),
        _ => value.get("exact_over")?.as_u64().map(|_| Kept::All),
    }
}

/// What becomes of dropped bits, in a word or two.
fn below(word: &str) -> &str {
    match word {
        "truncate" => "then truncated",
        "floor" => "then floored",
        "ceiling" => "then rounded up",
        "ones-complement" => "then cut, in one's complement",
        "nearest" => "then rounded",
        "sticky" => "and a sticky bit",
        other => other,
    }
}

/// The direction of a rounding.
fn toward(word: &str) -> &str {
    match word {
        "RNE" => "to nearest",
        "RZ" => "toward zero",
        "RD" => "toward −∞",
        "RU" => "toward +∞",
        "RO" => "to odd",
        other => other,
    }
}

fn tree(label: String, operation: &OperationReport) -> Option<Tree> {
    let sum = order(operation)?;
    let words = operation.finding(ORDER_BLOCKS).map_or_else(String::new, |found| found.statement.clone());
    let words = words.split(':').next().unwrap_or_default().to_owned();
    Some(Tree { label, words, sum })
}

/// The order of a sum, if its tree shows.
pub(super) fn order(operation: &OperationReport) -> Option<Sum> {
    sum(operation.finding(ORDER_TREE)?.value.as_ref()?, 0)
}

/// The deepest tree that is drawn: a chain of so many products. A report is a file that anybody may have written.
const DEEPEST: usize = 300;

/// A tree of nested lists.
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
    use serde_json::json;

    #[test]
    fn an_exact_unit_is_drawn_as_keeping_every_bit_and_not_the_23_of_its_results() {
        assert_eq!(kept(&json!({ "exact_over": 34, "rounded_to_bits": 24 })), Some(Kept::All));
        assert_eq!(kept(&json!({ "exact_over": 30 })), Some(Kept::All));
        assert_eq!(kept(&json!(25)), Some(Kept::Bits(25)));
        assert_eq!(
            [kept(&json!("many")), kept(&json!({ "exact_over": -1 })), kept(&json!(1e9)), kept(&json!(-3))],
            [None; 4]
        );
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
