//! `distinguish` of two models: a dot on which they differ, or a proof that there is none.

use std::time::Instant;

use crate::proof::{
    cnf::Encoded,
    conditions::Conditions,
    decide::{Certificate, Comparison, Effort, Verdict},
    parts::Query,
    rup::{self, Proof},
    smt,
};
use crate::session::Distinction;
use mxprobe_api::OperationId;

use super::inputs::{TRIES, conditions};
use crate::cli::{
    arguments::{Distinguish, Screen, given},
    choose::{common, models::Chosen},
    failure::{Failure, INCOMPLETE, NO, Outcome},
    io::{output, progress::Progress},
};

/// Compares two models on an operation.
pub(super) fn distinguish(mut chosen: [Chosen; 2], arguments: &Distinguish, screen: Screen) -> Outcome {
    let end = Instant::now() + arguments.budget;
    let (id, counterpart) = common::operations(&arguments.op, chosen.each_ref())?;
    let conditions = conditions(arguments, &id)?;
    if let Some(counterpart) = &counterpart {
        common::rename(&mut chosen[1].model, counterpart, &id);
    }
    let comparison = Comparison::new(chosen.each_ref().map(|chosen| &chosen.model), &id).map_err(Failure::usage)?;
    let names = chosen.each_ref().map(|chosen| chosen.name.as_str());
    let files = Files { names, id: &id, arguments, conditions };
    files.write_formula(&comparison)?;
    let effort = Effort { seed: arguments.seed, tries: TRIES, conditions, closed_form: !files.asks_for_formula(), end };
    let of_other = counterpart.as_ref().map_or_else(String::new, |of_other| format!(" with {of_other}"));
    let progress = Progress::of_one(screen, format!("comparing {} and {} on {id}{of_other}", names[0], names[1]));
    let start = Instant::now();
    let verdict = comparison.decide(&effort);
    let (code, checked) = match &verdict {
        Verdict::Differ(..) => (NO, None),
        Verdict::Equal(certificate) => (0, files.write_proof(&comparison, certificate)?),
        Verdict::Undecided(_) => (INCOMPLETE, None),
    };
    if arguments.proof.is_some() && code != 0 && !screen.quiet {
        output::note("no proof was written: the models are not proved equal");
    }
    let took = start.elapsed();
    drop(progress);
    let models = chosen.each_ref().map(|chosen| &chosen.model);
    let found = Distinction {
        names,
        models,
        id: &id,
        counterpart: counterpart.as_ref(),
        conditions,
        verdict: &verdict,
        checked,
        took,
        arguments: given(),
    };
    output::show(&found, arguments.format.into(), screen.for_lines())?;
    Ok(code)
}

/// The files to write.
struct Files<'a> {
    names: [&'a str; 2],
    id: &'a OperationId,
    arguments: &'a Distinguish,
    conditions: Conditions,
}

impl Files<'_> {
    fn asks_for_formula(&self) -> bool {
        let Distinguish { smt2, dimacs, proof, .. } = self.arguments;
        smt2.is_some() || dimacs.is_some() || proof.is_some()
    }

    fn comments(&self, query: &Query) -> Vec<String> {
        let [one, other] = self.names;
        let mut comments = vec![
            format!("do {one} and {other} differ on {}? {}", self.id, self.conditions.words()),
            "satisfiable: a part of the dot differs; unsatisfiable: they are equal".to_owned(),
        ];
        for (number, part) in query.parts.iter().enumerate().filter(|_| !query.whole) {
            comments
                .push(format!("part{number}: additions {:?} of the plan, {} times in the dot", part.nodes, part.count));
        }
        comments
    }

    fn query(&self, comparison: &Comparison<'_>) -> Result<Query, Failure> {
        comparison.query(self.conditions).map_err(|why| {
            Failure::incomplete(format!("no formula can be written for {}: proofs do not cover {why}", self.id))
        })
    }

    fn write_formula(&self, comparison: &Comparison<'_>) -> Result<(), Failure> {
        let Distinguish { smt2, dimacs, .. } = self.arguments;
        if smt2.is_none() && dimacs.is_none() {
            return Ok(());
        }
        let query = self.query(comparison)?;
        let comments = self.comments(&query);
        if let Some(path) = smt2 {
            output::replace(path, &smt::smt2(&query, &comments))?;
        }
        if let Some(path) = dimacs {
            output::replace(path, &Encoded::of(&query.circuit, query.differs).cnf.dimacs(&comments))?;
        }
        Ok(())
    }

    /// Writes the proof after checking it against the formula, and returns the number of its steps.
    fn write_proof(&self, comparison: &Comparison<'_>, certificate: &Certificate) -> Result<Option<usize>, Failure> {
        let Some(path) = &self.arguments.proof else { return Ok(None) };
        let mut proof = Proof::default();
        match &certificate.refuted {
            Some(refuted) => proof.clone_from(&refuted.proof),
            None => proof.push(rup::Step::Add, &[]),
        }
        let query = self.query(comparison)?;
        if certificate.whole && !query.whole {
            return Err(Failure::incomplete("the proof refutes the formula of the whole dot, not that of its parts")
                .cause("the models are equal; the proof is not written"));
        }
        rup::check(&Encoded::of(&query.circuit, query.differs).cnf, &proof)
            .map_err(|error| Failure::incomplete(format!("the solver's proof fails its check: {error}")))?;
        output::replace(path, &proof.drat())?;
        Ok(Some(proof.len()))
    }
}
