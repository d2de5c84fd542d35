//! cuBLASLt as a device, on a fake library that computes by a recipe: the command recovers that recipe, and reports what
//! the library refuses.
#![allow(missing_docs)]
#![cfg(all(feature = "cuda", target_os = "linux"))]

mod fake;

use std::{fs, path::Path};

use fake::{Said, fake_driver, on_fake_driver};

/// The library's recipe: fp8 without fast accumulation promotes every 128 products, and splits k from 512 on; a split
/// takes a workspace for its slices. bf16 results are rounded once more.
const RECIPE: &str = r#"
schema = "mxprobe-recipe/1"
name = "fake"
title = "a fake cuBLASLt"
model = "l40s"

[sources]
own = "this test"

[adder.f32]
output = "f32"
rounding = "nearest-even"
nan = "0x7fffffff"
basis = "assumed"
source = "own"

[adder.bf16]
output = "bf16"
rounding = "nearest-even"
nan = "0x7fff"
basis = "assumed"
source = "own"

[[case]]
name = "slow-split"
operations = ["mma.m16n8k32.f32.{e4m3,e5m2}.{e4m3,e5m2}.f32"]
k = { from = 512 }
epilogue = "f32(acc, c)"
basis = "assumed"
source = "own"
[[case.level]]
slices = 3
walk = "interleaved"
tile = 64
add = "f32"
[[case.level]]
every = 128
start = "+0"
add = "f32"

[[case]]
name = "slow"
operations = ["mma.m16n8k32.f32.{e4m3,e5m2}.{e4m3,e5m2}.f32"]
epilogue = "f32(acc, c)"
basis = "assumed"
source = "own"
[[case.level]]
every = 128
start = "+0"
add = "f32"

[[case]]
name = "fast"
operations = ["mma.m16n8k32.f32.{e4m3,e5m2}.{e4m3,e5m2}.f32"]
epilogue = "f32(acc, c)"
basis = "assumed"
source = "own"

[[case]]
name = "f16"
operations = ["mma.m16n8k16.f32.f16.f16.f32"]
epilogue = "f32(acc, c)"
basis = "assumed"
source = "own"
"#;

const FP8: &str = "gemm.m*n*k*.f32.e4m3.e4m3.f32";

/// The folder of these tests, with the recipe.
fn folder() -> &'static Path {
    static FOLDER: std::sync::OnceLock<tempfile::TempDir> = std::sync::OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("fake.toml"), RECIPE).unwrap();
        folder
    });
    folder.path()
}

/// Runs the command on a fake L40S whose library computes by the recipe.
fn on_library(environment: &[(&str, &str)], arguments: &[&str]) -> Said {
    // The fake driver exports the functions of cuBLASLt too. The path must be the file that was opened as the driver.
    let (library, recipe) = (fake_driver().join("libcuda.so"), folder().join("fake.toml"));
    let usual = [
        ("MXPROBE_FAKE_MODEL", "l40s"),
        ("MXPROBE_CUBLASLT", library.to_str().unwrap()),
        ("MXPROBE_FAKE_RECIPE", recipe.to_str().unwrap()),
    ];
    on_fake_driver(&[&usual, environment].concat(), arguments)
}

/// The bits of a random product by some arguments of `gemm`.
fn product(environment: &[(&str, &str)], by: &[&str], size: &str) -> Vec<u8> {
    let out = folder().join(format!("{}.npy", size.replace(',', "x")));
    let drawn = ["--random", size, "--interval=-4,4", "--seed", "3", "--bits", "--out", out.to_str().unwrap()];
    let said = on_library(environment, &[&["gemm"], by, &drawn].concat());
    assert_eq!(said.code, Some(0), "{by:?}: {}", said.err);
    fs::read(out).unwrap()
}

