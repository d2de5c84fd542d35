//! `screen` locates planted faults and finds none on clean devices. `fleet` finds the machines that deviate.
#![allow(missing_docs, clippy::print_stderr)]

use std::{
    fs,
    path::Path,
    process::{Command, Output, Stdio},
};

use serde_json::{Value, json};

const BF16: &str = "dot.m1n1k2.f32.bf16.bf16.f32";
const F16: &str = "mma.m16n8k16.f32.f16.f16.f32";

fn mxprobe(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mxprobe"));
    command.args(arguments).stdin(Stdio::null());
    for name in ["MXPROBE_DEVICE", "MXPROBE_EXE", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    command.output().expect("it starts")
}

/// The exit code and standard output of a command.
fn said(arguments: &[&str]) -> (Option<i32>, String) {
    let output = mxprobe(arguments);
    if !output.stderr.is_empty() {
        eprintln!("{}", String::from_utf8_lossy(&output.stderr));
    }
    (output.status.code(), String::from_utf8(output.stdout).expect("UTF-8"))
}

/// The exit code and the report of a screen of one operation, without a cache.
fn screened(device: &str, operation: &str, more: &[&str]) -> (Option<i32>, Value) {
    let whole = ["screen", "--device", device, "--op", operation, "--no-cache", "--format", "json", "-q"];
    let (code, text) = said(&[&whole, more].concat());
    (code, serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}")))
}

/// The record of wrong bits of the only operation.
fn wrong(report: &Value) -> &Value {
    assert_eq!(report["verdict"], "wrong", "{report}");
    &report["operations"][0]["wrong"]
}

fn place(wrong: &Value) -> Vec<&str> {
    wrong["place"].as_array().expect("a list").iter().filter_map(Value::as_str).collect()
}

/// The only place in a tally.
fn only(tally: &Value) -> &Value {
    assert_eq!(tally.as_array().map(Vec::len), Some(1), "{tally}");
    &tally[0]["at"]
}

#[test]
#[cfg_attr(not(avx512_bf16), ignore = "this CPU has no AVX512-BF16")]
fn a_clean_cpu_is_healthy_on_each_of_its_cores() {
    let (code, report) = screened("cpu:0", BF16, &["--budget", "2s"]);
    assert_eq!((code, &report["verdict"]), (Some(0), &json!("healthy")), "{report}");
    let operation = &report["operations"][0];
    assert_eq!(operation["model"], "avx512");
    assert_eq!(operation.get("wrong"), None);
    let units = operation["units"].as_array().expect("units");
    assert!(!units.is_empty() && units.iter().all(|unit| unit["dots"].as_u64() >= Some(131_072)), "{units:?}");
}

#[test]
#[cfg_attr(not(avx512_bf16), ignore = "this CPU has no AVX512-BF16")]
fn one_bit_of_one_lane_is_named() {
    let (code, report) = screened("cpu:0", BF16, &["--budget", "1s", "--error-inject", "bit=3,lane=5"]);
    let wrong = wrong(&report);
    assert_eq!(code, Some(1));
    assert_eq!((only(&wrong["lanes"]), only(&wrong["bits"])), (&json!(5), &json!(3)), "{wrong}");
    assert_eq!(place(wrong), ["lane 5", "bit 3", "about one result in 16"]);
    assert_eq!((&wrong["again"]["wrong"], &wrong["again"]["same_bits"]), (&wrong["again"]["blocks"], &json!(true)));
    let word = &wrong["first"][0];
    let bits = |name: &str| {
        let text = word[name].as_str().expect("hex");
        u32::from_str_radix(text.trim_start_matches("0x"), 16).expect("hex")
    };
    assert_eq!((bits("expected") ^ bits("got"), bits("mask")), (8, 8), "{word}");
}

#[test]
#[cfg_attr(not(avx512_bf16), ignore = "this CPU has no AVX512-BF16")]
fn one_core_is_named() {
    let (_, clean) = screened("cpu:0", BF16, &["--budget", "100ms"]);
    let units = clean["operations"][0]["units"].as_array().expect("units").clone();
    let core = units.last().expect("a core")["unit"].as_u64().expect("a number");
    let fault = format!("bit=31,core={core}");
    let (_, report) = screened("cpu:0", BF16, &["--budget", "1s", "--error-inject", &fault]);
    let wrong = wrong(&report);
    assert_eq!((only(&wrong["units"]), only(&wrong["bits"])), (&json!(core), &json!(31)), "{wrong}");
    assert_eq!(place(wrong).contains(&&*format!("core {core}")), units.len() > 1, "{wrong}");
    for unit in report["operations"][0]["units"].as_array().expect("units") {
        assert_eq!(unit["wrong_blocks"] != 0, unit["unit"] == core, "{unit}");
    }
}

#[test]
#[cfg_attr(not(avx512_bf16), ignore = "this CPU has no AVX512-BF16")]
fn one_exponent_is_named() {
    let (_, report) = screened("cpu:0", BF16, &["--budget", "1s", "--error-inject", "bit=0,exponent=140"]);
    let wrong = wrong(&report);
    assert_eq!((only(&wrong["exponents"]), only(&wrong["bits"])), (&json!(140), &json!(0)), "{wrong}");
    assert!(place(wrong).contains(&"exponent 140") && place(wrong).contains(&"bit 0"), "{wrong}");
    assert!(wrong["lanes"].as_array().expect("lanes").len() > 1, "{wrong}");
}

#[test]
#[cfg_attr(not(avx512_bf16), ignore = "this CPU has no AVX512-BF16")]
fn one_result_in_a_million_is_found_and_does_not_repeat() {
    let (code, report) = screened("cpu:0", BF16, &["--budget", "3s", "--error-inject", "bit=22,every=1000000"]);
    let wrong = wrong(&report);
    assert_eq!((code, only(&wrong["bits"])), (Some(1), &json!(22)), "{wrong}");
    // Each kept block has one wrong word.
    assert_eq!(wrong["words"].as_u64().map(|words| words * 4096), wrong["looked_at"].as_u64(), "{wrong}");
    let often = place(wrong).iter().find_map(|words| words.strip_prefix("about one result in ")?.parse::<f64>().ok());
    assert!(often.is_some_and(|often| (0.5e6..2e6).contains(&often)), "{wrong}");
    // 16 blocks have fewer than a million results.
    assert_eq!(wrong["again"]["wrong"], 0, "{wrong}");
}

#[test]
fn a_fault_of_a_model_is_named_by_tile_and_lane() {
    let (code, clean) = screened("sim:h100", F16, &["--budget", "300ms"]);
    assert_eq!((code, &clean["verdict"]), (Some(0), &json!("healthy")), "{clean}");
    let fault = ["--budget", "300ms", "--error-inject", "bit=13,lane=77"];
    let (code, report) = screened("sim:h100", F16, &fault);
    let wrong = wrong(&report);
    assert_eq!((code, only(&wrong["lanes"]), only(&wrong["bits"])), (Some(1), &json!(77), &json!(13)), "{wrong}");
    let word = &wrong["first"][0];
    // Element 77 of 16×8.
    assert_eq!((&word["row"], &word["column"]), (&json!(9), &json!(5)), "{word}");
    assert_eq!(wrong["tiles"].as_array().map(Vec::len), Some(32), "{wrong}");
}

#[test]
fn another_model_than_the_devices_is_wrong_bits() {
    let (code, report) = screened("sim:a100", F16, &["--budget", "300ms", "--model", "h100"]);
    assert_eq!((code, &report["verdict"]), (Some(1), &json!("wrong")), "{report}");
}

#[test]
#[cfg(feature = "fault-devices")]
fn wrong_devices_are_wrong_and_those_that_fail_are_not_judged() {
    for fault in ["all-zeros", "one-lane-wrong", "last-tile-missing", "off-by-one-tile", "stale-output", "b-transposed"]
    {
        let more = ["--budget", "300ms", "--model", "h100"];
        let (code, report) = screened(&format!("fault:{fault}"), F16, &more);
        assert_eq!((code, &report["verdict"]), (Some(1), &json!("wrong")), "{fault}: {report}");
    }
    for fault in ["crash", "exit-0", "exit-1", "lost", "short-output", "panic"] {
        let (code, report) = screened(&format!("fault:{fault}"), F16, &["--budget", "300ms", "--model", "h100"]);
        assert_eq!((code, &report["verdict"]), (Some(2), &json!("unknown")), "{fault}: {report}");
        assert!(report["operations"][0]["failed"].is_string(), "{fault}: {report}");
    }
    let hang = ["--budget", "300ms", "--model", "h100", "--timeout", "1"];
    let (code, report) = screened("fault:hang", F16, &hang);
    assert_eq!((code, &report["verdict"]), (Some(2), &json!("unknown")), "{report}");
}

#[test]
fn what_has_no_model_or_is_not_there_is_not_judged() {
    let (code, report) = screened("sim:h100", F16, &["--model", "avx512"]);
    assert_eq!((code, &report["verdict"]), (Some(2), &json!("unknown")), "{report}");
    for arguments in [
        &["screen", "--device", "sim:nothing"][..],
        &["screen", "--device", "sim:h100", "--op", "nothing"],
        &["screen", "--device", "sim:h100", "--budget", "-1s"],
        &["screen", "--device", "sim:h100", "--op", F16, "--error-inject", "lane=3"],
        &["fleet", "/nowhere"],
    ] {
        assert_eq!(said(arguments).0, Some(2), "{arguments:?}");
    }
    // f32 has no bit 32.
    let (code, report) = screened("sim:h100", F16, &["--error-inject", "bit=32"]);
    assert_eq!(code, Some(2));
    assert!(report["operations"][0]["failed"].as_str().expect("a reason").contains("bit 32"), "{report}");
}

#[test]
fn monitors_read_a_line_or_metrics_and_schedulers_a_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log.jsonl");
    let log = log.to_str().expect("UTF-8");
    let base = ["screen", "--device", "sim:h100", "--op", F16, "--no-cache", "--budget", "200ms", "-q", "--log", log];
    let (code, line) = said(&[&base[..], &["--format", "npd"]].concat());
    assert_eq!((code, line.lines().count()), (Some(0), 1), "{line}");
    assert!(line.starts_with("sim:h100 healthy: "), "{line}");
    let (code, line) = said(&[&base[..], &["--format", "npd", "--error-inject", "bit=3,lane=5"]].concat());
    assert_eq!((code, line.lines().count()), (Some(1), 1), "{line}");
    assert!(line.starts_with(&format!("sim:h100 wrong {F16}: lane 5, bit 3")), "{line}");
    let (code, text) = said(&[&base[..], &["--format", "prometheus", "--node", "n\"1"]].concat());
    assert_eq!(code, Some(0));
    assert!(text.contains("\nmxprobe_screen_verdict{device=\"sim:h100\",name=\""), "{text}");
    assert!(text.contains(",node=\"n\\\"1\"} 0\n"), "{text}");
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').expect("a name and a value");
        assert!(name.starts_with("mxprobe_screen_") && value.parse::<f64>().is_ok(), "{line}");
    }
    let lines: Vec<Value> =
        fs::read_to_string(log).expect("a log").lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let verdicts: Vec<&str> = lines.iter().filter_map(|line| line["verdict"].as_str()).collect();
    assert_eq!(verdicts, ["healthy", "wrong", "healthy"]);
    assert_eq!(lines[1]["wrong"][0]["place"][0], "lane 5");
    assert_eq!((lines[0].get("node"), &lines[2]["node"]), (None, &json!("n\"1")));
}

