//! Every ability of a device, and which of them a device that wraps another hands on.

use std::collections::BTreeMap;

use mxprobe_api::{
    Clock, Device, DeviceInfo, DeviceKind, Elements, Error, Format, Issued, Library, Load, Operation, OperationId,
    OperationSet, Product, Refusal, Scalar, ScalarFunction, ScalarId, Span, TileBatch, Timed, Timing,
};

/// One method of [`Device`], or of [`Timing`] behind it.
pub struct Ability {
    /// The method's name; `Timing::NAME` of that trait.
    pub name: &'static str,
    answers: fn(&dyn Device) -> bool,
}

/// What the device of every ability gives where it returns elements.
const ANSWER: u64 = 0x40e0_0000;

fn operation() -> Operation {
    Operation::new(OperationId::new("dot", (1, 1, 1), Format::F32, Format::F32, Format::F32, Format::F32), "thread")
}

fn scalar() -> Scalar {
    Scalar { id: ScalarId::new(Format::F32), functions: BTreeMap::from([(ScalarFunction::SquareRoot, None)]) }
}

fn is_answer(elements: &Elements) -> bool {
    elements.len() == 1 && elements.get(0) == ANSWER
}

/// The abilities, in the order of the traits.
pub const ABILITIES: &[Ability] = &[
    Ability { name: "info", answers: |device| device.info().properties.contains_key("able") },
    Ability { name: "operations", answers: |device| device.operations().contains_key(&operation().id) },
    Ability { name: "refusals", answers: |device| device.refusals().len() == 1 },
    Ability {
        name: "execute",
        answers: |device| {
            let batch = TileBatch::zeros(&operation(), 1);
            device.execute(&operation(), &batch).is_ok_and(|d| is_answer(&d))
        },
    },
    Ability { name: "scalars", answers: |device| device.scalars() == [scalar()] },
    Ability {
        name: "compute",
        answers: |device| {
            let operands = Elements::zeros(Format::F32, 1);
            device.compute(&scalar(), ScalarFunction::SquareRoot, &operands).is_ok_and(|d| is_answer(&d))
        },
    },
    Ability {
        name: "multiply",
        answers: |device| {
            let one = Elements::zeros(Format::F32, 1);
            let product = Product { m: 1, n: 1, k: 1, a: &one, b: &one, c: &one };
            device.multiply(&operation(), &product).is_ok_and(|d| d.is_some_and(|d| is_answer(&d)))
        },
    },
    Ability { name: "library", answers: |device| device.library().is_ok_and(|library| library.name() == "able") },
    Ability { name: "kernel_ns", answers: |device| device.kernel_ns() == Some(ANSWER) },
    Ability { name: "timing", answers: |device| device.timing().is_some() },
    Ability {
        name: "issued",
        answers: |device| {
            device.issued(&operation()).is_ok_and(|issued| issued.is_some_and(|issued| issued.unit.is_some()))
        },
    },
    Ability { name: "kernel_hash", answers: |device| device.kernel_hash(&operation()).as_deref() == Some("able") },
    Ability {
        name: "Timing::yardsticks",
        answers: |device| device.timing().is_some_and(|timing| timing.yardsticks() == [operation()]),
    },
    Ability {
        name: "Timing::time",
        answers: |device| {
            let operands = TileBatch::zeros(&operation(), 1);
            let load = Load { operands: &operands, steps: 1, span: Span::One };
            device
                .timing()
                .is_some_and(|timing| timing.time(&operation(), &load).is_ok_and(|timed| is_answer(&timed.d)))
        },
    },
];

/// The abilities that a device around [`able`] drops.
#[must_use]
pub fn dropped(device: &dyn Device) -> Vec<&'static str> {
    ABILITIES.iter().filter(|ability| !(ability.answers)(device)).map(|ability| ability.name).collect()
}

/// A device that has every ability, to be wrapped.
#[must_use]
pub fn able() -> Box<dyn Device> {
    let info = DeviceInfo {
        backend: "able".into(),
        selector: "able:0".into(),
        name: "a device of every ability".into(),
        fingerprint: "able".into(),
        kind: DeviceKind::Model,
        emulated: false,
        aliases: Vec::new(),
        driver: None,
        properties: BTreeMap::from([("able".to_owned(), "true".to_owned())]),
    };
    let refusal =
        Refusal { what: "another operation".into(), reason: Error::unsupported("there is one only"), help: None };
    Box::new(Able {
        info,
        operations: OperationSet::from([(operation().id, operation())]),
        refusals: vec![refusal],
        scalars: vec![scalar()],
        yardsticks: vec![operation()],
    })
}

struct Able {
    info: DeviceInfo,
    operations: OperationSet,
    refusals: Vec<Refusal>,
    scalars: Vec<Scalar>,
    yardsticks: Vec<Operation>,
}

fn answers(format: Format, count: usize) -> Elements {
    Elements::from_bits(format, std::iter::repeat_n(ANSWER, count))
}

impl Device for Able {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn operations(&self) -> &OperationSet {
        &self.operations
    }

    fn refusals(&self) -> &[Refusal] {
        &self.refusals
    }

    fn execute(&self, operation: &Operation, batch: &TileBatch) -> Result<Elements, Error> {
        let (m, n, _) = operation.id.shape.sizes();
        Ok(answers(operation.id.d, batch.tiles * m * n))
    }

    fn scalars(&self) -> &[Scalar] {
        &self.scalars
    }

    fn compute(&self, scalar: &Scalar, function: ScalarFunction, operands: &Elements) -> Result<Elements, Error> {
        Ok(answers(function.result(scalar.id.format), operands.len() / function.arity()))
    }

    fn multiply(&self, operation: &Operation, product: &Product<'_>) -> Result<Option<Elements>, Error> {
        Ok(Some(answers(operation.id.d, product.m * product.n)))
    }

    fn library(&self) -> Result<Box<dyn Library>, Error> {
        Ok(Box::new(AbleLibrary))
    }

    fn kernel_ns(&self) -> Option<u64> {
        Some(ANSWER)
    }

    fn timing(&self) -> Option<&dyn Timing> {
        Some(self)
    }

    fn issued(&self, _: &Operation) -> Result<Option<Issued>, Error> {
        Ok(Some(Issued { unit: Some("ABLE".into()), ..Issued::default() }))
    }

    fn kernel_hash(&self, _: &Operation) -> Option<String> {
        Some("able".into())
    }
}

impl Timing for Able {
    fn yardsticks(&self) -> &[Operation] {
        &self.yardsticks
    }

    fn time(&self, operation: &Operation, _: &Load<'_>) -> Result<Timed, Error> {
        Ok(Timed {
            elapsed_ns: 1.0,
            clock: Clock::Host,
            units: None,
            unit: "unit".into(),
            frequency_hz: None,
            pattern: vec![[0, 0, 0]],
            d: answers(operation.id.d, 1),
        })
    }
}

struct AbleLibrary;

impl Library for AbleLibrary {
    fn name(&self) -> &str {
        "able"
    }

    fn multiply(&self, (m, n, _): (usize, usize, usize), _: &Elements, _: &Elements) -> Result<Elements, Error> {
        Ok(answers(Format::F32, m * n))
    }
}
