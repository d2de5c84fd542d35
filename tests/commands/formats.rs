//! Every command in every format: the same facts in each, pages that work in browsers and screen readers, and formats
//! that are refused.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    sync::Mutex,
};

use serde_json::Value;

use super::{model_file, say, say_to};

const OPERATION: &str = "mma.m16n8k16.f32.f16.f16.f32";

/// Quick commands and their exit codes; `FILE` is replaced by the name of a file in a temporary folder.
const COMMANDS: [(&[&str], i32); 17] = [
    (&["identify", "--device", "sim:avx512", "--op", "dot.m1n1k2.s32.s16.s16.s32", "--out", "FILE.toml"], 0),
    (&["verify", "--device", "sim:a100", "--op", OPERATION, "--model", "a100", "--count", "1"], 0),
    (&["verify", "--device", "sim:h100", "--op", OPERATION, "--model", "a100", "--count", "1"], 1),
    (&["distinguish", "a100", "h100", "--op", OPERATION], 1),
    (&["distinguish", "a100", "a100", "--op", OPERATION], 0),
    (&["gemm", "--device", "sim:a100", "--op", OPERATION, "--random", "8,8,64", "--out", "FILE.npy"], 0),
    (&["gemm", "--device", "sim:a100", "--experiment", "growth", "--exponents", "4,5"], 0),
    (&["gemm", "--device", "sim:amx", "--experiment", "yardstick", "--size", "16", "--rounds", "1"], 0),
    (&["gemm", "--device", "sim:amx", "--experiment", "throughput", "--size", "8,16", "--rounds", "1"], 0),
    (&["gemm", "--device", "sim:v100", "--experiment", "smallest-block", "--exponents", "6,6"], 0),
    (&["tolerance", "--model", "a100", "--op", OPERATION, "--k", "64", "--search", "1000"], 0),
    (&["list", "--device", "sim:amx", "--device", "sim:avx512", "-v"], 0),
    (&["explain"], 0),
    (&["explain", "alignment.below"], 0),
    (&["explain", "amx"], 0),
    (&["explain", "api_version"], 0),
    (&["run", "--device", "sim:a100", "--op", OPERATION, "--probe", "order"], 0),
];

/// The output of a command in a format; each is run once for all tests.
#[track_caller]
fn shown(arguments: &[&str], format: &str, code: i32) -> String {
    static KNOWN: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());
    let key = format!("{format} {arguments:?}");
    let known = KNOWN.lock().unwrap().get(&key).cloned();
    known.unwrap_or_else(|| {
        let printed = printed(arguments, format, code);
        KNOWN.lock().unwrap().insert(key, printed.clone());
        printed
    })
}

#[track_caller]
fn printed(arguments: &[&str], format: &str, code: i32) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let mut given: Vec<String> = arguments.iter().map(|word| word.replace("FILE", &format!("{path}/x"))).collect();
    given.extend(["--format".to_owned(), format.to_owned()]);
    let given: Vec<&str> = given.iter().map(String::as_str).collect();
    say(&given).ended(code).out.replace(path, "")
}

/// The words with a digit in them that do not change from run to run: all but durations and rates.
fn facts(text: &str) -> BTreeSet<String> {
    let is_time = |word: Option<&&str>| word.is_some_and(|word| ["s", "ms", "µs", "µs:", "G"].contains(word));
    let mut found = BTreeSet::new();
    for line in text.lines().filter(|line| !line.contains("mxprobe 0.")) {
        let words = line.split([' ', ',', '(', ')', ';', '[', ']', '{', '}', '"', '×']);
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        for (at, word) in words.iter().enumerate() {
            // A rate follows its time.
            let is_measured = is_time(words.get(at + 1)) || at > 0 && is_time(words.get(at - 1));
            if word.contains(|letter: char| letter.is_ascii_digit()) && !is_measured {
                found.insert(word.trim_end_matches([':', '.', '…']).to_owned());
            }
        }
    }
    found
}

/// The text of a page: without tags and styles, character references replaced.
fn text_of_html(page: &str) -> String {
    let mut text = String::new();
    let mut rest = page;
    while let Some((before, after)) = rest.split_once('<') {
        text.push_str(before);
        text.push(' ');
        let after = if after.starts_with("style") { after.split_once("</style").unwrap().1 } else { after };
        rest = after.split_once('>').expect("a tag ends").1;
    }
    text.push_str(rest);
    for (reference, letter) in [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")] {
        text = text.replace(reference, letter);
    }
    text
}

