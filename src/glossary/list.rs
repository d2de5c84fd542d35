//! Every entry, and the search for a name.

use std::sync::LazyLock;

use serde::Deserialize;

use super::{
    entry::{Entry, Kind},
    formats,
};
use crate::{findings::Probe, probes};

/// What `words.toml` says.
#[derive(Deserialize)]
struct Words {
    family: Vec<Text>,
    field: Vec<Text>,
}

/// An entry of that file.
#[derive(Deserialize)]
struct Text {
    name: String,
    about: String,
    how: String,
    #[serde(default)]
    answers: Vec<(String, String)>,
    source: String,
}

static WORDS: LazyLock<Words> =
    LazyLock::new(|| toml::from_str(include_str!("words.toml")).expect("the words of the glossary are TOML"));

impl Text {
    fn entry(&self, kind: Kind) -> Entry {
        let Self { name, about, how, answers, source } = self;
        Entry {
            name: name.clone(),
            kind,
            about: about.clone(),
            how: how.clone(),
            answers: answers.clone(),
            source: source.clone(),
        }
    }
}

/// Every entry: probes in the order in which they are asked, then formats, families and fields.
#[must_use]
pub fn entries() -> Vec<Entry> {
    let families = WORDS.family.iter().map(|text| text.entry(Kind::Family));
    let fields = WORDS.field.iter().map(|text| text.entry(Kind::Field));
    probes::all().map(of_probe).chain(formats::entries()).chain(families).chain(fields).collect()
}

fn of_probe(probe: &Probe) -> Entry {
    Entry {
        name: probe.name.to_owned(),
        kind: Kind::Probe,
        about: probe.question.to_owned(),
        how: probe.how.to_owned(),
        answers: probe.answers.iter().map(|(value, words)| ((*value).to_owned(), (*words).to_owned())).collect(),
        source: probe.source.to_owned(),
    }
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
