//! The `wgpu` backend on real Vulkan drivers that need no GPU: on lavapipe it gives the bits of the `vulkan` backend;
//! RADV on drm-shim enumerates and compiles but computes nothing.
//!
//! Each case runs in its own process: this program, started again through the drivers' `run` script. The cases are
//! reported as ignored without the features `wgpu` and `vulkan`, and without the drivers (`scripts/vulkan-drivers`
//! unpacks them); with `MXPROBE_REQUIRE_VULKAN=1` missing drivers are a failure. Without the feature the command must
//! say so.
#![allow(missing_docs)]

#[cfg(all(feature = "wgpu", feature = "vulkan"))]
mod devices;

use std::{
    path::{Path, PathBuf},
    process::{Command, ExitCode, Output},
};

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;

/// The environment variable with the case that a child process runs.
const CASE: &str = "MXPROBE_WGPU_CASE";

/// One case: its name, the driver, additional environment variables, and the function to run in the child.
struct Case {
    name: &'static str,
    driver: &'static str,
    environment: &'static [(&'static str, &'static str)],
    run: fn(),
}

#[cfg(all(feature = "wgpu", feature = "vulkan"))]
const CASES: &[Case] = devices::CASES;
#[cfg(not(all(feature = "wgpu", feature = "vulkan")))]
const CASES: &[Case] = &[];

type InCommand = fn(&Path) -> Result<(), Failed>;

/// Cases of the command, which starts its own processes.
const COMMANDS: [(&str, InCommand); 3] = [
    ("whole_runs_through_wgpu_and_through_vulkan_find_the_same", same_findings),
    ("no_adapter_is_one_error_with_help_and_exit_code_3", no_adapter),
    ("a_device_that_writes_nothing_is_reported_as_such", nothing_written),
];

