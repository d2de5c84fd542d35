//! When a command stops asking: the time a request may take, the time of the whole run, Ctrl-C.

use std::time::{Duration, Instant};

use crate::cli::io::interrupt::Interrupt;

/// When a command stops asking.
#[derive(Clone)]
pub(crate) struct Limits {
    /// How long a device in another process may take to answer one request.
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

    /// Why nothing more is asked, once the budget is spent.
    pub(crate) fn spent(&self) -> Option<String> {
        let (budget, end) = self.budget?;
        (Instant::now() >= end).then(|| format!("the budget was spent ({} s)", budget.as_secs_f64()))
    }

    /// Why a request is not waited for any longer.
    pub(crate) fn stop(&self) -> Option<String> {
        if self.interrupt.is_set() { Some("interrupted".to_owned()) } else { self.spent() }
    }
}
