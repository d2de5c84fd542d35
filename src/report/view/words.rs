//! Wording that all views share: answers, numbers, evidence, durations.

use std::{collections::BTreeMap, time::Duration};

use mxprobe_api::{Format, OperationId, ScalarFunction};

use super::page::{Block, Tone};
use crate::{
    findings::Outcome,
    plain::{self, short},
    report::{
        AtOnce, BitsKept, Conditions, DeviceRecord, DriverRecord, EvidenceRecord, FindingRecord, Host, Kind,
        OperationReport, Resumption, SummaryRow, Time, Tool,
    },
};

/// The kind of a device, in words.
pub(super) fn kind(device: &DeviceRecord) -> &'static str {
    match device.kind {
        _ if device.emulated => "a double made for tests: nothing was measured on a device",
        Kind::Hardware => "hardware",
        Kind::Software => "driver that computes in software",
        Kind::Model => "model: nothing was measured on silicon",
    }
}

/// The name of a kind, as in the JSON.
pub(super) fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Hardware => "hardware",
        Kind::Software => "software",
        Kind::Model => "model",
    }
}

/// The driver and its versions.
pub(super) fn driver(driver: &DriverRecord) -> String {
    let api = if driver.api_version.is_empty() { String::new() } else { format!("; API {}", driver.api_version) };
    format!("{} {}{api}", driver.name, driver.version)
}

/// The facts about device, machine and run in the head of a report, as names and values.
pub(super) fn origin(device: &DeviceRecord, host: &Host, tool: &Tool, time: &Time) -> Vec<(String, String)> {
    let mut facts = vec![("fingerprint".to_owned(), device.fingerprint.clone())];
    facts.extend(device.driver.as_ref().map(|found| ("driver".to_owned(), driver(found))));
    let cpu = host.cpu.as_ref().filter(|_| device.kind != Kind::Model);
    facts.extend(cpu.map(|cpu| ("on".to_owned(), format!("{cpu}, {}", host.os))));
    facts.push(("by".to_owned(), format!("{} {}", tool.name, tool.version_and_commit())));
    facts.push(("made".to_owned(), format!("{}, {}", time.start, seconds(time.duration_ns))));
    facts
}

/// The relevant environment variables, if any was set.
pub(super) fn environment(host: &Host) -> Option<String> {
    let variables = host.environment.iter().map(|(name, value)| format!("{name}={value}"));
    (!host.environment.is_empty()).then(|| variables.collect::<Vec<_>>().join("; "))
}

/// The readings of the system for the device, before and after.
pub(super) fn conditions(conditions: &Conditions) -> Option<String> {
    let words = |(when, readings): (&str, &BTreeMap<String, String>)| {
        let all: Vec<String> = readings.iter().map(|(name, value)| format!("{name} {value}")).collect();
        (!all.is_empty()).then(|| format!("{when}: {}", all.join(", ")))
    };
    let both: Vec<String> =
        [("before", &conditions.start), ("after", &conditions.end)].into_iter().filter_map(words).collect();
    (!both.is_empty()).then(|| both.join("; "))
}

/// Counts findings by outcome; outcomes that did not occur are omitted.
pub(super) fn tally<'a>(findings: impl Iterator<Item = &'a FindingRecord> + Clone) -> String {
    let ways = [Outcome::Measured, Outcome::Unsupported, Outcome::Skipped, Outcome::Inconclusive, Outcome::Failed];
    let counts = ways.map(|way| (findings.clone().filter(|finding| finding.outcome == way).count(), way.name()));
    let counts = counts.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}"));
    let counts = counts.collect::<Vec<_>>();
    if counts.is_empty() { "no findings".to_owned() } else { counts.join(", ") }
}

/// The tone in which an outcome is shown.
pub(super) fn tone(outcome: Outcome) -> Tone {
    match outcome {
        Outcome::Measured => Tone::Plain,
        Outcome::Unsupported | Outcome::Skipped => Tone::Muted,
        Outcome::Inconclusive => Tone::Warning,
        Outcome::Failed => Tone::Failure,
    }
}

