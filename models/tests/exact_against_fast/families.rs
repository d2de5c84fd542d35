//! The long runs: families of operations, each on as many dots as fit in minutes.

use mxprobe_api::{OperationId, Random};
use mxprobe_models::{Evaluator, Path, shipped};

use super::{
    compare, fast_paths,
    inputs::{Case, INPUTS},
};

/// Operations of one kind of arithmetic.
struct Family {
    name: &'static str,
    operations: &'static [(&'static str, &'static str)],
}

const FAMILIES: [Family; 8] = [
    Family {
        name: "fused chains of f16, bf16 and tf32",
        operations: &[
            ("v100", "mma.m8n8k4.f32.f16.f16.f32"),
            ("v100", "mma.m8n8k4.f16.f16.f16.f16"),
            ("a100", "mma.m16n8k8.f32.f16.f16.f32"),
            ("a100", "mma.m16n8k8.f16.f16.f16.f16"),
            ("a100", "mma.m16n8k8.f32.bf16.bf16.f32"),
            ("a100", "mma.m16n8k4.f32.tf32.tf32.f32"),
            ("h100", "mma.m16n8k16.f32.f16.f16.f32"),
            ("h100", "mma.m16n8k16.f16.f16.f16.f16"),
            ("h100", "mma.m16n8k16.f32.bf16.bf16.f32"),
            ("h100", "mma.m16n8k8.f32.tf32.tf32.f32"),
        ],
    },
    Family {
        name: "fused chains of fp8 and smaller",
        operations: &[
            ("l40s", "mma.m16n8k16.f32.e4m3.e5m2.f32"),
            ("h100", "mma.m16n8k16.f32.e4m3.e4m3.f32"),
            ("h100", "mma.m16n8k16.f16.e5m2.e4m3.f16"),
            ("h100", "wgmma.m64n8k32.f32.e5m2.e5m2.f32"),
            ("h100", "wgmma.m64n8k32.f16.e4m3.e5m2.f16"),
            ("rtx5090", "mma.m16n8k32.f32.e3m2.e2m1.f32"),
            ("rtx5090", "mma.m16n8k32.f16.e4m3.e2m3.f16"),
        ],
    },
    Family {
        name: "fused multiply-adds and rounded trees",
        operations: &[
            ("fma-chain", "dot.m1n1k16.f32.f32.f32.f32"),
            ("fma-chain", "dot.m1n1k16.f32.f16.f16.f32"),
            ("fma-chain", "dot.m1n1k16.f16.f16.f16.f16"),
            ("fma-chain", "dot.m1n1k16.f64.f32.f32.f64"),
            ("a100", "mma.m8n8k4.f64.f64.f64.f64"),
            ("a100", "mma.m8n8k4.f64.f64.f64.f64.rz"),
            ("a100", "mma.m8n8k4.f32.f16.f16.f32"),
            ("amx", "amx.m16n16k32.f32.bf16.bf16.f32"),
            ("avx512", "dot.m1n1k2.f32.bf16.bf16.f32"),
            ("mi210", "mfma.m32n32k8.f32.f16.f16.f32"),
            ("llvmpipe", "coopmat.m8n8k8.f16.f16.f16.f16"),
            ("llvmpipe", "coopmat.m8n8k8.f32.f16.f16.f32"),
            ("arm", "bfmmla.m2n2k4.f32.bf16.bf16.f32"),
        ],
    },
    Family {
        name: "RDNA",
        operations: &[
            ("rdna3", "wmma.m16n16k16.f32.f16.f16.f32"),
            ("rdna3", "wmma.m16n16k16.f32.bf16.bf16.f32"),
            ("rdna3", "wmma.m16n16k16.f16.f16.f16.f16"),
            ("rdna3", "wmma.m16n16k16.bf16.bf16.bf16.bf16"),
            ("rdna4", "wmma.m16n16k16.f32.f16.f16.f32.wave64"),
            ("rdna4", "wmma.m16n16k16.f32.bf16.bf16.f32.wave32"),
            ("rdna4", "wmma.m16n16k16.f16.f16.f16.f16.wave32"),
            ("rdna4", "wmma.m16n16k16.f32.e4m3.e5m2.f32.wave64"),
        ],
    },
    Family {
        name: "CDNA3",
        operations: &[
            ("mi300x", "mfma.m32n32k8.f32.f16.f16.f32"),
            ("mi300x", "mfma.m32n32k8.f32.bf16.bf16.f32"),
            ("mi300x", "mfma.m32n32k4.f32.xf32.xf32.f32"),
            ("mi300x", "mfma.m32n32k16.f32.e4m3fnuz.e5m2fnuz.f32"),
        ],
    },
    Family {
        name: "exact sums, rounded once",
        operations: &[
            ("mi100", "mfma.m32n32k8.f32.f16.f16.f32"),
            ("mi100", "mfma.m32n32k4.f32.bf16.bf16.f32"),
            ("arm", "dot.m1n1k2.f32.bf16.bf16.f32.ebf"),
            ("arm", "dot.m1n1k2.f32.bf16.bf16.f32.ebf.fz"),
        ],
    },
    Family {
        name: "block scales",
        operations: &[
            ("rtx5090", "mma.m16n8k32.f32.e4m3.e5m2.f32.block32.ue8m0"),
            ("rtx5090", "mma.m16n8k64.f32.e2m1.e2m1.f32.block32.ue8m0"),
            ("rtx5090", "mma.m16n8k64.f32.e2m1.e2m1.f32.block16.ue4m3"),
        ],
    },
    Family {
        name: "integers",
        operations: &[
            ("h100", "mma.m16n8k32.s32.s8.u8.s32"),
            ("h100", "mma.m16n8k32.s32.u8.s8.s32.satfinite"),
            ("avx512", "dot.m1n1k2.s32.s16.s16.s32"),
            ("avx512", "dot.m1n1k2.s32.s16.s16.s32.satfinite"),
            ("arm", "ummla.m2n2k8.u32.u8.u8.u32"),
        ],
    },
];

