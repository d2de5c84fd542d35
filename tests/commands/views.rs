//! Every view of a report and of a comparison, against the golden files in `tests/golden`.

use std::{fs, path::PathBuf};

use serde_json::Value;

use super::{mxprobe, say, say_to};

fn golden(name: &str) -> String {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests/golden", name].iter().collect();
    path.to_str().expect("the path is UTF-8").to_owned()
}

/// Runs the command in `tests/golden`, so that file names are the same everywhere, and compares its output with a file.
#[track_caller]
fn is_golden(arguments: &[&str], code: i32, name: &str) {
    let said: super::Said = mxprobe(arguments).current_dir(golden("")).output().expect("mxprobe starts").into();
    let said = said.ended(code).out;
    if std::env::var_os("MXPROBE_BLESS").is_some() {
        fs::write(golden(name), &said).unwrap();
    }
    let wanted = fs::read_to_string(golden(name)).unwrap_or_default();
    assert!(said == wanted, "{arguments:?} is not tests/golden/{name}; MXPROBE_BLESS=1 rewrites it:\n{said}");
}

#[test]
fn every_view_of_a_report_is_as_it_was() {
    is_golden(&["report", "a100.json"], 0, "report.txt");
    is_golden(&["report", "a100.json", "-v"], 0, "report-listed.txt");
    is_golden(&["report", "a100.json", "-vv"], 0, "report-verbose.txt");
    is_golden(&["report", "a100.json", "--color", "always"], 0, "report-color.txt");
    is_golden(&["report", "a100.json", "--format", "json"], 0, "a100.json");
    is_golden(&["report", "a100.json", "--format", "markdown"], 0, "report.md");
    is_golden(&["report", "a100.json", "llvmpipe-newer.json", "--format", "csv"], 0, "report.csv");
    is_golden(&["report", "a100.json", "llvmpipe-newer.json", "--format", "html"], 0, "report.html");
}

#[test]
fn a_report_without_findings_says_so() {
    // Floating-point operations have no findings on integers.
    let run = ["run", "--device", "sim:v100", "--op", "mma.m8n8k4.f32.f16.f16.f32", "--probe", "integers.exact"];
    for more in [&[][..], &["--format", "markdown"], &["--format", "html"]] {
        let said = say(&[&run[..], more].concat()).ended(0).out;
        assert!(said.contains("no findings; "), "{said}");
        assert!(!said.contains("1 operation: \n") && !said.lines().any(|line| line.trim().starts_with(';')), "{said}");
    }
}

