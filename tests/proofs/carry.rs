//! The closed form for carry bits, checked by the solver on small units: its number of bits is proved to suffice, and
//! one bit fewer is refuted by a dot.

use std::time::{Duration, Instant};

use mxprobe::proof::{
    carry::sufficient_carry_bits,
    conditions::Conditions,
    decide::{Comparison, Effort, Verdict},
};
use mxprobe_api::OperationId;
use mxprobe_models::Model;

/// A model file of a unit with one addition.
const UNIT: &str = r#"
schema = "mxprobe-model/1"
name = "unit"
title = "a unit of one addition"
vendor = "nobody"
fingerprint = "unit"
[sources]
nobody = "made up"
[adder.sum]
fraction_bits = FRACTION
exponent = "EXPONENT"
below = "BELOW"
carry_bits = CARRY
output = "f32"
rounding = "toward-zero"
nan = "0x7fffffff"
basis = "assumed"
source = "nobody"
[[unit]]
tree = "sum(all, c)"
operations = ["dot.m1n1kCOUNT.f32.FORMAT.FORMAT.f32"]
basis = "assumed"
source = "nobody"
"#;

/// The number of products, their format, the fraction bits, the exponent convention and the treatment of lower bits.
type Case = (u32, &'static str, i32, &'static str, &'static str);

fn model(case: Case, carry_bits: u32) -> (Model, OperationId) {
    let (count, format, fraction_bits, exponent, below) = case;
    let text = UNIT
        .replace("COUNT", &count.to_string())
        .replace("FORMAT", format)
        .replace("FRACTION", &fraction_bits.to_string())
        .replace("EXPONENT", exponent)
        .replace("BELOW", below)
        .replace("CARRY", &carry_bits.to_string());
    let id = format!("dot.m1n1k{count}.f32.{format}.{format}.f32").parse().unwrap();
    (Model::parse("unit.toml", &text, None).unwrap(), id)
}

/// Whether a model with this many carry bits equals one with the maximum of 64.
fn suffice(case: Case, carry_bits: u32) -> bool {
    let ((one, id), (other, _)) = (model(case, carry_bits), model(case, 64));
    let comparison = Comparison::new([&one, &other], &id).unwrap();
    let end = Instant::now() + Duration::from_secs(3600);
    let effort = Effort { seed: 1, tries: 20_000, conditions: Conditions::FINITE, closed_form: false, end };
    match comparison.decide(&effort) {
        Verdict::Equal(certificate) => {
            assert!(certificate.refuted.is_some(), "{case:?}: the formulas do not tell {carry_bits} bits from 64");
            true
        }
        Verdict::Differ(..) => false,
        Verdict::Undecided(undecided) => panic!("{case:?} {carry_bits}: {}", undecided.why),
    }
}

fn closed_form(case: Case) -> u32 {
    let (model, id) = model(case, 64);
    let (_, plan) = model.plan(&id).unwrap();
    sufficient_carry_bits(&model.adders[0], &plan.nodes[0], &id, &model.adders, &plan.nodes).unwrap()
}

#[test]
fn what_suffices_by_the_closed_form_is_proved_to_and_is_the_least_for_small_units() {
    for case in [
        (1, "f16", 24, "operands", "truncate"),
        (2, "f16", 23, "leading", "truncate"),
        (3, "bf16", 24, "operands", "truncate"),
        (4, "e4m3", 23, "operands", "truncate"),
        (4, "e5m2", 24, "operands", "nearest"),
        (4, "e2m1", 13, "operands", "truncate"),
        (4, "f16", 23, "operands", "truncate"),
    ] {
        let bits = closed_form(case);
        assert!(suffice(case, bits), "{case:?}: {bits} carry bits do not suffice");
        assert!(bits == 0 || !suffice(case, bits - 1), "{case:?}: {} carry bits suffice too", bits - 1);
    }
}

#[test]
#[ignore = "takes a minute: sums of up to 17 terms"]
fn what_suffices_by_the_closed_form_is_proved_to_and_is_the_least_for_larger_units() {
    for count in [5, 8, 12, 16] {
        for format in ["f16", "bf16", "e4m3", "e5m2"] {
            for exponent in ["operands", "leading"] {
                for below in ["truncate", "floor", "nearest"] {
                    let case = (count, format, 24, exponent, below);
                    let bits = closed_form(case);
                    assert!(suffice(case, bits), "{case:?}: {bits} carry bits do not suffice");
                    assert!(!suffice(case, bits - 1), "{case:?}: {} carry bits suffice too", bits - 1);
                }
            }
        }
    }
}
