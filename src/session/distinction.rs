//! The verdict of `distinguish`.

use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

use crate::{
    dots::Dot,
    findings::Evidence,
    plain::counted,
    proof::{
        conditions::Conditions,
        decide::{Certificate, FoundBy, SufficientCarry, Undecided, Verdict},
        search::{Witness, as_input},
    },
    report::{
        Block, Cell, DISTINCTION_SCHEMA, DistinctionReport, DistinctionVerdict, EvidenceRecord, Inputs, Layout, Page,
        ProofRecord, RefutedFormula, Row, Show, this_tool, to_json,
    },
};
use mxprobe_api::OperationId;
use mxprobe_models::{Model, Trace};

/// The comparison of two models.
#[derive(Debug)]
pub struct Distinction<'a> {
    /// The models' names.
    pub names: [&'a str; 2],
    /// The models.
    pub models: [&'a Model; 2],
    /// The operation that is compared.
    pub id: &'a OperationId,
    /// The corresponding operation of the second model, if it does not have this id.
    pub counterpart: Option<&'a OperationId>,
    /// The inputs over which they were compared.
    pub conditions: Conditions,
    /// The result.
    pub verdict: &'a Verdict,
    /// The number of steps of the proof that was written and checked.
    pub checked: Option<usize>,
    /// The time taken.
    pub took: Duration,
    /// The program's arguments, for the report.
    pub arguments: Vec<String>,
}

impl Show for Distinction<'_> {
    fn page(&self, _: bool) -> Page {
        let [one, other] = self.names;
        let title = format!("{one} and {other} on {}", self.operation());
        let found = match self.verdict {
            Verdict::Differ(witness, found) => self.differ(witness, &how(*found)),
            Verdict::Equal(certificate) => self.equal(certificate),
            Verdict::Undecided(Undecided { tried, why }) => vec![
                Block::words(format!("{title}: not decided")),
                Block::Inset(vec![
                    Block::words(format!("no dot of {tried} tried tells them apart")),
                    Block::words(format!("no proof: {why}")),
                ]),
            ],
        };
        let head = Block::Paper(vec![Block::heading(1, &title)]);
        Page { title, blocks: std::iter::once(head).chain(found).collect() }
    }

    fn json(&self) -> String {
        to_json(&self.report())
    }
}

