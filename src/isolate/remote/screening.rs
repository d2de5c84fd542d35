//! Screening of a device in another process.

use mxprobe_api::{Drill, Error, Operation, OperationId, Screened, Screening};

use super::{MOST_TIMED_BYTES, RemoteDevice, unexpected};
use crate::isolate::{
    protocol::{Answer, Frame, Request, parts_of_batch},
    screening::{ScreenRecord, ScreenedRecord},
};

impl Screening for RemoteDevice {
    fn units(&self) -> Vec<u32> {
        self.described.screening.clone().unwrap_or_default()
    }

    fn steps(&self, operation: &OperationId) -> u32 {
        self.described.screening_steps.get(operation).copied().unwrap_or(1)
    }

    fn screen(&self, operation: &Operation, drill: &Drill<'_>) -> Result<Vec<Screened>, Error> {
        let id = &operation.id;
        let message = Request::Screen(ScreenRecord::new(&self.link.device, id, drill));
        let parts = parts_of_batch(drill.operands);
        let Frame { message, parts } = self.link.ask(&id.to_string(), message, parts, MOST_TIMED_BYTES)?;
        match message {
            Answer::Screened { units } => ScreenedRecord::join(units, parts, id.d),
            other => Err(unexpected(other)),
        }
    }
}
