//! A device that stops computing when told to.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use mxprobe_api::{
    Code, Device, DeviceInfo, DotOperands, Drill, Elements, Error, FreeOperation, GemmOperands, Matrices, Operation,
    OperationSet, Refusal, Scalars, Screened, Screening, TileBatch, Timing,
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
        self.device.scalars()
    }

    fn timing(&self) -> Option<&dyn Timing> {
        self.device.timing()
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

impl Screening for Stoppable {
    fn units(&self) -> Vec<u32> {
        self.device.screening().map(Screening::units).unwrap_or_default()
    }

    fn steps(&self) -> u32 {
        self.device.screening().map_or(1, Screening::steps)
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
        assert!(dropped.contains(&"execute") && dropped.contains(&"Matrices::multiply"), "{dropped:?}");
        assert!(!dropped.contains(&"operations"), "{dropped:?}");
    }
}
