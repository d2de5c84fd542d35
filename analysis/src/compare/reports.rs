//! Comparison of reports: property by property, and bit by bit for inputs in common.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashMap},
};

use foldhash::fast::RandomState;
use mxprobe_api::{Format, OperationId, threads};

use super::{
    keys::{comparable, keys},
    matching, matrix, same_device,
};
use crate::{
    aside::aside,
    findings::{Comparable, Outcome},
    in_order::InOrder,
    record::{
        Alone, Answer, COMPARISON_SCHEMA, Compared, Comparison, DeviceRecord, DotCompared, DotText, EvidenceList,
        EvidenceRecord, FindingRecord, Match, MatchedBy, OperationReport, Report, Side, State, Time,
    },
};

/// Compares reports, each given with the name of its source.
///
/// Operations are matched by their ids; the remaining ones, and those whose ids other reports lack, by what they
/// compute.
#[must_use]
pub fn compare(reports: &[(String, Report)]) -> Comparison {
    let mut sides: Vec<Side> =
        reports.iter().enumerate().map(|(at, (source, report))| side_of_report(at, source, report)).collect();
    matrix::entitle(&mut sides);
    let reports: Vec<&Report> = reports.iter().map(|(_, report)| report).collect();
    let matched = matching::operations(&reports);
    let mut matches: Vec<Match> = Vec::new();
    let of = &matched.matches;
    let compared = aside(of.len(), threads(), |at| Some(&of[at]), |found| compare_match(found, &reports));
    for one in compared.into_iter().flatten() {
        match matches.iter_mut().find(|other| says_the_same(other, &one)) {
            Some(other) => join(other, one),
            None => matches.push(one),
        }
    }
    for found in &mut matches {
        found.rows.order_by_key(|row| row.state);
    }
    matches.order_by_key(|found| (!found.differs(), is_beside_the_unit(found)));
    let alone: Vec<Alone> = (0..reports.len()).flat_map(|side| alone(&reports, side, &matched.alone[side])).collect();
    let differ = !matches.iter().any(Match::is_settled)
        || matches.iter().any(Match::differs)
        || alone.iter().any(|alone| alone.same_device);
    Comparison {
        schema: COMPARISON_SCHEMA.into(),
        differ,
        notes: notes(&reports, &sides, &matches),
        headline: matrix::sentences(&reports, &sides),
        matrix: matrix::matrix(&reports),
        reports: sides,
        matches,
        alone,
    }
}

/// Whether the operations are of a vector unit or scalar: those of matrix units are listed first.
fn is_beside_the_unit(found: &Match) -> bool {
    found.operations.iter().flatten().all(|id| id.shape.m == 1 && id.shape.n == 1)
}

fn side_of_report(at: usize, source: &str, report: &Report) -> Side {
    // The user's name for the card.
    let title = report.device.properties.get("card").cloned().unwrap_or_default();
    Side { title, ..side(at, source, &report.device, &report.time) }
}

/// Describes a device and the time of its results, without a title.
pub(super) fn side(at: usize, source: &str, device: &DeviceRecord, time: &Time) -> Side {
    Side {
        label: label(at),
        title: String::new(),
        source: source.to_owned(),
        backend: device.backend.clone(),
        fingerprint: device.fingerprint.clone(),
        selector: device.selector.clone(),
        name: device.name.clone(),
        kind: device.kind,
        emulated: device.emulated,
        driver: device.driver.clone(),
        start: time.start.clone(),
    }
}

/// Returns the label of a side: `A` to `Z`, then `AA`, …
pub(super) fn label(at: usize) -> String {
    let letter = char::from(b'A' + u8::try_from(at % 26).expect("less than 26"));
    if at < 26 { letter.to_string() } else { format!("{}{letter}", label(at / 26 - 1)) }
}

fn is_twin(left: &Report, right: &Report) -> bool {
    (&left.device.backend, &left.device.fingerprint) == (&right.device.backend, &right.device.fingerprint)
}

/// Returns the operations of one report without a counterpart, starting with those that another driver of its device
/// lacks.
fn alone(reports: &[&Report], side: usize, operations: &[&OperationReport]) -> Vec<Alone> {
    let twins: Vec<&Report> =
        reports.iter().copied().filter(|other| is_driven_otherwise(other, reports[side])).collect();
    let ids = operations.iter().map(|operation| operation.operation.id.clone());
    let (lacked, others): (Vec<_>, Vec<_>) = ids.partition(|id| twins.iter().any(|twin| lacks(twin, id)));
    [(lacked, true), (others, false)]
        .into_iter()
        .filter(|(operations, _)| !operations.is_empty())
        .map(|(operations, same_device)| Alone { report: label(side), operations, same_device })
        .collect()
}

