//! The child's side of the protocol: answers requests in order until its standard input closes.

use std::{
    collections::BTreeMap,
    io::{self, BufRead, Write},
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use mxprobe_api::{
    Backend, Device, Elements, Error, Format, GemmOperands, Library, Load, OperationId, Scalar, ScalarId, Screening,
    Sizes, execute, flags_of, operation_of, scalars_of, with_sizes,
};

use super::{
    described::{Described, MatricesRecord},
    protocol::{Answer, Frame, Next, PROTOCOL, Request, TimedRecord, batch_of_parts, read},
    screening::ScreenedRecord,
};

/// How long a driver may take to unload once the parent has closed the connection.
const FAREWELL: Duration = Duration::from_secs(1);

/// The exit code of a process whose parent is gone.
const ORPHANED: i32 = 130;

/// Answers requests about the devices of some backends. A `discover` request without a backend lists the devices of the
/// backends in `shown`.
///
/// Returns when `input` ends between two requests. If it ends while a request is being answered, the process exits: the
/// parent is gone, and a driver may never return.
///
/// # Errors
/// If an answer cannot be written.
pub fn serve(
    input: impl BufRead + Send + 'static,
    mut output: impl Write,
    backend: &dyn Fn(&str) -> Option<Box<dyn Backend>>,
    shown: &[&str],
) -> io::Result<()> {
    let (sender, requests) = mpsc::channel();
    let (idle, is_idle) = mpsc::channel::<()>();
    thread::spawn(move || {
        forward(input, &sender);
        drop(sender);
        // The answering side drops `idle` when it has finished.
        if is_idle.recv_timeout(FAREWELL).is_err_and(|error| error == mpsc::RecvTimeoutError::Timeout) {
            // `exit` runs the driver's own cleanup, which may hang as well.
            thread::spawn(|| {
                thread::sleep(FAREWELL);
                std::process::abort();
            });
            std::process::exit(ORPHANED);
        }
    });
    let mut devices = Devices { backend, shown, open: BTreeMap::new(), libraries: BTreeMap::new() };
    for request in requests {
        let (message, parts) = match request.and_then(|frame: Frame<Request>| devices.answer(frame)) {
            Ok((message, parts)) => (message, parts),
            Err(error) => (Answer::Failed { kind: error.kind(), message: error.to_string() }, Vec::new()),
        };
        let parts = parts.iter().map(Elements::bytes).collect();
        Frame { message, parts }.write(&mut output)?;
    }
    drop(idle);
    Ok(())
}

/// Forwards every request of a stream; a line that is not a valid request becomes an error.
fn forward(mut input: impl BufRead, requests: &mpsc::Sender<Result<Frame<Request>, Error>>) {
    loop {
        let request = match read(&mut input, || usize::MAX) {
            Ok(Next::Message(frame)) => Ok(frame),
            Ok(Next::Stray(line)) if line.is_empty() => continue,
            Ok(Next::Wrong(_, why)) => Err(Error::invalid(format!("not a valid request of {PROTOCOL}: {why}"))),
            Ok(Next::Stray(line)) => {
                let shown: String = String::from_utf8_lossy(&line).chars().take(80).collect();
                Err(Error::invalid(format!("`{shown}` is not a request of {PROTOCOL}")))
            }
            Ok(Next::TooLong(bytes)) => Err(Error::invalid(format!("{bytes} bytes of operands"))),
            Ok(Next::End) | Err(_) => return,
        };
        if requests.send(request).is_err() {
            return;
        }
    }
}

/// The devices of this process, each opened only once.
struct Devices<'b> {
    backend: &'b dyn Fn(&str) -> Option<Box<dyn Backend>>,
    shown: &'b [&'b str],
    open: BTreeMap<String, Arc<dyn Device>>,
    libraries: BTreeMap<String, Box<dyn Library>>,
}

/// The answer to requests whose only result is elements.
const DONE: Answer = Answer::Done { kernel_ns: None };

/// An answer and the elements that follow it.
type Answered = Result<(Answer, Vec<Elements>), Error>;