impl Distinction<'_> {
    /// The verdict as a report.
    #[must_use]
    pub fn report(&self) -> DistinctionReport {
        let names = self.names;
        let mut report = DistinctionReport {
            schema: DISTINCTION_SCHEMA.into(),
            tool: this_tool(&self.arguments),
            models: names.map(str::to_owned),
            operation: self.id.clone(),
            counterpart: self.counterpart.cloned(),
            inputs: inputs(&self.conditions),
            exponents: exponents(&self.conditions),
            verdict: DistinctionVerdict::Undecided,
            tried: 0,
            evidence: None,
            proof: None,
            reason: None,
            duration_ns: nanoseconds(self.took),
        };
        match self.verdict {
            Verdict::Differ(witness, found) => {
                let (FoundBy::Search { tried, .. } | FoundBy::Solver { tried, .. }) = found;
                report.tried = *tried;
                report.verdict = DistinctionVerdict::Differ;
                let [one, other] = witness.values;
                let rivals = [(names[1].to_owned(), other)];
                let evidence = Evidence::of_dot(how(*found), &witness.dot, one, &rivals);
                report.evidence = Some(EvidenceRecord::new(&evidence, self.id));
            }
            Verdict::Equal(certificate) => {
                report.tried = certificate.tried;
                report.verdict = DistinctionVerdict::Equal;
                report.proof = Some(proof_record(certificate, names, self.checked));
            }
            Verdict::Undecided(Undecided { tried, why }) => {
                report.tried = *tried;
                report.reason = Some(why.clone());
            }
        }
        report
    }

    /// Formats the operation: one id, or those of both models.
    fn operation(&self) -> String {
        match self.counterpart {
            None => self.id.to_string(),
            Some(counterpart) => format!("{} ({}: {counterpart})", self.id, self.names[1]),
        }
    }

    /// Shows why the models are equal.
    fn equal(&self, certificate: &Certificate) -> Vec<Block> {
        let names = self.names;
        let [one, other] = names;
        let inputs = self.conditions.words();
        let compared = if certificate.whole {
            "the whole dot at once".to_owned()
        } else {
            let kinds = counted(certificate.parts.len(), "kind");
            let parts = counted(certificate.parts.iter().map(|part| part.count).sum::<usize>(), "rounded sum");
            format!("{parts} of {kinds}, each kind for every input it can have")
        };
        let why = equal_because(certificate);
        let mut why_equal = vec![Block::Facts(vec![("compared".to_owned(), compared)])];
        why_equal.extend(certificate.carry.iter().map(|carry| Block::words(carry_words(names, carry))));
        why_equal.push(Block::Facts(vec![("why".to_owned(), why)]));
        let checked = |steps| Block::words(format!("the proof's {steps} steps were checked apart from the solver"));
        why_equal.extend(self.checked.map(checked));
        let verdict = format!("{one} and {other} are equal on {}: proved for {inputs}", self.operation());
        vec![Block::words(verdict), Block::Inset(why_equal)]
    }

    /// Shows a witness: the dot, both results, and how each model computes its own.
    fn differ(&self, witness: &Witness, how: &str) -> Vec<Block> {
        let ([one, other], id) = (self.names, self.id);
        let verdict = Block::words(format!("{one} and {other} differ on {}: {how}", self.operation()));
        let dot = Block::Lines(vec![line(id, &witness.dot)]);
        let rows = self.names.iter().zip(witness.values).map(|(name, value)| {
            let result = format!("d = {} = {}", id.d.hex(value), id.d.to_f64(value));
            Row::plain(vec![Cell::words(*name), Cell::code(result)])
        });
        let results = Block::laid_out(Layout::Bare, ["model", "result"], rows);
        let mut blocks = vec![verdict, Block::Gap, dot, results];
        for (name, model) in self.names.into_iter().zip(self.models) {
            let input = as_input(&witness.dot);
            let trace = Trace::of(model, id, input).expect("the model has the operation");
            blocks.push(Block::Gap);
            blocks.extend(Block::titled(2, name));
            blocks.push(Block::text(&trace.text(model, id, as_input(&witness.dot))));
        }
        blocks
    }
}

pub(super) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The inputs of a comparison, for a report.
pub(super) fn inputs(conditions: &Conditions) -> Inputs {
    if conditions.finite { Inputs::Finite } else { Inputs::All }
}

/// The ranges of exponents, by input, for a report.
pub(super) fn exponents(conditions: &Conditions) -> BTreeMap<String, [i32; 2]> {
    let ranges = [("a", conditions.a), ("b", conditions.b), ("c", conditions.c)];
    ranges
        .into_iter()
        .filter_map(|(name, range)| range.map(|range| (name.to_owned(), [range.low, range.high])))
        .collect()
}

/// The proof that two models are equal, for a report.
pub(super) fn proof_record(certificate: &Certificate, names: [&str; 2], checked: Option<usize>) -> ProofRecord {
    ProofRecord {
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
    }
}

/// Why two models are equal, in one line.
pub(super) fn equal_because(certificate: &Certificate) -> String {
    certificate.refuted.as_ref().map_or_else(
        || "both are the same circuit, gate by gate".to_owned(),
        |refuted| {
            format!(
                "the formula that they differ is refuted: {} variables, {} clauses, {} conflicts, {}",
                refuted.variables,
                refuted.clauses,
                refuted.conflicts,
                duration(refuted.time)
            )
        },
    )
}

fn carry_words(names: [&str; 2], carry: &SufficientCarry) -> String {
    let SufficientCarry { model, adder, bits, sufficient } = carry;
    let name = names[*model];
    format!("carry bits of {adder} of {name}: {bits}, and {sufficient} suffice (closed form): taken as unlimited")
}

pub(super) fn how(found: FoundBy) -> String {
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

pub(super) fn duration(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds >= 0.1 {
        format!("{seconds:.1} s")
    } else if seconds >= 0.000_1 {
        format!("{:.1} ms", seconds * 1e3)
    } else {
        format!("{:.1} µs", seconds * 1e6)
    }
}

/// Formats the dot as input of `eval`, without trailing zeros.
pub(super) fn line(id: &OperationId, dot: &Dot) -> String {
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
