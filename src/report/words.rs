//! What every view says in the same words: answers, numbers, evidence, durations.

use std::collections::BTreeMap;

use mxprobe_api::{Decoded, Format, OperationId, ScalarFunction};

use super::{Conditions, DeviceRecord, Evidence, Finding, Host, Kind, Outcome};

/// What stands behind a device, in words.
pub(super) fn kind(device: &DeviceRecord) -> &'static str {
    match device.kind {
        _ if device.emulated => "a double made for tests: nothing was measured on a device",
        Kind::Hardware => "hardware",
        Kind::Software => "driver that computes in software",
        Kind::Model => "model: nothing was measured on silicon",
    }
}

/// The variables of the environment that matter, where any was set.
pub(super) fn environment(host: &Host) -> Option<String> {
    let variables = host.environment.iter().map(|(name, value)| format!("{name}={value}"));
    (!host.environment.is_empty()).then(|| variables.collect::<Vec<_>>().join("; "))
}

/// What the system said of the device, before and after.
pub(super) fn conditions(conditions: &Conditions) -> Option<String> {
    let words = |(when, readings): (&str, &BTreeMap<String, String>)| {
        let all: Vec<String> = readings.iter().map(|(name, value)| format!("{name} {value}")).collect();
        (!all.is_empty()).then(|| format!("{when}: {}", all.join(", ")))
    };
    let both: Vec<String> =
        [("before", &conditions.start), ("after", &conditions.end)].into_iter().filter_map(words).collect();
    (!both.is_empty()).then(|| both.join("; "))
}

/// The name of an outcome, as in the JSON.
pub(super) fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Measured => "measured",
        Outcome::Unsupported => "unsupported",
        Outcome::Skipped => "skipped",
        Outcome::Failed => "failed",
        Outcome::Inconclusive => "inconclusive",
    }
}

/// The answer in words; where there is none, a dash with the outcome and its reason.
pub(super) fn answer(finding: &Finding) -> String {
    if finding.outcome == Outcome::Measured {
        return finding.statement.clone();
    }
    let outcome = outcome(finding.outcome);
    match (&finding.reason, finding.statement.as_str()) {
        (Some(reason), _) => format!("— {outcome}: {reason}"),
        (None, "") => format!("— {outcome}"),
        (None, statement) => format!("— {outcome}: {statement}"),
    }
}

/// How many findings ended in which way; ways that did not occur are left out.
pub(super) fn tally<'a>(findings: impl Iterator<Item = &'a Finding> + Clone) -> String {
    let ways = [Outcome::Measured, Outcome::Unsupported, Outcome::Skipped, Outcome::Inconclusive, Outcome::Failed];
    let counts = ways.map(|way| (findings.clone().filter(|finding| finding.outcome == way).count(), outcome(way)));
    let counts = counts.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}"));
    let counts = counts.collect::<Vec<_>>();
    if counts.is_empty() { "no findings".to_owned() } else { counts.join(", ") }
}

