//! `distinguish`: a dot on which two models differ, or a proof that there is none.

use std::{
    fmt::Write as _,
    time::{Duration, Instant},
};

use mxprobe::{
    dots::Dot,
    proof::{
        cnf::Encoded,
        decide::{Certificate, Comparison, Effort, FoundBy, SufficientCarry, Undecided, Verdict},
        parts::Query,
        rup::{self, Proof},
        search::{Witness, as_input},
        smt,
    },
    report::{
        DISTINCTION_SCHEMA, DistinctionReport, DistinctionVerdict, Evidence, Inputs, ProofRecord, RefutedFormula, Tool,
    },
};
use mxprobe_api::OperationId;
use mxprobe_models::Trace;

use crate::cli::{
    arguments::{Distinguish, Printed, Screen},
    choose::{
        models::{self, Chosen},
        select,
    },
    failure::{Failure, INCOMPLETE, NO, Outcome},
    io::output,
};

/// Dots that the search tries.
const TRIES: u64 = 1_000_000;

/// Compares two models on an operation.
pub(crate) fn distinguish(arguments: &Distinguish, screen: Screen) -> Outcome {
    let end = Instant::now() + arguments.budget;
    let chosen = [models::chosen(&arguments.one)?, models::chosen(&arguments.other)?];
    let id = common_operation(&arguments.op, &chosen)?;
    let comparison = Comparison::new(chosen.each_ref().map(|chosen| &chosen.model), &id).map_err(Failure::usage)?;
    let names = chosen.each_ref().map(|chosen| chosen.name.as_str());
    let files = Files { names, id: &id, arguments };
    files.write_formula(&comparison)?;
    let effort = Effort {
        seed: arguments.seed,
        tries: TRIES,
        finite: arguments.finite,
        closed_form: !files.asks_for_formula(),
        end,
    };
    if !screen.quiet {
        output::note(format!("comparing {} and {} on {id}", names[0], names[1]));
    }
    let start = Instant::now();
    let verdict = comparison.decide(&effort);
    let (code, checked) = match &verdict {
        Verdict::Differ(..) => (NO, None),
        Verdict::Equal(certificate) => (0, files.write_proof(&comparison, certificate)?),
        Verdict::Undecided(_) => (INCOMPLETE, None),
    };
    if arguments.proof.is_some() && code != 0 && !screen.quiet {
        output::note("there is no proof to write: the models are not proved equal");
    }
    match arguments.format {
        Printed::Json => output::print_json(&report(names, &id, arguments, &verdict, checked, start.elapsed()))?,
        Printed::Table => output::print(text(&chosen, &id, arguments, &verdict, checked).as_bytes())?,
    };
    Ok(code)
}

/// The verdict for people.
fn text(
    chosen: &[Chosen; 2],
    id: &OperationId,
    arguments: &Distinguish,
    verdict: &Verdict,
    checked: Option<usize>,
) -> String {
    let names = chosen.each_ref().map(|chosen| chosen.name.as_str());
    match verdict {
        Verdict::Differ(witness, found) => differ(chosen, id, witness, &how(*found)),
        Verdict::Equal(certificate) => equal(names, id, certificate, arguments.finite, checked),
        Verdict::Undecided(Undecided { tried, why }) => {
            let [one, other] = names;
            format!(
                "{one} and {other} on {id}: not decided\n  no dot of {tried} tried tells them apart\n  no proof: {why}\n"
            )
        }
    }
}

