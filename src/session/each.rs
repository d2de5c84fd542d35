//! One operation after the other, on a thread, so that whoever waits can stop waiting for any device; several at once of a
//! model.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
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
    /// It may be asked about several operations at once: a model of this process, which has no state and does not hang.
    pub several: bool,
}

impl Asked {
    /// A device that is asked about every operation, whatever became of those before.
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
    /// Of the operation at this place.
    Answer(usize, A),
    /// Nothing more is asked of the device.
    GaveUp(String),
}

/// Asks a device about operations in their order. Returns whether it was interrupted.
///
/// A model is asked about several operations at once, one a core; the listener hears the answers in the order of the operations
/// all the same.
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
    ask: impl Fn(&dyn Device, &OperationId, &dyn Fn(&str)) -> A + Send + Sync + 'static,
    listener: &mut dyn Listener<A, Error = E>,
) -> Result<bool, E> {
    let none = &mut BTreeMap::new();
    let reached = match reached {
        _ if stop() == Some(Stop::Interrupted) => return Ok(true),
        Ok(reached) => reached,
        Err(error) => return rest(listener, ids, (0, none), Ending::Failed, &error.to_string()).map(|()| false),
    };
    let stopped = Arc::new(AtomicBool::new(false));
    let (sender, said) = mpsc::channel();
    let at_once = if reached.several { threads().min(ids.len()) } else { 1 };
    let (next, ask) = (Arc::new(AtomicUsize::new(0)), Arc::new(ask));
    let thread = |sender: mpsc::Sender<Said<A>>| {
        let (ids, gave_up) = (ids.to_vec(), Arc::clone(&reached.gave_up));
        let device = Stoppable { device: Arc::clone(&reached.device), stopped: Arc::clone(&stopped) };
        let (next, ask) = (Arc::clone(&next), Arc::clone(&ask));
        thread::spawn(move || {
            // Whoever stopped listening is noticed at the next answer.
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(id) = ids.get(at) else { return };
                let progress = |words: &str| drop(sender.send(Said::Progress(words.to_owned())));
                let answer = ask(&device, id, &progress);
                if sender.send(Said::Answer(at, answer)).is_err() {
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
    // However this ends.
    let _stops = Stops(stopped);
    let mut left = ids;
    // Answers that came before those of earlier operations.
    let mut early = BTreeMap::new();
    while let Some((first, others)) = left.split_first() {
        let at = ids.len() - left.len();
        let heard = said.recv_timeout(TICK);
        // An answer that was cut short by these is not one.
        match stop() {
            Some(Stop::Interrupted) => return Ok(true),
            Some(Stop::Spent(reason)) => {
                return rest(listener, left, (at, &mut early), Ending::Skipped, &reason).map(|()| false);
            }
            None => {}
        }
        match heard {
            Ok(Said::Progress(words)) => listener.progress(&words),
            Ok(Said::Answer(place, answer)) => {
                early.insert(place, answer);
                while let Some(answer) = early.remove(&(ids.len() - left.len())) {
                    listener.answered(answer)?;
                    left = &left[1..];
                }
            }
            Ok(Said::GaveUp(reason)) => {
                return rest(listener, left, (at, &mut early), Ending::Skipped, &reason).map(|()| false);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                listener.missing(first, Ending::Failed, "mxprobe panicked")?;
                let reason = "mxprobe panicked at an operation before";
                rest(listener, others, (at + 1, &mut early), Ending::Skipped, reason)?;
                break;
            }
        }
    }
    // It has ended, or is on its way out.
    running.into_iter().for_each(|thread| drop(thread.join()));
    Ok(false)
}

/// What is left, from operation `at` on: the answers that came early, and none to the others.
fn rest<A, E>(
    listener: &mut dyn Listener<A, Error = E>,
    left: &[OperationId],
    (at, early): (usize, &mut BTreeMap<usize, A>),
    ending: Ending,
    reason: &str,
) -> Result<(), E> {
    left.iter().enumerate().try_for_each(|(place, id)| match early.remove(&(at + place)) {
        Some(answer) => listener.answered(answer),
        None => listener.missing(id, ending, reason),
    })
}

/// Sets the flag when it goes out of scope.
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
        let mut early = BTreeMap::from([(3, ids[3].clone()), (5, ids[5].clone())]);
        let mut heard = Heard::default();
        let Ok(()) = rest(&mut heard, &ids[2..6], (2, &mut early), Ending::Skipped, "a limit");
        let of = |at: usize, ending| (ids[at].clone(), ending);
        let skipped = Some(Ending::Skipped);
        assert_eq!(heard.0, [of(2, skipped), of(3, None), of(4, skipped), of(5, None)]);
    }
}
