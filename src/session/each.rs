//! Asks a device about operations in turn, on a thread, so that the caller can stop waiting for any device. A model
//! answers about several operations simultaneously.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use mxprobe_api::{Device, Error, OperationId};
use mxprobe_models::{Model, threads};
use mxprobe_sim::ModelDevice;

use super::stoppable::Stoppable;
use crate::{aside::locked, findings::Outcome as Ending};

/// How often a wait checks whether to stop.
const TICK: Duration = Duration::from_millis(50);

/// A device to be asked about operations.
#[derive(Clone)]
pub struct Asked {
    /// The device.
    pub device: Arc<dyn Device>,
    /// Returns why the device is not asked any more, if so; checked after each operation.
    pub gave_up: Arc<dyn Fn() -> Option<String> + Send + Sync>,
    /// Whether several operations may run simultaneously: a model in this process, which has no state and does not
    /// hang.
    pub several: bool,
}

impl Asked {
    /// A device that is asked about every operation, whatever the outcome of earlier ones.
    #[must_use]
    pub fn new(device: Arc<dyn Device>) -> Self {
        Self { device, gave_up: Arc::new(|| None), several: false }
    }

    /// A model as a device.
    #[must_use]
    pub fn of_model(model: &Model) -> Self {
        Self { several: true, ..Self::new(Arc::new(ModelDevice::new(model.clone()))) }
    }
}

/// Returns how many of so many operations a device is asked about simultaneously: one per core, if `several`.
fn at_once(several: bool, operations: usize) -> usize {
    if several { threads().min(operations).max(1) } else { 1 }
}

/// Returns the number of threads for each of the operations that a device is asked about simultaneously, of so many.
#[must_use]
pub fn threads_each(several: bool, operations: usize) -> usize {
    threads() / at_once(several, operations)
}

/// Why a session ends before its last operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// A person interrupted it: the remaining operations are not reported.
    Interrupted,
    /// A limit, named here, was reached: the remaining operations are reported as skipped.
    Spent(String),
}

/// Words the reason for a missing answer, for reports whose only outcome for it is `failed`.
#[must_use]
pub fn unanswered(ending: Ending, reason: &str) -> String {
    if ending == Ending::Skipped { format!("not asked: {reason}") } else { reason.to_owned() }
}

/// Receives the results of operations.
pub trait Listener<A> {
    /// A reason to end the session immediately, such as a failed write.
    type Error;

    /// Receives the answer of an operation.
    ///
    /// # Errors
    /// If the session should end.
    fn answered(&mut self, answer: A) -> Result<(), Self::Error>;

    /// Receives an operation without an answer: `Failed` if it was asked, `Skipped` if not, with the reason.
    ///
    /// # Errors
    /// If the session should end.
    fn missing(&mut self, id: &OperationId, ending: Ending, reason: &str) -> Result<(), Self::Error>;

    /// Receives the progress of the current operation.
    fn progress(&mut self, words: &str) {
        let _ = words;
    }
}

/// What a thread says. Answers are put elsewhere, so that the channel is compiled once and not for each type of answer.
enum Said {
    Progress(String),
    /// The operation at this index is answered.
    Answered(usize),
    /// The device is not asked any more.
    GaveUp(String),
}

