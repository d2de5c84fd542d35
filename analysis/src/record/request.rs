//! The request of `identify` and `verify`.

use mxprobe_api::OperationId;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::shard::Shard;

/// The request of `identify` or `verify`, so that `--resume` continues with the same operations and inputs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Request {
    /// The operations, in order.
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub operations: Vec<OperationId>,
    /// The seed of the inputs.
    pub seed: u64,
    /// The share of the work that was asked for, `I/N`; absent if it is all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub shard: Option<Shard>,
    /// `verify`: minimum number of dots of each operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// `verify`: the SHA-256 of the model as `Model::to_toml` writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_sha256: Option<String>,
    /// `identify`: the model file to write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out: Option<String>,
}

impl Request {
    /// Builds a request from operations and the seed of their inputs.
    pub fn new(operations: impl IntoIterator<Item = OperationId>, seed: u64) -> Self {
        Self {
            operations: operations.into_iter().collect(),
            seed,
            shard: None,
            count: None,
            model_sha256: None,
            out: None,
        }
    }

    /// The operations of this share of an identification, whose shards take turns; all, if it is not a share.
    pub fn own_operations(&self) -> impl Iterator<Item = &OperationId> {
        let has = |at: usize| self.shard.is_none_or(|shard| shard.has(at as u64));
        self.operations.iter().enumerate().filter(move |(at, _)| has(*at)).map(|(_, id)| id)
    }

    /// Returns the SHA-256 of a text, in hexadecimal.
    #[must_use]
    pub fn digest(text: &str) -> String {
        Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