impl Devices<'_> {
    fn answer(&mut self, Frame { message, parts }: Frame<Request>) -> Answered {
        match message {
            Request::Discover { protocol, backend } => self.discover(&protocol, backend.as_deref()),
            Request::Open { device } => {
                Ok((Answer::Opened { device: Box::new(Described::of(self.device(&device)?.as_ref())) }, Vec::new()))
            }
            Request::Execute { device, operation, tiles } => {
                let device = &*self.device_for(&device, &operation)?;
                let operation = operation_of(device, &operation)?;
                let batch = batch_of_parts(operation, tiles, parts)?;
                Ok((DONE, vec![execute(device, operation, &batch)?]))
            }
            Request::Call { device, scalar, function } => {
                let device = self.device(&device)?.as_ref();
                let [operands] = elements([scalar.format], parts)?;
                Ok((DONE, vec![mxprobe_api::call(device, member(device, &scalar)?, function, &operands)?]))
            }
            Request::CallWithFlags { device, scalar, function } => {
                let device = self.device(&device)?.as_ref();
                let [operands] = elements([scalar.format], parts)?;
                let member = member(device, &scalar)?;
                let (results, flags) = mxprobe_api::call_with_flags(device, member, function, &operands)?;
                let flags = flags.into_iter().map(|flags| flags.bits().into());
                Ok((DONE, vec![results, Elements::from_bits(Format::U8, flags)]))
            }
            Request::Multiply { device, operation, sizes: [m, n, k] } => {
                let device = &*self.device_for(&device, &operation)?;
                let operation = operation_of(device, &operation)?;
                let id = &operation.id;
                let (a, b, c, scales);
                if let Some(scale) = id.block_scale() {
                    let (of_a, of_b);
                    [a, b, c, of_a, of_b] = elements([id.a, id.b, id.c, scale.format, scale.format], parts)?;
                    scales = Some((of_a, of_b));
                } else {
                    [a, b, c] = elements([id.a, id.b, id.c], parts)?;
                    scales = None;
                }
                let (scale_a, scale_b) = (scales.as_ref().map(|(a, _)| a), scales.as_ref().map(|(_, b)| b));
                let operands = GemmOperands { m, n, k, a: &a, b: &b, c: &c, scale_a, scale_b };
                let d = mxprobe_api::multiply(device, operation, &operands)?;
                let kernel_ns = device.matrices().and_then(|matrices| matrices.kernel_ns());
                Ok(d.map_or((Answer::TileByTile, Vec::new()), |d| (Answer::Done { kernel_ns }, vec![d])))
            }
            Request::Time { device, operation, tiles, steps, span } => {
                let device = &*self.device_for(&device, &operation)?;
                let yardsticks = device.timing().map_or(&[][..], |timing| timing.yardsticks());
                let yardstick = yardsticks.iter().find(|known| known.id == operation);
                let operation = yardstick.map_or_else(|| operation_of(device, &operation), Ok)?;
                let operands = &batch_of_parts(operation, tiles, parts)?;
                let timed = mxprobe_api::time(device, operation, &Load { operands, steps, span })?;
                Ok((Answer::Timed(TimedRecord::from(&timed)), vec![timed.d]))
            }
            Request::Screen(asked) => {
                let asked = asked.read()?;
                let device = &*self.device_for(&asked.device, &asked.operation)?;
                let operation = operation_of(device, &asked.operation)?;
                let operands = batch_of_parts(operation, asked.tiles, parts)?;
                let found = mxprobe_api::screen(device, operation, &asked.drill(&operands))?;
                let (units, parts) = ScreenedRecord::split(found);
                Ok((Answer::Screened { units }, parts))
            }
            Request::Code { device, operation } => {
                let device = &*self.device_for(&device, &operation)?;
                let operation = operation_of(device, &operation)?;
                let issued = device.code().map_or(Ok(None), |code| code.issued(operation))?;
                Ok((Answer::Code { issued }, Vec::new()))
            }
            Request::Kernel { device, operation } => {
                let device = &*self.device_for(&device, &operation)?;
                let operation = operation_of(device, &operation)?;
                Ok((Answer::Kernel { sha256: device.code().and_then(|code| code.kernel_hash(operation)) }, Vec::new()))
            }
            Request::Library { device } => {
                Ok((Answer::Library { name: self.library(&device)?.name().to_owned() }, Vec::new()))
            }
            Request::MultiplyWithLibrary { device, sizes: [m, n, k] } => {
                let [a, b] = elements([Format::F32; 2], parts)?;
                let library = self.library(&device)?;
                let d = mxprobe_api::multiply_with(library, (m, n, k), &a, &b)?;
                Ok((Answer::Done { kernel_ns: library.kernel_ns() }, vec![d]))
            }
        }
    }

    fn discover(&mut self, protocol: &str, backend: Option<&str>) -> Answered {
        if protocol != PROTOCOL {
            return Err(Error::invalid(format!("the protocol `{protocol}` is not {PROTOCOL}")));
        }
        let (mut devices, mut refusals) = (Vec::new(), Vec::new());
        for name in backend.map_or_else(|| self.shown.to_vec(), |name| vec![name]) {
            let found = self.backend(name)?.discover();
            devices.extend(found.devices.iter().map(|device| Described::of(device.as_ref())));
            refusals.extend(found.refusals);
            self.open.extend(found.devices.into_iter().map(|device| (device.info().selector.clone(), device.into())));
        }
        Ok((Answer::Found { protocol: PROTOCOL.to_owned(), devices, refusals }, Vec::new()))
    }

    fn backend(&self, name: &str) -> Result<Box<dyn Backend>, Error> {
        (self.backend)(name).ok_or_else(|| Error::invalid(format!("unknown backend `{name}`")))
    }

    /// Returns the device of a selector, opening it if necessary: one that discovery lists, or one that its backend
    /// opens by name.
    fn device(&mut self, selector: &str) -> Result<&Arc<dyn Device>, Error> {
        if !self.open.contains_key(selector) {
            let (backend, name) = selector.split_once(':').unwrap_or((selector, ""));
            let backend = self.backend(backend)?;
            let listed = backend.discover().devices.into_iter().find(|device| device.info().selector == selector);
            let device = listed.map_or_else(|| backend.open(name), Ok)?;
            self.open.insert(selector.to_owned(), device.into());
        }
        Ok(&self.open[selector])
    }

    /// The same, for an operation that may be one of its free ones with sizes.
    fn device_for(&mut self, selector: &str, operation: &OperationId) -> Result<Arc<dyn Device>, Error> {
        let device = self.device(selector)?.clone();
        if device.operations().contains_key(operation) {
            return Ok(device);
        }
        Ok(with_sizes(device, &Sizes { shape: None, ids: vec![operation.clone()] }))
    }

    fn library(&mut self, selector: &str) -> Result<&dyn Library, Error> {
        if !self.libraries.contains_key(selector) {
            let device = self.device(selector)?;
            let without = || Error::unsupported(format!("no library is known that multiplies on {selector}"));
            let library = device.timing().ok_or_else(without)?.library()?;
            self.libraries.insert(selector.to_owned(), library);
        }
        Ok(self.libraries[selector].as_ref())
    }
}

