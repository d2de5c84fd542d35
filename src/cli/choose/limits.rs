//! When a command stops asking: the time limit of a request, that of the whole run, and Ctrl-C.

use std::time::{Duration, Instant};

use crate::cli::io::interrupt::Interrupt;

/// The limits after which a command stops asking.
#[derive(Clone)]
pub(crate) struct Limits {
    /// The time limit for a device in another process to answer one request.
    pub(crate) request: Duration,
    budget: Option<(Duration, Instant)>,
    /// Ctrl-C.
    pub(crate) interrupt: Interrupt,
}

impl Limits {
    /// The limits of a run that starts now.
    pub(crate) fn new(request: Duration, budget: Option<Duration>, interrupt: Interrupt) -> Self {
        Self { request, budget: budget.map(|budget| (budget, Instant::now() + budget)), interrupt }
    }

    /// Returns why nothing more is asked, once the budget is spent.
    pub(crate) fn spent(&self) -> Option<String> {
        let (budget, end) = self.budget?;
        (Instant::now() >= end).then(|| format!("the budget was spent ({} s)", budget.as_secs_f64()))
    }

    /// Returns why the wait for a request must end, if it must.
    pub(crate) fn stop(&self) -> Option<String> {
        if self.interrupt.is_set() { Some("interrupted".to_owned()) } else { self.spent() }
    }
}
