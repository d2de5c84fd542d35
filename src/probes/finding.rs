//! How findings are made.

use crate::report::{Evidence, Finding, Outcome};

impl Finding {
    pub(crate) fn measured(probe: &str, value: serde_json::Value, statement: String) -> Self {
        Self {
            probe: probe.into(),
            outcome: Outcome::Measured,
            reason: None,
            value: Some(value),
            statement,
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
    pub fn is(&self, value: impl Into<serde_json::Value>) -> bool {
        self.value == Some(value.into())
    }
}
