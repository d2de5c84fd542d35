use std::time::Duration;

use super::*;
use crate::proof::{conditions::Exponents, dot::Arithmetic, logic::Values, words::Word};
use mxprobe_models::load;

const V100: &str = "mma.m8n8k4.f32.f16.f16.f32";

fn effort(conditions: Conditions, tries: u64) -> Effort {
    Effort { seed: 1, tries, conditions, closed_form: false, end: Instant::now() + Duration::from_secs(3600) }
}

fn paper() -> Conditions {
    let range = Some(Exponents { low: -15, high: 14 });
    Conditions { a: range, b: range, ..Conditions::FINITE }
}

/// The inputs of table 5 of arXiv:2502.15999, b0 times 2^7 (printed there times 2^−7).
fn table_5() -> Dot {
    let (tiny, c) = (0x3980_0000, 0x3380_0000); // 2^−12, 2^−24
    let (a, b) = (vec![0x3b80_2000, 0x38a9_c000, tiny, tiny], vec![0x437f_c000, 0x3c38_e000, tiny, tiny]);
    Dot { a, b, c, scales: None }
}

#[test]
fn the_inputs_of_table_5_give_the_results_that_are_printed_and_a_simpler_dot_is_found() {
    let (model, id) = (load("v100").unwrap(), V100.parse().unwrap());
    let algorithms = [Algorithm::Markidis, Algorithm::Ootomo];
    let question = Question::new((&model, &id), algorithms, (Format::F32, 4), 4, Asked::Worse(1)).unwrap();
    let shown = question.shown(&table_5()).unwrap();
    // The results are 1 + 2^−23 and 1.
    assert_eq!(shown.outcomes.each_ref().map(|outcome| outcome.bits), [0x3f80_0001, 0x3f80_0000]);
    assert!(question.holds(&table_5()) && paper().hold(&question.of_dots, &table_5()));
    let Found::Dot(simple, _) = question.decide(&effort(paper(), 200_000)) else { panic!("no dot found") };
    assert!(simple.outcomes[1].error > simple.outcomes[0].error);
    assert!(cost(&question.of_dots, &simple.dot) < cost(&question.of_dots, &table_5()), "{simple:?}");
}

#[test]
fn either_of_two_ways_is_the_worse_one_on_some_dot() {
    let (model, id) = (load("a100").unwrap(), "mma.m16n8k8.f32.f16.f16.f32".parse().unwrap());
    for asked in [Asked::Worse(0), Asked::Worse(1), Asked::Different] {
        let algorithms = [Algorithm::Multiword, Algorithm::MultiwordFabsumV1];
        let question = Question::new((&model, &id), algorithms, (Format::F32, 16), 4, asked).unwrap();
        let Found::Dot(shown, _) = question.decide(&effort(paper(), 200_000)) else { panic!("{asked:?}") };
        assert!(question.holds(&shown.dot), "{asked:?}");
    }
}

/// The bits of a program over values, as the formula computes them.
fn over_bits(model: &Model, id: &OperationId, program: &Scalar, inputs: Format, dot: &Dot) -> u64 {
    let (unit, plan) = model.plan(id).unwrap();
    let word = |bits: u64, width: u32| -> Word<bool> { (0..width).map(|place| bits >> place & 1 == 1).collect() };
    let words = |bits: &[u64]| bits.iter().map(|bits| word(*bits, inputs.bits())).collect();
    let question = formula::Question {
        arithmetic: Arithmetic { adders: &model.adders, unit, plan: &plan, id, bounds: &[], spare_bits: 0 },
        inputs,
        a: words(&dot.a),
        b: words(&dot.b),
        c: word(dot.c, 32),
        conditions: Conditions::FINITE,
        adders: formula::Adders::new(&model.adders[plan.nodes[0].adder]),
    };
    let (_, bits) = question.scalar(&mut Values, program).unwrap();
    bits.iter().enumerate().fold(0, |sum, (place, bit)| sum | u64::from(*bit) << place)
}

#[test]
fn formulas_compute_every_algorithm_as_its_program_does() {
    for (name, id, inputs) in [
        ("v100", V100, Format::F32),
        ("a100", "mma.m16n8k8.f32.bf16.bf16.f32", Format::F32),
        ("h100", "mma.m16n8k16.f32.f16.f16.f32", Format::BF16),
    ] {
        let (model, id): (_, OperationId) = (load(name).unwrap(), id.parse().unwrap());
        let machine = Machine::new(&model, &id, inputs).unwrap();
        let of_dots = question_id(inputs, 6).unwrap();
        for algorithm in Algorithm::ALL {
            let program = algorithm.program(6, 2);
            let mut finite = 0;
            let dots = Draw::new(&of_dots, 3).take(16).chain(Sparse::new(&of_dots, 4).take(16));
            for dot in dots.map(|dot| paper().moved(&of_dots, dot)) {
                let Some(outcome) = machine.outcome(&program, &dot) else { continue };
                finite += 1;
                let found = over_bits(&model, &id, &program, inputs, &dot);
                assert_eq!(found, outcome.bits, "{name} {}: {}", algorithm.name(), dot.show(&of_dots));
            }
            assert!(finite > 12, "{name} {}: {finite}", algorithm.name());
        }
    }
}

#[test]
fn the_solver_finds_what_the_search_was_not_allowed_to() {
    let (model, id) = (load("v100").unwrap(), V100.parse().unwrap());
    let algorithms = [Algorithm::Single, Algorithm::FabsumV1];
    let range = Some(Exponents { low: -2, high: 1 });
    let conditions = Conditions { a: range, b: range, c: range, finite: true };
    let question = Question::new((&model, &id), algorithms, (Format::E4M3, 2), 1, Asked::Worse(1)).unwrap();
    let found = question.decide(&effort(conditions, 0));
    let Found::Dot(shown, FoundBy::Solver { .. }) = &found else { panic!("{found:?}") };
    assert!(question.holds(&shown.dot) && conditions.hold(&question.of_dots, &shown.dot));
}

#[test]
fn units_that_algorithms_cannot_call_are_refused_with_the_reason() {
    let model = load("h100").unwrap();
    for (id, inputs) in [
        ("mma.m16n8k16.f16.f16.f16.f16", Format::F32),
        ("mma.m16n8k32.s32.s8.s8.s32", Format::F32),
        ("mma.m16n8k16.f32.f16.f16.f32", Format::F64),
    ] {
        let id = id.parse().unwrap();
        let error = Machine::new(&model, &id, inputs).unwrap_err();
        assert!(error.is_unsupported(), "{error}");
    }
}
