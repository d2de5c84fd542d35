//! Plans that add some products to a value again and again, exactly, and round once.

use super::{ExactFolds, GridNode, GridOutput, GridTerm, GridWidth};
use crate::fast::tree::Flush;

impl ExactFolds {
    /// Finds the folds of a plan, if all of its nodes are exact sums of one form. `fraction_bits` are those of A and B.
    pub(super) fn of(nodes: &[GridNode], flush_c: Flush, fraction_bits: [u32; 2]) -> Option<Self> {
        let first = nodes.first()?;
        let (products, positive_zero) = (first.products.len(), first.positive_zero);
        let is_fold = |index: usize, node: &GridNode| {
            let value = if index == 0 { GridTerm::C } else { GridTerm::Value(index - 1) };
            node.width == GridWidth::Cascade
                && node.others == [value]
                && node.products.len() == products
                && node.positive_zero == positive_zero
                && node.flush == Flush::None
                && node.output == (GridOutput::F32 { toward_zero: false })
        };
        let are_folds = nodes.iter().enumerate().all(|(index, node)| is_fold(index, node));
        if !are_folds || products < 2 || flush_c != Flush::None {
            return None;
        }
        let terms = nodes.iter().flat_map(|node| &node.products).copied().collect();
        Some(Self { products, terms, positive_zero, fraction_bits: fraction_bits.map(u32::cast_signed) })
    }
}
