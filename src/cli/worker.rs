//! The other end of an isolated device: one request on standard input, one line of JSON an answer on standard output.
//! Standard input stays open for as long as somebody wants answers.

use std::{
    io::{self, BufRead, Read, Write},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use mxprobe::{
    identify::{self, Comparison, NanBits},
    probes,
    report::{BenchSettings, IdentifiedOperation, OperationReport, Throughput, VerifiedOperation},
    scalars,
};
use mxprobe_api::{
    Device, DeviceInfo, Elements, Error, Issued, Library, Load, Operation, OperationId, OperationSet, Product, Refusal,
    Scalar, ScalarFunction, TileBatch, Timed, Timing,
};
use serde::{Deserialize, Serialize};

use super::{
    Outcome, bench, catalog,
    failure::{Failure, INTERRUPTED},
    identify as identifying,
    registry::Entry,
    select, verify,
};

/// What a worker is asked.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    /// Which devices a backend finds.
    Discover(String),
    /// The models of some operations of one device, in this order.
    Identify {
        /// The backend.
        backend: String,
        /// The device's exact selector.
        device: String,
        /// The operations.
        operations: Vec<OperationId>,
        /// What inputs are drawn from.
        seed: u64,
        /// Which NaN count as the same.
        nan: NanBits,
    },
    /// The comparison of some operations of one device with a model, in this order.
    Verify {
        /// The backend.
        backend: String,
        /// The device's exact selector.
        device: String,
        /// The operations.
        operations: Vec<OperationId>,
        /// The model's name or file.
        model: String,
        /// Dots of each operation.
        count: u64,
        /// What inputs are drawn from.
        seed: u64,
        /// Which NaN count as the same.
        nan: NanBits,
    },
    /// The throughput of some operations of one device, in this order.
    Bench {
        /// The backend.
        backend: String,
        /// The device's exact selector.
        device: String,
        /// The operations.
        operations: Vec<OperationId>,
        /// How it is measured.
        settings: BenchSettings,
        /// What is not reached within so many nanoseconds is skipped.
        budget_ns: Option<u64>,
        /// Yardsticks that a worker before this one measured, or died at.
        known: Vec<OperationId>,
    },
    /// The probes of some operations of one device, in this order.
    Probe {
        /// The backend.
        backend: String,
        /// The device's exact selector.
        device: String,
        /// The operations.
        operations: Vec<OperationId>,
        /// Which probes; all, if none is named.
        wanted: Vec<String>,
        /// The model that each operation is compared with.
        expect: Option<String>,
    },
}

/// What it answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// To `Discover`.
    Found(catalog::Found),
    /// To `Probe`: the next operation.
    Probed {
        /// What was learnt.
        report: Box<OperationReport>,
        /// The device was lost; no other operation will follow.
        device_lost: bool,
    },
    /// To `Identify`: the next operation.
    Identified {
        /// What was found.
        found: Box<IdentifiedOperation>,
        /// The device was lost; no other operation will follow.
        device_lost: bool,
    },
    /// To `Verify`: the next operation.
    Verified {
        /// What was found.
        found: Box<VerifiedOperation>,
        /// The device was lost; no other operation will follow.
        device_lost: bool,
    },
    /// To `Bench`: a yardstick of the device, or the next operation.
    Benched {
        /// What was measured.
        found: Box<Throughput>,
        /// The device was lost; no other operation will follow.
        device_lost: bool,
    },
    /// To `Bench`: the yardstick that is measured next. If no answer follows, it is to blame.
    Asking(OperationId),
    /// What goes on, in words.
    Progress(String),
    /// The device could not be opened: nothing was asked.
    Refused(String),
}

impl Answer {
    /// Whether the device was lost, so that this process answers nothing more.
    pub(crate) fn is_last(&self) -> bool {
        match self {
            Self::Probed { device_lost, .. }
            | Self::Identified { device_lost, .. }
            | Self::Verified { device_lost, .. }
            | Self::Benched { device_lost, .. } => *device_lost,
            Self::Found(_) | Self::Asking(_) | Self::Progress(_) | Self::Refused(_) => false,
        }
    }
}

/// Answers one request and ends.
pub(crate) fn serve() -> Outcome {
    let mut text = String::new();
    io::stdin().lock().read_line(&mut text).map_err(|error| Failure::usage(format!("no request: {error}")))?;
    thread::spawn(end_with_the_input);
    let request = serde_json::from_str(&text).map_err(|error| Failure::usage(format!("no request: {error}")))?;
    let unknown = |name: &str| Failure::usage(format!("there is no backend `{name}`"));
    match request {
        Request::Discover(name) => {
            let entry = Entry::named(&name).ok_or_else(|| unknown(&name))?;
            answer(&Answer::Found(catalog::here(entry)))
        }
        Request::Identify { backend, device, operations, seed, nan } => {
            let entry = Entry::named(&backend).ok_or_else(|| unknown(&backend))?;
            match entry.open(&device) {
                Ok(device) => identifying::identify_each(device, &operations, (seed, nan), &mut answer),
                Err(error) => answer(&Answer::Refused(error.to_string())),
            }
        }
        Request::Verify { backend, device, operations, model, count, seed, nan } => {
            let entry = Entry::named(&backend).ok_or_else(|| unknown(&backend))?;
            match (entry.open(&device), mxprobe_sim::load(&model)) {
                (Ok(device), Ok(model)) => {
                    let comparison = Comparison { count, seed, nan };
                    verify::verify_each(device, &operations, &model, comparison, &mut answer)
                }
                (Err(error), _) | (_, Err(error)) => answer(&Answer::Refused(error.to_string())),
            }
        }
        Request::Bench { backend, device, operations, settings, budget_ns, known } => {
            let entry = Entry::named(&backend).ok_or_else(|| unknown(&backend))?;
            match entry.open(&device) {
                Ok(device) => bench::bench_each(device, &operations, &settings, budget_ns, &known, &mut answer),
                Err(error) => answer(&Answer::Refused(error.to_string())),
            }
        }
        Request::Probe { backend, device, operations, wanted, expect } => {
            let entry = Entry::named(&backend).ok_or_else(|| unknown(&backend))?;
            match entry.open(&device) {
                Ok(device) => probe_each(device, &operations, &wanted, expect.as_deref(), answer),
                Err(error) => answer(&Answer::Refused(error.to_string())),
            }
        }
    }?;
    Ok(0)
}

