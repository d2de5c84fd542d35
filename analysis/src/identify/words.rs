//! A description of identified arithmetic in words.

use mxprobe_models::Adder;

use super::outcome::Arithmetic;

/// Describes each adder, and the operands whose subnormals are read as zero, in one line each.
#[must_use]
pub fn parameters(arithmetic: &Arithmetic) -> Vec<String> {
    let mut lines: Vec<String> = arithmetic.adders.iter().map(Adder::summary).collect();
    let flush = arithmetic.flush;
    let flushed: Vec<&str> = [("a", flush.a), ("b", flush.b), ("c", flush.c)]
        .into_iter()
        .filter(|(_, flush)| *flush)
        .map(|(name, _)| name)
        .collect();
    if !flushed.is_empty() {
        let zero = if flush.to_positive { "+0" } else { "zero of their sign" };
        lines.push(format!("subnormals of {} are read as {zero}", flushed.join(", ")));
    }
    if let Some(format) = flush.converted {
        lines.push(format!("a and b are converted to {format} before they are multiplied"));
    }
    lines
}