/// Asks a device about operations in order. Returns whether it was interrupted.
///
/// A model is asked about several operations simultaneously, one per core; the listener still receives the answers in
/// the order of the operations.
///
/// `stop` is polled about twenty times a second on this thread. Once it returns a reason, the device's computations
/// fail, so that the asking thread ends after the current one.
///
/// # Errors
/// Those of the listener; errors of the device go to the listener.
pub fn each<A: Send + 'static, E>(
    reached: Result<Asked, Error>,
    ids: &[OperationId],
    stop: &dyn Fn() -> Option<Stop>,
    ask: impl Fn(&dyn Device, &OperationId, &dyn Fn(&str)) -> A + Send + Sync + 'static,
    listener: &mut dyn Listener<A, Error = E>,
) -> Result<bool, E> {
    let reached = match reached {
        _ if stop() == Some(Stop::Interrupted) => return Ok(true),
        Ok(reached) => reached,
        Err(error) => return rest(listener, ids, &mut [], Ending::Failed, &error.to_string()).map(|()| false),
    };
    let stopped = Arc::new(AtomicBool::new(false));
    let (sender, said) = mpsc::channel();
    let at_once = at_once(reached.several, ids.len());
    let (next, ask) = (Arc::new(AtomicUsize::new(0)), Arc::new(ask));
    let answers: Arc<[Mutex<Option<A>>]> = ids.iter().map(|_| Mutex::new(None)).collect();
    let thread = |sender: mpsc::Sender<Said>| {
        let (ids, gave_up) = (ids.to_vec(), Arc::clone(&reached.gave_up));
        let device = Stoppable { device: Arc::clone(&reached.device), stopped: Arc::clone(&stopped) };
        let (next, ask, answers) = (Arc::clone(&next), Arc::clone(&ask), Arc::clone(&answers));
        thread::spawn(move || {
            // If the receiver is gone, the next send fails.
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(id) = ids.get(at) else { return };
                let progress = |words: &str| drop(sender.send(Said::Progress(words.to_owned())));
                let answer = ask(&device, id, &progress);
                *locked(&answers[at]) = Some(answer);
                if sender.send(Said::Answered(at)).is_err() {
                    return;
                }
                if let Some(reason) = gave_up() {
                    let _ = sender.send(Said::GaveUp(reason));
                    return;
                }
            }
        })
    };
    let running: Vec<_> = (0..at_once).map(|_| thread(sender.clone())).collect();
    drop(sender);
    // Sets the flag however this function returns.
    let _stops = Stops(stopped);
    let mut left = ids;
    // Answers that arrived before those of earlier operations.
    let mut early: Vec<Option<A>> = ids.iter().map(|_| None).collect();
    while let Some((first, others)) = left.split_first() {
        let at = ids.len() - left.len();
        let heard = said.recv_timeout(TICK);
        // An answer that may have been cut short by a stop does not count.
        match stop() {
            Some(Stop::Interrupted) => return Ok(true),
            Some(Stop::Spent(reason)) => {
                return rest(listener, left, &mut early[at..], Ending::Skipped, &reason).map(|()| false);
            }
            None => {}
        }
        match heard {
            Ok(Said::Progress(words)) => listener.progress(&words),
            Ok(Said::Answered(place)) => {
                early[place] = locked(&answers[place]).take();
                while let Some(answer) = early.get_mut(ids.len() - left.len()).and_then(Option::take) {
                    listener.answered(answer)?;
                    left = &left[1..];
                }
            }
            Ok(Said::GaveUp(reason)) => {
                return rest(listener, left, &mut early[at..], Ending::Skipped, &reason).map(|()| false);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                listener.missing(first, Ending::Failed, "mxprobe panicked")?;
                let reason = "mxprobe panicked at an operation before";
                rest(listener, others, &mut early[at + 1..], Ending::Skipped, reason)?;
                break;
            }
        }
    }
    // The threads have ended or are about to.
    running.into_iter().for_each(|thread| drop(thread.join()));
    Ok(false)
}

/// Reports the remaining operations: their early answers, as far as there are some, and otherwise missing ones.
fn rest<A, E>(
    listener: &mut dyn Listener<A, Error = E>,
    left: &[OperationId],
    early: &mut [Option<A>],
    ending: Ending,
    reason: &str,
) -> Result<(), E> {
    left.iter().enumerate().try_for_each(|(at, id)| match early.get_mut(at).and_then(Option::take) {
        Some(answer) => listener.answered(answer),
        None => listener.missing(id, ending, reason),
    })
}

/// Sets the flag when dropped.
struct Stops(Arc<AtomicBool>);

impl Drop for Stops {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    #[derive(Default)]
    struct Heard(Vec<(OperationId, Option<Ending>)>);

    impl Listener<OperationId> for Heard {
        type Error = Infallible;

        fn answered(&mut self, answer: OperationId) -> Result<(), Infallible> {
            self.0.push((answer, None));
            Ok(())
        }

        fn missing(&mut self, id: &OperationId, ending: Ending, _: &str) -> Result<(), Infallible> {
            self.0.push((id.clone(), Some(ending)));
            Ok(())
        }
    }

    fn a_model() -> (Asked, Vec<OperationId>) {
        let asked = Asked::of_model(&mxprobe_models::load("h100").expect("a shipped model"));
        let ids = asked.device.operations().keys().cloned().collect();
        (asked, ids)
    }

    #[test]
    fn answers_about_a_model_are_heard_in_the_order_of_its_operations() {
        let (asked, ids) = a_model();
        let first = ids[0].clone();
        let others = AtomicUsize::new(0);
        // The first comes late, if there is a thread for the others.
        let ask = move |_: &dyn Device, id: &OperationId, _: &dyn Fn(&str)| {
            let mut turns = 0;
            while *id == first && others.load(Ordering::Relaxed) < 20 && turns < 10_000 {
                turns += 1;
                thread::yield_now();
            }
            others.fetch_add(1, Ordering::Relaxed);
            id.clone()
        };
        let mut heard = Heard::default();
        let Ok(interrupted) = each(Ok(asked), &ids, &|| None, ask, &mut heard);
        assert!(!interrupted);
        assert_eq!(heard.0, ids.into_iter().map(|id| (id, None)).collect::<Vec<_>>());
    }

    #[test]
    fn of_operations_that_are_left_those_are_reported_that_were_answered() {
        let (_, ids) = a_model();
        let mut early = [None, Some(ids[3].clone()), None, Some(ids[5].clone())];
        let mut heard = Heard::default();
        let Ok(()) = rest(&mut heard, &ids[2..6], &mut early, Ending::Skipped, "a limit");
        let of = |at: usize, ending| (ids[at].clone(), ending);
        let skipped = Some(Ending::Skipped);
        assert_eq!(heard.0, [of(2, skipped), of(3, None), of(4, skipped), of(5, None)]);
    }
}
