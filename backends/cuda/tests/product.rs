//! Whole-matrix products on the fake driver have the bits of tiles multiplied one by one, for every block size and
//! number of steps, at edges, including NaN and signs of zero.
#![allow(missing_docs)]
#![cfg(target_os = "linux")]

mod fake;

use mxprobe_api::{Device, Elements, Format, GemmOperands, multiply_by_tiles};
use mxprobe_cuda::CudaBackend;

use fake::on_fake_driver;

/// Runs the comparison with this number of multiprocessors; the fewer, the larger the blocks of a product.
#[track_caller]
fn compare_on(model: &str, multiprocessors: &str) {
    let environment = [("MXPROBE_FAKE_MODEL", model), ("MXPROBE_FAKE_MULTIPROCESSORS", multiprocessors)];
    on_fake_driver("has_the_bits_of_tiles", &environment);
}

#[test]
fn large_blocks_have_the_bits_of_tiles() {
    for model in ["v100", "a100", "h100"] {
        compare_on(model, "1");
    }
}

#[test]
fn small_blocks_have_the_bits_of_tiles() {
    for model in ["v100", "a100", "h100"] {
        compare_on(model, "132");
    }
}

/// Operations of each kind of kernel: registers of 32 and 64 bits, four tiles at a time, `wmma`, `wgmma` of every
/// width.
const OPERATIONS: &[&str] = &[
    "mma.m8n8k4.f32.f16.f16.f32",
    "mma.m16n8k16.f32.f16.f16.f32",
    "mma.m16n8k4.f32.tf32.tf32.f32",
    "mma.m8n8k4.f64.f64.f64.f64",
    "mma.m16n8k32.s32.s8.u8.s32",
    "wmma.m16n16k16.f16.f16.f16.f16",
    "wgmma.m64n8k16.f32.bf16.bf16.f32",
    "wgmma.m64n64k32.f16.e4m3.e5m2.f16",
    "wgmma.m64n256k8.f32.tf32.tf32.f32",
];

#[test]
#[ignore = "another test runs it on the fake driver"]
fn has_the_bits_of_tiles() {
    let device = CudaBackend::new().devices().0.remove(0);
    let mut compared = 0;
    for id in OPERATIONS {
        let Some(operation) = device.operations().get(&id.parse().unwrap()) else { continue };
        let (_, n, k) = operation.id.shape.sizes();
        // One, two and three steps, and more than fit in shared memory; whole and partial blocks.
        for (m, n, k) in [(1, 1, 1), (130, n + 9, 2 * k), (70, 2 * n, 3 * k - 1), (64, n, 9 * k)] {
            let mut state = 7 + m as u64;
            let [a, b, c] = [(operation.id.a, m * k), (operation.id.b, k * n), (operation.id.c, m * n)]
                .map(|(format, len)| random(&mut state, format, len));
            let product = GemmOperands { m, n, k, a: &a, b: &b, c: &c, scale_a: None, scale_b: None };
            let whole =
                device.matrices().unwrap().multiply(operation, &product).unwrap().expect("a kernel for whole matrices");
            assert!(whole == multiply_by_tiles(&device, operation, &product).unwrap(), "{id}: {m}×{n}×{k}");
            compared += 1;
        }
    }
    assert!(compared >= 8, "{compared}");
}

/// Draws elements with any bits of a format; every other one is moderate, so that not all sums are NaN.
fn random(state: &mut u64, format: Format, len: usize) -> Elements {
    let bits = (0..len).map(|at| {
        *state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let bits = *state >> 11;
        #[expect(clippy::cast_precision_loss, reason = "53 bits")]
        let value = bits as f64 / (1u64 << 52) as f64 - 1.0;
        let is_any = format.is_integer() || len < 4 || at % 97 == 5;
        if is_any { *state ^ *state << 32 } else { format.from_f64(value) }
    });
    Elements::from_bits(format, bits)
}
