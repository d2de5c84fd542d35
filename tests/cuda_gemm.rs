//! `gemm` on the fake CUDA driver: whole matrices have the bits of the model, and are compared with a library's.
#![allow(missing_docs)]
#![cfg(all(feature = "cuda", target_os = "linux"))]

mod fake;

use fake::{fake_driver, on_fake_driver};

const F16: &str = "mma.m16n8k16.f32.f16.f16.f32";

/// Checks that `gemm` with these arguments gives the same bits on a model's fake driver and on the model itself.
#[track_caller]
fn multiplies_as_its_model(model: &str, operation: &str, arguments: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let product = |device: &str, name: &str| {
        let out = folder.path().join(name);
        let head = ["gemm", "--device", device, "--op", operation, "--bits", "--out", out.to_str().unwrap()];
        let said = on_fake_driver(&[("MXPROBE_FAKE_MODEL", model)], &[&head[..], arguments].concat());
        assert_eq!(said.code, Some(0), "{device} {operation} {arguments:?}: {}", said.err);
        std::fs::read(out).unwrap()
    };
    assert!(
        product("cuda:0", "device.npy") == product(&format!("sim:{model}"), "model.npy"),
        "{model} {operation} {arguments:?}: device and model differ"
    );
}

#[test]
fn whole_matrices_have_the_bits_of_the_model_in_every_kind_of_kernel() {
    for (model, operation) in [
        ("v100", "mma.m8n8k4.f32.f16.f16.f32"),
        ("v100", "mma.m8n8k4.f16.f16.f16.f16"),
        ("v100", "wmma.m16n16k16.f32.f16.f16.f32"),
        ("t4", "mma.m8n8k32.s32.s4.u4.s32"),
        ("a100", F16),
        ("a100", "mma.m16n8k8.f32.tf32.tf32.f32"),
        ("a100", "mma.m8n8k4.f64.f64.f64.f64"),
        ("a100", "wmma.m8n32k16.f32.bf16.bf16.f32"),
        ("l40s", "mma.m16n8k32.s32.s8.s8.s32.satfinite"),
        ("h100", "mma.m16n8k32.f32.e4m3.e5m2.f32"),
        ("h100", "mma.m16n8k16.f64.f64.f64.f64.rz"),
        ("h100", "wgmma.m64n8k16.f16.f16.f16.f16"),
        ("h100", "wgmma.m64n64k8.f32.tf32.tf32.f32"),
        ("h100", "wgmma.m64n256k32.s32.u8.s8.s32"),
        ("rtx5090", "mma.m16n8k32.f32.e2m1.e3m2.f32"),
        // Its sums are in tensor memory, so that it is computed tile by tile.
        ("b200", "tcgen05.m128n8k16.f32.f16.f16.f32"),
    ] {
        for sizes in ["70,90,65", "1,1,1"] {
            multiplies_as_its_model(model, operation, &["--random", sizes, "--interval=-4,4"]);
        }
    }
}

#[test]
fn whole_matrices_have_the_bits_of_the_model_in_words_and_whatever_adds_them() {
    let random = ["--random", "33,41,130", "--interval=-1,1", "--seed", "3"];
    for more in [
        &["--words", "2"][..],
        &["--words", "3", "--all-products"],
        &["--words", "2", "--accumulate", "fabsum-f32", "--block", "48"],
        &["--words", "2", "--accumulate", "fabsum-f64", "--block", "64"],
        &["--method", "markidis"],
        &["--method", "ootomo"],
    ] {
        multiplies_as_its_model("h100", F16, &[&random[..], more].concat());
    }
}

#[test]
fn the_yardstick_is_the_cublas_that_the_environment_names() {
    let arguments = [
        "gemm",
        "--device",
        "cuda:0",
        "--experiment",
        "yardstick",
        "--size",
        "40",
        "--rounds",
        "2",
        "--format",
        "json",
    ];
    let yardstick = |library: &std::path::Path| -> serde_json::Value {
        let environment = [("MXPROBE_CUBLAS", library.to_str().unwrap()), ("MXPROBE_FAKE_MODEL", "h100")];
        let said = on_fake_driver(&environment, &arguments);
        assert_eq!(said.code, Some(0), "{}", said.err);
        serde_json::from_str(&said.out).unwrap()
    };
    // The fake driver also exports the few functions of cuBLAS used here. The path must be the file that was opened as
    // the driver, not a copy of it.
    let found = yardstick(&fake_driver().join("libcuda.so"));
    let ways = found["ways"].as_array().unwrap();
    assert_eq!(ways[0]["name"], "cuBLAS 12.3.0 (libcuda.so)", "{found}");
    let error = |name: &str| {
        let way = ways.iter().find(|way| way["name"].as_str().unwrap().starts_with(name));
        way.unwrap_or_else(|| panic!("{name}: {found}"))["componentwise"].as_f64().unwrap()
    };
    assert!(error("cuBLAS") < 1e-6 && error("double-f16") < 1e-6 && error("f16") > 1e-5, "{found}");
    let found = yardstick(std::path::Path::new("/nowhere/libcublas.so"));
    assert!(found["no_library"].as_str().unwrap().contains("`/nowhere/libcublas.so` does not open"), "{found}");
}

#[test]
fn a_product_that_is_written_in_part_or_not_at_all_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("d.npy");
    for (fault, words) in
        [("silent", "never written"), ("launch", "CUDA_ERROR_LAUNCH_FAILED"), ("layout", "layout self-test")]
    {
        let arguments = ["gemm", "--device", "cuda:0", "--op", F16, "--random", "20,20,20", "--out"];
        let said =
            on_fake_driver(&[("MXPROBE_FAKE_FAULT", fault)], &[&arguments[..], &[out.to_str().unwrap()]].concat());
        assert!(said.code != Some(0) && said.err.contains(words) && !out.exists(), "{fault}: {}", said.err);
    }
}
