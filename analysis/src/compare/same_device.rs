//! A device reached through two backends: how it is recognised, and whether the same unit answers both.

use std::collections::BTreeSet;

use mxprobe_api::{Decoded, ScalarFunction};

use super::keys::{comparable, keys};
use crate::{
    findings::Comparable,
    plain::counted,
    record::{DotCompared, Kind, Match, Report, Side, State, UUID_DIGEST},
    scalars::FAMILY,
};

/// Properties that all backends fill in the same way.
const UUID: &str = UUID_DIGEST;
const PLACE: &str = "pci_bus_id";
const MAKE: [&str; 2] = ["vendor_id", "device_id"];

/// The name for a difference in the bits of evidence when no answer differs.
const BITS: &str = "bits of evidence";

/// Returns the evidence that two reports are of one device, reached by different backends on one machine: the name of a
/// property and its value.
///
/// The UUID decides if both have one; otherwise the bus address, which is not evidence across machines. Some drivers
/// derive the UUID from the bus address, so two machines with the same CPU and the same GPU at the same address are
/// mistaken for one.
pub(super) fn shown_by<'a>(left: &'a Report, right: &'a Report) -> Option<(&'static str, &'a str)> {
    let of_device = |report: &Report| report.device.kind != Kind::Model && !report.device.emulated;
    let may_be = left.device.backend != right.device.backend && of_device(left) && of_device(right);
    let one_machine = left.host.cpu == right.host.cpu && left.host.memory_bytes == right.host.memory_bytes;
    let one_make = MAKE.iter().all(|name| match (property(left, name), property(right, name)) {
        (Some(left), Some(right)) => left == right,
        _ => true,
    });
    if !(may_be && one_machine && one_make) {
        return None;
    }
    [UUID, PLACE]
        .into_iter()
        .find_map(|name| Some((name, property(left, name)?, property(right, name)?)))
        .and_then(|(name, left, right)| (left == right).then_some((name, left)))
}

/// Returns a property with a meaningful value: a UUID of zeros does not count.
fn property<'a>(report: &'a Report, name: &str) -> Option<&'a str> {
    let value = report.device.properties.get(name)?.as_str();
    value.bytes().any(|byte| !matches!(byte, b'0' | b'-' | b':' | b'.')).then_some(value)
}

/// Returns a sentence for each pair of reports of one device.
pub(super) fn notes(reports: &[&Report], sides: &[Side], matches: &[Match]) -> Vec<String> {
    let pairs = (0..reports.len()).flat_map(|left| (left + 1..reports.len()).map(move |right| (left, right)));
    pairs
        .filter_map(|(left, right)| {
            let (name, value) = shown_by(reports[left], reports[right])?;
            let (one, other) = (&sides[left], &sides[right]);
            Some(format!(
                "{} and {} are the same device ({name} {value}), reached through {} and {}: {}",
                one.label,
                other.label,
                one.backend,
                other.backend,
                verdict(matches, left, right)
            ))
        })
        .collect()
}

/// Says whether the same units answer both, as far as their common operations show: the matrix unit and the scalar
/// unit.
fn verdict(matches: &[Match], left: usize, right: usize) -> String {
    let in_common =
        matches.iter().filter(|found| !found.operations[left].is_empty() && !found.operations[right].is_empty());
    let (scalars, matrices): (Vec<&Match>, Vec<&Match>) =
        in_common.partition(|found| found.operations[left].iter().all(|id| id.family == FAMILY));
    let verdicts = [("matrix", &matrices), ("scalar", &scalars)].into_iter().filter(|(_, found)| !found.is_empty());
    let verdicts: Vec<String> = verdicts.map(|(unit, found)| of_unit(unit, found, left, right)).collect();
    if verdicts.is_empty() {
        return "no operation of both computes the same, so that it is open whether the same unit answers".to_owned();
    }
    verdicts.join("; ")
}

fn of_unit(unit: &str, in_common: &[&Match], left: usize, right: usize) -> String {
    let count =
        |found: &mut dyn Iterator<Item = &&Match>| found.map(|found| found.operations[left].len()).sum::<usize>();
    let all = counted(count(&mut in_common.iter()), &format!("{unit} operation"));
    let differing: Vec<&str> = in_common.iter().flat_map(|found| differing(found, left, right)).collect();
    let names = differing.iter().copied().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ");
    let some = count(&mut in_common.iter().filter(|found| !self::differing(found, left, right).is_empty()));
    if differing.is_empty() {
        format!(
            "the same {unit} unit answers, as far as {all} in common show: no answer and no bit of evidence differs"
        )
    } else if in_common.iter().all(|found| agree_but_for_nan(found, left, right)) {
        format!(
            "the same {unit} unit answers, as far as {all} in common show: nothing differs but which NaN comes through \
             ({names}), which may be up to the compiler"
        )
    } else {
        format!(
            "not the same {unit} unit answers, or not in the same way: {some} of {all} in common do not agree ({names})"
        )
    }
}

/// Lists the differences between two sides of a match, whatever the other sides say: the probes whose answers differ,
/// and bits of evidence.
fn differing(found: &Match, left: usize, right: usize) -> Vec<&str> {
    let rows = found.rows.iter().filter(|row| row.state == State::Differs);
    let rows = rows.filter(|row| {
        let compared = comparable(&row.probe);
        keys(compared, &row.answers[left]) != keys(compared, &row.answers[right])
    });
    let mut names: Vec<&str> = rows.map(|row| row.probe.as_str()).collect();
    if dots(found, left, right).next().is_some() {
        names.push(BITS);
    }
    names
}

/// Iterates over the dots whose results differ between the two sides, with both results.
fn dots(found: &Match, left: usize, right: usize) -> impl Iterator<Item = (&DotCompared, [&str; 2])> {
    found.dots.iter().filter_map(move |dot| {
        let pair = [dot.d[left].as_deref()?, dot.d[right].as_deref()?];
        (pair[0] != pair[1]).then_some((dot, pair))
    })
}

/// Whether the only differences are the NaN bits of results that are NaN on both sides.
fn agree_but_for_nan(found: &Match, left: usize, right: usize) -> bool {
    let is_of_nan = |name: &str| name == BITS || matches!(comparable(name), Comparable::NanBits);
    let is_nan = |dot: &DotCompared, d: &str| {
        let Some(id) = dot.operations[left].as_ref().or(dot.operations[right].as_ref()) else { return false };
        let format = dot.input.function.as_ref().map_or(Some(id.d), |function| {
            function.parse::<ScalarFunction>().ok().map(|function| function.result(id.d))
        });
        let bits = format.and_then(|format| Some((format, u64::from_str_radix(d.strip_prefix("0x")?, 16).ok()?)));
        bits.is_some_and(|(format, bits)| matches!(format.decode(bits), Decoded::Nan { .. }))
    };
    differing(found, left, right).into_iter().all(is_of_nan)
        && dots(found, left, right).all(|(dot, pair)| pair.iter().all(|d| is_nan(dot, d)))
}
