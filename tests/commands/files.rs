//! Files and standard output: no results are lost, and no existing file is damaged.
#![cfg(unix)]

use std::{
    ffi::OsStr,
    fs::{self, File},
    os::unix::{ffi::OsStrExt, fs::PermissionsExt, fs::symlink},
    path::Path,
    process::Stdio,
};

use mxprobe::report::Report;

use super::{Said, model_file, mxprobe, say, say_to};

const SHORT: [&str; 7] = ["run", "--device", "sim:amx", "--op", "TDPBF16PS", "--probe", "alignment"];

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Saves a short report.
#[track_caller]
fn save(path: &Path) {
    say(&[&SHORT[..], &["-q", "--out", text(path)]].concat()).ended(0);
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_name_that_is_no_unicode_is_a_name() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join(OsStr::from_bytes(b"\xff.json"));
    let run = |more: &[&OsStr]| -> Said { mxprobe(&SHORT).args(more).output().unwrap().into() };
    run(&[OsStr::new("--out"), file.as_os_str()]).ended(0);
    let report: Report = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert!(report.tool.arguments.iter().any(|argument| argument.ends_with("\u{fffd}.json")));
    let said = Said::from(mxprobe(&["report"]).arg(&file).output().unwrap()).ended(0);
    assert!(said.out.starts_with("sim:amx"));
}

/// Probes two devices into a file, with this standard output. Returns how many reports are complete and standard error.
fn two_devices(stdout: impl Into<Stdio>, format: &str, code: i32) -> (usize, String) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("two.json");
    let arguments = ["--device", "sim:avx512", "--format", format, "--out", text(&file), "-q"];
    let said = mxprobe(&SHORT).args(arguments).args(["--op", "*bf16*"]).stdout(stdout).output().unwrap();
    let said = Said::from(said).ended(code);
    let reports: Vec<Report> = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    (reports.iter().filter(|report| report.unfinished() == Some(Vec::new())).count(), said.err)
}

#[test]
#[cfg(target_os = "linux")]
fn a_standard_output_that_is_full_or_closed_does_not_end_a_run_that_is_saved() {
    for format in ["table", "json", "markdown"] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let (complete, words) = two_devices(full, format, 2);
        assert_eq!(complete, 2, "{format}");
        assert!(words.contains("standard output cannot be written: No space left on device"), "{words}");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        assert_eq!(two_devices(writer, format, 0), (2, String::new()), "{format}");
    }
}

#[test]
fn two_devices_of_one_name_have_a_file_each() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("a")).unwrap();
    fs::create_dir(directory.path().join("out")).unwrap();
    for name in ["a-b.toml", "a/b.toml"] {
        fs::copy(model_file("amx.toml"), directory.path().join(name)).unwrap();
    }
    let arguments = ["run", "--device", "sim:a/b.toml", "--device", "sim:a-b.toml", "--probe", "alignment"];
    let mut command = mxprobe(&arguments);
    command.args(["--out", "out", "-q"]).current_dir(directory.path());
    Said::from(command.output().unwrap()).ended(0);
    let selector = |name: &str| {
        let path = directory.path().join("out").join(name);
        let report: Report = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        report.device.selector
    };
    assert_eq!(selector("sim-a-b.toml.json"), "sim:a/b.toml");
    assert_eq!(selector("sim-a-b.toml-2.json"), "sim:a-b.toml");
    assert_eq!(fs::read_dir(directory.path().join("out")).unwrap().count(), 2);
}

#[test]
fn what_a_link_leads_to_is_replaced_and_the_link_stays() {
    let directory = tempfile::tempdir().unwrap();
    let (real, link) = (directory.path().join("real.json"), directory.path().join("link.json"));
    fs::write(&real, "old").unwrap();
    symlink("real.json", &link).unwrap();
    save(&link);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    say(&["validate", text(&real)]).ended(0);
}

#[test]
fn who_may_read_a_report_is_what_the_mask_says_and_stays_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("private.json");
    let script = "umask 077; exec \"$@\"";
    let mut command = std::process::Command::new("sh");
    command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_mxprobe")]).args(SHORT).args(["-q", "--out", text(&file)]);
    Said::from(command.output().unwrap()).ended(0);
    assert_eq!(mode(&file), 0o600);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    save(&file);
    assert_eq!(mode(&file), 0o640);
}

