//! The conformance suite on the fake driver, with one operation for each kind of kernel.
#![allow(missing_docs)]
#![cfg(target_os = "linux")]

mod fake;

use mxprobe_api::Device;
use mxprobe_conformance::{check_backend, check_device};
use mxprobe_cuda::CudaBackend;

use fake::on_fake_driver;

/// One operation for each kind of kernel.
const OPERATIONS: &[&str] = &[
    "mma.m8n8k4.f32.f16.f16.f32",
    "mma.m16n8k16.f32.f16.f16.f32",
    "mma.m8n8k4.f64.f64.f64.f64",
    "mma.m16n8k32.s32.s8.u8.s32",
    "mma.m16n8k64.f32.e2m1.e2m1.f32.block16.ue4m3",
    "wmma.m16n16k16.f16.f16.f16.f16",
    "wgmma.m64n8k16.f32.bf16.bf16.f32",
    "tcgen05.m128n8k16.f32.f16.f16.f32",
];

#[test]
fn every_kind_of_kernel_and_ability_holds_what_is_asked_of_every_device() {
    for model in ["v100", "h100", "b200", "rtx5090"] {
        on_fake_driver("conforms", &[("MXPROBE_FAKE_MODEL", model)]);
    }
}

#[test]
#[ignore = "another test runs it on the fake driver"]
fn conforms() {
    assert_eq!(check_backend(&CudaBackend::new()), []);
    let (devices, _) = CudaBackend::new().devices();
    let [device] = &devices[..] else { panic!("the fake driver has one device") };
    let is_chosen = |id: String| OPERATIONS.contains(&id.as_str());
    assert!(device.operations().keys().filter(|id| is_chosen(id.to_string())).count() >= 2);
    assert_eq!(check_device(device, |operation| is_chosen(operation.id.to_string())), []);
}
