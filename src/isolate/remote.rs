//! A device that runs in another process: [`RemoteDevice`].

mod scalars;
mod screening;

use std::{
    collections::BTreeMap,
    process::Command,
    sync::{Arc, Mutex},
    time::Duration,
};

use mxprobe_api::{
    Code, Device, DeviceInfo, Elements, Error, Format, FreeOperation, GemmOperands, Issued, Library, Load, Matrices,
    Operation, OperationSet, Refusal, Scalars, Screening, Sizes, TileBatch, Timed, Timing,
};

use serde::Serialize;

use super::{
    described::Described,
    process::{Ended, Listener, Process},
    protocol::{Answer, Frame, PROTOCOL, Request, parts_of_batch, time_request},
};
use crate::aside::locked;

/// After this many consecutive operations that ended the device's process or hung, the device is not asked again.
pub const PATIENCE: usize = 3;

/// A program that speaks the device protocol, and how long to wait for it.
pub struct Program {
    /// Returns the command that starts the program.
    pub command: Box<dyn Fn() -> Command + Send + Sync>,
    /// The time limit of each request; when it is exceeded, the process is killed.
    pub limit: Duration,
    /// Polled while waiting: returns a reason to stop, such as an interrupt.
    pub stop: Box<dyn Fn() -> Option<String> + Send + Sync>,
    /// Receives the process's standard error.
    pub listener: Option<Listener>,
}

/// The devices of a program.
pub struct Found {
    /// Its devices, not yet opened.
    pub devices: Vec<Described>,
    /// Devices that it found or searched for but cannot use.
    pub refusals: Vec<Refusal>,
}

impl Program {
    /// Lists the devices of a backend; without one, those of a program that has no backends.
    ///
    /// # Errors
    /// If the program does not start, does not answer in time, or answers something else.
    pub fn discover(&self, backend: Option<&str>) -> Result<Found, Error> {
        self.found(backend).map(|(found, _)| found)
    }

    fn found(&self, backend: Option<&str>) -> Result<(Found, Process), Error> {
        let mut process = self.start()?;
        let message = Request::Discover { protocol: PROTOCOL.to_owned(), backend: backend.map(str::to_owned) };
        match self.ask(&mut process, message)? {
            Answer::Found { protocol, devices, refusals } if protocol == PROTOCOL => {
                Ok((Found { devices, refusals }, process))
            }
            Answer::Found { protocol, .. } => {
                Err(Error::unsupported(format!("the program speaks `{protocol}`, not {PROTOCOL}")))
            }
            other => Err(unexpected(other)),
        }
    }

    /// Describes a device that discovery does not list.
    ///
    /// # Errors
    /// If the program does not have this device, or fails.
    pub fn describe(&self, selector: &str) -> Result<Described, Error> {
        self.described(selector).map(|(described, _)| described)
    }

    fn described(&self, selector: &str) -> Result<(Described, Process), Error> {
        let mut process = self.start()?;
        match self.ask(&mut process, Request::Open { device: selector.to_owned() })? {
            Answer::Opened { device } => Ok((*device, process)),
            other => Err(unexpected(other)),
        }
    }

    /// Sends a request without parts.
    pub(super) fn ask(&self, process: &mut Process, message: impl Serialize) -> Result<Answer, Error> {
        let request = Frame { message, parts: Vec::<Vec<u8>>::new() };
        let answer = process.ask(&request, 0, self.limit, &self.stop);
        answer.map(|frame| frame.message).map_err(|ended| error_of(ended, process))
    }

    pub(super) fn start(&self) -> Result<Process, Error> {
        Process::start((self.command)(), self.listener.clone()).map_err(Error::driver)
    }
}

/// A device in another process. A crash or a hang costs only the operation in progress; the next one goes to a new
/// process.
pub struct RemoteDevice {
    described: Described,
    operations: OperationSet,
    /// The kernel time that the device last reported.
    kernel_ns: Mutex<Option<u64>>,
    link: Arc<Link>,
}

