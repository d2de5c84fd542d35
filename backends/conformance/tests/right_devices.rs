//! Right devices pass: every model, and the units of this CPU.

use mxprobe_api::{Backend, Device, OperationId};
use mxprobe_conformance::{Violation, against, against_dots, check, check_backend};
use mxprobe_cpu::CpuBackend;
use mxprobe_models::{Model, Path, load, shipped};
use mxprobe_sim::{ModelDevice, SimBackend};

fn show(violations: &[Violation]) -> String {
    violations.iter().map(|violation| format!("\n{violation}")).collect()
}

/// The number of elements of D in a tile from which only one operation of a unit and shape is tested.
const LARGE_TILE: u32 = 8192;

fn pass_the_suite(wanted: impl Fn(&Model, &OperationId) -> bool) -> usize {
    let mut operations = 0;
    for model in shipped() {
        let device = ModelDevice::new(model.clone());
        for operation in device.operations().values().filter(|operation| wanted(model, &operation.id)) {
            let violations = check(&device, operation);
            assert!(violations.is_empty(), "{}:{}", device.info().selector, show(&violations));
            operations += 1;
        }
    }
    operations
}

#[test]
fn every_operation_of_every_model_passes_the_suite() {
    let operations = pass_the_suite(|model, id| {
        let stands_for_others = || {
            let unit = model.unit(id).expect("an operation has a unit");
            unit.operations.iter().find(|other| other.shape == id.shape) == Some(id)
        };
        id.shape.m * id.shape.n < LARGE_TILE || stands_for_others()
    });
    assert!(operations > 1000, "{operations} operations");
}

/// `cargo test --release -p mxprobe-conformance --test right_devices -- --ignored`
#[test]
#[ignore = "takes a minute: every operation, including those with the largest tiles"]
fn every_operation_of_the_largest_tiles_passes_the_suite() {
    let operations = pass_the_suite(|_, id| id.shape.m * id.shape.n >= LARGE_TILE);
    assert!(operations > 100, "{operations} operations");
}

/// `cargo test --release -p mxprobe-conformance --test right_devices -- --ignored`
#[test]
#[ignore = "millions of dots"]
fn the_units_of_this_cpu_equal_their_models_on_millions_of_dots() {
    let models = ["amx", "avx512"].map(|name| ModelDevice::new(load(name).expect("the model comes with the crate")));
    for device in &CpuBackend::new().discover().devices {
        for operation in device.operations().values() {
            let Some(model) = models.iter().find(|model| model.operations().contains_key(&operation.id)) else {
                continue;
            };
            for seed in 0..8 {
                let violations = against_dots(device.as_ref(), operation, model, 50_000, seed);
                assert!(violations.is_empty(), "{}", show(&violations));
            }
        }
    }
}

#[test]
fn the_fast_evaluators_equal_the_exact_one_on_one_operation_of_every_unit() {
    for model in shipped() {
        let (fast, exact) = (ModelDevice::new(model.clone()), ModelDevice::exact(model.clone()));
        for unit in &model.units {
            let smallest = unit.operations.iter().min_by_key(|id| u64::from(id.shape.m * id.shape.n * id.shape.k));
            let Some(operation) = smallest.and_then(|id| fast.operations().get(id)) else { continue };
            let violations = against_dots(&fast, operation, &exact, 16, 2);
            assert!(violations.is_empty(), "{}:{}", fast.info().selector, show(&violations));
        }
    }
}

#[test]
fn a_model_equals_itself_by_another_path() {
    let model = load("h100").expect("the model comes with the crate");
    let (fast, scalar) = (ModelDevice::new(model.clone()), ModelDevice::with_path(model, Path::Scalar));
    for operation in fast.operations().values() {
        let violations = against_dots(&fast, operation, &scalar, 32, 3);
        assert!(violations.is_empty(), "{}", show(&violations));
    }
}

#[test]
fn the_backends_of_models_and_of_the_cpu_pass_as_backends() {
    for backend in [&SimBackend as &dyn Backend, &CpuBackend::new()] {
        let violations = check_backend(backend);
        assert!(violations.is_empty(), "{}:{}", backend.name(), show(&violations));
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "says what this machine has")]
fn the_units_of_this_cpu_pass_the_suite_and_equal_their_models() {
    let found = CpuBackend::new().discover();
    for refusal in &found.refusals {
        println!("not on this machine: {}: {}", refusal.what, refusal.reason);
    }
    let models = ["amx", "avx512"].map(|name| ModelDevice::new(load(name).expect("the model comes with the crate")));
    let mut violations = Vec::new();
    for device in &found.devices {
        for refusal in device.refusals() {
            println!("not on this machine: {}: {}", refusal.what, refusal.reason);
        }
        for operation in device.operations().values() {
            violations.extend(check(device.as_ref(), operation));
            let model = models.iter().find(|model| model.operations().contains_key(&operation.id));
            match model {
                Some(model) => violations.extend(against(device.as_ref(), operation, model)),
                None => println!("{} has no model", operation.id),
            }
            println!("{}: {}", device.info().name, operation.id);
        }
    }
    assert!(violations.is_empty(), "{}", show(&violations));
}
