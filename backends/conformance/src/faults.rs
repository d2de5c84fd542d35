//! Wrong devices, each with a single fault.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use mxprobe_api::{
    Backend, Code, Decoded, Device, DeviceInfo, Discovery, Elements, Error, Format, FreeOperation, Matrices, Operation,
    OperationSet, Refusal, Scalars, Screening, TileBatch, Timing,
};
use mxprobe_models::Model;
use mxprobe_sim::ModelDevice;

use super::arithmetic;

/// A way in which a device can be wrong.
pub struct Fault {
    /// The name that opens a device with it.
    pub name: &'static str,
    /// A description, in one sentence.
    pub about: &'static str,
    kind: Kind,
}

enum Kind {
    /// Wraps a device of any kind.
    Behaviour(Behaviour),
    /// Changes a model; `false` if there is nothing in it to change.
    Arithmetic(fn(&mut Model) -> bool),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Behaviour {
    AllZeros,
    SubnormalsFlushed,
    ATransposed,
    BTransposed,
    OneLaneWrong,
    OffByOneTile,
    LastTileMissing,
    NothingWritten,
    ShortOutput,
    StaleOutput,
    Nondeterministic,
    Panic,
    Lost,
    Hang,
    Crash,
    CrashOnce,
}

/// A correct device, into which a fault is put.
pub enum Right {
    /// Any device; arithmetic faults cannot be put into it.
    Device(Box<dyn Device>),
    /// A model; every fault can be put into it.
    Model(Box<Model>),
}

const fn behaviour(name: &'static str, about: &'static str, behaviour: Behaviour) -> Fault {
    Fault { name, about, kind: Kind::Behaviour(behaviour) }
}

const fn arithmetic(name: &'static str, about: &'static str, change: fn(&mut Model) -> bool) -> Fault {
    Fault { name, about, kind: Kind::Arithmetic(change) }
}

/// Every fault: the wrong devices that the suite and the probes must detect.
pub const FAULTS: &[Fault] = &[
    behaviour("all-zeros", "every result is +0", Behaviour::AllZeros),
    arithmetic(
        "one-fraction-bit-fewer",
        "one bit less survives alignment, or rounding where nothing is lost before",
        arithmetic::fewer,
    ),
    arithmetic("one-fraction-bit-more", "one bit more survives alignment", arithmetic::more),
    arithmetic(
        "floor-for-truncation",
        "bits below the grid are rounded down, not dropped from the magnitude",
        arithmetic::floor,
    ),
    arithmetic("rne-for-rz", "results are rounded to nearest even, not toward zero", arithmetic::nearest),
    arithmetic("c-outside-the-sum", "c is added to the rounded sum of the products", arithmetic::c_outside),
    arithmetic("half-the-block", "half as many products are added at once", arithmetic::half_block),
    arithmetic(
        "product-rounded",
        "each product is rounded to the fraction bits of A before it is added",
        arithmetic::product_rounded,
    ),
    arithmetic(
        "carry-short",
        "the sum has one bit fewer above the largest exponent than it can need, and wraps",
        arithmetic::carry_short,
    ),
    arithmetic("nan-payload-kept", "a NaN result has the payload of the NaN that made it", arithmetic::payload_kept),
    behaviour("subnormals-flushed", "subnormals of A, B, C and D are zero of their sign", Behaviour::SubnormalsFlushed),
    behaviour("a-transposed", "A is read column by column", Behaviour::ATransposed),
    behaviour("b-transposed", "B is read column by column", Behaviour::BTransposed),
    behaviour(
        "one-lane-wrong",
        "the lowest bit of one element, the last of a tile or of 16, is inverted",
        Behaviour::OneLaneWrong,
    ),
    behaviour("off-by-one-tile", "each tile's result is that of the tile after it", Behaviour::OffByOneTile),
    behaviour("last-tile-missing", "the last tile of several is left at +0", Behaviour::LastTileMissing),
    behaviour("nothing-written", "the output is what memory held when it was allocated", Behaviour::NothingWritten),
    behaviour("short-output", "the last element of each result is not there", Behaviour::ShortOutput),
    behaviour("stale-output", "each call returns what the call before it computed", Behaviour::StaleOutput),
    behaviour(
        "nondeterministic",
        "the lowest bit of one element is inverted in every second call",
        Behaviour::Nondeterministic,
    ),
    behaviour("panic", "a call panics", Behaviour::Panic),
    behaviour("lost", "every call reports that the device is lost", Behaviour::Lost),
    behaviour("hang", "a call never returns", Behaviour::Hang),
    behaviour("crash", "a call aborts the process", Behaviour::Crash),
    behaviour("once", "a call of the first operation aborts the process; the others compute", Behaviour::CrashOnce),
];

impl Fault {
    /// Finds a fault by name.
    ///
    /// # Errors
    /// If there is none with that name; the text lists all faults.
    pub fn named(name: &str) -> Result<&'static Self, Error> {
        FAULTS.iter().find(|fault| fault.name == name).ok_or_else(|| {
            let names: Vec<&str> = FAULTS.iter().map(|fault| fault.name).collect();
            Error::invalid(format!("`{name}` is not a fault; the faults are {}", names.join(" ")))
        })
    }

