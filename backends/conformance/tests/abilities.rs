//! The list of a device's abilities is complete, and wrong devices forward all that their fault does not affect.
#![allow(missing_docs)]

use std::{fs, path::Path};

use mxprobe_conformance::{ABILITIES, FAULTS, Right, able, dropped, wrong};

/// The methods of a trait, read from the file that declares it.
fn methods(file: &str, name: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../api/src").join(file);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (_, body) = text.split_once(&format!("pub trait {name}: Send + Sync {{\n")).expect("the trait");
    let (body, _) = body.split_once("\n}\n").expect("the trait's end");
    let lines = body.lines().filter_map(|line| line.strip_prefix("    fn "));
    lines.map(|line| line.split_once('(').expect("a method").0.to_owned()).collect()
}

/// The methods of a device that return an ability object.
const ABILITY_OBJECTS: [&str; 5] = ["matrices", "scalars", "timing", "screening", "code"];

#[test]
fn a_new_ability_of_a_device_is_in_the_list_that_wrappers_are_held_against() {
    let mut declared = methods("device.rs", "Device");
    // Methods that return an object are represented by the methods of that object.
    let given: Vec<String> = declared.iter().filter(|name| ABILITY_OBJECTS.contains(&name.as_str())).cloned().collect();
    assert_eq!(given, ABILITY_OBJECTS);
    declared.retain(|name| !given.contains(name));
    let objects = [
        ("matrices", "Matrices"),
        ("scalar", "Scalars"),
        ("flags", "StatusFlags"),
        ("timing", "Timing"),
        ("screening", "Screening"),
        ("issued", "Code"),
    ];
    for (file, name) in objects {
        declared.extend(methods(&format!("{file}.rs"), name).into_iter().map(|method| format!("{name}::{method}")));
    }
    // Scalars also returns an object.
    assert!(declared.iter().any(|name| name == "Scalars::flags"));
    declared.retain(|name| name != "Scalars::flags");
    assert!(declared.len() > 10, "{declared:?}");
    let listed: Vec<&str> = ABILITIES.iter().map(|ability| ability.name).collect();
    assert_eq!(declared, listed);
    assert!(dropped(able().as_ref()).is_empty());
}

#[test]
fn wrong_devices_hand_on_every_ability_but_those_that_would_give_right_results() {
    for fault in FAULTS {
        // Arithmetic faults need a model.
        let Ok(device) = wrong(fault.name, Right::Device(able())) else { continue };
        if fault.never_returns() || fault.name == "panic" {
            continue;
        }
        let mut dropped = dropped(device.as_ref());
        // Their own results are wrong or missing; whole matrices go through `execute` tile by tile.
        dropped.retain(|name| *name != "execute");
        dropped.retain(|name| !name.starts_with("Matrices::") && !name.starts_with("Screening::"));
        let is_asked_tile_by_tile = device.matrices().is_none() && device.screening().is_none();
        assert!(dropped.is_empty() && is_asked_tile_by_tile, "{}: {dropped:?}", fault.name);
    }
}