#[test]
#[cfg(target_os = "linux")]
fn no_machine_is_named_unless_that_is_asked_for_and_others_cannot_write_what_is_written() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (out, log, cache) = (at("out.json"), at("log.jsonl"), at("cache"));
    let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("a name").trim().to_owned();
    let user = std::env::var("USER").unwrap_or_default();
    let base = ["screen", "--device", "sim:h100", "--op", F16, "--budget", "100ms", "-q"];
    let files = ["--out", &out, "--log", &log, "--cache", &cache];
    let (code, shown) = said(&[&base[..], &files].concat());
    assert_eq!(code, Some(0));
    let all = [shown, fs::read_to_string(&out).expect("a file"), fs::read_to_string(&log).expect("a file")].concat();
    for secret in [host.as_str(), user.as_str(), folder.path().to_str().expect("UTF-8")] {
        // A short name such as `vm` may be part of any word.
        assert!(secret.len() < 4 || !all.contains(secret), "{secret}: {all}");
    }
    for path in [&out, &log] {
        let mode = fs::metadata(path).expect("a file").permissions().mode();
        assert_eq!(mode & 0o022, 0, "{path}: {mode:o}");
    }
    assert_eq!(fs::metadata(&cache).expect("a folder").permissions().mode() & 0o077, 0);
    assert_eq!(fs::read_dir(&cache).expect("a folder").count(), 1);
    let (_, named) = said(&[&base[..], &["--host", "--format", "json", "--no-cache"]].concat());
    assert_eq!(serde_json::from_str::<Value>(&named).expect("JSON")["node"], host);
    let (_, named) = said(&[&base[..], &["--node", "rack-7", "--format", "json", "--no-cache"]].concat());
    let named: Value = serde_json::from_str(&named).expect("JSON");
    assert_eq!(named["node"], "rack-7");
    assert!(!named["tool"].to_string().contains("rack-7"), "{named}");
}

