//! What the words of a report mean: probes, formats, families of operations, fields.

mod families;
mod fields;
mod formats;
mod markdown;

use crate::{findings::Probe, probes};

pub use formats::called as formats_called;
pub use markdown::markdown;

/// What a name means to a reader of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name.
    pub name: String,
    /// What kind of name it is.
    pub kind: Kind,
    /// What it asks, or what it is.
    pub about: String,
    /// How it is found out, or what it is made of.
    pub how: String,
    /// Values and what each of them means for who computes with it.
    pub answers: Vec<(String, String)>,
    /// Where this is from.
    pub source: String,
}

/// The kinds of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A question about an operation.
    Probe,
    /// A number format.
    Format,
    /// A family of operations: the first word of an id.
    Family,
    /// A field of the report.
    Field,
}

impl Kind {
    /// In a word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Probe => "probe",
            Self::Format => "format",
            Self::Family => "family of operations",
            Self::Field => "field of the report",
        }
    }
}

/// Text as it stands in the tables of this module.
struct Text {
    name: &'static str,
    about: &'static str,
    how: &'static str,
    answers: &'static [(&'static str, &'static str)],
    source: &'static str,
}

impl Text {
    fn entry(&self, kind: Kind) -> Entry {
        Entry {
            name: self.name.to_owned(),
            kind,
            about: self.about.to_owned(),
            how: self.how.to_owned(),
            answers: self.answers.iter().map(|(value, words)| ((*value).to_owned(), (*words).to_owned())).collect(),
            source: self.source.to_owned(),
        }
    }
}

/// Every entry: probes in the order in which they are asked, then formats, families and fields.
#[must_use]
pub fn entries() -> Vec<Entry> {
    let families = families::TEXTS.iter().map(|text| text.entry(Kind::Family));
    let fields = fields::TEXTS.iter().map(|text| text.entry(Kind::Field));
    probes::all().map(of_probe).chain(formats::entries()).chain(families).chain(fields).collect()
}

fn of_probe(probe: &Probe) -> Entry {
    let Probe { name, question: about, how, answers, source, .. } = *probe;
    Text { name, about, how, answers, source }.entry(Kind::Probe)
}

/// What a name means, in every sense that it has; case is ignored. A function of scalar arithmetic is what its group is, an
/// operation what its family is.
///
/// ```
/// let name = |asked: &str| mxprobe::glossary::explain(asked).first().map(|entry| entry.name.clone());
/// assert_eq!(name("function.convert.f16").as_deref(), Some("function.convert"));
/// assert_eq!(name("scalar.f32.rz").as_deref(), Some("scalar"));
/// assert_eq!(name("function.nosuch"), None);
/// ```
#[must_use]
pub fn explain(name: &str) -> Vec<Entry> {
    use mxprobe_api::{OperationId, ScalarFunction, ScalarId};

    let lower = name.to_ascii_lowercase();
    let called = |name: &str| -> Vec<Entry> {
        entries().into_iter().filter(|entry| entry.name.eq_ignore_ascii_case(name)).collect()
    };
    let found = called(&lower);
    if !found.is_empty() {
        return found;
    }
    let function = lower.strip_prefix("function.").filter(|function| function.parse::<ScalarFunction>().is_ok());
    if let Some((group, _)) = function.and_then(|function| function.split_once('.')) {
        return called(&format!("function.{group}"));
    }
    let is_operation = lower.parse::<OperationId>().is_ok() || lower.parse::<ScalarId>().is_ok();
    let family = lower.split('.').next().filter(|_| is_operation);
    family
        .map_or_else(Vec::new, |family| called(family).into_iter().filter(|entry| entry.kind == Kind::Family).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use mxprobe_api::Format;

    use super::*;

    fn names(kind: Kind) -> BTreeSet<String> {
        entries().into_iter().filter(|entry| entry.kind == kind).map(|entry| entry.name).collect()
    }

    #[test]
    fn every_format_is_explained() {
        let formats: BTreeSet<String> = Format::ALL.iter().map(ToString::to_string).collect();
        assert_eq!(names(Kind::Format), formats);
    }

    #[test]
    fn every_family_of_the_models_is_explained() {
        let known = names(Kind::Family);
        for model in mxprobe_models::shipped() {
            for id in model.operations.keys() {
                assert!(known.contains(&id.family), "{} of {}", id.family, model.name);
            }
        }
    }

    #[test]
    fn every_field_of_the_report_is_explained_and_nothing_that_is_none() {
        let schema = crate::report::schema();
        let fields = |of: &str| -> BTreeSet<String> {
            let pointer = if of.is_empty() { "/properties".to_owned() } else { format!("/$defs/{of}/properties") };
            schema.pointer(&pointer).and_then(|found| found.as_object()).expect(of).keys().cloned().collect()
        };
        let known = names(Kind::Field);
        let parts = ["", "OperationReport", "Finding", "Evidence", "Rival", "DeviceRecord", "RefusalRecord"];
        let all: BTreeSet<String> = parts.iter().flat_map(|part| fields(part)).collect();
        for part in ["", "Finding"] {
            assert!(fields(part).is_subset(&known), "{part}: {:?}", fields(part).difference(&known));
        }
        let bench = crate::report::bench_schema();
        let of_bench = ["/properties", "/$defs/Throughput/properties", "/$defs/ThroughputRun/properties"];
        let of_bench = of_bench.into_iter().filter_map(|pointer| bench.pointer(pointer)?.as_object());
        let all: BTreeSet<String> = all.into_iter().chain(of_bench.flat_map(|of| of.keys().cloned())).collect();
        assert!(known.is_subset(&all), "{:?}", known.difference(&all));
    }

    #[test]
    fn no_entry_has_an_empty_part() {
        for entry in entries() {
            for (part, text) in [("about", &entry.about), ("how", &entry.how), ("source", &entry.source)] {
                assert!(!text.is_empty(), "{}: {part}", entry.name);
            }
            assert!(entry.kind != Kind::Probe || entry.answers.len() > 1, "{}", entry.name);
        }
    }
}
