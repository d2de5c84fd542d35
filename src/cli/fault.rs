//! Devices that fail, so that what becomes of it can be tested: `fault:NAME:MODEL`.
//!
//! The names are those of the conformance suite's wrong devices, and what only a process of its own can be asked to do:
//! `exit-0`, `exit-1`, `rubbish`, `babble`. With `MXPROBE_FAULT_ONLY=GLOB` only operations that match are wrong.

use std::io::{self, Write};

use mxprobe_api::{Backend, Device, DeviceInfo, Discovery, Elements, Error, Operation, OperationSet, TileBatch};
use mxprobe_conformance::FaultBackend as Wrong;

use super::glob;

/// The backend of the devices that fail.
pub(crate) struct FaultBackend;

/// What a driver does to the process that it is loaded into.
#[derive(Clone, Copy)]
enum Process {
    /// Ends it, with an exit code.
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

/// Bytes that are no answer and no text, the beginning of an answer among them, and no end of the last line.
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

/// A device of which some operations are wrong.
struct FaultDevice {
    info: DeviceInfo,
    right: Box<dyn Device>,
    fault: Fault,
    /// Which operations are wrong; all, if it does not say.
    only: Option<String>,
}

impl Device for FaultDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn operations(&self) -> &OperationSet {
        self.right.operations()
    }

    fn execute(&self, operation: &Operation, batch: &TileBatch) -> Result<Elements, Error> {
        let id = operation.id.to_string();
        if self.only.as_ref().is_some_and(|only| !glob::matches(only, &id)) {
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
            Fault::OfProcess(Process::Babble) => loop {
                write().map_err(|error| Error::driver(error.to_string()))?;
            },
        }
    }
}
