//! Whole matrices in one dispatch, compared with tiles multiplied step by step along k.

use std::time::Instant;

use mxprobe_api::{Decoded, Device, Elements, GemmOperands, Operation, Random, TileBatch, multiply, multiply_by_tiles};
use mxprobe_vulkan::VulkanDevice;

use crate::model::{Inputs, batch};

/// Values of m, n and k; the last needs more workgroups than one dispatch has, across and down.
const SIZES: [(usize, usize, usize); 6] =
    [(1, 1, 1), (8, 8, 8), (9, 17, 20), (33, 5, 0), (40, 64, 31), (9, 8 * 65535 + 3, 9)];

/// Operations whose D can be the C of the next one.
fn chained(device: &VulkanDevice) -> impl Iterator<Item = &Operation> {
    device.operations().values().filter(|operation| operation.id.c == operation.id.d)
}

/// Draws the operands of a product, as one tile of the product's size.
fn drawn(random: &mut Random, operation: &Operation, (m, n, k): (usize, usize, usize), inputs: Inputs) -> TileBatch {
    let mut whole = operation.id.clone();
    (whole.shape.m, whole.shape.n, whole.shape.k) =
        (u32::try_from(m).unwrap(), u32::try_from(n).unwrap(), u32::try_from(k.max(1)).unwrap());
    let mut drawn = batch(random, &whole, 1, inputs);
    if k == 0 {
        (drawn.a, drawn.b) = (Elements::zeros(whole.a, 0), Elements::zeros(whole.b, 0));
    }
    drawn
}

/// Checks that whole matrices of any size give the same as single operations along k.
pub(crate) fn agree(device: &VulkanDevice) {
    let mut random = Random(11);
    let is_nan = |d: &Elements, at: usize| matches!(d.format().decode(d.get(at)), Decoded::Nan { .. });
    for operation in chained(device) {
        for (m, n, k) in SIZES {
            for inputs in [Inputs::Finite, Inputs::Any] {
                let TileBatch { a, b, c, .. } = &drawn(&mut random, operation, (m, n, k), inputs);
                let product = GemmOperands { m, n, k, a, b, c, scale_a: None, scale_b: None };
                let whole = multiply(device, operation, &product).unwrap().expect("it multiplies whole matrices");
                let tiles = multiply_by_tiles(device, operation, &product).unwrap();
                // Which of two NaNs propagates depends on how the driver compiled each shader.
                let other = (0..m * n)
                    .find(|at| whole.get(*at) != tiles.get(*at) && !(is_nan(&whole, *at) && is_nan(&tiles, *at)));
                if let Some(at) = other {
                    let (row, column) = (at / n, at % n);
                    let (got, wanted) = (whole.get(at), tiles.get(at));
                    panic!("{} {m}×{n}×{k}: {got:#x} for {wanted:#x} in row {row}, column {column}", operation.id);
                }
            }
        }
    }
}

/// Checks that products that cannot be chained or have an empty D are left to the path tile by tile.
pub(crate) fn others_are_left_to_tiles(device: &VulkanDevice) {
    let operation = chained(device).next().expect("lavapipe has some");
    let (a, b, c) =
        (Elements::zeros(operation.id.a, 8), Elements::zeros(operation.id.b, 0), Elements::zeros(operation.id.c, 0));
    let product = GemmOperands { m: 1, n: 0, k: 8, a: &a, b: &b, c: &c, scale_a: None, scale_b: None };
    assert_eq!(multiply(device, operation, &product).unwrap(), None);
}

/// Times both paths in turn.
pub(crate) fn speed(device: &VulkanDevice) {
    let mut random = Random(12);
    for operation in chained(device) {
        for size in [256, 512, 1024] {
            let TileBatch { a, b, c, .. } = &drawn(&mut random, operation, (size, size, size), Inputs::Moderate);
            let product = GemmOperands { m: size, n: size, k: size, a, b, c, scale_a: None, scale_b: None };
            let mut best = [f64::INFINITY; 2];
            for _ in 0..3 {
                let start = Instant::now();
                let whole = multiply(device, operation, &product).unwrap().expect("it multiplies whole matrices");
                best[0] = best[0].min(start.elapsed().as_secs_f64());
                let start = Instant::now();
                let tiles = multiply_by_tiles(device, operation, &product).unwrap();
                best[1] = best[1].min(start.elapsed().as_secs_f64());
                assert_eq!(whole, tiles);
            }
            let [whole, tiles] = best;
            println!(
                "{} n = {size}: {whole:.4} s whole, {tiles:.4} s by tiles, {:.1} times",
                operation.id,
                tiles / whole
            );
        }
    }
}
