//! Scalar functions on the fake CUDA driver. Tests the kernels, their modes and their launches, not NVIDIA's
//! arithmetic.
#![allow(missing_docs)]
#![cfg(target_os = "linux")]

mod fake;

use mxprobe_api::{Device, DotOrder, Elements, Error, Format, Random, Scalar, ScalarFunction};
use mxprobe_cuda::{CudaBackend, CudaDevice};

use fake::on_fake_driver;

#[track_caller]
fn on_model(test: &str, model: &str) {
    fake::on_fake_driver(test, &[("MXPROBE_FAKE_MODEL", model)]);
}

#[test]
fn every_function_of_every_mode_computes() {
    on_model("computes_everything", "a100");
}

#[test]
fn results_are_rounded_as_the_mode_says() {
    on_model("rounds", "a100");
}

#[test]
fn what_has_no_direction_is_contracted() {
    on_model("contracts", "a100");
}

#[test]
fn bf16_is_rounded_once_and_contracted() {
    on_model("rounds_bf16", "h100");
    on_model("fuses_bf16_alone", "a100");
}

#[test]
fn memory_that_no_launch_wrote_is_no_result() {
    on_fake_driver("writes_nothing", &[("MXPROBE_FAKE_MODEL", "a100"), ("MXPROBE_FAKE_FAULT", "silent")]);
}

#[test]
fn what_the_compiler_refuses_is_told_with_the_name_of_the_function() {
    on_fake_driver("is_refused", &[("MXPROBE_FAKE_MODEL", "a100"), ("MXPROBE_FAKE_FAULT", "invalid-ptx")]);
}

#[test]
fn a_launch_that_fails_for_good_loses_the_device() {
    on_fake_driver("loses_the_device", &[("MXPROBE_FAKE_MODEL", "a100"), ("MXPROBE_FAKE_FAULT", "launch-async")]);
}

/// The error of an addition.
fn failed() -> Error {
    let device = device();
    let operands = Elements::from_bits(Format::F32, [0x3f80_0000; 6]);
    mxprobe_api::call(&device, member(&device, "scalar.f32.rz"), ScalarFunction::Add, &operands).unwrap_err()
}

#[test]
#[ignore = "another test runs it on the fake driver"]
fn writes_nothing() {
    let error = failed();
    assert!(error.is_nothing_written() && error.to_string().contains("call 0 of 3"), "{error}");
}

#[test]
#[ignore = "another test runs it on the fake driver"]
fn is_refused() {
    let error = failed().to_string();
    assert!(error.contains("add of scalar.f32.rz") && error.contains("CUDA_ERROR_INVALID_PTX"), "{error}");
}

#[test]
#[ignore = "another test runs it on the fake driver"]
fn loses_the_device() {
    let error = failed();
    assert!(error.is_device_lost(), "{error}");
}

fn device() -> CudaDevice {
    let (mut devices, refusals) = CudaBackend::new().devices();
    assert_eq!(devices.len(), 1, "{refusals:?}");
    let device = devices.remove(0);
    assert!(device.info().emulated && device.info().properties["device_uuid"].len() == 32);
    device
}

#[track_caller]
fn member<'a>(device: &'a CudaDevice, id: &str) -> &'a Scalar {
    device
        .scalars()
        .unwrap()
        .members()
        .iter()
        .find(|scalar| scalar.id.to_string() == id)
        .unwrap_or_else(|| panic!("{id}"))
}

#[track_caller]
fn call(device: &CudaDevice, id: &str, function: ScalarFunction, operands: &[u64]) -> Vec<u64> {
    let scalar = member(device, id);
    let operands = Elements::from_bits(scalar.id.format, operands.iter().copied());
    mxprobe_api::call(device, scalar, function, &operands).unwrap().iter().collect()
}

#[test]
#[ignore = "another test runs it on the fake driver"]
fn computes_everything() {
    let device = device();
    let mut functions = 0;
    for scalar in device.scalars().unwrap().members() {
        for function in scalar.functions.keys() {
            // More than one block, the last one partial.
            let calls = 300;
            let operands = (0..calls * function.arity()).map(|at| 1 + at as u64 % 7);
            let operands = Elements::from_bits(scalar.id.format, operands);
            let results = mxprobe_api::call(&device, scalar, *function, &operands);
            let results = results.unwrap_or_else(|error| panic!("{} {function}: {error}", scalar.id));
            assert_eq!(results.len(), calls);
            functions += 1;
        }
    }
    assert!(functions > 190, "{functions}");
}