fn text_of_markdown(document: &str) -> String {
    let text = document.replace('\\', "").replace("&#58;", ":").replace("&#46;", ".").replace("&#64;", "@");
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

/// Every text and every number of a JSON value.
fn leaves(value: &Value, texts: &mut Vec<String>, numbers: &mut Vec<f64>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Number(number) => numbers.extend(number.as_f64()),
        Value::Array(values) => {
            numbers.push(values.len() as f64);
            values.iter().for_each(|value| leaves(value, texts, numbers));
        }
        Value::Object(fields) => fields.iter().for_each(|(name, value)| {
            texts.push(name.clone());
            leaves(value, texts, numbers);
        }),
        Value::Null | Value::Bool(_) => {}
    }
}

#[test]
fn every_number_of_a_table_is_on_the_page_in_the_document_and_in_the_json() {
    for (arguments, code) in COMMANDS {
        let table = shown(arguments, "table", code);
        let (first, facts) = (facts(table.lines().next().unwrap_or_default()), facts(&table));
        let html = text_of_html(&shown(arguments, "html", code));
        let markdown = text_of_markdown(&shown(arguments, "markdown", code));
        let mut json: Value = serde_json::from_str(&shown(arguments, "json", code)).expect("JSON");
        // Times and versions can contain any number.
        for name in ["tool", "time", "host"] {
            json.as_object_mut().unwrap().remove(name);
        }
        let (mut texts, mut numbers) = (Vec::new(), Vec::new());
        leaves(&json, &mut texts, &mut numbers);
        for fact in &facts {
            assert!(html.contains(fact.as_str()), "{arguments:?}: {fact} is not on the page: {html}");
            assert!(markdown.contains(fact.as_str()), "{arguments:?}: {fact} is not in the document: {markdown}");
            // The JSON has numbers in full. For dots that differ it has only the bits: no places, decimals or trace.
            let is_near = |number: f64| numbers.iter().any(|known| (known - number).abs() <= 0.006 * number.abs());
            let is_in_json = texts.iter().any(|text| text.contains(fact.as_str())) || fact.parse().is_ok_and(is_near);
            let is_of_bits = !fact.starts_with("0x") || arguments[0] == "distinguish";
            let is_derived = code == 1 && is_of_bits && !first.contains(fact);
            let is_definition = fact == "2n³";
            assert!(is_in_json || is_derived || is_definition, "{arguments:?}: {fact} is not in the JSON: {json}");
        }
        assert!(facts.len() > 1 || arguments[0] == "explain", "{arguments:?}: {facts:?}");
    }
}

/// Fails unless the page is well formed, accessible to screen readers, and self-contained.
#[track_caller]
fn is_sound(page: &str) {
    assert!(page.starts_with("<!doctype html>\n<html lang=\"en\">"), "{page}");
    let title = page.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>")).expect("a title").0;
    assert!(title.len() > " – mxprobe".len(), "{title}");
    let (mut open, mut ids, mut links, mut headings) = (Vec::new(), BTreeSet::new(), Vec::new(), Vec::new());
    let mut rest = page.strip_prefix("<!doctype html>").unwrap();
    while let Some((before, after)) = rest.split_once('<') {
        assert!(!before.contains('>'), "{before}");
        for reference in before.split('&').skip(1) {
            let known = ["lt;", "gt;", "amp;", "quot;", "#39;"].iter().any(|known| reference.starts_with(known));
            assert!(known, "&{reference}");
        }
        let (tag, after) = after.split_once('>').expect("a tag ends");
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{tag}");
            continue;
        }
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        assert_eq!(attributes.matches('"').count() % 2, 0, "{tag}");
        for (at, part) in attributes.split('"').enumerate() {
            match (at % 2, part.trim()) {
                (0, part) => {
                    assert!(part.is_empty() || part.ends_with('='), "{tag}");
                    assert!(!part.starts_with("on") && part != "src=", "{tag}");
                }
                (_, value) if attributes.split('"').nth(at - 1).unwrap().ends_with("id=") => {
                    assert!(ids.insert(value), "two elements are called {value}");
                }
                (_, value) if attributes.split('"').nth(at - 1).unwrap().ends_with("href=") => links.push(value),
                _ => {}
            }
        }
        assert!(!["script", "link", "img", "iframe"].contains(&name), "{tag}");
        assert!(name != "th" || attributes.contains("scope=\""), "{tag}");
        assert!(name != "svg" || attributes.contains("aria-label=\"") || open.contains(&"svg"), "{tag}");
        if let Some(level) = name.strip_prefix('h').and_then(|level| level.parse::<usize>().ok()) {
            headings.push(level);
        }
        if name == "style" {
            rest = after.split_once("</style>").expect("the style ends").1;
        } else if !["meta", "br"].contains(&name) {
            open.push(name);
        }
    }
    assert_eq!(open, Vec::<&str>::new());
    for link in links {
        let target = link.strip_prefix('#').unwrap_or_else(|| panic!("{link} leads out of the page"));
        assert!(ids.contains(target), "nothing is called {target}");
    }
    assert_eq!(headings.first(), Some(&1));
    assert!(headings.windows(2).all(|pair| pair[1] <= pair[0] + 1), "a heading level is skipped: {headings:?}");
}

