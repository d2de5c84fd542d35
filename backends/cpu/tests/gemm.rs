//! Whole matrices give the bits of tiles multiplied one by one, NaN payloads and signs of zero included.
#![cfg(target_arch = "x86_64")]
#![expect(clippy::print_stdout, reason = "says which part ran")]

use mxprobe_api::{Backend, Device, Elements, GemmOperands, Operation, TileBatch, execute, multiply};
use mxprobe_cpu::CpuBackend;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Any bits of a format, NaN and infinities among them; or, of a floating one, of moderate size.
    fn matrix(&mut self, format: mxprobe_api::Format, len: usize, is_any: bool) -> Elements {
        let bits = (0..len).map(|_| {
            let bits = self.bits();
            #[expect(clippy::cast_precision_loss)]
            let value = (bits >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
            if is_any || format.is_integer() { bits } else { format.from_f64(value) }
        });
        Elements::from_bits(format, bits)
    }
}

/// Tile by tile, the edges padded with +0.
fn tile_by_tile(device: &dyn Device, operation: &Operation, product: &GemmOperands<'_>) -> Elements {
    let (tile_m, tile_n, tile_k) = operation.id.shape.sizes();
    let GemmOperands { m, n, k, a, b, c, .. } = *product;
    let mut d = Elements::zeros(operation.id.d, m * n);
    let element = |matrix: &Elements, rows: usize, columns: usize, row: usize, column: usize| {
        if row < rows && column < columns { matrix.get(row * columns + column) } else { 0 }
    };
    for top in (0..m).step_by(tile_m) {
        for left in (0..n).step_by(tile_n) {
            let mut batch = TileBatch::zeros(operation, 1);
            for at in 0..tile_m * tile_n {
                batch.c.set(at, element(c, m, n, top + at / tile_n, left + at % tile_n));
            }
            for first in (0..k.max(1)).step_by(tile_k) {
                for at in 0..tile_m * tile_k {
                    batch.a.set(at, element(a, m, k, top + at / tile_k, first + at % tile_k));
                }
                for at in 0..tile_k * tile_n {
                    batch.b.set(at, element(b, k, n, first + at / tile_n, left + at % tile_n));
                }
                batch.c = execute(device, operation, &batch).expect("the device computes");
            }
            for at in 0..tile_m * tile_n {
                let (row, column) = (top + at / tile_n, left + at % tile_n);
                if row < m && column < n {
                    d.set(row * n + column, batch.c.get(at));
                }
            }
        }
    }
    d
}

#[test]
#[cfg_attr(not(dot_units), ignore = "this CPU has neither dot products nor tiles")]
fn products_have_the_bits_of_tiles_whatever_their_size() {
    let mut operations = 0;
    let sizes = [
        (1, 1, 1),
        (6, 64, 4),
        (5, 63, 3),
        (7, 65, 5),
        (12, 128, 1030),
        (13, 1, 17),
        (1, 70, 2100),
        (40, 40, 0),
        (0, 3, 2),
        (3, 0, 2),
        (33, 31, 65),
        (64, 96, 64),
        (100, 67, 129),
        (200, 33, 70),
    ];
    for device in CpuBackend::new().discover().devices {
        for operation in device.operations().values() {
            let id = &operation.id;
            let mut compared = 0;
            for (seed, (m, n, k)) in sizes.into_iter().enumerate() {
                for is_any in [false, true] {
                    let mut random = Random(seed as u64);
                    let (a, b) = (random.matrix(id.a, m * k, is_any), random.matrix(id.b, k * n, is_any));
                    let c = random.matrix(id.c, m * n, is_any);
                    let product = GemmOperands { m, n, k, a: &a, b: &b, c: &c, scale_a: None, scale_b: None };
                    let Some(d) = multiply(device.as_ref(), operation, &product).expect("it multiplies") else {
                        break;
                    };
                    let expected = tile_by_tile(device.as_ref(), operation, &product);
                    if let Some(at) = (0..d.len()).find(|at| d.get(*at) != expected.get(*at)) {
                        panic!(
                            "{id} {m}×{n}×{k}: row {}, column {} is {}, tile by tile {}",
                            at / n,
                            at % n,
                            id.d.hex(d.get(at)),
                            id.d.hex(expected.get(at))
                        );
                    }
                    compared += d.len();
                }
            }
            operations += 1;
            println!("{id}: {compared} elements of whole matrices were compared");
        }
    }
    assert_ne!(operations, 0);
}

#[test]
#[cfg_attr(not(dot_units), ignore = "this CPU has neither dot products nor tiles")]
fn a_product_that_does_not_fit_is_refused() {
    for device in CpuBackend::new().discover().devices {
        let operation = device.operations().values().next().expect("a device has an operation");
        let (a, b) = (Elements::zeros(operation.id.a, 6), Elements::zeros(operation.id.b, 6));
        let c = Elements::zeros(operation.id.c, 4);
        let right = GemmOperands { m: 2, n: 2, k: 3, a: &a, b: &b, c: &c, scale_a: None, scale_b: None };
        assert!(multiply(device.as_ref(), operation, &right).is_ok());
        let wrong = multiply(device.as_ref(), operation, &GemmOperands { n: 3, ..right });
        assert!(wrong.is_err_and(|error| error.is_invalid() && error.to_string().contains("6 elements where 3×3")));
    }
}
