//! Every bad input gives one clear error that quotes the value, exit code 2, and no panic.

use super::{say, say_to};

#[track_caller]
fn refused(arguments: &[&str], words: &[&str]) {
    let said = say(arguments).ended(2);
    assert_eq!(said.out, "", "{arguments:?}");
    assert!(said.err.starts_with("error: "), "{arguments:?}: {}", said.err);
    for word in words {
        assert!(said.err.contains(word), "{arguments:?}: `{word}` is not in: {}", said.err);
    }
}

#[test]
fn an_unknown_backend_is_refused_with_those_there_are() {
    refused(&["--backend", "nope"], &["no backend `nope`", "sim", "help: "]);
    refused(&["list", "--backend", "nope"], &["`nope`"]);
    refused(&["run", "--device", "nope:0"], &["`nope`", "`nope:0`"]);
}

#[test]
fn an_unknown_device_is_refused_with_its_name() {
    refused(&["--device", "sim:nope"], &["`nope`", "v100", "help: "]);
    refused(&["list", "--device", "sim:"], &["`sim:`"]);
    refused(&["eval", "--device", "sim:nope", "--op", "x"], &["`nope`"]);
    refused(&["eval", "--device", "sim:all", "--op", "x"], &["one device"]);
    refused(&["run", "--backend", "sim", "--device", "cpu:0"], &["`cpu:0`"]);
}

#[test]
fn an_unknown_operation_is_refused_with_those_there_are() {
    refused(&["run", "--device", "sim:amx", "--op", "mma.*"], &["`mma.*`", "amx.m16n16k32.f32.bf16.bf16.f32"]);
    refused(&["eval", "--device", "sim:amx", "--op", "nope"], &["`nope`", "amx.m16n16k64.s32.u8.u8.s32", "TDPBUUD"]);
}

#[test]
fn an_unknown_format_in_an_operation_is_named() {
    let op = "amx.m16n16k32.f32.bf17.bf16.f32";
    refused(&["eval", "--device", "sim:amx", "--op", op], &[op, "`bf17` is not a format"]);
    refused(&["run", "--device", "sim:amx", "--op", op], &["`bf17` is not a format"]);
}

#[test]
fn an_operation_that_means_several_is_refused_with_all_of_them() {
    refused(
        &["eval", "--device", "sim:amx", "--op", "amx.*.s32"],
        &["4 operations", "TDPBSSD", "TDPBSUD", "TDPBUSD", "TDPBUUD"],
    );
}

#[test]
fn an_unknown_probe_is_refused_with_those_there_are() {
    refused(&["--device", "sim:amx", "--probe", "nope"], &["`nope`", "order.*"]);
    refused(&["explain", "nope"], &["`nope`"]);
}

#[test]
fn a_name_that_is_misspelt_is_refused_with_what_may_be_meant() {
    refused(&["--device", "sim:amx", "--probe", "order.tre"], &["no probe `order.tre`; did you mean `order.tree`?"]);
    refused(&["explain", "alingment.below"], &["no entry for `alingment.below`; did you mean `alignment.below`?"]);
    refused(
        &["explain", "fraction_bits"],
        &["did you mean `fraction bits`, `rounding.fraction_bits` or `alignment.fraction_bits`?"],
    );
    refused(&["explain", "wgma"], &["`wgmma`"]);
    refused(&["explain", "h10"], &["`h100`"]);
    refused(&["explain", "finginrprint"], &["did you mean `fingerprint`?"]);
    refused(&["explain", "fp8"], &["no entry for `fp8`; did you mean `e4m3`, `e5m2`, `e4m3fnuz` or `e5m2fnuz`?"]);
    refused(&["explain", "bfloat16"], &["did you mean `bf16`?"]);
    assert!(say(&["explain", "Subnormals"]).ended(0).out.contains("subnormals.a"));
}

#[test]
fn seconds_below_zero_are_refused_as_seconds() {
    for option in ["--timeout", "--budget"] {
        refused(&["--device", "sim:amx", option, "-1"], &["`-1` is not above 0 and at most 86400 seconds"]);
    }
}

#[test]
fn a_malformed_model_file_is_refused_with_file_line_and_field() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("wrong.toml");
    let text = std::fs::read_to_string(super::model_file("amx.toml")).unwrap();
    std::fs::write(&path, text.replacen("vendor =", "vendour =", 1)).unwrap();
    let device = format!("sim:{}", path.display());
    refused(&["run", "--device", &device], &["wrong.toml:", "vend"]);
    refused(&["explain", &device], &["wrong.toml:"]);
    std::fs::write(&path, "schema = [").unwrap();
    refused(&["eval", "--device", &device, "--op", "x"], &["wrong.toml:1"]);
    refused(&["run", "--device", "sim:no/such/file.toml"], &["`no/such/file.toml`"]);
}

