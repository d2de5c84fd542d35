//! Every ability of a device, and a check that a wrapper forwards them all.

use std::{collections::BTreeMap, time::Duration};

use mxprobe_api::{
    Clock, Code, Device, DeviceInfo, DeviceKind, DotOperands, Drill, Elements, Error, Flag, Flags, Format,
    FreeOperation, GemmOperands, Issued, Library, Load, Matrices, Operation, OperationId, OperationSet, Refusal,
    Scalar, ScalarFunction, ScalarId, Scalars, Screened, Screening, Span, StatusFlags, TileBatch, Timed, Timing,
    WrongBlock, flags_of, scalars_of,
};

/// One method of [`Device`] or of one of its abilities.
pub struct Ability {
    /// The method's name, prefixed with its trait if that is not [`Device`].
    pub name: &'static str,
    answers: fn(&dyn Device) -> bool,
}

/// The bits of every element that the device with every ability returns.
const ANSWER: u64 = 0x40e0_0000;

/// Its operation with open sizes.
const FREE: &str = "dot.m1n1k*.f32.f32.f32.f32";

/// Its only unit.
const UNIT: u32 = 7;

fn operation() -> Operation {
    Operation::new(OperationId::new("dot", (1, 1, 1), Format::F32, Format::F32, Format::F32, Format::F32), "thread")
}

fn scalar() -> Scalar {
    Scalar { id: ScalarId::new(Format::F32), functions: BTreeMap::from([(ScalarFunction::SquareRoot, None)]) }
}

/// The flags that its functions raise.
fn raised() -> Flags {
    Flags::of(&[Flag::Inexact])
}

fn is_answer(elements: &Elements) -> bool {
    elements.len() == 1 && elements.get(0) == ANSWER
}

/// The abilities, in the order of the traits.
pub const ABILITIES: &[Ability] = &[
    Ability { name: "info", answers: |device| device.info().properties.contains_key("able") },
    Ability { name: "operations", answers: |device| device.operations().contains_key(&operation().id) },
    Ability {
        name: "free_operations",
        answers: |device| device.free_operations().iter().any(|free| free.pattern() == FREE),
    },
    Ability { name: "refusals", answers: |device| device.refusals().len() == 1 },
    Ability {
        name: "execute",
        answers: |device| {
            let batch = TileBatch::zeros(&operation(), 1);
            device.execute(&operation(), &batch).is_ok_and(|d| is_answer(&d))
        },
    },
    Ability {
        name: "Matrices::multiply",
        answers: |device| {
            let one = Elements::zeros(Format::F32, 1);
            let product = GemmOperands { m: 1, n: 1, k: 1, a: &one, b: &one, c: &one, scale_a: None, scale_b: None };
            let multiplied = device.matrices().map(|matrices| matrices.multiply(&operation(), &product));
            multiplied.is_some_and(|d| d.is_ok_and(|d| d.is_some_and(|d| is_answer(&d))))
        },
    },
    Ability {
        name: "Matrices::dots",
        answers: |device| {
            let one = Elements::zeros(Format::F32, 1);
            let dots = DotOperands { count: 1, a: &one, b: &one, c: &one, scale_a: None, scale_b: None };
            let computed = device.matrices().map(|matrices| matrices.dots(&operation(), &dots));
            computed.is_some_and(|d| d.is_ok_and(|d| d.is_some_and(|d| is_answer(&d))))
        },
    },
    Ability {
        name: "Matrices::has_tiles",
        answers: |device| device.matrices().is_some_and(|matrices| !matrices.has_tiles()),
    },
    Ability {
        name: "Matrices::kernel_ns",
        answers: |device| device.matrices().and_then(|matrices| matrices.kernel_ns()) == Some(ANSWER),
    },
    Ability { name: "Scalars::members", answers: |device| scalars_of(device) == [scalar()] },
    Ability {
        name: "Scalars::call",
        answers: |device| {
            let operands = Elements::zeros(Format::F32, 1);
            let called = |scalars: &dyn Scalars| scalars.call(&scalar(), ScalarFunction::SquareRoot, &operands);
            device.scalars().is_some_and(|scalars| called(scalars).is_ok_and(|d| is_answer(&d)))
        },
    },
    Ability {
        name: "StatusFlags::call_with_flags",
        answers: |device| {
            let operands = Elements::zeros(Format::F32, 1);
            let called =
                |flags: &dyn StatusFlags| flags.call_with_flags(&scalar(), ScalarFunction::SquareRoot, &operands);
            let is_right = |(d, flags): (Elements, Vec<Flags>)| is_answer(&d) && flags == [raised()];
            flags_of(device).is_some_and(|flags| called(flags).is_ok_and(is_right))
        },
    },
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
    Ability {
        name: "Timing::library",
        answers: |device| {
            let library = device.timing().map(|timing| timing.library());
            library.is_some_and(|library| library.is_ok_and(|library| library.name() == "able"))
        },
    },
    Ability {
        name: "Screening::units",
        answers: |device| device.screening().is_some_and(|screening| screening.units() == [UNIT]),
    },
    Ability {
        name: "Screening::steps",
        answers: |device| device.screening().is_some_and(|screening| screening.steps(&operation().id) == UNIT),
    },
    Ability {
        name: "Screening::screen",
        answers: |device| {
            let operands = TileBatch::zeros(&operation(), 1);
            let drill = Drill {
                operands: &operands,
                digests: &[0],
                duration: Duration::ZERO,
                passes: 1,
                steps: 1,
                unit: None,
                inject: None,
            };
            let screened = device.screening().map(|screening| screening.screen(&operation(), &drill));
            screened.is_some_and(|found| found.is_ok_and(|found| found.len() == 1 && is_answer(&found[0].kept[0].d)))
        },
    },
    Ability {
        name: "Code::issued",
        answers: |device| {
            let issued = device.code().map(|code| code.issued(&operation()));
            issued.is_some_and(|issued| issued.is_ok_and(|issued| issued.is_some_and(|issued| issued.unit.is_some())))
        },
    },
    Ability {
        name: "Code::kernel_hash",
        answers: |device| device.code().and_then(|code| code.kernel_hash(&operation())).as_deref() == Some("able"),
    },
];

