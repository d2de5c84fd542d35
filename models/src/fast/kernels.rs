//! Choosing the kernel for a plan.

use std::sync::Arc;

use mxprobe_api::OperationId;

use super::{
    chain::ChainPlan, double::DoublePlan, grids::GridsPlan, integer::IntegerPlan, path::Path, sums::SumsPlan,
    tree::TreePlan,
};
use crate::{adder::Adder, model::Unit, tree::Plan};

/// The kernel that computes an operation with columns in lanes.
#[derive(Clone, Debug)]
pub(super) enum Kernels {
    None,
    Chain(ChainPlan),
    Tree(TreePlan),
    Double(DoublePlan),
    Integer(IntegerPlan),
    Sums(SumsPlan),
    Grids(Box<GridsPlan>),
}

impl Kernels {
    pub(super) fn of(adders: &[Arc<Adder>], unit: &Unit, plan: &Plan, id: &OperationId, path: Path) -> Self {
        if path < Path::Portable {
            return Self::None;
        }
        if let Some(kernel) = ChainPlan::of(adders, unit, plan, id) {
            return Self::Chain(kernel);
        }
        if let Some(kernel) = TreePlan::of(adders, unit, plan, id, path) {
            return Self::Tree(kernel);
        }
        if let Some(kernel) = DoublePlan::of(adders, unit, plan, id, path) {
            return Self::Double(kernel);
        }
        if let Some(kernel) = IntegerPlan::of(adders, unit, plan, id) {
            return Self::Integer(kernel);
        }
        Self::on_grids(adders, unit, plan, id, path)
    }

    /// The kernel of sums on grids, which takes most chains too, more slowly, and whatever their operands are.
    pub(super) fn on_grids(adders: &[Arc<Adder>], unit: &Unit, plan: &Plan, id: &OperationId, path: Path) -> Self {
        let Some(sums) = SumsPlan::of(adders, unit, plan, id, path) else { return Self::None };
        match GridsPlan::of(&sums, adders, unit, plan, id) {
            Some(plan) => Self::Grids(Box::new(plan)),
            None if sums.is_too_wide() => Self::None,
            None => Self::Sums(sums),
        }
    }
}
