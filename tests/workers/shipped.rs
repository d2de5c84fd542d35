//! Shipped recipes of libraries give the library's own bits on the CPU they are for; on other CPUs, the recipe that
//! `identify --gemm` finds does.

use std::{fs, process::Command};

use super::{EXAMPLES, folder, mxprobe, onednn, python, said};

/// A library as a device, and its shipped recipe.
struct Library<'a> {
    device: &'a str,
    recipe: &'a str,
    /// The formats of D, A, B and C.
    formats: &'a str,
    operation: &'a str,
    /// Whether the library uses the code that the shipped recipe describes on this CPU.
    is_here: bool,
}

impl Library<'_> {
    /// The file of D that `gemm` writes for matrices drawn from a seed.
    fn product(&self, by: &[&str], shape: &str, seed: usize) -> Vec<u8> {
        let d = folder("shipped").join(format!("{}.npy", self.recipe));
        let (sizes, seed) = (shape.replace('x', ","), seed.to_string());
        let out = ["--bits", "--out", d.to_str().unwrap()];
        let drawn = ["--random", &sizes, "--interval=-1,1", "--seed", &seed];
        said(0, &[&["gemm"], by, &drawn, &out].concat(), "");
        fs::read(&d).unwrap()
    }

    /// Checks that products of a shape have the bits of the recipe.
    fn is_computed_by(&self, recipe: &str, shape: &str) {
        let [m, n, k] = shape.split('x').collect::<Vec<_>>()[..] else { panic!("{shape}") };
        let id = format!("gemm.m{m}n{n}k{k}.{}", self.formats);
        for seed in 1..4 {
            let own = self.product(&["--device", self.device, "--op", &id], shape, seed);
            let ours = self.product(&["--recipe", recipe, "--op", self.operation], shape, seed);
            assert!(own == ours, "{recipe}: {shape} of seed {seed} has other bits");
        }
    }

    /// Checks the shipped recipe at these shapes if it is for this CPU; otherwise a newly identified one at the first.
    fn is_reproduced(&self, shapes: &[&str]) {
        if self.is_here {
            return shapes.iter().for_each(|shape| self.is_computed_by(self.recipe, shape));
        }
        let file = folder("shipped").join(format!("{}.toml", self.recipe));
        let file = file.to_str().unwrap();
        let id = format!("gemm.m*n*k*.{}", self.formats);
        let identify = ["identify", "--gemm", "--device", self.device, "--op", &id, "--shapes", shapes[0]];
        let output = mxprobe(&[&identify[..], &["--elements", "2000", "--out", file]].concat(), "");
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
        // The identified recipe may have another unit.
        let found = fs::read_to_string(file).unwrap();
        let operation = found.lines().skip_while(|line| !line.starts_with("operations")).nth(1).expect("one operation");
        let operation = operation.trim().trim_matches([',', '"']);
        Library { operation, ..*self }.is_computed_by(file, shapes[0]);
    }
}

/// Prints the name of the kernels that NumPy's OpenBLAS chose, the number of its threads, on which the slices of long k
/// depend, and its version.
const CORE: &str = r"
import ctypes, glob, os, numpy
place = os.path.join(os.path.dirname(numpy.__file__), '..', 'numpy.libs', '*openblas*')
for library in glob.glob(place):
    name = ctypes.CDLL(library).scipy_openblas_get_corename64_
    name.restype = ctypes.c_char_p
    threads = ctypes.CDLL(library).scipy_openblas_get_num_threads64_()
    print(name().decode(), threads, numpy.__config__.CONFIG['Build Dependencies']['blas']['version'])
";

#[test]
#[cfg_attr(not(numpy), ignore = "needs NumPy: scripts/python-tools")]
fn the_shipped_recipe_of_openblas_gives_the_bits_of_numpy() {
    let output =
        Command::new(python()).args(["-W", "ignore", "-c", CORE]).env("OPENBLAS_NUM_THREADS", "2").output().unwrap();
    let core = String::from_utf8_lossy(&output.stdout);
    let numpy = Library {
        device: &format!("exec:env OPENBLAS_NUM_THREADS=2 {} {EXAMPLES}/python/numpy_matmul.py", python()),
        recipe: "openblas-skylakex-f32",
        formats: "f32.f32.f32.f32",
        operation: "dot.m1n1k4.f32.f32.f32.f32",
        is_here: core.trim().starts_with("SkylakeX 2 0.3.31"),
    };
    numpy.is_reproduced(&["4x4x64", "4x4x1000", "1x1x4096", "1x64x300", "16x16x4096", "64x48x2500", "64x64x1024"]);
}

/// Whether this CPU has an instruction, under the name that Linux gives it.
fn has(flag: &str) -> bool {
    let flags = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    flags.split_whitespace().any(|word| word == flag)
}

/// Checks a shipped recipe of oneDNN.
fn onednn_is_reproduced(recipe: &str, formats: &str, operation: &str, is_here: bool) {
    let shapes = ["4x4x64", "16x64x256", "64x48x2500", "16x16x4096", "1x64x4096"];
    Library { device: onednn(), recipe, formats, operation, is_here }.is_reproduced(&shapes);
}

#[test]
#[cfg_attr(
    not(all(onednn, cpp_compiler, avx512)),
    ignore = "needs AVX-512, a C++ compiler and oneDNN: scripts/python-tools on x86-64 Linux"
)]
fn the_shipped_recipe_of_onednn_for_bf16_gives_its_bits() {
    let (recipe, operation) = if has("amx_bf16") {
        ("onednn-amx-bf16", "amx.m16n16k32.f32.bf16.bf16.f32")
    } else {
        ("onednn-avx512-bf16", "dot.m1n1k2.f32.bf16.bf16.f32")
    };
    onednn_is_reproduced(recipe, "f32.bf16.bf16.f32", operation, has("amx_bf16") || has("avx512_bf16"));
}

#[test]
#[cfg_attr(
    not(all(onednn, cpp_compiler)),
    ignore = "needs a C++ compiler and oneDNN: scripts/python-tools on x86-64 Linux"
)]
fn the_shipped_recipe_of_onednn_for_f32_gives_its_bits() {
    let is_here = has("avx512_bf16");
    onednn_is_reproduced("onednn-avx512-f32", "f32.f32.f32.f32", "dot.m1n1k4.f32.f32.f32.f32", is_here);
}
