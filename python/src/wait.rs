//! Runs work on a thread and waits for it without the interpreter's lock, checking for signals.

use std::{
    cell::RefCell,
    sync::{
        Mutex, PoisonError,
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use pyo3::prelude::*;

/// How often signals are checked.
const TICK: Duration = Duration::from_millis(50);

/// Runs `work` on a thread and waits for it. If a signal handler raises, as for Ctrl-C, calls `stop` and returns the
/// exception immediately; the thread is left to finish.
pub(crate) fn interruptibly<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
    stop: impl FnOnce(),
) -> PyResult<T> {
    let (sender, answer) = mpsc::sync_channel(1);
    thread::spawn(move || drop(sender.send(work())));
    // Not shared with another thread, but the compiler cannot know that.
    let answer = Mutex::new(answer);
    loop {
        match py.detach(|| answer.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(TICK)) {
            Ok(found) => return Ok(found),
            Err(RecvTimeoutError::Timeout) => {
                if let Err(raised) = py.check_signals() {
                    stop();
                    return Err(raised);
                }
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(pyo3::exceptions::PyRuntimeError::new_err("mxprobe panicked"));
            }
        }
    }
}

/// The exception that a signal handler raised while a session waited.
#[derive(Default)]
pub(crate) struct Signals(RefCell<Option<PyErr>>);

impl Signals {
    /// Lets Python handle its signals; returns whether one of them, or an earlier one, asked to stop.
    pub(crate) fn is_stopped(&self) -> bool {
        if self.0.borrow().is_none()
            && let Err(raised) = Python::attach(|py| py.check_signals())
        {
            self.keep(raised);
        }
        self.0.borrow().is_some()
    }

    /// Keeps an exception that should end the session.
    pub(crate) fn keep(&self, raised: PyErr) {
        self.0.borrow_mut().get_or_insert(raised);
    }

    /// Returns the exception, if there was one.
    pub(crate) fn raised(self) -> PyResult<()> {
        self.0.into_inner().map_or(Ok(()), Err)
    }
}
