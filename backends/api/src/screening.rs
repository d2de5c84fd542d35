//! Screening, an optional ability: computing the same tiles repeatedly on each unit of a device, and comparing digests
//! of the results there.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Device, Elements, Error, Format, Operation, OperationId, TileBatch, operation_of};

/// Work to be repeated: blocks of tiles, and the digests of the correct results.
#[derive(Clone, Copy, Debug)]
pub struct Drill<'a> {
    /// The operands: as many blocks of tiles as there are digests, all of the same length.
    pub operands: &'a TileBatch,
    /// The [`digest`] of each block's D.
    pub digests: &'a [u64],
    /// The time for which each unit repeats passes over all blocks, at least one.
    pub duration: Duration,
    /// The maximum number of passes over all blocks.
    pub passes: u64,
    /// The number of instructions that each tile executes, D of one being C of the next; `digests` are those of the last
    /// D. 1 unless [`Screening::steps`] offers more.
    pub steps: u32,
    /// The unit to run on; `None` for all units simultaneously.
    pub unit: Option<u32>,
    /// An error injected into the results before they are checked, to test the caller.
    pub inject: Option<Injection>,
}

impl Drill<'_> {
    /// The number of tiles in a block.
    #[must_use]
    pub fn block_tiles(&self) -> usize {
        self.operands.tiles / self.digests.len().max(1)
    }

    /// Splits the operands into blocks, each a batch of its own.
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

/// An injected error: one bit that is inverted in some results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Injection {
    /// The bit, counted from 0 for the lowest.
    pub bit: u32,
    /// Restricts it to this lane, as [`lanes`] counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<u32>,
    /// Restricts it to correct results with this biased exponent; never met by integers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exponent: Option<u64>,
    /// Restricts it to this unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<u32>,
    /// Restricts it to every `every`-th result that meets the other conditions; 0 and 1 mean all of them.
    #[serde(default)]
    pub every: u64,
}

impl Injection {
    /// Corrupts results of a unit. `met` counts the results that meet all conditions but `every`; it starts at 0.
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

/// The number of lanes in the results of an operation: the elements of a tile, or 16 if a tile has one element, since
/// vector registers then hold tiles side by side.
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

/// A digest of bytes that is certain to change if a single word of eight bytes changes; if several change, it misses
/// about one case in 2^64.
///
/// Word `i`, little-endian, goes into lane `i` modulo 4: lane = rotate_left(lane ^ word, 29) · 0x9e3779b97f4a7c15.
/// Lanes start as 1, 2, 3 and 4; an incomplete last word is padded with zeros. The digest starts as the number of
/// bytes, and the four lanes are folded into it by the same step. Each step is a bijection of the lane for a given
/// word, and of the word for a given lane.
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

/// The results of screening one unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Screened {
    /// The unit, if units can be told apart: the number of a logical processor.
    pub unit: Option<u32>,
    /// Whether it is certain that no other unit computed.
    pub pinned: bool,
    /// The number of blocks computed. Several parts of a unit may compute the same block.
    pub blocks: u64,
    /// The number of blocks whose digest was wrong.
    pub wrong: u64,
    /// The elapsed time, in nanoseconds.
    pub elapsed_ns: f64,
    /// The first wrong blocks, at most [`KEPT`]. If a unit reduces results to digests and a fault does not repeat when it
    /// computes them again for their words, D may be right.
    pub kept: Vec<WrongBlock>,
}

/// A block whose digest was wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct WrongBlock {
    /// The pass over all blocks, from 0.
    pub pass: u64,
    /// The block, from 0.
    pub block: usize,
    /// The D that the unit returned.
    pub d: Elements,
}

/// The maximum number of wrong blocks kept per unit.
pub const KEPT: usize = 8;

/// A device whose units can be screened one by one; [`Device::screening`] returns it.
pub trait Screening: Send + Sync {
    /// The units, as numbered in [`Drill::unit`]; empty if they cannot be told apart.
    fn units(&self) -> Vec<u32>;

    /// The number of instructions of an operation to chain in a [`Drill`] for results at full rate: so many that
    /// checking the last D costs little beside them. 1 if the device does not chain them.
    fn steps(&self, _: &OperationId) -> u32 {
        1
    }

    /// Computes the drill on one unit, or on all of them simultaneously.
    ///
    /// Call [`screen`] instead, which validates.
    ///
    /// # Errors
    /// Whatever the driver or the device reports; [`Error::is_unsupported`] if the operation is not chained.
    fn screen(&self, operation: &Operation, drill: &Drill<'_>) -> Result<Vec<Screened>, Error>;
}

/// Screens a device: validates, computes, and checks the shape of the result. The only way to screen one.
///
/// A device without the ability computes block after block with [`Device::execute`], as one unit without a number.
///
/// # Errors
/// [`Error::is_invalid`] if the device has no such operation or unit, or if the drill does not fit; otherwise what the
/// device reports.
pub fn screen(device: &dyn Device, operation: &Operation, drill: &Drill<'_>) -> Result<Vec<Screened>, Error> {
    operation_of(device, &operation.id)?;
    drill.operands.validate(operation)?;
    let (tiles, blocks) = (drill.operands.tiles, drill.digests.len());
    if tiles == 0 || blocks == 0 || !tiles.is_multiple_of(blocks) {
        return Err(Error::invalid(format!("{tiles} tiles cannot be split into {blocks} blocks of equal length")));
    }
    if let Some(inject) = drill.inject
        && inject.bit >= operation.id.d.bits()
    {
        let bits = operation.id.d.bits();
        return Err(Error::invalid(format!("bit {} is not one of the {bits} of {}", inject.bit, operation.id.d)));
    }
    let screening = device.screening();
    if drill.steps != 1 && screening.is_none_or(|screening| screening.steps(&operation.id) == 1) {
        return Err(Error::unsupported(format!("{} does not chain {}", device.info().selector, operation.id)));
    }
    if drill.steps == 0 || (drill.steps > 1 && operation.id.c != operation.id.d) {
        return Err(Error::unsupported(format!("{} is not a chain of {} steps", operation.id, drill.steps)));
    }
    let Some(screening) = screening else { return screen_by_tiles(device, operation, drill) };
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
        return Err(Error::driver(format!("{selector} screened {} and returned impossible results", operation.id)));
    }
    Ok(found)
}

/// Repeats passes over all blocks: computes each, injects the error, and compares the digest.
///
/// # Errors
/// Those of `execute`, which writes the D of a block.
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

/// Screens an operation block by block with [`Device::execute`], as a single unit without a number: for a device without
/// the ability, and for operations whose units it cannot tell apart.
///
/// # Errors
/// [`Error::is_unsupported`] for a chain of instructions or a single unit; otherwise what the device reports.
pub fn screen_by_tiles(device: &dyn Device, operation: &Operation, drill: &Drill<'_>) -> Result<Vec<Screened>, Error> {
    let selector = &device.info().selector;
    if drill.steps != 1 {
        return Err(Error::unsupported(format!("{selector} does not chain {}", operation.id)));
    }
    if let Some(unit) = drill.unit {
        return Err(Error::unsupported(format!("{selector} has no unit {unit} for {}", operation.id)));
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
