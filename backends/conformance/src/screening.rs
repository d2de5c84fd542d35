//! The check of a device that screens its own units.

use std::time::Duration;

use mxprobe_api::{Device, Drill, Error, Injection, Operation, Screened, TileBatch, digest, execute, screen};
use mxprobe_dots::Random;

/// The number of blocks, and of tiles in each.
const BLOCKS: usize = 3;
const TILES: usize = 5;

/// Checks that right digests are accepted on all units together and on each alone, and that a bit inverted on one unit
/// is reported for that unit, with the bits of D.
pub(crate) fn screening(device: &dyn Device, operation: &Operation) -> Result<(), String> {
    let said = |error: Error| format!("an error: {error}");
    let mut random = Random(81);
    let mut operands = TileBatch::zeros(operation, BLOCKS * TILES);
    let TileBatch { a, b, c, scale_a, scale_b, .. } = &mut operands;
    for elements in [Some(a), Some(b), Some(c), scale_a.as_mut(), scale_b.as_mut()].into_iter().flatten() {
        random.fill(elements, Random::moderate);
    }
    let d = execute(device, operation, &operands).map_err(said)?;
    let block_bytes = d.bytes().len() / BLOCKS;
    let digests: Vec<u64> = d.bytes().chunks(block_bytes).map(digest).collect();
    let whole = Drill {
        operands: &operands,
        digests: &digests,
        duration: Duration::from_secs(3600),
        passes: 2,
        steps: 1,
        unit: None,
        inject: None,
    };
    let found = screen(device, operation, &whole).map_err(said)?;
    let units = match found.as_slice() {
        // The device, or this operation's units, cannot be told apart.
        [screened] if screened.unit.is_none() => Vec::new(),
        _ => device.screening().map(|screening| screening.units()).unwrap_or_default(),
    };
    let drills = [None].into_iter().chain(units.iter().copied().map(Some)).map(|unit| Drill { unit, ..whole });
    for drill in drills {
        let found = screen(device, operation, &drill).map_err(said)?;
        let worked: Vec<u32> = found.iter().filter_map(|screened| screened.unit).collect();
        let wanted = drill.unit.map_or_else(|| units.clone(), |unit| vec![unit]);
        if worked != wanted {
            return Err(format!("units {worked:?} worked, not {wanted:?}"));
        }
        for Screened { unit, blocks, wrong, .. } in found {
            if blocks == 0 || !blocks.is_multiple_of(2 * BLOCKS as u64) || wrong != 0 {
                return Err(format!(
                    "unit {unit:?} computed {blocks} blocks, {wrong} of them wrong, in two passes over {BLOCKS}"
                ));
            }
        }
    }
    let inject = Some(Injection { unit: units.first().copied(), ..Injection::default() });
    for screened in screen(device, operation, &Drill { inject, passes: 1, ..whole }).map_err(said)? {
        let is_meant = units.is_empty() || screened.unit == units.first().copied();
        let wrong = if is_meant { screened.blocks } else { 0 };
        if screened.wrong != wrong {
            return Err(format!(
                "of {} blocks {} are wrong on unit {:?}, not {wrong}",
                screened.blocks, screened.wrong, screened.unit
            ));
        }
        for kept in &screened.kept {
            let per_block = d.len() / BLOCKS;
            let is_inverted = |at: usize| kept.d.get(at) == d.get(kept.block * per_block + at) ^ 1;
            if let Some(at) = (0..per_block).find(|at| !is_inverted(*at)) {
                return Err(format!(
                    "element {at} of block {} is not the one whose lowest bit is inverted",
                    kept.block
                ));
            }
        }
    }
    Ok(())
}