/// Writes a report with a change.
fn report(folder: &Path, node: &str, change: impl FnOnce(&mut Value)) {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("results/cpu-amd-zen4-avx512.json"));
    let mut report: Value = serde_json::from_str(&text.expect("a report")).expect("JSON");
    change(&mut report);
    fs::create_dir_all(folder.join(node)).expect("a folder");
    fs::write(folder.join(node).join("cpu-0.json"), report.to_string()).expect("it can be written");
}

/// The value of a finding of the first operation that has it.
fn finding<'a>(report: &'a mut Value, probe: &str) -> &'a mut Value {
    let operations = report["operations"].as_array_mut().expect("operations");
    let findings = operations.iter_mut().flat_map(|operation| operation["findings"].as_array_mut().expect("findings"));
    findings.into_iter().find(|finding| finding["probe"] == probe).expect(probe)
}

fn merged(arguments: &[&str]) -> (Option<i32>, Value) {
    let (code, text) = said(&[&["fleet", "--format", "json"], arguments].concat());
    (code, serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}")))
}

#[test]
fn a_fleet_names_the_machine_that_deviates_and_in_what() {
    let folder = tempfile::tempdir().expect("a folder");
    for node in ["n1", "n2", "n3", "n5"] {
        // Times, evidence and the order of keys are not properties of the arithmetic, and do not count.
        report(folder.path(), node, |report| {
            report["time"]["duration_ns"] = json!(node.len());
            finding(report, "independence")["evidence"] = json!([]);
        });
    }
    report(folder.path(), "n4", |report| finding(report, "independence")["value"] = json!(false));
    fs::write(folder.path().join("notes.json"), "{}").expect("it can be written");
    let path = folder.path().to_str().expect("UTF-8");
    let (code, fleet) = merged(&[path]);
    assert_eq!((code, &fleet["nodes"], &fleet["reports"]), (Some(1), &json!(5), &json!(5)), "{fleet}");
    let classes = fleet["kinds"][0]["classes"].as_array().expect("classes");
    assert_eq!(
        (classes.len(), &classes[0]["devices"], &classes[1]["nodes"]),
        (2, &json!(4), &json!(["n4"])),
        "{fleet}"
    );
    let differs = &classes[1]["differs"];
    assert_eq!(
        (differs.as_array().map(Vec::len), &differs[0]["probe"]),
        (Some(1), &json!("independence")),
        "{differs}"
    );
    assert_eq!((&differs[0]["usual"], &differs[0]["here"]), (&json!("true"), &json!("false")));
    assert_eq!(fleet["skipped"].as_array().map(Vec::len), Some(1), "{fleet}");
    let (_, table) = said(&["fleet", path]);
    assert!(table.contains("independence") && table.contains("n4"), "{table}");
    let (_, page) = said(&["fleet", path, "--format", "html"]);
    assert!(page.contains("<html") && page.contains("n4"), "{page}");
}

