//! Devices that fail, to test how failures are handled: `fault:NAME:MODEL`.
//!
//! The names are those of the conformance suite's wrong devices, and of faults that need a process of their own:
//! `exit-0`, `exit-1`, `rubbish`, `babble`. `fault:able` has every ability and does not fail. With
//! `MXPROBE_FAULT_ONLY=GLOB` only matching operations are wrong.

use std::{
    io::{self, Write},
    thread,
    time::Duration,
};

use mxprobe_api::{
    Backend, Code, Device, DeviceInfo, Discovery, DotOperands, Elements, Error, FreeOperation, GemmOperands, Matrices,
    Operation, OperationSet, Refusal, Scalars, Screening, TileBatch, Timing,
};
use mxprobe_conformance::FaultBackend as Wrong;

use crate::session;

/// The backend of failing devices.
pub(crate) struct FaultBackend;

/// A fault that affects the process into which a driver is loaded.
#[derive(Clone, Copy)]
enum Process {
    /// Ends the process, with an exit code.
    Exit(i32),
    /// Writes rubbish on standard output before each result.
    Rubbish,
    /// Writes rubbish on standard output and never returns.
    Babble,
}

const PROCESS: [(&str, Process); 4] = [
    ("exit-0", Process::Exit(0)),
    ("exit-1", Process::Exit(1)),
    ("rubbish", Process::Rubbish),
    ("babble", Process::Babble),
];

/// Bytes that are neither an answer nor text; they include the beginning of an answer, and the last line is not
/// terminated.
const RUBBISH: &[u8] =
    b"\n{\"probed\":{\"report\":\n\xff\xfe\0\x1b[2J[[[[[[[[{{{{\n{}\nnull\n{\"refused\":7}\n{\"probed\"";

impl Backend for FaultBackend {
    fn name(&self) -> &'static str {
        "fault"
    }

    fn discover(&self) -> Discovery {
        let mut found = Wrong.discover();
        found.devices.extend(PROCESS.iter().filter_map(|(name, _)| self.open(name).ok()));
        found
    }

    fn open(&self, name: &str) -> Result<Box<dyn Device>, Error> {
        if name == "able" {
            return Ok(mxprobe_conformance::able());
        }
        let (fault, model) = name.split_once(':').unwrap_or((name, "h100"));
        let right = mxprobe_sim::SimBackend.open(model)?;
        let of = right.info();
        let (info, fault) = match PROCESS.iter().find(|(name, _)| *name == fault) {
            Some((_, process)) => {
                let info = DeviceInfo {
                    backend: "fault".into(),
                    selector: format!("fault:{name}"),
                    name: format!("{}, but {fault}", of.name),
                    fingerprint: format!("{fault}+{}", of.fingerprint),
                    ..of.clone()
                };
                (info, Fault::OfProcess(*process))
            }
            None => {
                let wrong = Wrong.open(name)?;
                (wrong.info().clone(), Fault::OfDevice(wrong))
            }
        };
        let only = std::env::var("MXPROBE_FAULT_ONLY").ok();
        Ok(Box::new(FaultDevice { info, right, fault, only }))
    }
}

enum Fault {
    OfDevice(Box<dyn Device>),
    OfProcess(Process),
}

/// A device with some wrong operations.
struct FaultDevice {
    info: DeviceInfo,
    right: Box<dyn Device>,
    fault: Fault,
    /// A pattern for the operations that are wrong; all if absent.
    only: Option<String>,
}

impl FaultDevice {
    /// Whether this operation is one of the wrong ones.
    fn is_wrong(&self, operation: &Operation) -> bool {
        self.only.as_ref().is_none_or(|only| session::matches(only, &operation.id.to_string()))
    }

    /// Returns the device that answers everything unaffected by the fault.
    fn behind(&self) -> &dyn Device {
        match &self.fault {
            Fault::OfDevice(wrong) => wrong.as_ref(),
            Fault::OfProcess(_) => self.right.as_ref(),
        }
    }
}