/// Waits until standard input closes, which it does when whoever asked is gone, and ends this process.
fn end_with_the_input() {
    let mut rest = [0; 64];
    let mut stdin = io::stdin().lock();
    loop {
        match stdin.read(&mut rest) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(1..) => {}
            Ok(0) | Err(_) => break,
        }
    }
    // The way out leads through what a driver does at its end, and that may hang as well.
    thread::spawn(|| {
        thread::sleep(Duration::from_secs(1));
        std::process::abort();
    });
    std::process::exit(INTERRUPTED.into());
}

/// Probes operations in their order until the device is lost or nobody listens.
pub(crate) fn probe_each(
    device: Box<dyn Device>,
    operations: &[OperationId],
    wanted: &[String],
    expect: Option<&str>,
    mut answer: impl FnMut(&Answer) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let is_wanted = |name: &str| select::is_wanted(wanted, name);
    let is_wanted: Option<&dyn Fn(&str) -> bool> = if wanted.is_empty() { None } else { Some(&is_wanted) };
    let expected = match expect.map(mxprobe_sim::load).transpose() {
        Ok(model) => model,
        Err(error) => return answer(&Answer::Refused(error.to_string())),
    };
    let device = Watched::new(device);
    for id in operations {
        let report = match (scalars::named(&device, id), device.operations().get(id)) {
            (Some(scalar), _) => scalars::probe(&device, scalar, is_wanted),
            (None, Some(operation)) => {
                let mut report = probes::probe(&device, operation, is_wanted);
                if let (Some(model), Some(name)) = (&expected, expect) {
                    report.findings.push(identify::as_expected(&device, operation, model, name));
                }
                report
            }
            (None, None) => {
                let selector = &device.info().selector;
                return answer(&Answer::Refused(format!("{selector} has no operation {id} any more")));
            }
        };
        let report = Box::new(report);
        let device_lost = device.is_lost();
        answer(&Answer::Probed { report, device_lost })?;
        if device_lost {
            break;
        }
    }
    Ok(())
}

fn answer(answer: &Answer) -> Result<(), Failure> {
    // What a driver wrote before may not have ended its line.
    let mut line = vec![b'\n'];
    serde_json::to_writer(&mut line, answer).expect("an answer is JSON");
    line.push(b'\n');
    let mut stdout = io::stdout().lock();
    stdout.write_all(&line).and_then(|()| stdout.flush()).map_err(|error| Failure::output(&error))
}

/// A device that remembers that it was lost.
pub(crate) struct Watched {
    inner: Box<dyn Device>,
    lost: AtomicBool,
}

impl Watched {
    /// A device of which nothing was lost yet.
    pub(crate) fn new(inner: Box<dyn Device>) -> Self {
        Self { inner, lost: AtomicBool::new(false) }
    }

    /// Whether it was lost.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    fn watch<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        if result.as_ref().is_err_and(Error::is_device_lost) {
            self.lost.store(true, Ordering::Relaxed);
        }
        result
    }
}

impl Device for Watched {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }

    fn operations(&self) -> &OperationSet {
        self.inner.operations()
    }

    fn refusals(&self) -> &[Refusal] {
        self.inner.refusals()
    }

    fn execute(&self, operation: &Operation, batch: &TileBatch) -> Result<Elements, Error> {
        self.watch(self.inner.execute(operation, batch))
    }

    fn scalars(&self) -> &[Scalar] {
        self.inner.scalars()
    }

    fn compute(&self, scalar: &Scalar, function: ScalarFunction, operands: &Elements) -> Result<Elements, Error> {
        self.watch(self.inner.compute(scalar, function, operands))
    }

    fn multiply(&self, operation: &Operation, product: &Product<'_>) -> Result<Option<Elements>, Error> {
        self.watch(self.inner.multiply(operation, product))
    }

    fn kernel_ns(&self) -> Option<u64> {
        self.inner.kernel_ns()
    }

    fn library(&self) -> Result<Box<dyn Library>, Error> {
        self.watch(self.inner.library())
    }

    fn timing(&self) -> Option<&dyn Timing> {
        self.inner.timing().map(|_| self as &dyn Timing)
    }

    fn issued(&self, operation: &Operation) -> Result<Option<Issued>, Error> {
        self.watch(self.inner.issued(operation))
    }

    fn kernel_hash(&self, operation: &Operation) -> Option<String> {
        self.inner.kernel_hash(operation)
    }
}

impl Timing for Watched {
    fn yardsticks(&self) -> &[Operation] {
        self.inner.timing().map_or(&[], Timing::yardsticks)
    }

    fn time(&self, operation: &Operation, load: &Load<'_>) -> Result<Timed, Error> {
        let timing = self.inner.timing().ok_or_else(|| Error::unsupported("the device has no clock"))?;
        self.watch(timing.time(operation, load))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watched_device_has_every_ability_of_the_device_it_watches() {
        let watched = Watched::new(mxprobe_conformance::able());
        assert_eq!(mxprobe_conformance::dropped(&watched), <[&str; 0]>::default());
    }
}