#[test]
fn of_classes_of_one_size_the_one_with_the_most_answers_is_the_usual_one() {
    let folder = tempfile::tempdir().expect("a folder");
    report(folder.path(), "whole", |_| ());
    for left in 1..8 {
        // Digests order classes of one size: several small ones, so that one of them comes before the whole report's.
        report(folder.path(), &format!("part{left}"), |report| {
            let findings = report["operations"][0]["findings"].as_array_mut().expect("findings");
            findings.truncate(left);
        });
    }
    let (_, fleet) = merged(&[folder.path().to_str().expect("UTF-8")]);
    let classes = fleet["kinds"][0]["classes"].as_array().expect("classes");
    assert_eq!((classes.len(), &classes[0]["nodes"]), (8, &json!(["whole"])), "{fleet}");
}

#[test]
fn a_fleet_says_what_changed_since_an_earlier_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let (reports, saved) = (folder.path().join("reports"), folder.path().join("fleet.json"));
    let (path, saved) = (reports.to_str().expect("UTF-8"), saved.to_str().expect("UTF-8"));
    let driver = |version: &'static str| {
        move |report: &mut Value| {
            report["device"]["driver"] = json!({"name": "d", "version": version, "api_version": ""});
        }
    };
    for node in ["n1", "n2", "n3"] {
        report(&reports, node, driver("1"));
    }
    assert_eq!(merged(&[path, "--out", saved]).0, Some(0));
    report(&reports, "n2", |report| {
        driver("2")(report);
        finding(report, "determinism")["value"] = json!(false);
    });
    fs::remove_dir_all(reports.join("n3")).expect("it is there");
    report(&reports, "n4", driver("1"));
    let (code, fleet) = merged(&[path, "--since", saved]);
    let since = &fleet["since"];
    assert_eq!((code, &since["new"], &since["gone"]), (Some(1), &json!(["n4 cpu:0"]), &json!(["n3 cpu:0"])), "{since}");
    let changed: Vec<_> =
        since["changed"].as_array().expect("changes").iter().map(|of| (&of["node"], &of["what"])).collect();
    assert_eq!(changed, [(&json!("n2"), &json!("behaviour")), (&json!("n2"), &json!("driver"))], "{since}");
}

