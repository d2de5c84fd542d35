//! When a run stops asking: the time an operation may take, the time of the whole run, Ctrl-C.

use std::time::{Duration, Instant};

use super::{arguments::Run, isolation::Interrupt};

/// How long one operation may take on a device that is no model, where `--timeout` says nothing else.
const OPERATION: Duration = Duration::from_secs(60);

/// When a run stops asking.
pub(crate) struct Limits {
    operation: Duration,
    budget: Option<(Duration, Instant)>,
    /// Ctrl-C.
    pub(crate) interrupt: Interrupt,
}

impl Limits {
    /// The limits that the arguments name, of a run that started then.
    pub(crate) fn new(arguments: &Run, start: Instant, interrupt: Interrupt) -> Self {
        let budget = arguments.budget.map(|budget| (budget, start + budget));
        Self { operation: arguments.timeout.unwrap_or(OPERATION), budget, interrupt }
    }

    /// How long the next operation may take.
    pub(crate) fn operation(&self) -> Duration {
        let left = self.budget.map(|(_, end)| end.saturating_duration_since(Instant::now()));
        left.map_or(self.operation, |left| left.min(self.operation))
    }

    /// Why nothing more is asked, once the budget is spent.
    pub(crate) fn spent(&self) -> Option<String> {
        let (budget, end) = self.budget?;
        (Instant::now() >= end).then(|| format!("the budget was spent ({} s)", budget.as_secs_f64()))
    }
}
