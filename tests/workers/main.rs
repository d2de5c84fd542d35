//! The programs of `examples/workers`, as a user runs them: they compute what they claim, bit for bit, and the faulty
//! program, whose argument selects the fault, is caught in each case.
#![cfg(unix)]
#![allow(missing_docs)]

mod faults;
mod recipes;
mod shapes;
mod shipped;

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::OnceLock,
};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/workers");

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A folder for one test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("workers").join(name);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn mxprobe(arguments: &[&str], input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mxprobe"));
    command.args(arguments).env_remove("MXPROBE_DEVICE").env("OMP_NUM_THREADS", "1");
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    // A program that ends before it has read all input reports the reason itself.
    let _ = child.stdin.take().expect("it is piped").write_all(input.as_bytes());
    child.wait_with_output().expect("it ends")
}

/// The output of a command that ends with this exit code: standard output, and on failure standard error.
fn said(code: i32, arguments: &[&str], input: &str) -> String {
    let output = mxprobe(arguments, input);
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {out}{error}");
    if code == 0 { out.into_owned() } else { format!("{out}{error}") }
}

/// Runs a compiler.
fn compile(compiler: &str, arguments: &[&str], program: PathBuf) -> PathBuf {
    let output = Command::new(compiler).args(arguments).arg("-o").arg(&program).output().expect(compiler);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

/// The C++ example of this name, compiled with warnings as errors.
fn cpp(compiler: &str, name: &str, more: &[&str]) -> String {
    let source = format!("{EXAMPLES}/cpp/{name}.cpp");
    let arguments = ["-std=c++17", "-O1", "-ffp-contract=off", "-Wall", "-Wextra", "-Wshadow", "-Werror", &source];
    let program = compile(compiler, &[&arguments[..], more].concat(), folder("cpp").join(name));
    program.to_str().unwrap().to_owned()
}

/// The selector of the oneDNN example, which is compiled once against the library of `scripts/python-tools`.
fn onednn() -> &'static str {
    static DEVICE: OnceLock<String> = OnceLock::new();
    DEVICE.get_or_init(|| {
        let place = root().join(".python");
        let (headers, library) = (place.join("include"), place.join("lib"));
        let (headers, library) = (headers.to_str().unwrap(), library.to_str().unwrap());
        let rpath = format!("-Wl,-rpath,{library}");
        let more = ["-isystem", headers, "-L", library, "-l:libdnnl.so.3", &rpath];
        format!("exec:{}", cpp(&cpp_compiler(), "onednn", &more))
    })
}

fn cpp_compiler() -> String {
    std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned())
}

fn python() -> String {
    let usual = root().join(".python/bin/python").to_str().unwrap().to_owned();
    std::env::var("MXPROBE_PYTHON").unwrap_or(usual)
}

