//! `distinguish --algorithm`: two algorithms over one model's unit.

use std::time::Instant;

use mxprobe_api::{Format, Operation};

use super::inputs::{TRIES, conditions};
use crate::cli::{
    arguments::{Distinguish, Screen, given},
    choose::{models::Chosen, select},
    failure::{Failure, INCOMPLETE, NO, Outcome},
    io::{dot_lines::Dots, output, progress::Progress},
};
use crate::{
    dots::Dot,
    proof::{
        algorithms::{Algorithm, Asked, Found, Question},
        cnf::Encoded,
        conditions::Conditions,
        decide::Effort,
        smt,
    },
    session::Algorithms,
};

/// Compares two algorithms over one model's operation.
pub(super) fn distinguish(chosen: Vec<Chosen>, arguments: &Distinguish, screen: Screen) -> Outcome {
    let start = Instant::now();
    let [chosen] = <[Chosen; 1]>::try_from(chosen).map_err(|chosen| {
        Failure::usage(format!("`--algorithm` takes one model, but there are {}", chosen.len()))
            .help("ask about each model separately")
    })?;
    let named: Vec<Algorithm> = arguments.algorithm.iter().filter_map(|name| Algorithm::named(name)).collect();
    let algorithms = <[Algorithm; 2]>::try_from(named).map_err(|named| {
        Failure::usage(format!("two algorithms are needed, but {} are given", named.len()))
            .help("give `--algorithm NAME` twice")
    })?;
    let asked = match &arguments.worse {
        None => Asked::Different,
        Some(name) => match algorithms.iter().position(|algorithm| algorithm.name() == name) {
            Some(which) if algorithms[0] != algorithms[1] => Asked::Worse(which),
            _ => {
                let [one, other] = algorithms.map(Algorithm::name);
                return Err(Failure::usage(format!("`--worse {name}`: the algorithms are {one} and {other}"))
                    .help("name one of two different algorithms"));
            }
        },
    };
    if arguments.proof.is_some() {
        return Err(Failure::usage("--proof takes two models").help("proofs about algorithms are checked, not written"));
    }
    let id = select::one_operation(&arguments.op, &chosen.listed)?.id.clone();
    let format = arguments.inputs.unwrap_or(Format::F32);
    let terms = arguments.terms.map_or(id.shape.sizes().2, usize::from);
    let block = arguments.block.map_or_else(|| terms.div_ceil(2), usize::from);
    let question =
        Question::new((&chosen.model, &id), algorithms, (format, terms), block, asked).map_err(Failure::usage)?;
    let mut conditions = conditions(arguments, &question.of_dots)?;
    conditions.finite = true;
    if arguments.smt2.is_some() || arguments.dimacs.is_some() {
        write_formula(&question, arguments, &conditions.words())?;
    }
    let progress = Progress::of_one(screen, format!("comparing algorithms on {id} of {}", chosen.name));
    let found = match &arguments.dot {
        Some(text) => {
            let dot = given_dot(text, &question)?;
            Err(question.shown(&dot).ok_or_else(|| {
                Failure::usage("an input or a result of that dot is not finite, so the errors are not defined")
            })?)
        }
        None => {
            let end = start + arguments.budget;
            let effort = Effort { seed: arguments.seed, tries: TRIES, conditions, closed_form: false, end };
            Ok(question.decide(&effort))
        }
    };
    drop(progress);
    let code = match &found {
        Ok(Found::Dot(..)) => NO,
        Ok(Found::None(_)) => 0,
        Ok(Found::Undecided(_)) => INCOMPLETE,
        Err(shown) => {
            if question.holds(&shown.dot) {
                NO
            } else {
                0
            }
        }
    };
    let shown = Algorithms {
        name: &chosen.name,
        id: &id,
        algorithms,
        question: &question,
        conditions,
        found: &found,
        took: start.elapsed(),
        arguments: given(),
    };
    output::show(&shown, arguments.format.into(), screen.for_lines())?;
    Ok(code)
}

/// Parses the dot given on the command line.
fn given_dot(text: &str, question: &Question<'_>) -> Result<Dot, Failure> {
    let operation = Operation::new(question.of_dots.clone(), "thread");
    let mut dots = Dots::new(operation.clone());
    dots.read(text.as_bytes()).map_err(|error| error.on_line(1, text.as_bytes(), &operation))?;
    if let Some(rounded) = dots.rounded.take() {
        output::note(format!("note: {rounded}"));
    }
    if dots.count == 0 {
        return Err(Failure::usage("`--dot` is empty").help("a dot has a, b and c"));
    }
    let dot = dots.dot(0);
    Ok(Dot { a: dot.a.to_vec(), b: dot.b.to_vec(), c: dot.c, scales: None })
}

fn write_formula(question: &Question<'_>, arguments: &Distinguish, inputs: &str) -> Result<(), Failure> {
    let finite = Conditions { finite: true, ..conditions(arguments, &question.of_dots)? };
    let query = question
        .query(&finite)
        .map_err(|why| Failure::incomplete(format!("no formula can be written: proofs do not cover {why}")))?;
    let [one, other] = arguments.algorithm.as_slice() else { return Ok(()) };
    let asked = match &arguments.worse {
        Some(name) => format!("has {name} a larger error than the other of {one} and {other}"),
        None => format!("do {one} and {other} differ"),
    };
    let comments = vec![
        format!("{asked} over {}? {inputs}", arguments.op),
        format!("{one}: {}", question.programs[0]),
        format!("{other}: {}", question.programs[1]),
        "satisfiable: for some dot of finite results; unsatisfiable: for none".to_owned(),
    ];
    if let Some(path) = &arguments.smt2 {
        output::replace(path, &smt::smt2(&query, &comments))?;
    }
    if let Some(path) = &arguments.dimacs {
        output::replace(path, &Encoded::of(&query.circuit, query.differs).cnf.dimacs(&comments))?;
    }
    Ok(())
}
