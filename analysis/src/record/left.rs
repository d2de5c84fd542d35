//! The part of an identification or a verification that is left to do, and insertion of answers at their places.

use mxprobe_api::OperationId;

use super::{
    identification::{
        IdentificationOutcome, IdentificationReport, IdentifiedOperation, VerificationReport, VerifiedOperation,
    },
    request::Request,
};

/// The entry of one operation.
trait Entry {
    fn id(&self) -> &OperationId;
    /// Whether the device was asked to the end. An operation that failed or was skipped is asked again.
    fn is_finished(&self) -> bool;
}

impl Entry for IdentifiedOperation {
    fn id(&self) -> &OperationId {
        &self.id
    }

    fn is_finished(&self) -> bool {
        self.outcome != IdentificationOutcome::Failed
    }
}

impl Entry for VerifiedOperation {
    fn id(&self) -> &OperationId {
        &self.id
    }

    fn is_finished(&self) -> bool {
        self.failed.is_none()
    }
}

fn unfinished<'a>(request: Option<&'a Request>, entries: &[impl Entry]) -> Option<Vec<&'a OperationId>> {
    let is_finished = |id: &OperationId| entries.iter().any(|known| known.id() == id && known.is_finished());
    Some(request?.operations.iter().filter(|id| !is_finished(id)).collect())
}

/// Replaces the entry of the same operation, or else inserts a new one in the order of the request.
fn put<E: Entry>(request: Option<&Request>, entries: &mut Vec<E>, new: E) {
    if let Some(old) = entries.iter_mut().find(|old| old.id() == new.id()) {
        *old = new;
        return;
    }
    let asked = request.map_or(&[][..], |request| &request.operations);
    let place = |id: &OperationId| asked.iter().position(|known| known == id).unwrap_or(asked.len());
    let own = place(new.id());
    let before = entries.iter().take_while(|known| place(known.id()) <= own).count();
    entries.insert(before, new);
}

impl IdentificationReport {
    /// Returns the operations that are missing, failed or were skipped; `None` if the report has no request.
    #[must_use]
    pub fn unfinished(&self) -> Option<Vec<&OperationId>> {
        let mut left = unfinished(self.request.as_ref(), &self.operations)?;
        let request = self.request.as_ref()?;
        left.retain(|id| request.own_operations().any(|own| own == *id));
        Some(left)
    }

    /// Adds the results of an operation, replacing an earlier entry.
    pub fn put(&mut self, new: IdentifiedOperation) {
        put(self.request.as_ref(), &mut self.operations, new);
    }
}

impl VerificationReport {
    /// Returns the operations that are missing, failed or were skipped; `None` if the report has no request.
    #[must_use]
    pub fn unfinished(&self) -> Option<Vec<&OperationId>> {
        unfinished(self.request.as_ref(), &self.operations)
    }

    /// Adds the comparison of an operation, replacing an earlier entry.
    pub fn put(&mut self, new: VerifiedOperation) {
        put(self.request.as_ref(), &mut self.operations, new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: &str, failed: Option<&str>) -> VerifiedOperation {
        VerifiedOperation {
            id: id.parse().unwrap(),
            dots: 0,
            mismatches: 0,
            other_nan: 0,
            evidence: Vec::new(),
            blocks: Vec::new(),
            failed: failed.map(str::to_owned),
            duration_ns: 0,
        }
    }

    #[test]
    fn what_failed_or_is_missing_is_left_and_an_answer_takes_its_place_in_the_request() {
        let ids = ["dot.m1n1k4.f16.f16.f16.f16", "dot.m1n1k4.f32.bf16.bf16.f32", "dot.m1n1k8.f32.bf16.bf16.f32"];
        let request = Request::new(ids.iter().map(|id| id.parse().unwrap()), 1);
        let mut entries = Vec::new();
        put(Some(&request), &mut entries, entry(ids[2], None));
        put(Some(&request), &mut entries, entry(ids[0], Some("it hung")));
        let left = |entries: &[VerifiedOperation]| {
            unfinished(Some(&request), entries).unwrap().iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(left(&entries), ids[..2]);
        put(Some(&request), &mut entries, entry(ids[0], None));
        put(Some(&request), &mut entries, entry(ids[1], None));
        assert_eq!(entries.iter().map(|entry| entry.id.to_string()).collect::<Vec<_>>(), ids);
        assert!(left(&entries).is_empty() && unfinished(None, &entries).is_none());
    }
}