    /// Whether calls may not return, so that the device needs a process of its own.
    #[must_use]
    pub fn never_returns(&self) -> bool {
        matches!(self.kind, Kind::Behaviour(Behaviour::Hang | Behaviour::Crash | Behaviour::CrashOnce))
    }
}

/// Creates a device that is right except for the named fault.
///
/// # Errors
/// If the fault does not exist, or if it cannot be put into the right device: an arithmetic fault into a device that is
/// not a model, or into a model that lacks the step in question.
pub fn wrong(name: &str, right: Right) -> Result<Box<dyn Device>, Error> {
    let fault = Fault::named(name)?;
    let (right, behaviour): (Box<dyn Device>, _) = match (&fault.kind, right) {
        (Kind::Behaviour(behaviour), Right::Device(device)) => (device, Some(*behaviour)),
        (Kind::Behaviour(behaviour), Right::Model(model)) => (Box::new(ModelDevice::new(*model)), Some(*behaviour)),
        (Kind::Arithmetic(change), Right::Model(mut model)) => {
            if !change(&mut model) {
                return Err(Error::unsupported(format!("{} has nothing to change for {name}", model.name)));
            }
            (Box::new(ModelDevice::new(*model)), None)
        }
        (Kind::Arithmetic(_), Right::Device(device)) => {
            let selector = &device.info().selector;
            return Err(Error::unsupported(format!("{name} changes a model, and {selector} is a device")));
        }
    };
    let of = right.info();
    let info = DeviceInfo {
        backend: "fault".into(),
        selector: if of.selector == format!("sim:{MODEL}") {
            format!("fault:{name}")
        } else {
            format!("fault:{name}:{}", of.selector.split_once(':').map_or(&*of.selector, |(_, of)| of))
        },
        name: format!("{}, but {}", of.name, fault.about),
        fingerprint: format!("{name}+{}", of.fingerprint),
        ..of.clone()
    };
    Ok(Box::new(WrongDevice { right, info, behaviour, calls: AtomicU64::new(0), memory: Mutex::default() }))
}

/// The model that faults are put into by default.
const MODEL: &str = "h100";

/// The backend of wrong devices: `NAME:MODEL` opens one, `NAME` alone that of the model h100.
///
/// Discovery lists every fault of that model. Devices that hang or crash do so only when they compute.
#[derive(Clone, Copy, Debug, Default)]
pub struct FaultBackend;

impl Backend for FaultBackend {
    fn name(&self) -> &'static str {
        "fault"
    }

    fn discover(&self) -> Discovery {
        let mut found = Discovery::default();
        for fault in FAULTS {
            match self.open(fault.name) {
                Ok(device) => found.devices.push(device),
                Err(reason) => {
                    found.refusals.push(mxprobe_api::Refusal { what: fault.name.into(), reason, help: None });
                }
            }
        }
        found
    }

    fn open(&self, name: &str) -> Result<Box<dyn Device>, Error> {
        let (name, model) = name.split_once(':').unwrap_or((name, MODEL));
        Fault::named(name)?;
        wrong(name, Right::Model(Box::new(mxprobe_models::load(model)?)))
    }
}

struct WrongDevice {
    right: Box<dyn Device>,
    info: DeviceInfo,
    behaviour: Option<Behaviour>,
    calls: AtomicU64,
    /// The results of the previous call.
    memory: Mutex<Vec<u64>>,
}

