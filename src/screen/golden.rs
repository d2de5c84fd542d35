//! The inputs of a screen, and the digests of the right results.

use std::sync::OnceLock;

use mxprobe_api::{Elements, Error, Format, Operation, OperationId, Random, TileBatch, digest, execute};
use mxprobe_models::Model;
use mxprobe_sim::ModelDevice;
use serde::{Deserialize, Serialize};

use crate::{
    dots::{Dot, Draw, pack, seed_of},
    nan_bits::{NanBits, is_nan},
    report::Request,
};

/// The elements of D in all blocks of an operation, unless its tiles are large: 32 blocks of 4096.
pub const ELEMENTS: usize = 131_072;
/// The fewest elements of D in a block: its operands and results fit in the second-level cache of a core.
pub const BLOCK_ELEMENTS: usize = 4_096;
/// The fewest blocks.
const FEWEST: usize = 4;
/// Blocks of tiles that execute a chain of instructions, and the fewest elements of D in each. A device at full rate
/// needs no more than a group of tiles for each of its parts, and the model computes every step of the chain.
const CHAINED: (usize, usize) = (2, 512);

/// The reference model of some operations.
pub struct Reference {
    device: ModelDevice,
    sha256: OnceLock<String>,
}

impl Reference {
    /// Takes a model.
    #[must_use]
    pub fn new(model: Model) -> Self {
        Self { device: ModelDevice::new(model), sha256: OnceLock::new() }
    }

    /// The model.
    #[must_use]
    pub fn model(&self) -> &Model {
        self.device.model()
    }

    /// Its name, with the variant if it has one.
    #[must_use]
    pub fn name(&self) -> String {
        let Model { name, variant, .. } = self.model();
        variant.as_ref().map_or_else(|| name.clone(), |variant| format!("{name}@{variant}"))
    }

    /// The SHA-256 of the model as `Model::to_toml` writes it.
    fn sha256(&self) -> &str {
        self.sha256.get_or_init(|| Request::digest(&self.model().to_toml()))
    }

    /// Computes D of the inputs after a number of instructions, D of one being C of the next.
    ///
    /// # Errors
    /// If the model has no such operation.
    pub(super) fn right(&self, operation: &Operation, operands: &TileBatch, steps: u32) -> Result<Elements, Error> {
        let mut d = execute(&self.device, operation, operands)?;
        if steps > 1 {
            let mut operands = operands.clone();
            for _ in 1..steps {
                operands.c = d;
                d = execute(&self.device, operation, &operands)?;
            }
        }
        Ok(d)
    }
}

/// The choice of the inputs.
#[derive(Clone, Copy, Debug)]
pub struct Inputs {
    /// The seed.
    pub seed: u64,
    /// Which NaN results are right; if any is, inputs are such that no result is NaN.
    pub nan: NanBits,
}

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
    /// The number of instructions that each tile executes.
    pub steps: u32,
    /// Which NaN results are right; if any is, no result is NaN.
    pub nan: NanBits,
}

/// The format of files with digests.
const SCHEMA: &str = "mxprobe-golden/3";

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

/// The number of blocks of an operation, and of tiles in a block.
fn blocks(id: &OperationId, steps: u32) -> [usize; 2] {
    let (m, n, _) = id.shape.sizes();
    if steps > 1 {
        let (blocks, elements) = CHAINED;
        return [blocks, elements.div_ceil(m * n)];
    }
    let tiles = BLOCK_ELEMENTS.div_ceil(m * n);
    [(ELEMENTS / (tiles * m * n)).max(FEWEST), tiles]
}

/// The key of an operation's digests.
pub(super) fn key(reference: &Reference, id: &OperationId, inputs: Inputs, steps: u32) -> Key {
    Key {
        schema: SCHEMA.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        model_sha256: reference.sha256().into(),
        operation: id.clone(),
        seed: inputs.seed,
        blocks: blocks(id, steps),
        steps,
        nan: inputs.nan,
    }
}

