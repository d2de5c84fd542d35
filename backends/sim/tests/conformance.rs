//! The conformance suite on models, with one operation of each unit.
#![allow(missing_docs)]

use mxprobe_conformance::{check_backend, check_device};
use mxprobe_models::shipped;
use mxprobe_sim::{ModelDevice, SimBackend};

#[test]
fn an_operation_of_each_unit_holds_what_is_asked_of_every_device() {
    assert_eq!(check_backend(&SimBackend), []);
    for model in shipped() {
        let smallest = |unit: &mxprobe_models::Unit| {
            unit.operations.iter().min_by_key(|id| u64::from(id.shape.m * id.shape.n * id.shape.k)).cloned()
        };
        let chosen: Vec<_> = model.units.iter().filter_map(smallest).collect();
        assert!(!chosen.is_empty(), "{}", model.name);
        let device = ModelDevice::new(model.clone());
        assert_eq!(check_device(&device, |operation| chosen.contains(&operation.id)), [], "{}", model.name);
    }
}
