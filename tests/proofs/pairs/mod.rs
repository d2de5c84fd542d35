//! Pairs of models: the same arithmetic written in two ways, to be proved equal, and models that differ in one value,
//! to be told apart by a dot.
//!
//! `MXPROBE_SEED=N MXPROBE_PAIRS=N cargo test --release --test proofs pairs -- --include-ignored --nocapture`

mod equal;
mod forms;
mod tree;
mod unequal;
mod units;

use std::{
    collections::BTreeMap,
    fs,
    time::{Duration, Instant},
};

use mxprobe::{
    dots::{Dot, Draw, Random},
    proof::{
        conditions::Conditions,
        decide::{Comparison, Effort, FoundBy, Verdict},
        rup::check,
        search::as_input,
    },
};
use mxprobe_api::OperationId;
use mxprobe_models::Model;

/// The result of the exact evaluator for a dot.
fn exactly(model: &Model, id: &OperationId, dot: &Dot) -> u64 {
    let (unit, plan) = model.plan(id).unwrap();
    mxprobe_models::evaluate(&model.adders, unit, &plan, id, as_input(dot))
}

/// Processor seconds of this thread so far.
fn processor_seconds() -> f64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|word| word.parse::<f64>().ok()).map_or(0.0, |nanoseconds| nanoseconds * 1e-9)
}

fn variable(name: &str, otherwise: u64) -> u64 {
    std::env::var(name)
        .map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{name}: `{text}` is not a number")))
}

/// The decision on one pair.
struct Decided {
    /// `equal`, `equal by the solver`, `differ`, `differ by the solver` or `undecided`.
    outcome: String,
    /// Processor seconds.
    took: f64,
    said: String,
}

/// Decides a pair. A witness is replayed by the exact evaluator; a refutation is checked by the checker of proofs.
fn decide(models: [&Model; 2], id: &OperationId, tries: u64, limit: Duration) -> Decided {
    let start = processor_seconds();
    let comparison = Comparison::new(models, id).unwrap();
    let effort = Effort { seed: 1, tries, conditions: Conditions::ANY, closed_form: true, end: Instant::now() + limit };
    let verdict = comparison.decide(&effort);
    let took = processor_seconds() - start;
    let (outcome, said) = match verdict {
        Verdict::Differ(witness, found) => {
            let values = models.map(|model| exactly(model, id, &witness.dot));
            assert_eq!(values, witness.values, "{}", witness.dot.show(id));
            assert_ne!(values[0], values[1], "{}", witness.dot.show(id));
            let by_solver = matches!(found, FoundBy::Solver { .. });
            (if by_solver { "differ by the solver" } else { "differ" }, witness.dot.show(id))
        }
        Verdict::Equal(certificate) => match &certificate.refuted {
            None => ("equal", String::new()),
            Some(refuted) => {
                assert_eq!(check(&refuted.formula, &refuted.proof), Ok(()));
                ("equal by the solver", format!("{} conflicts", refuted.conflicts))
            }
        },
        Verdict::Undecided(undecided) => ("undecided", undecided.why),
    };
    Decided { outcome: outcome.into(), took, said }
}

/// The first of many random dots, if any, on which the exact evaluator tells two models apart.
fn told_apart(models: [&Model; 2], id: &OperationId, dots: usize, seed: u64) -> Option<Dot> {
    Draw::new(id, seed).take(dots).find(|dot| exactly(models[0], id, dot) != exactly(models[1], id, dot))
}

/// A unit, a model that describes the same arithmetic in another way, the operation, and the rewriting steps used.
fn equal_pair(seed: u64) -> (Model, Model, OperationId, Vec<&'static str>) {
    let mut random = Random(seed);
    let unit = units::unit(&mut random);
    let id = unit.operations.keys().next().unwrap().clone();
    let (written, ways) = equal::rewritten(&mut random, &unit, &id);
    (unit, written, id, ways)
}

