//! The choice of devices if a Vulkan driver computes in software. See also `tests/drivers.rs`.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use super::Said;

/// The program under a driver of `scripts/vulkan-drivers`.
fn under(driver: &str, arguments: &[&str]) -> Said {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join(".vulkan/run");
    let runner = std::env::var_os("MXPROBE_VULKAN_RUN").map_or_else(default, PathBuf::from);
    let mut command = Command::new(runner);
    command.arg(env!("CARGO_BIN_EXE_mxprobe")).args(arguments);
    for name in ["MXPROBE_DEVICE", "MXPROBE_EXE", "VK_DRIVER_FILES", "VK_LAYER_PATH", "MESA_SHADER_CACHE_DIR"] {
        command.env_remove(name);
    }
    command.env("MXPROBE_VULKAN_DRIVER", driver).output().expect("the runner starts").into()
}

#[test]
#[cfg_attr(not(vulkan_drivers), ignore = "scripts/vulkan-drivers fetches the drivers")]
fn a_screen_of_a_driver_that_computes_in_software_knows_its_model_and_leaves_out_nan() {
    let screen = ["screen", "--backend", "vulkan", "--op", "coopmat*", "--no-cache", "--passes", "1"];
    let said = under("lavapipe", &screen).ended(0);
    assert!(said.out.contains("llvmpipe") && said.out.contains("without NaN"), "{}", said.out);
    // Its compiler chooses which NaN of several an element has, by the element's place in the tile.
    let said = under("lavapipe", &[&screen[..], &["--nan", "bits"]].concat()).ended(1);
    assert!(said.out.contains("NaN alone, with other bits: `--nan any` screens without NaN"), "{}", said.out);
    let fault = ["--error-inject", "bit=3,lane=5"];
    let said = under("lavapipe", &[&screen[..], &fault].concat()).ended(1);
    assert!(said.out.contains("lane 5, bit 3"), "{}", said.out);
}

#[test]
#[cfg_attr(not(vulkan_drivers), ignore = "scripts/vulkan-drivers fetches the drivers")]
fn a_driver_that_computes_in_software_is_left_out_unless_it_is_named() {
    let said = under("lavapipe", &["--probe", "self_test"]).ended(0);
    assert!(said.err.contains("computes in software and is skipped"), "{}", said.err);
    assert!(!said.out.contains("vulkan:0"), "{}", said.out);
}
