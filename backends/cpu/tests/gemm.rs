//! Whole-matrix products give the bits of tiles multiplied one by one, including NaN payloads and signs of zero.
#![cfg(target_arch = "x86_64")]
#![expect(clippy::print_stdout, reason = "says which part ran")]

use mxprobe_api::{Backend, Elements, Format, GemmOperands, Random, multiply, multiply_by_tiles};
use mxprobe_cpu::CpuBackend;

/// Draws elements with any bits of a format, including NaN and infinities, or moderate values of a floating format.
fn matrix(random: &mut Random, format: Format, len: usize, is_any: bool) -> Elements {
    let bits = (0..len).map(|_| {
        let bits = random.bits();
        #[expect(clippy::cast_precision_loss)]
        let value = (bits >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
        if is_any || format.is_integer() { bits } else { format.from_f64(value) }
    });
    Elements::from_bits(format, bits)
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
        (13, 130, 4200),
    ];
    for device in CpuBackend::new().discover().devices {
        for operation in device.operations().values() {
            let id = &operation.id;
            let mut compared = 0;
            for (seed, (m, n, k)) in sizes.into_iter().enumerate() {
                for is_any in [false, true] {
                    let mut random = Random(seed as u64);
                    let (a, b) = (matrix(&mut random, id.a, m * k, is_any), matrix(&mut random, id.b, k * n, is_any));
                    let c = matrix(&mut random, id.c, m * n, is_any);
                    let product = GemmOperands { m, n, k, a: &a, b: &b, c: &c, scale_a: None, scale_b: None };
                    let Some(d) = multiply(device.as_ref(), operation, &product).expect("it multiplies") else {
                        break;
                    };
                    let expected =
                        multiply_by_tiles(device.as_ref(), operation, &product).expect("the device computes");
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
        assert!(wrong.is_err_and(|error| error.is_invalid() && error.to_string().contains("6 elements, not 3×3")));
    }
}
