//! Plots, as data. A new one is a function of the operations beside [`bits_kept`], listed in [`plots`].

use serde_json::Value;

use super::{OperationReport, pages};

/// Bars, one below the other, that begin at zero.
#[derive(Clone, Debug)]
pub(super) struct Plot {
    pub(super) title: String,
    /// What a bar counts.
    pub(super) unit: String,
    pub(super) bars: Vec<Bar>,
}

/// A bar.
#[derive(Clone, Debug)]
pub(super) struct Bar {
    pub(super) label: String,
    pub(super) length: f64,
    /// The length is a lower bound.
    pub(super) at_least: bool,
    /// A mark across the bar, as a second length.
    pub(super) mark: Option<f64>,
}

/// Every plot there is data for.
pub(super) fn plots(groups: &[Vec<&OperationReport>]) -> Vec<Plot> {
    [bits_kept(groups)].into_iter().flatten().collect()
}

/// Bits that survive alignment, a bar a group of operations; the mark is where the result's own fraction ends.
fn bits_kept(groups: &[Vec<&OperationReport>]) -> Option<Plot> {
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
    Some(Plot { title, unit: "bits".into(), bars })
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