impl RemoteDevice {
    /// Opens the device with a selector, in a process started now; its free sizes are fixed.
    ///
    /// # Errors
    /// If the program does not start or has no such device, or the error that it answers.
    pub fn open(program: Program, selector: &str, sizes: &Sizes) -> Result<Self, Error> {
        let (described, process) = program.described(selector)?;
        Ok(Self::of(program, process, described.with(sizes), selector))
    }

    /// Opens a device of a program that has its own devices, in a process started now; its free sizes are fixed. It is
    /// called `shown` here, and goes by the selector in the program.
    ///
    /// # Errors
    /// If the program does not start or no longer has this device, or the error that it answers.
    pub fn of_program(program: Program, selector: &str, sizes: &Sizes, shown: &str) -> Result<Self, Error> {
        let (found, process) = program.found(None)?;
        let missing = || Error::unsupported(format!("the program has no device `{selector}` any more"));
        let is_meant = |device: &Described| device.info.selector == selector;
        let mut described = found.devices.into_iter().find(is_meant).ok_or_else(missing)?.with(sizes);
        shown.clone_into(&mut described.info.selector);
        Ok(Self::of(program, process, described, selector))
    }

    fn of(program: Program, process: Process, described: Described, selector: &str) -> Self {
        let state = State { process: Some(process), ..State::default() };
        let link = Arc::new(Link { program, device: selector.to_owned(), state: Mutex::new(state) });
        let operations = described.operations.iter().map(|operation| (operation.id.clone(), operation.clone()));
        let operations = operations.collect();
        Self { described, operations, kernel_ns: Mutex::default(), link }
    }

    /// Returns a handle that tells how the device has fared, even while something else owns the device.
    #[must_use]
    pub fn health(&self) -> Health {
        Health(self.link.clone())
    }
}

/// How a device in another process has fared.
#[derive(Clone)]
pub struct Health(Arc<Link>);

impl Health {
    /// The number of operations that ended the device's process, hung, or lost the device.
    #[must_use]
    pub fn falls(&self) -> usize {
        self.0.lock().fallen.len()
    }

    /// Why the device is not asked again, if so.
    #[must_use]
    pub fn gave_up(&self) -> Option<String> {
        self.0.lock().gave_up()
    }
}

/// The connection to a process that is started when needed.
struct Link {
    program: Program,
    /// The device's selector.
    device: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    process: Option<Process>,
    /// The operation or scalar mode of the last request.
    asked: String,
    /// The operations that ended the process or hung, with the error of each.
    fallen: BTreeMap<String, Error>,
    /// The number of those that were consecutive.
    in_a_row: usize,
}

impl State {
    fn gave_up(&self) -> Option<String> {
        (self.in_a_row >= PATIENCE)
            .then(|| format!("{PATIENCE} operations before in a row lost the device, ended its process or hung"))
    }
}

impl Link {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // The state is valid at every step, so it remains usable if a thread panicked while it held the lock.
        locked(&self.state)
    }

    /// Sends a request about `name`, an operation or a scalar mode.
    fn ask(&self, name: &str, message: Request, parts: Vec<&[u8]>, most_bytes: usize) -> Result<Frame<Answer>, Error> {
        let state = &mut *self.lock();
        if state.asked != name {
            if !state.asked.is_empty() && !state.fallen.contains_key(&state.asked) {
                state.in_a_row = 0;
            }
            name.clone_into(&mut state.asked);
        }
        if let Some(error) = state.fallen.get(name) {
            return Err(error.clone());
        }
        if let Some(reason) = state.gave_up() {
            return Err(Error::device_lost(reason));
        }
        let process = match &mut state.process {
            Some(process) => process,
            none => none.insert(self.program.start()?),
        };
        let answer = process.ask(&Frame { message, parts }, most_bytes, self.program.limit, &self.program.stop);
        let error = match answer {
            Ok(Frame { message: Answer::Failed { kind, message }, .. }) => {
                let error = Error::new(kind, message);
                if !error.is_device_lost() {
                    return Err(error);
                }
                error
            }
            Ok(frame) => return Ok(frame),
            Err(Ended::Stopped(reason)) => {
                state.process = None;
                return Err(Error::timed_out(reason));
            }
            Err(ended) => error_of(ended, process),
        };
        // A new process has a new context.
        state.process = None;
        state.in_a_row += 1;
        state.fallen.insert(name.to_owned(), error.clone());
        Err(error)
    }

    /// Sends a request whose answer is `len` elements.
    fn elements(
        &self,
        name: &str,
        message: Request,
        parts: Vec<&[u8]>,
        format: Format,
        len: usize,
    ) -> Result<Elements, Error> {
        match self.ask(name, message, parts, len * format.storage_bytes())? {
            Frame { message: Answer::Done { .. }, parts } => one_part(format, parts),
            other => Err(unexpected(other.message)),
        }
    }
}