#[test]
fn every_view_of_a_comparison_is_as_it_was() {
    let several = ["compare", "a100.json", "rdna4.json", "llvmpipe.json"];
    let view = |more: &[&'static str]| [&several[..], more].concat();
    is_golden(&several, 1, "compare.txt");
    is_golden(&view(&["-v"]), 1, "compare-listed.txt");
    is_golden(&view(&["--all"]), 1, "compare-all.txt");
    is_golden(&view(&["--format", "json"]), 1, "compare.json");
    is_golden(&view(&["--format", "markdown"]), 1, "compare.md");
    is_golden(&view(&["--format", "csv"]), 1, "compare.csv");
    is_golden(&view(&["--format", "html"]), 1, "compare.html");
}

#[test]
fn what_a_driver_changed_on_one_device_is_said() {
    is_golden(&["compare", "llvmpipe.json", "llvmpipe-newer.json"], 1, "compare-drivers.txt");
    let comparison = say(&["compare", &golden("llvmpipe.json"), &golden("llvmpipe-newer.json"), "--format", "json"]);
    let comparison: Value = serde_json::from_str(&comparison.ended(1).out).unwrap();
    assert_eq!(comparison["differ"], true);
    assert_eq!(comparison["matches"][0]["rows"][0]["probe"], "rounding.result");
    let dot = &comparison["matches"][0]["dots"][0];
    assert_eq!((&dot["d"][0], &dot["d"][1]), (&"0x3f800001".into(), &"0x3f800000".into()));
    assert_eq!(comparison["alone"][0]["operations"][0], "coopmat.m8n8k8.f16.f16.f16.f16");
    assert_eq!(comparison["alone"][0]["same_device"], true);
}

#[test]
fn a_report_equals_itself_and_a_second_run_of_its_model() {
    let said = say(&["compare", &golden("a100.json"), &golden("a100.json")]).ended(0);
    assert!(said.out.contains("no difference was found"), "{}", said.out);
    let run = ["run", "--device", "sim:a100", "--op", "mma.m16n8k16.f32.f16.f16.f32", "--format", "json"];
    let again = say(&run).ended(0).out;
    let said = say_to(&["compare", &golden("a100.json"), "-", "--format", "json"], again.as_bytes());
    // The golden report has operations that this run was not asked for: the device does not lack them.
    let comparison: Value = serde_json::from_str(&said.ended(0).out).unwrap();
    let found = &comparison["matches"][0];
    assert_eq!(found["dots"].as_array().unwrap().len(), 0, "{found}");
    assert!(found["dots_in_common"].as_u64().unwrap() > 10, "{found}");
    assert!(found["rows"].as_array().unwrap().iter().all(|row| row["state"] != "differs"), "{found}");
    assert_eq!(comparison["alone"].as_array().unwrap().len(), 1);
    assert_eq!(comparison["alone"][0]["same_device"], false);
}

#[test]
fn a_comparison_conforms_to_the_printed_schema() {
    let schema: Value = serde_json::from_str(&say(&["schema", "comparison"]).ended(0).out).unwrap();
    let validator = jsonschema::draft202012::new(&schema).expect("a schema");
    let files = [golden("a100.json"), golden("rdna4.json"), golden("llvmpipe.json"), golden("llvmpipe-newer.json")];
    let arguments: Vec<&str> =
        ["compare", "--format", "json"].into_iter().chain(files.iter().map(String::as_str)).collect();
    let comparison: Value = serde_json::from_str(&say(&arguments).ended(1).out).unwrap();
    let errors: Vec<String> = validator.iter_errors(&comparison).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{}", errors.join("\n"));
}

#[test]
fn directories_and_arrays_are_read_and_too_few_reports_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let empty = say(&["compare", &path("")]).ended(2);
    assert!(empty.err.contains("no file ends in .json"), "{}", empty.err);
    fs::copy(golden("a100.json"), path("one.json")).unwrap();
    let one = say(&["compare", &path("")]).ended(2);
    assert!(one.err.contains("only one report"), "{}", one.err);
    fs::copy(golden("rdna4.json"), path("two.json")).unwrap();
    say(&["compare", &path("")]).ended(1);
    let both = say(&["report", &path(""), "--format", "json"]).ended(0).out;
    say_to(&["compare", "-"], both.as_bytes()).ended(1);
    let none = say(&["compare", "no/such/file.json", &path("one.json")]).ended(2);
    assert!(none.err.contains("no/such/file.json"), "{}", none.err);
    fs::write(path("three.json"), "{}").unwrap();
    let wrong = say(&["compare", &path("")]).ended(2);
    assert!(wrong.err.contains("three.json") && wrong.err.contains("schema"), "{}", wrong.err);
}

#[test]
fn a_view_is_written_to_a_file_and_a_run_has_every_view() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("page.html");
    let said = say(&["report", &golden("a100.json"), "--format", "html", "--out", file.to_str().unwrap()]).ended(0);
    assert_eq!(said.out, "");
    assert!(fs::read_to_string(&file).unwrap().starts_with("<!doctype html>"));
    let run =
        ["run", "--device", "sim:avx512", "--device", "sim:amx", "--op", "*bf16*", "--probe", "order", "--format"];
    for (format, start) in [("html", "<!doctype html>"), ("markdown", "# sim:avx512"), ("csv", "schema,tool_version,")]
    {
        let said = say(&[&run[..], &[format]].concat()).ended(0);
        assert!(said.out.starts_with(start), "{}", said.out);
        assert!(said.out.contains("amx.m16n16k32.f32.bf16.bf16.f32"), "{}", said.out);
    }
}

/// Texts that a file of unknown origin may contain: markup, escapes that move the cursor, formulas, marks that reverse
/// the direction of text, huge words and numbers.
const HOSTILE: [&str; 6] = [
    "<script>alert(1)</script><img src=x onerror=alert(1)>\"'>&amp;",
    "\u{1b}[2J\u{1b}]0;title\u{7}\u{9b}31m\u{7f}\r\u{8}",
    "=HYPERLINK(\"http://x.example\",\"y\")",
    "\u{202e}txet\u{2066}\u{200f}\u{e0041}\u{2028}",
    "| [link](javascript:alert(1)) `code` **bold** @someone ```\n# heading\n\n<details>",
    "99999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999",
];

