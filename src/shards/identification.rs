//! Shards of an identification, which split its operations.

use super::{Part, Sharded, ordered, shown, time_of};
use crate::{
    Shard,
    report::{IdentificationReport, ListedDevice, Request, Time, Tool},
    session::IdentifiedModel,
};
use mxprobe_models::Model;

impl Sharded for IdentificationReport {
    fn shard(&self) -> Option<Shard> {
        self.request.as_ref()?.shard
    }

    fn times(&self) -> Vec<&Time> {
        vec![&self.time]
    }

    fn tool(&self) -> &Tool {
        &self.tool
    }

    fn files(&self) -> &'static [&'static str] {
        &["--out", "--report"]
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let request = self.request.as_ref();
        vec![
            ("schema", self.schema.clone()),
            ("device", shown(&self.device)),
            ("seed", shown(&request.map(|request| request.seed))),
            ("NaN that count as the same", shown(&self.nan)),
            ("operations", shown(&request.map(|request| &request.operations))),
        ]
    }
}

/// Merges shards into the report of one run and the model of everything that was identified, if anything was. `out` is
/// the file that the report is written to, `model` the file of the model, and `name` the name of the model.
///
/// # Errors
/// If the parts are not all shards of one identification, each once and finished, or their operations make no model.
pub fn merge_identifications(
    parts: Vec<Part<IdentificationReport>>,
    out: &str,
    model: &str,
    name: &str,
) -> Result<(IdentificationReport, Option<Model>), String> {
    let parts = ordered(parts)?;
    let request = parts.first().and_then(|part| part.report.request.clone());
    let request = Request {
        shard: None,
        out: Some(model.to_owned()),
        ..request.ok_or("a shard does not say what was asked for")?
    };
    let mut operations = Vec::new();
    for (at, id) in request.operations.iter().enumerate() {
        let own = parts.iter().find(|part| part.report.shard().is_some_and(|shard| shard.has(at as u64)));
        let own = own.ok_or_else(|| format!("{id} is in no shard"))?;
        let found = own.report.operations.iter().find(|operation| operation.id == *id);
        operations.push(found.ok_or_else(|| format!("`{}` has no entry of {id}", own.name))?.clone());
    }
    let time = time_of(&parts);
    let first = parts.into_iter().next().ok_or("no shard was given")?.report;
    let device = first.device.clone();
    // The instruction of each operation is in its own model.
    let listed = ListedDevice { device, operations: Vec::new(), scalars: Vec::new(), refusals: Vec::new() };
    let mut identified = IdentifiedModel::new(&listed, name);
    for operation in &operations {
        identified.add(operation).map_err(|error| error.to_string())?;
    }
    let whole = if identified.is_empty() { None } else { Some(identified.model().map_err(|error| error.to_string())?) };
    let report = IdentificationReport {
        tool: first.tool.unsharded(&[("--out", model), ("--report", out)]),
        time,
        model: whole.as_ref().map(|_| model.to_owned()),
        request: Some(request),
        resumed: Vec::new(),
        operations,
        ..first
    };
    Ok((report, whole))
}