fn main() -> ExitCode {
    if let Ok(name) = std::env::var(CASE) {
        let case = CASES.iter().find(|case| case.name == name).expect("a case of that name");
        (case.run)();
        return ExitCode::SUCCESS;
    }
    let arguments = Arguments::from_args();
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join(".vulkan/run");
    let runner = std::env::var_os("MXPROBE_VULKAN_RUN").map_or_else(default, PathBuf::from);
    let there = runner.is_file();
    let built = cfg!(all(feature = "wgpu", feature = "vulkan"));
    let required = std::env::var_os("MXPROBE_REQUIRE_VULKAN").is_some_and(|value| value == "1");
    let missing = format!("{} is missing: run scripts/vulkan-drivers", runner.display());
    let mut trials = vec![
        Trial::test("the_drivers_are_there_where_they_are_required", move || {
            if required && built && !there { Err(missing.into()) } else { Ok(()) }
        }),
        Trial::test("a_backend_that_was_left_out_is_refused_with_its_feature", left_out),
    ];
    let kind = match (built, there) {
        (false, _) => "ignored: built without the features wgpu and vulkan",
        (true, false) => "ignored: run scripts/vulkan-drivers first",
        (true, true) => "",
    };
    for case in CASES {
        let runner = runner.clone();
        let trial = Trial::test(case.name, move || in_child(&runner, case));
        trials.push(trial.with_kind(if there { case.driver } else { kind }).with_ignored_flag(!there));
    }
    for (name, run) in COMMANDS {
        let runner = runner.clone();
        let trial = Trial::test(name, move || run(&runner));
        trials.push(trial.with_kind(kind).with_ignored_flag(!(built && there)));
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// A program under the drivers' `run` script, with one driver and without this environment's Vulkan settings.
fn under(runner: &Path, driver: &str, program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(runner);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if ["VK_", "MESA_", "RADV_", "LP_", "GALLIUM_", "WGPU_"].iter().any(|start| text.starts_with(start)) {
            command.env_remove(&name);
        }
    }
    command.env_remove("MXPROBE_DEVICE").env("MXPROBE_VULKAN_DRIVER", driver).arg(program);
    command
}

fn in_child(runner: &Path, case: &Case) -> Result<(), Failed> {
    let mut command = under(runner, case.driver, std::env::current_exe()?);
    let output = command.env(CASE, case.name).envs(case.environment.iter().copied()).output()?;
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.success() { Ok(()) } else { Err(format!("{}\n{text}", output.status).into()) }
}

fn command(runner: &Path, driver: &str, arguments: &[&str]) -> Result<Output, Failed> {
    Ok(under(runner, driver, env!("CARGO_BIN_EXE_mxprobe")).args(arguments).output()?)
}

/// The only report of a command that must end with this exit code.
fn report(runner: &Path, driver: &str, backend: &str, wanted: i32) -> Result<Value, Failed> {
    let output = command(runner, driver, &["run", "--backend", backend, "--format", "json"])?;
    if output.status.code() != Some(wanted) {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{:?} instead of {wanted}: {errors}", output.status).into());
    }
    let value: Value = serde_json::from_slice(&output.stdout)?;
    Ok(match value {
        Value::Array(mut reports) if reports.len() == 1 => reports.remove(0),
        value => value,
    })
}

/// A finding without the results of two NaNs: the one that the driver's compiler puts first survives, which varies
/// between kernels (*measured*: llvmpipe of Mesa 26.1).
fn without_two_nans(finding: &Value) -> Value {
    let mut finding = finding.clone();
    if finding["probe"] == "specials.nan" {
        // The statement names the result of NaN in A and C.
        finding["statement"] = Value::Null;
        for key in ["a_and_b", "a_and_c", "first_and_last", "infinity_times_zero_and_c"] {
            finding["value"].as_object_mut().map(|value| value.remove(key));
        }
        let two = |dot: &Value| {
            let about = dot["about"].as_str().unwrap_or_default();
            about.starts_with("different NaNs") || about == "Inf · 0, and NaN in C"
        };
        finding["evidence"].as_array_mut().into_iter().for_each(|evidence| evidence.retain(|dot| !two(dot)));
    }
    finding
}

/// Checks that both backends have the same findings, evidence included.
fn same_findings(runner: &Path) -> Result<(), Failed> {
    let [through_wgpu, through_vulkan] =
        [report(runner, "lavapipe", "wgpu", 0)?, report(runner, "lavapipe", "vulkan", 0)?];
    let identity = |report: &Value| {
        let device = &report["device"];
        let of = |key: &str| device["properties"][key].clone();
        [device["name"].clone(), device["driver"].clone(), of("vendor_id"), of("device_id"), of("device_uuid_sha256")]
    };
    if identity(&through_wgpu) != identity(&through_vulkan) {
        return Err(format!("{:?} and {:?}", identity(&through_wgpu), identity(&through_vulkan)).into());
    }
    let operations = through_wgpu["operations"].as_array().ok_or("no operations")?;
    let is_scalar = |found: &Value| found["id"].as_str().is_some_and(|id| id.starts_with("scalar."));
    let (scalars, matrices): (Vec<&Value>, Vec<&Value>) = operations.iter().partition(|found| is_scalar(found));
    if matrices.len() != 2 || scalars.is_empty() {
        return Err(format!("{} operations on matrices, {} on scalars", matrices.len(), scalars.len()).into());
    }
    for mine in scalars {
        same_arithmetic(mine, &through_vulkan)?;
    }
    for mine in matrices {
        let others = through_vulkan["operations"].as_array().into_iter().flatten();
        let other = others.into_iter().find(|other| other["id"] == mine["id"]).ok_or("vulkan lacks it")?;
        let (found, wanted) = (&mine["findings"], &other["findings"]);
        let count = found.as_array().map_or(0, Vec::len);
        if count < 30 || found.as_array().map(Vec::len) != wanted.as_array().map(Vec::len) {
            return Err(format!("{}: {count} findings", mine["id"]).into());
        }
        for (found, wanted) in found.as_array().into_iter().flatten().zip(wanted.as_array().into_iter().flatten()) {
            let [found, wanted] = [found, wanted].map(without_two_nans);
            if found != wanted {
                return Err(format!("{}: through wgpu {found}, through Vulkan {wanted}", mine["id"]).into());
            }
        }
    }
    Ok(())
}

/// Checks that scalar findings measured through wgpu have the same values through Vulkan, for the functions of both.
fn same_arithmetic(mine: &Value, through_vulkan: &Value) -> Result<(), Failed> {
    let mut others = through_vulkan["operations"].as_array().into_iter().flatten();
    let other = others.find(|other| other["id"] == mine["id"]).ok_or_else(|| format!("vulkan lacks {}", mine["id"]))?;
    let mut common = 0;
    for found in mine["findings"].as_array().into_iter().flatten() {
        let mut others = other["findings"].as_array().into_iter().flatten();
        let Some(wanted) = others.find(|other| other["probe"] == found["probe"]) else { continue };
        // Which of two NaN an addition returns depends on the operand that the driver's compiler puts first.
        if found["probe"] == "nan.operand" {
            continue;
        }
        if found["outcome"] == "measured" && wanted["outcome"] == "measured" {
            common += 1;
            if found["value"] != wanted["value"] {
                return Err(format!("{}: through wgpu {found}, through Vulkan {wanted}", mine["id"]).into());
            }
        }
    }
    if common < 5 { Err(format!("{}: {common} findings in common", mine["id"]).into()) } else { Ok(()) }
}

fn no_adapter(runner: &Path) -> Result<(), Failed> {
    let output = command(runner, "none", &["--backend", "wgpu"])?;
    let errors = String::from_utf8_lossy(&output.stderr);
    let right = errors.contains("wgpu found no adapter through Vulkan") && errors.contains("help: ");
    if output.status.code() == Some(3) && right { Ok(()) } else { Err(format!("{:?}: {errors}", output.status).into()) }
}

/// The shim's fences signal without any work: either the buffer is unchanged, or wgpu notices the fence and gives up.
fn nothing_written(runner: &Path) -> Result<(), Failed> {
    let report = report(runner, "radv:gfx1201", "wgpu", 4)?;
    let operation = &report["operations"][0];
    let first = &operation["findings"][0];
    let reason = first["reason"].as_str().unwrap_or_default();
    let told = reason.contains("still holds what was in memory before") || reason.contains("wgpu gave up");
    if first["outcome"] != "failed" || !told {
        return Err(format!("the first finding is {first}").into());
    }
    let operations = report["operations"].as_array().into_iter().flatten();
    let mut findings = operations.flat_map(|operation| operation["findings"].as_array().into_iter().flatten());
    match findings.find(|finding| finding["outcome"] == "measured") {
        None => Ok(()),
        Some(finding) => Err(format!("measured on a device that computes nothing: {finding}").into()),
    }
}

/// Checks that the backend exists with the feature, and that one error names the feature without it.
fn left_out() -> Result<(), Failed> {
    for arguments in [&["--backend", "wgpu"][..], &["list", "--backend", "wgpu"], &["--device", "wgpu:0"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_mxprobe")).args(arguments).output()?;
        let errors = String::from_utf8_lossy(&output.stderr);
        let refused = errors.contains("this program was built without the backend `wgpu`")
            && errors.contains("help: its cargo feature adds it: `cargo build --release --features wgpu`");
        let right = if cfg!(feature = "wgpu") { !refused } else { refused && output.status.code() == Some(2) };
        if !right {
            return Err(format!("{arguments:?}: {:?}: {errors}", output.status).into());
        }
    }
    Ok(())
}
