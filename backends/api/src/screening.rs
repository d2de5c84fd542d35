//! Screening, an ability that a device may have: to compute the same tiles again and again on each of its units, and to compare
//! digests of the results there.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Device, Elements, Error, Format, Operation, OperationId, TileBatch, operation_of};

/// Work that is computed again and again: blocks of tiles, and the digests of the right results.
#[derive(Clone, Copy, Debug)]
pub struct Drill<'a> {
    /// The operands. They are as many blocks of tiles, of the same length each, as there are digests.
    pub operands: &'a TileBatch,
    /// The [`digest`] of D of each block.
    pub digests: &'a [u64],
    /// Each unit goes over all blocks until this has passed, once at the least.
    pub duration: Duration,
    /// Passes over all blocks, at the most.
    pub passes: u64,
    /// The unit that works; all of them at once, if it does not say.
    pub unit: Option<u32>,
    /// What is made wrong in the results before they are looked at, to test who looks.
    pub inject: Option<Injection>,
}

impl Drill<'_> {
    /// How many tiles a block has.
    #[must_use]
    pub fn block_tiles(&self) -> usize {
        self.operands.tiles / self.digests.len().max(1)
    }

    /// The blocks, each a batch of its own.
    #[must_use]
    pub fn blocks(&self) -> Vec<TileBatch> {
        let Self { operands, digests, .. } = self;
        let part = |elements: &Elements, at: usize| {
            let bytes = elements.bytes().len() / digests.len();
            let part = elements.bytes()[at * bytes..][..bytes].to_vec();
            Elements::from_bytes(elements.format(), part).expect("a whole number of elements that were elements before")
        };
        (0..digests.len())
            .map(|at| TileBatch {
                tiles: self.block_tiles(),
                a: part(&operands.a, at),
                b: part(&operands.b, at),
                c: part(&operands.c, at),
                scale_a: operands.scale_a.as_ref().map(|scales| part(scales, at)),
                scale_b: operands.scale_b.as_ref().map(|scales| part(scales, at)),
            })
            .collect()
    }
}

/// One bit that is inverted in some results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Injection {
    /// Which bit, 0 the lowest.
    pub bit: u32,
    /// Only in this lane, as [`lanes`] counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<u32>,
    /// Only if the right result has this biased exponent; of integers, never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exponent: Option<u64>,
    /// Only on this unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<u32>,
    /// Only in each `every`-th result for which the rest holds; in all, if it is 0 or 1.
    #[serde(default)]
    pub every: u64,
}

impl Injection {
    /// Makes results of a unit wrong. `met` counts those for which all but `every` holds, and begins at 0.
    pub fn apply(&self, id: &OperationId, unit: Option<u32>, met: &mut u64, d: &mut Elements) {
        if self.unit.is_some() && self.unit != unit {
            return;
        }
        let lanes = lanes(id);
        let (from, step) = self.lane.map_or((0, 1), |lane| (lane as usize, lanes));
        if from >= lanes {
            return;
        }
        for at in (from..d.len()).step_by(step) {
            let bits = d.get(at);
            if self.exponent.is_some() && self.exponent != biased_exponent(id.d, bits) {
                continue;
            }
            *met += 1;
            if met.is_multiple_of(self.every.max(1)) {
                d.set(at, bits ^ 1 << self.bit);
            }
        }
    }
}

/// How many lanes the results of an operation have: the elements of a tile; 16 if a tile has one element, as vector registers
/// hold tiles side by side then.
#[must_use]
pub fn lanes(id: &OperationId) -> usize {
    let (m, n, _) = id.shape.sizes();
    if m * n == 1 { 16 } else { m * n }
}

/// The exponent field of a floating-point number; `None` for integers.
#[must_use]
pub fn biased_exponent(format: Format, bits: u64) -> Option<u64> {
    let float = format.as_float()?;
    let sign = u32::from(float.is_signed());
    let width = format.bits() - sign - float.fraction_bits;
    Some(bits >> float.fraction_bits & ((1 << width) - 1))
}

