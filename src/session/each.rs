//! One operation after the other, on a thread, so that whoever waits can stop waiting for any device.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use mxprobe_api::{Device, Error, OperationId};
use mxprobe_models::Model;
use mxprobe_sim::ModelDevice;

use super::stoppable::Stoppable;
use crate::findings::Outcome as Ending;

/// How often a wait asks whether to stop.
const TICK: Duration = Duration::from_millis(50);

/// A device that is asked.
#[derive(Clone)]
pub struct Asked {
    /// The device.
    pub device: Arc<dyn Device>,
    /// Why nothing more is asked of it, if so; looked at after each operation.
    pub gave_up: Arc<dyn Fn() -> Option<String> + Send + Sync>,
}

impl Asked {
    /// A device that is asked about every operation, whatever became of those before.
    #[must_use]
    pub fn new(device: Arc<dyn Device>) -> Self {
        Self { device, gave_up: Arc::new(|| None) }
    }

    /// A model as a device.
    #[must_use]
    pub fn of_model(model: &Model) -> Self {
        Self::new(Arc::new(ModelDevice::new(model.clone())))
    }
}

/// Why a session ends before its last operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// A person asked for it: what is left is not reported.
    Interrupted,
    /// A limit was reached, which this names: what is left is reported as skipped.
    Spent(String),
}

/// Why an operation has no answer, in reports that know no other outcome for it than that it failed.
#[must_use]
pub fn unanswered(ending: Ending, reason: &str) -> String {
    if ending == Ending::Skipped { format!("not asked: {reason}") } else { reason.to_owned() }
}

/// Who hears what becomes of operations.
pub trait Listener<A> {
    /// Why the session ends at once: what could not be written, for example.
    type Error;

    /// Hears the answer of an operation.
    ///
    /// # Errors
    /// If the session is to end.
    fn answered(&mut self, answer: A) -> Result<(), Self::Error>;

    /// Hears of an operation without an answer: `Failed` if it was asked, `Skipped` if not, and why.
    ///
    /// # Errors
    /// If the session is to end.
    fn missing(&mut self, id: &OperationId, ending: Ending, reason: &str) -> Result<(), Self::Error>;

    /// Hears how the operation in hand gets on.
    fn progress(&mut self, words: &str) {
        let _ = words;
    }
}

enum Said<A> {
    Progress(String),
    Answer(A),
    /// Nothing more is asked of the device.
    GaveUp(String),
}

/// Asks a device about operations in their order. Returns whether it was interrupted.
///
/// `stop` is asked some twenty times a second, on this thread. Once it says so, the device's computations fail, so that the
/// thread that asks ends after the one in hand.
///
/// # Errors
/// Those of the listener; what the device does, the listener hears.
pub fn each<A: Send + 'static, E>(
    reached: Result<Asked, Error>,
    ids: &[OperationId],
    stop: &dyn Fn() -> Option<Stop>,
    ask: impl Fn(&dyn Device, &OperationId, &dyn Fn(&str)) -> A + Send + 'static,
    listener: &mut dyn Listener<A, Error = E>,
) -> Result<bool, E> {
    let rest = |listener: &mut dyn Listener<A, Error = E>, left: &[OperationId], ending, reason: &str| {
        left.iter().try_for_each(|id| listener.missing(id, ending, reason))
    };
    let reached = match reached {
        _ if stop() == Some(Stop::Interrupted) => return Ok(true),
        Ok(reached) => reached,
        Err(error) => return rest(listener, ids, Ending::Failed, &error.to_string()).map(|()| false),
    };
    let stopped = Arc::new(AtomicBool::new(false));
    let (sender, said) = mpsc::channel();
    let thread = {
        let (ids, gave_up) = (ids.to_vec(), reached.gave_up);
        let device = Stoppable { device: reached.device, stopped: stopped.clone() };
        thread::spawn(move || {
            // Whoever stopped listening is noticed at the next answer.
            for id in ids {
                let progress = |words: &str| drop(sender.send(Said::Progress(words.to_owned())));
                let answer = ask(&device, &id, &progress);
                if sender.send(Said::Answer(answer)).is_err() {
                    return;
                }
                if let Some(reason) = gave_up() {
                    let _ = sender.send(Said::GaveUp(reason));
                    return;
                }
            }
        })
    };
    // However this ends.
    let _stops = Stops(stopped);
    let mut left = ids;
    while let Some((first, others)) = left.split_first() {
        let heard = said.recv_timeout(TICK);
        // An answer that was cut short by these is not one.
        match stop() {
            Some(Stop::Interrupted) => return Ok(true),
            Some(Stop::Spent(reason)) => return rest(listener, left, Ending::Skipped, &reason).map(|()| false),
            None => {}
        }
        match heard {
            Ok(Said::Progress(words)) => listener.progress(&words),
            Ok(Said::Answer(answer)) => {
                listener.answered(answer)?;
                left = others;
            }
            Ok(Said::GaveUp(reason)) => return rest(listener, left, Ending::Skipped, &reason).map(|()| false),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                listener.missing(first, Ending::Failed, "mxprobe panicked")?;
                rest(listener, others, Ending::Skipped, "mxprobe panicked at an operation before")?;
                break;
            }
        }
    }
    // It has ended, or is on its way out.
    let _ = thread.join();
    Ok(false)
}

/// Sets the flag when it goes out of scope.
struct Stops(Arc<AtomicBool>);

impl Drop for Stops {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