/// Prefixes every text of a report with a hostile one, except texts whose form is checked.
fn poison(value: &mut Value, path: &str, next: &mut usize) {
    match value {
        Value::String(text) => {
            let fixed = ["schema", "id", "outcome", "kind", "backend", "probe"];
            if !fixed.contains(&path) && !text.starts_with("0x") {
                *text = format!("{}{text}", HOSTILE[*next % HOSTILE.len()]);
                *next += 1;
            } else if path == "id" {
                *text = format!("<b>\u{1b}[31m|=`{text}");
            } else if path == "probe" {
                *text = format!("{text}{}", HOSTILE[*next % HOSTILE.len()]);
                *next += 1;
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| poison(value, path, next)),
        Value::Object(fields) => fields.iter_mut().for_each(|(name, value)| poison(value, name, next)),
        _ => {}
    }
}

#[test]
fn hostile_texts_stand_harmlessly_in_every_view() {
    let text = fs::read_to_string(golden("llvmpipe-newer.json")).unwrap();
    for start in 0..HOSTILE.len() {
        let mut report: Value = serde_json::from_str(&text).unwrap();
        poison(&mut report, "", &mut start.clone());
        let bundle = Value::Array(vec![report.clone(), serde_json::from_str(&text).unwrap(), report]).to_string();
        for command in ["report", "compare"] {
            for view in ["table", "json", "markdown", "csv", "html"] {
                for more in [&["-v"][..], &[]] {
                    let arguments = [&[command, "-", "--format", view, "--color", "never"][..], more].concat();
                    let said = say_to(&arguments, bundle.as_bytes());
                    assert!(matches!(said.code, Some(0 | 1)), "{arguments:?}: {}", said.err);
                    is_harmless(view, &said.out);
                }
            }
        }
    }
}

#[test]
fn hostile_texts_stand_harmlessly_in_errors() {
    let report = r#"{"schema": "\u001b[2J\u202e\u009b1/1.0"}"#;
    for command in ["report", "validate", "compare"] {
        let said = say_to(&[command, "-", "--color", "never"], report.as_bytes());
        assert!(matches!(said.code, Some(1 | 2)), "{}", said.err);
        is_harmless("error", &said.err);
        is_harmless("error", &said.out);
        assert!(said.err.contains(r"\u{1b}") || said.out.contains(r"\u{1b}"), "{command}: {}", said.err);
    }
}

#[track_caller]
fn is_harmless(view: &str, text: &str) {
    let acts = |letter: &char| {
        matches!(letter, '\u{0}'..='\u{9}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{7f}'..='\u{9f}')
            || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
            || ('\u{e0000}'..='\u{e0fff}').contains(letter)
    };
    assert_eq!(text.chars().find(acts), None, "{view}");
    assert!(view == "csv" || !text.contains('\r'), "{view}");
    match view {
        "html" => {
            for tag in ["<script", "<img", "<b>"] {
                assert!(!text.contains(tag), "{view} has {tag}");
            }
            let opened = text.matches("<details>").count();
            assert_eq!(opened, text.matches("</details>").count());
        }
        "markdown" => {
            let outside = outside_of_fences(text).replace(r"\]", "");
            for markup in ["<script", "<img", "](", "**bold", "@someone", "\n# heading", "http://"] {
                assert!(!outside.contains(markup), "{view} has {markup}");
            }
        }
        "csv" => {
            for cell in text.lines().flat_map(|line| line.split(',')) {
                let cell = cell.trim_start_matches('"');
                assert!(!cell.starts_with(['=', '+', '@']), "{view} has {cell}");
            }
        }
        _ => {}
    }
}

/// A Markdown document without its code blocks, whose fences may be longer than three.
#[track_caller]
fn outside_of_fences(text: &str) -> String {
    let mut outside = String::new();
    let mut fence: Option<&str> = None;
    for line in text.lines() {
        match fence {
            None if line.starts_with("```") => fence = Some(line.trim_end_matches("text")),
            None => outside.extend([line, "\n"]),
            Some(open) if line == open => fence = None,
            Some(_) => {}
        }
    }
    assert_eq!(fence, None, "a code block is not closed");
    outside
}

#[test]
fn what_the_system_said_of_a_device_is_shown() {
    let mut report: Value = serde_json::from_str(&std::fs::read_to_string(golden("llvmpipe.json")).unwrap()).unwrap();
    report["conditions"] = serde_json::json!({ "start": { "clock_sm_mhz": "345" }, "end": { "clock_sm_mhz": "1980" } });
    let text = report.to_string();
    say_to(&["validate", "-"], text.as_bytes()).ended(0);
    for format in ["table", "markdown", "html"] {
        let shown =
            say_to(&["report", "-", "-v", "--format", format], text.as_bytes()).ended(0).out.replace("\\_", "_");
        assert!(shown.contains("before: clock_sm_mhz 345; after: clock_sm_mhz 1980"), "{format}: {shown}");
    }
}
