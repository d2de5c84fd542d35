//! The scalar arithmetic of this CPU: in the default mode against Rust's own arithmetic, in the others against itself.
#![cfg(target_arch = "x86_64")]
#![allow(missing_docs)]

use mxprobe_api::{Backend, Device, DotOrder, Elementary, Elements, Flags, Format, Scalar, ScalarFunction};
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
        // *Measured* (Intel Xeon, family 6 model 207, 2026-11-24): the instructions of AVX-512 FP16 read and return
        // subnormals whatever FTZ and DAZ say.
        for id in ["scalar.f16", "scalar.f16.rne", "scalar.f16.rne.ftz.daz"] {
            assert_eq!(call(device.as_ref(), id, ScalarFunction::Multiply, &[0x0400, 0x3800]), 0x0200, "{id}");
            assert_eq!(call(device.as_ref(), id, ScalarFunction::Multiply, &[0x0200, 0x4000]), 0x0400, "{id}");
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
    assert!(error.is_invalid() && error.to_string().contains("not a whole number of calls of add"), "{error}");
}

fn flags(device: &dyn Device, id: &str, function: ScalarFunction, operands: &[u64]) -> Flags {
    let scalar = named(device, id);
    let operands = Elements::from_bits(scalar.id.format, operands.iter().copied());
    mxprobe_api::call_with_flags(device, scalar, function, &operands).unwrap().1[0]
}

#[test]
fn each_exception_raises_its_flag_by_sse_by_x87_and_in_plain_expressions() {
    let device = device();
    let (one, three, largest, normal) = (0x3f80_0000, 0x4040_0000, 0x7f7f_ffff, 0x0080_0001);
    for id in ["scalar.f32", "scalar.f32.rne", "scalar.f32.rd", "scalar.f32.x87"] {
        let raised = |function, operands: &[u64]| flags(device.as_ref(), id, function, operands).to_string();
        assert_eq!(raised(ScalarFunction::Divide, &[0, 0]), "invalid", "{id}");
        assert_eq!(raised(ScalarFunction::Divide, &[one, 0]), "divide by zero", "{id}");
        assert_eq!(raised(ScalarFunction::Divide, &[one, three]), "inexact", "{id}");
        assert_eq!(raised(ScalarFunction::Divide, &[one, one]), "none", "{id}");
        assert_eq!(raised(ScalarFunction::Multiply, &[largest, largest]), "overflow, inexact", "{id}");
        assert_eq!(raised(ScalarFunction::Multiply, &[normal, 0x3f00_0000]), "underflow, inexact", "{id}");
        assert_eq!(raised(ScalarFunction::Add, &[1, 0]), "denormal", "{id}");
    }
}

#[test]
fn x87_keeps_64_bits_and_a_wider_range_until_a_result_is_stored() {
    let device = device();
    let of = |id: &str, function, operands: &[u64]| call(device.as_ref(), id, function, operands);
    // a·a + b of Figure 1 of NVIDIA's Precision & Performance: computed stepwise in f32, nothing is left of it.
    let figure = [0x3f80_0001, 0x3f80_0001, 0xbf80_0002];
    assert_eq!(of("scalar.f32", ScalarFunction::MultiplyAdd, &figure), 0);
    assert_eq!(of("scalar.f32.x87", ScalarFunction::MultiplyAdd, &figure), 0x2880_0000);
    // Twice the largest value, minus that value.
    let wide = [0x7f7f_ffff, 0x4000_0000, 0xff7f_ffff];
    assert_eq!(of("scalar.f32", ScalarFunction::MultiplyAdd, &wide), 0x7f80_0000);
    assert_eq!(of("scalar.f32.x87", ScalarFunction::MultiplyAdd, &wide), 0x7f7f_ffff);
    // 1 + 2^-53 + 2^-78 is just above a tie of f64; in 64 bits it is the tie.
    let twice = [1f64.to_bits(), (2f64.powi(-53) + 2f64.powi(-78)).to_bits()];
    assert_eq!(of("scalar.f64", ScalarFunction::Add, &twice), 1f64.to_bits() + 1);
    assert_eq!(of("scalar.f64.x87", ScalarFunction::Add, &twice), 1f64.to_bits());
    // Figure 6: FCOS reduces its argument with 66 bits of π.
    let cos = ScalarFunction::Elementary(Elementary::Cos);
    let printed = |bits: u64| format!("{:.9e}", f64::from_bits(bits));
    assert_eq!(printed(of("scalar.f64", cos, &[5_992_555f64.to_bits()])), "3.320904615e-7");
    assert_eq!(printed(of("scalar.f64.x87", cos, &[5_992_555f64.to_bits()])), "3.320904692e-7");
}

#[test]
fn x87_has_the_results_of_the_language_where_these_are_exact_or_rounded_once() {
    let device = device();
    let of = |function, operands: &[f32]| {
        let operands: Vec<u64> = operands.iter().map(|x| x.to_bits().into()).collect();
        call(device.as_ref(), "scalar.f32.x87", function, &operands)
    };
    let float = |x: f32| u64::from(x.to_bits());
    assert_eq!(of(ScalarFunction::Subtract, &[1.5, 4.0]), float(-2.5));
    assert_eq!(of(ScalarFunction::SquareRoot, &[2.0]), float(2f32.sqrt()));
    assert_eq!(of(ScalarFunction::Reciprocal, &[3.0]), float(1.0 / 3.0));
    assert_eq!(of(ScalarFunction::Remainder, &[7.0, 4.0]), float(-1.0));
    assert_eq!(of(ScalarFunction::TruncatedRemainder, &[7.0, 4.0]), float(3.0));
    // The quotient has more bits than one step of FPREM computes.
    assert_eq!(of(ScalarFunction::TruncatedRemainder, &[1e30, 3.0]), float(1e30 % 3.0));
    assert_eq!(of(ScalarFunction::Scale, &[3.0, -2.0]), float(0.75));
    assert_eq!(of(ScalarFunction::Negate, &[0.0]), float(-0.0));
    assert_eq!(of(ScalarFunction::Abs, &[-2.0]), float(2.0));
    let order = |x, y| of(ScalarFunction::Compare, &[x, y]);
    assert_eq!([order(1.0, 2.0), order(2.0, 2.0), order(2.0, 1.0), order(f32::NAN, 1.0)], [0xffff_ffff, 0, 1, 2]);
    assert_eq!(of(ScalarFunction::Convert { to: Format::F64 }, &[1.5]), 1.5f64.to_bits());
    assert_eq!(of(ScalarFunction::Convert { to: Format::S32 }, &[-2.5]), u64::from((-2i32).cast_unsigned()));
    let dot = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
    for order in [DotOrder::Serial, DotOrder::Pairwise] {
        assert_eq!(of(ScalarFunction::Dot4 { order }, &dot), float(70.0));
    }
}
