//! Rewrites trees of a model with one thing changed.

use mxprobe_api::OperationId;
use mxprobe_models::{Adder, Model, Plan, Term};

/// The text of each part of a rewritten tree.
pub(super) struct Rewrite<'a> {
    /// The text of a product.
    pub product: &'a dyn Fn(usize) -> String,
    /// The text of c.
    pub c: &'a dyn Fn() -> String,
    /// The text of an addition, from its node and the text of its terms.
    pub node: &'a dyn Fn(usize, &[String]) -> String,
}

impl Rewrite<'_> {
    /// The tree of a plan.
    pub(super) fn text(&self, plan: &Plan) -> String {
        self.node_text(plan, plan.nodes.len() - 1)
    }

    fn node_text(&self, plan: &Plan, node: usize) -> String {
        let terms: Vec<String> = plan.nodes[node]
            .terms
            .iter()
            .map(|term| match term {
                Term::Product(k) => (self.product)(*k),
                Term::C => (self.c)(),
                Term::PositiveZero => "+0".to_owned(),
                Term::Node(below) => self.node_text(plan, *below),
            })
            .collect();
        (self.node)(node, &terms)
    }
}

/// The text of a call of an adder.
pub(super) fn call(adder: &str, terms: &[String]) -> String {
    format!("{adder}({})", terms.join(", "))
}

/// The model restricted to one operation, with more adders and another tree.
///
/// # Errors
/// The reason why the tree does not fit the operation, in words.
pub(super) fn with_tree(model: &Model, id: &OperationId, more: Vec<Adder>, tree: &str) -> Result<Model, String> {
    let mut model = model.clone();
    let unit = model.units.iter().position(|unit| unit.operations.contains(id)).expect("the model has the operation");
    model.units[unit].operations = vec![id.clone()];
    model.adders.extend(more);
    model.set_tree(unit, tree).map_err(|error| error.to_string())?;
    Ok(model)
}
