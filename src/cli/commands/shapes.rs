//! Opens a device whose operation leaves its sizes open, for one shape at a time.

use std::sync::Arc;

use crate::{
    findings::Outcome as Ended,
    identify::{GemmEffort, GemmIdentification, identify_gemm},
    report::{Block, Cell, Row},
};
use mxprobe_api::{Device, Error, Operation, OperationId, Shape, operation_of};

use crate::cli::{
    arguments::Reach,
    choose::{
        limits::Limits,
        reach::{Isolation, Reached, reach},
        target::Search,
    },
    commands::each::{self, Listener},
    failure::Failure,
};

/// The note after the last shape of an interrupted run.
pub(super) const INTERRUPTED_EARLY: &str = "interrupted: the shapes after these were not asked";

/// A device to open for one shape after another.
pub(super) struct Open<'a> {
    pub(super) device: &'a str,
    pub(super) reach: &'a Reach,
    pub(super) limits: &'a Limits,
}

impl Open<'_> {
    /// Returns the device's name and the one operation that the patterns select.
    pub(super) fn named(&self, patterns: &[String]) -> Result<(String, OperationId), Failure> {
        let target = each::one_target(self.device, &Search::by(self.reach, patterns))?;
        let operations = each::operations(patterns, &target)?;
        match operations.as_slice() {
            [operation] => Ok((target.listed.device.name.clone(), operation.id.clone())),
            several => {
                let mut failure = Failure::usage(format!("{} operations match", several.len()));
                for operation in several {
                    failure = failure.cause(operation.id.to_string());
                }
                Err(failure.help("name one of them with `--op`"))
            }
        }
    }

    /// Reaches the device for one operation.
    fn reached(&self, id: &OperationId) -> Result<Reached, Error> {
        let search = Search::new(!self.reach.no_isolation, None, &[id.to_string()]);
        let target =
            each::one_target(self.device, &search).map_err(|failure| Error::unsupported(failure.to_string()))?;
        let isolation = Isolation { wanted: !self.reach.no_isolation, forward_stderr: false };
        reach(&target, isolation, self.limits)
    }

    /// Opens the device for one operation, for callers that ask two devices at the same time.
    ///
    /// # Errors
    /// If the device has disappeared, or does not start or answer.
    pub(super) fn device(&self, id: &OperationId) -> Result<Arc<dyn Device>, Error> {
        Ok(self.reached(id)?.asked().device)
    }

    /// Asks the device, opened for one operation, on a thread, so that an interruption ends the wait whatever is being
    /// computed; `None` if interrupted.
    pub(super) fn ask<A: Send + 'static>(
        &self,
        id: &OperationId,
        ask: impl Fn(&dyn Device, &Operation, &dyn Fn(&str)) -> Result<A, Error> + Send + Sync + 'static,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Option<Result<A, String>>, Failure> {
        let mut one = One { answer: None, progress };
        let ask = move |device: &dyn Device, id: &OperationId, progress: &dyn Fn(&str)| {
            let operation = operation_of(device, id).map_err(|error| error.to_string())?;
            ask(device, operation, progress).map_err(|error| error.to_string())
        };
        let interrupted = each::each(self.reached(id), std::slice::from_ref(id), self.limits, ask, &mut one)?;
        Ok(one.answer.filter(|_| !interrupted))
    }

    /// Identifies the recipe of one shape; `None` if interrupted.
    pub(super) fn identify(
        &self,
        id: &OperationId,
        effort: GemmEffort,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Option<Result<GemmIdentification, String>>, Failure> {
        let ask = move |device: &dyn Device, operation: &Operation, progress: &dyn Fn(&str)| {
            identify_gemm(device, operation, effort, progress)
        };
        self.ask(id, ask, progress)
    }
}

/// Collects the answer about one operation.
struct One<'a, A> {
    answer: Option<Result<A, String>>,
    progress: &'a mut dyn FnMut(&str),
}

impl<A> Listener<Result<A, String>> for One<'_, A> {
    type Error = Failure;

    fn answered(&mut self, answer: Result<A, String>) -> Result<(), Failure> {
        self.answer = Some(answer);
        Ok(())
    }

    fn missing(&mut self, _: &OperationId, ending: Ended, reason: &str) -> Result<(), Failure> {
        self.answer = Some(Err(each::unanswered(ending, reason)));
        Ok(())
    }

    fn progress(&mut self, words: &str) {
        (self.progress)(words);
    }
}

/// Returns the same operation with another shape.
pub(super) fn of_shape(id: &OperationId, shape: Shape) -> OperationId {
    OperationId { shape, ..id.clone() }
}

/// The maximum number of products of an input that are shown; reports hold all.
const SHOWN: usize = 12;

/// Builds a table of an input's products: the position along k, a and b.
pub(super) fn table_of(products: &[(usize, String, String)]) -> Vec<Block> {
    let rows = products
        .iter()
        .take(SHOWN)
        .map(|(k, a, b)| Row::plain(vec![Cell::code(format!("k = {k}")), Cell::code(a), Cell::code(b)]));
    let mut blocks = vec![Block::table(["product", "a", "b"], rows)];
    if products.len() > SHOWN {
        blocks.push(Block::words(format!("and {} products more", products.len() - SHOWN)));
    }
    blocks
}
