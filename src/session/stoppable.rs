//! A device that stops computing when told to.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use mxprobe_api::{
    Code, Device, DeviceInfo, DotOperands, Drill, Elements, Error, Flags, FreeOperation, GemmOperands, Library, Load,
    Matrices, Operation, OperationId, OperationSet, Refusal, Scalar, ScalarFunction, Scalars, Screened, Screening,
    StatusFlags, TileBatch, Timed, Timing, flags_of, scalars_of,
};

/// A device whose computations all fail once the flag is set, so that a thread that nobody waits for ends.
pub(super) struct Stoppable {
    pub(super) device: Arc<dyn Device>,
    pub(super) stopped: Arc<AtomicBool>,
}

impl Stoppable {
    fn check(&self) -> Result<(), Error> {
        if self.stopped.load(Ordering::Relaxed) { Err(Error::device_lost("the session was stopped")) } else { Ok(()) }
    }
}

impl Device for Stoppable {
    fn info(&self) -> &DeviceInfo {
        self.device.info()
    }

    fn operations(&self) -> &OperationSet {
        self.device.operations()
    }

    fn free_operations(&self) -> &[FreeOperation] {
        self.device.free_operations()
    }

    fn refusals(&self) -> &[Refusal] {
        self.device.refusals()
    }

    fn execute(&self, operation: &Operation, batch: &TileBatch) -> Result<Elements, Error> {
        self.check()?;
        self.device.execute(operation, batch)
    }

    fn matrices(&self) -> Option<&dyn Matrices> {
        self.device.matrices().map(|_| self as &dyn Matrices)
    }

    fn scalars(&self) -> Option<&dyn Scalars> {
        self.device.scalars().map(|_| self as &dyn Scalars)
    }

    fn timing(&self) -> Option<&dyn Timing> {
        self.device.timing().map(|_| self as &dyn Timing)
    }

    fn screening(&self) -> Option<&dyn Screening> {
        self.device.screening().map(|_| self as &dyn Screening)
    }

    fn code(&self) -> Option<&dyn Code> {
        self.device.code()
    }
}

impl Matrices for Stoppable {
    fn multiply(&self, operation: &Operation, operands: &GemmOperands<'_>) -> Result<Option<Elements>, Error> {
        self.check()?;
        self.device.matrices().map_or(Ok(None), |matrices| matrices.multiply(operation, operands))
    }

    fn dots(&self, operation: &Operation, operands: &DotOperands<'_>) -> Result<Option<Elements>, Error> {
        self.check()?;
        self.device.matrices().map_or(Ok(None), |matrices| matrices.dots(operation, operands))
    }

    fn has_tiles(&self) -> bool {
        self.device.matrices().is_none_or(Matrices::has_tiles)
    }

    fn kernel_ns(&self) -> Option<u64> {
        self.device.matrices()?.kernel_ns()
    }
}

impl Scalars for Stoppable {
    fn members(&self) -> &[Scalar] {
        scalars_of(&*self.device)
    }

    fn call(&self, scalar: &Scalar, function: ScalarFunction, operands: &Elements) -> Result<Elements, Error> {
        self.check()?;
        let without = || Error::unsupported("the device has no scalar arithmetic");
        self.device.scalars().ok_or_else(without)?.call(scalar, function, operands)
    }

    fn flags(&self) -> Option<&dyn StatusFlags> {
        flags_of(&*self.device).map(|_| self as &dyn StatusFlags)
    }
}

impl StatusFlags for Stoppable {
    fn call_with_flags(
        &self,
        scalar: &Scalar,
        function: ScalarFunction,
        operands: &Elements,
    ) -> Result<(Elements, Vec<Flags>), Error> {
        self.check()?;
        let without = || Error::unsupported("the device has no status flags");
        flags_of(&*self.device).ok_or_else(without)?.call_with_flags(scalar, function, operands)
    }
}

impl Timing for Stoppable {
    fn yardsticks(&self) -> &[Operation] {
        self.device.timing().map_or(&[], |timing| timing.yardsticks())
    }

    fn time(&self, operation: &Operation, load: &Load<'_>) -> Result<Timed, Error> {
        self.check()?;
        self.device.timing().ok_or_else(without_clock)?.time(operation, load)
    }

    fn library(&self) -> Result<Box<dyn Library>, Error> {
        self.device.timing().ok_or_else(without_clock)?.library()
    }
}

fn without_clock() -> Error {
    Error::unsupported("the device has no clock")
}

impl Screening for Stoppable {
    fn units(&self) -> Vec<u32> {
        self.device.screening().map(Screening::units).unwrap_or_default()
    }

    fn steps(&self, operation: &OperationId) -> u32 {
        self.device.screening().map_or(1, |screening| screening.steps(operation))
    }

    fn screen(&self, operation: &Operation, drill: &Drill<'_>) -> Result<Vec<Screened>, Error> {
        self.check()?;
        let without = || Error::unsupported("the device does not screen itself");
        self.device.screening().ok_or_else(without)?.screen(operation, drill)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_hands_on_every_ability_and_computes_no_more_once_it_is_stopped() {
        let stopped = Arc::new(AtomicBool::new(false));
        let device = Stoppable { device: Arc::from(mxprobe_conformance::able()), stopped: stopped.clone() };
        assert_eq!(mxprobe_conformance::dropped(&device), <[&str; 0]>::default());
        stopped.store(true, Ordering::Relaxed);
        let dropped = mxprobe_conformance::dropped(&device);
        for computes in [
            "execute",
            "Matrices::multiply",
            "Matrices::dots",
            "Scalars::call",
            "StatusFlags::call_with_flags",
            "Timing::time",
            "Screening::screen",
        ] {
            assert!(dropped.contains(&computes), "{computes} goes on; {dropped:?}");
        }
        assert!(!dropped.contains(&"operations") && !dropped.contains(&"Scalars::members"), "{dropped:?}");
    }
}
