//! Model files: the shipped ones, their variants, and the errors for malformed ones.

mod common;

use std::collections::BTreeSet;

use common::{dot, times};
use mxprobe_models::{Basis, Model, load, shipped};

#[test]
fn every_shipped_file_and_variant_loads_by_every_name() {
    let mut names = BTreeSet::new();
    for model in shipped() {
        for name in model.aliases.iter().chain([&model.name]) {
            assert!(names.insert(name.clone()), "{name} names two models");
            assert_eq!(load(name).unwrap().name, model.name);
            assert_eq!(load(&name.to_uppercase()).unwrap().name, model.name);
        }
        for variant in model.variants.keys() {
            let name = format!("{}@{variant}", model.name);
            let loaded = load(&name).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(loaded.variant.as_deref(), Some(variant.as_str()));
            assert_eq!(loaded.operations, model.operations, "{name}");
        }
        for adder in &model.adders {
            let used = model.units.iter().any(|unit| {
                let plan = unit.plan(unit.operations[0].shape.k as usize).unwrap();
                plan.nodes.iter().any(|node| model.adders[node.adder].name == adder.name)
            });
            assert!(used, "{}: no unit uses the adder {}", model.name, adder.name);
        }
    }
    for name in ["v100", "t4", "a100", "l40s", "h100", "b200", "rtx5090", "mi100", "mi210", "mi300x", "rdna3", "rdna4"]
    {
        assert!(names.contains(name), "no model is called {name}");
    }
}

#[test]
fn sources_are_used_and_operations_are_not_lost() {
    for model in shipped() {
        let mut used: BTreeSet<&str> = model.variants.values().map(|variant| variant.source.as_str()).collect();
        let provenances = model.adders.iter().map(|adder| &adder.provenance);
        for provenance in provenances.chain(model.units.iter().map(|unit| &unit.provenance)) {
            used.insert(&provenance.origin.source);
            used.extend(provenance.exceptions.values().map(|origin| origin.source.as_str()));
        }
        for key in model.sources.keys() {
            let cited = used.contains(key.as_str());
            assert!(cited, "{}: nothing cites the source {key}", model.name);
        }
        let count: usize = model.units.iter().map(|unit| unit.operations.len()).sum();
        assert_eq!(count, model.operations.len(), "{}", model.name);
    }
}

