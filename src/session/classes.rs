//! The verdict of `distinguish` on more than two models.

use std::{collections::BTreeMap, time::Duration};

use mxprobe_api::OperationId;

use super::distinction::{equal_because, exponents, how, inputs, line, nanoseconds, proof_record};
use crate::{
    findings::Evidence,
    plain::counted,
    proof::{
        conditions::Conditions,
        panel::{Pair, Several, Told},
    },
    report::{
        Block, CLASSES_SCHEMA, Cell, ClassesReport, DistinctionVerdict, EvidenceRecord, Layout, Page, PairRecord, Row,
        Show, this_tool, to_json,
    },
};

/// The comparison of several models.
#[derive(Debug)]
pub struct Classes<'a> {
    /// The models' names.
    pub names: Vec<&'a str>,
    /// The operation that is compared, by its id in most models.
    pub id: &'a OperationId,
    /// The corresponding operation of models that do not have this id.
    pub counterparts: BTreeMap<String, OperationId>,
    /// The inputs over which they were compared.
    pub conditions: Conditions,
    /// The result.
    pub several: &'a Several,
    /// The time taken.
    pub took: Duration,
    /// The program's arguments, for the report.
    pub arguments: Vec<String>,
}

impl Show for Classes<'_> {
    fn page(&self, _: bool) -> Page {
        let Self { names, id, several, .. } = self;
        let title = format!("{} on {id}", names.join(", "));
        let mut blocks = vec![Block::Paper(vec![Block::heading(1, &title)])];
        let decided = if several.is_decided() { "" } else { ", as far as is decided" };
        let count = counted_classes(several.classes.len());
        blocks.push(Block::words(format!("{title}: {count}{decided}, over {}", self.conditions.words())));
        let rows = several.classes.iter().enumerate().map(|(number, members)| {
            let members: Vec<&str> = members.iter().map(|member| names[*member]).collect();
            let equal = if members.len() > 1 { "proved equal" } else { "" };
            Row::plain(vec![
                Cell::words(format!("{}", number + 1)),
                Cell::words(members.join(", ")),
                Cell::words(equal),
            ])
        });
        blocks.push(Block::laid_out(Layout::Bare, ["class", "models", "why"], rows));
        for (model, counterpart) in &self.counterparts {
            blocks.push(Block::words(format!("{model}: {counterpart} has the same formats and k")));
        }
        blocks.extend(self.dots());
        blocks.push(Block::Gap);
        blocks.extend(Block::titled(2, "every pair"));
        let rows = several.pairs.iter().map(|([one, other], pair)| {
            Row::plain(vec![Cell::words(names[*one]), Cell::words(names[*other]), Cell::words(self.pair_words(pair))])
        });
        blocks.push(Block::laid_out(Layout::Bare, ["model", "model", "verdict"], rows));
        Page { title, blocks }
    }

    fn json(&self) -> String {
        to_json(&self.report())
    }
}

fn counted_classes(count: usize) -> String {
    if count == 1 { "1 class, all equal".to_owned() } else { format!("{count} classes") }
}

impl Classes<'_> {
    /// The verdict as a report.
    #[must_use]
    pub fn report(&self) -> ClassesReport {
        let Self { names, several, .. } = self;
        let name = |model: &usize| names[*model].to_owned();
        let pair = |([one, other], pair): &([usize; 2], Pair)| {
            let models = [name(one), name(other)];
            let mut record = PairRecord {
                verdict: DistinctionVerdict::Equal,
                evidence: None,
                proof: None,
                through: None,
                reason: None,
                models,
            };
            match pair {
                Pair::Differ(dot) => {
                    (record.verdict, record.evidence) = (DistinctionVerdict::Differ, Some(*dot as u64));
                }
                Pair::Equal(certificate) => {
                    record.proof = Some(proof_record(certificate, [names[*one], names[*other]], None));
                }
                Pair::EqualThrough(third) => record.through = Some(name(third)),
                Pair::Undecided(undecided) => {
                    (record.verdict, record.reason) = (DistinctionVerdict::Undecided, Some(undecided.why.clone()));
                }
            }
            record
        };
        ClassesReport {
            schema: CLASSES_SCHEMA.into(),
            tool: this_tool(&self.arguments),
            models: names.iter().map(|name| (*name).to_owned()).collect(),
            operation: self.id.clone(),
            counterparts: self.counterparts.clone(),
            inputs: inputs(&self.conditions),
            exponents: exponents(&self.conditions),
            classes: several.classes.iter().map(|members| members.iter().map(name).collect()).collect(),
            one_dot_tells_all: several.one_dot_tells_all(),
            evidence: several.dots.iter().map(|(told, found)| self.evidence(told, found.map(how))).collect(),
            pairs: several.pairs.iter().map(pair).collect(),
            duration_ns: nanoseconds(self.took),
        }
    }

    fn evidence(&self, told: &Told, about: Option<String>) -> EvidenceRecord {
        let about = about.unwrap_or_else(|| format!("one of {} dots drawn", self.several.drawn));
        let rivals: Vec<(String, u64)> =
            self.names[1..].iter().map(|name| (*name).to_owned()).zip(told.values[1..].iter().copied()).collect();
        EvidenceRecord::new(&Evidence::of_dot(about, &told.dot, told.values[0], &rivals), self.id)
    }

    /// Shows the dots, each with every model's result.
    fn dots(&self) -> Vec<Block> {
        let mut blocks = Vec::new();
        for (number, (told, found)) in self.several.dots.iter().enumerate() {
            let says = match (number, self.several.one_dot_tells_all()) {
                (0, true) => "one dot tells all classes apart".to_owned(),
                (0, false) => "dot 1 tells the most models apart".to_owned(),
                _ => format!("dot {} tells others apart", number + 1),
            };
            let how =
                found.map_or_else(|| format!("the simplest of those found among {} drawn", self.several.drawn), how);
            blocks.extend([Block::Gap, Block::words(format!("{says}: {how}"))]);
            blocks.push(Block::Lines(vec![line(self.id, &told.dot)]));
            blocks.push(results(self.id, &self.names, &told.values));
        }
        blocks
    }

    fn pair_words(&self, pair: &Pair) -> String {
        match pair {
            Pair::Differ(_) if self.several.dots.len() == 1 => "differ on that dot".to_owned(),
            Pair::Differ(dot) => format!("differ on dot {}", dot + 1),
            Pair::Equal(certificate) => {
                let closed = if certificate.carry.is_empty() { "" } else { ", with carry bits by their closed form" };
                format!("equal: {}{closed}", equal_because(certificate))
            }
            Pair::EqualThrough(third) => format!("equal: both are equal to {}", self.names[*third]),
            Pair::Undecided(undecided) => {
                format!("not decided: {} agree; {}", counted(undecided.tried, "dot"), undecided.why)
            }
        }
    }
}

/// Tabulates the result of each model.
pub(super) fn results(id: &OperationId, names: &[&str], values: &[u64]) -> Block {
    let rows = names.iter().zip(values).map(|(name, value)| {
        let result = format!("d = {} = {}", id.d.hex(*value), id.d.to_f64(*value));
        Row::plain(vec![Cell::words(*name), Cell::code(result)])
    });
    Block::laid_out(Layout::Bare, ["model", "result"], rows)
}