#[test]
fn a_fleet_reads_screens_and_logs_and_the_last_one_counts() {
    let folder = tempfile::tempdir().expect("a folder");
    let line = |node: &str, time: &str, verdict: &str, injected: bool| {
        let mut line = json!({
            "schema": "mxprobe-screen-line/1", "time": time, "node": node, "backend": "cpu", "selector": "cpu:0",
            "device": "a CPU", "fingerprint": "x", "driver": null, "verdict": verdict,
            "wrong": if verdict == "wrong" { json!([{"operation": BF16, "place": ["core 3", "bit 7"]}]) } else { json!([]) },
        });
        if injected {
            line["injected"] = json!({"bit": 7});
        }
        line.to_string() + "\n"
    };
    let lines = [
        line("a", "2026-11-02T00:00:00Z", "healthy", false),
        line("a", "2026-11-01T00:00:00Z", "wrong", false),
        line("b", "2026-11-01T00:00:00Z", "healthy", false),
        line("b", "2026-11-02T00:00:00Z", "wrong", false),
        line("c", "2026-11-02T00:00:00Z", "wrong", true),
    ];
    fs::write(folder.path().join("log.jsonl"), lines.concat()).expect("it can be written");
    let out = folder.path().join("h100.json");
    let screen = ["screen", "--device", "sim:h100", "--op", F16, "--no-cache", "--budget", "100ms", "-q", "--out"];
    assert_eq!(said(&[&screen[..], &[out.to_str().expect("UTF-8")]].concat()).0, Some(0));
    let (code, fleet) = merged(&[folder.path().to_str().expect("UTF-8")]);
    assert_eq!((code, &fleet["screens"], &fleet["nodes"]), (Some(1), &json!(5), &json!(3)), "{fleet}");
    let unhealthy = fleet["unhealthy"].as_array().expect("a list");
    assert_eq!(unhealthy.len(), 1, "{fleet}");
    assert_eq!(
        (&unhealthy[0]["node"], &unhealthy[0]["what"]),
        (&json!("b"), &json!([format!("{BF16}: core 3, bit 7")]))
    );
}