/// For each variant of each file, a dot on which it differs from the file, and both answers.
#[test]
fn every_variant_differs_from_its_model_in_a_dot() {
    let f16 = "mma.m16n8k8.f16.f16.f16.f16";
    // 2^-25 is half the smallest f16: a bit far below tips it, unless the exponent of a zero pushes it off the grid.
    let tips = |tiny: &str| format!("0c00*0800 {tiny}");
    let rows = [
        ("v100", "zero-exponent-mmasim-2-0", "mma.m8n8k4.f16.f16.f16.f16", tips("0001*0020"), "0000", "0000", "0001"),
        ("v100", "zero-exponent-mmasim-1", "mma.m8n8k4.f16.f16.f16.f16", tips("0001*0020"), "0000", "0000", "0001"),
        ("t4", "zero-exponent-mmasim-2-0", f16, tips("0001*0008"), "0000", "0000", "0001"),
        ("t4", "zero-exponent-mmasim-1", f16, tips("0001*0008"), "0000", "0000", "0001"),
        ("a100", "zero-exponent-mmasim-2-0", f16, tips("0001*0008"), "0000", "0000", "0001"),
        ("a100", "zero-exponent-mmasim-1", f16, tips("0001*0008"), "0000", "0000", "0001"),
        ("l40s", "zero-exponent-mmasim-2-0", f16, tips("0001*0008"), "0000", "0000", "0001"),
        ("l40s", "zero-exponent-mmasim-1", f16, tips("0001*0008"), "0000", "0000", "0001"),
        ("h100", "zero-exponent-mmasim-2-0", f16, tips("0001*0002"), "0000", "0000", "0001"),
        ("h100", "zero-exponent-mmasim-1", f16, tips("0001*0002"), "0000", "0000", "0001"),
        ("b200", "zero-exponent-mmasim-2-0", f16, tips("0001*0002"), "0000", "0000", "0001"),
        ("b200", "zero-exponent-mmasim-1", f16, tips("0001*0002"), "0000", "0000", "0001"),
        ("rtx5090", "zero-exponent-mmasim-2-0", f16, tips("0001*0002"), "0000", "0000", "0001"),
        ("rtx5090", "zero-exponent-mmasim-1", f16, tips("0001*0002"), "0000", "0000", "0001"),
        // 1 − (1 − 2^-24).
        ("t4", "hmma884-24", "mma.m8n8k4.f32.f16.f16.f32", "3c00*3c00".into(), "bf7fffff", "34000000", "33800000"),
        // 1 − 3·2^-25 + 2^-32: above a tie, unless 2^-32 is floored away.
        (
            "mi300x",
            "second-level-31",
            "mfma.m16n16k16.f32.f16.f16.f32",
            "8e00*0c00 0100*0100".into(),
            "3f800000",
            "3f7fffff",
            "3f7ffffe",
        ),
        ("mi300x", "nan-all-ones", "mfma.m16n16k16.f32.f16.f16.f32", "7c00*0000".into(), "0", "7fc00000", "7fffffff"),
        // 2^16 − 2^-9 − 2^-9 on a grid of 2^-8: either each is floored, or their sum is.
        (
            "rdna4",
            "fp8-pairs",
            "wmma.m16n16k16.f32.e4m3.e4m3.f32.wave64",
            "78*78 00*00 81*38 81*38".into(),
            "0",
            "477ffffe",
            "477fffff",
        ),
    ];
    let mut covered = BTreeSet::new();
    for (name, variant, operation, products, c, base, other) in rows {
        let with = load(&format!("{name}@{variant}")).unwrap();
        assert_eq!(dot(&load(name).unwrap(), operation, &products, c), base, "{name} {products} + {c}");
        assert_eq!(dot(&with, operation, &products, c), other, "{name}@{variant} {products} + {c}");
        covered.insert((name.to_owned(), variant.to_owned()));
    }
    for model in shipped() {
        for variant in model.variants.keys() {
            let covered = covered.contains(&(model.name.clone(), variant.clone()));
            assert!(covered, "no dot tells {}@{variant} from {}", model.name, model.name);
        }
    }
}

#[test]
fn what_a_variant_sets_is_cited_from_its_source() {
    let model = load("mi300x@second-level-31").unwrap();
    let join = model.adders.iter().find(|adder| adder.name == "join").unwrap();
    let origin = join.provenance.of("fraction_bits");
    assert_eq!((origin.basis, origin.source.as_str()), (Basis::Assumed, "mmasim-1"));
    assert_eq!(join.provenance.of("below").source, "probe");
}

const GOOD: &str = include_str!("good.toml");