/// Lists the abilities that a wrapper around [`able`] drops.
#[must_use]
pub fn dropped(device: &dyn Device) -> Vec<&'static str> {
    ABILITIES.iter().filter(|ability| !(ability.answers)(device)).map(|ability| ability.name).collect()
}

/// Creates a device with every ability, for wrapping.
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
        free: vec![FreeOperation::read(FREE).ok().flatten().expect("it leaves a size open")],
        refusals: vec![refusal],
        scalars: vec![scalar()],
        yardsticks: vec![operation()],
    })
}

struct Able {
    info: DeviceInfo,
    operations: OperationSet,
    free: Vec<FreeOperation>,
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

    fn free_operations(&self) -> &[FreeOperation] {
        &self.free
    }

    fn refusals(&self) -> &[Refusal] {
        &self.refusals
    }

    fn execute(&self, operation: &Operation, batch: &TileBatch) -> Result<Elements, Error> {
        let (m, n, _) = operation.id.shape.sizes();
        Ok(answers(operation.id.d, batch.tiles * m * n))
    }

    fn matrices(&self) -> Option<&dyn Matrices> {
        Some(self)
    }

    fn scalars(&self) -> Option<&dyn Scalars> {
        Some(self)
    }

    fn timing(&self) -> Option<&dyn Timing> {
        Some(self)
    }

    fn screening(&self) -> Option<&dyn Screening> {
        Some(self)
    }

    fn code(&self) -> Option<&dyn Code> {
        Some(self)
    }
}

impl Screening for Able {
    fn units(&self) -> Vec<u32> {
        vec![UNIT]
    }

    fn steps(&self, _: &OperationId) -> u32 {
        UNIT
    }

    fn screen(&self, operation: &Operation, _: &Drill<'_>) -> Result<Vec<Screened>, Error> {
        let kept = vec![WrongBlock { pass: 0, block: 0, d: answers(operation.id.d, 1) }];
        Ok(vec![Screened { unit: Some(UNIT), pinned: true, blocks: 1, wrong: 1, elapsed_ns: 1.0, kept }])
    }
}

impl Matrices for Able {
    fn multiply(&self, operation: &Operation, product: &GemmOperands<'_>) -> Result<Option<Elements>, Error> {
        Ok(Some(answers(operation.id.d, product.m * product.n)))
    }

    fn dots(&self, operation: &Operation, operands: &DotOperands<'_>) -> Result<Option<Elements>, Error> {
        Ok(Some(answers(operation.id.d, operands.count)))
    }

    fn has_tiles(&self) -> bool {
        false
    }

    fn kernel_ns(&self) -> Option<u64> {
        Some(ANSWER)
    }
}

impl Scalars for Able {
    fn members(&self) -> &[Scalar] {
        &self.scalars
    }

    fn call(&self, scalar: &Scalar, function: ScalarFunction, operands: &Elements) -> Result<Elements, Error> {
        Ok(answers(function.result(scalar.id.format), operands.len() / function.arity()))
    }

    fn flags(&self) -> Option<&dyn StatusFlags> {
        Some(self)
    }
}

impl StatusFlags for Able {
    fn call_with_flags(
        &self,
        scalar: &Scalar,
        function: ScalarFunction,
        operands: &Elements,
    ) -> Result<(Elements, Vec<Flags>), Error> {
        let results = self.call(scalar, function, operands)?;
        let flags = vec![raised(); results.len()];
        Ok((results, flags))
    }
}

impl Code for Able {
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

    fn library(&self) -> Result<Box<dyn Library>, Error> {
        Ok(Box::new(AbleLibrary))
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