/// Writes a model file with one f32 adder that rounds to nearest, and this tree for this operation; returns its path.
fn model(name: &str, tree: &str, id: &str) -> String {
    let text = format!(
        "schema = \"mxprobe-model/1\"\nname = \"{name}\"\ntitle = \"of a test\"\nvendor = \"none\"\n\
         fingerprint = \"test\"\naliases = []\n[sources]\nown = \"the example's code\"\n\
         [adder.f32]\noutput = \"f32\"\nrounding = \"nearest-even\"\n\
         nan = {{ operand = \"quiet\", value = \"quiet\", invalid = \"0x7fc00000\" }}\nbasis = \"assumed\"\nsource = \"own\"\n\
         [[unit]]\ntree = \"{tree}\"\noperations = [\"{id}\"]\nbasis = \"assumed\"\nsource = \"own\"\n"
    );
    let path = folder("models").join(format!("{name}.toml"));
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Checks that the device has the bits of a model with this tree, and not those of another tree.
fn has_the_bits_of(device: &str, id: &str, name: &str, tree: &str, other: &str) {
    let verify = |code, model: &str| {
        said(
            code,
            &["verify", "--device", device, "--model", model, "--op", id, "--count", "20000", "--nan", "any"],
            "",
        )
    };
    verify(0, &model(name, tree, id));
    verify(1, &model(&format!("{name}-other"), other, id));
    let checked = said(0, &["conformance", "--device", device, "--op", id], "");
    assert!(checked.contains("nothing is wrong"), "{checked}");
}

#[test]
#[cfg_attr(not(cpp_compiler), ignore = "needs a C++ compiler")]
fn the_chain_in_cpp_is_a_chain_of_fused_multiply_adds() {
    let device = format!("exec:{}", cpp(&cpp_compiler(), "fma_chain", &[]));
    let (chain, rounded) = ("fold(c, all/1, fma32(all, acc))", "fold(c, all/1, f32(f32(all), acc))");
    for formats in ["f32.f32.f32.f32", "f32.bf16.bf16.f32"] {
        // Products of bf16 are exact in f32, except for subnormals.
        let other = if formats.contains("bf16") { "f32(c, all)" } else { rounded };
        let id = format!("gemm.m2n3k5.{formats}");
        has_the_bits_of(&device, &id, &format!("chain-{formats}"), &chain.replace("fma32", "f32"), other);
    }
    let listed = said(0, &["list", "--device", &device], "");
    assert!(listed.contains("FMA chain") && listed.contains("gemm.m8n8k16.f32.bf16.bf16.f32"), "{listed}");
}

#[test]
fn the_sums_in_rust_are_pairwise() {
    let source = format!("{EXAMPLES}/rust/src/main.rs");
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let arguments = ["--edition", "2024", "-Dwarnings", "-Copt-level=1", &source];
    let program = compile(&rustc, &arguments, folder("rust").join("pairwise-sums"));
    let device = format!("exec:{}", program.display());
    let (pairs, chain) = ("f32(pairs(all/1, f32(all), f32), c)", "f32(fold(c, all/1, f32(f32(all), acc)))");
    has_the_bits_of(&device, "gemm.m3n2k8.f32.f32.f32.f32", "pairs", pairs, chain);
}

#[test]
#[cfg_attr(not(numpy), ignore = "needs NumPy: scripts/python-tools")]
fn a_product_of_numpy_is_rounded_before_c_is_added() {
    let device = format!("exec:{} {EXAMPLES}/python/numpy_matmul.py", python());
    // (1 + 2^-12)² is 1 + 2^-11 + 2^-24, whose last bit f32 drops. With c = -(1 + 2^-11), a fused sum is that bit.
    let dot = r#"{"a":["0x3f800800"],"b":["0x3f800800"],"c":"0xbf801000"}"#;
    let id = "gemm.m4n2k5.f32.f32.f32.f32";
    assert_eq!(said(0, &["eval", "--device", &device, "--op", id], dot), "{\"d\":\"0x00000000\"}\n");
    let checked = said(0, &["conformance", "--device", &device, "--op", id], "");
    assert!(checked.contains("nothing is wrong"), "{checked}");
    let report = said(0, &["run", "--device", &device, "--shape", "2x2x16", "--format", "json", "-q"], "");
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["operations"][0]["id"], "gemm.m2n2k16.f32.f32.f32.f32");
    assert_eq!(report["device"]["driver"]["name"], "NumPy");
}

#[test]
#[cfg_attr(not(arm_emulator), ignore = "needs an Arm emulator: scripts/emulators")]
fn bfmmla_in_qemu_has_the_bits_of_the_model_of_arm() {
    let tools = root().join(".emulators");
    let program = cpp(tools.join("aarch64-c++").to_str().unwrap(), "bfmmla", &["-march=armv8.6-a"]);
    let device = format!("exec:{} {program}", tools.join("qemu-aarch64").display());
    for id in ["bfmmla.m2n2k4.f32.bf16.bf16.f32", "dot.m1n1k2.f32.bf16.bf16.f32"] {
        said(0, &["verify", "--device", &device, "--model", "arm", "--op", id, "--count", "20000"], "");
    }
    let checked = said(0, &["conformance", "--device", &device], "");
    assert_eq!(checked.matches("nothing is wrong").count(), 2, "{checked}");
}