#[test]
fn a_malformed_file_gives_one_error_with_its_line_and_field() {
    Model::parse("good.toml", GOOD, None).unwrap();
    Model::parse("good.toml", GOOD, Some("other")).unwrap();
    let (mut from, mut to, mut asked, mut wrong) = (Vec::new(), Vec::new(), 0, Vec::new());
    for text in include_str!("malformed.txt").lines().filter(|text| !text.is_empty() && !text.starts_with('#')) {
        if let Some(line) = text.strip_prefix('-') {
            from.push(line);
            continue;
        } else if let Some(line) = text.strip_prefix('+') {
            to.push(line);
            continue;
        }
        let (line, what) = text.split_once(": ").expect("the line that is named, and what is said");
        let (from, to) = (std::mem::take(&mut from).join("\n"), std::mem::take(&mut to).join("\n"));
        assert!(!from.is_empty() && GOOD.contains(&from), "`{from}` is not in the good file");
        asked += 1;
        let text = GOOD.replacen(&from, &to, 1);
        match Model::parse("bad.toml", &text, None) {
            Ok(_) => wrong.push(format!("`{to}` for `{from}` is accepted")),
            Err(error) => {
                let error = error.to_string();
                let at = format!("bad.toml:{line}: ");
                if !error.starts_with(&at) || !error.contains(what) || error.contains('\n') {
                    wrong.push(format!("`{to}` for `{from}`: {error}\n    and not {at}… {what}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(asked > 58, "{asked}");
}

#[test]
fn the_documented_example_loads() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/model-format.md")).unwrap();
    let (_, rest) = page.split_once("```toml\n").unwrap();
    let (example, _) = rest.split_once("```").unwrap();
    let model = Model::parse("example.toml", example, Some("one-bit-fewer")).unwrap();
    assert_eq!((model.operations.len(), model.adders[0].grid[0].fraction_bits), (4, 23));
}

#[test]
fn a_malformed_variant_is_an_error_of_its_own_line() {
    let parse = |text: &str, variant: &str| Model::parse("bad.toml", text, Some(variant)).unwrap_err().to_string();
    assert!(parse(GOOD, "absent").contains("unknown variant `absent`; it has other"));
    for (set, line, what) in [
        ("[variant.other.set.adder.sum]\nfraction_bits = 999", 45, "adder.sum.fraction_bits: 999 is not between"),
        ("[variant.other.set.adder.sum]\nbits = 3", 45, "adder.sum.bits: unknown key"),
        ("[variant.other.set.adder.missing]\nfraction_bits = 3", 44, "adder.missing"),
        (
            "[variant.other.set.unit.missing]\ntree = \"sum(all, c)\"",
            44,
            "variant.other.set.unit.missing: no element has this name",
        ),
        ("[variant.other.set.unit.half]\ntree = \"int(all, c)\"", 37, "the tree gives s32"),
    ] {
        let text = GOOD.replace("[variant.other.set.adder.sum]\nfraction_bits = 23", set);
        Model::parse("bad.toml", &text, None).unwrap();
        let error = parse(&text, "other");
        assert!(error.starts_with(&format!("bad.toml:{line}: ")) && error.contains(what), "{set}: {error}");
    }
}

#[test]
fn a_file_without_a_unit_and_a_name_without_a_model_are_errors() {
    let text = &GOOD[..GOOD.find("[[unit]]").unwrap()];
    let error = Model::parse("bad.toml", text, None).unwrap_err().to_string();
    assert_eq!(error, "bad.toml:1: `[[unit]]` is missing");
    assert!(load("z100").unwrap_err().to_string().contains("unknown model `z100`; the models are a100, "));
    assert!(load("./absent.toml").unwrap_err().to_string().contains("cannot read the model file `./absent.toml`"));
    assert!(load("h100@absent").unwrap_err().to_string().contains("unknown variant `absent`"));
}

#[test]
fn scaled_groups_stay_within_their_blocks() {
    let text = GOOD
        .replace("tree = \"fold(c, all/8, sum(all, acc))\"", "tree = \"sum(scaled(0..16), scaled(16..32), c)\"")
        .replace("mma.m16n8k{8,16}.f32.f16.f16.f32", "mma.m16n8k32.f32.e2m1.e2m1.f32.block16.ue8m0");
    let model = Model::parse("good.toml", &text, None).unwrap();
    let one = common::scaled_dot(
        &model,
        "mma.m16n8k32.f32.e2m1.e2m1.f32.block16.ue8m0",
        &times(32, "2*2"),
        "0",
        "7f 80",
        "7f 7f",
    );
    assert_eq!(one, "42400000");
    let error = Model::parse("bad.toml", &text.replace("scaled(0..16)", "scaled(0..17)"), None).unwrap_err();
    assert!(error.to_string().contains("sums products of several scale blocks"), "{error}");
}
