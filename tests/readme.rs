//! The README and the documents are current: tables, commands, links to files.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::Value;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn text(output: Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The files of a directory of the project with this extension, sorted by name.
fn files(directory: &str, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(directory)).expect(directory).map(|entry| entry.expect("an entry").path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|found| found == extension)).collect();
    files.sort();
    files
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).expect("UTF-8")
}

/// The table at the top of what `mxprobe report` makes of each report, one below the other, with the device and its driver
/// in front of the first row. Reports whose tables are equal share one.
fn findings() -> String {
    let mut head = String::new();
    let mut found: Vec<(Vec<String>, Vec<String>)> = Vec::new();
    for path in files("results", "json") {
        let report: Value = serde_json::from_str(&read(&path)).expect("JSON");
        let device = &report["device"];
        let driver = match device["driver"]["version"].as_str() {
            Some(version) => version.to_owned(),
            None => format!("no driver; {}", device["fingerprint"].as_str().expect("a fingerprint")),
        };
        let file = name(&path);
        let who = format!("{}, {driver}: [report](results/{file})", device["name"].as_str().expect("a name"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_mxprobe"));
        let shown = text(command.args(["report", "--format", "markdown"]).arg(&path).output().expect("it starts"));
        let mut rows = shown.lines().skip_while(|line| !line.starts_with("| sums of"));
        let (Some(heads), Some(rule)) = (rows.next(), rows.next()) else { continue };
        head = format!("| device and driver {heads}\n| --- {rule}\n");
        let rows: Vec<String> = rows.take_while(|row| row.starts_with('|')).map(str::to_owned).collect();
        match found.iter_mut().find(|(_, known)| *known == rows) {
            Some((devices, _)) => devices.push(who),
            None => found.push((vec![who], rows)),
        }
    }
    let lines = found.iter().flat_map(|(devices, rows)| {
        let first = devices.join("<br>");
        rows.iter().enumerate().map(move |(at, row)| format!("| {} {row}\n", if at == 0 { &first } else { "" }))
    });
    head + &lines.collect::<String>()
}

/// Fails unless the text between the marks of this name in a document is `wanted`; blessing writes it there.
fn assert_between_marks(path: &str, name: &str, wanted: &str) {
    let [begin, end] = ["begin", "end"].map(|mark| format!("<!-- {name}: {mark} -->\n"));
    let document = read(path);
    let (before, rest) = document.split_once(&begin).expect(&begin);
    let (shown, after) = rest.split_once(&end).expect(&end);
    if std::env::var_os("MXPROBE_BLESS").is_some() {
        fs::write(root().join(path), format!("{before}{begin}{wanted}{end}{after}")).unwrap();
    } else {
        assert!(shown == wanted, "{path} is not current; MXPROBE_BLESS=1 rewrites it:\n{wanted}");
    }
}

#[test]
fn the_table_of_findings_is_what_the_reports_in_results_say() {
    let findings = findings();
    assert!(findings.lines().count() > files("results", "json").len() + 1, "{findings}");
    assert_between_marks("README.md", "findings", &findings);
}

/// Sums that most units have: the head of a column, and the operations.
const SUMS: [(&str, &str, &[&str]); 4] = [
    ("f16→f32", "f16", &["*.f32.f16.f16.f32*"]),
    ("bf16→f32", "bf16", &["*.f32.bf16.bf16.f32*"]),
    ("tf32→f32", "tf32 xf32", &["*.f32.tf32.tf32.f32*", "*.f32.xf32.xf32.f32*"]),
    ("fp8→f32", "fp8", &["*.f32.e4m3.e4m3.f32*", "*.f32.e4m3fnuz.e4m3fnuz.f32*"]),
];

/// A summary's line for one kind of sums in one unit: `25, 16 at once, RZ`.
fn kept(summary: &Value, kinds: &str) -> String {
    let rows = summary["rows"].as_array().expect("rows");
    let is_meant = |row: &&Value| {
        let has = |kind: &str| kinds.split(' ').any(|known| kind.trim_end_matches(" fnuz") == known);
        let inputs = row["inputs"].as_array().expect("inputs");
        row["result"] == "f32"
            && inputs.iter().all(|kind| kind.is_string())
            && inputs.iter().filter_map(Value::as_str).any(has)
    };
    let of = |unit: &str| -> Vec<&Value> { rows.iter().filter(is_meant).filter(|row| row["unit"] == unit).collect() };
    let found = if of("matrix").is_empty() { of("vector") } else { of("matrix") };
    // Shapes that scalar instructions compute are omitted when the unit has others.
    let is_minor = |row: &&&Value| row["shape"].is_string() && row["products_at_once"] == 1;
    let major: Vec<&Value> = found.iter().filter(|row| !is_minor(row)).copied().collect();
    let several = major.len() > 1;
    let cell = |row: &Value| {
        let bits = match (&row["bits_kept"], row["bits_kept"]["at_least"].as_u64()) {
            (_, Some(least)) => format!("≥{least}"),
            (Value::Number(bits), _) => format!("**{bits}**"),
            _ => "exact".to_owned(),
        };
        let shape = row["shape"].as_str().map_or_else(String::new, |shape| format!(" {shape}"));
        let by = if several { format!(" ({}{shape})", words(&row["families"])) } else { String::new() };
        let fnuz = if words(&row["inputs"]).contains("fnuz") { ", FNUZ" } else { "" };
        format!("{bits}, {} at once, {}{fnuz}{by}", row["products_at_once"], row["rounding"].as_str().unwrap_or("?"))
    };
    if major.is_empty() { "–".to_owned() } else { major.into_iter().map(cell).collect::<Vec<_>>().join("<br>") }
}

fn words(list: &Value) -> String {
    list.as_array().expect("a list").iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")
}

/// The bits that every known unit keeps: from probing models, and from reports of hardware.
fn bits() -> String {
    let heads: Vec<&str> = SUMS.iter().map(|(head, ..)| *head).collect();
    let mut table = format!("| unit | from | {} |\n|---|---|{}\n", heads.join(" | "), "---|".repeat(heads.len()));
    // Names, where the numbers are from, and the numbers. Reports with the same numbers share a line.
    let mut lines: Vec<(Vec<String>, &str, String)> = Vec::new();
    let mut line = |name: String, from, summary: &Value| {
        let cells: Vec<String> = SUMS.iter().map(|(_, kinds, _)| kept(summary, kinds)).collect();
        let shown = cells.join(" | ");
        if cells.iter().all(|cell| cell == "–") {
            return;
        }
        match lines.iter_mut().find(|(_, other, known)| *other == from && from == "measured" && *known == shown) {
            Some((names, ..)) => names.push(name),
            None => lines.push((vec![name], from, shown)),
        }
    };
    let loops = ["fma-chain", "pairwise", "serial"];
    for name in mxprobe_models::shipped().iter().map(|model| model.name.as_str()).filter(|name| !loops.contains(name)) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mxprobe"));
        command.args(["run", "-q", "--format", "json", "--device", &format!("sim:{name}")]);
        SUMS.iter().flat_map(|(.., patterns)| *patterns).for_each(|pattern| {
            command.args(["--op", pattern]);
        });
        for probe in ["order.products_at_once", "alignment", "rounding.result"] {
            command.args(["--probe", probe]);
        }
        let output = command.output().expect("it starts");
        // A unit that only has integer operations has none of these.
        let Ok(report) = serde_json::from_slice::<Value>(&output.stdout) else { continue };
        let title = report["device"]["name"].as_str().expect("a name").trim_start_matches("model of ").to_owned();
        line(title, "model", &report["summary"]);
    }
    for path in files("results", "json") {
        let report: Value = serde_json::from_str(&read(&path)).expect("JSON");
        let report_of: mxprobe::report::Report = serde_json::from_value(report).expect("a report");
        let summary = serde_json::to_value(mxprobe::report::Summary::of(&report_of.operations)).expect("JSON");
        line(format!("{} ([report](results/{}))", report_of.device.name, name(&path)), "measured", &summary);
    }
    for (names, from, cells) in lines {
        let _ = writeln!(table, "| {} | {from} | {cells} |", names.join("<br>"));
    }
    table
}

#[test]
fn the_table_of_bits_is_what_models_and_reports_say() {
    assert_between_marks("README.md", "bits", &bits());
}

/// A line without the time that it ends with, if it does, and without the spaces that align it.
fn untimed(line: &str) -> String {
    match line.rsplit_once(", ") {
        Some((before, time)) if time.ends_with(" s") || time.ends_with(" ms") => {
            before.split_whitespace().collect::<Vec<_>>().join(" ")
        }
        _ => line.trim_end().to_owned(),
    }
}

/// Runs the commands of a tutorial and checks that they print the lines it shows, in order; `…` marks omitted lines.
fn follow(document: &str) -> usize {
    let folder = tempfile::tempdir().expect("a folder");
    let program = Path::new(env!("CARGO_BIN_EXE_mxprobe"));
    let path =
        format!("{}:{}", program.parent().expect("a folder").display(), std::env::var("PATH").unwrap_or_default());
    let text = read(document);
    let mut steps = 0;
    for block in text.split("```console\n").skip(1) {
        let block = block.split("```").next().expect("a block ends");
        for step in block.split("$ ").filter(|step| !step.trim().is_empty()) {
            let mut lines = step.lines();
            let mut command = lines.next().expect("a command").to_owned();
            while command.ends_with('\\') {
                command.pop();
                command.push_str(lines.next().expect("the command goes on").trim_start());
            }
            let output = Command::new("sh")
                .args(["-c", &command])
                .current_dir(folder.path())
                .env("PATH", &path)
                .output()
                .expect("a shell starts");
            let said =
                format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            assert!(matches!(output.status.code(), Some(0 | 1)), "{document}: {command}:\n{said}");
            let mut rest = said.lines();
            for wanted in lines.filter(|line| !line.trim().is_empty() && line.trim() != "…") {
                let found = rest.any(|line| untimed(line) == untimed(wanted));
                assert!(found, "{document}: `{command}` does not print `{wanted}` after the lines before it:\n{said}");
            }
            steps += 1;
        }
    }
    steps
}

#[test]
fn tutorials_print_what_they_show() {
    for document in ["tutorial-kernel-engineer", "tutorial-numerical-analyst", "tutorial-desktop-gpu"] {
        assert!(follow(&format!("docs/{document}.md")) >= 3, "{document}");
    }
}

#[test]
fn the_readme_shows_what_commands_print() {
    assert_eq!(follow("README.md"), 3);
}

#[test]
fn the_tables_of_an_adders_parameters_are_what_the_reader_reads() {
    let tables = format!("\n{}\n", mxprobe_models::documentation());
    assert_between_marks("docs/model-format.md", "parameters", &tables);
}

/// The output of `explain --all` below its title: entries on probes and other parts of a report, and entries on terms.
fn explained() -> (String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mxprobe"));
    let document = text(command.args(["explain", "--all", "--format", "markdown"]).output().expect("it starts"));
    let (title, entries) = document.split_once("\n\n").expect("a title and entries");
    assert!(title.starts_with("# "), "{title}");
    let (entries, terms) = entries.split_once("\n## Terms\n\n").expect("terms come last");
    (entries.to_owned(), terms.to_owned())
}

/// The document of all probes.
fn probes() -> String {
    let (entries, _) = explained();
    format!(
        "# How each probe works\n\nWith the formats, families of operations and fields of a report. This is the output of \
         `mxprobe explain --all --format markdown`;\n`mxprobe explain NAME` prints one entry. [Limits](limits.md) lists \
         what no probe can see.\n\n{entries}"
    )
}

/// The document of all terms.
fn glossary() -> String {
    let (_, terms) = explained();
    let terms = terms.replace("\n### ", "\n## ");
    let terms = terms.strip_prefix("### ").map_or(terms.clone(), |rest| format!("## {rest}"));
    format!(
        "# Glossary\n\nTerms of the field, as `mxprobe explain TERM` prints them, from `src/glossary/words.toml`. Probes, formats and \
         families of operations\nare in [probes](probes.md).\n\n{terms}"
    )
}

#[track_caller]
fn assert_is(path: &str, wanted: &str) {
    if std::env::var_os("MXPROBE_BLESS").is_some() {
        fs::write(root().join(path), wanted).unwrap();
    } else {
        assert!(read(path) == wanted, "{path} is not current; MXPROBE_BLESS=1 rewrites it");
    }
}

#[test]
fn the_document_of_probes_is_what_the_command_says() {
    assert_is("docs/probes.md", &probes());
}

#[test]
fn the_glossary_is_what_the_command_says_of_terms() {
    let glossary = glossary();
    assert!(glossary.contains("\n## RNE\n") && glossary.matches("\n## ").count() > 25, "{glossary}");
    assert_is("docs/glossary.md", &glossary);
}

/// A number of a report, as a power of two if it is large.
fn short(number: &Value) -> String {
    let text = number.as_str().expect("a number as text");
    match text.parse::<f64>() {
        Ok(number) if number >= 1e6 => format!("2^{:.2}", number.log2()),
        _ => text.to_owned(),
    }
}

/// The errors in ulp of the reports in `results/ulp`: a table for each device.
fn errors_in_ulp() -> String {
    let mut text = String::new();
    for path in files("results/ulp", "json") {
        let report: Value = serde_json::from_str(&read(&path)).expect("JSON");
        let device = report["device"]["name"].as_str().expect("a name");
        let _ = writeln!(text, "{device} ([report](../results/ulp/{})):\n", name(&path));
        let heads =
            "mode | function | computed by | at most, ulp | of argument | mean | correctly rounded | at most by range";
        let _ = writeln!(text, "| {heads} |\n|{}", "---|".repeat(heads.split(" | ").count()));
        for operation in report["operations"].as_array().expect("operations") {
            for finding in operation["findings"].as_array().expect("findings") {
                let Some(function) = finding["probe"].as_str().expect("a name").strip_prefix("ulp.") else { continue };
                let value = &finding["value"];
                let count = |name: &str| value[name].as_f64().expect(name);
                let statement = finding["statement"].as_str().expect("a statement");
                let by = statement.split_once(" [").and_then(|(_, rest)| rest.split_once(']')).map_or("", |(by, _)| by);
                let (_, ranges) = statement.split_once("at most by range: ").expect("ranges");
                let _ = writeln!(
                    text,
                    "| `{}` | {function} | `{by}` | {} | `{}` | {} | {:.2} % | {} |",
                    operation["aliases"][0].as_str().expect("an alias"),
                    short(&value["largest"]),
                    value["at"].as_str().expect("bits"),
                    short(&value["mean"]),
                    100.0 * count("correctly_rounded") / count("points"),
                    ranges.replace('|', "\\|"),
                );
            }
        }
        text.push('\n');
    }
    text
}

#[test]
fn the_tables_of_errors_in_ulp_are_what_the_reports_say() {
    let tables = errors_in_ulp();
    assert!(tables.matches("| sin |").count() >= 2, "{tables}");
    assert_between_marks("docs/scalars.md", "ulp", &tables);
}

#[test]
fn the_document_of_papers_is_what_the_command_says() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mxprobe"));
    let papers = text(command.args(["papers", "--format", "markdown", "-q"]).output().expect("it starts"));
    assert!(papers.contains("{4.23}") && papers.contains("a misprint"), "{papers}");
    assert_is("docs/papers.md", &papers);
}

