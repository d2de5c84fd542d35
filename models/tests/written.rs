//! Writing a model and reading it back gives the same model.
#![allow(missing_docs)]

use std::collections::BTreeMap;

use mxprobe_models::{Model, load, shipped};

fn read_again(model: &Model) -> Model {
    let text = model.to_toml();
    Model::parse("written.toml", &text, None).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn assert_same(model: &Model, again: &Model) {
    assert_eq!((&model.name, &model.title, &model.vendor), (&again.name, &again.title, &again.vendor));
    assert_eq!((&model.fingerprint, &model.aliases), (&again.fingerprint, &again.aliases));
    assert_eq!(model.sources, again.sources);
    assert_eq!(model.adders, again.adders, "{}", model.name);
    assert_eq!(model.operations, again.operations, "{}", model.name);
    assert_eq!(model.units.len(), again.units.len());
    for (unit, again) in model.units.iter().zip(&again.units) {
        assert_eq!(
            (&unit.name, &unit.tree, unit.flush, &unit.note),
            (&again.name, &again.tree, again.flush, &again.note)
        );
        assert_eq!(unit.operations, again.operations);
        assert_eq!(unit.provenance, again.provenance);
    }
}

#[test]
fn every_shipped_model_is_written_as_it_was_read() {
    for model in shipped() {
        assert_same(model, &read_again(model));
    }
}

#[test]
fn every_variant_is_written_as_a_model_of_its_own() {
    for model in shipped() {
        for variant in model.variants.keys() {
            let variant = load(&format!("{}@{variant}", model.name)).unwrap();
            assert_same(&variant, &read_again(&variant));
        }
    }
}

#[test]
fn texts_with_quotes_and_lines_come_back() {
    let mut model = load("fma-chain").unwrap();
    model.title = "a \"title\"\nof two lines \\ and a tab\t".to_owned();
    model.sources =
        BTreeMap::from([("odd key".to_owned(), "text".to_owned())]).into_iter().chain(model.sources.clone()).collect();
    assert_same(&model, &read_again(&model));
}