fn is_driven_otherwise(left: &Report, right: &Report) -> bool {
    is_twin(left, right) && left.device.driver != right.device.driver
}

/// Whether a device was asked about all of its operations, and this one was not among them.
fn lacks(report: &Report, id: &OperationId) -> bool {
    report.plan.as_ref().is_none_or(|plan| plan.patterns.is_empty() && !plan.operations.contains(id))
}

fn compare_match(found: &matching::Matched<'_>, reports: &[&Report]) -> Match {
    let same_device = found
        .operations
        .iter()
        .enumerate()
        .filter(|(_, operations)| !operations.is_empty())
        .all(|(side, _)| is_twin(reports[side], reports[first_side(found)]));
    let mut probes: Vec<&str> = Vec::new();
    let mut known = BTreeSet::new();
    for report in found.operations.iter().flatten() {
        let new = report.findings.iter().filter(|finding| known.insert(finding.probe.as_str()));
        probes.extend(new.map(|finding| finding.probe.as_str()));
    }
    let rows = probes.into_iter().map(|probe| compare_probe(probe, found, same_device)).collect();
    let (dots_in_common, dots) = compare_dots(found);
    let ids =
        |operations: &Vec<&OperationReport>| operations.iter().map(|report| report.operation.id.clone()).collect();
    Match { by: found.by, operations: found.operations.iter().map(ids).collect(), rows, dots_in_common, dots }
}

fn first_side(found: &matching::Matched<'_>) -> usize {
    found.operations.iter().position(|operations| !operations.is_empty()).unwrap_or(0)
}

fn compare_probe(probe: &str, found: &matching::Matched<'_>, same_device: bool) -> Compared {
    let answers: Vec<Vec<Answer>> = found.operations.iter().map(|operations| answers(probe, operations)).collect();
    let present = || found.operations.iter().zip(&answers).filter(|(operations, _)| !operations.is_empty());
    let compared = comparable(probe);
    let first = present().next().and_then(|(_, answers)| answers.first()?.value.as_ref());
    let is_same = |(_, answers): (_, &Vec<Answer>)| matches!(&answers[..], [one] if one.value.as_ref() == first);
    let arises = present().any(|(_, answers)| answers.iter().any(|answer| answer.outcome != Outcome::Unsupported));
    // Equal values have equal keys.
    let (missing, settled, agree) = if first.is_some() && present().all(is_same) {
        (false, present().count(), true)
    } else {
        let keys: Vec<BTreeSet<String>> = present().map(|(_, answers)| keys(compared, answers)).collect();
        let settled: Vec<&BTreeSet<String>> = keys.iter().filter(|keys| !keys.is_empty()).collect();
        let agree = settled.windows(2).all(|pair| pair[0] == pair[1]);
        (settled.len() < keys.len(), settled.len(), agree)
    };
    let failed: Vec<bool> =
        present().map(|(_, answers)| answers.iter().any(|answer| answer.outcome == Outcome::Failed)).collect();
    let is_comparable = match compared {
        Comparable::WithinK => found.by != MatchedBy::Terms,
        Comparable::WithinDevice => same_device,
        Comparable::AsIs | Comparable::By(_) | Comparable::NanBits => true,
    };
    let state = if failed.contains(&true) && failed.contains(&false) || is_comparable && !agree {
        State::Differs
    } else if !arises && present().all(|(_, answers)| !answers.is_empty()) {
        State::Equal
    } else if !is_comparable || missing || settled < 2 {
        State::Open
    } else {
        State::Equal
    };
    Compared { probe: probe.to_owned(), state, answers }
}

