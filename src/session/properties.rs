//! The answers of `distinguish --property`.

use std::time::Duration;

use mxprobe_api::OperationId;

use super::distinction::{equal_because, exponents, line, nanoseconds, proof_record};
use crate::{
    findings::Evidence,
    plain::counted,
    proof::{
        conditions::Conditions,
        panel::{Pair, Several},
        properties::{Answer, Asked, Property},
    },
    report::{
        AlternativeRecord, Block, Cell, DistinctionVerdict, EvidenceRecord, Layout, PROPERTIES_SCHEMA, Page,
        PropertiesReport, PropertyRecord, Row, Show, this_tool, to_json,
    },
};

/// The properties of a model's operation.
#[derive(Debug)]
pub struct Properties<'a> {
    /// The model's name.
    pub name: &'a str,
    /// The operation.
    pub id: &'a OperationId,
    /// The range of inputs.
    pub conditions: Conditions,
    /// Each property with its answer and the time it took.
    pub answers: Vec<(Property, Answer, Duration)>,
    /// The total time.
    pub took: Duration,
    /// The program's arguments, for the report.
    pub arguments: Vec<String>,
}

impl Show for Properties<'_> {
    fn page(&self, _: bool) -> Page {
        let title = format!("{} on {}", self.name, self.id);
        let mut blocks = vec![
            Block::Paper(vec![Block::heading(1, &title)]),
            Block::words(format!("{title}, over {}", self.conditions.words())),
        ];
        for (property, answer, took) in &self.answers {
            blocks.push(Block::Gap);
            let heading = format!("{}: {} ({} s)", property.name(), property.question(), seconds(*took));
            blocks.extend(Block::titled(2, heading));
            match answer {
                Answer::DoesNotApply(why) => {
                    blocks.push(Block::Inset(vec![Block::words(format!("does not apply: {why}"))]));
                }
                Answer::Shown { asked, several } => blocks.push(Block::Inset(self.shown(answer, asked, several))),
            }
        }
        Page { title, blocks }
    }

    fn json(&self) -> String {
        to_json(&self.report())
    }
}

/// Formats seconds with at least two significant digits.
fn seconds(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 0.1 { format!("{seconds:.3}") } else { format!("{seconds:.2}") }
}

impl Properties<'_> {
    /// The answers as a report.
    #[must_use]
    pub fn report(&self) -> PropertiesReport {
        PropertiesReport {
            schema: PROPERTIES_SCHEMA.into(),
            tool: this_tool(&self.arguments),
            model: self.name.to_owned(),
            operation: self.id.clone(),
            exponents: exponents(&self.conditions),
            properties: self.answers.iter().map(|answer| self.record(answer)).collect(),
            duration_ns: nanoseconds(self.took),
        }
    }

    fn record(&self, (property, answer, took): &(Property, Answer, Duration)) -> PropertyRecord {
        let mut record = PropertyRecord {
            property: property.name().to_owned(),
            question: property.question().to_owned(),
            answer: None,
            does_not_apply: None,
            evidence: Vec::new(),
            alternatives: Vec::new(),
            duration_ns: nanoseconds(*took),
        };
        match answer {
            Answer::DoesNotApply(why) => record.does_not_apply = Some(why.clone()),
            Answer::Shown { asked, several } => {
                record.answer = Some(asked.unit.clone());
                record.evidence = several
                    .dots
                    .iter()
                    .map(|(told, _)| {
                        let others = asked.alternatives.iter().map(|neighbour| neighbour.what.clone());
                        let rivals: Vec<(String, u64)> = others.zip(told.values[1..].iter().copied()).collect();
                        let evidence = Evidence::of_dot(property.question(), &told.dot, told.values[0], &rivals);
                        EvidenceRecord::new(&evidence, self.id)
                    })
                    .collect();
                let alternative = |([_, other], pair): &([usize; 2], Pair)| {
                    let what = &asked.alternatives[other - 1].what;
                    let mut found = AlternativeRecord {
                        alternative: what.clone(),
                        verdict: DistinctionVerdict::Equal,
                        evidence: None,
                        proof: None,
                        reason: None,
                    };
                    match pair {
                        Pair::Differ(dot) => {
                            (found.verdict, found.evidence) = (DistinctionVerdict::Differ, Some(*dot as u64));
                        }
                        Pair::Equal(certificate) => {
                            found.proof = Some(proof_record(certificate, [self.name, what], None));
                        }
                        Pair::EqualThrough(_) => {}
                        Pair::Undecided(undecided) => {
                            (found.verdict, found.reason) =
                                (DistinctionVerdict::Undecided, Some(undecided.why.clone()));
                        }
                    }
                    found
                };
                record.alternatives = several.pairs.iter().map(alternative).collect();
                record.alternatives.extend(asked.left_out.iter().map(|(what, why)| AlternativeRecord {
                    alternative: what.clone(),
                    verdict: DistinctionVerdict::Undecided,
                    evidence: None,
                    proof: None,
                    reason: Some(why.clone()),
                }));
            }
        }
        record
    }

    /// Shows the model's behaviour, each dot with the results of the model and of the alternatives, and the
    /// alternatives that no dot can rule out.
    fn shown(&self, answer: &Answer, asked: &Asked, several: &Several) -> Vec<Block> {
        let mut blocks = vec![Block::words(asked.unit.clone())];
        for (number, (told, _)) in several.dots.iter().enumerate() {
            blocks.push(Block::Lines(vec![line(self.id, &told.dot)]));
            let result = |value: u64| format!("d = {} = {}", self.id.d.hex(value), self.id.d.to_f64(value));
            let unit = Row::plain(vec![Cell::code(result(told.values[0])), Cell::words(self.name)]);
            let shown = several.pairs.iter().filter(|(_, pair)| matches!(pair, Pair::Differ(dot) if *dot == number));
            let others = shown.map(|([_, other], _)| {
                let what = format!("with {}", asked.alternatives[other - 1].what);
                Row::plain(vec![Cell::code(result(told.values[*other])), Cell::words(what)])
            });
            blocks.push(Block::laid_out(Layout::Bare, ["result", "of"], std::iter::once(unit).chain(others)));
        }
        for ([_, other], pair) in &several.pairs {
            let what = &asked.alternatives[other - 1].what;
            match pair {
                Pair::Differ(_) => {}
                Pair::Equal(certificate) => {
                    let why = equal_because(certificate);
                    blocks.push(Block::words(format!("no dot can show {what}: proved, {why}")));
                }
                Pair::EqualThrough(third) => {
                    let third = &asked.alternatives[third.saturating_sub(1)].what;
                    blocks.push(Block::words(format!("no dot can show {what}: it is equal to {third}")));
                }
                Pair::Undecided(undecided) => {
                    let tried = counted(undecided.tried, "dot");
                    blocks.push(Block::words(format!("{what}: not decided; {tried} agree; {}", undecided.why)));
                }
            }
        }
        blocks.extend(asked.left_out.iter().map(|(what, why)| Block::words(format!("{what}: not asked: {why}"))));
        if answer.cannot_be_shown() {
            blocks.push(Block::words("no dot shows this property"));
        }
        blocks
    }
}