#[test]
fn three_commands_lead_from_a_clone_to_a_page_that_compares_two_devices() {
    let readme = read("README.md");
    let block = readme.split("```sh\n").find(|block| block.starts_with("git clone ")).expect("it shows a clone");
    let (block, _) = block.split_once("```").expect("the block ends");
    let [clone, run, compare] = block.lines().collect::<Vec<_>>()[..] else { panic!("three commands: {block}") };
    assert_eq!(clone, format!("git clone {} && cd mxprobe", env!("CARGO_PKG_REPOSITORY")));
    let directory = tempfile::tempdir().unwrap();
    // The exit code of a comparison says whether anything differs.
    for (command, code) in [(run, 0), (compare, 1)] {
        let words = command.strip_prefix("cargo run --release -- ").expect("cargo runs it");
        let script = format!("\"$0\" {words}");
        let mut shell = Command::new("sh");
        shell.args(["-c", &script, env!("CARGO_BIN_EXE_mxprobe")]).current_dir(directory.path());
        let output = shell.env_remove("MXPROBE_DEVICE").output().expect("sh starts");
        assert_eq!(output.status.code(), Some(code), "{command}\n{}", String::from_utf8_lossy(&output.stderr));
    }
    let page = compare.rsplit(' ').next().unwrap();
    let page = fs::read_to_string(directory.path().join(page)).expect("the page is written");
    for wanted in ["<!doctype html>", "model of NVIDIA A100", "model of NVIDIA H100", "order.products_at_once"] {
        assert!(page.contains(wanted), "the page has no {wanted}");
    }
}