/// The verdict for programs.
fn report(
    names: [&str; 2],
    id: &OperationId,
    arguments: &Distinguish,
    verdict: &Verdict,
    checked: Option<usize>,
    took: Duration,
) -> DistinctionReport {
    let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let mut report = DistinctionReport {
        schema: DISTINCTION_SCHEMA.into(),
        tool: Tool::this(std::env::args().skip(1).collect()),
        models: names.map(str::to_owned),
        operation: id.clone(),
        inputs: if arguments.finite { Inputs::Finite } else { Inputs::All },
        verdict: DistinctionVerdict::Undecided,
        tried: 0,
        evidence: None,
        proof: None,
        reason: None,
        duration_ns: nanoseconds(took),
    };
    match verdict {
        Verdict::Differ(witness, found) => {
            let (FoundBy::Search { tried, .. } | FoundBy::Solver { tried, .. }) = found;
            report.tried = *tried;
            report.verdict = DistinctionVerdict::Differ;
            let [one, other] = witness.values;
            let rivals = [(names[1].to_owned(), other)];
            report.evidence = Some(Evidence::of_dot(id, how(*found), &witness.dot, one, &rivals));
        }
        Verdict::Equal(certificate) => {
            report.tried = certificate.tried;
            report.verdict = DistinctionVerdict::Equal;
            report.proof = Some(ProofRecord {
                whole: certificate.whole,
                sums: certificate.parts.iter().map(|part| part.count as u64).sum(),
                carry: certificate.carry.iter().map(|carry| carry_words(names, carry)).collect(),
                refuted: certificate.refuted.as_ref().map(|refuted| RefutedFormula {
                    variables: refuted.variables.unsigned_abs().into(),
                    clauses: refuted.clauses as u64,
                    conflicts: refuted.conflicts,
                    duration_ns: nanoseconds(refuted.time),
                }),
                checked_steps: checked.map(|steps| steps as u64),
            });
        }
        Verdict::Undecided(Undecided { tried, why }) => {
            report.tried = *tried;
            report.reason = Some(why.clone());
        }
    }
    report
}

fn carry_words(names: [&str; 2], carry: &SufficientCarry) -> String {
    let SufficientCarry { model, adder, bits, sufficient } = carry;
    let name = names[*model];
    format!("carry bits of {adder} of {name}: {bits}, and {sufficient} suffice (closed form): taken as unlimited")
}

/// Files that were asked for.
struct Files<'a> {
    names: [&'a str; 2],
    id: &'a OperationId,
    arguments: &'a Distinguish,
}

