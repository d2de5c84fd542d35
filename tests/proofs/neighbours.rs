//! Every model that differs from a shipped one in one parameter is told apart from it or proved equal.

use std::time::{Duration, Instant};

use mxprobe::proof::{
    cnf::Encoded,
    conditions::Conditions,
    decide::{Comparison, Effort, Verdict},
    neighbours::neighbours,
    rup::check,
    search::as_input,
};
use mxprobe_api::OperationId;
use mxprobe_models::Model;

const BLOCKS: [(&str, &str); 3] = [
    ("v100", "mma.m8n8k4.f32.f16.f16.f32"),
    ("a100", "mma.m16n8k8.f32.f16.f16.f32"),
    ("h100", "mma.m16n8k16.f32.f16.f16.f32"),
];

/// A time limit that makes an undecided question fail, however loaded the machine is.
const LIMIT: Duration = Duration::from_secs(3600);

/// The result of the exact evaluator for a dot.
fn exactly(model: &Model, id: &OperationId, dot: &mxprobe::dots::Dot) -> u64 {
    let (unit, plan) = model.plan(id).unwrap();
    mxprobe_models::evaluate(&model.adders, unit, &plan, id, as_input(dot))
}

/// Decides every neighbour of a block, with this many random tries before the solver. Returns how many differ and how
/// many are equal.
fn decide_all(name: &str, id: &str, tries: u64) -> (usize, usize) {
    let id: OperationId = id.parse().unwrap();
    let (base, neighbours) = neighbours(&mxprobe_models::load(name).unwrap(), &id).unwrap();
    let (mut differ, mut equal) = (0, 0);
    for neighbour in &neighbours {
        let comparison = Comparison::new([&base, &neighbour.model], &id).unwrap();
        let start = Instant::now();
        let effort = Effort { seed: 1, tries, conditions: Conditions::FINITE, closed_form: false, end: start + LIMIT };
        let verdict = comparison.decide(&effort);
        let took = start.elapsed();
        match verdict {
            Verdict::Differ(witness, found) => {
                let values = [&base, &neighbour.model].map(|model| exactly(model, &id, &witness.dot));
                assert_eq!(values, witness.values, "{name}: {}: {}", neighbour.what, witness.dot.show(&id));
                assert_ne!(values[0], values[1], "{name}: {}", neighbour.what);
                eprintln!("{name}: {}: differs, {took:.3?}, {found:?}", neighbour.what);
                differ += 1;
            }
            Verdict::Equal(certificate) => {
                let refuted = certificate.refuted.as_ref().expect("neighbours are not the same circuit");
                let query = comparison.query(Conditions::FINITE).unwrap();
                let cnf = Encoded::of(&query.circuit, query.differs).cnf;
                let checking = Instant::now();
                assert_eq!(check(&cnf, &refuted.proof), Ok(()), "{name}: {}", neighbour.what);
                eprintln!(
                    "{name}: {}: equal, {took:.3?}, {} variables, {} clauses, {} conflicts; proof of {} steps checked in {:.3?}",
                    neighbour.what,
                    refuted.variables,
                    refuted.clauses,
                    refuted.conflicts,
                    refuted.proof.len(),
                    checking.elapsed()
                );
                equal += 1;
            }
            Verdict::Undecided(undecided) => panic!("{name}: {}: {}", neighbour.what, undecided.why),
        }
    }
    (differ, equal)
}

#[test]
fn each_parameter_of_a_v100_block_is_decided_by_the_solver_alone() {
    let (name, id) = BLOCKS[0];
    assert_eq!(decide_all(name, id, 0), (14, 1));
}

#[test]
fn each_parameter_of_every_block_is_decided_by_search_and_solver() {
    let counts = BLOCKS.map(|(name, id)| decide_all(name, id, 20_000));
    assert_eq!(counts, [(14, 1); 3]);
}

#[test]
#[ignore = "takes a minute: every question goes to the solver"]
fn each_parameter_of_every_block_is_decided_by_the_solver_alone() {
    let counts = BLOCKS.map(|(name, id)| decide_all(name, id, 0));
    assert_eq!(counts, [(14, 1); 3]);
}
