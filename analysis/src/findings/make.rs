//! Constructors of findings.

use mxprobe_api::Error;

use super::{Evidence, Finding, Outcome, Value};

/// Records the error of a failed question: each of its probes that has no finding yet gets a failed one. Returns the
/// reason if no later question can be asked.
pub(crate) fn settle(findings: &mut Vec<Finding>, probes: &[&str], error: &Error) -> Option<&'static str> {
    for probe in probes {
        if findings.iter().all(|finding| finding.probe != *probe) {
            findings.push(Finding::failed(probe, error.to_string()));
        }
    }
    (error.is_device_lost() || error.is_timed_out()).then_some("the device was lost")
}

impl Finding {
    pub(crate) fn measured(probe: &str, value: impl Into<Value>, statement: impl Into<String>) -> Self {
        Self {
            probe: probe.into(),
            outcome: Outcome::Measured,
            reason: None,
            value: Some(value.into()),
            statement: statement.into(),
            evidence: Vec::new(),
        }
    }

    fn without_value(probe: &str, outcome: Outcome, reason: impl Into<String>) -> Self {
        let reason = Some(reason.into());
        Self { probe: probe.into(), outcome, reason, value: None, statement: String::new(), evidence: Vec::new() }
    }

    pub(crate) fn unsupported(probe: &str, reason: impl Into<String>) -> Self {
        Self::without_value(probe, Outcome::Unsupported, reason)
    }

    pub(crate) fn inconclusive(probe: &str, reason: impl Into<String>) -> Self {
        Self::without_value(probe, Outcome::Inconclusive, reason)
    }

    pub(crate) fn failed(probe: &str, reason: impl Into<String>) -> Self {
        Self::without_value(probe, Outcome::Failed, reason)
    }

    pub(crate) fn skipped(probe: &str, reason: impl Into<String>) -> Self {
        Self::without_value(probe, Outcome::Skipped, reason)
    }

    pub(crate) fn with(mut self, evidence: Vec<Evidence>) -> Self {
        self.evidence = evidence;
        self
    }

    /// Whether the answer is this value.
    #[must_use]
    pub fn is(&self, value: impl Into<Value>) -> bool {
        self.value == Some(value.into())
    }
}
