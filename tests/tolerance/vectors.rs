//! Measured dots are inside the tolerances of their unit's model.

use std::collections::BTreeMap;

use mxprobe::tolerance::{Order, Tolerance};
use mxprobe_api::{Elements, Format, GemmOperands};
use mxprobe_models::{Model, load};

use super::reference::{self, Reference};

#[test]
#[cfg_attr(not(vectors), ignore = "MXPROBE_VECTORS does not name the directory of the reference dots")]
fn every_reference_dot_is_inside() {
    let mut models: BTreeMap<String, Model> = BTreeMap::new();
    let mut tolerances = BTreeMap::new();
    let (mut judged, mut unbounded) = (0, 0);
    for file in reference::files(env!("CARGO_MANIFEST_DIR")) {
        for Reference { place, model: name, id, a, b, c, scales, d, .. } in reference::dots(&file) {
            let model = models.entry(name.clone()).or_insert_with(|| load(&name).unwrap());
            let k = id.shape.sizes().2;
            let of = |format: Format, bits: &[u64]| Elements::from_bits(format, bits.iter().copied());
            let scales = id.block_scale().zip(scales.as_ref());
            let scales = scales.map(|(scale, (a, b))| (of(scale.format, a), of(scale.format, b)));
            let (a, b, c, d) = (of(id.a, &a), of(id.b, &b), of(id.c, &[c]), of(id.d, &[d]));
            let (scale_a, scale_b) = (scales.as_ref().map(|(a, _)| a), scales.as_ref().map(|(_, b)| b));
            let operands = GemmOperands { m: 1, n: 1, k, a: &a, b: &b, c: &c, scale_a, scale_b };
            for order in Order::ALL.into_iter().filter(|order| *order != Order::Any || id.c == id.d) {
                let tolerance = tolerances
                    .entry((name.clone(), id.clone(), order.name()))
                    .or_insert_with(|| Tolerance::new(model, &id, k, order).unwrap());
                let checked = tolerance.check(&operands, &d, 1).unwrap();
                assert!(checked.is_inside(), "{place}: {name} {id}, {order:?}: {:?}", checked.worst());
                judged += 1;
                unbounded += checked.unbounded;
            }
        }
    }
    assert!(judged > 1_000 && unbounded * 10 < judged, "{unbounded} of {judged} have no interval");
    eprintln!("{judged} judgements, {unbounded} without an interval");
}
