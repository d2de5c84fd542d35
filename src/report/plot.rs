//! What is plotted of reports. A new plot is a function of the operations beside [`bits_kept`], listed in [`plots`].

use serde_json::Value;

use super::{OperationReport, pages};
use crate::plot::{Bar, Bars};

/// Every plot there is data for.
pub(super) fn plots(groups: &[Vec<&OperationReport>]) -> Vec<Bars> {
    [bits_kept(groups)].into_iter().flatten().collect()
}

/// Bits that survive alignment, a bar a group of operations; the mark is where the result's own fraction ends.
fn bits_kept(groups: &[Vec<&OperationReport>]) -> Option<Bars> {
    let bars: Vec<Bar> = groups
        .iter()
        .filter_map(|group| {
            let (length, at_least) = kept(group[0].finding("alignment.fraction_bits")?.value.as_ref()?)?;
            let result = group[0].finding("rounding.fraction_bits").and_then(|finding| finding.value.as_ref());
            let mark = result.and_then(Value::as_f64).filter(|bits| is_length(*bits));
            Some(Bar { label: pages::title(group), length, at_least, mark })
        })
        .collect();
    if bars.is_empty() {
        return None;
    }
    let title = "Fraction bits kept when terms are aligned; the mark is the fraction of the result".into();
    Some(Bars { title, unit: "bits".into(), bars })
}

/// Bits, and whether there may be more.
fn kept(value: &Value) -> Option<(f64, bool)> {
    let number = |value: &Value| value.as_f64().filter(|bits| is_length(*bits));
    match value {
        Value::Number(_) => Some((number(value)?, false)),
        _ => match value.get("rounded_to_bits") {
            // What is rounded to p bits at once keeps p - 1 of them below the first.
            Some(bits) => Some(((number(bits)? - 1.0).max(0.0), false)),
            None => Some((number(value.get("exact_over")?)?, true)),
        },
    }
}

/// Longer than any known, and drawable.
const LONGEST: f64 = 10_000.0;

fn is_length(bits: f64) -> bool {
    (0.0..=LONGEST).contains(&bits)
}
