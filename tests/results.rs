//! This version reads and renders the reports in `results/`.

use std::{fs, path::Path, process::Command};

#[test]
fn every_report_in_results_is_valid_and_renders() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("results");
    let mut reports = 0;
    for entry in fs::read_dir(&directory).expect("results/ is part of the project") {
        let path = entry.expect("a readable entry").path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        for arguments in [["validate"], ["report"]] {
            let output =
                Command::new(env!("CARGO_BIN_EXE_mxprobe")).args(arguments).arg(&path).output().expect("it starts");
            assert!(output.status.success(), "{arguments:?} {path:?}: {}", String::from_utf8_lossy(&output.stderr));
        }
        let report: serde_json::Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        assert!(!is_emulated(&report), "{}: a double answered, and results/ is for devices", path.display());
        reports += 1;
    }
    assert!(reports > 0, "no reports in results/");
}

/// Whether any device of a report, or of an array of them, is a double.
fn is_emulated(report: &serde_json::Value) -> bool {
    match report.as_array() {
        Some(reports) => reports.iter().any(is_emulated),
        None => report["device"]["emulated"] == true,
    }
}

#[test]
fn the_published_schemas_are_those_that_the_command_prints() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("results/schema");
    let mut schemas = 0;
    for file in fs::read_dir(folder).expect("results/schema is a folder") {
        let path = file.expect("it is readable").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        let of = name.strip_suffix("-1.json").expect("a kind of document, and its major version");
        let output = Command::new(env!("CARGO_BIN_EXE_mxprobe")).args(["schema", of]).output().expect("it starts");
        let published = fs::read_to_string(&path).expect("the schema is readable");
        assert_eq!(published, String::from_utf8(output.stdout).expect("UTF-8"), "{name}");
        schemas += 1;
    }
    assert_eq!(schemas, 17);
}