/// A digest of bytes that changes if any one word of eight bytes changes, for certain, and if several do, but for about one case
/// in 2^64.
///
/// Word `i`, little-endian, goes into lane `i` modulo 4: lane = rotate_left(lane ^ word, 29) · 0x9e3779b97f4a7c15. Lanes begin as
/// 1, 2, 3 and 4; a last word that is not whole is filled with zeros. The digest begins as the number of bytes, and takes the four
/// lanes in the same way. Each step is a bijection of the lane for a given word, and of the word for a given lane.
#[must_use]
pub fn digest(bytes: &[u8]) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let step = |lane: u64, word: u64| (lane ^ word).rotate_left(29).wrapping_mul(ODD);
    let word = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    };
    let mut lanes = [1u64, 2, 3, 4];
    let mut whole = bytes.chunks_exact(32);
    for words in &mut whole {
        for (lane, bytes) in lanes.iter_mut().zip(words.chunks_exact(8)) {
            *lane = step(*lane, word(bytes));
        }
    }
    for (lane, bytes) in lanes.iter_mut().zip(whole.remainder().chunks(8)) {
        *lane = step(*lane, word(bytes));
    }
    lanes.into_iter().fold(bytes.len() as u64, step)
}

/// What one unit computed.
#[derive(Clone, Debug, PartialEq)]
pub struct Screened {
    /// Which unit, if they can be told apart: the number of a logical processor.
    pub unit: Option<u32>,
    /// Whether it is certain that this unit computed, and no other one.
    pub pinned: bool,
    /// Blocks that were computed.
    pub blocks: u64,
    /// Those whose digest was wrong.
    pub wrong: u64,
    /// How long it took, in nanoseconds.
    pub elapsed_ns: f64,
    /// The first wrong blocks, [`KEPT`] at the most.
    pub kept: Vec<WrongBlock>,
}

/// D of a block whose digest was wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct WrongBlock {
    /// The pass over all blocks, from 0.
    pub pass: u64,
    /// The block, from 0.
    pub block: usize,
    /// What was returned.
    pub d: Elements,
}

/// The most wrong blocks of a unit that are kept.
pub const KEPT: usize = 8;

/// A device whose units can be screened one by one; [`Device::screening`] gives it.
pub trait Screening: Send + Sync {
    /// The units, as [`Drill::unit`] names them; none, if they cannot be told apart.
    fn units(&self) -> Vec<u32>;

