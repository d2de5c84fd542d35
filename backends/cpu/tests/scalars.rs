//! The scalar arithmetic of this CPU against the language's own, in the mode of every program, and against itself in the
//! others.
#![cfg(target_arch = "x86_64")]
#![allow(missing_docs)]

use mxprobe_api::{Backend, Device, Elements, Format, Scalar, ScalarFunction};
use mxprobe_cpu::CpuBackend;

fn device() -> Box<dyn Device> {
    CpuBackend::new().discover().devices.pop().expect("every x86-64 CPU has scalar arithmetic")
}

fn named<'d>(device: &'d dyn Device, id: &str) -> &'d Scalar {
    device.scalars().unwrap().members().iter().find(|scalar| scalar.id.to_string() == id).expect(id)
}

fn call(device: &dyn Device, id: &str, function: ScalarFunction, operands: &[u64]) -> u64 {
    let scalar = named(device, id);
    let operands = Elements::from_bits(scalar.id.format, operands.iter().copied());
    mxprobe_api::call(device, scalar, function, &operands).unwrap().get(0)
}

#[test]
fn every_direction_rounds_one_third_its_own_way() {
    let device = device();
    let third = |mode: &str, sign: u64| {
        call(device.as_ref(), &format!("scalar.f32.{mode}"), ScalarFunction::Divide, &[0x3f80_0000 | sign, 0x4040_0000])
    };
    let minus = 1 << 31;
    assert_eq!(
        ["rne", "rz", "rd", "ru"].map(|mode| third(mode, 0)),
        [0x3eaa_aaab, 0x3eaa_aaaa, 0x3eaa_aaaa, 0x3eaa_aaab]
    );
    assert_eq!(
        ["rne", "rz", "rd", "ru"].map(|mode| third(mode, minus)),
        [0xbeaa_aaab, 0xbeaa_aaaa, 0xbeaa_aaab, 0xbeaa_aaaa]
    );
}

#[test]
fn subnormals_are_flushed_where_the_mode_says_so() {
    let device = device();
    let of = |mode: &str, operands: &[u64]| {
        call(device.as_ref(), &format!("scalar.f64.rne{mode}"), ScalarFunction::Multiply, operands)
    };
    let (smallest_normal, half, smallest, large) = (1 << 52, 0.5f64.to_bits(), 1, 2f64.powi(60).to_bits());
    assert_eq!(of("", &[smallest_normal, half]), 1 << 51);
    assert_eq!(of(".ftz", &[smallest_normal, half]), 0);
    assert_eq!(of(".daz", &[smallest_normal, half]), 1 << 51);
    assert_eq!(of("", &[smallest, large]), 2f64.powi(60 - 1074).to_bits());
    assert_eq!(of(".ftz", &[smallest, large]), 2f64.powi(60 - 1074).to_bits());
    assert_eq!(of(".daz", &[smallest, large]), 0);
    assert_eq!(of(".ftz.daz", &[smallest, large]), 0);
}

#[test]
fn a_mode_ends_with_its_call() {
    let device = device();
    let up = || call(device.as_ref(), "scalar.f64.ru", ScalarFunction::Add, &[1f64.to_bits(), 1]);
    assert_eq!(up(), 1f64.to_bits() + 1);
    let third = std::hint::black_box(1f64) / std::hint::black_box(3f64);
    assert_eq!(third.to_bits(), 0x3fd5_5555_5555_5555, "rounding to nearest is what the program goes on with");
    assert!(std::hint::black_box(f64::MIN_POSITIVE) * std::hint::black_box(0.5) > 0.0);
}

#[test]
fn f16_is_there_or_is_refused_with_the_reason() {
    let device = device();
    let is_there = device.scalars().unwrap().members().iter().any(|scalar| scalar.id.format == Format::F16);
    let refused = device.refusals().iter().find(|refusal| refusal.what.contains("VADDSH"));
    assert_eq!(is_there, refused.is_none());
    if let Some(refusal) = refused {
        let reason = refusal.reason.to_string();
        assert!(refusal.what.starts_with("scalar arithmetic by VADDSH, VSUBSH"), "{}", refusal.what);
        assert!(reason.contains("AVX512-FP16") || reason.contains("XCR0"), "{reason}");
    } else {
        // A third in f16, toward zero and upward.
        for (id, third) in [("scalar.f16.rz", 0x3555), ("scalar.f16.ru", 0x3556)] {
            assert_eq!(call(device.as_ref(), id, ScalarFunction::Divide, &[0x3c00, 0x4200]), third, "{id}");
        }
    }
}

#[test]
fn what_is_not_claimed_is_refused_with_its_name() {
    let device = device();
    let scalar = named(device.as_ref(), "scalar.f32");
    let one = Elements::from_bits(Format::F32, [0x3f80_0000]);
    let to = ScalarFunction::Convert { to: Format::BF16 };
    let error = mxprobe_api::call(device.as_ref(), scalar, to, &one).unwrap_err();
    assert!(error.is_invalid() && error.to_string().contains("convert.bf16 of scalar.f32"), "{error}");
    let error = mxprobe_api::call(device.as_ref(), scalar, ScalarFunction::Add, &one).unwrap_err();
    assert!(error.is_invalid() && error.to_string().contains("no whole number of calls of add"), "{error}");
}