/// `1 report`, `2 reports`.
pub(super) fn count(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// What a dot was made to show.
pub(super) fn about(evidence: &Evidence) -> &str {
    if evidence.about.is_empty() { "evidence" } else { &evidence.about }
}

/// Products that are shown one a line.
const PRODUCTS_ON_LINES: usize = 8;

/// A dot line by line: the inputs that are not +0, c, d, and what the rivals predict.
pub(super) fn dot(evidence: &Evidence, id: &OperationId) -> Vec<String> {
    if let Some(name) = &evidence.function {
        return call(evidence, name, id);
    }
    let mut lines = inputs(evidence, id);
    lines.push(format!("c = {}  →  d = {}", number(id.c, &evidence.c), number(id.d, &evidence.d)));
    for rival in &evidence.rivals {
        lines.push(format!("{} would return {}", rival.answer, number(id.d, &rival.d)));
    }
    lines
}

/// A call of a scalar function: operands, result, and what the rivals predict.
fn call(evidence: &Evidence, name: &str, id: &OperationId) -> Vec<String> {
    let to = name.parse().map_or(id.d, |function: ScalarFunction| function.result(id.a));
    let operands: Vec<String> = evidence.a.iter().map(|bits| number(id.a, bits)).collect();
    let mut lines = vec![format!("{name}({})  →  {}", operands.join(", "), number(to, &evidence.d))];
    lines.extend(evidence.rivals.iter().map(|rival| format!("{} would return {}", rival.answer, number(to, &rival.d))));
    lines
}

/// The products that are not of two zeros, and the scales.
pub(super) fn inputs(evidence: &Evidence, id: &OperationId) -> Vec<String> {
    let mut products = Vec::new();
    for (index, (a, b)) in evidence.a.iter().zip(&evidence.b).enumerate() {
        if !(is_zero(id.a, a) && is_zero(id.b, b)) {
            products.push(format!("{index}: {} × {}", number(id.a, a), number(id.b, b)));
        }
    }
    let mut lines = if products.len() <= PRODUCTS_ON_LINES { products } else { vec![products.join(", ")] };
    for (name, scales) in [("scale_a", &evidence.scale_a), ("scale_b", &evidence.scale_b)] {
        if let (Some(scales), Some(scale)) = (scales, id.block_scale()) {
            let scales: Vec<String> = scales.iter().map(|bits| number(scale.format, bits)).collect();
            lines.push(format!("{name} = {}", scales.join(", ")));
        }
    }
    lines
}

fn is_zero(format: Format, hex: &str) -> bool {
    format.parse_hex(hex).is_ok_and(|bits| bits == 0)
}

/// Bits and, beside them, the value for people. Text that is no number of the format is shown as it is.
pub(super) fn number(format: Format, hex: &str) -> String {
    match format.parse_hex(hex) {
        Ok(bits) => format!("{hex} ({})", decimal(format, bits)),
        Err(_) => hex.to_owned(),
    }
}

/// The value for people: a decimal that reads back as the same value, or, where that is long, a multiple of a power of
/// two; `NaN`, `inf`, `-0`.
fn decimal(format: Format, bits: u64) -> String {
    let value = format.to_f64(bits);
    let Decoded::Finite { negative, significand, exponent } = format.decode(bits) else { return value.to_string() };
    let top = 63 - significand.leading_zeros().cast_signed();
    let exponent = exponent - format.fraction_bits().cast_signed() + top;
    if format.is_integer() || (-10..24).contains(&exponent) {
        return match u32::try_from(bits) {
            Ok(bits) if format == Format::F32 => f32::from_bits(bits).to_string(),
            _ => value.to_string(),
        };
    }
    let sign = if negative { "-" } else { "" };
    let fraction = Format::F64.to_f64((significand << (63 - top) << 1 >> 12) | 1023 << 52);
    if significand.is_power_of_two() {
        format!("{sign}2^{exponent}")
    } else {
        format!("{sign}{fraction}·2^{exponent}")
    }
}

pub(super) fn seconds(nanoseconds: u64) -> String {
    let tenths_of_ms = nanoseconds / 100_000;
    if tenths_of_ms < 10_000 {
        format!("{}.{} ms", tenths_of_ms / 10, tenths_of_ms % 10)
    } else {
        format!("{}.{:02} s", tenths_of_ms / 10_000, tenths_of_ms % 10_000 / 100)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_stand_for_their_bits() {
        for (format, bits, text) in [
            (Format::F32, 0x3f80_0001, "1.0000001"),
            (Format::F32, 0x0000_0001, "2^-149"),
            (Format::F32, 0xf200_0001, "-1.0000001192092896·2^101"),
            (Format::BF16, 0x5e81, "1.0078125·2^62"),
            (Format::F32, 0x8000_0000, "-0"),
            (Format::F32, 0x7fc0_0000, "NaN"),
            (Format::F32, 0xff80_0000, "-inf"),
            (Format::F16, 0x0001, "2^-24"),
            (Format::F16, 0x0003, "1.5·2^-23"),
            (Format::F32, 0x4980_0000, "1048576"),
            (Format::E4M3, 0x7e, "448"),
            (Format::S32, 0xffff_ffff, "-1"),
            (Format::F64, 0x3ff0_0000_0000_0001, "1.0000000000000002"),
        ] {
            assert_eq!(decimal(format, bits), text, "{format} {bits:#x}");
        }
    }

    #[test]
    fn durations_keep_their_unit() {
        assert_eq!(seconds(1_250_000), "1.2 ms");
        assert_eq!(seconds(12_345_000_000), "12.34 s");
    }
}