/// The outcomes of the probes of a group of operations with the same answers, the number of dots asked of all of them,
/// and the time taken.
pub(super) fn group(group: &[&OperationReport]) -> String {
    let total = |value: fn(&OperationReport) -> u64| group.iter().map(|report| value(report)).sum::<u64>();
    let tally = tally(group[0].findings.iter());
    format!("{tally}; {} dots, {}", total(|report| report.dots), seconds(total(|report| report.duration_ns)))
}

/// One dot as lines: its purpose, the products other than +0 × +0, scales, c, d and the predictions of the
/// rivals.
pub(super) fn evidence(id: &OperationId, evidence: &EvidenceRecord) -> [Block; 2] {
    let show = |format: Format, text: &str| match format.parse_hex(text) {
        Ok(bits) => format!("{text} ({})", plain::decimal(format, bits)),
        Err(_) => text.to_owned(),
    };
    let mut lines = Vec::new();
    for (k, (a, b)) in evidence.a.iter().zip(&evidence.b).enumerate() {
        if !is_zero(id.a, a) || !is_zero(id.b, b) {
            lines.push(format!("k {k}: a {}, b {}", show(id.a, a), show(id.b, b)));
        }
    }
    if let (Some(scale), Some(a), Some(b)) = (id.block_scale(), &evidence.scale_a, &evidence.scale_b) {
        for (block, (a, b)) in a.iter().zip(b).enumerate() {
            lines.push(format!("scales {block}: a {}, b {}", show(scale.format, a), show(scale.format, b)));
        }
    }
    lines.push(format!("c {}", show(id.c, &evidence.c)));
    lines.push(format!("d {}", show(id.d, &evidence.d)));
    lines.extend(evidence.rivals.iter().map(|rival| format!("{}: {}", rival.answer, show(id.d, &rival.d))));
    [Block::words(&evidence.about), Block::Inset(vec![Block::Lines(lines)])]
}

/// A duration in seconds, with one decimal.
pub(super) fn tenths(nanoseconds: u64) -> String {
    format!("{:.1} s", Duration::from_nanos(nanoseconds).as_secs_f64())
}

/// The first fields of each row of a table for spreadsheets: schema, version, start, backend, fingerprint and device.
pub(super) fn run_fields(schema: &str, tool: &Tool, time: &Time, device: &DeviceRecord) -> Vec<String> {
    [schema, &tool.version, &time.start, &device.backend, &device.fingerprint, &device.name].map(str::to_owned).into()
}

/// How often a run was resumed, and when last; `None` if it was not.
pub(super) fn resumed(resumptions: &[Resumption]) -> Option<String> {
    let last = resumptions.last()?;
    let times = match resumptions.len() {
        1 => "once".to_owned(),
        times => format!("{times} times"),
    };
    Some(format!("resumed {times}, last at {}", last.time))
}

/// The note for an interrupted run; `None` if the run was not interrupted.
pub(super) fn interrupted(time: &Time) -> Option<Block> {
    time.interrupted.then(|| Block::Words(Tone::Warning, INTERRUPTED.to_owned()))
}

/// The text of the note for an interrupted run.
pub(super) const INTERRUPTED: &str = "interrupted: the operations that are missing here were not asked";

/// The purpose of a dot.
pub(super) fn about(evidence: &EvidenceRecord) -> &str {
    if evidence.about.is_empty() { "evidence" } else { &evidence.about }
}

/// The number of products added at once.
pub(super) fn at_once(count: AtOnce) -> String {
    match count {
        AtOnce::All => "all".to_owned(),
        AtOnce::Products(products) => products.to_string(),
    }
}

/// The number of fraction bits kept.
pub(super) fn bits_kept(bits: BitsKept) -> String {
    match bits {
        BitsKept::Exact => "exact".to_owned(),
        BitsKept::AtLeast(bits) => format!("≥{bits}"),
        BitsKept::Bits(bits) => bits.to_string(),
    }
}