#[test]
#[ignore = "another test runs it on the fake driver"]
fn rounds() {
    let device = device();
    let mut random = Random(3);
    let bits32: Vec<u64> = (0..3000).map(|_| (random.bits() & 0x80ff_ffff) | 0x3f00_0000).collect();
    let of = |bits: u64| f32::from_bits(u32::try_from(bits).unwrap());
    type Binary = (ScalarFunction, fn(f32, f32) -> f32);
    let binary: [Binary; 4] = [
        (ScalarFunction::Add, |a, b| a + b),
        (ScalarFunction::Subtract, |a, b| a - b),
        (ScalarFunction::Multiply, |a, b| a * b),
        (ScalarFunction::Divide, |a, b| a / b),
    ];
    for (function, expected) in binary {
        for id in ["scalar.f32", "scalar.f32.rne"] {
            let results = call(&device, id, function, &bits32);
            for (pair, result) in bits32.chunks(2).zip(results) {
                let expected = expected(of(pair[0]), of(pair[1]));
                assert_eq!(result, u64::from(expected.to_bits()), "{function} {pair:x?}");
            }
        }
        // Each direction against the exact value in f64, which holds these sums and products.
        if function != ScalarFunction::Divide {
            let wide: fn(f64, f64) -> f64 = match function {
                ScalarFunction::Add => |a, b| a + b,
                ScalarFunction::Subtract => |a, b| a - b,
                _ => |a, b| a * b,
            };
            let [down, up, toward] =
                ["rd", "ru", "rz"].map(|word| call(&device, &format!("scalar.f32.{word}"), function, &bits32));
            for (at, pair) in bits32.chunks(2).enumerate() {
                let exact = wide(f64::from(of(pair[0])), f64::from(of(pair[1])));
                let [down, up, toward] = [down[at], up[at], toward[at]].map(|bits| f64::from(of(bits)));
                assert!(
                    down <= exact
                        && exact <= up
                        && (down.to_bits() == up.to_bits()) == (down.to_bits() == exact.to_bits()),
                    "{function} {pair:x?}"
                );
                assert_eq!(toward.to_bits(), if exact < 0.0 { up } else { down }.to_bits(), "{function} {pair:x?}");
            }
        }
    }
    let roots = call(&device, "scalar.f64", ScalarFunction::SquareRoot, &[2f64.to_bits(), 3f64.to_bits()]);
    assert_eq!(roots, [2f64.sqrt().to_bits(), 3f64.sqrt().to_bits()]);
    // Half of the smallest normal number.
    let product = |id: &str| call(&device, id, ScalarFunction::Multiply, &[0x0080_0000, 0x3f00_0000])[0];
    assert_eq!([product("scalar.f32"), product("scalar.f32.ftz")], [0x0040_0000, 0]);
    let narrow = |id: &str, to, bits| call(&device, id, ScalarFunction::Convert { to }, &[bits])[0];
    assert_eq!(narrow("scalar.f32.ru", Format::F16, 0x3f80_0001), 0x3c01);
    assert_eq!(narrow("scalar.f32.rd", Format::S32, u64::from((-1.5f32).to_bits())), 0xffff_fffe);
    assert_eq!(narrow("scalar.s32.rz", Format::F32, 0x0100_0001), 0x4b80_0000);
    let compare = |id: &str, x, y| call(&device, id, ScalarFunction::Compare, &[x, y])[0];
    let (less, one) = (u64::from(u32::MAX), 0x3f80_0000);
    assert_eq!(
        [compare("scalar.f32", 0, one), compare("scalar.f32", one, one), compare("scalar.f32", one, 0)],
        [less, 0, 1]
    );
    assert_eq!([compare("scalar.f32", 1, 0), compare("scalar.f32.ftz", 1, 0)], [1, 0]);
    assert_eq!(compare("scalar.f32", 0x7fc0_0000, one), 2);
    let signed = call(&device, "scalar.f32", ScalarFunction::CopySign, &[one, 0x8000_0000]);
    assert_eq!(signed, [0xbf80_0000]);
}