#[test]
fn the_recipe_of_the_library_is_recovered_shape_by_shape_and_its_file_gives_the_librarys_bits() {
    let out = folder().join("found.toml");
    let shapes = ["--shapes", "16x16x96,16x32x320,16x16x576", "--elements", "2000"];
    let identify = ["identify", "--gemm", "--device", "cublaslt:0", "--op", FP8, "--out", out.to_str().unwrap()];
    let said = on_library(&[], &[&identify[..], &shapes].concat());
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    assert!(said.out.contains("cuBLASLt 12.8.3 on mxprobe test double of l40s"), "{}", said.out);
    let found = fs::read_to_string(&out).unwrap();
    let cases: Vec<&str> = found.split("[[case]]").skip(1).collect();
    assert_eq!(cases.len(), 3, "{found}");
    // One operation after another; then blocks; then slices of interleaved tiles, and blocks in them.
    assert!(!cases[0].contains("[[case.level]]"), "{}", cases[0]);
    assert!(cases[1].contains("every = 128") && !cases[1].contains("slices"), "{}", cases[1]);
    for words in ["slices = 3", "walk = \"interleaved\"", "tile = 64", "every = 128"] {
        assert!(cases[2].contains(words), "{words}: {}", cases[2]);
    }
    let unit = cases[0].split_once("operations").and_then(|(_, rest)| rest.split('"').nth(1)).unwrap();
    for (size, id) in
        [("16,32,320", "gemm.m16n32k320.f32.e4m3.e4m3.f32"), ("16,16,576", "gemm.m16n16k576.f32.e4m3.e4m3.f32")]
    {
        let by_file = product(&[], &["--recipe", out.to_str().unwrap(), "--op", unit], size);
        assert!(product(&[], &["--device", "cublaslt:0", "--op", id], size) == by_file, "{size}");
    }
}

#[test]
fn the_workspace_and_fast_accumulation_decide_which_algorithm_the_library_takes() {
    let of = |environment: &[(&str, &str)], id: &str| {
        product(environment, &["--device", "cublaslt:0", "--op", id], "16,16,640")
    };
    let id = "gemm.m16n16k640.f32.e4m3.e5m2.f32";
    let fast = format!("{id}.fast");
    let by_recipe = |case: &str| {
        let name = format!("{}@{case}", folder().join("fake.toml").display());
        product(&[], &["--recipe", &name, "--op", "mma.m16n8k32.f32.e4m3.e5m2.f32"], "16,16,640")
    };
    let (split, slow, fast_sum) = (by_recipe("slow-split"), by_recipe("slow"), by_recipe("fast"));
    assert!(split != slow && slow != fast_sum, "the cases differ on this input");
    assert!(of(&[], id) == split && of(&[("MXPROBE_CUBLASLT_WORKSPACE", "1000")], id) == slow);
    assert!(of(&[], &fast) == fast_sum);
}

#[test]
fn a_library_without_a_split_is_invariant_and_one_with_two_algorithms_is_not() {
    let invariance = |operation: &str| {
        let arguments = ["invariance", "--device", "cublaslt:0", "--op", operation, "--shapes", "16x16x128,32x48x128"];
        on_library(&[], &arguments)
    };
    for operation in [FP8, "gemm.m*n*k*.f32.f16.f16.f32"] {
        let said = invariance(operation);
        assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
        assert!(said.out.contains("of both have the same bits"), "{}", said.out);
    }
    // Rows of fewer than 32 take the split.
    let recipe = folder().join("rows.toml");
    fs::write(&recipe, RECIPE.replace("k = { from = 512 }", "m = { to = 31 }")).unwrap();
    let arguments = ["invariance", "--device", "cublaslt:0", "--op", FP8, "--shapes", "16x16x512,32x16x512"];
    let said = on_library(&[("MXPROBE_FAKE_RECIPE", recipe.to_str().unwrap())], &arguments);
    assert_eq!(said.code, Some(1), "{}{}", said.out, said.err);
    assert!(said.out.contains("have other bits"), "{}", said.out);
}

