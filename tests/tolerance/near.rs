//! The tightness of bounds: how near the worst errors found come to them.

use mxprobe::tolerance::{Order, Tolerance};

use super::units::{Unit, units};

/// The largest allowed ratio of a bound to the worst error found.
const FACTOR: f64 = 4.0;

/// The ratio of the bound to the worst error among `count` inputs; `None` if nothing is ever lost.
fn within(unit: &Unit, k: usize, order: Order, count: usize) -> Option<f64> {
    let tolerance = Tolerance::new(&unit.model, &unit.id, k, order).unwrap();
    tolerance.worst(count, 1).map(|found| 1.0 / found.nearest)
}

#[test]
fn the_worst_inputs_that_are_found_come_within_a_factor_of_four_of_the_bound() {
    for (model, id) in [
        ("h100", "mma.m16n8k16.f32.f16.f16.f32"),
        ("a100", "mma.m16n8k16.f32.bf16.bf16.f32"),
        ("v100", "mma.m8n8k4.f32.f16.f16.f32"),
        ("h100", "wgmma.m64n8k32.f32.e4m3.e4m3.f32"),
        ("mi300x", "mfma.m16n16k16.f32.bf16.bf16.f32"),
        ("fma-chain", "dot.m1n1k4.f32.f32.f32.f32"),
        // Products and sums are aligned by two rules.
        ("rdna3", "wmma.m16n16k16.f32.f16.f16.f32"),
        // Products of few bits: only c makes the grid coarse enough to lose some of them.
        ("b200", "tcgen05.m64n8k32.f32.e2m1.e2m3.f32"),
        ("b200", "tcgen05.m64n8k32.f16.e2m1.e2m1.f16"),
    ] {
        let unit = Unit::named(model, id);
        let step = unit.id.shape.sizes().2;
        for k in [step, 64] {
            for order in [Order::Chain, Order::Any] {
                let found = within(&unit, k, order, 3_000).unwrap();
                assert!((1.0..=FACTOR).contains(&found), "{}, k = {k}, {order:?}: {found}", unit.name);
            }
        }
    }
}

/// Every unit, with `MXPROBE_DOTS` inputs of each; `MXPROBE_ONLY=NAME` selects units.
#[test]
#[ignore = "prints how near errors come in every unit: cargo test --release --test tolerance -- --ignored --nocapture every_unit"]
fn the_bound_of_every_unit_is_near() {
    let count = std::env::var("MXPROBE_DOTS").map_or(60_000, |dots| dots.parse().unwrap());
    let only = std::env::var("MXPROBE_ONLY").unwrap_or_default();
    let mut far = Vec::new();
    for unit in units().iter().filter(|unit| unit.name.starts_with(&only) && unit.model.variant.is_none()) {
        let step = unit.id.shape.sizes().2;
        if unit.id.is_integer() || unit.id.block_scale().is_some() || step > 64 {
            continue;
        }
        let lengths = if unit.id.c == unit.id.d { vec![step, 64] } else { vec![step] };
        for k in lengths {
            for order in [Order::Chain, Order::Any].into_iter().take(1 + usize::from(unit.id.c == unit.id.d)) {
                let found = within(unit, k, order, count);
                eprintln!("{}, k = {k}, {}: within {found:?}", unit.name, order.name());
                if found.is_some_and(|found| found > FACTOR) {
                    far.push((unit.name.clone(), k, order, found));
                }
            }
        }
    }
    assert!(far.is_empty(), "{far:#?}");
}