/// Draws the inputs of all blocks: dots of every directed class in turn, packed into tiles. For a chain, see
/// [`chained`].
///
/// # Errors
/// If the model has no such operation.
pub(super) fn operands(
    reference: &Reference,
    operation: &Operation,
    inputs: Inputs,
    steps: u32,
) -> Result<TileBatch, Error> {
    let (m, n, _) = operation.id.shape.sizes();
    let [blocks, tiles] = blocks(&operation.id, steps);
    if steps > 1 {
        return Ok(chained(operation, seed_of(inputs.seed, 78), blocks * tiles, steps));
    }
    let draw = Draw::new(&operation.id, seed_of(inputs.seed, 77));
    let count = blocks * tiles * m.min(n);
    match inputs.nan {
        NanBits::Bits => Ok(pack(operation, &draw.take(count).collect::<Vec<_>>()).0),
        NanBits::Any => without_nan(reference, operation, draw, count),
    }
}

/// The most rounds of replacing tiles that have a NaN: a few are enough.
const ROUNDS: usize = 100;

/// Packs dots of finite operands into tiles, and replaces the dots of tiles in which any result is NaN.
fn without_nan(reference: &Reference, operation: &Operation, draw: Draw<'_>, count: usize) -> Result<TileBatch, Error> {
    let id = &operation.id;
    let (m, n, _) = id.shape.sizes();
    let mut draw = draw.filter(|dot| is_finite(id, dot));
    let mut dots: Vec<Dot> = draw.by_ref().take(count).collect();
    for _ in 0..ROUNDS {
        let operands = pack(operation, &dots).0;
        let d = reference.right(operation, &operands, 1)?;
        let mut is_done = true;
        for (tile, dots) in dots.chunks_mut(m.min(n)).enumerate() {
            if (tile * m * n..(tile + 1) * m * n).any(|at| is_nan(id.d, d.get(at))) {
                dots.iter_mut().zip(&mut draw).for_each(|(dot, drawn)| *dot = drawn);
                is_done = false;
            }
        }
        if is_done {
            return Ok(operands);
        }
    }
    Err(Error::unsupported(format!("after {ROUNDS} rounds, finite inputs of {id} still give NaN in some tiles")))
}

fn is_finite(id: &OperationId, dot: &Dot) -> bool {
    let all = |format: Format, bits: &[u64]| bits.iter().all(|bits| format.to_f64(*bits).is_finite());
    let have_scales = id
        .block_scale()
        .zip(dot.scales.as_ref())
        .is_none_or(|(scale, (of_a, of_b))| all(scale.format, of_a) && all(scale.format, of_b));
    have_scales && all(id.a, &dot.a) && all(id.b, &dot.b) && all(id.c, &[dot.c])
}

/// Draws the inputs of a chain: values from 1/4 to 4 with every bit random, and a C so much larger that the sum seldom
/// changes its exponent, so that a wrong bit stays in the sum until the end. Integers have any bits.
fn chained(operation: &Operation, seed: u64, tiles: usize, steps: u32) -> TileBatch {
    let mut random = Random(seed);
    let mut batch = TileBatch::zeros(operation, tiles);
    let TileBatch { a, b, c, scale_a, scale_b, .. } = &mut batch;
    for elements in [Some(a), Some(b), Some(&mut *c), scale_a.as_mut(), scale_b.as_mut()].into_iter().flatten() {
        random.fill(elements, Random::dense);
    }
    let format = operation.id.c;
    if !format.is_integer() {
        // A sum of random signs grows with the square root of the number of its terms.
        let factor = if format == Format::F16 { 1.0 } else { 512.0 } * f64::from(steps).sqrt();
        (0..c.len()).for_each(|at| c.set(at, format.from_f64(format.to_f64(c.get(at)) * factor)));
    }
    batch
}

/// The digest of each of some blocks of results.
pub(super) fn digests(d: &Elements, blocks: usize) -> Vec<u64> {
    d.bytes().chunks(d.bytes().len() / blocks).map(digest).collect()
}

