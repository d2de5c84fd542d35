//! The operands that are multiplied while they are timed.

use mxprobe_api::{Elements, Operation, TileBatch};

use crate::{dots::Random, report::Data};

/// The most elements of all tiles together.
const ELEMENTS: usize = 1 << 20;

/// Tiles for chains to work on, 1 to 64; scales, if any, are 1.
pub(crate) fn operands(operation: &Operation, data: Data, seed: u64) -> TileBatch {
    let (m, n, k) = operation.id.shape.sizes();
    let tiles = (ELEMENTS / (m * n).max(m * k).max(k * n)).clamp(1, 64);
    let mut batch = TileBatch::zeros(operation, tiles);
    let mut random = Random(seed);
    for elements in [&mut batch.a, &mut batch.b, &mut batch.c] {
        fill(elements, data, &mut random);
    }
    batch
}

fn fill(elements: &mut Elements, data: Data, random: &mut Random) {
    let format = elements.format();
    let is_signed = format.largest(true) != 0;
    for at in 0..elements.len() {
        let bits = match data {
            Data::Zeros => 0,
            Data::Random if format.is_integer() => random.any(format),
            Data::Random => {
                let half = f64::from(1 << 20);
                format.from_f64(f64::from(random.between(-(1 << 20), 1 << 20)) / half)
            }
            Data::Small => format.from_f64(f64::from(random.between(if is_signed { -1 } else { 0 }, 1))),
        };
        elements.set(at, bits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_what_was_asked_for() {
        for id in ["mma.m16n8k16.f32.f16.f16.f32", "mma.m16n8k32.s32.u8.s8.s32"] {
            let operation = Operation::new(id.parse().unwrap(), "warp");
            let is_zero = |batch: &TileBatch| batch.a.iter().chain(batch.b.iter()).all(|bits| bits == 0);
            let format = operation.id.a;
            assert!(is_zero(&operands(&operation, Data::Zeros, 1)));
            let small = operands(&operation, Data::Small, 1);
            assert!(!is_zero(&small) && small.a.iter().all(|bits| format.to_f64(bits).abs() <= 1.0));
            let random = operands(&operation, Data::Random, 1);
            let distinct: std::collections::BTreeSet<u64> = random.a.iter().collect();
            assert!(distinct.len() > 200, "{id}: {} values", distinct.len());
            assert_eq!(random, operands(&operation, Data::Random, 1));
            assert_ne!(random, operands(&operation, Data::Random, 2));
        }
    }
}