#[test]
fn every_page_is_sound() {
    for (arguments, code) in COMMANDS {
        is_sound(&shown(arguments, "html", code));
    }
    is_sound(&say(&["explain", "--all", "--format", "html"]).ended(0).out);
    let dot = r#"{"a":["0x3c00"],"b":["0x3c00"],"c":"0x00000000"}"#;
    let trace = ["explain", "--trace", "--device", "sim:a100", "--op", OPERATION, "--dot", dot, "--format", "html"];
    is_sound(&say(&trace).ended(0).out);
}

/// The records of a CSV table.
fn records(text: &str) -> Vec<Vec<String>> {
    let (mut records, mut record, mut field, mut is_quoted) = (Vec::new(), Vec::new(), String::new(), false);
    for letter in text.chars() {
        match letter {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => record.push(std::mem::take(&mut field)),
            '\r' if !is_quoted => {}
            '\n' if !is_quoted => {
                record.push(std::mem::take(&mut field));
                records.push(std::mem::take(&mut record));
            }
            letter => field.push(letter),
        }
    }
    assert!(record.is_empty() && field.is_empty() && !is_quoted, "{text}");
    records
}

#[test]
fn what_is_a_list_has_rows_with_a_field_for_each_name() {
    let mut seen = 0;
    for (arguments, code) in COMMANDS {
        if ["distinguish", "explain", "tolerance"].contains(&arguments[0]) || arguments.contains(&"--random") {
            continue;
        }
        let records = records(&shown(arguments, "csv", code));
        assert!(records.len() > 1, "{arguments:?}");
        assert!(records.iter().all(|record| record.len() == records[0].len()), "{arguments:?}: {records:?}");
        assert!(records[0].iter().all(|name| !name.is_empty() && !name.contains(' ')), "{:?}", records[0]);
        seen += 1;
    }
    assert_eq!(seen, 9);
}

#[test]
fn rows_and_json_of_an_experiment_have_the_same_numbers() {
    let growth = COMMANDS[6].0;
    let json: Value = serde_json::from_str(&shown(growth, "json", 0)).unwrap();
    let records = records(&shown(growth, "csv", 0));
    let at = |name: &str| records[0].iter().position(|known| known == name).unwrap();
    let points = json["curves"].as_array().unwrap().iter().flat_map(|curve| curve["points"].as_array().unwrap());
    let wanted: Vec<f64> = points.map(|point| point["componentwise"].as_f64().unwrap()).collect();
    let rows = records[1..].iter().map(|record| record[at("componentwise")].parse().unwrap());
    assert_eq!(rows.collect::<Vec<f64>>(), wanted);
    assert!(wanted.len() > 20, "{}", wanted.len());
}

#[test]
fn a_listing_is_the_same_json_by_either_name_and_an_explanation_conforms_to_its_schema() {
    let parsed = |arguments: &[&str]| -> Value { serde_json::from_str(&say(arguments).ended(0).out).unwrap() };
    let device = ["list", "--device", "sim:amx"];
    let mut both = [&["--json"][..], &["--format", "json"]].map(|more| parsed(&[&device[..], more].concat()));
    both.iter_mut().for_each(|listing| listing["tool"]["arguments"] = Value::Null);
    assert_eq!(both[0], both[1]);
    let schema = parsed(&["schema", "explanation"]);
    let validator = jsonschema::draft202012::new(&schema).expect("a schema");
    for name in [&["--all"][..], &["e4m3"], &["h100"], &["kernel_sha256"], &["subnormals"], &["api_version"]] {
        let found = parsed(&[&["explain", "--format", "json"], name].concat());
        let errors: Vec<String> = validator.iter_errors(&found).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{name:?}: {}", errors.join("\n"));
    }
    assert_eq!(parsed(&["explain", "e4m3", "--format", "json"])["entries"][0]["kind"], "format");
    assert_eq!(parsed(&["explain", "h100", "--format", "json"])["models"][0]["name"], "h100");
}

