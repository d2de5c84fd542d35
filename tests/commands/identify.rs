//! `identify`, `verify` and `run --expect`: their output, their files and their exit codes.

use super::{model_file, say};

const OPERATION: &str = "mma.m16n8k16.f32.f16.f16.f32";

#[track_caller]
fn refused(arguments: &[&str], words: &[&str]) {
    let said = say(arguments).ended(2);
    assert_eq!(said.out, "", "{arguments:?}");
    for word in words {
        assert!(said.err.contains(word), "{arguments:?}: `{word}` is not in: {}", said.err);
    }
}

#[test]
fn an_identified_model_is_a_file_that_verifies() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mine.toml");
    let path = path.to_str().unwrap();
    let said = say(&["identify", "--device", "sim:a100", "--op", OPERATION, "--out", path]).ended(0);
    for words in ["fold(c, all/8, ", "keeps 24 bits", "rounds after the tree", "gives the same bits as a100"] {
        assert!(said.out.contains(words), "`{words}` is not in: {}", said.out);
    }
    assert!(!said.out.contains("the probes differ"), "{}", said.out);
    let verify = ["verify", "--op", OPERATION, "--model", path, "--count", "200000", "--device"];
    let right = say(&[&verify[..], &["sim:a100"]].concat()).ended(0);
    assert!(right.out.contains("no mismatch"), "{}", right.out);
    let wrong = say(&[&verify[..], &["sim:h100"]].concat()).ended(1);
    assert!(wrong.out.contains("dots differ") && wrong.out.contains("the model: 0x"), "{}", wrong.out);
}

#[test]
fn json_says_what_was_found_to_programs() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mine.toml");
    let path = path.to_str().unwrap();
    let arguments = ["identify", "--device", "sim:v100", "--op", "mma.m8n8k4.f32.f16.f16.f32", "--out", path];
    let said = say(&[&arguments[..], &["--format", "json"]].concat()).ended(0);
    let found: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let schema: serde_json::Value = serde_json::from_str(&say(&["schema", "identification"]).ended(0).out).unwrap();
    assert!(jsonschema::is_valid(&schema, &found), "{}", said.out);
    assert_eq!(found["operations"][0]["outcome"], "identified");
    let arguments = ["verify", "--device", "sim:v100", "--model", path, "--count", "1000", "--format", "json"];
    let said = say(&arguments).ended(0);
    let found: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let schema: serde_json::Value = serde_json::from_str(&say(&["schema", "verification"]).ended(0).out).unwrap();
    assert!(jsonschema::is_valid(&schema, &found), "{}", said.out);
    assert_eq!(found["operations"][0]["mismatches"], 0);
}

#[test]
fn a_run_is_compared_with_the_model_that_is_expected() {
    let run = ["run", "--device", "sim:a100", "--op", OPERATION, "--probe", "carry", "--format", "json", "--expect"];
    let right = say(&[&run[..], &["a100"]].concat()).ended(0);
    assert!(right.out.contains("\"expected\""), "{}", right.out);
    let wrong = say(&[&run[..], &["h100"]].concat()).ended(1);
    assert!(wrong.out.contains("other bits than the model h100"), "{}", wrong.out);
}

#[test]
fn what_cannot_be_done_is_refused_before_the_work() {
    let nowhere = "/no/such/directory/model.toml";
    refused(&["identify", "--device", "sim:a100", "--out", nowhere], &[nowhere, "cannot be written"]);
    refused(&["identify", "--device", "sim:a100", "--out", "/"], &["`/`", "directory"]);
    refused(&["identify", "--device", "sim:nope", "--out", "x.toml"], &["`nope`"]);
    refused(&["identify", "--device", "sim:a100", "--op", "nope", "--out", "x.toml"], &["`nope`"]);
    refused(&["verify", "--device", "sim:a100", "--model", "nope"], &["`nope`", "a100"]);
    refused(&["verify", "--device", "sim:a100", "--model", "amx"], &["`amx`", "has no operation"]);
    refused(&["verify", "--device", "sim:a100", "--model", "v100", "--op", OPERATION], &["`v100`", OPERATION]);
    refused(
        &["verify", "--device", "sim:mi300x", "--op", "mfma.m16n16k16.f32.f16.f16.f32", "--model", "h100"],
        &["of the same formats and k it has mma.m16n8k16.f32.f16.f16.f32", "`mxprobe compare sim:mi300x h100`"],
    );
    refused(&["verify", "--device", "sim:a100", "--model", "a100", "--count", "0"], &["0"]);
    refused(&["run", "--device", "sim:a100", "--expect", "nope"], &["`nope`"]);
    refused(
        &["run", "--device", "sim:a100", "--op", OPERATION, "--expect", "amx"],
        &["`amx`", "none of the operations"],
    );
}

#[test]
fn a_model_file_is_verified_as_well_as_a_name() {
    let file = model_file("avx512.toml");
    let arguments = ["verify", "--device", "sim:avx512", "--model", &file, "--count", "5000"];
    let said = say(&arguments).ended(0);
    assert_eq!(said.out.lines().filter(|line| line.contains("no mismatch")).count(), 5, "{}", said.out);
}