#[test]
#[cfg_attr(
    not(all(onednn, cpp_compiler)),
    ignore = "needs a C++ compiler and oneDNN: scripts/python-tools on x86-64 Linux"
)]
fn a_product_of_onednn_adds_c_once() {
    let device = onednn();
    // The instruction that computes bf16 depends on the CPU; the sum of small integers does not.
    let eval = |formats: &str, [one, two, three]: [&str; 3]| {
        let dot = format!(r#"{{"a":["{one}","{two}"],"b":["{three}","{three}"],"c":"0x3f000000"}}"#);
        let id = format!("gemm.m3n5k7.{formats}");
        said(0, &["eval", "--device", device, "--op", &id], &dot)
    };
    // 1·3 + 2·3 + 0.5.
    if cfg!(avx512) {
        assert_eq!(eval("f32.bf16.bf16.f32", ["0x3f80", "0x4000", "0x4040"]), "{\"d\":\"0x41180000\"}\n");
    }
    assert_eq!(eval("f32.f32.f32.f32", ["0x3f800000", "0x40000000", "0x40400000"]), "{\"d\":\"0x41180000\"}\n");
    let checked = said(0, &["conformance", "--device", device, "--shape", "4x4x8"], "");
    // Without AVX-512, oneDNN does not multiply bf16.
    assert_eq!(checked.matches("nothing is wrong").count(), if cfg!(avx512) { 2 } else { 1 }, "{checked}");
}

#[test]
#[ignore = "needs torch: MXPROBE_TORCH_PYTHON names a Python that has it"]
fn a_product_of_torch_is_rounded_to_bf16() {
    let python = std::env::var("MXPROBE_TORCH_PYTHON").expect("MXPROBE_TORCH_PYTHON names a Python with torch");
    let device = format!("exec:{python} {EXAMPLES}/python/torch_matmul.py");
    let dot = r#"{"a":["0x3f80","0x4000"],"b":["0x4040","0x4040"],"c":"0x3f00"}"#;
    let sum = said(0, &["eval", "--device", &device, "--op", "gemm.m3n5k7.bf16.bf16.bf16.bf16"], dot);
    assert_eq!(sum, "{\"d\":\"0x4118\"}\n");
    let checked = said(0, &["conformance", "--device", &device, "--shape", "4x4x8"], "");
    assert!(checked.contains("nothing is wrong"), "{checked}");
}

/// The output of `eval` for one dot, 1·2 + 3·4 + 0.5, or its error.
fn callable(name: &str, code: i32, formats: &str) -> String {
    let [a, b, c] = match formats {
        "f32.f32.f32.f32" => [r#""0x3f800000","0x40400000""#, r#""0x40000000","0x40800000""#, "0x3f000000"],
        _ => [r#""0x3f80","0x4040""#, r#""0x40","0x48""#, "0x3f000000"],
    };
    let dot = format!(r#"{{"a":[{a}],"b":[{b}],"c":"{c}"}}"#);
    let device = format!("exec:env PYTHONPATH={EXAMPLES}/python {} {CALLABLES} {name}", python());
    said(code, &["eval", "--device", &device, "--op", &format!("gemm.m2n3k4.{formats}")], &dot)
}

const CALLABLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/workers/callables.py");
const F32: &str = "f32.f32.f32.f32";
const NARROW: &str = "f32.bf16.e4m3.f32";
const SUM: &str = "{\"d\":\"0x41680000\"}\n";

#[test]
#[cfg_attr(not(numpy), ignore = "needs NumPy: scripts/python-tools")]
fn output_of_a_python_library_does_not_reach_the_protocol() {
    assert_eq!(callable("prints", 0, F32), SUM);
}

#[test]
#[cfg_attr(not(numpy), ignore = "needs NumPy: scripts/python-tools")]
fn a_python_callable_gets_arrays_of_the_formats_types_in_tiles_or_in_batches_or_memoryviews() {
    assert_eq!(callable("types", 0, NARROW), SUM);
    assert_eq!(callable("words", 0, NARROW), "{\"d\":\"0x3f000000\"}\n");
    assert_eq!(callable("batched", 0, F32), SUM);
    assert_eq!(callable("memoryviews", 0, F32), SUM);
}

#[test]
#[cfg_attr(not(numpy), ignore = "needs NumPy: scripts/python-tools")]
fn an_exception_or_a_wrong_result_of_a_python_callable_is_reported_in_one_line() {
    for (name, words) in [
        ("raises", "ValueError: no room for this (callables.py, line "),
        ("ends", "exit code 7"),
        ("wrong_type", "TypeError: the result is float64, but D is f32 (float32)"),
        ("wrong_shape", "ValueError: the result has the shape (6,), but D has (2, 3)"),
        ("wrong_bytes", "ValueError: the result has 3 bytes, but D has 24"),
        ("nothing", "TypeError: memoryview: a bytes-like object is required, not 'NoneType'"),
        ("unsupported", "NotImplementedError: m = 1 alone"),
    ] {
        let text = callable(name, 4, F32);
        assert!(text.contains(words), "{name}: {text}");
    }
}