#[test]
fn hostile_names_of_files_stand_as_text_on_every_page() {
    let folder = tempfile::tempdir().unwrap();
    let name = "<script>alert(1)<b>&\"'`|$.toml";
    let file = folder.path().join(name);
    fs::copy(model_file("amx.toml"), &file).unwrap();
    let file = file.to_str().unwrap();
    let device = format!("sim:{file}");
    let op = "amx.m16n16k64.s32.s8.s8.s32";
    for (arguments, code) in [
        (vec!["list", "--device", &device], 0),
        (vec!["verify", "--device", &device, "--model", file, "--op", op, "--count", "1"], 0),
        (vec!["distinguish", file, "amx", "--op", op], 0),
        (vec!["explain", file], 0),
        (vec!["run", "--device", &device, "--op", op, "--probe", "self_test"], 0),
    ] {
        let page = shown(&arguments, "html", code);
        is_sound(&page);
        let document = shown(&arguments, "markdown", code);
        let fenced: String = document.split("```").step_by(2).collect();
        assert!(!fenced.contains("<script") && !fenced.contains("<b>"), "{arguments:?}: {document}");
        assert!(text_of_html(&page).contains("alert(1)"), "{arguments:?}: {page}");
    }
}

#[test]
fn the_name_of_a_file_does_not_act_on_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("\u{1b}[31mx.toml");
    fs::copy(model_file("amx.toml"), &file).unwrap();
    let (file, out) = (file.to_str().unwrap(), folder.path().join("d.npy"));
    let device = format!("sim:{file}");
    let op = "amx.m16n16k64.s32.s8.s8.s32";
    for (arguments, is_named) in [
        (vec!["list", "--device", &device], true),
        (vec!["verify", "--device", &device, "--model", file, "--op", op, "--count", "1"], true),
        (vec!["distinguish", file, "amx", "--op", op], true),
        (vec!["gemm", "--device", &device, "--op", op, "--random", "2,2,2", "--out", out.to_str().unwrap()], true),
    ] {
        let said = say(&arguments).ended(0);
        assert!(!said.out.contains('\u{1b}') && !said.err.contains('\u{1b}'), "{arguments:?}: {said:?}");
        assert_eq!(said.out.contains(r"\u{1b}[31m"), is_named, "{arguments:?}: {said:?}");
    }
}

#[test]
fn a_format_that_a_result_does_not_have_is_refused_before_the_work_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kept.npy");
    fs::write(&file, "kept").unwrap();
    let file = file.to_str().unwrap();
    let product = ["gemm", "--device", "sim:a100", "--op", OPERATION, "--random", "8,8,8", "--out", file];
    let model = ["identify", "--device", "sim:a100", "--op", OPERATION, "--out", file];
    for (arguments, wrong) in [
        (&["distinguish", "a100", "h100", "--op", OPERATION][..], "csv"),
        (&["explain"], "csv"),
        (&["explain", "--all"], "pdf"),
        (&product, "csv"),
        (&product, "xml"),
        (&model, "tsv"),
        (&["verify", "--device", "sim:a100", "--model", "a100", "--out", file], "HTML5"),
        (&["list"], "yaml"),
    ] {
        let said = say(&[arguments, &["--format", wrong]].concat()).ended(2);
        assert_eq!(said.out, "", "{arguments:?}");
        for word in [wrong, "table", "json", "markdown", "html"] {
            assert!(said.err.contains(word), "{arguments:?}: `{word}` is not in: {}", said.err);
        }
        assert_eq!(said.err.matches("error:").count(), 1, "{}", said.err);
        assert_eq!(fs::read_to_string(file).unwrap(), "kept", "{arguments:?}");
    }
    let said = say(&["list", "--json", "--format", "html"]).ended(2);
    assert!(said.err.contains("--json") && said.err.contains("--format"), "{}", said.err);
}

#[test]
fn a_trace_has_every_format() {
    let dot = r#"{"a":["0x3c00","0x4000"],"b":["0x3c00","0x4200"],"c":"0x3f800000"}"#;
    let trace = ["explain", "--trace", "--device", "sim:a100", "--op", OPERATION, "--format"];
    let of =
        |format: &str| say_to(&[&trace[..], &[format]].concat(), format!("{dot}\n{dot}\n").as_bytes()).ended(0).out;
    let table = of("text");
    assert_eq!(table.matches("0x3c00 × 0x3c00").count(), 2, "{table}");
    let json: Value = serde_json::from_str(&of("json")).unwrap();
    let lines = |at: usize| json["traces"][at]["lines"].as_array().unwrap().iter().map(|line| line.as_str().unwrap());
    assert_eq!(lines(0).chain([""]).chain(lines(1)).collect::<Vec<_>>(), table.lines().collect::<Vec<_>>());
    for line in table.lines().filter(|line| !line.is_empty()) {
        assert!(text_of_html(&of("html")).contains(line), "{line}");
        assert!(of("markdown").contains(line), "{line}");
    }
}
