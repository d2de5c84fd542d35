//! Models as units of the site: each arithmetic of a model is probed once, on all cores.

use std::{collections::BTreeMap, sync::Mutex};

use mxprobe_api::OperationId;
use mxprobe_models::Model;

use super::subject::Subject;
use crate::{
    aside::{divided, locked},
    in_order::InOrder,
    isolate::Described,
    report::{OperationRecord, OperationReport, Plan, is_layout},
    session::{Asked, begin, listed, probe},
};

/// Identifies operations of a model with the same arithmetic according to its file: its unit, formats, k and modes.
type Kind = (usize, String);

/// Probes every model and returns it as a unit with a report. `tell` receives the number of operations done and their
/// total. Probing ends when `stop` returns true; the reports then hold what was found until then.
#[must_use]
pub fn modelled(
    models: &[Model],
    stop: &(dyn Fn() -> bool + Sync),
    tell: &(dyn Fn(usize, usize) + Sync),
) -> Vec<Subject> {
    let kinds: Vec<BTreeMap<Kind, Vec<OperationId>>> = models.iter().map(kinds).collect();
    let work: Vec<(usize, &OperationId)> =
        kinds.iter().enumerate().flat_map(|(at, kinds)| kinds.values().map(move |ids| (at, &ids[0]))).collect();
    // The longest sums first, so that no single one holds up the end.
    let mut order: Vec<usize> = (0..work.len()).collect();
    order.order_by_key(|at| std::cmp::Reverse(work[*at].1.shape.k));
    let found: Mutex<BTreeMap<(usize, OperationId), OperationReport>> = Mutex::default();
    divided(order.len(), mxprobe_models::threads(), |places| {
        let devices: Vec<Asked> = models.iter().map(Asked::of_model).collect();
        for place in places.take_while(|_| !stop()) {
            let (model, id) = work[order[place]];
            if let Some(report) = probe(devices[model].device.as_ref(), id, &[], None) {
                let mut found = locked(&found);
                found.insert((model, id.clone()), report);
                tell(found.len(), work.len());
            }
        }
    });
    let found = found.into_inner().expect("no thread panicked");
    models
        .iter()
        .zip(kinds)
        .enumerate()
        .map(|(at, (model, kinds))| subject(model, kinds, |id| found.get(&(at, id.clone()))))
        .collect()
}

fn kinds(model: &Model) -> BTreeMap<Kind, Vec<OperationId>> {
    let mut kinds: BTreeMap<Kind, Vec<OperationId>> = BTreeMap::new();
    for (number, unit) in model.units.iter().enumerate() {
        for id in &unit.operations {
            let asks: Vec<&str> = id.qualifiers.iter().map(String::as_str).filter(|word| !is_layout(word)).collect();
            let what = format!("k{}.{}.{}.{}.{}.{}", id.shape.k, id.d, id.a, id.b, id.c, asks.join("."));
            kinds.entry((number, what)).or_default().push(id.clone());
        }
    }
    kinds
}

/// Builds the unit of a model: the findings of each kind of operations are repeated for each of them.
fn subject<'a>(
    model: &Model,
    kinds: BTreeMap<Kind, Vec<OperationId>>,
    found: impl Fn(&OperationId) -> Option<&'a OperationReport>,
) -> Subject {
    let device = Asked::of_model(model).device;
    let plan = Plan { operations: Vec::new(), patterns: Vec::new(), probes: Vec::new(), points: None };
    let mut report = begin(&listed(&Described::of(device.as_ref())), plan, &[]);
    let alike: BTreeMap<&OperationId, &OperationReport> = kinds
        .values()
        .filter_map(|ids| Some((ids, found(&ids[0])?)))
        .flat_map(|(ids, report)| ids.iter().map(move |id| (id, report)))
        .collect();
    let of = |(id, operation)| {
        let known: &OperationReport = alike.get(id)?;
        Some(OperationReport { operation: OperationRecord::from(operation), ..known.clone() })
    };
    report.operations = model.operations.iter().filter_map(of).collect();
    Subject {
        file: model.name.clone(),
        name: model.title.clone(),
        vendor: model.vendor.clone(),
        model: Some(model.name.clone()),
        aliases: model.aliases.clone(),
        reports: vec![report],
    }
}