impl Files<'_> {
    fn asks_for_formula(&self) -> bool {
        let Distinguish { smt2, dimacs, proof, .. } = self.arguments;
        smt2.is_some() || dimacs.is_some() || proof.is_some()
    }

    fn comments(&self, query: &Query) -> Vec<String> {
        let [one, other] = self.names;
        let inputs = if self.arguments.finite { "operands and c finite" } else { "every input" };
        let mut comments = vec![
            format!("do {one} and {other} differ on {}? {inputs}", self.id),
            "satisfiable: a part of the dot differs; unsatisfiable: they are equal".to_owned(),
        ];
        for (number, part) in query.parts.iter().enumerate().filter(|_| !query.whole) {
            comments
                .push(format!("part{number}: additions {:?} of the plan, {} times in the dot", part.nodes, part.count));
        }
        comments
    }

    fn query(&self, comparison: &Comparison<'_>) -> Result<Query, Failure> {
        comparison.query(self.arguments.finite).map_err(|why| {
            Failure::incomplete(format!("there is no formula for {}: proofs do not cover {why}", self.id))
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

    /// Writes the proof and checks it against the formula; how many steps it has.
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
            .map_err(|error| Failure::incomplete(format!("the solver's proof is refused: {error}")))?;
        output::replace(path, &proof.drat())?;
        Ok(Some(proof.len()))
    }
}

fn how(found: FoundBy) -> String {
    match found {
        FoundBy::Search { tried, time_ns } => {
            let tries =
                if tried == 1 { "the first dot tried".to_owned() } else { format!("dot {tried} of those tried") };
            format!("{tries}, after {}", duration(Duration::from_nanos(u64::try_from(time_ns).unwrap_or(u64::MAX))))
        }
        FoundBy::Solver { tried, time } => {
            format!("found by the solver in {}, after {tried} dots in vain", duration(time))
        }
    }
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn duration(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds >= 0.1 {
        format!("{seconds:.1} s")
    } else if seconds >= 0.000_1 {
        format!("{:.1} ms", seconds * 1e3)
    } else {
        format!("{:.1} µs", seconds * 1e6)
    }
}

/// Why there is no witness.
fn equal(
    names: [&str; 2],
    id: &OperationId,
    certificate: &Certificate,
    finite: bool,
    checked: Option<usize>,
) -> String {
    let [one, other] = names;
    let inputs = if finite { "every finite input" } else { "every input, NaN and infinities included" };
    let mut text = format!("{one} and {other} are equal on {id}: proved for {inputs}\n");
    if certificate.whole {
        text += "  compared: the whole dot at once\n";
    } else {
        let kinds = counted(certificate.parts.len(), "kind");
        let parts = counted(certificate.parts.iter().map(|part| part.count).sum(), "rounded sum");
        let _ = writeln!(text, "  compared: {parts} of {kinds}, each kind for every input it can have");
    }
    for carry in &certificate.carry {
        let _ = writeln!(text, "  {}", carry_words(names, carry));
    }
    match &certificate.refuted {
        None => text += "  why: both are the same circuit, gate by gate\n",
        Some(refuted) => {
            let _ = writeln!(
                text,
                "  why: the formula that they differ is refuted: {} variables, {} clauses, {} conflicts, {}",
                refuted.variables,
                refuted.clauses,
                refuted.conflicts,
                duration(refuted.time)
            );
        }
    }
    if let Some(steps) = checked {
        let _ = writeln!(text, "  the proof's {steps} steps were checked apart from the solver");
    }
    text
}

/// The operation that a name means in both models.
fn common_operation(name: &str, chosen: &[Chosen; 2]) -> Result<OperationId, Failure> {
    let [one, other] = chosen;
    let id = &select::one_operation(name, &one.listed)?.id;
    if other.model.operations.contains_key(id) {
        return Ok(id.clone());
    }
    Err(select::no_operation(&[id.to_string()], &[&other.listed]).cause(format!("{} has it", one.name)))
}

/// A witness: the dot, both results, and how each model comes to its own.
fn differ(chosen: &[Chosen; 2], id: &OperationId, witness: &Witness, how: &str) -> String {
    let [one, other] = chosen.each_ref().map(|chosen| chosen.name.as_str());
    let mut text = format!("{one} and {other} differ on {id}: {how}\n\n{}\n", line(id, &witness.dot));
    let width = one.len().max(other.len());
    for (chosen, value) in chosen.iter().zip(witness.values) {
        let _ = writeln!(text, "{:width$}  d = {} = {}", chosen.name, id.d.hex(value), id.d.to_f64(value));
    }
    for chosen in chosen {
        let trace = Trace::of(&chosen.model, id, as_input(&witness.dot)).expect("the model has the operation");
        let _ = write!(text, "\n{}\n{}", chosen.name, trace.text(&chosen.model, id, as_input(&witness.dot)));
    }
    text
}

/// The dot as `eval` takes it, without the zeros at its end.
fn line(id: &OperationId, dot: &Dot) -> String {
    let filled = dot.a.iter().zip(&dot.b).rposition(|(a, b)| (*a, *b) != (0, 0)).map_or(0, |last| last + 1);
    let hex = |format: mxprobe_api::Format, bits: &[u64]| {
        bits.iter().map(|bits| format!("\"{}\"", format.hex(*bits))).collect::<Vec<_>>().join(",")
    };
    let mut line = format!(
        r#"{{"a":[{}],"b":[{}],"c":"{}""#,
        hex(id.a, &dot.a[..filled]),
        hex(id.b, &dot.b[..filled]),
        id.c.hex(dot.c)
    );
    if let (Some(scale), Some((a, b))) = (id.block_scale(), &dot.scales) {
        let _ = write!(line, r#","scale_a":[{}],"scale_b":[{}]"#, hex(scale.format, a), hex(scale.format, b));
    }
    line + "}"
}
