//! Work on a thread, waited for without the interpreter's lock and with an eye on signals.

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

/// How often signals are looked for.
const TICK: Duration = Duration::from_millis(50);

/// Runs `work` on a thread and waits for it. If a signal's handler raises, as Ctrl-C does, that is returned at once, `stop` is
/// called, and the thread is left to end by itself.
pub(crate) fn interruptibly<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
    stop: impl FnOnce(),
) -> PyResult<T> {
    let (sender, answer) = mpsc::sync_channel(1);
    thread::spawn(move || drop(sender.send(work())));
    // Shared with no other thread, but that is not to be seen from outside.
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

/// What a signal's handler raised while a session waited.
#[derive(Default)]
pub(crate) struct Signals(RefCell<Option<PyErr>>);

impl Signals {
    /// Lets Python handle its signals; whether one of them, or an earlier one, asks for the end.
    pub(crate) fn is_stopped(&self) -> bool {
        if self.0.borrow().is_none()
            && let Err(raised) = Python::attach(|py| py.check_signals())
        {
            self.keep(raised);
        }
        self.0.borrow().is_some()
    }

    /// Notes an exception that is to end the session.
    pub(crate) fn keep(&self, raised: PyErr) {
        self.0.borrow_mut().get_or_insert(raised);
    }

    /// The exception, if there was one.
    pub(crate) fn raised(self) -> PyResult<()> {
        self.0.into_inner().map_or(Ok(()), Err)
    }
}
