//! Groups of operations and refusals that are described once.

use serde_json::Value;

use crate::{
    findings::Outcome,
    report::{FindingRecord, OperationReport, RefusalRecord},
};

/// Groups refusals with the same reason: what they refuse, and the first of them.
#[must_use]
pub fn grouped(refusals: &[RefusalRecord]) -> Vec<(String, &RefusalRecord)> {
    let mut groups: Vec<(String, &RefusalRecord)> = Vec::new();
    for refusal in refusals {
        let same =
            |(_, first): &&mut (String, &RefusalRecord)| first.reason == refusal.reason && first.help == refusal.help;
        match groups.iter_mut().find(same) {
            Some((what, _)) => {
                what.push_str(", ");
                what.push_str(&refusal.what);
            }
            None => groups.push((refusal.what.clone(), refusal)),
        }
    }
    groups
}

/// Groups operations with equal answers, in their order: the same outcomes, and the same values if measured.
pub(super) fn groups(operations: &[OperationReport], apart: bool) -> Vec<Vec<&OperationReport>> {
    let mut groups: Vec<Vec<&OperationReport>> = Vec::new();
    for operation in operations {
        let same = groups.iter_mut().find(|group| !apart && same_answers(group[0], operation));
        match same {
            Some(group) => group.push(operation),
            None => groups.push(vec![operation]),
        }
    }
    groups
}

fn same_answers(left: &OperationReport, right: &OperationReport) -> bool {
    fn answer(finding: &FindingRecord) -> (&str, Outcome, Option<&Value>) {
        (&finding.probe, finding.outcome, finding.value.as_ref())
    }
    left.findings.iter().map(answer).eq(right.findings.iter().map(answer))
}

/// Names a group: the first id, and how many others there are.
pub(super) fn title(group: &[&OperationReport]) -> String {
    format!("{}{}", group[0].operation.id, more(group))
}

/// Says how many operations a group has in addition to the first.
pub(super) fn more(group: &[&OperationReport]) -> String {
    if group.len() == 1 { String::new() } else { format!(" and {} more", group.len() - 1) }
}

/// The note for operations with equal answers whose words differ, such as in a count of positions.
pub(super) fn first_in_words(group: &[&OperationReport]) -> Option<String> {
    fn words(report: &OperationReport) -> impl Iterator<Item = (&str, Option<&str>)> {
        report.findings.iter().map(|finding| (finding.statement.as_str(), finding.reason.as_deref()))
    }
    let differ = group.iter().any(|report| !words(report).eq(words(group[0])));
    differ.then(|| format!("counts, reasons and digests are those of {}", group[0].operation.id))
}
