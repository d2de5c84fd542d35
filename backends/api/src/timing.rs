//! Timing, an optional ability: measuring how long an operation takes when its operands stay in registers.

use serde::{Deserialize, Serialize};

use crate::{Device, Elements, Error, Library, Operation, OperationId, TileBatch, operation_of};

/// The clock that measured a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// Timestamps that the device itself wrote before and after the work.
    Device,
    /// The host's clock, from the start of the work until its end was observed.
    Host,
}

/// How much of a device is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Span {
    /// One of its units: a core, a multiprocessor, a workgroup.
    One,
    /// All of them simultaneously.
    All,
}

/// Work to be timed: chains of multiply-adds, the d of one being the c of the next.
#[derive(Clone, Copy, Debug)]
pub struct Load<'a> {
    /// The operands. A chain multiplies the same tiles of A and B repeatedly, starting from one tile of C.
    pub operands: &'a TileBatch,
    /// Multiply-adds in a row in each chain.
    pub steps: u64,
    /// How much of the device to use.
    pub span: Span,
}

/// A measured time and the results computed meanwhile.
#[derive(Clone, Debug, PartialEq)]
pub struct Timed {
    /// The time that the chains took, in nanoseconds.
    pub elapsed_ns: f64,
    /// The clock that measured it.
    pub clock: Clock,
    /// The number of units in use, if they can be counted.
    pub units: Option<u32>,
    /// The name of a unit: `core`, `multiprocessor`.
    pub unit: String,
    /// The clock frequency of a unit during the work, if it can be measured.
    pub frequency_hz: Option<f64>,
    /// The tiles of A, B and C that each chain uses: chain `i` uses entry `i` modulo the length, which is at most the
    /// number of chains.
    pub pattern: Vec<[usize; 3]>,
    /// The last D of every chain, `m·n` elements each, row-major: a whole number of chains.
    pub d: Elements,
}

impl Timed {
    /// The number of chains.
    #[must_use]
    pub fn chains(&self, id: &OperationId) -> usize {
        let (m, n, _) = id.shape.sizes();
        self.d.len() / (m * n)
    }
}

/// A device that can be timed, and its yardsticks; [`Device::timing`] returns it.
pub trait Timing: Send + Sync {
    /// Ordinary arithmetic of the same device, timed for comparison with its matrix units, as operations of shape
    /// 1×1×1: `fma.m1n1k1.f32.f32.f32.f32` is d = a·b + c, rounded to nearest, either once or after both the product
    /// and the sum.
    fn yardsticks(&self) -> &[Operation];

