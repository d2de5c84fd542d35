//! The CPU's scalar arithmetic: plain expressions as the Rust compiler compiles them, and single instructions in every
//! mode of MXCSR.
//!
//! | id | computed by |
//! |---|---|
//! | `scalar.f32`, `scalar.f64` | Rust's operators and functions, as compiled into this program, and the C library's |
//! | `scalar.{f32,f64}.{rne,rz,rd,ru}[.ftz][.daz]` | ADDSS, …, VFMADD213SD under that MXCSR |
//! | `scalar.f32.approx` | RCPSS, RSQRTSS |
//! | `scalar.{f32,f64}.x87` | FADD, …, FCOS: x87 registers (64 significand bits), rounded to the format when stored |
//! | `scalar.f16` | VADDSH, … under the default MXCSR, if the CPU has AVX-512 FP16 |
//! | `scalar.f16.{rne,rz,rd,ru}[.ftz][.daz]` | the same under that MXCSR |

mod library;
mod mxcsr;
mod plain;
mod x87;

use std::{borrow::Cow, collections::BTreeMap};

use mxprobe_api::{Elements, Error, Flags, Format, Refusal, Scalar, ScalarFunction, ScalarId};

use crate::detect::{Extension, Readings};
use mxcsr::Instruction;
use plain::Call;

/// The implementation of a function.
#[derive(Clone, Copy)]
enum Behind {
    Plain(Call),
    Mode(u32, Instruction),
    X87(x87::Instructions),
}

impl Behind {
    /// Calls the function; returns its result and a status word whose low bits are the flags that it raised.
    fn call(self, operands: &[u64]) -> (u64, u32) {
        match self {
            Self::Plain(call) => mxcsr::around(|| call(operands)),
            // SAFETY: this variant is only created if the readings of this CPU and this process say that the extension
            // of the instruction can be used.
            Self::Mode(mxcsr, instruction) => unsafe { instruction(mxcsr, operands) },
            Self::X87(instructions) => instructions(operands),
        }
    }
}

/// The flags of MXCSR and of the status word of x87, which have the same order: bits 0 to 5.
const FLAGS: u32 = 0b11_1111;

/// The scalar arithmetic of this CPU.
#[derive(Default)]
pub(crate) struct ScalarUnit {
    listed: Vec<Scalar>,
    behind: BTreeMap<(ScalarId, ScalarFunction), Behind>,
}

impl ScalarUnit {
    /// Collects the arithmetic that these readings allow.
    pub(crate) fn new(readings: &Readings) -> Self {
        let mut scalars = Self::default();
        for format in [Format::F32, Format::F64] {
            let functions = plain::functions(format);
            scalars.add(
                ScalarId::new(format),
                functions.into_iter().map(|(function, name, call)| (function, name, Behind::Plain(call))),
            );
        }
        for format in [Format::F16, Format::F32, Format::F64] {
            let instructions: Vec<_> = mxcsr::instructions(format)
                .into_iter()
                .filter(|(_, _, extension, _)| extension.is_none_or(|extension| readings.extension(extension).is_ok()))
                .collect();
            // Rust has no stable f16, so that its plain arithmetic is that of the instructions.
            let plain = (format == Format::F16).then(|| (ScalarId::new(format), mxcsr::DEFAULT));
            let modes = mxcsr::modes()
                .into_iter()
                .map(|(words, mxcsr)| (words.iter().fold(ScalarId::new(format), |id, word| id.with(word)), mxcsr));
            for (id, mxcsr) in plain.into_iter().chain(modes) {
                let functions = instructions.iter().map(|(function, name, _, instruction)| {
                    (*function, Cow::Borrowed(*name), Behind::Mode(mxcsr, *instruction))
                });
                scalars.add(id, functions);
            }
        }
        let approximations = mxcsr::APPROXIMATIONS
            .map(|(function, name, call)| (function, Cow::Borrowed(name), Behind::Mode(mxcsr::DEFAULT, call)));
        scalars.add(ScalarId::new(Format::F32).with("approx"), approximations);
        for format in [Format::F32, Format::F64] {
            let functions = x87::functions(format);
            let functions = functions.into_iter().map(|(of, name, call)| (of, Cow::Borrowed(name), Behind::X87(call)));
            scalars.add(ScalarId::new(format).with("x87"), functions);
        }
        scalars
    }

