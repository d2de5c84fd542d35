//! The bit-level evaluator, whose code also builds formulas, computes the same results as the exact evaluator.

use std::collections::BTreeMap;

use mxprobe::{
    dots::{Dot, Draw},
    proof::{
        conditions::{Conditions, Exponents},
        dot::{Arithmetic, Inputs, evaluate},
        logic::Values,
        search::as_input,
    },
};
use mxprobe_api::{Format, OperationId};
use mxprobe_models::{Evaluator, Model, Path, shipped};

/// Fails if the bit-level evaluator and the exact one differ on a dot.
fn agree(model: &Model, id: &OperationId, dots: impl Iterator<Item = Dot>) {
    let (unit, plan) = model.plan(id).unwrap();
    let arithmetic = Arithmetic { adders: &model.adders, unit, plan: &plan, id, bounds: &[], spare_bits: 0 };
    let nodes: Vec<usize> = (0..plan.nodes.len()).collect();
    for dot in dots {
        let wanted = mxprobe_models::evaluate(&model.adders, unit, &plan, id, as_input(&dot));
        let bits = evaluate(&mut Values, &arithmetic, &nodes, &Inputs::of(id, &dot))
            .unwrap_or_else(|error| panic!("{} {id}: {error}", model.name));
        let found = bits.iter().enumerate().fold(0, |sum, (place, bit)| sum | u64::from(*bit) << place);
        assert_eq!(
            id.d.hex(found),
            id.d.hex(wanted),
            "{}{} {id}: {}",
            model.name,
            model.variant.as_ref().map(|name| format!("@{name}")).unwrap_or_default(),
            dot.show(id)
        );
    }
}

#[test]
fn in_a_range_of_exponents_the_narrower_circuit_computes_as_the_exact_evaluator_does() {
    let range = |low, high| Some(Exponents { low, high });
    for (name, id, conditions) in [
        (
            "v100",
            "mma.m8n8k4.f32.f16.f16.f32",
            Conditions { a: range(-2, 1), b: range(0, 0), c: range(-3, 9), finite: true },
        ),
        (
            "h100",
            "mma.m16n8k16.f32.f16.f16.f32",
            Conditions { a: range(-20, -13), b: range(-40, 3), ..Conditions::FINITE },
        ),
        (
            "h100",
            "mma.m16n8k16.f16.f16.f16.f16",
            Conditions { a: range(3, 15), c: range(-24, -20), ..Conditions::FINITE },
        ),
        (
            "mi300x",
            "mfma.m16n16k16.f32.bf16.bf16.f32",
            Conditions { b: range(-3, 2), c: range(0, 5), ..Conditions::FINITE },
        ),
    ] {
        let (model, id): (_, OperationId) = (mxprobe_models::load(name).unwrap(), id.parse().unwrap());
        let (unit, plan) = model.plan(&id).unwrap();
        let arithmetic = Arithmetic { adders: &model.adders, unit, plan: &plan, id: &id, bounds: &[], spare_bits: 0 };
        let nodes: Vec<usize> = (0..plan.nodes.len()).collect();
        let mut counted = 0;
        for (at, dot) in Draw::new(&id, 5).take(600).enumerate() {
            let mut dot = conditions.moved(&id, dot);
            // Zeros satisfy every range of exponents.
            let place = at % dot.a.len();
            dot.a[place] = 0;
            if at % 5 == 0 {
                dot.b[at % 3] = 0;
            }
            if !conditions.hold(&id, &dot) {
                continue;
            }
            counted += 1;
            let wanted = mxprobe_models::evaluate(&model.adders, unit, &plan, &id, as_input(&dot));
            let inputs = Inputs { conditions, ..Inputs::of(&id, &dot) };
            let bits = evaluate(&mut Values, &arithmetic, &nodes, &inputs).unwrap();
            let found = bits.iter().enumerate().fold(0, |sum, (place, bit)| sum | u64::from(*bit) << place);
            assert_eq!(id.d.hex(found), id.d.hex(wanted), "{name} {id}: {}", dot.show(&id));
        }
        assert!(counted > 300, "{name}: {counted}");
    }
}

