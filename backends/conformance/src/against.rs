//! Bit-for-bit comparison of a device with a reference.

use mxprobe_api::{Device, Operation, execute};
use mxprobe_dots::{CLASSES, Dot, Maker, pack, place};

use crate::{Violation, suite::caught};

/// The number of dots of each class that [`against`] computes.
const DOTS: usize = 192;

/// Compares a device with a reference, such as a model of it, on directed and random dots of every class of
/// [`CLASSES`].
///
/// Returns at most one violation per class: how many elements differ, and the first of them with all its bits.
#[must_use]
pub fn against(device: &dyn Device, operation: &Operation, reference: &dyn Device) -> Vec<Violation> {
    against_dots(device, operation, reference, DOTS, 1)
}

/// Like [`against`], with `dots` dots of each class, drawn from `seed`.
#[must_use]
pub fn against_dots(
    device: &dyn Device,
    operation: &Operation,
    reference: &dyn Device,
    dots: usize,
    seed: u64,
) -> Vec<Violation> {
    let id = &operation.id;
    let mut violations = Vec::new();
    for (class, (check, _)) in CLASSES.iter().enumerate() {
        let mut maker = Maker::new(id, seed);
        let dots: Vec<Dot> = (0..dots).filter_map(|index| maker.make(class, index)).collect();
        if let Err(found) = caught(|| compare(device, operation, reference, &dots)) {
            violations.push(Violation { check, operation: Some(id.clone()), found });
        }
    }
    violations
}

/// Compares every element of the tiles, including those where the row of one dot meets the column of another.
fn compare(device: &dyn Device, operation: &Operation, reference: &dyn Device, dots: &[Dot]) -> Result<(), String> {
    let id = &operation.id;
    let (batch, _) = pack(operation, dots);
    let of = |device: &dyn Device| {
        execute(device, operation, &batch).map_err(|error| format!("{}: {error}", device.info().selector))
    };
    let (found, wanted) = (of(device)?, of(reference)?);
    let differs = |at: &usize| found.get(*at) != wanted.get(*at);
    let Some(at) = (0..found.len()).find(differs) else { return Ok(()) };
    let (tile, row, column) = place(id, at);
    Err(format!(
        "{} of {} elements differ; the first, row {row}, column {column} of tile {tile}: {} gives {}, {} gives {}: {}",
        (at..found.len()).filter(differs).count(),
        found.len(),
        device.info().selector,
        id.d.hex(found.get(at)),
        reference.info().selector,
        id.d.hex(wanted.get(at)),
        Dot::at(id, &batch, at).show(id)
    ))
}
