//! The points of shards, put together.

use super::{
    blame::name_the_cause,
    fit::Fits,
    record::{Curve, Growth},
};
use crate::in_order::InOrder;

/// Merges the shards of one experiment into its results.
///
/// # Errors
/// If these are not shards of one experiment: they name other curves, or have a point twice, or not at all.
pub fn merge(shards: &[Growth]) -> Result<Growth, String> {
    let [first, others @ ..] = shards else { return Err("no shard was given".into()) };
    let mut all = first.clone();
    for other in others {
        all.products += other.products;
        if other.curves.len() != all.curves.len() {
            return Err(format!("one shard has {} curves, and another {}", all.curves.len(), other.curves.len()));
        }
        for (curve, other) in all.curves.iter_mut().zip(&other.curves) {
            if name(curve) != name(other) {
                return Err(format!("one shard has the curve {}, and another {}", name(curve), name(other)));
            }
            curve.points.extend(&other.points);
        }
    }
    for curve in &mut all.curves {
        curve.points.order_by_key(|point| point.n);
        if let Some(pair) = curve.points.windows(2).find(|pair| pair[0].n == pair[1].n) {
            return Err(format!("the point n = {} of {} is there twice", pair[0].n, name(curve)));
        }
        curve.fits = Fits::of(&curve.points);
    }
    if let Some(longest) = all.curves.iter().max_by_key(|curve| curve.points.len()) {
        let lacks = |curve: &&Curve| curve.what_if.is_none() && curve.points.len() < longest.points.len();
        if let Some(curve) = all.curves.iter().find(lacks) {
            let (has, of) = (curve.points.len(), longest.points.len());
            return Err(format!("{} has {has} points of {of}", name(curve)));
        }
    }
    // Curves of a changed unit are there if a cause is asked for.
    let blamed = all.curves.iter().find(|curve| curve.what_if.is_some()).map(|curve| curve.name.clone());
    all.cause = blamed.map(|blamed| name_the_cause(&all.curves, &blamed));
    Ok(all)
}

/// A name for people that distinguishes a curve from the others.
fn name(curve: &Curve) -> String {
    let operation = curve.operation.as_ref().map(|operation| format!(" {operation}")).unwrap_or_default();
    let what_if = curve.what_if.map(|cause| format!(", if {}", cause.words())).unwrap_or_default();
    format!("{}{operation}{what_if} on {}", curve.name, curve.interval.name())
}