impl Described {
    /// Describes a device as data.
    #[must_use]
    pub fn of(device: &dyn Device) -> Self {
        Self {
            info: device.info().clone(),
            operations: device.operations().values().cloned().collect(),
            free: device.free_operations().to_vec(),
            refusals: device.refusals().to_vec(),
            scalars: scalars_of(device).to_vec(),
            flags: flags_of(device).is_some(),
            yardsticks: device.timing().map(|timing| timing.yardsticks().to_vec()),
            matrices: device.matrices().map(|matrices| MatricesRecord { has_tiles: matrices.has_tiles() }),
            screening: device.screening().map(|screening| screening.units()),
            screening_steps: device.screening().map(|screening| chained(device, screening)).unwrap_or_default(),
            code: device.code().is_some(),
        }
    }
}

/// The number of instructions to chain of each operation that is chained.
fn chained(device: &dyn Device, screening: &dyn Screening) -> BTreeMap<OperationId, u32> {
    let steps = device.operations().keys().map(|id| (id.clone(), screening.steps(id)));
    steps.filter(|(_, steps)| *steps > 1).collect()
}

/// Returns the scalar mode with this id.
fn member<'d>(device: &'d dyn Device, id: &ScalarId) -> Result<&'d Scalar, Error> {
    let missing = || Error::invalid(format!("{} has no {id}", device.info().selector));
    scalars_of(device).iter().find(|known| known.id == *id).ok_or_else(missing)
}

/// Decodes the parts of a request as operands of these formats.
fn elements<const N: usize>(formats: [Format; N], parts: Vec<Vec<u8>>) -> Result<[Elements; N], Error> {
    let given = parts.len();
    let wrong = || Error::invalid(format!("{given} operands were sent, {N} are expected"));
    let parts: [Vec<u8>; N] = parts.try_into().map_err(|_| wrong())?;
    let mut found = formats.map(|format| Elements::zeros(format, 0));
    for ((place, format), part) in found.iter_mut().zip(formats).zip(parts) {
        *place = Elements::from_bytes(format, part)?;
    }
    Ok(found)
}
