//! The part of a run's plan that is left to ask, and insertion of answers at their places.

use mxprobe_api::OperationId;

use super::{
    EvidenceList, Report,
    finding::{FindingRecord, OperationRecord, OperationReport},
};
use crate::findings::Outcome;

/// The name of the finding that replaces all others if the probes of an operation did not finish.
pub const EXECUTION: &str = "execution";

impl OperationReport {
    /// Builds the report of an operation whose probes did not finish, from the outcome and the reason.
    #[must_use]
    pub fn without_answer(operation: &OperationRecord, outcome: Outcome, reason: &str) -> Self {
        Self {
            operation: operation.clone(),
            kernel_sha256: None,
            findings: vec![FindingRecord {
                probe: EXECUTION.into(),
                outcome,
                reason: Some(reason.to_owned()),
                value: None,
                statement: String::new(),
                evidence: EvidenceList::default(),
            }],
            dots: 0,
            duration_ns: 0,
        }
    }

    /// Whether its probes finished and the device did not fail.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.findings.iter().all(|finding| finding.outcome != Outcome::Failed && finding.probe != EXECUTION)
    }

    fn measured(&self) -> usize {
        self.findings.iter().filter(|finding| finding.outcome == Outcome::Measured).count()
    }
}

impl Report {
    /// Returns the planned operations that are missing, failed or were skipped as a whole; `None` if the report has no
    /// plan.
    #[must_use]
    pub fn unfinished(&self) -> Option<Vec<&OperationId>> {
        let is_finished =
            |id: &OperationId| self.operations.iter().any(|known| known.operation.id == *id && known.is_finished());
        let plan = self.plan.as_ref()?;
        Some(plan.operations.iter().filter(|id| !is_finished(id)).collect())
    }

    /// Inserts the results of an operation at its place in the plan. They replace earlier results of that operation,
    /// unless they are unfinished and measured less.
    pub fn put(&mut self, new: OperationReport) {
        self.summary = None;
        if let Some(old) = self.operations.iter_mut().find(|old| old.operation.id == new.operation.id) {
            if new.is_finished() || new.measured() >= old.measured() {
                *old = new;
            }
            return;
        }
        let planned = self.plan.as_ref().map_or(&[][..], |plan| &plan.operations);
        let place = |id: &OperationId| planned.iter().position(|known| known == id).unwrap_or(planned.len());
        let own = place(&new.operation.id);
        let before = self.operations.iter().take_while(|known| place(&known.operation.id) <= own).count();
        self.operations.insert(before, new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{DeviceRecord, Host, Kind, Plan, SCHEMA, Time, provenance::tests::tool};

    const IDS: [&str; 3] =
        ["dot.m1n1k4.f16.f16.f16.f16", "dot.m1n1k4.f32.bf16.bf16.f32", "dot.m1n1k8.f32.bf16.bf16.f32"];

    fn report() -> Report {
        let device = DeviceRecord {
            backend: "sim".into(),
            selector: "sim:x".into(),
            name: "x".into(),
            fingerprint: "x".into(),
            kind: Kind::Model,
            emulated: false,
            aliases: Vec::new(),
            driver: None,
            properties: std::collections::BTreeMap::new(),
        };
        let operations = IDS.iter().map(|id| id.parse().unwrap()).collect();
        let plan = Plan { operations, patterns: Vec::new(), probes: Vec::new(), points: None };
        Report {
            schema: SCHEMA.into(),
            tool: tool(),
            time: Time::starting(),
            host: Host::this(),
            notes: Vec::new(),
            device,
            conditions: crate::record::Conditions::default(),
            plan: Some(plan),
            resumed: Vec::new(),
            refusals: Vec::new(),
            summary: None,
            operations: Vec::new(),
        }
    }

    fn of(id: &str, outcomes: &[Outcome]) -> OperationReport {
        let record =
            OperationRecord { id: id.parse().unwrap(), scope: "thread".into(), instruction: None, aliases: Vec::new() };
        let mut report = OperationReport::without_answer(&record, Outcome::Skipped, "it hung");
        if !outcomes.is_empty() {
            let finding = |outcome: &Outcome| FindingRecord {
                probe: "p".into(),
                outcome: *outcome,
                ..report.findings[0].clone()
            };
            report.findings = outcomes.iter().map(finding).collect();
        }
        report
    }

    #[test]
    fn what_is_missing_skipped_or_failed_is_unfinished() {
        use Outcome::{Failed, Inconclusive, Measured, Skipped};
        let mut report = report();
        assert_eq!(report.unfinished().unwrap().len(), 3);
        report.put(of(IDS[2], &[Measured, Skipped, Inconclusive]));
        report.put(of(IDS[0], &[]));
        report.put(of(IDS[1], &[Measured, Failed]));
        let order: Vec<String> = report.operations.iter().map(|known| known.operation.id.to_string()).collect();
        assert_eq!(order, IDS, "each is at its place in the plan");
        let left: Vec<String> = report.unfinished().unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(left, IDS[..2]);
    }

    #[test]
    fn what_is_learnt_anew_replaces_what_was_known_unless_it_is_less() {
        use Outcome::{Failed, Measured};
        let mut report = report();
        report.put(of(IDS[0], &[Measured, Failed]));
        report.put(of(IDS[0], &[]));
        assert_eq!(report.operations[0].findings.len(), 2, "two findings are more than that nothing came back");
        report.put(of(IDS[0], &[Measured, Measured]));
        assert!(report.operations.len() == 1 && report.operations[0].is_finished());
    }
}