impl Device for RemoteDevice {
    fn info(&self) -> &DeviceInfo {
        &self.described.info
    }

    fn operations(&self) -> &OperationSet {
        &self.operations
    }

    fn free_operations(&self) -> &[FreeOperation] {
        &self.described.free
    }

    fn refusals(&self) -> &[Refusal] {
        &self.described.refusals
    }

    fn execute(&self, operation: &Operation, batch: &TileBatch) -> Result<Elements, Error> {
        let (id, tiles) = (&operation.id, batch.tiles);
        let (m, n, _) = id.shape.sizes();
        let message = Request::Execute { device: self.link.device.clone(), operation: id.clone(), tiles };
        self.link.elements(&id.to_string(), message, parts_of_batch(batch), id.d, tiles * m * n)
    }

    fn matrices(&self) -> Option<&dyn Matrices> {
        self.described.matrices.is_some().then_some(self)
    }

    fn scalars(&self) -> Option<&dyn Scalars> {
        (!self.described.scalars.is_empty()).then_some(self)
    }

    fn timing(&self) -> Option<&dyn Timing> {
        self.described.yardsticks.is_some().then_some(self)
    }

    fn screening(&self) -> Option<&dyn Screening> {
        self.described.screening.is_some().then_some(self)
    }

    fn code(&self) -> Option<&dyn Code> {
        self.described.code.then_some(self)
    }
}

/// Single dots are left to models in this process, which answer without a message; other programs are asked for tiles.
impl Matrices for RemoteDevice {
    fn multiply(&self, operation: &Operation, operands: &GemmOperands<'_>) -> Result<Option<Elements>, Error> {
        let GemmOperands { m, n, k, a, b, c, scale_a, scale_b } = *operands;
        let id = &operation.id;
        let device = self.link.device.clone();
        let message = Request::Multiply { device, operation: id.clone(), sizes: [m, n, k] };
        let parts = [Some(a), Some(b), Some(c), scale_a, scale_b];
        let parts = parts.into_iter().flatten().map(Elements::bytes).collect();
        let Frame { message, parts } = self.link.ask(&id.to_string(), message, parts, m * n * id.d.storage_bytes())?;
        match message {
            Answer::Done { kernel_ns } => {
                note(&self.kernel_ns, kernel_ns);
                one_part(id.d, parts).map(Some)
            }
            Answer::TileByTile => Ok(None),
            other => Err(unexpected(other)),
        }
    }

    fn has_tiles(&self) -> bool {
        self.described.matrices.is_none_or(|matrices| matrices.has_tiles)
    }

    fn kernel_ns(&self) -> Option<u64> {
        noted(&self.kernel_ns)
    }
}

impl Code for RemoteDevice {
    fn issued(&self, operation: &Operation) -> Result<Option<Issued>, Error> {
        let message = Request::Code { device: self.link.device.clone(), operation: operation.id.clone() };
        match self.link.ask(&operation.id.to_string(), message, Vec::new(), 0)?.message {
            Answer::Code { issued } => Ok(issued),
            other => Err(unexpected(other)),
        }
    }

