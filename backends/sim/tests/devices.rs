//! The devices of the backend: every shipped model, by each of its names, and model files.
#![allow(missing_docs)]

use std::fs;

use mxprobe_api::{Backend, DeviceKind};
use mxprobe_models::shipped;
use mxprobe_sim::SimBackend;

#[test]
fn every_shipped_model_is_a_device_by_each_of_its_names() {
    let found = SimBackend.discover();
    assert!(found.refusals.is_empty());
    let selectors: Vec<&str> = found.devices.iter().map(|device| device.info().selector.as_str()).collect();
    assert_eq!(selectors, shipped().iter().map(|model| format!("sim:{}", model.name)).collect::<Vec<_>>());
    for device in &found.devices {
        assert_eq!(device.info().kind, DeviceKind::Model);
        for alias in &device.info().aliases {
            assert_eq!(SimBackend.open(alias).unwrap().info(), device.info(), "{alias}");
        }
    }
}

#[test]
fn a_model_file_is_a_device_by_its_path_and_a_variant_by_its_name() {
    let units = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/units");
    let text = fs::read_to_string(format!("{units}/a100.toml")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    fs::write(&path, text.replace("name = \"a100\"", "name = \"mine\"")).unwrap();
    let mine = SimBackend.open(path.to_str().unwrap()).unwrap();
    assert_eq!(mine.info().selector, "sim:mine");
    assert_eq!(mine.operations().len(), SimBackend.open("a100").unwrap().operations().len());
    let error = SimBackend.open("a100@nobody").map(|_| ()).unwrap_err();
    assert!(error.is_invalid() && error.to_string().contains("nobody"), "{error}");
}