    /// Computes the drill on one unit, or on all of them at once.
    ///
    /// Call [`screen`] instead, which validates.
    ///
    /// # Errors
    /// Whatever the driver or the device reports.
    fn screen(&self, operation: &Operation, drill: &Drill<'_>) -> Result<Vec<Screened>, Error>;
}

/// Validates, screens, and checks the shape of what came back: the one way to screen a device.
///
/// A device without the ability computes block after block with [`Device::execute`], as one unit without a number.
///
/// # Errors
/// [`Error::is_invalid`] if the device has no such operation or unit, or the drill does not fit; else what the device reports.
pub fn screen(device: &dyn Device, operation: &Operation, drill: &Drill<'_>) -> Result<Vec<Screened>, Error> {
    operation_of(device, &operation.id)?;
    drill.operands.validate(operation)?;
    let (tiles, blocks) = (drill.operands.tiles, drill.digests.len());
    if tiles == 0 || blocks == 0 || !tiles.is_multiple_of(blocks) {
        return Err(Error::invalid(format!("{tiles} tiles are not {blocks} blocks of one length")));
    }
    if let Some(inject) = drill.inject
        && inject.bit >= operation.id.d.bits()
    {
        let bits = operation.id.d.bits();
        return Err(Error::invalid(format!("bit {} is not one of the {bits} of {}", inject.bit, operation.id.d)));
    }
    let Some(screening) = device.screening() else { return by_tiles(device, operation, drill) };
    if let Some(unit) = drill.unit.filter(|unit| !screening.units().contains(unit)) {
        return Err(Error::invalid(format!("{} has no unit {unit}", device.info().selector)));
    }
    let found = screening.screen(operation, drill)?;
    let (m, n, _) = operation.id.shape.sizes();
    let length = drill.block_tiles() * m * n;
    let is_whole = |kept: &WrongBlock| kept.d.len() == length && kept.d.format() == operation.id.d;
    if found.is_empty()
        || found.iter().any(|unit| {
            unit.blocks == 0
                || unit.wrong > unit.blocks
                || unit.kept.is_empty() != (unit.wrong == 0)
                || !unit.elapsed_ns.is_finite()
                || unit.kept.iter().any(|kept| kept.block >= blocks || !is_whole(kept))
        })
    {
        let selector = &device.info().selector;
        return Err(Error::driver(format!("{selector} screened {} and returned what cannot be", operation.id)));
    }
    Ok(found)
}

/// Goes over all blocks again and again: computes, injects, compares.
///
/// # Errors
/// Those of `execute`, which writes D of a block.
pub fn go_over(
    id: &OperationId,
    drill: &Drill<'_>,
    blocks: &[TileBatch],
    (unit, pinned): (Option<u32>, bool),
    mut execute: impl FnMut(&TileBatch, &mut Elements) -> Result<(), Error>,
) -> Result<Screened, Error> {
    let (m, n, _) = id.shape.sizes();
    let mut d = Elements::zeros(id.d, drill.block_tiles() * m * n);
    let mut found = Screened { unit, pinned, blocks: 0, wrong: 0, elapsed_ns: 0.0, kept: Vec::new() };
    let (mut met, mut pass) = (0, 0);
    let start = std::time::Instant::now();
    loop {
        for (at, (block, wanted)) in blocks.iter().zip(drill.digests).enumerate() {
            execute(block, &mut d)?;
            if let Some(inject) = &drill.inject {
                inject.apply(id, unit, &mut met, &mut d);
            }
            found.blocks += 1;
            if digest(d.bytes()) != *wanted {
                found.wrong += 1;
                if found.kept.len() < KEPT {
                    found.kept.push(WrongBlock { pass, block: at, d: d.clone() });
                }
            }
        }
        pass += 1;
        if pass >= drill.passes || start.elapsed() >= drill.duration {
            found.elapsed_ns = start.elapsed().as_secs_f64() * 1e9;
            return Ok(found);
        }
    }
}

/// Screens a device that does not have the ability.
fn by_tiles(device: &dyn Device, operation: &Operation, drill: &Drill<'_>) -> Result<Vec<Screened>, Error> {
    if let Some(unit) = drill.unit {
        return Err(Error::invalid(format!("{} has no unit {unit}", device.info().selector)));
    }
    let compute = |block: &TileBatch, d: &mut Elements| {
        *d = crate::execute(device, operation, block)?;
        Ok(())
    };
    go_over(&operation.id, drill, &drill.blocks(), (None, true), compute).map(|found| vec![found])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_changes_with_every_bit_and_with_the_length() {
        let bytes: Vec<u8> = (0..100u8).collect();
        let right = digest(&bytes);
        for bit in 0..bytes.len() * 8 {
            let mut wrong = bytes.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(digest(&wrong), right, "bit {bit}");
        }
        assert_ne!(digest(&[0; 8]), digest(&[0; 9]));
        assert_ne!(digest(&[]), digest(&[0]));
    }

    #[test]
    fn what_is_exchanged_between_two_words_is_seen() {
        let mut bytes = [0u8; 64];
        (bytes[0], bytes[32]) = (1, 2);
        let right = digest(&bytes);
        (bytes[0], bytes[32]) = (2, 1);
        assert_ne!(digest(&bytes), right);
        (bytes[0], bytes[32], bytes[8]) = (0, 2, 1);
        assert_ne!(digest(&bytes), right);
    }

    #[test]
    fn the_exponent_is_that_of_the_format() {
        assert_eq!(biased_exponent(Format::F32, 0xbf80_0000), Some(127));
        assert_eq!(biased_exponent(Format::F16, 0x3c00), Some(15));
        assert_eq!(biased_exponent(Format::S32, 1), None);
    }

    #[test]
    fn an_injection_inverts_one_bit_where_all_of_its_conditions_hold() {
        let id: OperationId = "dot.m1n1k2.f32.bf16.bf16.f32".parse().expect("an id");
        let one = || Elements::from_bits(Format::F32, (0..64).map(|_| 0x3f80_0000));
        let wrong = |inject: Injection, unit: Option<u32>| -> Vec<usize> {
            let (mut d, mut met) = (one(), 0);
            inject.apply(&id, unit, &mut met, &mut d);
            (0..64).filter(|at| d.get(*at) != 0x3f80_0000).collect()
        };
        let inject = Injection { bit: 3, ..Injection::default() };
        assert_eq!(wrong(inject, None).len(), 64);
        assert_eq!(wrong(Injection { lane: Some(5), ..inject }, None), [5, 21, 37, 53]);
        assert_eq!(wrong(Injection { lane: Some(5), every: 2, ..inject }, None), [21, 53]);
        assert_eq!(wrong(Injection { exponent: Some(126), ..inject }, None), <[usize; 0]>::default());
        assert_eq!(wrong(Injection { exponent: Some(127), ..inject }, None).len(), 64);
        assert_eq!(wrong(Injection { unit: Some(1), ..inject }, Some(0)), <[usize; 0]>::default());
        assert_eq!(wrong(Injection { unit: Some(1), ..inject }, Some(1)).len(), 64);
    }
}