#[test]
#[ignore = "another test runs it on the fake driver"]
fn contracts() {
    let device = device();
    // 1 + 2^-23 squared, minus 1 + 2^-22 (NVIDIA, Precision & Performance, figure 1): 1.4210855e-14 fused.
    let figure = [0x3f80_0001, 0x3f80_0001, 0xbf80_0002];
    assert_eq!(call(&device, "scalar.f32", ScalarFunction::MultiplyAdd, &figure), [0x2880_0000]);
    // With an explicit direction, neither `mul` nor `add` is contracted.
    assert_eq!(call(&device, "scalar.f32.rne", ScalarFunction::MultiplyAdd, &figure), [0]);
    let product = call(&device, "scalar.f32.rne", ScalarFunction::Multiply, &figure[..2])[0];
    assert_eq!(call(&device, "scalar.f32.rne", ScalarFunction::Add, &[product, figure[2]]), [0]);
    // Its figure 5 prints seven digits; these are the bits that give its three results and its exact value. A
    // contracted serial loop equals the loop of fused steps.
    let vectors =
        [0x3ff4_2c76, 0xbf49_4494, 0x3f92_db19, 0x3f75_dcc9, 0xbf6f_7cee, 0xbf31_06da, 0x3fdc_bb70, 0xbf35_b25d];
    let dot = |order| call(&device, "scalar.f32", ScalarFunction::Dot4 { order }, &vectors)[0];
    assert_eq!(dot(DotOrder::Fma), 0x3d65_3501);
    assert_eq!(dot(DotOrder::Serial), 0x3d65_3501);
    // Two products rounded, two not.
    let of = |at: usize| f32::from_bits(u32::try_from(vectors[at]).unwrap());
    let half = |at: usize| of(at).mul_add(of(at + 4), of(at + 1) * of(at + 5));
    assert_eq!(dot(DotOrder::Pairwise), u64::from((half(0) + half(2)).to_bits()));
}

#[test]
#[ignore = "another test runs it on the fake driver"]
fn rounds_bf16() {
    let device = device();
    let mut random = Random(5);
    // From 2^-7 to 2^9, so that f64 holds every product, sum and product with a sum.
    let operands: Vec<u64> = (0..3000).map(|_| (random.bits() & 0x87ff) + 0x3c00).collect();
    let value = |bits: u64| Format::BF16.to_f64(bits);
    type Exact = fn(&[f64]) -> f64;
    let functions: [(ScalarFunction, Exact); 5] = [
        (ScalarFunction::Add, |x| x[0] + x[1]),
        (ScalarFunction::Subtract, |x| x[0] - x[1]),
        (ScalarFunction::Multiply, |x| x[0] * x[1]),
        (ScalarFunction::Fma, |x| x[0] * x[1] + x[2]),
        (ScalarFunction::MultiplyAdd, |x| x[0] * x[1] + x[2]),
    ];
    for (function, exact) in functions {
        let results = call(&device, "scalar.bf16", function, &operands);
        for (operands, result) in operands.chunks(function.arity()).zip(results) {
            let exact = exact(&operands.iter().map(|bits| value(*bits)).collect::<Vec<_>>());
            assert_eq!(result, Format::BF16.from_f64(exact), "{function} {operands:x?}");
        }
    }
    let convert = |id: &str, to, bits| call(&device, id, ScalarFunction::Convert { to }, &[bits])[0];
    // 1 + 2^-7, 2^-133, 2.5, and an f64 just above 1.
    assert_eq!(convert("scalar.bf16", Format::F32, 0x3f81), 0x3f81_0000);
    assert_eq!(convert("scalar.bf16", Format::F64, 0x0001), 2f64.powi(-133).to_bits());
    assert_eq!(convert("scalar.bf16.ru", Format::S32, 0x4020), 3);
    assert_eq!(convert("scalar.bf16.ru", Format::F16, 0x0001), 0x0001);
    assert_eq!(convert("scalar.f64.ru", Format::BF16, 1f64.to_bits() + 1), 0x3f81);
}

#[test]
#[ignore = "another test runs it on the fake driver"]
fn fuses_bf16_alone() {
    let device = device();
    let functions = &member(&device, "scalar.bf16").functions;
    assert!(functions.contains_key(&ScalarFunction::Fma) && !functions.contains_key(&ScalarFunction::Add));
    // (1 + 2^-7)² minus 1 + 2^-6 is 2^-14.
    assert_eq!(call(&device, "scalar.bf16", ScalarFunction::Fma, &[0x3f81, 0x3f81, 0xbf82]), [0x3880]);
}