impl Device for FaultDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn operations(&self) -> &OperationSet {
        self.right.operations()
    }

    fn free_operations(&self) -> &[FreeOperation] {
        self.right.free_operations()
    }

    fn execute(&self, operation: &Operation, batch: &TileBatch) -> Result<Elements, Error> {
        if !self.is_wrong(operation) {
            return self.right.execute(operation, batch);
        }
        let write = || {
            let mut stdout = io::stdout().lock();
            stdout.write_all(RUBBISH).and_then(|()| stdout.flush())
        };
        match &self.fault {
            Fault::OfDevice(wrong) => wrong.execute(operation, batch),
            Fault::OfProcess(Process::Exit(code)) => std::process::exit(*code),
            Fault::OfProcess(Process::Rubbish) => {
                write().map_err(|error| Error::driver(error.to_string()))?;
                self.right.execute(operation, batch)
            }
            // Each time more than a pipe holds; the pauses leave the processor to others.
            Fault::OfProcess(Process::Babble) => loop {
                (0..1_000).try_for_each(|_| write()).map_err(|error| Error::driver(error.to_string()))?;
                thread::sleep(Duration::from_millis(50));
            },
        }
    }

    fn refusals(&self) -> &[Refusal] {
        self.behind().refusals()
    }

    fn matrices(&self) -> Option<&dyn Matrices> {
        self.behind().matrices().map(|_| self as &dyn Matrices)
    }

    fn scalars(&self) -> Option<&dyn Scalars> {
        self.behind().scalars()
    }

    fn timing(&self) -> Option<&dyn Timing> {
        self.behind().timing()
    }

    /// `None` if executing a tile affects the process.
    fn screening(&self) -> Option<&dyn Screening> {
        match &self.fault {
            Fault::OfProcess(_) if self.only.is_none() => None,
            _ => self.behind().screening(),
        }
    }

    fn code(&self) -> Option<&dyn Code> {
        self.behind().code()
    }
}

impl Matrices for FaultDevice {
    /// Returns `None` if the fault is that executing a tile affects the process.
    fn multiply(&self, operation: &Operation, operands: &GemmOperands<'_>) -> Result<Option<Elements>, Error> {
        let of = |device: &dyn Device| device.matrices().map_or(Ok(None), |of| of.multiply(operation, operands));
        match &self.fault {
            _ if !self.is_wrong(operation) => of(self.right.as_ref()),
            Fault::OfDevice(wrong) => of(wrong.as_ref()),
            Fault::OfProcess(_) => Ok(None),
        }
    }

    /// Returns `None` if the fault is that executing a tile affects the process.
    fn dots(&self, operation: &Operation, operands: &DotOperands<'_>) -> Result<Option<Elements>, Error> {
        let of = |device: &dyn Device| device.matrices().map_or(Ok(None), |of| of.dots(operation, operands));
        match &self.fault {
            _ if !self.is_wrong(operation) => of(self.right.as_ref()),
            Fault::OfDevice(wrong) => of(wrong.as_ref()),
            Fault::OfProcess(_) => Ok(None),
        }
    }

    fn has_tiles(&self) -> bool {
        self.behind().matrices().is_none_or(|matrices| matrices.has_tiles())
    }

    fn kernel_ns(&self) -> Option<u64> {
        self.behind().matrices()?.kernel_ns()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mxprobe_conformance::{able, dropped};

    fn failing(fault: Fault, only: Option<&str>) -> FaultDevice {
        let right = able();
        FaultDevice { info: right.info().clone(), right, fault, only: only.map(str::to_owned) }
    }

    #[test]
    fn a_device_that_fails_has_every_ability_of_the_device_behind_it() {
        assert_eq!(dropped(&failing(Fault::OfDevice(able()), None)), <[&str; 0]>::default());
        assert_eq!(dropped(&failing(Fault::OfDevice(able()), Some("none"))), <[&str; 0]>::default());
        assert_eq!(dropped(&failing(Fault::OfProcess(Process::Exit(1)), Some("none"))), <[&str; 0]>::default());
    }
}
