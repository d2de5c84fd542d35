//! Fused multiply-adds that no instruction of a processor computes as they stand: of f16, and of f32 factors to f64.

use mxprobe_api::{Elements, GemmOperands, OperationId, Random};
use mxprobe_models::{Evaluator, Path, shipped};

use super::{
    compare, fast_paths,
    inputs::{Case, INPUTS, addend},
};

fn evaluator(id: &OperationId, path: Path) -> Evaluator {
    let model = shipped().iter().find(|model| model.name == "fma-chain").expect("a shipped model");
    Evaluator::with_path(model, id, path).unwrap()
}

#[test]
fn a_tie_that_c_breaks_far_below_is_rounded_once_on_every_path() {
    let id: OperationId = "dot.m1n1k4.f16.f16.f16.f16".parse().unwrap();
    let (m, n, k) = (3, 40, 4);
    // 1.5 · 683/1024 = 1 + 2^−11 lies between two f16, and the least subnormal is lost beside it in an f32.
    for (b, c, d) in [(0x3956, 0x0001, 0x3c01), (0x3956, 0x8001, 0x3c00), (0xb956, 0x8001, 0xbc01)] {
        let a = Elements::from_bits(id.a, (0..m * k).map(|at| if at % k == 0 { 0x3e00 } else { 0 }));
        let b = Elements::from_bits(id.b, (0..k * n).map(|at| if at < n { b } else { 0 }));
        let c = Elements::from_bits(id.c, vec![c; m * n]);
        let matrices = GemmOperands { m, n, k, a: &a, b: &b, c: &c, scale_a: None, scale_b: None };
        for path in Path::available() {
            let found = evaluator(&id, path).multiply(&matrices, 1).unwrap();
            assert!(found.iter().all(|bits| bits == d), "{path:?}: {:#x}, not {d:#x}", found.get(0));
        }
    }
}

#[test]
fn fused_multiply_adds_of_f16_and_of_f32_to_f64_are_computed_in_lanes() {
    let mut random = Random(21);
    for (id, first) in [("dot.m1n1k8.f16.f16.f16.f16", Path::Portable), ("dot.m1n1k8.f64.f32.f32.f64", Path::Avx2)] {
        let id: OperationId = id.parse().unwrap();
        let reference = evaluator(&id, Path::Exact);
        for path in fast_paths() {
            let fast = evaluator(&id, path);
            assert_eq!(fast.path() > Path::Scalar, path >= first, "{id} {path:?}");
            for factors in INPUTS {
                for values in INPUTS {
                    let mut case = Case::draw(&id, (2, 67, 2 * 8 - 1), factors, &mut random);
                    (0..case.m * case.n).for_each(|at| case.c.set(at, addend(id.c, values, &mut random)));
                    compare(&reference, &fast, &case, 1, &format!("{id} {factors:?} {values:?}"));
                }
            }
        }
    }
}
