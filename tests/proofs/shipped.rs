//! Proofs about shipped models and their variants.

use std::time::{Duration, Instant};

use mxprobe::{
    dots::cost,
    proof::{
        conditions::Conditions,
        decide::{Comparison, Effort, Verdict},
        search::as_input,
    },
};
use mxprobe_api::{Format, OperationId};
use mxprobe_models::load;

use crate::evaluators::representatives;

/// Whether two models are equal on an operation; a witness is replayed on the exact evaluator.
fn are_equal(one: &str, other: &str, id: &str) -> bool {
    let id: OperationId = id.parse().unwrap();
    let models = [load(one).unwrap(), load(other).unwrap()];
    let comparison = Comparison::new([&models[0], &models[1]], &id).unwrap();
    let end = Instant::now() + Duration::from_secs(3600);
    let effort = Effort { seed: 1, tries: 300_000, conditions: Conditions::ANY, closed_form: true, end };
    match comparison.decide(&effort) {
        Verdict::Equal(_) => true,
        Verdict::Differ(witness, _) => {
            let values = models.each_ref().map(|model| {
                let (unit, plan) = model.plan(&id).unwrap();
                mxprobe_models::evaluate(&model.adders, unit, &plan, &id, as_input(&witness.dot))
            });
            assert_eq!(values, witness.values, "{one} {other} {id}");
            assert_ne!(values[0], values[1], "{one} {other} {id}");
            assert!(cost(&id, &witness.dot)[0] <= 8, "{one} {other} {id}: {}", witness.dot.show(&id));
            false
        }
        Verdict::Undecided(undecided) => panic!("{one} {other} {id}: {}", undecided.why),
    }
}

#[test]
fn generations_that_keep_as_many_bits_are_equal_and_others_are_not() {
    let id = "mma.m16n8k8.f32.f16.f16.f32";
    assert!(are_equal("a100", "t4", id));
    assert!(are_equal("a100", "l40s", id));
    assert!(!are_equal("a100", "h100", id));
    assert!(are_equal("b200", "rtx5090", "mma.m16n8k16.f32.f16.f16.f32"));
    assert!(are_equal("h100", "a100", "mma.m16n8k32.s32.s8.s8.s32"));
    assert!(are_equal("h100", "a100", "mma.m8n8k4.f64.f64.f64.f64"));
}

#[test]
fn the_exponent_of_a_zero_term_shows_for_bf16_and_f16_results_and_never_for_f16_operands_and_f32_results() {
    let variant = "zero-exponent-mmasim-1";
    for model in ["a100", "h100"] {
        let other = format!("{model}@{variant}");
        assert!(are_equal(model, &other, "mma.m16n8k16.f32.f16.f16.f32"), "{model}");
        assert!(!are_equal(model, &other, "mma.m16n8k16.f32.bf16.bf16.f32"), "{model}");
        assert!(!are_equal(model, &other, "mma.m16n8k16.f16.f16.f16.f16"), "{model}");
    }
}

#[test]
fn every_variant_of_a_shipped_model_is_told_from_it_on_an_operation() {
    for model in mxprobe_models::shipped() {
        for variant in model.variants.keys() {
            let other = format!("{}@{variant}", model.name);
            let changed = load(&other).unwrap();
            let told = |tries: u64, id: &OperationId| {
                let comparison = Comparison::new([model, &changed], id).unwrap();
                let end = Instant::now() + Duration::from_secs(3600);
                comparison.rivals().search(1, tries, &Conditions::ANY, end).witness.is_some()
            };
            // Differences in the exponents of zero terms take longer to find, and show in f16 results.
            let any_of = |ids: &[&OperationId]| {
                let mut f16 = ids.iter().filter(|id| id.d == Format::F16 && id.a == Format::F16);
                ids.iter().any(|id| told(5_000, id)) || f16.any(|id| told(300_000, id))
            };
            // One operation of each unit and set of formats almost always shows the difference.
            let all: Vec<&OperationId> = model.operations.keys().collect();
            assert!(any_of(&representatives(model)) || any_of(&all), "{other}");
        }
    }
}