    fn add(&mut self, id: ScalarId, functions: impl IntoIterator<Item = (ScalarFunction, Cow<'static, str>, Behind)>) {
        let mut listed = BTreeMap::new();
        for (function, name, behind) in functions {
            listed.insert(function, Some(name.into_owned()));
            self.behind.insert((id.clone(), function), behind);
        }
        if !listed.is_empty() {
            self.listed.push(Scalar { id, functions: listed });
        }
    }

    /// The instructions that these readings do not allow, one entry for each missing extension.
    pub(crate) fn refusals(readings: &Readings) -> Vec<Refusal> {
        let mut missing: BTreeMap<Extension, Vec<&str>> = BTreeMap::new();
        for format in [Format::F16, Format::F32, Format::F64] {
            for (_, name, extension, _) in mxcsr::instructions(format) {
                if let Some(extension) = extension {
                    missing.entry(extension).or_default().push(name);
                }
            }
        }
        let refusals = missing.into_iter().filter_map(|(extension, names)| {
            let step = readings.extension(extension).err()?;
            Some(Refusal {
                what: format!("scalar arithmetic by {}", names.join(", ")),
                reason: Error::unsupported(step.reason),
                help: step.help.map(str::to_owned),
            })
        });
        refusals.collect()
    }

    /// One member for each format and mode.
    pub(crate) fn listed(&self) -> &[Scalar] {
        &self.listed
    }

    /// Calls a function once for each group of operands.
    pub(crate) fn call(
        &self,
        scalar: &Scalar,
        function: ScalarFunction,
        operands: &Elements,
    ) -> Result<Elements, Error> {
        let behind = self.behind(scalar, function)?;
        let mut results = Elements::zeros(function.result(scalar.id.format), operands.len() / function.arity());
        each_call(function, operands, |at, operands| {
            let result = match behind {
                // Skips reading MXCSR, which takes longer than most functions.
                Behind::Plain(call) => call(operands),
                other => other.call(operands).0,
            };
            results.set(at, result);
        });
        Ok(results)
    }

    /// Like [`ScalarUnit::call`], and also returns the flags that each call raised.
    pub(crate) fn call_with_flags(
        &self,
        scalar: &Scalar,
        function: ScalarFunction,
        operands: &Elements,
    ) -> Result<(Elements, Vec<Flags>), Error> {
        let behind = self.behind(scalar, function)?;
        let mut results = Elements::zeros(function.result(scalar.id.format), operands.len() / function.arity());
        let mut flags = Vec::with_capacity(results.len());
        each_call(function, operands, |at, operands| {
            let (result, status) = behind.call(operands);
            results.set(at, result);
            flags.push(u8::try_from(status & FLAGS).ok().and_then(Flags::from_bits).unwrap_or_default());
        });
        Ok((results, flags))
    }

    fn behind(&self, scalar: &Scalar, function: ScalarFunction) -> Result<Behind, Error> {
        let missing = || Error::invalid(format!("no kernel computes {function} of {}", scalar.id));
        self.behind.get(&(scalar.id.clone(), function)).copied().ok_or_else(missing)
    }
}

/// Calls `call` with the number and the operands of each call.
fn each_call(function: ScalarFunction, operands: &Elements, mut call: impl FnMut(usize, &[u64])) {
    let arity = function.arity();
    let mut of_call = [0; 8];
    for at in 0..operands.len() / arity {
        for (place, operand) in of_call[..arity].iter_mut().enumerate() {
            *operand = operands.get(at * arity + place);
        }
        call(at, &of_call[..arity]);
    }
}
