//! The scalar arithmetic under test, called in batches.

use std::sync::atomic::{AtomicU64, Ordering};

use mxprobe_api::{Device, Elements, Error, Flags, Format, Scalar, ScalarFunction, call, call_with_flags, flags_of};

use crate::findings::{Evidence, Input};

/// The scalar arithmetic of a device in one mode, with a count of its calls.
pub(crate) struct Subject<'a> {
    device: &'a dyn Device,
    pub(super) scalar: &'a Scalar,
    asked: AtomicU64,
}

impl<'a> Subject<'a> {
    pub(super) fn new(device: &'a dyn Device, scalar: &'a Scalar) -> Self {
        Self { device, scalar, asked: AtomicU64::new(0) }
    }

    pub(super) fn format(&self) -> Format {
        self.scalar.id.format
    }

    pub(super) fn has(&self, function: ScalarFunction) -> bool {
        self.scalar.functions.contains_key(&function)
    }

    /// The number of calls so far.
    pub(super) fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }

    /// The results of calls, in order.
    pub(super) fn ask(&self, function: ScalarFunction, calls: &[Vec<u64>]) -> Result<Vec<u64>, Error> {
        let operands = Elements::from_bits(self.format(), calls.iter().flatten().copied());
        let results = call(self.device, self.scalar, function, &operands)?;
        self.asked.fetch_add(calls.len() as u64, Ordering::Relaxed);
        Ok((0..results.len()).map(|at| results.get(at)).collect())
    }

    /// Whether the status flags that calls raise can be read.
    pub(super) fn has_flags(&self) -> bool {
        flags_of(self.device).is_some()
    }

    /// The results of calls, in order, and the flags that each raised.
    pub(super) fn ask_with_flags(
        &self,
        function: ScalarFunction,
        calls: &[Vec<u64>],
    ) -> Result<Vec<(u64, Flags)>, Error> {
        let operands = Elements::from_bits(self.format(), calls.iter().flatten().copied());
        let (results, flags) = call_with_flags(self.device, self.scalar, function, &operands)?;
        self.asked.fetch_add(calls.len() as u64, Ordering::Relaxed);
        Ok(results.iter().zip(flags).collect())
    }

    /// The results of calls, in order, whose operands follow one another in `operands`.
    pub(super) fn ask_elements(&self, function: ScalarFunction, operands: &Elements) -> Result<Elements, Error> {
        let results = call(self.device, self.scalar, function, operands)?;
        self.asked.fetch_add(results.len() as u64, Ordering::Relaxed);
        Ok(results)
    }

    /// The result of one call.
    pub(super) fn ask_one(&self, function: ScalarFunction, operands: &[u64]) -> Result<u64, Error> {
        Ok(self.ask(function, &[operands.to_vec()])?[0])
    }

    /// One call as evidence.
    pub(super) fn evidence(
        &self,
        about: impl Into<String>,
        function: ScalarFunction,
        operands: &[u64],
        d: u64,
        rivals: &[(String, u64)],
    ) -> Evidence {
        let input = Input::Call(function, operands.to_vec());
        Evidence { about: about.into(), input, d, rivals: rivals.to_vec() }
    }
}
