//! The questions. (Stand-in until the real ones are merged.)

use mxprobe_api::{Device, Operation};

use crate::report::{Finding, OperationReport, Outcome};

/// The probes: name, and what it asks, in the order they are asked.
pub const PROBES: &[(&str, &str)] =
    &[("order", "which terms are added at once, and in what order blocks and c are joined")];

/// Asks the questions about one operation whose probe name matches `wanted` (all, if `None`).
///
/// Never fails: a device error becomes a finding whose outcome is `failed`. The layout self-test comes first.
#[must_use]
pub fn probe(device: &dyn Device, operation: &Operation, wanted: Option<&str>) -> OperationReport {
    let _ = (device, wanted);
    OperationReport {
        operation: operation.into(),
        kernel_sha256: None,
        findings: vec![Finding {
            probe: "order.tree".into(),
            outcome: Outcome::Skipped,
            reason: Some("stand-in".into()),
            value: None,
            statement: String::new(),
            evidence: Vec::new(),
        }],
        dots: 0,
        duration_ns: 0,
    }
}