#[test]
fn options_before_a_command_and_wrong_values_are_refused() {
    refused(&["--backend", "sim", "list"], &["after the command"]);
    refused(&["--timeout", "0"], &["0"]);
    refused(&["--timeout", "soon"], &["soon"]);
    refused(&["--format", "xml"], &["xml"]);
    refused(&["nope"], &["nope"]);
    refused(&["--device", "sim:amx", "--out", "no/such/directory/report.json"], &["no/such/directory"]);
    refused(&["--device", "sim:amx", "--format", "html", "--out", "page.html"], &["`page.html`", "--format html"]);
    refused(&["validate", "no/such/file.json"], &["no/such/file.json"]);
    refused(&["report", "no/such/file.json"], &["no/such/file.json"]);
}

/// Checks the error for a mistake on the third line of the input, after one dot and an empty line.
#[track_caller]
fn refused_line(line: &str, words: &[&str]) {
    let arguments = ["eval", "--device", "sim:amx", "--op", "TDPBF16PS"];
    let input = format!("{}\n\n{line}\n{}\n", r#"{"a":["0x3f80"],"b":["0x4000"],"c":"0x00000000"}"#, "{}");
    let said = say_to(&arguments, input.as_bytes()).ended(2);
    assert_eq!(said.out, "{\"d\":\"0x40000000\"}\n", "the answers before the mistake are printed");
    assert!(said.err.starts_with("error: line 3: "), "{}", said.err);
    for word in words {
        assert!(said.err.contains(word), "{line}: `{word}` is not in: {}", said.err);
    }
}

#[test]
fn a_malformed_line_is_refused_with_its_number_and_its_value() {
    refused_line("not json", &["not JSON", "not json"]);
    refused_line(r#"{"a":["0x3f80"],"b":["0x3f80"]}"#, &["missing field `c`"]);
    refused_line(r#"{"a":["0x3f80"],"b":["0x3f80"],"c":"0x00000000","e":1}"#, &["unknown field `e`"]);
    refused_line(r#"{"a":[true],"b":["0x3f80"],"c":"0x00000000"}"#, &["a[0]: `true` is neither a number nor a text"]);
    refused_line(r#"{"a":["0x3f80"],"b":["0x3f80"],"c":null}"#, &["null"]);
    refused_line(r#"{"a":["0x3f80"],"b":["0x3f80"],"c":"0x00000000"} {}"#, &["trailing"]);
    refused_line(r#"[]"#, &["[]"]);
}

#[test]
fn numbers_of_the_wrong_width_are_refused() {
    refused_line(r#"{"a":["0x3f8"],"b":["0x3f80"],"c":"0x00000000"}"#, &["a[0]", "`0x3f8`", "4 hex digits"]);
    refused_line(r#"{"a":["0x3f80"],"b":["0x3f80","0x03f80"],"c":"0x00000000"}"#, &["1 elements", "2"]);
    refused_line(r#"{"a":["0x3f80"],"b":["0x03f80"],"c":"0x00000000"}"#, &["b[0]", "`0x03f80`"]);
    refused_line(r#"{"a":["0x3f80"],"b":["0x3f80"],"c":"0x0000"}"#, &["c: ", "`0x0000`", "8 hex digits"]);
    refused_line(r#"{"a":["3f80"],"b":["0x3f80"],"c":"0x00000000"}"#, &["`3f80`"]);
    refused_line(r#"{"a":["0x3g80"],"b":["0x3f80"],"c":"0x00000000"}"#, &["`0x3g80`"]);
    refused_line(r#"{"a":["0x+f80"],"b":["0x3f80"],"c":"0x00000000"}"#, &["`0x+f80`"]);
}

#[test]
fn vectors_of_the_wrong_length_are_refused() {
    let ones = |count: usize| vec!["\"0x3f80\""; count].join(",");
    let line = |a: usize, b: usize| format!(r#"{{"a":[{}],"b":[{}],"c":"0x00000000"}}"#, ones(a), ones(b));
    refused_line(&line(33, 33), &["33", "k of amx.m16n16k32.f32.bf16.bf16.f32 is 32"]);
    refused_line(&line(2, 3), &["a has 2 elements and b has 3"]);
    refused_line(
        r#"{"a":["0x3f80"],"b":["0x3f80"],"c":"0x00000000","scale_a":["0x7f"],"scale_b":["0x7f"]}"#,
        &["takes neither scale_a"],
    );
}