fn unequal_pair(seed: u64) -> (Model, Model, OperationId, &'static str) {
    let mut random = Random(seed);
    let unit = units::unit(&mut random);
    let id = unit.operations.keys().next().unwrap().clone();
    let (changed, what) = unequal::changed(&mut random, &unit, &id);
    (unit, changed, id, what)
}

/// Prints a summary of decided pairs and returns the lines of those without a wanted outcome.
fn judge(name: &str, outcomes: Vec<(u64, String, Decided)>, wanted: &[&str]) -> Vec<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut times: Vec<f64> = outcomes.iter().map(|(_, _, decided)| decided.took).collect();
    times.sort_by(f64::total_cmp);
    let mut wrong = Vec::new();
    for (seed, what, decided) in &outcomes {
        *counts.entry(&decided.outcome).or_default() += 1;
        let line = format!("{name} {seed}: {what}: {} in {:.2} s: {}", decided.outcome, decided.took, decided.said);
        if decided.took > 2.0 {
            println!("slow: {line}");
        }
        if !wanted.contains(&decided.outcome.as_str()) {
            println!("{line}");
            wrong.push(line);
        }
    }
    println!(
        "{name}: {} pairs: {counts:?}; processor seconds: median {:.2}, longest {:.2}, {} above 2",
        times.len(),
        times[times.len() / 2],
        times[times.len() - 1],
        times.iter().filter(|time| **time > 2.0).count()
    );
    wrong
}

fn equal_pairs(first: u64, count: u64, tries: u64, limit: Duration) -> Vec<String> {
    let outcomes = (first..first + count).map(|seed| {
        let (unit, written, id, ways) = equal_pair(seed);
        if let Some(dot) = told_apart([&unit, &written], &id, 300, seed) {
            panic!(
                "the pair {seed} is not equal: {ways:?} on {}\n{}{}",
                dot.show(&id),
                unit.to_toml(),
                written.to_toml()
            );
        }
        let what = format!("{id} {} {ways:?}", unit.units[0].tree);
        (seed, what, decide([&unit, &written], &id, tries, limit))
    });
    judge("equal", outcomes.collect(), &["equal", "equal by the solver"])
}

fn unequal_pairs(first: u64, count: u64, tries: u64, limit: Duration, dots: usize) -> Vec<String> {
    let outcomes = (first..first + count).map(|seed| {
        let (unit, changed, id, what) = unequal_pair(seed);
        let decided = decide([&unit, &changed], &id, tries, limit);
        if decided.outcome.starts_with("equal") {
            let dot = told_apart([&unit, &changed], &id, dots, seed);
            assert_eq!(dot, None, "pair {seed} was proved equal: {}", dot.as_ref().unwrap().show(&id));
        }
        (seed, format!("{id} {} {what}", unit.units[0].tree), decided)
    });
    // The change need not show in any dot: then the models are proved equal.
    judge("one value", outcomes.collect(), &["equal", "equal by the solver", "differ", "differ by the solver"])
}

#[test]
fn pairs_that_compute_the_same_are_proved_equal_however_they_are_written() {
    let wrong = equal_pairs(1, 16, 2_000, Duration::from_secs(300));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
#[ignore = "takes minutes: many pairs, by seed"]
fn many_pairs_that_compute_the_same_are_proved_equal() {
    let (first, count) = (variable("MXPROBE_SEED", 1), variable("MXPROBE_PAIRS", 117));
    let wrong = equal_pairs(first, count, 1_000_000, Duration::from_secs(120));
    assert!(wrong.is_empty(), "{} pairs", wrong.len());
}

#[test]
#[ignore = "takes minutes: many pairs, by seed"]
fn many_pairs_that_differ_in_one_value_are_told_apart_or_proved_equal() {
    let (first, count) = (variable("MXPROBE_SEED", 1), variable("MXPROBE_PAIRS", 117));
    let wrong = unequal_pairs(first, count, 1_000_000, Duration::from_secs(120), 20_000);
    assert!(wrong.is_empty(), "{} pairs", wrong.len());
}
