//! Saved reports as units of the site: those of one device together, whatever the driver.

use std::collections::BTreeMap;

use super::subject::Subject;
use crate::report::Report;

/// Groups reports into units, oldest first. Reports of models are left out: their pages are generated from the models.
#[must_use]
pub fn saved(reports: Vec<Report>) -> Vec<Subject> {
    let mut devices: BTreeMap<(String, String), Vec<Report>> = BTreeMap::new();
    for report in reports.into_iter().filter(|report| report.device.backend != "sim") {
        devices.entry((report.device.backend.clone(), report.device.fingerprint.clone())).or_default().push(report);
    }
    let subject = |((backend, fingerprint), mut reports): ((String, String), Vec<Report>)| {
        reports.sort_by(|left, right| left.time.start.cmp(&right.time.start));
        let newest = &reports.last().expect("a device has a report").device;
        Subject {
            file: file(&format!("{backend}-{fingerprint}")),
            name: newest.name.clone(),
            vendor: newest.properties.get("vendor").cloned().unwrap_or_default(),
            model: None,
            aliases: newest.aliases.clone(),
            reports,
        }
    };
    let mut subjects: Vec<Subject> = devices.into_iter().map(subject).collect();
    // Fingerprints may differ only in characters that file names do not have.
    for at in 1..subjects.len() {
        let (before, rest) = subjects.split_at_mut(at);
        while before.iter().any(|known| known.file == rest[0].file) {
            rest[0].file.push('_');
        }
    }
    subjects
}

/// A file name: everything except letters, digits and `_` becomes a dash.
fn file(name: &str) -> String {
    let letter = |letter: char| if letter.is_ascii_alphanumeric() || letter == '_' { letter } else { '-' };
    name.chars().map(letter).take(80).collect()
}
