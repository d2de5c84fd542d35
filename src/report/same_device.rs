//! One device that two backends reached: how it is recognised, and whether the same unit answers them.

use super::{Kind, Match, Report, Side, State, compare::keys, words};

/// The properties that backends fill alike.
const UUID: &str = super::provenance::UUID_DIGEST;
const PLACE: &str = "pci_bus_id";
const MAKE: [&str; 2] = ["vendor_id", "device_id"];

/// What shows that two reports are of one device, reached by different backends on one machine: the name of a property
/// and its value.
///
/// The UUID decides where both have one; else the place on the bus, which is no evidence across machines. Some drivers make
/// the UUID of that place, so that two machines with the same CPU and the same GPU in the same place are taken for one.
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

/// A property that says something: a UUID of zeros is none.
fn property<'a>(report: &'a Report, name: &str) -> Option<&'a str> {
    let value = report.device.properties.get(name)?.as_str();
    value.bytes().any(|byte| !matches!(byte, b'0' | b'-' | b':' | b'.')).then_some(value)
}

/// A sentence for each pair of reports of one device.
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

/// Whether the same unit answers both, as far as what they have in common shows.
fn verdict(matches: &[Match], left: usize, right: usize) -> String {
    let in_common: Vec<&Match> = matches
        .iter()
        .filter(|found| !found.operations[left].is_empty() && !found.operations[right].is_empty())
        .collect();
    let operations = |found: &[&Match]| found.iter().map(|found| found.operations[left].len()).sum::<usize>();
    let differing: Vec<&Match> = in_common.iter().copied().filter(|found| differs(found, left, right)).collect();
    match (operations(&in_common), operations(&differing)) {
        (0, _) => "no operation of both computes the same, so that it is open whether the same unit answers".to_owned(),
        (all, 0) => format!(
            "the same unit answers, as far as {} in common show: no answer and no bit of evidence differs",
            words::count(all, "operation")
        ),
        (all, some) => {
            let all = words::count(all, "operation");
            format!("not the same unit answers, or not in the same way: {some} of {all} in common do not agree")
        }
    }
}

/// Whether two sides of a match differ, whatever the others say.
fn differs(found: &Match, left: usize, right: usize) -> bool {
    let mut rows = found.rows.iter().filter(|row| row.state == State::Differs);
    let mut dots = found.dots.iter().map(|dot| (&dot.d[left], &dot.d[right]));
    rows.any(|row| keys(&row.probe, &row.answers[left]) != keys(&row.probe, &row.answers[right]))
        || dots.any(|(left, right)| left.is_some() && right.is_some() && left != right)
}
