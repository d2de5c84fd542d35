//! Reference dots, most of them measured on hardware, which every model must reproduce bit for bit.
//!
//! The dots are not part of the project. They are read from the directory `MXPROBE_VECTORS`, or else from one next to
//! the project; without them the test is ignored with that reason, and the tables of `known_answers.txt` remain.
#![expect(clippy::print_stdout, reason = "what ran is part of the result")]

mod reference;

use std::collections::BTreeMap;

use mxprobe_api::Decoded;
use mxprobe_models::{Dot, Model, evaluate, load};

use reference::Reference;

#[test]
#[cfg_attr(not(vectors), ignore = "MXPROBE_VECTORS does not name the directory of the reference dots")]
fn every_reference_dot_is_reproduced_bit_for_bit() {
    let mut models: BTreeMap<String, Model> = BTreeMap::new();
    let mut wrong = Vec::new();
    for file in reference::files(concat!(env!("CARGO_MANIFEST_DIR"), "/..")) {
        let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        for Reference { place, model: name, id, a, b, c, scales, d: expected, any_nan } in reference::dots(&file) {
            let model =
                models.entry(name.clone()).or_insert_with(|| load(&name).unwrap_or_else(|error| panic!("{error}")));
            let (unit, plan) = model.plan(&id).unwrap_or_else(|| panic!("{} has no {id}", model.name));
            let scales = scales.as_ref().map(|(a, b)| (&a[..], &b[..]));
            let d = evaluate(&model.adders, unit, &plan, &id, Dot { a: &a, b: &b, c, scales });
            let is_nan = |bits| matches!(id.d.decode(bits), Decoded::Nan { .. });
            let right = d == expected || (any_nan && is_nan(d) && is_nan(expected));
            let count = counts.entry(format!("{name} {id}")).or_default();
            count.0 += 1;
            if !right {
                count.1 += 1;
                wrong.push(format!("{place}: {name} {id}: {} and not {}", id.d.hex(d), id.d.hex(expected)));
            }
        }
        let (dots, failed) = counts.values().fold((0, 0), |sum, count| (sum.0 + count.0, sum.1 + count.1));
        println!("{}: {dots} dots, {failed} wrong", file.file_name().unwrap().to_string_lossy());
        for (unit, (dots, failed)) in counts {
            println!("  {unit}: {dots} dots, {failed} wrong");
        }
    }
    assert!(wrong.is_empty(), "{} dots are wrong:\n{}", wrong.len(), wrong.join("\n"));
}