    /// Runs the chains with their operands in registers (or in the memory next to the unit, if the instruction reads
    /// them from there) and measures how long they take.
    ///
    /// Call [`time`] instead, which validates. An implementation may rely on `operation` being one of the device's or
    /// one of its yardsticks, and on the load fitting it. It runs as many chains as the device needs to be busy.
    ///
    /// # Errors
    /// [`Error::is_unsupported`] if this operation cannot be timed, with the reason; otherwise what the device reports.
    fn time(&self, operation: &Operation, load: &Load<'_>) -> Result<Timed, Error>;

    /// A library that multiplies f32 matrices on this device, searched for on each call: another yardstick.
    ///
    /// # Errors
    /// If there is none; the text says what was searched for.
    fn library(&self) -> Result<Box<dyn Library>, Error> {
        Err(Error::unsupported("no library is known that multiplies on this device"))
    }
}

/// Times an operation: validates, runs, and checks the shape of the result. The only way to time one.
///
/// Comparing the results of the chains with [`execute`](crate::execute) is up to the caller.
///
/// # Errors
/// [`Error::is_unsupported`] if the device or the operation cannot be timed; [`Error::is_invalid`] if the device has no
/// such operation or the load does not fit; otherwise what the device reports.
pub fn time(device: &dyn Device, operation: &Operation, load: &Load<'_>) -> Result<Timed, Error> {
    let selector = &device.info().selector;
    let Some(timing) = device.timing() else {
        return Err(Error::unsupported(format!("{selector} has no clock")));
    };
    let is_yardstick = timing.yardsticks().iter().any(|known| known.id == operation.id);
    if !is_yardstick {
        operation_of(device, &operation.id)?;
    }
    load.operands.validate(operation)?;
    if load.operands.tiles == 0 || load.steps == 0 {
        return Err(Error::invalid(format!("{} tiles and {} steps leave no work", load.operands.tiles, load.steps)));
    }
    if operation.id.c != operation.id.d {
        return Err(Error::unsupported(format!(
            "its d, {}, cannot be the next one's c, {}: it cannot be chained",
            operation.id.d, operation.id.c
        )));
    }
    let timed = timing.time(operation, load)?;
    let (m, n, _) = operation.id.shape.sizes();
    let wrong = |what: String| Error::driver(format!("{selector} timed {} and {what}", operation.id));
    if timed.d.format() != operation.id.d || timed.d.is_empty() || !timed.d.len().is_multiple_of(m * n) {
        return Err(wrong(format!("returned {} elements of {}", timed.d.len(), timed.d.format())));
    }
    if timed.pattern.len() > timed.chains(&operation.id) {
        return Err(wrong(format!("has {} chains of {} kinds", timed.chains(&operation.id), timed.pattern.len())));
    }
    if timed.pattern.is_empty() || timed.pattern.iter().flatten().any(|tile| *tile >= load.operands.tiles) {
        return Err(wrong(format!("named a tile outside 0..{}", load.operands.tiles)));
    }
    if !timed.elapsed_ns.is_finite() || timed.elapsed_ns < 0.0 {
        return Err(wrong(format!("says that it took {} ns", timed.elapsed_ns)));
    }
    Ok(timed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DeviceInfo, DeviceKind, Format, OperationSet};

    /// A device that returns a prepared answer.
    struct Told {
        info: DeviceInfo,
        operations: OperationSet,
        answer: Timed,
    }

    impl Device for Told {
        fn info(&self) -> &DeviceInfo {
            &self.info
        }

        fn operations(&self) -> &OperationSet {
            &self.operations
        }

        fn execute(&self, _: &Operation, _: &TileBatch) -> Result<Elements, Error> {
            Err(Error::unsupported("it computes nothing"))
        }

        fn timing(&self) -> Option<&dyn Timing> {
            Some(self)
        }
    }

    impl Timing for Told {
        fn yardsticks(&self) -> &[Operation] {
            &[]
        }

        fn time(&self, _: &Operation, _: &Load<'_>) -> Result<Timed, Error> {
            Ok(self.answer.clone())
        }
    }

    fn told(answer: Timed, id: &str) -> (Told, Operation) {
        let operation = Operation::new(id.parse().expect("an id"), "thread");
        let info = DeviceInfo {
            backend: "told".into(),
            selector: "told:0".into(),
            name: "told".into(),
            fingerprint: "told".into(),
            kind: DeviceKind::Model,
            emulated: true,
            aliases: Vec::new(),
            driver: None,
            properties: Default::default(),
        };
        (Told { info, operations: [(operation.id.clone(), operation.clone())].into(), answer }, operation)
    }

    fn answer() -> Timed {
        Timed {
            elapsed_ns: 1.0,
            clock: Clock::Host,
            units: Some(1),
            unit: "core".into(),
            frequency_hz: None,
            pattern: vec![[0, 0, 0]],
            d: Elements::zeros(Format::F32, 8),
        }
    }

    #[test]
    fn answers_that_cannot_be_are_refused() {
        let id = "dot.m2n2k2.f32.bf16.bf16.f32";
        let ask = |answer: Timed, tiles: usize, steps: u64| {
            let (device, operation) = told(answer, id);
            let operands = TileBatch::zeros(&operation, tiles);
            time(&device, &operation, &Load { operands: &operands, steps, span: Span::One })
        };
        assert_eq!(ask(answer(), 1, 1).expect("it fits").chains(&id.parse().expect("an id")), 2);
        assert!(ask(answer(), 1, 0).is_err_and(|error| error.is_invalid()));
        assert!(ask(answer(), 0, 1).is_err_and(|error| error.is_invalid()));
        for wrong in [
            Timed { pattern: vec![[0, 1, 0]], ..answer() },
            Timed { pattern: Vec::new(), ..answer() },
            Timed { pattern: vec![[0, 0, 0]; 3], ..answer() },
            Timed { elapsed_ns: f64::NAN, ..answer() },
            Timed { d: Elements::zeros(Format::F32, 7), ..answer() },
            Timed { d: Elements::zeros(Format::F16, 8), ..answer() },
        ] {
            assert!(ask(wrong.clone(), 1, 1).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn what_cannot_be_chained_is_not_timed() {
        let (device, operation) = told(answer(), "dot.m2n2k2.f32.bf16.bf16.f16");
        let operands = TileBatch::zeros(&operation, 1);
        let load = Load { operands: &operands, steps: 1, span: Span::One };
        assert!(time(&device, &operation, &load).is_err_and(|error| error.is_unsupported()));
    }
}