    fn kernel_hash(&self, operation: &Operation) -> Option<String> {
        let message = Request::Kernel { device: self.link.device.clone(), operation: operation.id.clone() };
        match self.link.ask(&operation.id.to_string(), message, Vec::new(), 0).ok()?.message {
            Answer::Kernel { sha256 } => sha256,
            _ => None,
        }
    }
}

impl Timing for RemoteDevice {
    fn yardsticks(&self) -> &[Operation] {
        self.described.yardsticks.as_deref().unwrap_or_default()
    }

    fn time(&self, operation: &Operation, load: &Load<'_>) -> Result<Timed, Error> {
        let message = time_request(&self.link.device, operation, load);
        // The device decides how many chains there are.
        let parts = parts_of_batch(load.operands);
        let Frame { message, parts } = self.link.ask(&operation.id.to_string(), message, parts, MOST_TIMED_BYTES)?;
        match message {
            Answer::Timed(timed) => Ok(timed.with(one_part(operation.id.d, parts)?)),
            other => Err(unexpected(other)),
        }
    }

    fn library(&self) -> Result<Box<dyn Library>, Error> {
        let message = Request::Library { device: self.link.device.clone() };
        match self.link.ask(LIBRARY, message, Vec::new(), 0)?.message {
            Answer::Library { name } => {
                Ok(Box::new(RemoteLibrary { name, link: self.link.clone(), kernel_ns: Mutex::default() }))
            }
            other => Err(unexpected(other)),
        }
    }
}

/// The name under which failures of a library are counted.
const LIBRARY: &str = "the library";

/// The most bytes of sums that a timed load may return: enough for a million chains of the largest tiles in use.
const MOST_TIMED_BYTES: usize = u32::MAX as usize;

/// A library that multiplies in another process.
struct RemoteLibrary {
    name: String,
    link: Arc<Link>,
    kernel_ns: Mutex<Option<u64>>,
}

impl Library for RemoteLibrary {
    fn name(&self) -> &str {
        &self.name
    }

    fn multiply(&self, (m, n, k): (usize, usize, usize), a: &Elements, b: &Elements) -> Result<Elements, Error> {
        let message = Request::MultiplyWithLibrary { device: self.link.device.clone(), sizes: [m, n, k] };
        let most_bytes = m * n * Format::F32.storage_bytes();
        match self.link.ask(LIBRARY, message, vec![a.bytes(), b.bytes()], most_bytes)? {
            Frame { message: Answer::Done { kernel_ns }, parts } => {
                note(&self.kernel_ns, kernel_ns);
                one_part(Format::F32, parts)
            }
            other => Err(unexpected(other.message)),
        }
    }

    fn kernel_ns(&self) -> Option<u64> {
        noted(&self.kernel_ns)
    }
}

fn note(place: &Mutex<Option<u64>>, value: Option<u64>) {
    *locked(place) = value;
}

fn noted(place: &Mutex<Option<u64>>) -> Option<u64> {
    *locked(place)
}

/// Decodes the only part of an answer.
pub(super) fn one_part(format: Format, parts: Vec<Vec<u8>>) -> Result<Elements, Error> {
    let count = parts.len();
    let [part] = <[Vec<u8>; 1]>::try_from(parts)
        .map_err(|_| Error::driver(format!("the device's process returned {count} parts instead of one")))?;
    Elements::from_bytes(format, part).map_err(|error| Error::driver(error.to_string()))
}

/// The error for an answer of the wrong kind.
fn unexpected(answer: Answer) -> Error {
    match answer {
        Answer::Failed { kind, message } => Error::new(kind, message),
        other => {
            let text = serde_json::to_string(&other).unwrap_or_default();
            let shown: String = text.chars().take(120).collect();
            Error::driver(format!("the device's process answered something else: {shown}"))
        }
    }
}

fn error_of(ended: Ended, process: &Process) -> Error {
    match ended {
        Ended::TimedOut(limit) => {
            Error::timed_out(format!("timed out after {} s{}", limit.as_secs_f64(), process.last_words()))
        }
        Ended::Died(how) => Error::device_lost(how),
        Ended::Stopped(reason) => Error::timed_out(reason),
    }
}