/// Returns the distinct answers of a report's operations.
fn answers(probe: &str, operations: &[&OperationReport]) -> Vec<Answer> {
    let mut found: Vec<(&FindingRecord, Vec<&OperationId>)> = Vec::new();
    for report in operations {
        let Some(finding) = report.finding(probe) else { continue };
        let same =
            |(known, _): &&mut (&FindingRecord, _)| known.outcome == finding.outcome && known.value == finding.value;
        match found.iter_mut().find(same) {
            Some((_, ids)) => ids.push(&report.operation.id),
            None => found.push((finding, vec![&report.operation.id])),
        }
    }
    let is_one = found.len() == 1;
    let answer = |(finding, ids): (&FindingRecord, Vec<&OperationId>)| Answer {
        outcome: finding.outcome,
        value: finding.value.clone(),
        words: finding.words(),
        operations: if is_one { Vec::new() } else { ids.into_iter().cloned().collect() },
    };
    found.into_iter().map(answer).collect()
}

/// The formats of a dot, and its input in the form of [`DotText`].
#[derive(PartialEq, Eq, Hash)]
struct Input<'a> {
    formats: [Format; 4],
    function: &'a str,
    a: Cow<'a, str>,
    b: Cow<'a, str>,
    c: &'a str,
    scales: [Option<Cow<'a, str>>; 2],
}

/// A dot in the evidence of a finding, and the results of those who were asked for it.
struct Asked<'a> {
    first: (&'a EvidenceList, usize),
    results: Vec<Option<(&'a str, &'a OperationId)>>,
}

/// The evidence of a finding of the first side. Others may have the very same.
struct FirstList<'a> {
    list: &'a EvidenceList,
    formats: [Format; 4],
    /// The place of each dot among all that were asked, and the result.
    dots: Vec<(usize, &'a str)>,
}

/// Compares the dots that several reports have in their evidence: returns their number, and those with different
/// results.
fn compare_dots(found: &matching::Matched<'_>) -> (usize, Vec<DotCompared>) {
    let mut known: HashMap<Input<'_>, usize, RandomState> = HashMap::default();
    let mut asked: Vec<Asked<'_>> = Vec::new();
    let sides = found.operations.len();
    // The lists of the first side that has any, with the places of their dots in `asked` and the results.
    let mut first: Vec<FirstList<'_>> = Vec::new();
    for (side, operations) in found.operations.iter().enumerate() {
        let is_first = first.is_empty();
        let lists = operations.iter().copied().flat_map(|report| {
            let id = &report.operation.id;
            report.findings.iter().map(move |finding| (id, &finding.evidence))
        });
        for (nth, (id, list)) in lists.enumerate() {
            let twin = first.get(nth).filter(|_| !is_first);
            let twin = twin.filter(|twin| twin.formats == formats(id) && twin.list.is_same_text(list));
            let dots = match twin {
                Some(twin) => Cow::Borrowed(&twin.dots),
                None => Cow::Owned(
                    list.texts()
                        .enumerate()
                        .map(|(place, dot)| {
                            let d = dot.d;
                            let at = *known.entry(input(dot, id)).or_insert_with(|| {
                                asked.push(Asked { first: (list, place), results: vec![None; sides] });
                                asked.len() - 1
                            });
                            (at, d)
                        })
                        .collect(),
                ),
            };
            for (at, d) in dots.iter() {
                // The first operation of a side represents it, unless a later one has a result that no side has yet.
                let results = &mut asked[*at].results;
                if results[side].is_none() || results.iter().flatten().all(|(known, _)| known != d) {
                    results[side] = Some((d, id));
                }
            }
            if is_first {
                first.push(FirstList { list, formats: formats(id), dots: dots.into_owned() });
            }
        }
    }
    asked.retain(|dot| dot.results.iter().flatten().count() > 1);
    let in_common = asked.len();
    let results = |dot: &Asked<'_>| dot.results.iter().flatten().map(|(d, _)| *d).collect::<BTreeSet<_>>().len();
    asked.retain(|dot| results(dot) > 1);
    let mut dots: Vec<DotCompared> = asked.iter().map(Asked::compared).collect();
    // The simplest dots come first.
    dots.order_by_key(|dot| dot.input.a.iter().filter(|bits| !is_zero(bits)).count());
    (in_common, dots)
}

impl Asked<'_> {
    fn compared(&self) -> DotCompared {
        let (list, at) = self.first;
        let input = list.record(at);
        let results = || self.results.iter();
        DotCompared {
            operations: results().map(|result| result.map(|(_, id)| id.clone())).collect(),
            input: EvidenceRecord { about: question(&input.about), rivals: Vec::new(), ..input },
            d: results().map(|result| result.map(|(d, _)| d.to_owned())).collect(),
        }
    }
}

