//! Ctrl-C, and requests to terminate.

use std::{
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

/// Whether a signal requested termination, and when the first one arrived.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt(Arc<OnceLock<Instant>>);

/// Signals closer together than this are one request: `timeout` signals its child, and then its process group, which
/// includes the child (coreutils, `cleanup` in timeout.c).
const SAME_REQUEST: Duration = Duration::from_secs(1);

impl Interrupt {
    /// Catches Ctrl-C, SIGTERM and SIGHUP from now on. A second request ends the process immediately.
    pub(crate) fn listen() -> Self {
        let interrupt = Self::default();
        let heard = interrupt.clone();
        // If no handler can be set, signals end the process as usual.
        let _ = ctrlc::set_handler(move || {
            if heard.is_second_request(Instant::now()) {
                std::process::exit(crate::cli::failure::INTERRUPTED.into());
            }
        });
        interrupt
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.get().is_some()
    }

    /// Records a signal; returns whether it repeats an earlier request.
    fn is_second_request(&self, now: Instant) -> bool {
        now.saturating_duration_since(*self.0.get_or_init(|| now)) >= SAME_REQUEST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_sent_twice_by_timeout_is_one_request() {
        let interrupt = Interrupt::default();
        let first = Instant::now();
        let after = |milliseconds| first + Duration::from_millis(milliseconds);
        assert!(!interrupt.is_set());
        assert!(!interrupt.is_second_request(first) && interrupt.is_set());
        assert!(!interrupt.is_second_request(first) && !interrupt.is_second_request(after(999)));
        assert!(interrupt.is_second_request(after(1000)));
    }
}
