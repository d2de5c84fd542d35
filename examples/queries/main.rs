//! Answers the questions of table 4 of arXiv:2502.15999, and prints a table of how long each takes, over 31 seeds.
//!
//! ```text
//! cargo run --release --example queries [-- DIRECTORY]
//! ```
//!
//! With a directory, each question is also written there as SMT-LIB 2 (`NAME.smt2`), for other solvers;
//! `scripts/solvers` runs them.
#![allow(clippy::print_stdout)]

use std::{
    error::Error,
    fs,
    path::PathBuf,
    time::{Duration, Instant},
};

use mxprobe::proof::{
    conditions::Conditions,
    decide::{Comparison, Effort, Verdict},
    rup, smt,
};
use mxprobe_api::OperationId;
use mxprobe_models::Model;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/queries/smt-paper.toml");

/// The number of seeds over which the median is taken.
const SEEDS: u64 = 31;

/// A question: its name, the operation, and pairs of variants (`None` is the model itself) to be told apart.
struct Question {
    name: &'static str,
    id: &'static str,
    pairs: Vec<[Option<&'static str>; 2]>,
}

/// All pairs among the model itself and three variants.
fn each_pair(of: [&'static str; 3]) -> Vec<[Option<&'static str>; 2]> {
    let all = [None, Some(of[0]), Some(of[1]), Some(of[2])];
    (0..4).flat_map(|one| (one + 1..4).map(move |other| [all[one], all[other]])).collect()
}

fn questions() -> Vec<Question> {
    let one = |name, id, variant| Question { name, id, pairs: vec![[None, Some(variant)]] };
    let product = ["product-nearest-even", "product-toward-zero", "product-down", "product-up"];
    vec![
        Question {
            name: "exact multiplication",
            id: "dot.m1n1k1.f32.f16.f16.f32.multiplication",
            pairs: product.into_iter().map(|variant| [None, Some(variant)]).collect(),
        },
        one("exact addition in fp16", "dot.m1n1k2.f16.f16.f16.f16.addition", "addition-in-half"),
        Question {
            name: "rounding of the final result",
            id: "dot.m1n1k1.f16.f16.f16.f16.result",
            pairs: each_pair(["result-toward-zero", "result-down", "result-up"]),
        },
        Question {
            name: "rounding of the accumulator",
            id: "dot.m1n1k2.f32.f16.f16.f32.accumulator",
            pairs: each_pair(["accumulator-toward-zero", "accumulator-down", "accumulator-up"]),
        },
        one("accumulation order", "dot.m1n1k3.f32.f16.f16.f32.order", "other-order"),
        one("normalisation", "dot.m1n1k2.f32.f16.f16.f32.normalisation", "fused"),
        one("3 carry bits, 5 terms", "dot.m1n1k4.f32.f16.f16.f32.leading", "2-carry-bits"),
        one("4 carry bits, 9 terms", "dot.m1n1k8.f32.f16.f16.f32.leading", "3-carry-bits"),
        one("5 carry bits, 17 terms", "dot.m1n1k16.f32.f16.f16.f32.leading", "4-carry-bits"),
        one("4 carry bits, 5 terms, operands", "dot.m1n1k4.f32.f16.f16.f32.operands", "2-carry-bits"),
        one("5 carry bits, 9 terms, operands", "dot.m1n1k8.f32.f16.f16.f32.operands", "3-carry-bits"),
        one("6 carry bits, 17 terms, operands", "dot.m1n1k16.f32.f16.f16.f32.operands", "4-carry-bits"),
        one("3 carry bits suffice, 5 terms", "dot.m1n1k4.f32.f16.f16.f32.leading", "unlimited-5"),
        one("4 carry bits suffice, 9 terms", "dot.m1n1k8.f32.f16.f16.f32.leading", "unlimited-9"),
        one("5 carry bits suffice, 17 terms", "dot.m1n1k16.f32.f16.f16.f32.leading", "unlimited-17"),
        one("4 carry bits suffice, 5 terms, operands", "dot.m1n1k4.f32.f16.f16.f32.operands", "unlimited-5"),
        one("5 carry bits suffice, 9 terms, operands", "dot.m1n1k8.f32.f16.f16.f32.operands", "unlimited-9"),
        one("6 carry bits suffice, 17 terms, operands", "dot.m1n1k16.f32.f16.f16.f32.operands", "unlimited-17"),
    ]
}

fn model(variant: Option<&str>) -> Result<Model, mxprobe_api::Error> {
    mxprobe_models::load(&variant.map_or_else(|| FILE.to_owned(), |variant| format!("{FILE}@{variant}")))
}

/// How a pair was decided: a description, with the median and the longest time.
struct Answer {
    words: String,
    median: Duration,
    longest: Duration,
}

/// Tells a pair apart with this many seeds, or proves once that it is equal.
fn answer(comparison: &Comparison<'_>, seeds: u64) -> Result<Answer, String> {
    let mut times = Vec::new();
    let mut tries = Vec::new();
    for seed in 1..=seeds {
        let end = Instant::now() + Duration::from_secs(300);
        let searched = comparison.rivals().search(seed, 50_000, &Conditions::FINITE, end);
        if searched.witness.is_none() {
            break;
        }
        times.push(Duration::from_nanos(u64::try_from(searched.search_ns).unwrap_or(u64::MAX)));
        tries.push(searched.tried);
    }
    if times.len() as u64 == seeds {
        times.sort_unstable();
        tries.sort_unstable();
        let middle = times.len() / 2;
        let words = format!("differ, {} tries", tries[middle]);
        return Ok(Answer { words, median: times[middle], longest: times[times.len() - 1] });
    }
    let start = Instant::now();
    let effort = Effort {
        seed: 1,
        tries: 0,
        conditions: Conditions::FINITE,
        closed_form: false,
        end: start + Duration::from_secs(300),
    };
    match comparison.decide(&effort) {
        Verdict::Equal(certificate) => {
            let took = start.elapsed();
            let refuted = certificate.refuted.ok_or("the two formulas are the same")?;
            let query = comparison.query(Conditions::FINITE)?;
            let cnf = mxprobe::proof::cnf::Encoded::of(&query.circuit, query.differs).cnf;
            rup::check(&cnf, &refuted.proof)?;
            let words = format!("proved equal, {} conflicts, proof checked", refuted.conflicts);
            Ok(Answer { words, median: took, longest: took })
        }
        Verdict::Differ(..) => Err(format!("only {} of {seeds} seeds found a witness", times.len())),
        Verdict::Undecided(undecided) => Err(undecided.why),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::args_os().nth(1).map(PathBuf::from);
    println!("| question | file | mxprobe: answer | median ms | longest ms |");
    println!("|---|---|---|---:|---:|");
    for question in questions() {
        let id: OperationId = question.id.parse()?;
        for (number, pair) in question.pairs.iter().enumerate() {
            let models = [model(pair[0])?, model(pair[1])?];
            let comparison = Comparison::new([&models[0], &models[1]], &id)?;
            let answer = answer(&comparison, SEEDS).map_err(|why| format!("{}: {why}", question.name))?;
            let (name, file) = match question.pairs.len() {
                1 => (question.name.to_owned(), file_name(question.name)),
                count => (
                    format!("{} ({} of {count})", question.name, number + 1),
                    format!("{}-{}", file_name(question.name), number + 1),
                ),
            };
            let [median, longest] = [answer.median, answer.longest].map(|time| time.as_secs_f64() * 1e3);
            println!("| {name} | {file} | {} | {median:.3} | {longest:.3} |", answer.words);
            if let Some(directory) = &directory {
                let comment = format!("{name}: {} against {}", pair[0].unwrap_or("the model"), pair[1].unwrap_or("it"));
                fs::write(
                    directory.join(file + ".smt2"),
                    smt::smt2(&comparison.query(Conditions::FINITE)?, &[comment]),
                )?;
            }
        }
    }
    Ok(())
}

fn file_name(name: &str) -> String {
    name.replace(", ", "-").replace(' ', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_witness_is_found_by_drawing_and_every_other_question_proved() {
        for question in questions() {
            let id: OperationId = question.id.parse().unwrap();
            for pair in &question.pairs {
                let models = [model(pair[0]).unwrap(), model(pair[1]).unwrap()];
                let comparison = Comparison::new([&models[0], &models[1]], &id).unwrap();
                let answer = answer(&comparison, 5).unwrap_or_else(|why| panic!("{}: {why}", question.name));
                let is_proved = answer.words.starts_with("proved equal");
                assert_eq!(is_proved, question.name.contains("suffice"), "{}: {}", question.name, answer.words);
            }
        }
    }
}