/// The answer of a row in one short line, for a table of sums by devices: `25 ×16 trunc RZ`, `exact ×1 RNE`, `exact,
/// wraps`.
pub(super) fn brief(row: &SummaryRow) -> String {
    let bits = row.bits_kept.map_or_else(|| "?".to_owned(), bits_kept);
    if row.is_integer() {
        return format!("{bits}, {}", row.overflow.as_deref().unwrap_or("?"));
    }
    let mut words = vec![bits, format!("×{}", row.products_at_once.map_or_else(|| "?".to_owned(), at_once))];
    words.extend(row.dropped.as_deref().map(|dropped| match dropped {
        "truncate" => "trunc".to_owned(),
        "ceiling" => "ceil".to_owned(),
        "ones-complement" => "1's".to_owned(),
        "nearest" => "near".to_owned(),
        other => other.to_owned(),
    }));
    words.push(row.rounding.clone().unwrap_or_else(|| "?".to_owned()));
    if row.inputs.iter().any(|kind| kind.ends_with("fnuz")) {
        words.push("fnuz".to_owned());
    }
    words.join(" ")
}

/// The explanation of the line that [`brief`] makes.
pub(super) const BRIEF: &str = "fraction bits kept below the largest term (f32 has 23), products added at once, what becomes of \
    lower bits, rounding of the result; - not offered";

/// The treatment of lower bits; a dash if none is lost.
pub(super) fn dropped(row: &SummaryRow) -> &str {
    match row.dropped.as_deref() {
        Some("truncate") => "truncated",
        Some("floor") => "floored",
        Some("ceiling") => "raised",
        Some("ones-complement") => "1's compl.",
        Some("nearest") => "rounded",
        Some(other) => other,
        None if matches!(row.bits_kept, Some(BitsKept::Exact | BitsKept::AtLeast(_))) => "-",
        None => "?",
    }
}

/// The rounding of sums to the result, or the treatment of integer sums out of range.
pub(super) fn result(row: &SummaryRow) -> String {
    if row.is_integer() {
        let satfinite = row.modes.iter().any(|mode| mode == "satfinite");
        let overflow = row.overflow.as_deref().unwrap_or("?");
        return if satfinite && overflow == "wraps" { "wraps or .satfinite".to_owned() } else { overflow.to_owned() };
    }
    let mut text = match row.rounding.as_deref() {
        Some("RNE") => "to nearest",
        Some("RZ") => "toward zero",
        Some("RD") => "downward",
        Some("RU") => "upward",
        Some("RO") => "to odd",
        Some("none") => "not rounded",
        Some(other) => other,
        None => "?",
    }
    .to_owned();
    let all = Format::named(&row.result).map_or(0, Format::fraction_bits);
    match (row.result_bits, row.rounded_to_bits) {
        (Some(bits), _) => text.push_str(&format!(", {bits} bits")),
        (None, Some(bits)) if bits == all + 1 => text.push_str(", each sum"),
        (None, Some(24)) => text.push_str(", by f32"),
        (None, Some(bits)) => text.push_str(&format!(", by {bits} bits")),
        (None, None) => {}
    }
    text
}

/// The maximum number of products that are shown one per line.
const PRODUCTS_ON_LINES: usize = 8;

/// A dot, line by line: the products other than +0 × +0, c, d, and the predictions of the rivals.
pub(super) fn dot(evidence: &EvidenceRecord, id: &OperationId) -> Vec<String> {
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

/// A call of a scalar function: operands, result, and the predictions of the rivals.
fn call(evidence: &EvidenceRecord, name: &str, id: &OperationId) -> Vec<String> {
    let to = name.parse().map_or(id.d, |function: ScalarFunction| function.result(id.a));
    let operands: Vec<String> = evidence.a.iter().map(|bits| number(id.a, bits)).collect();
    let mut lines = vec![format!("{name}({})  →  {}", operands.join(", "), number(to, &evidence.d))];
    lines.extend(evidence.rivals.iter().map(|rival| format!("{} would return {}", rival.answer, number(to, &rival.d))));
    lines
}

/// The products other than +0 × +0, and the scales.
pub(super) fn inputs(evidence: &EvidenceRecord, id: &OperationId) -> Vec<String> {
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

/// Bits, followed by the value for people. Text that is not a number of the format is returned unchanged.
pub(super) fn number(format: Format, hex: &str) -> String {
    match format.parse_hex(hex) {
        Ok(bits) => format!("{hex} ({})", short(format, bits)),
        Err(_) => hex.to_owned(),
    }
}

/// A duration in milliseconds if below one second, otherwise in seconds.
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
    fn durations_keep_their_unit() {
        assert_eq!(seconds(1_250_000), "1.2 ms");
        assert_eq!(seconds(12_345_000_000), "12.34 s");
    }
}
