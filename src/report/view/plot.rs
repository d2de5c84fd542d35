//! What is plotted of reports. A new plot is a function of the operations beside [`bits_kept`], listed in [`plots`].

use serde_json::Value;

use super::groups::title;
use crate::{
    plot::{Bar, Bars, Length},
    probes::{FRACTION_BITS_KEPT, FRACTION_BITS_OF_D},
    report::record::OperationReport,
};

/// Every plot there is data for.
pub(super) fn plots(groups: &[Vec<&OperationReport>]) -> Vec<Bars> {
    [bits_kept(groups)].into_iter().flatten().collect()
}

/// Bits that survive alignment, a bar a group of operations; the mark is where the result's own fraction ends. A unit that
/// loses nothing at alignment has a bar without end, however few bits its results keep.
fn bits_kept(groups: &[Vec<&OperationReport>]) -> Option<Bars> {
    let bars: Vec<Bar> = groups
        .iter()
        .filter_map(|group| {
            let length = kept(group[0].finding(FRACTION_BITS_KEPT)?.value.as_ref()?)?;
            let result = group[0].finding(FRACTION_BITS_OF_D).and_then(|finding| finding.value.as_ref());
            let mark = result.and_then(Value::as_f64).filter(|bits| is_length(*bits));
            Some(Bar { label: title(group), length, mark })
        })
        .collect();
    if bars.is_empty() {
        return None;
    }
    let title = "Fraction bits kept when terms are aligned; the mark is the fraction of the result; an arrow: nothing is lost, \
                 as far as was seen"
        .into();
    Some(Bars { title, unit: "bits".into(), bars })
}

/// How many bits: a number, or all, seen as far as `exact_over` says.
fn kept(value: &Value) -> Option<Length> {
    let number = |value: &Value| value.as_f64().filter(|bits| is_length(*bits));
    match value {
        Value::Number(_) => number(value).map(Length::Of),
        _ => Some(Length::Endless { at_least: number(value.get("exact_over")?)? }),
    }
}

/// Longer than any known, and drawable.
const LONGEST: f64 = 10_000.0;

fn is_length(bits: f64) -> bool {
    (0.0..=LONGEST).contains(&bits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_exact_unit_is_drawn_as_keeping_every_bit_and_not_the_23_of_its_results() {
        assert_eq!(kept(&json!({ "exact_over": 34, "rounded_to_bits": 24 })), Some(Length::Endless { at_least: 34.0 }));
        assert_eq!(kept(&json!({ "exact_over": 30 })), Some(Length::Endless { at_least: 30.0 }));
        assert_eq!(kept(&json!(25)), Some(Length::Of(25.0)));
        assert_eq!([kept(&json!("many")), kept(&json!({ "exact_over": -1 })), kept(&json!(1e9))], [None; 3]);
    }
}
