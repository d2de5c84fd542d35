//! Shards of a verification, which split the blocks of dots of each operation.

use mxprobe_api::OperationId;

use super::{Part, Sharded, ordered, shown, time_of};
use crate::{
    Shard,
    identify::{Counted, count_blocks, dots_of_shard},
    report::{Request, Time, Tool, VerificationReport, VerifiedOperation},
};

impl Sharded for VerificationReport {
    fn shard(&self) -> Option<Shard> {
        self.request.as_ref()?.shard
    }

    fn times(&self) -> Vec<&Time> {
        vec![&self.time]
    }

    fn tool(&self) -> &Tool {
        &self.tool
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let request = self.request.as_ref();
        vec![
            ("schema", self.schema.clone()),
            ("device", shown(&self.device)),
            ("model", self.model.clone()),
            ("model's SHA-256", shown(&request.and_then(|request| request.model_sha256.as_ref()))),
            ("seed", shown(&request.map(|request| request.seed))),
            ("number of dots", shown(&request.and_then(|request| request.count))),
            ("NaN that count as the same", shown(&self.nan)),
            ("operations", shown(&request.map(|request| &request.operations))),
        ]
    }
}

/// Merges shards into the report of one run. `out` is the file that the report is written to.
///
/// # Errors
/// If the parts are not all shards of one verification, each once and finished.
pub fn merge_verifications(parts: Vec<Part<VerificationReport>>, out: &str) -> Result<VerificationReport, String> {
    let parts = ordered(parts)?;
    let request = parts.first().and_then(|part| part.report.request.clone());
    let request = Request { shard: None, ..request.ok_or("a shard does not say what was asked for")? };
    let count = request.count.ok_or("a shard does not say how many dots were asked for")?;
    let operations: Result<Vec<_>, _> = request.operations.iter().map(|id| operation(&parts, id, count)).collect();
    let (operations, time) = (operations?, time_of(&parts));
    let first = parts.into_iter().next().ok_or("no shard was given")?.report;
    Ok(VerificationReport {
        tool: first.tool.unsharded(&[("--out", out)]),
        time,
        request: Some(request),
        resumed: Vec::new(),
        operations,
        ..first
    })
}

/// One operation, from what all shards found.
fn operation(parts: &[Part<VerificationReport>], id: &OperationId, count: u64) -> Result<VerifiedOperation, String> {
    let mut found = Vec::new();
    for part in parts {
        let operation = part.report.operations.iter().find(|operation| operation.id == *id);
        let operation = operation.ok_or_else(|| format!("`{}` has no entry of {id}", part.name))?;
        if operation.failed.is_some() {
            return Ok(operation.clone());
        }
        let has = |block| part.report.shard().is_some_and(|shard| shard.has(block));
        let wanted = dots_of_shard(id, count, has, &operation.blocks);
        if operation.dots != wanted || operation.blocks.iter().any(|block| !has(block.block)) {
            let dots = operation.dots;
            return Err(format!(
                "`{}` compared {dots} dots of {id}, and the share of the shard is {wanted}",
                part.name
            ));
        }
        found.push(operation);
    }
    let Counted { dots, mismatches, other_nan, evidence } =
        count_blocks(id, count, found.iter().flat_map(|operation| &operation.blocks));
    Ok(VerifiedOperation {
        id: id.clone(),
        dots,
        mismatches,
        other_nan,
        evidence,
        blocks: Vec::new(),
        failed: None,
        duration_ns: found.iter().map(|operation| operation.duration_ns).sum(),
    })
}
