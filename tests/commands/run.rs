//! `run`: the choice of devices, and the files of reports.

use std::fs;

use mxprobe::report::{Kind, Outcome, Report};

use super::{model_file, mxprobe, say};

fn report(text: &str) -> Report {
    serde_json::from_str(text).expect("one report")
}

#[test]
fn a_run_without_a_command_probes_every_device_or_says_that_a_model_stands_in() {
    let said = say(&["--format", "json", "--probe", "order"]);
    let reports = mxprobe::report::check::read_reports(&said.ended(0).out).unwrap();
    assert!(!reports.is_empty());
    for report in &reports {
        match report.device.kind {
            Kind::Hardware => assert_eq!(report.notes, Vec::<String>::new()),
            Kind::Model => assert!(report.notes[0].starts_with("no matrix unit was found; this is the model of ")),
            Kind::Software => panic!("{} was not asked for", report.device.selector),
        }
    }
}

#[test]
fn one_operation_and_one_probe_are_probed() {
    let said = say(&["run", "--device", "sim:amx", "--op", "TDPBF16PS", "--probe", "order.tree", "--format", "json"]);
    let report = report(&said.ended(0).out);
    assert_eq!(report.operations.len(), 1);
    assert_eq!(report.operations[0].findings.len(), 1);
    let finding = report.operations[0].finding("order.tree").unwrap();
    assert_eq!(finding.outcome, Outcome::Measured);
    assert!(!finding.evidence.is_empty());
    assert!(!report.time.interrupted);
}

#[test]
fn the_table_has_a_line_for_each_finding_and_the_bits_behind_it_on_request() {
    let arguments = ["run", "--device", "sim:amx", "--op", "TDPBF16PS"];
    let brief = say(&arguments).ended(0).out;
    assert!(brief.starts_with("sim:amx  model of Intel AMX"), "{brief}");
    assert!(brief.contains("nothing was measured on silicon") && brief.contains("order.tree"), "{brief}");
    assert!(brief.lines().all(|line| line.chars().count() <= 100), "{brief}");
    let long = say(&[&arguments[..], &["-v"]].concat()).ended(0).out;
    assert!(long.contains("would return 0x") && long.contains("→  d = 0x"), "{long}");
}

#[test]
fn a_model_file_is_probed_under_the_name_that_selected_it() {
    let device = format!("sim:{}", model_file("avx512.toml"));
    let said = say(&["run", "--device", &device, "--op", "VDPBF16PS", "--format", "json"]).ended(0);
    assert_eq!(report(&said.out).device.selector, device);
}

#[test]
fn reports_are_written_to_a_file_or_one_a_device_to_a_directory() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("report.json");
    let devices = ["run", "--device", "sim:amx", "--device", "sim:avx512", "--op", "*.bf16.*"];
    let out = file.to_str().unwrap();
    let said = say(&[&devices[..], &["--out", out]].concat()).ended(0);
    assert!(said.out.contains("sim:amx") && said.out.contains("sim:avx512"), "{}", said.out);
    let reports: Vec<Report> = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(reports.len(), 2);
    let directory = directory.path().join("reports");
    fs::create_dir(&directory).unwrap();
    say(&[&devices[..], &["--out", directory.to_str().unwrap(), "-q"]].concat()).ended(0);
    let mut names: Vec<_> = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["sim-amx.json", "sim-avx512.json"]);
    let text = fs::read_to_string(directory.join("sim-amx.json")).unwrap();
    assert_eq!(report(&text).device.selector, "sim:amx");
}

#[test]
fn a_saved_report_is_shown_as_the_run_showed_it() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("report.json");
    let file = file.to_str().unwrap();
    let run = |more: &[&'static str]| {
        let whole = ["run", "--device", "sim:amx", "--out", file];
        say(&[&whole[..], more].concat()).ended(0).out
    };
    let first_screen = run(&[]);
    assert_eq!(format!("{}saved: {file}\n", say(&["report", file]).ended(0).out), first_screen);
    let listed = run(&["--op", "TDPBF16PS"]);
    assert_eq!(say(&["report", file, "-v"]).ended(0).out, listed);
    let again = say(&["report", file, "--format", "json"]).ended(0).out;
    assert_eq!(again, fs::read_to_string(file).unwrap());
}

#[test]
fn the_environment_names_the_device_where_nothing_else_does() {
    let run = |arguments: &[&str]| -> super::Said {
        mxprobe(arguments).env("MXPROBE_DEVICE", "sim:avx512").output().unwrap().into()
    };
    assert!(run(&["--probe", "order"]).ended(0).out.starts_with("sim:avx512"));
    assert!(run(&["--probe", "order", "--device", "sim:amx"]).ended(0).out.starts_with("sim:amx"));
    assert!(run(&["schema"]).ended(0).out.contains("$schema"));
}

#[test]
fn of_the_models_one_is_probed_unless_all_are_asked_for() {
    let said = say(&["--backend", "sim", "--probe", "self_test"]).ended(0);
    assert!(said.err.contains("--device sim:all"), "{}", said.err);
    assert_eq!(say(&["--backend", "sim", "--probe", "self_test", "-q"]).ended(0).err, "");
}

#[test]
fn a_backend_without_a_device_is_exit_code_3_with_the_reason() {
    // The loader or its driver is missing; either is a reason.
    let said: super::Said = mxprobe(&["--backend", "vulkan"])
        .env("VK_DRIVER_FILES", "/nonexistent.json")
        .env("VK_ICD_FILENAMES", "/nonexistent.json")
        .output()
        .unwrap()
        .into();
    let said = said.ended(3);
    assert_eq!(said.out, "");
    assert!(said.err.starts_with("error: no usable device for `--backend vulkan`"), "{}", said.err);
    assert!(said.err.contains("\n  vulkan: ") && said.err.contains("\nhelp: "), "{}", said.err);
}

#[test]
fn the_report_of_a_model_file_says_which_text_it_was_and_no_directory() {
    let file = super::model_file("amx.toml");
    let device = format!("sim:{file}");
    let said = say(&["run", "--device", &device, "--op", "TDPBSSD", "--format", "json", "-q"]).ended(0);
    let report = report(&said.out);
    let sum = std::process::Command::new("sha256sum").arg(&file).output();
    if let Ok(sum) = sum {
        let sum = String::from_utf8(sum.stdout).unwrap();
        assert_eq!(sum.split(' ').next(), report.device.properties.get("model_sha256").map(String::as_str));
    }
    assert_eq!(report.device.properties["model_sha256"].len(), 64);
    assert!(report.tool.arguments.contains(&"sim:…/amx.toml".to_owned()), "{:?}", report.tool.arguments);
    let shipped = say(&["run", "--device", "sim:amx", "--op", "TDPBSSD", "--format", "json", "-q"]).ended(0);
    assert!(!self::report(&shipped.out).device.properties.contains_key("model_sha256"));
}