/// A digest of all inputs.
pub(super) fn digest_of_operands(operands: &TileBatch) -> u64 {
    let TileBatch { a, b, c, scale_a, scale_b, .. } = operands;
    let parts = [Some(a), Some(b), Some(c), scale_a.as_ref(), scale_b.as_ref()];
    let words = parts.into_iter().flatten().map(|part| digest(part.bytes()));
    digest(&words.flat_map(u64::to_le_bytes).collect::<Vec<u8>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(nan: NanBits) -> Inputs {
        Inputs { seed: 1, nan }
    }

    #[test]
    fn no_result_is_nan_where_any_nan_is_right() {
        for (model, id) in [
            ("llvmpipe", "coopmat.m8n8k8.f16.f16.f16.f16"),
            ("h100", "wgmma.m64n64k16.f16.f16.f16.f16"),
            ("rtx5090", "mma.m16n8k64.f32.e2m1.e2m1.f32.block16.ue4m3"),
            ("avx512", "dot.m1n1k2.f32.bf16.bf16.f32"),
            ("avx512", "dot.m1n1k4.s32.u8.s8.s32"),
        ] {
            let reference = Reference::new(mxprobe_models::load(model).expect("a model"));
            let id: OperationId = id.parse().expect("an id");
            let operation = reference.model().operations[&id].clone();
            let count = |nan| {
                let operands = operands(&reference, &operation, inputs(nan), 1).expect("an operation of it");
                let right = reference.right(&operation, &operands, 1).expect("it computes");
                assert_eq!(right.len(), ELEMENTS.max(FEWEST * id.shape.m as usize * id.shape.n as usize), "{id}");
                right.iter().filter(|bits| is_nan(id.d, *bits)).count()
            };
            assert_eq!(count(NanBits::Any), 0, "{id}");
            assert_eq!(count(NanBits::Bits) > 0, !id.d.is_integer(), "{id}");
        }
    }

    #[test]
    fn large_tiles_have_fewer_blocks() {
        let of = |id: &str, steps| blocks(&id.parse().expect("an id"), steps);
        assert_eq!(of("dot.m1n1k2.f32.bf16.bf16.f32", 1), [32, 4096]);
        assert_eq!(of("mma.m16n8k16.f32.f16.f16.f32", 1), [32, 32]);
        assert_eq!(of("wgmma.m64n256k16.f32.f16.f16.f32", 1), [8, 1]);
        assert_eq!(of("tcgen05.m128n256k16.f32.f16.f16.f32", 1), [4, 1]);
        assert_eq!(of("mma.m16n8k16.f32.f16.f16.f32", 256), [2, 4]);
        assert_eq!(of("wgmma.m64n256k16.f32.f16.f16.f32", 256), [2, 1]);
    }

    /// The share of wrong lowest bits, planted in all sums after some of the instructions of a chain, that are left at
    /// its end.
    fn left(id: &str, steps: u32, planted: [u32; 3]) -> f64 {
        let reference = Reference::new(mxprobe_models::load("h100").expect("a model"));
        let id: OperationId = id.parse().expect("an id");
        let operation = reference.model().operations[&id].clone();
        let operands = operands(&reference, &operation, inputs(NanBits::Bits), steps).expect("an operation of it");
        let right = reference.right(&operation, &operands, steps).expect("it computes");
        let finite = right.iter().filter(|bits| id.d.to_f64(*bits).is_finite()).count();
        assert_eq!(finite, right.len(), "sums overflow");
        let mut kept = 0;
        for at in planted {
            let mut after = operands.clone();
            after.c = reference.right(&operation, &operands, at).expect("it computes");
            (0..after.c.len()).for_each(|place| after.c.set(place, after.c.get(place) ^ 1));
            let wrong = reference.right(&operation, &after, steps - at).expect("it computes");
            kept += right.iter().zip(wrong.iter()).filter(|(right, wrong)| right != wrong).count();
        }
        kept as f64 / (3 * right.len()) as f64
    }

    #[test]
    fn a_wrong_bit_in_the_middle_of_a_chain_is_seen_at_its_end() {
        let share = left("mma.m16n8k16.f32.f16.f16.f32", 256, [1, 100, 255]);
        assert!(share > 0.8, "{share} of the wrong bits are left");
        let share = left("wmma.m16n16k16.f32.f16.f16.f32", 1024, [1, 400, 1023]);
        assert!(share > 0.8, "{share} of the wrong bits are left");
    }
}