#[test]
fn shapes_and_products_that_the_library_does_not_have_are_refused_with_its_status() {
    let identify = |environment: &[(&str, &str)], operation: &str, shape: &str| {
        let arguments = ["identify", "--gemm", "--device", "cublaslt:0", "--op", operation, "--shapes", shape];
        on_library(environment, &arguments)
    };
    let said = identify(&[], FP8, "8x16x64");
    assert_eq!(said.code, Some(4), "{}{}", said.out, said.err);
    let words = "cuBLASLt 12.8.3 has no algorithm for gemm.m8n16k64.f32.e4m3.e4m3.f32: cublasLtMatmulAlgoGetHeuristic \
                 returned CUBLAS_STATUS_NOT_SUPPORTED (15)";
    let out = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(out.contains(words), "{}", said.out);
    // A product that the device lacks is not listed, and the list says why.
    let listed =
        on_library(&[("MXPROBE_FAKE_CAPABILITY", "8.6")], &["list", "--backend", "cublaslt", "--format", "json"]);
    let listed: serde_json::Value = serde_json::from_str(&listed.out).unwrap();
    let device = &listed["devices"][0];
    let ids: Vec<&str> =
        device["operations"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["gemm.m8n8k16.f32.f16.f16.f32"]);
    let refusals = device["refusals"].to_string();
    assert!(refusals.contains("compute capability 8.6 has no such product; 8.9 is the first"), "{refusals}");
    assert!(
        refusals.contains("gemm.m*n*k*.f64.f64.f64.f64") && refusals.contains("CUBLAS_STATUS_NOT_SUPPORTED"),
        "{refusals}"
    );
    assert!(device.to_string().contains(r#""workspace_bytes":"33554432""#), "{device}");
}

#[test]
fn without_a_recipe_every_kind_of_operand_reaches_the_library_in_its_place() {
    // The fake library computes by the model: a chain from c.
    for (model, formats, unit) in [
        ("a100", "f32.tf32.tf32.f32", "mma.m16n8k8.f32.tf32.tf32.f32"),
        ("a100", "f16.f16.f16.f16", "mma.m16n8k16.f16.f16.f16.f16"),
        ("a100", "f32.bf16.bf16.f32", "mma.m16n8k16.f32.bf16.bf16.f32"),
        ("a100", "f64.f64.f64.f64", "mma.m8n8k4.f64.f64.f64.f64"),
        ("l40s", "s32.s8.s8.s32", "mma.m16n8k32.s32.s8.s8.s32"),
        ("l40s", "f32.e5m2.e4m3.f32", "mma.m16n8k32.f32.e5m2.e4m3.f32"),
    ] {
        let environment = [("MXPROBE_FAKE_MODEL", model), ("MXPROBE_FAKE_RECIPE", "")];
        let id = format!("gemm.m16n48k32.{formats}");
        let by_library = product(&environment, &["--device", "cublaslt:0", "--op", &id], "16,48,32");
        let by_model = product(&environment, &["--device", &format!("sim:{model}"), "--op", unit], "16,48,32");
        assert!(by_library == by_model, "{model} {formats}");
    }
}

#[test]
fn a_missing_library_and_one_that_fails_are_one_error_each() {
    let eval = |environment: &[(&str, &str)]| {
        let out = folder().join("none.npy");
        let id = "gemm.m16n16k64.f32.e4m3.e4m3.f32";
        let arguments = ["gemm", "--device", "cublaslt:0", "--op", id, "--random", "16,16,64", "--out"];
        on_library(environment, &[&arguments[..], &[out.to_str().unwrap()]].concat())
    };
    let missing = eval(&[("MXPROBE_CUBLASLT", "/nowhere/libcublasLt.so")]);
    assert!(missing.err.contains("no cuBLASLt: `/nowhere/libcublasLt.so` does not open"), "{}", missing.err);
    let no_gpu = on_fake_driver(&[("MXPROBE_FAKE_FAULT", "no-device")], &["run", "--device", "cuda:0"]);
    assert_eq!(missing.code, no_gpu.code, "as for a missing driver: {}", no_gpu.err);
    let no_handle = eval(&[("MXPROBE_FAKE_FAULT", "no-handle")]);
    assert!(no_handle.err.contains("cublasLtCreate returned CUBLAS_STATUS_NOT_INITIALIZED (1)"), "{}", no_handle.err);
    let workspace = eval(&[("MXPROBE_CUBLASLT_WORKSPACE", "32M")]);
    assert!(workspace.err.contains("MXPROBE_CUBLASLT_WORKSPACE=`32M` is not a number of bytes"), "{}", workspace.err);
    for (fault, words) in [
        ("launch", "cublasLtMatmul returned CUBLAS_STATUS_EXECUTION_FAILED (13)"),
        ("launch-async", "CUDA_ERROR_LAUNCH_FAILED"),
        ("silent", "cublasLtMatmul succeeded, and D was never written, row 0, column 0 first"),
    ] {
        let said = eval(&[("MXPROBE_FAKE_FAULT", fault)]);
        assert!(said.code != Some(0) && said.err.contains(words), "{fault}: {}", said.err);
    }
}