impl Device for WrongDevice {
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
        let Some(behaviour) = self.behaviour else { return self.right.execute(operation, batch) };
        let id = &operation.id;
        let (m, n, k) = id.shape.sizes();
        let length = batch.tiles * m * n;
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        let right = |batch: &TileBatch| self.right.execute(operation, batch);
        match behaviour {
            Behaviour::AllZeros => Ok(Elements::zeros(id.d, length)),
            // A pattern that is a number in every format.
            Behaviour::NothingWritten => Ok(Elements::from_bits(id.d, (0..length).map(|_| 0xcdcd_cdcd_cdcd_cdcd))),
            Behaviour::ATransposed => right(&TileBatch { a: transposed(&batch.a, batch.tiles, m, k), ..batch.clone() }),
            Behaviour::BTransposed => right(&TileBatch { b: transposed(&batch.b, batch.tiles, k, n), ..batch.clone() }),
            Behaviour::SubnormalsFlushed => {
                let of = |elements: &Elements| flushed(elements);
                let d = right(&TileBatch { a: of(&batch.a), b: of(&batch.b), c: of(&batch.c), ..batch.clone() })?;
                Ok(flushed(&d))
            }
            Behaviour::OneLaneWrong => {
                let mut d = right(batch)?;
                let lanes = (m * n).max(16);
                (lanes - 1..length).step_by(lanes).for_each(|at| d.set(at, d.get(at) ^ 1));
                Ok(d)
            }
            Behaviour::OffByOneTile => {
                let d = right(batch)?;
                let moved = (0..length).map(|at| d.get((at + m * n) % length));
                Ok(Elements::from_bits(id.d, moved))
            }
            Behaviour::LastTileMissing => {
                let mut d = right(batch)?;
                if batch.tiles > 1 {
                    (length - m * n..length).for_each(|at| d.set(at, 0));
                }
                Ok(d)
            }
            Behaviour::ShortOutput => {
                let d = right(batch)?;
                Ok(Elements::from_bits(id.d, d.iter().take(length.saturating_sub(1))))
            }
            Behaviour::StaleOutput => {
                let d = right(batch)?;
                let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
                let before = std::mem::replace(&mut *memory, d.iter().collect());
                Ok(Elements::from_bits(id.d, before.into_iter().chain(std::iter::repeat(0)).take(length)))
            }
            Behaviour::Nondeterministic => {
                let mut d = right(batch)?;
                if call % 2 == 1 && length > 0 {
                    d.set(length / 2, d.get(length / 2) ^ 1);
                }
                Ok(d)
            }
            Behaviour::Panic => panic!("the wrong device `panic` was asked to compute"),
            Behaviour::Hang => loop {
                std::thread::sleep(std::time::Duration::from_secs(3600));
            },
            Behaviour::CrashOnce if self.operations().keys().next() != Some(id) => right(batch),
            Behaviour::Crash | Behaviour::CrashOnce => std::process::abort(),
            Behaviour::Lost => Err(Error::device_lost("the device was lost")),
        }
    }

    fn refusals(&self) -> &[Refusal] {
        self.right.refusals()
    }

    /// None for behavioural faults: the right device's own implementation would give right results.
    fn matrices(&self) -> Option<&dyn Matrices> {
        if self.behaviour.is_some() { None } else { self.right.matrices() }
    }

    fn scalars(&self) -> Option<&dyn Scalars> {
        self.right.scalars()
    }

    fn timing(&self) -> Option<&dyn Timing> {
        self.right.timing()
    }

    /// As for matrices.
    fn screening(&self) -> Option<&dyn Screening> {
        if self.behaviour.is_some() { None } else { self.right.screening() }
    }

    fn code(&self) -> Option<&dyn Code> {
        self.right.code()
    }
}

/// Returns each `rows × columns` tile as a reader in column-major order would see it.
fn transposed(elements: &Elements, tiles: usize, rows: usize, columns: usize) -> Elements {
    let of_tile = |tile: usize| {
        let first = tile * rows * columns;
        (0..rows * columns).map(move |at| first + at % columns * rows + at / columns)
    };
    Elements::from_bits(elements.format(), (0..tiles).flat_map(of_tile).map(|at| elements.get(at)))
}

fn flushed(elements: &Elements) -> Elements {
    let format = elements.format();
    Elements::from_bits(
        format,
        elements.iter().map(|bits| if is_subnormal(format, bits) { zero_of(format, bits) } else { bits }),
    )
}

fn is_subnormal(format: Format, bits: u64) -> bool {
    let Some(float) = format.as_float() else { return false };
    matches!(format.decode(bits), Decoded::Finite { significand, .. } if significand >> float.fraction_bits == 0)
}

fn zero_of(format: Format, bits: u64) -> u64 {
    // A format without −0 may use its code for NaN.
    let is_nan = matches!(format.decode(1 << (format.bits() - 1)), Decoded::Nan { .. });
    if is_nan { 0 } else { bits & 1 << (format.bits() - 1) }
}