impl Family {
    /// Compares two paths on `dots` dots, distributed over all operations and classes of inputs, and reports their
    /// number.
    fn compare(&self, reference: Path, path: Path, dots: usize, seed: u64) -> String {
        let mut pairs = Vec::new();
        for (name, id) in self.operations {
            let model = shipped().iter().find(|model| model.name == *name).expect("a shipped model");
            let id: OperationId = id.parse().unwrap();
            let reference = Evaluator::with_path(model, &id, reference).unwrap_or_else(|error| panic!("{error}"));
            let fast = Evaluator::with_path(model, &id, path).unwrap();
            if fast.path() != reference.path() {
                pairs.push((name, id, reference, fast));
            }
        }
        if pairs.is_empty() {
            return format!("{}: no {path:?} beside {reference:?}", self.name);
        }
        let mut random = Random(seed);
        let mut done = 0;
        let mut products = 0;
        while done < dots {
            for (name, id, reference, fast) in &pairs {
                for inputs in INPUTS {
                    let step = id.shape.sizes().2;
                    let side = if dots > 1_000_000 { 192 } else { 8 };
                    let case = Case::draw(id, (side, side, step), inputs, &mut random);
                    compare(reference, fast, &case, 2, &format!("{name}:{id} {inputs:?}"));
                    done += case.m * case.n;
                    products += case.m * case.n * case.k;
                }
            }
        }
        format!(
            "{}: {done} dots, {products} products, {} operations: {path:?} equal to {reference:?}",
            self.name,
            pairs.len()
        )
    }
}

#[test]
#[ignore = "takes ten minutes in release; run it with --nocapture for the counts"]
#[allow(clippy::print_stdout)]
fn ten_million_dots_of_every_family_agree_with_the_exact_evaluator() {
    for family in &FAMILIES {
        println!("{}", family.compare(Path::Exact, Path::Scalar, 10_000_000, 10));
    }
}

#[test]
#[ignore = "takes ten minutes in release; run it with --nocapture for the counts"]
#[allow(clippy::print_stdout)]
fn a_hundred_million_dots_of_every_family_agree_with_one_dot_at_a_time() {
    let lanes: Vec<Path> = fast_paths().into_iter().filter(|path| *path > Path::Scalar).collect();
    for family in &FAMILIES {
        for (index, path) in lanes.iter().enumerate() {
            // The fastest path in full, the others with a tenth of the dots.
            let dots = if index + 1 == lanes.len() { 100_000_000 } else { 10_000_000 };
            println!("{}", family.compare(Path::Scalar, *path, dots, 11));
        }
    }
}

/// Compares with the exact evaluator itself, which takes a minute or more per family. `MXPROBE_FAMILY` selects the
/// families whose name contains it, `MXPROBE_DOTS` sets the number of dots of each.
#[test]
#[ignore = "takes twenty minutes in release; run it with --nocapture for the counts"]
#[allow(clippy::print_stdout)]
fn a_hundred_million_dots_of_every_family_agree_with_the_exact_evaluator() {
    let wanted = std::env::var("MXPROBE_FAMILY").unwrap_or_default();
    let dots = std::env::var("MXPROBE_DOTS").map_or(100_000_000, |dots| dots.parse().expect("a number of dots"));
    let mut lanes = fast_paths();
    lanes.retain(|path| *path >= Path::Avx2);
    if lanes.is_empty() {
        lanes.push(Path::Scalar);
    }
    for family in FAMILIES.iter().filter(|family| family.name.contains(&wanted)) {
        for (index, path) in lanes.iter().enumerate() {
            // The fastest path in full, the others with a tenth of the dots.
            let dots = if index + 1 == lanes.len() { dots } else { dots / 10 };
            println!("{}", family.compare(Path::Exact, *path, dots, 12));
        }
    }
}

#[test]
fn the_operations_of_the_long_run_exist() {
    for family in &FAMILIES {
        let counts = family.compare(Path::Exact, Path::Scalar, 1, 13);
        assert!(counts.contains(&format!("{} operations", family.operations.len())), "{counts}");
    }
}