#[test]
fn every_document_is_named_and_every_link_leads_somewhere() {
    let readme = read("README.md");
    for path in files("docs", "md") {
        assert!(readme.contains(&format!("docs/{}", name(&path))), "README.md does not name {}", path.display());
    }
    for entry in fs::read_dir(root().join("examples")).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        // A separate crate, an example of this one, or a folder of programs.
        let path = entry.path();
        let commands = if path.join("Cargo.toml").exists() {
            vec![format!("--manifest-path examples/{name}/Cargo.toml")]
        } else if path.join("main.rs").exists() {
            vec![format!("--example {name}")]
        } else {
            let folders = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
            folders.map(|folder| format!(" examples/{name}/{folder}")).collect()
        };
        for command in commands {
            let named =
                files("docs", "md").iter().any(|path| read(path).contains(&command)) || readme.contains(&command);
            assert!(named, "no document has a command with `{command}`");
        }
    }
    let mut links = 0;
    let documents = files("docs", "md").into_iter().chain(files(".", "md")).chain(files("results", "md"));
    for document in documents {
        let text = fs::read_to_string(&document).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link) {
            if link.starts_with("http") || link.starts_with('#') {
                continue;
            }
            let path = document.parent().unwrap().join(link.split('#').next().unwrap());
            assert!(path.exists(), "{} links {link}", document.display());
            links += 1;
        }
    }
    assert!(links > 0, "no document has a link");
}
