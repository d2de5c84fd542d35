//! The answers of a report, kept once for all reports with the same answers.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, Mutex},
};

use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::{
    aside::locked,
    report::{FleetDifference, Request, compared_answer},
};

/// The part of an operation of a report that is compared.
#[derive(Deserialize)]
pub(super) struct BriefOperation<'a> {
    #[serde(borrow, default)]
    id: Cow<'a, str>,
    #[serde(borrow, default)]
    findings: Vec<BriefFinding<'a>>,
}

#[derive(Deserialize)]
struct BriefFinding<'a> {
    #[serde(borrow)]
    probe: Cow<'a, str>,
    #[serde(borrow)]
    outcome: Cow<'a, str>,
    #[serde(borrow)]
    value: Option<&'a RawValue>,
}

/// The answers of a device by operation and by probe: the comparable part of a measured value, else the outcome.
#[derive(Debug)]
pub(super) struct Answers {
    /// The first letters of the SHA-256 of all answers.
    pub(super) class: String,
    answers: BTreeMap<String, BTreeMap<String, String>>,
}

/// The number of letters of a digest that name a class.
const CLASS_LETTERS: usize = 12;

impl Answers {
    fn new(operations: &[BriefOperation<'_>]) -> Self {
        let mut answers: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
        for operation in operations {
            let answer = |finding: &BriefFinding<'_>| {
                let value = finding.value.and_then(|value| serde_json::from_str(value.get()).ok());
                let answer = match value {
                    Some(value) => compared_answer(&finding.probe, &value),
                    None => Some(finding.outcome.to_string()),
                };
                Some((finding.probe.to_string(), answer?))
            };
            let found = operation.findings.iter().filter_map(answer);
            answers.entry(operation.id.to_string()).or_default().extend(found);
        }
        let mut text = String::new();
        for (operation, answers) in &answers {
            for (probe, answer) in answers {
                text += &format!("{operation}\n{probe}\n{answer}\n");
            }
        }
        let mut class = Request::digest(&text);
        class.truncate(CLASS_LETTERS);
        Self { class, answers }
    }

    /// The number of answers.
    pub(super) fn len(&self) -> usize {
        self.answers.values().map(BTreeMap::len).sum()
    }

    /// Lists the answers of `other` that differ from these.
    pub(super) fn differences(&self, other: &Self) -> Vec<FleetDifference> {
        let operations: BTreeSet<&String> = self.answers.keys().chain(other.answers.keys()).collect();
        let mut found = Vec::new();
        for operation in operations {
            let (usual, here) = (self.answers.get(operation), other.answers.get(operation));
            let probes: BTreeSet<&String> = usual.into_iter().chain(here).flat_map(BTreeMap::keys).collect();
            for probe in probes {
                let [usual, here] = [usual, here].map(|answers| answers.and_then(|answers| answers.get(probe)));
                if usual != here {
                    found.push(FleetDifference {
                        operation: operation.clone(),
                        probe: probe.clone(),
                        usual: usual.cloned(),
                        here: here.cloned(),
                    });
                }
            }
        }
        found
    }
}

/// Every set of answers seen so far, by a digest of its text.
#[derive(Default)]
pub(super) struct Known {
    seen: Mutex<HashMap<[u8; 32], Arc<Answers>>>,
}

impl Known {
    /// Returns the answers of operations. A text that was seen before is not parsed again.
    pub(super) fn get(&self, operations: &[BriefOperation<'_>]) -> Arc<Answers> {
        let mut hash = Sha256::new();
        for operation in operations {
            hash.update([0]);
            hash.update(operation.id.as_bytes());
            for finding in &operation.findings {
                let value = finding.value.map_or("", RawValue::get);
                for part in [&finding.probe, &finding.outcome, value] {
                    hash.update([1]);
                    hash.update(part.as_bytes());
                }
            }
        }
        let key = hash.finalize().into();
        if let Some(known) = locked(&self.seen).get(&key) {
            return Arc::clone(known);
        }
        let answers = Arc::new(Answers::new(operations));
        Arc::clone(locked(&self.seen).entry(key).or_insert(answers))
    }
}
