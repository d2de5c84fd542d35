//! A Python callable as a device.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread,
    time::Duration,
};

use pyo3::{prelude::*, types::PyBytes};

use mxprobe_api::{Device, DeviceInfo, DeviceKind, Elements, Error, Operation, OperationId, OperationSet, TileBatch};

use crate::error::of_exception;

/// A device that calls a Python function with the number of tiles and the bytes of A, B and C, and gets the bytes of D.
///
/// The function runs on its own thread, whoever asks, so that a call that does not return costs an operation and not
/// the session. That thread belongs to Python and takes its calls from [`Calls`]: when the interpreter exits, it ends
/// such threads wherever they are, and such a thread must not have a Rust frame below.
pub(crate) struct Callable {
    info: DeviceInfo,
    operations: OperationSet,
    limit: Duration,
    calls: Mutex<Sent>,
}

/// The bytes of D.
type Answer = Result<Vec<u8>, Error>;

struct Call {
    tiles: usize,
    operands: [Vec<u8>; 3],
    answer: Sender<Answer>,
}

struct Sent {
    to: Sender<Call>,
    /// The answer of a call that timed out.
    late: Option<Receiver<Answer>>,
}

impl Callable {
    /// Creates a device with one operation, and the calls that a thread must answer.
    pub(crate) fn new(name: &str, id: OperationId, limit: Duration) -> (Self, Calls) {
        let info = DeviceInfo {
            backend: "python".into(),
            selector: format!("python:{name}"),
            name: name.to_owned(),
            fingerprint: name.to_owned(),
            kind: DeviceKind::Software,
            emulated: false,
            aliases: Vec::new(),
            driver: None,
            properties: BTreeMap::from([("kernel_form".into(), "Python callable".into())]),
        };
        let operations = BTreeMap::from([(id.clone(), Operation::new(id, "program"))]);
        let (to, from) = mpsc::channel();
        let calls = Calls { from: Mutex::new(from), answers: Mutex::new(None) };
        (Self { info, operations, limit, calls: Mutex::new(Sent { to, late: None }) }, calls)
    }

    /// Why the device is not asked any more, if a call has not returned.
    pub(crate) fn gave_up(&self) -> Option<String> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).busy().then(|| STILL_RUNS.to_owned())
    }
}

const STILL_RUNS: &str = "the callable has not returned from an earlier call";

impl Sent {
    fn busy(&mut self) -> bool {
        if self.late.as_ref().is_some_and(|late| !matches!(late.try_recv(), Err(mpsc::TryRecvError::Empty))) {
            self.late = None;
        }
        self.late.is_some()
    }
}

/// The calls to a callable, for the thread that makes them: `next`, then `done` or `failed`, until `next` returns None.
#[pyclass(frozen, module = "mxprobe._mxprobe")]
pub(crate) struct Calls {
    from: Mutex<Receiver<Call>>,
    answers: Mutex<Option<Sender<Answer>>>,
}

/// Whether the interpreter is about to exit.
static ENDING: AtomicBool = AtomicBool::new(false);

/// Announces that the interpreter is about to exit: threads that wait for a call do not return to it.
#[pyfunction]
pub(crate) fn ending() {
    ENDING.store(true, Ordering::Release);
}

/// The number of tiles, and the bytes of A, B and C.
type Operands = (usize, Py<PyBytes>, Py<PyBytes>, Py<PyBytes>);

#[pymethods]
impl Calls {
    /// The next call: the number of tiles, and the bytes of A, B and C; None once the device is gone.
    fn next(&self, py: Python<'_>) -> Option<Operands> {
        let Call { tiles, operands: [a, b, c], answer } = py.detach(|| {
            let call = self.from.lock().unwrap_or_else(PoisonError::into_inner).recv().ok();
            while ENDING.load(Ordering::Acquire) {
                thread::park();
            }
            call
        })?;
        *self.answers.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
        let bytes = |bytes: Vec<u8>| PyBytes::new(py, &bytes).unbind();
        Some((tiles, bytes(a), bytes(b), bytes(c)))
    }

    /// Answers a call with the bytes of D.
    fn done(&self, py: Python<'_>, d: &Bound<'_, PyAny>) {
        let bytes = d.cast::<PyBytes>().map(|bytes| bytes.as_bytes().to_vec());
        self.answer(bytes.map_err(|error| of_exception(py, &error.into())));
    }

    /// Answers a call with the exception that was raised.
    fn failed(&self, py: Python<'_>, raised: Bound<'_, PyAny>) {
        self.answer(Err(of_exception(py, &PyErr::from_value(raised))));
    }
}

impl Calls {
    fn answer(&self, found: Answer) {
        if let Some(answer) = self.answers.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // The asking thread may be gone.
            let _ = answer.send(found);
        }
    }
}

impl Device for Callable {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn operations(&self) -> &OperationSet {
        &self.operations
    }

    fn execute(&self, operation: &Operation, batch: &TileBatch) -> Result<Elements, Error> {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        if calls.busy() {
            return Err(Error::device_lost(STILL_RUNS));
        }
        let (answer, heard) = mpsc::channel();
        let operands = [&batch.a, &batch.b, &batch.c].map(|elements| elements.bytes().to_vec());
        let gone = || Error::device_lost("the thread of the callable has ended");
        calls.to.send(Call { tiles: batch.tiles, operands, answer }).map_err(|_| gone())?;
        match heard.recv_timeout(self.limit) {
            Ok(found) => Elements::from_bytes(operation.id.d, found?),
            Err(RecvTimeoutError::Timeout) => {
                calls.late = Some(heard);
                Err(Error::timed_out(format!(
                    "the callable did not return within {} s, its time limit",
                    self.limit.as_secs_f64()
                )))
            }
            Err(RecvTimeoutError::Disconnected) => Err(gone()),
        }
    }
}
