//! The whole way through a Vulkan driver that needs no GPU, unpacked by `scripts/vulkan-drivers`.
//!
//! Without it these tests say so and end; with `MXPROBE_REQUIRE_VULKAN=1` they fail.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use mxprobe::report::{Kind, Outcome, Report};

use super::Said;

/// The program under a driver of `scripts/vulkan-drivers`.
fn under(driver: &str, arguments: &[&str]) -> Option<Said> {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join(".vulkan/run");
    let runner = std::env::var_os("MXPROBE_VULKAN_RUN").map_or_else(default, PathBuf::from);
    if !runner.is_file() {
        let required = std::env::var_os("MXPROBE_REQUIRE_VULKAN").is_some_and(|value| value == "1");
        assert!(!required, "{} is not there: run scripts/vulkan-drivers", runner.display());
        eprintln!("not tested: {} is not there; run scripts/vulkan-drivers", runner.display());
        return None;
    }
    let mut command = Command::new(runner);
    command.arg(env!("CARGO_BIN_EXE_mxprobe")).args(arguments);
    for name in ["MXPROBE_DEVICE", "MXPROBE_EXE", "VK_DRIVER_FILES", "VK_LAYER_PATH", "MESA_SHADER_CACHE_DIR"] {
        command.env_remove(name);
    }
    Some(command.env("MXPROBE_VULKAN_DRIVER", driver).output().expect("the runner starts").into())
}

#[test]
fn lavapipe_is_probed_when_its_backend_is_named() {
    let Some(said) = under("lavapipe", &["--backend", "vulkan", "--format", "json"]) else { return };
    let report: Report = serde_json::from_str(&said.ended(0).out).unwrap();
    assert_eq!(report.device.kind, Kind::Software);
    assert!(report.operations.len() >= 4);
    for operation in &report.operations {
        assert_eq!(operation.finding("self_test").unwrap().outcome, Outcome::Measured, "{}", operation.operation.id);
        assert!(operation.kernel_sha256.is_some(), "{}", operation.operation.id);
    }
}

#[test]
fn a_driver_that_computes_in_software_is_left_out_unless_it_is_named() {
    let Some(said) = under("lavapipe", &["--probe", "self_test"]) else { return };
    let said = said.ended(0);
    assert!(said.err.contains("computes in software and is left out"), "{}", said.err);
    assert!(!said.out.contains("vulkan:0"), "{}", said.out);
}

#[test]
fn a_device_that_writes_nothing_is_reported_as_failed() {
    let Some(said) = under("radv:gfx1201", &["--backend", "vulkan", "--op", "*.f32.f16.f16.f32"]) else { return };
    let said = said.ended(4);
    assert!(said.out.contains("failed: ") && said.out.contains("what was in memory before"), "{}", said.out);
    assert!(said.out.contains("v_wmma_f32_16x16x16_f16"), "{}", said.out);
}

#[test]
fn without_a_driver_or_a_gpu_the_reason_is_given() {
    for (driver, reason) in [("none", "no Vulkan driver (ICD) was found"), ("radv", "found no device")] {
        let Some(said) = under(driver, &["--backend", "vulkan"]) else { return };
        let said = said.ended(3);
        assert!(said.err.starts_with("error: no usable device") && said.err.contains(reason), "{}", said.err);
    }
}
