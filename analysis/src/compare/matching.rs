//! Matches the operations of several reports that can be compared: those with the same id, then those that compute the
//! same.

use std::collections::{BTreeMap, BTreeSet};

use mxprobe_api::{Format, OperationId};

use crate::{
    record::{MatchedBy, OperationReport, Report},
    scalars::FAMILY,
    summary::is_layout,
};

/// Operations to compare, for each report.
pub(super) struct Matched<'a> {
    pub(super) by: MatchedBy,
    pub(super) operations: Vec<Vec<&'a OperationReport>>,
}

/// All matches, and the operations of each report without a match.
pub(super) struct Matching<'a> {
    pub(super) matches: Vec<Matched<'a>>,
    pub(super) alone: Vec<Vec<&'a OperationReport>>,
}

/// The computation of an operation, apart from its k: its formats, and the qualifiers that change the result.
type Class = (Format, Format, Format, Format, Vec<String>);

/// Maps variants of a format to one: AMD's xf32 has the bits of tf32, and FNUZ is compared with OCP by its properties.
pub(super) fn standard(format: Format) -> Format {
    match format {
        Format::XF32 => Format::TF32,
        Format::E4M3FNUZ => Format::E4M3,
        Format::E5M2FNUZ => Format::E5M2,
        other => other,
    }
}

fn class(id: &OperationId) -> Class {
    // Scalar arithmetic is asked other questions than a matrix unit, so the two are never matched.
    let family = Some(&id.family).filter(|family| *family == FAMILY);
    let asks = family.into_iter().chain(id.qualifiers.iter().filter(|word| !is_layout(word)));
    (id.d, standard(id.a), standard(id.b), id.c, asks.cloned().collect())
}

/// Matches operations.
pub(super) fn operations<'a>(reports: &[&'a Report]) -> Matching<'a> {
    let mut sides: Vec<BTreeMap<Class, Vec<&'a OperationReport>>> = Vec::new();
    let mut order: Vec<(&OperationId, Class)> = Vec::new();
    let mut counts: BTreeMap<&OperationId, usize> = BTreeMap::new();
    for report in reports {
        let mut classes: BTreeMap<Class, Vec<_>> = BTreeMap::new();
        for operation in &report.operations {
            let id = &operation.operation.id;
            let count = counts.entry(id).or_insert(0);
            if *count == 0 {
                order.push((id, class(id)));
            }
            *count += 1;
            classes.entry(class(id)).or_default().push(operation);
        }
        sides.push(classes);
    }
    let mut used: Vec<BTreeSet<&OperationId>> = vec![BTreeSet::new(); reports.len()];
    let mut matches = Vec::new();
    for (id, class) in order.iter().filter(|(id, _)| counts[id] > 1) {
        matches.push(by_id(id, class, &sides, &mut used));
    }
    let mut done = BTreeSet::new();
    for (_, class) in &order {
        if done.insert(class) {
            matches.extend(by_formats(class, &sides, &mut used));
        }
    }
    let left = |(side, report): (usize, &&'a Report)| {
        report.operations.iter().filter(|operation| !used[side].contains(&operation.operation.id)).collect()
    };
    let alone = reports.iter().enumerate().map(left).collect();
    Matching { matches, alone }
}

/// Matches the operation with this id in each report that has it; in the others, operations that compute the same.
fn by_id<'a>(
    id: &OperationId,
    class: &Class,
    sides: &[BTreeMap<Class, Vec<&'a OperationReport>>],
    used: &mut [BTreeSet<&'a OperationId>],
) -> Matched<'a> {
    let mut by = MatchedBy::Id;
    let operations = sides.iter().map(|side| {
        let alike = side.get(class).map(Vec::as_slice).unwrap_or_default();
        let own: Vec<_> = alike.iter().copied().filter(|report| report.operation.id == *id).collect();
        if !own.is_empty() || alike.is_empty() {
            return own;
        }
        let near = of_k(nearest(id.shape.k, alike), alike);
        let k = near[0].operation.id.shape.k;
        by = by.max(if k == id.shape.k { MatchedBy::Formats } else { MatchedBy::Terms });
        near
    });
    let operations: Vec<_> = operations.collect();
    mark(&operations, used);
    Matched { by, operations }
}

/// Matches operations whose ids are in no other report: by k if it is shared, and otherwise without it.
fn by_formats<'a>(
    class: &Class,
    sides: &[BTreeMap<Class, Vec<&'a OperationReport>>],
    used: &mut [BTreeSet<&'a OperationId>],
) -> Vec<Matched<'a>> {
    let left: Vec<Vec<&OperationReport>> = sides
        .iter()
        .zip(used.iter())
        .map(|(side, used)| {
            let alike = side.get(class).map(Vec::as_slice).unwrap_or_default();
            alike.iter().copied().filter(|report| !used.contains(&report.operation.id)).collect()
        })
        .collect();
    let having = left.iter().filter(|operations| !operations.is_empty()).count();
    if having < 2 {
        return Vec::new();
    }
    let mut of_each_k: BTreeMap<u32, usize> = BTreeMap::new();
    for side in &left {
        let own: BTreeSet<u32> = side.iter().map(|report| report.operation.id.shape.k).collect();
        own.into_iter().for_each(|k| *of_each_k.entry(k).or_default() += 1);
    }
    let shared: Vec<u32> = of_each_k.into_iter().filter(|(_, count)| *count > 1).map(|(k, _)| k).collect();
    let mut matches = Vec::new();
    for &k in &shared {
        let operations = left.iter().map(|side| of_k(k, side)).collect();
        matches.push(Matched { by: MatchedBy::Formats, operations });
    }
    // A report without any of the shared k is compared nevertheless, as far as k does not matter.
    if let Some(first) = matches.first_mut() {
        let k = shared[0];
        for (operations, side) in first.operations.iter_mut().zip(&left) {
            if !side.is_empty() && !side.iter().any(|report| shared.contains(&report.operation.id.shape.k)) {
                *operations = of_k(nearest(k, side), side);
                first.by = MatchedBy::Terms;
            }
        }
    } else {
        matches.push(Matched { by: MatchedBy::Terms, operations: left });
    }
    matches.iter().for_each(|found| mark(&found.operations, used));
    matches
}

fn of_k<'a>(k: u32, operations: &[&'a OperationReport]) -> Vec<&'a OperationReport> {
    operations.iter().copied().filter(|report| report.operation.id.shape.k == k).collect()
}

/// Returns the k of these operations that is closest to another.
fn nearest(k: u32, operations: &[&OperationReport]) -> u32 {
    let ks = operations.iter().map(|report| report.operation.id.shape.k);
    ks.min_by_key(|own| (own.abs_diff(k), *own)).unwrap_or(k)
}

fn mark<'a>(operations: &[Vec<&'a OperationReport>], used: &mut [BTreeSet<&'a OperationId>]) {
    for (operations, used) in operations.iter().zip(used) {
        used.extend(operations.iter().map(|report| &report.operation.id));
    }
}