/// The blocks of a language in docs/fleet.md.
#[cfg(feature = "sqlite")]
fn documented(language: &str) -> Vec<String> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/fleet.md")).expect("the page");
    let fence = format!("```{language}\n");
    let blocks = text.split(&fence).skip(1);
    blocks.map(|block| block.split("```").next().unwrap_or_default().to_owned()).collect()
}

#[test]
#[cfg(feature = "sqlite")]
fn a_fleet_is_a_database_whose_tables_and_queries_are_documented() {
    let folder = tempfile::tempdir().expect("a folder");
    let reports = folder.path().join("reports");
    for (node, version) in [("n1", "2"), ("n2", "1"), ("n3", "1"), ("n4", "2")] {
        report(&reports, node, |report| {
            report["device"]["driver"] = json!({"name": "d", "version": version, "api_version": ""});
            if node == "n4" {
                finding(report, "independence")["value"] = json!(false);
            }
        });
    }
    let line = json!({
        "schema": "mxprobe-screen-line/1", "time": "2020-01-01T00:00:00Z", "node": "n2", "backend": "cpu",
        "selector": "cpu:0", "device": "a CPU", "fingerprint": "x", "driver": null, "verdict": "wrong",
        "wrong": [{"operation": BF16, "place": ["core 3", "bit 7"]}],
    });
    fs::write(reports.join("log.jsonl"), line.to_string() + "\n").expect("it can be written");
    fs::write(reports.join("notes.json"), "{}").expect("it can be written");
    let database = folder.path().join("fleet.db");
    // A database that is there is replaced.
    fs::write(&database, "something else").expect("it can be written");
    let arguments = [reports.to_str().expect("UTF-8"), "--sqlite", database.to_str().expect("UTF-8")];
    assert_eq!(merged(&arguments).0, Some(1));

    let database = rusqlite::Connection::open(&database).expect("a database");
    let rows = |query: &str| -> Vec<String> {
        let mut query = database.prepare(query).unwrap_or_else(|error| panic!("{error}: {query}"));
        let columns = query.column_count();
        let row = |row: &rusqlite::Row<'_>| -> rusqlite::Result<String> {
            let value = |at| {
                row.get::<_, rusqlite::types::Value>(at).map(|value| match value {
                    rusqlite::types::Value::Integer(number) => number.to_string(),
                    rusqlite::types::Value::Text(text) => text,
                    other => format!("{other:?}"),
                })
            };
            Ok((0..columns).map(value).collect::<rusqlite::Result<Vec<_>>>()?.join(" | "))
        };
        query.query_map([], row).expect("it runs").collect::<rusqlite::Result<_>>().expect("rows")
    };
    let queries = documented("sql");
    let (tables, [deviating, drivers, wrong]) = queries
        .split_first()
        .map(|(tables, rest)| (tables.clone(), <[String; 3]>::try_from(rest.to_vec()).expect("three queries")))
        .expect("the tables");
    assert_eq!(tables, mxprobe::fleet::TABLES);
    assert_eq!(rows(&deviating), [format!("n4 | cpu:0 | {BF16} | independence | true | false")]);
    let classes = rows("SELECT class FROM class ORDER BY is_usual DESC");
    let [usual, other] = classes.as_slice() else { panic!("{classes:?}") };
    let by_driver = [format!("{usual} | d 1 | 2"), format!("{usual} | d 2 | 1"), format!("{other} | d 2 | 1")];
    assert_eq!(rows(&drivers), by_driver);
    assert_eq!(rows(&wrong), [format!("n2 | cpu:0 | 2020-01-01T00:00:00Z | {BF16}: core 3, bit 7")]);
    assert_eq!(rows("SELECT nodes, reports, screens FROM fleet"), ["4 | 4 | 1"]);
    assert_eq!(rows("SELECT count(*) FROM skipped"), ["1"]);
}

#[test]
#[cfg(not(feature = "sqlite"))]
fn a_fleet_is_no_database_without_the_feature() {
    assert_eq!(said(&["fleet", "/nowhere", "--sqlite", "fleet.db"]).0, Some(2));
}
