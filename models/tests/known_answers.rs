//! Dots whose answers are known from measurements, from papers, or by hand, independent of the evaluators.

mod common;

use common::{dot, scaled_dot, times};
use mxprobe_models::{Basis, Model, load};

const V100: &str = "mma.m8n8k4.f32.f16.f16.f32";
const A100: &str = "mma.m16n8k8.f32.f16.f16.f32";
const H100: &str = "mma.m16n8k16.f32.f16.f16.f32";

/// The d of a line of the table, and the model's result.
fn answers(line: &str) -> Option<(&str, String)> {
    let (inputs, expected) = line.split_once(" = ")?;
    let (named, inputs) = inputs.split_once(": ")?;
    let (model, operation) = named.split_once(' ')?;
    let (inputs, scales) = inputs.split_once(", scales ").unwrap_or((inputs, " and "));
    let (products, c) = inputs.split_once(" + ").unwrap_or(("", inputs));
    let (of_a, of_b) = scales.split_once(" and ")?;
    Some((expected, scaled_dot(&load(model).unwrap(), operation, products, c, of_a, of_b)))
}

#[test]
fn every_known_dot_has_its_answer() {
    let (mut section, mut asked, mut wrong) = ("", 0, Vec::new());
    for line in include_str!("known_answers.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if line.starts_with('[') {
            section = line;
            continue;
        }
        let (expected, d) = answers(line).unwrap_or_else(|| panic!("{line}"));
        asked += 1;
        if d != expected {
            wrong.push(format!("{section} {line}: {d}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(asked > 240, "{asked}");
}

/// Inputs that need every carry bit, and the results with one fewer: the sum wraps.
#[test]
fn carry_bits_are_enough_and_one_fewer_would_show() {
    let full = |count| times(count, "3fff*3fff");
    for (name, operation, count, carry_bits, correct, wrapped) in [
        ("v100", V100, 4, 4, "418fe001", "c1603ffc"),
        ("a100", A100, 8, 5, "4207e001", "c1f03ffc"),
        ("h100", H100, 16, 6, "4283e001", "c2783ffc"),
    ] {
        let model = load(name).unwrap();
        assert_eq!(dot(&model, operation, &full(count), "3fffffff"), correct, "{name}");
        let with = |bits| {
            let mut model: Model = model.clone();
            for adder in &mut model.adders {
                adder.carry_bits = Some(bits);
            }
            dot(&model, operation, &full(count), "3fffffff")
        };
        assert_eq!(with(carry_bits), correct, "{name} with {carry_bits} carry bits");
        assert_eq!(with(carry_bits - 1), wrapped, "{name} with {} carry bits", carry_bits - 1);
    }
}

#[test]
fn the_default_nan_of_arm_under_ebf_is_specified() {
    for adder in load("arm").unwrap().adders.iter().filter(|adder| adder.name.starts_with("ebf")) {
        assert_eq!(adder.provenance.of("nan").basis, Basis::Specified, "{}", adder.name);
    }
}