/// Returns the purpose of an input, without one device's result.
fn question(about: &str) -> String {
    let end = [": kept", ": lost"].into_iter().find_map(|answer| about.strip_suffix(answer));
    end.unwrap_or(about).to_owned()
}

/// Whether an element is +0 in any format.
fn is_zero(hex: &str) -> bool {
    hex.trim_start_matches("0x").bytes().all(|digit| digit == b'0')
}

fn input<'a>(dot: DotText<'a>, id: &OperationId) -> Input<'a> {
    let DotText { function, a, b, c, scales, .. } = dot;
    Input { formats: formats(id), function, a, b, c, scales }
}

/// The formats in which dots of an operation are read.
fn formats(id: &OperationId) -> [Format; 4] {
    // The same bits mean the same in xf32 as in tf32, but other numbers in FNUZ than in OCP formats.
    let read = |format: Format| if format == Format::XF32 { Format::TF32 } else { format };
    [id.d, read(id.a), read(id.b), id.c]
}

/// Whether two matches have the same answers on every side, so that one table suffices for both.
fn says_the_same(left: &Match, right: &Match) -> bool {
    let same_answer = |left: &Answer, right: &Answer| left.outcome == right.outcome && left.value == right.value;
    let same_side = |left: &Vec<Answer>, right: &Vec<Answer>| {
        left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same_answer(left, right))
    };
    let same_row = |left: &Compared, right: &Compared| {
        (&left.probe, left.state) == (&right.probe, right.state)
            && left.answers.iter().zip(&right.answers).all(|(left, right)| same_side(left, right))
    };
    let sides = |found: &Match| found.operations.iter().map(Vec::is_empty).collect::<Vec<_>>();
    left.by == right.by
        && sides(left) == sides(right)
        && left.rows.len() == right.rows.len()
        && left.rows.iter().zip(&right.rows).all(|(left, right)| same_row(left, right))
}

fn join(found: &mut Match, other: Match) {
    for (all, more) in found.operations.iter_mut().zip(other.operations) {
        for id in more {
            if !all.contains(&id) {
                all.push(id);
            }
        }
    }
    found.dots_in_common += other.dots_in_common;
    found.dots.extend(other.dots);
}

/// Says which sides are the same device, and how operations with different ids were matched.
fn notes(reports: &[&Report], sides: &[Side], matches: &[Match]) -> Vec<String> {
    let mut devices: BTreeMap<(&str, &str), Vec<&Side>> = BTreeMap::new();
    for side in sides {
        devices.entry((&side.backend, &side.fingerprint)).or_default().push(side);
    }
    let mut notes = Vec::new();
    for ((backend, fingerprint), sides) in devices.iter().filter(|(_, sides)| sides.len() > 1) {
        let labels = sides.iter().map(|side| side.label.as_str()).collect::<Vec<_>>().join(", ");
        let drivers: Vec<String> = sides.iter().map(|side| driver(side)).collect();
        let same = drivers.windows(2).all(|pair| pair[0] == pair[1]);
        let words = if same {
            format!("with the same driver ({})", drivers[0])
        } else {
            format!("with different drivers ({}): what differs between them, the driver changed", drivers.join("; "))
        };
        notes.push(format!("{labels} are the same device, {backend} {fingerprint}, {words}"));
    }
    notes.extend(same_device::notes(reports, sides, matches));
    let has = |by: MatchedBy| matches.iter().any(|found| found.by == by);
    if has(MatchedBy::Formats) {
        notes.push("operations with different names are compared where formats, k and qualifiers are equal".into());
    }
    if has(MatchedBy::Terms) {
        notes.push(
            "where no k is shared, operations of the same formats are compared without their order: products at once \
             tells how they are blocked"
                .into(),
        );
    }
    for (side, report) in sides.iter().zip(reports).filter(|(_, report)| report.time.interrupted) {
        let asked = report.operations.len();
        let all = report.plan.as_ref().map_or_else(String::new, |plan| format!(" of {}", plan.operations.len()));
        notes.push(format!("{} is unfinished: it ends after {asked}{all} operations", side.label));
    }
    if let Some(side) = sides.iter().find(|side| side.emulated) {
        notes.push(format!("{}: a double made for tests answered; nothing was measured on a device", side.label));
    }
    notes
}

fn driver(side: &Side) -> String {
    side.driver.as_ref().map_or_else(|| "no driver".to_owned(), |driver| format!("{} {}", driver.name, driver.version))
}
