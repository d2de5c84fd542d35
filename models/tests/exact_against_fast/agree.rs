//! Dots of made-up adders on every path, beside the exact evaluator.

use std::sync::Arc;

use mxprobe_api::OperationId;
use mxprobe_models::{Adder, Dot, Evaluator, Flush, Path, Plan, Sample};

/// The operands of one dot.
#[derive(Debug)]
pub(super) struct Operands {
    pub(super) a: Vec<u64>,
    pub(super) b: Vec<u64>,
    pub(super) c: u64,
    pub(super) scales: Option<(Vec<u64>, Vec<u64>)>,
}

impl Operands {
    pub(super) fn dot(&self) -> Dot<'_> {
        let scales = self.scales.as_ref().map(|(a, b)| (&a[..], &b[..]));
        Dot { a: &self.a, b: &self.b, c: self.c, scales }
    }
}

/// Compares dots in a sample, on these paths, with the exact evaluator. Returns the number of results compared, which is 0
/// if the plan does not fit the operation with these adders: then no dot is drawn.
pub(super) fn agree(
    (adders, flush, plan): (&[Adder], Flush, &Arc<Plan>),
    id: &OperationId,
    paths: &[Path],
    dots: impl Iterator<Item = Operands>,
) -> usize {
    let Ok(evaluator) = Evaluator::of_plan(adders.iter().cloned(), flush, plan, id, Path::Scalar) else { return 0 };
    let exact = Evaluator::of_plan(adders.iter().cloned(), flush, plan, id, Path::Exact).unwrap();
    let dots: Vec<Operands> = dots.collect();
    let wanted: Vec<u64> = dots.iter().map(|dot| exact.dot(dot.dot()).unwrap()).collect();
    let mut compared = 0;
    for path in paths {
        let mut sample = Sample::with_path(id, flush, *path);
        dots.iter().for_each(|dot| sample.push(dot.dot()));
        evaluator.visit(&sample, 0..dots.len(), |at, d| {
            let (exactly, operands) = (wanted[at], &dots[at]);
            assert!(
                d == exactly,
                "{id} {path:?}: {d:#x}, exactly {exactly:#x}, {operands:x?}: {adders:?} {:?}",
                plan.nodes
            );
            compared += 1;
            true
        });
    }
    compared
}
