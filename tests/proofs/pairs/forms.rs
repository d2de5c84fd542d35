//! Canonical forms give the bits of the models they come from.

use mxprobe::{
    dots::{Dot, Draw, Random},
    proof::{canonical::canonical, search::as_input},
};
use mxprobe_api::{Format, OperationId};
use mxprobe_models::Model;

use super::{equal_pair, exactly, unequal_pair, variable};

/// A dot of nothing but zeros, subnormals, infinities, NaN with payloads, ones and the largest values.
fn extreme(random: &mut Random, id: &OperationId) -> Dot {
    let mut dot = Dot::zeros(id);
    let kinds = 1 + random.below(7);
    let mut of = |format: Format| {
        let sign = if random.flip() { format.negative_zero().unwrap_or(0) } else { 0 };
        sign | match random.below(kinds) {
            0 => 0,
            1 => format.one(),
            2 => 1 + random.bits() % 3,
            3 => format.largest(false),
            4 => format.infinity(false).unwrap_or(format.one()),
            5 => format.nan().unwrap_or(0) | random.bits() & 3,
            _ => random.any(format),
        } & format.mask()
    };
    dot.a.iter_mut().for_each(|bits| *bits = of(id.a));
    dot.b.iter_mut().for_each(|bits| *bits = of(id.b));
    dot.c = of(id.c);
    dot
}

/// Fails if a model and its canonical form differ on a dot.
fn agrees(model: &Model, id: &OperationId, dots: usize, seed: u64) {
    let (unit, plan) = model.plan(id).unwrap();
    let form = canonical(&model.adders, unit, &plan, id);
    let mut random = Random(seed);
    let mut drawn = Draw::new(id, seed);
    for at in 0..dots {
        let dot = if at % 2 == 0 { extreme(&mut random, id) } else { drawn.next().unwrap() };
        let wanted = exactly(model, id, &dot);
        let found = mxprobe_models::evaluate(&form.adders, &form.unit, &form.plan, id, as_input(&dot));
        assert_eq!(
            id.d.hex(found),
            id.d.hex(wanted),
            "seed {seed}: {}\n{}\n{:?}\n{:#?}\n{:#?}",
            dot.show(id),
            model.to_toml(),
            form.steps,
            form.plan,
            form.adders
        );
    }
}

fn all_agree(first: u64, count: u64, dots: usize) {
    for seed in first..first + count {
        let (unit, written, id, _) = equal_pair(seed);
        agrees(&unit, &id, dots, seed);
        agrees(&written, &id, dots, seed);
        let (_, changed, id, _) = unequal_pair(seed);
        agrees(&changed, &id, dots, seed);
    }
}

#[test]
fn canonical_forms_of_drawn_units_give_the_bits_of_the_units() {
    all_agree(1, 60, 60);
}

#[test]
#[ignore = "takes minutes: many units, by seed"]
fn canonical_forms_of_many_drawn_units_give_the_bits_of_the_units() {
    let (first, count) = (variable("MXPROBE_SEED", 1), variable("MXPROBE_PAIRS", 117));
    all_agree(first, count * 10, 400);
}

#[test]
#[ignore = "prints the canonical forms of the pair of MXPROBE_SEED"]
fn the_canonical_forms_of_one_pair() {
    let seed = variable("MXPROBE_SEED", 1);
    let (unit, written, id, ways) = equal_pair(seed);
    let (_, changed, _, what) = unequal_pair(seed);
    println!("{id} {ways:?}; {what}");
    for model in [&unit, &written, &changed] {
        let (unit, plan) = model.plan(&id).unwrap();
        let form = canonical(&model.adders, unit, &plan, &id);
        println!("{}\n{:?} {:?}", model.units[0].tree, form.unit.flush, form.steps);
        for node in &form.plan.nodes {
            let terms: Vec<String> = node.terms.iter().map(ToString::to_string).collect();
            println!("  {}({})", node.adder, terms.join(" "));
        }
        for adder in &form.adders {
            let text = format!("{adder:?}");
            println!("  {}", text.split(", provenance").next().unwrap());
        }
    }
}

/// The same plan up to a node, whose result becomes d.
fn up_to(plan: &mxprobe_models::Plan, node: usize) -> mxprobe_models::Plan {
    mxprobe_models::Plan { nodes: plan.nodes[..=node].to_vec() }
}

/// Fails if a node's result is not within its known bounds.
fn is_bounded(model: &Model, id: &OperationId, dots: usize, seed: u64) {
    use mxprobe_api::Decoded;
    let (unit, plan) = model.plan(id).unwrap();
    let form = canonical(&model.adders, unit, &plan, id);
    let mut random = Random(seed);
    let mut drawn = Draw::new(id, seed);
    for at in 0..dots {
        let dot = if at % 2 == 0 { extreme(&mut random, id) } else { drawn.next().unwrap() };
        for (node, bounds) in form.bounds.iter().enumerate() {
            let Some(bounds) = bounds else { continue };
            let format = form.adders[form.plan.nodes[node].adder].output_format().unwrap();
            let up_to = up_to(&form.plan, node);
            let bits = mxprobe_models::evaluate(&form.adders, &form.unit, &up_to, id, as_input(&dot));
            let holds = match format.decode(bits) {
                Decoded::Nan { .. } => bounds.nan,
                Decoded::Infinity { .. } => bounds.infinite,
                Decoded::Zero { negative } => !negative || bounds.negative_zero,
                Decoded::Finite { significand, exponent, .. } => {
                    let lowest =
                        exponent - format.fraction_bits().cast_signed() + significand.trailing_zeros().cast_signed();
                    let value = format.to_f64(bits).abs();
                    lowest >= bounds.low && value.log2() < f64::from(bounds.top)
                }
            };
            let text = model.to_toml();
            assert!(holds, "seed {seed}: {node} {bounds:?} {}: {}\n{text}", format.hex(bits), dot.show(id));
        }
    }
}

#[test]
fn results_are_within_what_is_known_of_them() {
    for seed in 1..60 {
        let (unit, written, id, _) = equal_pair(seed);
        is_bounded(&unit, &id, 60, seed);
        is_bounded(&written, &id, 60, seed);
    }
}

#[test]
#[ignore = "takes minutes: many units, by seed"]
fn results_of_many_units_are_within_what_is_known_of_them() {
    let (first, count) = (variable("MXPROBE_SEED", 1), variable("MXPROBE_PAIRS", 117));
    for seed in first..first + count * 10 {
        let (unit, written, id, _) = equal_pair(seed);
        is_bounded(&unit, &id, 300, seed);
        is_bounded(&written, &id, 300, seed);
    }
}
