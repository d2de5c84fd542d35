//! All entries, and the search for a name.

use std::sync::LazyLock;

use mxprobe_api::OperationId;
use serde::Deserialize;

use super::{Entry, Kind, formats};
use crate::{contained, findings::Probe, probes};

/// The content of `words.toml`.
#[derive(Deserialize)]
struct Words {
    family: Vec<Text>,
    field: Vec<Text>,
    term: Vec<Text>,
}

/// An entry of `words.toml`.
#[derive(Deserialize)]
struct Text {
    name: String,
    /// Other names of the entry.
    #[serde(default)]
    also: Vec<String>,
    about: String,
    how: String,
    #[serde(default)]
    answers: Vec<(String, String)>,
    source: String,
}

static WORDS: LazyLock<Words> = LazyLock::new(|| contained::table(include_str!("words.toml")));

impl Text {
    fn entry(&self, kind: Kind) -> Entry {
        let Self { name, also: _, about, how, answers, source } = self;
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

/// All entries: probes in the order in which they are asked, then formats, families, fields and terms.
#[must_use]
pub fn entries() -> Vec<Entry> {
    let families = WORDS.family.iter().map(|text| text.entry(Kind::Family));
    let fields = WORDS.field.iter().map(|text| text.entry(Kind::Field));
    let terms = WORDS.term.iter().map(|text| text.entry(Kind::Term));
    probes::all().map(of_probe).chain(formats::entries()).chain(families).chain(fields).chain(terms).collect()
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

/// Every meaning of a name; ignores case. A function of scalar arithmetic has the entry of its group, and an operation
/// that of its family.
///
/// ```
/// let name = |asked: &str| mxprobe::glossary::explain(asked).first().map(|entry| entry.name.clone());
/// assert_eq!(name("function.convert.f16").as_deref(), Some("function.convert"));
/// assert_eq!(name("scalar.f32.rz").as_deref(), Some("scalar"));
/// assert_eq!(name("function.nosuch"), None);
/// assert_eq!(name("round toward zero").as_deref(), Some("RZ"));
/// assert_eq!(name("mma.m16n8k16.f32.f16.f16.f32").as_deref(), Some("mma.m16n8k16.f32.f16.f16.f32"));
/// ```
#[must_use]
pub fn explain(name: &str) -> Vec<Entry> {
    use mxprobe_api::{ScalarFunction, ScalarId};

    let lower = name.to_ascii_lowercase();
    let called = |name: &str| -> Vec<Entry> {
        entries().into_iter().filter(|entry| entry.name.eq_ignore_ascii_case(name)).collect()
    };
    let mut found = called(&lower);
    let terms = WORDS.term.iter().filter(|term| term.also.contains(&lower));
    found.extend(terms.map(|term| term.entry(Kind::Term)));
    if !found.is_empty() {
        return found;
    }
    let function = lower.strip_prefix("function.").filter(|function| function.parse::<ScalarFunction>().is_ok());
    if let Some((group, _)) = function.and_then(|function| function.split_once('.')) {
        return called(&format!("function.{group}"));
    }
    let operation = lower.parse::<OperationId>().ok();
    let is_operation = operation.is_some() || lower.parse::<ScalarId>().is_ok();
    let family = lower.split('.').next().filter(|_| is_operation);
    let mut found: Vec<Entry> = operation
        .filter(|id| lower.parse::<ScalarId>().is_err() || id.family != "scalar")
        .map(|id| of_operation(&id))
        .into_iter()
        .collect();
    let family = family.map_or_else(Vec::new, &called);
    found.extend(family.into_iter().filter(|entry| entry.kind == Kind::Family));
    found
}

/// Other names of terms, which [`explain`] finds too.
pub fn other_names() -> impl Iterator<Item = &'static str> {
    WORDS.term.iter().flat_map(|term| term.also.iter().map(String::as_str))
}

/// Whether a tree contains an adder's name as a whole word: `f16` is not in `fp8-f16`.
fn names_adder(tree: &str, name: &str) -> bool {
    tree.split(|letter: char| !letter.is_alphanumeric() && !"-_".contains(letter)).any(|word| word == name)
}

/// The operands of an operation, and how the models that have it compute it.
fn of_operation(id: &OperationId) -> Entry {
    let (m, n, k) = id.shape.sizes();
    let mut about = format!(
        "D = A·B + C: A is {m}×{k} in {}, B {k}×{n} in {}, C {m}×{n} in {}, D in {}.",
        id.a.name(),
        id.b.name(),
        id.c.name(),
        id.d.name()
    );
    if let Some(scale) = id.block_scale() {
        about += &format!(" Each {} elements share a scale in {}.", scale.block, scale.format.name());
    }
    let mut answers = Vec::new();
    let mut sources = Vec::new();
    for model in mxprobe_models::shipped() {
        let Some(unit) = model.unit(id) else { continue };
        let of_unit = model.adders.iter().filter(|adder| names_adder(&unit.tree, &adder.name));
        let adders: Vec<String> = of_unit.map(|adder| format!("{}: {}", adder.name, adder.summary())).collect();
        answers.push((model.name.clone(), format!("`{}`; {}", unit.tree, adders.join("; "))));
        sources.push(format!("`mxprobe explain sim:{}`", model.name));
    }
    let how = if answers.is_empty() {
        "No shipped model has it; `mxprobe run --op` asks a device.".to_owned()
    } else {
        "The models that have it, with the tree that joins the terms of a dot and the adders in it:".to_owned()
    };
    let source = if sources.is_empty() { "the id itself".to_owned() } else { sources.join(", ") };
    Entry { name: id.to_string(), kind: Kind::Operation, about, how, answers, source }
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
    fn every_term_is_found_by_each_of_its_names_in_any_case() {
        let mut known = BTreeSet::new();
        for term in &WORDS.term {
            for name in std::iter::once(&term.name).chain(&term.also) {
                assert!(
                    known.insert(name.to_lowercase()) || name.eq_ignore_ascii_case(&term.name),
                    "{name} is said twice"
                );
                for name in [name.clone(), name.to_uppercase()] {
                    assert!(explain(&name).iter().any(|entry| entry.name == term.name), "{name}");
                }
            }
            assert!(term.also.iter().all(|name| *name == name.to_lowercase()), "{}", term.name);
        }
    }

    #[test]
    fn every_operation_of_every_model_is_explained_with_that_model() {
        for model in mxprobe_models::shipped() {
            let id = model.operations.keys().next().expect("a model has operations").to_string();
            let found = explain(&id);
            let entry = found.iter().find(|entry| entry.kind == Kind::Operation).unwrap_or_else(|| panic!("{id}"));
            assert!(entry.answers.iter().any(|(name, _)| *name == model.name), "{id}: {entry:?}");
            assert!(found.iter().any(|entry| entry.kind == Kind::Family), "{id}");
        }
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