/// One operation for each unit and set of formats of a model: the one with the smallest k.
pub(crate) fn representatives(model: &Model) -> Vec<&OperationId> {
    let mut chosen: BTreeMap<_, &OperationId> = BTreeMap::new();
    for (number, unit) in model.units.iter().enumerate() {
        for id in &unit.operations {
            let kept = chosen.entry((number, [id.d, id.a, id.b, id.c])).or_insert(id);
            if id.shape.k < kept.shape.k {
                *kept = id;
            }
        }
    }
    chosen.into_values().collect()
}

#[test]
fn every_unit_of_every_shipped_model_computes_as_the_exact_evaluator_does() {
    for model in shipped() {
        for id in representatives(model) {
            // The exact sum of f64 products has four thousand bits.
            let dots = if id.a == Format::F64 { 3 } else { 200 / id.shape.k as usize };
            agree(model, id, Draw::new(id, 1).take(dots.max(12)));
        }
    }
}

#[test]
fn units_that_convert_their_operands_compute_as_the_exact_evaluator_does() {
    for (formats, to) in [("e4m3.e5m2", "f16"), ("e5m2.e4m3", "f32"), ("e4m3.e4m3", "f16"), ("f16.f16", "f32")] {
        for nan in ["\"0x7fffffff\"", "{ order = [\"b\", \"value\", \"operand\"], invalid = \"0xffc00000\" }"] {
            let text = format!(
                "schema = \"mxprobe-model/1\"\nname = \"converts\"\ntitle = \"x\"\nvendor = \"x\"\nfingerprint = \"x\"\n\
                 [sources]\nhere = \"made up\"\n\
                 [adder.s]\noutput = \"f32\"\nfraction_bits = 20\nbelow = \"truncate\"\nrounding = \"toward-zero\"\n\
                 nan = {nan}\nbasis = \"assumed\"\nsource = \"here\"\n\
                 [[unit]]\ntree = \"fold(c, all/4, s(all, acc))\"\nconvert_to = \"{to}\"\nflush = [\"b\"]\n\
                 operations = [\"dot.m4n4k8.f32.{formats}.f32\"]\nbasis = \"assumed\"\nsource = \"here\"\n"
            );
            let model = Model::parse("converts", &text, None).unwrap_or_else(|error| panic!("{error}\n{text}"));
            let id = model.operations.keys().next().unwrap();
            agree(&model, id, Draw::new(id, 4).take(400));
            for dot in Draw::new(id, 5).take(400) {
                let (unit, plan) = model.plan(id).unwrap();
                let wanted = mxprobe_models::evaluate(&model.adders, unit, &plan, id, as_input(&dot));
                for path in Path::available() {
                    let evaluator = Evaluator::with_path(&model, id, path).unwrap();
                    assert_eq!(evaluator.dot(as_input(&dot)).unwrap(), wanted, "{path:?} {}", dot.show(id));
                }
            }
        }
    }
}

#[test]
fn units_that_round_half_up_at_alignment_compute_as_the_exact_evaluator_does() {
    // Rounds to ten bits in groups of four, and again after normalisation. With products of f32, the bit-level
    // evaluator would take minutes.
    let model = Model::parse("ties-away", include_str!("../../models/tests/ties_away.toml"), None).unwrap();
    for id in model.operations.keys().filter(|id| id.a != Format::F32) {
        agree(&model, id, Draw::new(id, 3).take(400));
    }
}

#[test]
#[ignore = "takes minutes: dots of every class for every operation of every variant"]
fn every_operation_of_every_shipped_model_and_variant_computes_as_the_exact_evaluator_does() {
    for model in shipped() {
        let variants =
            model.variants.keys().map(|name| mxprobe_models::load(&format!("{}@{name}", model.name)).unwrap());
        for model in std::iter::once(model.clone()).chain(variants) {
            for id in model.operations.keys() {
                agree(&model, id, Draw::new(id, 2).take(if id.a == Format::F64 { 6 } else { 40 }));
            }
        }
    }
}
