//! The inputs of a screen, and the digests of the right results.

use mxprobe_api::{Elements, Error, Operation, OperationId, TileBatch, digest, execute};
use mxprobe_models::Model;
use mxprobe_sim::ModelDevice;
use serde::{Deserialize, Serialize};

use crate::{
    dots::{Draw, pack, seed_of},
    report::Request,
};

/// Blocks of one operation.
pub const BLOCKS: usize = 32;
/// The fewest elements of D in a block: its operands and results fit in the second-level cache of a core.
pub const BLOCK_ELEMENTS: usize = 4_096;

/// The identity of golden digests: equal keys have equal digests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// The format of the file.
    pub schema: String,
    /// The version of this program, since another one may draw other inputs.
    pub version: String,
    /// The SHA-256 of the model as `Model::to_toml` writes it.
    pub model_sha256: String,
    /// The operation.
    pub operation: OperationId,
    /// The seed.
    pub seed: u64,
    /// The number of blocks, and of tiles in a block.
    pub blocks: [usize; 2],
}

/// The format of files with digests.
const SCHEMA: &str = "mxprobe-golden/1";

/// The inputs of an operation in blocks, and the digests of the right results.
#[derive(Clone, Debug, PartialEq)]
pub struct Golden {
    /// The identity of the digests.
    pub key: Key,
    /// The inputs of all blocks.
    pub operands: TileBatch,
    /// The digest of D of each block.
    pub digests: Vec<u64>,
}

/// The number of tiles in a block of an operation.
fn block_tiles(id: &OperationId) -> usize {
    let (m, n, _) = id.shape.sizes();
    BLOCK_ELEMENTS.div_ceil(m * n)
}

/// The key of an operation's digests.
pub(super) fn key(model_sha256: &str, id: &OperationId, seed: u64) -> Key {
    Key {
        schema: SCHEMA.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        model_sha256: model_sha256.into(),
        operation: id.clone(),
        seed,
        blocks: [BLOCKS, block_tiles(id)],
    }
}

/// The SHA-256 of a model.
pub(super) fn hash(model: &Model) -> String {
    Request::digest(&model.to_toml())
}

/// Draws the inputs of all blocks: dots of every directed class in turn, packed into tiles.
pub(super) fn operands(operation: &Operation, seed: u64) -> TileBatch {
    let (m, n, _) = operation.id.shape.sizes();
    let dots: Vec<_> =
        Draw::new(&operation.id, seed_of(seed, 77)).take(BLOCKS * block_tiles(&operation.id) * m.min(n)).collect();
    pack(operation, &dots).0
}

/// Computes D of the inputs with the model.
///
/// # Errors
/// If the model has no such operation.
pub(super) fn right(model: &Model, operation: &Operation, operands: &TileBatch) -> Result<Elements, Error> {
    let device = ModelDevice::new(model.clone());
    execute(&device, operation, operands)
}

/// The digest of each block of results.
pub(super) fn digests(d: &Elements) -> Vec<u64> {
    d.bytes().chunks(d.bytes().len() / BLOCKS).map(digest).collect()
}

/// A digest of all inputs.
pub(super) fn digest_of_operands(operands: &TileBatch) -> u64 {
    let TileBatch { a, b, c, scale_a, scale_b, .. } = operands;
    let parts = [Some(a), Some(b), Some(c), scale_a.as_ref(), scale_b.as_ref()];
    let words = parts.into_iter().flatten().map(|part| digest(part.bytes()));
    digest(&words.flat_map(u64::to_le_bytes).collect::<Vec<u8>>())
}
