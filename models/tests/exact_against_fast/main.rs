//! Compares every fast path with the exact evaluator, bit for bit, on every shipped operation and every class of
//! inputs.
//!
//! `cargo test -p mxprobe-models` runs a few thousand dots per operation. The long runs are
//! `cargo test --release -p mxprobe-models --test exact_against_fast -- --ignored --nocapture`.

mod abreast;
mod agree;
mod cancelling;
mod cut_later;
mod exact_sums;
mod families;
mod folds;
mod fused;
mod inputs;
mod left_over;
mod made_up;
mod odd_adders;
mod overflowing;
mod pairs;
mod scaled;
mod specials;
mod subnormal_c;
mod zero_signs;
mod zeros;

use std::{collections::BTreeSet, sync::OnceLock};

use mxprobe_api::{Elements, Format, GemmOperands, OperationId, Random, TileBatch};
use mxprobe_models::{Basis, Dot, Evaluator, Model, Origin, Path, multiply, shipped};

use inputs::{Case, INPUTS, Inputs, addend, factor};

fn compare(reference: &Evaluator, fast: &Evaluator, case: &Case, threads: usize, what: &str) {
    let wanted = reference.multiply(&case.matrices(), 1).unwrap();
    let got = fast.multiply(&case.matrices(), threads).unwrap();
    let format = wanted.format();
    if let Some(at) = (0..wanted.len()).find(|at| wanted.get(*at) != got.get(*at)) {
        panic!(
            "{what} {:?}: {} where {:?} gives {}: {}",
            fast.path(),
            format.hex(got.get(at)),
            reference.path(),
            format.hex(wanted.get(at)),
            case.describe(at)
        );
    }
}