#[test]
fn a_view_is_not_written_over_a_report_that_it_is_made_of() {
    let directory = tempfile::tempdir().unwrap();
    let (one, two) = (directory.path().join("one.json"), directory.path().join("two.json"));
    let linked = directory.path().join("linked.json");
    save(&one);
    save(&two);
    symlink(&one, &linked).unwrap();
    let before = fs::read(&one).unwrap();
    let folder = text(directory.path());
    for arguments in [
        vec!["report", text(&one), "--format", "html", "--out", text(&one)],
        vec!["report", folder, "--format", "csv", "--out", text(&two)],
        vec!["compare", text(&one), text(&two), "--out", text(&linked)],
        vec!["compare", folder, "--out", text(&one)],
    ] {
        let said = say(&arguments).ended(2);
        assert!(said.err.contains("is an input file, and would be overwritten"), "{arguments:?}: {}", said.err);
        assert_eq!(fs::read(&one).unwrap(), before);
    }
    let new = directory.path().join("new.html");
    say(&["compare", text(&one), text(&two), "--format", "html", "--out", text(&new)]).ended(0);
    say(&["compare", text(&one), text(&two), "--format", "html", "--out", text(&new)]).ended(0);
}

#[test]
fn a_file_that_cannot_be_written_is_named_and_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join(format!("{}.json", "a".repeat(300)));
    let said = say(&[&SHORT[..], &["--out", text(&file)]].concat()).ended(2);
    assert!(said.err.contains("File name too long") && !said.err.contains(".mxprobe-"), "{}", said.err);
}

#[test]
fn a_byte_order_mark_and_other_line_ends_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("report.json");
    save(&file);
    let plain = fs::read_to_string(&file).unwrap();
    for changed in [format!("\u{feff}{plain}"), plain.replace('\n', "\r\n")] {
        fs::write(&file, &changed).unwrap();
        say(&["validate", text(&file)]).ended(0);
        say(&["report", text(&file)]).ended(0);
        say_to(&["compare", "-", text(&file)], changed.as_bytes()).ended(0);
    }
    fs::write(&file, [0xff, 0xfe, b'{', 0, b'}', 0]).unwrap();
    assert!(say(&["validate", text(&file)]).ended(2).err.contains("is not UTF-8 text"));
}

#[test]
fn standard_input_is_one_report() {
    let said = say_to(&["compare", "-", "-"], b"{}").ended(2);
    assert!(said.err.contains("`-` is given twice"), "{}", said.err);
}

#[test]
fn a_key_that_stands_twice_makes_a_report_invalid() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("report.json");
    save(&file);
    let plain = fs::read_to_string(&file).unwrap();
    for key in ["\"schema\"", "\"probe\"", "\"os\""] {
        fs::write(&file, plain.replacen(key, &format!("{key}: \"x\", {key}"), 1)).unwrap();
        let said = say(&["validate", text(&file)]).ended(1);
        let words = format!("the key `{}` appears twice in one object", key.trim_matches('"'));
        assert!(said.out.contains(&words), "{}", said.out);
        assert!(say(&["report", text(&file)]).ended(2).err.contains(&words));
    }
}

#[test]
fn a_model_file_that_was_changed_is_another_device() {
    let directory = tempfile::tempdir().unwrap();
    let (model, file) = (directory.path().join("unit.toml"), directory.path().join("report.json"));
    fs::copy(model_file("amx.toml"), &model).unwrap();
    let device = format!("sim:{}", text(&model));
    let run = ["run", "--device", &device, "--op", "TDPB*", "--probe", "alignment", "--out", text(&file), "-q"];
    say(&[&run[..], &["--budget", "0.000001"]].concat()).ended(4);
    let before = fs::read(&file).unwrap();
    let resume = ["run", "--resume", text(&file), "-q"];
    fs::write(&model, fs::read_to_string(&model).unwrap() + "\n# a remark\n").unwrap();
    let said = say(&resume).ended(2);
    assert!(said.err.contains("a file that was changed since"), "{}", said.err);
    assert_eq!(fs::read(&file).unwrap(), before);
    fs::copy(model_file("amx.toml"), &model).unwrap();
    say(&resume).ended(0);
}
