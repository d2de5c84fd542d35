//! A Python callable as a device.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread,
    time::Duration,
};

use pyo3::{prelude::*, types::PyBytes};

use mxprobe_api::{Device, DeviceInfo, DeviceKind, Elements, Error, Operation, OperationId, OperationSet, TileBatch};

use crate::error::of_exception;

/// A device that calls a Python function: with the number of tiles and the bytes of A, B and C, for the bytes of D.
///
/// It is called on one thread of its own, whoever asks, so that a call that does not return costs an operation and not the session.
pub(crate) struct Callable {
    info: DeviceInfo,
    operations: OperationSet,
    limit: Duration,
    calls: Mutex<Calls>,
}

struct Call {
    tiles: usize,
    operands: [Vec<u8>; 3],
    answer: Sender<Result<Vec<u8>, Error>>,
}

struct Calls {
    to: Sender<Call>,
    /// The answer of a call that was not waited for to its end.
    late: Option<Receiver<Result<Vec<u8>, Error>>>,
}

impl Callable {
    /// A device of one operation. `function` is called as `function(tiles, a, b, c)`.
    pub(crate) fn new(name: &str, id: OperationId, function: Py<PyAny>, limit: Duration) -> Self {
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
        let (to, calls) = mpsc::channel();
        thread::spawn(move || serve(&function, &calls));
        Self { info, operations, limit, calls: Mutex::new(Calls { to, late: None }) }
    }

    /// Why nothing more is asked, if a call has not returned.
    pub(crate) fn gave_up(&self) -> Option<String> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).busy().then(|| STILL_RUNS.to_owned())
    }
}

const STILL_RUNS: &str = "the callable has not returned from an earlier call";

impl Calls {
    fn busy(&mut self) -> bool {
        if self.late.as_ref().is_some_and(|late| !matches!(late.try_recv(), Err(mpsc::TryRecvError::Empty))) {
            self.late = None;
        }
        self.late.is_some()
    }
}

/// Calls the function for each request, until there are no more.
fn serve(function: &Py<PyAny>, calls: &Receiver<Call>) {
    for Call { tiles, operands, answer } in calls {
        let found = Python::attach(|py| {
            let [a, b, c] = operands.each_ref().map(|bytes| PyBytes::new(py, bytes));
            let called = function.bind(py).call1((tiles, a, b, c));
            let bytes = called.and_then(|found| Ok(found.cast_into::<PyBytes>()?.as_bytes().to_vec()));
            bytes.map_err(|raised| of_exception(py, &raised))
        });
        // Whoever asked may have gone.
        let _ = answer.send(found);
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