/// Every operation whose arithmetic differs from the ones before it, with its model.
fn distinct_operations() -> Vec<(&'static Model, OperationId)> {
    static FOUND: OnceLock<Vec<(&'static Model, OperationId)>> = OnceLock::new();
    FOUND.get_or_init(find_distinct_operations).clone()
}

fn find_distinct_operations() -> Vec<(&'static Model, OperationId)> {
    let mut seen = BTreeSet::new();
    let mut operations = Vec::new();
    for model in shipped() {
        for id in model.operations.keys() {
            let (unit, plan) = model.plan(id).unwrap();
            // The computation of each node, without names and sources.
            let nodes: Vec<String> = plan
                .nodes
                .iter()
                .map(|node| {
                    let mut adder = model.adders[node.adder].clone();
                    adder.name.clear();
                    adder.provenance.exceptions.clear();
                    adder.provenance.origin = Origin { basis: Basis::Assumed, source: String::new() };
                    format!("{adder:?} {:?}", node.terms)
                })
                .collect();
            let formats = [id.a, id.b, id.c, id.d].map(Format::name).join(" ");
            let key = format!("{formats} {nodes:?} {:?} {:?}", unit.flush, id.block_scale());
            if seen.insert(key) {
                operations.push((model, id.clone()));
            }
        }
    }
    operations
}

fn fast_paths() -> Vec<Path> {
    Path::available().into_iter().filter(|path| *path != Path::Exact).collect()
}

#[test]
#[allow(clippy::print_stdout)]
fn every_fast_path_returns_the_bits_of_the_exact_evaluator() {
    let mut random = Random(1);
    let mut dots = 0;
    for (model, id) in distinct_operations() {
        let reference = Evaluator::with_path(model, &id, Path::Exact).unwrap();
        let fast: Vec<_> =
            fast_paths().into_iter().map(|path| Evaluator::with_path(model, &id, path).unwrap()).collect();
        let step = id.shape.sizes().2;
        for (turn, inputs) in INPUTS.into_iter().enumerate() {
            // Narrow panels, and sometimes a wide one plus a few columns. If d can be c, two chained operations, the
            // second one cut short.
            let k = if id.c == id.d && step <= 16 { 2 * step - 1 } else { step };
            let (m, n) = if (turn + dots) % 4 == 0 { (1, 67) } else { (3, 1 + 300 / k) };
            let case = Case::draw(&id, (m, n, k), inputs, &mut random);
            dots += case.m * case.n;
            let wanted = reference.multiply(&case.matrices(), 1).unwrap();
            for fast in &fast {
                let got = fast.multiply(&case.matrices(), 1).unwrap();
                if let Some(at) = (0..wanted.len()).find(|at| wanted.get(*at) != got.get(*at)) {
                    panic!(
                        "{}:{id} {inputs:?} {:?}: {} where exact gives {}: {}",
                        model.name,
                        fast.path(),
                        id.d.hex(got.get(at)),
                        id.d.hex(wanted.get(at)),
                        case.describe(at)
                    );
                }
            }
        }
    }
    println!("{dots} dots of {} operations", distinct_operations().len());
    assert!(dots > 100_000, "{dots}");
}

#[test]
fn threads_and_shapes_do_not_change_the_bits() {
    let mut random = Random(2);
    for (model, id) in distinct_operations().into_iter().step_by(7) {
        let reference = Evaluator::with_path(model, &id, Path::Scalar).unwrap();
        let fast = Evaluator::new(model, &id).unwrap();
        let step = id.shape.sizes().2;
        for (m, n, k) in
            [(1, 1, 1), (2, 65, step), (7, 130, 2 * step + 1), (65, 3, step), (3, 2, 0), (0, 4, 2), (4, 0, 2)]
        {
            let k = if id.c == id.d { k } else { k.min(step) };
            let case = Case::draw(&id, (m, n, k), Inputs::Narrow, &mut random);
            for threads in [0, 1, 2, 5] {
                compare(&reference, &fast, &case, threads, &format!("{}:{id} {m}×{n}×{k}", model.name));
            }
        }
    }
}

#[test]
fn sixteen_largest_products_and_c_do_not_wrap() {
    // 16 · (2 − 2^−10)² · 2^25 is just below 2^31, and c raises the sum above it.
    let model = shipped().iter().find(|model| model.name == "h100").expect("a shipped model");
    let id: OperationId = "mma.m16n8k16.f32.f16.f16.f32".parse().unwrap();
    let (m, n, k) = (3, 70, 16);
    let a = Elements::from_bits(Format::F16, (0..m * k).map(|_| 0x3fff));
    // 65.93653869628906, an f32.
    for (b, c, d) in [(0x3fff, 0x3fff_e000_u64, 65.936_54_f32), (0xbfff, 0xbfff_e000, -65.936_54)] {
        let b = Elements::from_bits(Format::F16, (0..k * n).map(|_| b));
        let c = Elements::from_bits(Format::F32, (0..m * n).map(|_| c));
        let matrices = GemmOperands { m, n, k, a: &a, b: &b, c: &c, scale_a: None, scale_b: None };
        for path in Path::available() {
            let got = Evaluator::with_path(model, &id, path).unwrap().multiply(&matrices, 1).unwrap();
            assert!(got.iter().all(|bits| bits == u64::from(d.to_bits())), "{path:?}: {:#x}", got.get(0));
        }
    }
}

#[test]
fn tiles_are_the_same_on_every_path() {
    let mut random = Random(3);
    for (model, id) in distinct_operations().into_iter().step_by(11) {
        let operation = &model.operations[&id];
        let (m, n, k) = id.shape.sizes();
        // A little more than twice what a thread takes at a time, except for the largest shapes.
        let tiles = (40_000 / (m * n * k)).clamp(1, 5);
        let mut batch = TileBatch::zeros(operation, tiles);
        let inputs = INPUTS[(batch.a.len() + batch.c.len() + k) % INPUTS.len()];
        for index in 0..batch.a.len() {
            batch.a.set(index, factor(id.a, inputs, &mut random));
        }
        for index in 0..batch.b.len() {
            batch.b.set(index, factor(id.b, inputs, &mut random));
        }
        for index in 0..batch.c.len() {
            batch.c.set(index, addend(id.c, inputs, &mut random));
        }
        let scale = id.block_scale().map(|scale| scale.format);
        for scales in [&mut batch.scale_a, &mut batch.scale_b].into_iter().flatten() {
            for index in 0..scales.len() {
                scales.set(index, factor(scale.expect("scales"), Inputs::Narrow, &mut random));
            }
        }
        let tiles_by = |path| Evaluator::with_path(model, &id, path).unwrap().tiles(&batch, 2);
        let wanted = tiles_by(Path::Scalar);
        assert_eq!(wanted, tiles_by(Path::Avx512), "{}:{id} {inputs:?}", model.name);
        if m * n * k * tiles <= 5000 {
            assert_eq!(wanted, tiles_by(Path::Exact), "{}:{id} {inputs:?}", model.name);
        }
    }
}

#[test]
fn tiles_of_one_element_are_computed_as_the_exact_evaluator_computes_them() {
    let mut random = Random(27);
    let adder = "output = \"f32\"\nrounding = \"nearest-even\"\n\
                 nan = { operand = \"quiet\", value = \"quiet\", invalid = \"0x7fc00000\" }\n";
    let operations = "dot.m1n1k4.f32.e4m3.e5m2.f32";
    let converts = made_up::made_up(
        "converts",
        &[("s", adder)],
        &[("fold(c, all/2, s(all, acc))", operations, "convert_to = \"f16\"")],
    );
    let made_up = converts.units[0].operations.iter().map(|id| (&converts, id.clone()));
    let is_one = |id: &OperationId| matches!(id.shape.sizes(), (1, 1, 2..=32));
    for (model, id) in distinct_operations().into_iter().filter(|(_, id)| is_one(id)).chain(made_up) {
        for inputs in INPUTS {
            let mut batch = TileBatch::zeros(&model.operations[&id], 67);
            (0..batch.a.len()).for_each(|at| batch.a.set(at, factor(id.a, inputs, &mut random)));
            (0..batch.b.len()).for_each(|at| batch.b.set(at, factor(id.b, inputs, &mut random)));
            (0..batch.c.len()).for_each(|at| batch.c.set(at, addend(id.c, inputs, &mut random)));
            let scale = id.block_scale().map(|scale| scale.format);
            for scales in [&mut batch.scale_a, &mut batch.scale_b].into_iter().flatten() {
                (0..scales.len()).for_each(|at| scales.set(at, factor(scale.unwrap(), Inputs::Narrow, &mut random)));
            }
            let tiles_by = |path, threads| Evaluator::with_path(model, &id, path).unwrap().tiles(&batch, threads);
            let wanted = tiles_by(Path::Exact, 1);
            for path in fast_paths() {
                // One thread, and more than this machine has, in which dots are not computed as tiles.
                for threads in [1, 10_000] {
                    assert_eq!(tiles_by(path, threads), wanted, "{}:{id} {inputs:?} {path:?}", model.name);
                }
            }
        }
    }
}

#[test]
fn one_dot_is_what_a_matrix_holds() {
    let mut random = Random(4);
    for (model, id) in distinct_operations().into_iter().step_by(5) {
        let fast = Evaluator::new(model, &id).unwrap();
        let case = Case::draw(&id, (1, 1, id.shape.sizes().2), Inputs::AnyBits, &mut random);
        let bits = |of: &Elements| of.iter().collect::<Vec<_>>();
        let scales = case.scales.as_ref().map(|(a, b)| (bits(a), bits(b)));
        let scales = scales.as_ref().map(|(a, b)| (&a[..], &b[..]));
        let dot = Dot { a: &bits(&case.a), b: &bits(&case.b), c: case.c.get(0), scales };
        assert_eq!(fast.dot(dot).unwrap(), fast.multiply(&case.matrices(), 1).unwrap().get(0), "{}:{id}", model.name);
    }
}

#[test]
fn what_does_not_fit_is_refused_with_both_numbers() {
    let model = shipped().iter().find(|model| model.name == "h100").expect("a shipped model");
    let id: OperationId = "mma.m16n8k16.f32.f16.f16.f32".parse().unwrap();
    let (a, b, c) =
        (Elements::zeros(Format::F16, 6), Elements::zeros(Format::F16, 12), Elements::zeros(Format::F32, 8));
    let matrices = GemmOperands { m: 2, n: 4, k: 3, a: &a, b: &b, c: &c, scale_a: None, scale_b: None };
    assert!(multiply(model, &id, &matrices, 1).is_ok());
    for (matrices, part) in [
        (GemmOperands { m: 3, ..matrices }, "6 elements, not 3×3"),
        (GemmOperands { c: &a, ..matrices }, "c holds f16"),
        (GemmOperands { scale_a: Some(&a), ..matrices }, "takes no block scales"),
    ] {
        let error = multiply(model, &id, &matrices, 1).unwrap_err();
        assert!(error.is_invalid() && error.to_string().contains(part), "{error}");
    }
    let model = shipped().iter().find(|model| model.name == "v100").expect("a shipped model");
    let id: OperationId = "mma.m8n8k4.f32.f16.f16.f16".parse().unwrap();
    let (a, b, c) = (Elements::zeros(Format::F16, 5), Elements::zeros(Format::F16, 5), Elements::zeros(Format::F16, 1));
    let matrices = GemmOperands { m: 1, n: 1, k: 5, a: &a, b: &b, c: &c, scale_a: None, scale_b: None };
    let error = multiply(model, &id, &matrices, 1).unwrap_err();
    assert!(error.to_string().contains("cannot be the next one's c"), "{error}");
}

#[test]
fn a_negative_c_whose_bits_are_all_cut_is_positive_zero_on_every_path() {
    let id: OperationId = "mma.m16n8k16.f32.e5m2.e5m2.f32".parse().unwrap();
    let model = mxprobe_models::load("l40s").unwrap();
    let (m, n, k) = id.shape.sizes();
    let (a, b) = (Elements::zeros(id.a, m * k), Elements::zeros(id.b, k * n));
    let c = Elements::from_bits(id.c, (0..m * n).map(|_| 0x8000_0100));
    let matrices = GemmOperands { m, n, k, a: &a, b: &b, c: &c, scale_a: None, scale_b: None };
    for path in Path::available() {
        let d = Evaluator::with_path(&model, &id, path).unwrap().multiply(&matrices, 1).unwrap();
        assert!(d.iter().all(|bits| bits == 0), "{path:?} gives {:#x}", d.get(0));
    }
}

#[test]
fn a_sum_of_negative_zeros_is_one_beside_a_column_whose_sum_loses_bits() {
    // 2^15 · 2^15 + 2^−24 · 2^−24 needs 79 bits; the other column has only −0.
    let model = shipped().iter().find(|model| model.name == "mi100").expect("a shipped model");
    let id: OperationId = "mfma.m32n32k8.f32.f16.f16.f32".parse().unwrap();
    let (m, n, k) = (2, 2, 4);
    let a = Elements::from_bits(Format::F16, [0x7800, 0x0001, 0, 0, 0x8000, 0x8000, 0x8000, 0x8000]);
    let b = Elements::from_bits(Format::F16, [0x7800, 0x8000, 0x0001, 0x8000, 0, 0x8000, 0, 0x8000]);
    let b_of_zeros = Elements::from_bits(Format::F16, [0x7800, 0, 0x0001, 0, 0, 0, 0, 0]);
    let c = Elements::from_bits(Format::F32, [0, 0x8000_0000, 0x8000_0000, 0x8000_0000]);
    for b in [&b, &b_of_zeros] {
        let matrices = GemmOperands { m, n, k, a: &a, b, c: &c, scale_a: None, scale_b: None };
        let wanted = Evaluator::with_path(model, &id, Path::Exact).unwrap().multiply(&matrices, 1).unwrap();
        for path in Path::available() {
            let got = Evaluator::with_path(model, &id, path).unwrap().multiply(&matrices, 1).unwrap();
            assert!(wanted == got, "{path:?}: {:x?} where exact gives {:x?}", bits_of(&got), bits_of(&wanted));
        }
    }
}

fn bits_of(elements: &Elements) -> Vec<u64> {
    elements.iter().collect()
}
