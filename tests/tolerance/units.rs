//! One operation for each way to compute of every shipped model.

use mxprobe_api::OperationId;
use mxprobe_models::{Evaluator, Model, load, shipped};

/// One operation of a model.
pub(crate) struct Unit {
    pub(crate) name: String,
    pub(crate) model: Model,
    pub(crate) id: OperationId,
    pub(crate) evaluator: Evaluator,
}

impl Unit {
    pub(crate) fn new(model: &Model, id: &OperationId) -> Self {
        let variant = model.variant.as_deref().map_or(String::new(), |variant| format!("@{variant}"));
        Self {
            name: format!("{}{variant} {id}", model.name),
            model: model.clone(),
            id: id.clone(),
            evaluator: Evaluator::new(model, id).unwrap(),
        }
    }

    pub(crate) fn named(model: &str, id: &str) -> Self {
        Self::new(&load(model).unwrap(), &id.parse().unwrap())
    }
}

/// One operation for each tree, operand formats and format of D, of every model and variant: that of the smallest k.
pub(crate) fn units() -> Vec<Unit> {
    let variants = |model: &'static Model| {
        let named = model.variants.keys().map(|name| load(&format!("{}@{name}", model.name)).unwrap());
        std::iter::once(model.clone()).chain(named).collect::<Vec<_>>()
    };
    let mut found = Vec::new();
    for model in shipped().iter().flat_map(variants) {
        for unit in &model.units {
            let mut ids: Vec<&OperationId> = unit.operations.iter().collect();
            ids.sort_by_key(|id| id.shape.k);
            let mut seen = Vec::new();
            for id in ids {
                let formats = (id.a, id.b, id.c, id.d);
                if !seen.contains(&formats) {
                    seen.push(formats);
                    found.push(Unit::new(&model, id));
                }
            }
        }
    }
    found
}
