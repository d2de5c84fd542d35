//! Tests on real Vulkan drivers that need no GPU: lavapipe computes; RADV and NVK on drm-shim enumerate and compile.
//!
//! `scripts/vulkan-drivers` unpacks them. Because the environment selects the driver, each case runs in a process of
//! its own: this program, started again through the drivers' `run`. Without the drivers every case is reported as
//! ignored, or, with `MXPROBE_REQUIRE_VULKAN=1`, one test fails with a message. `MXPROBE_VULKAN_RUN` names another
//! `run`; `MXPROBE_BLESS=1` rewrites the golden files.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod cases;
mod compiled;
mod model;
mod products;
mod scalars;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Failed, Trial};

use cases::{Case, all};

/// Names the case that a child process runs.
const CASE: &str = "MXPROBE_VULKAN_CASE";

fn main() -> ExitCode {
    if let Ok(name) = std::env::var(CASE) {
        let case = all().into_iter().find(|case| case.name == name).expect("a case of that name");
        (case.run)();
        return ExitCode::SUCCESS;
    }
    let arguments = Arguments::from_args();
    let runner = runner();
    let there = runner.is_file();
    let mut trials = vec![Trial::test("the_drivers_are_there_where_they_are_required", {
        let runner = runner.clone();
        move || {
            let required = std::env::var_os("MXPROBE_REQUIRE_VULKAN").is_some_and(|value| value == "1");
            if required && !there {
                return Err(Failed::from(format!("{} is missing: run scripts/vulkan-drivers", runner.display())));
            }
            Ok(())
        }
    })];
    for case in all() {
        let (kind, ignored) = match (there, case.manual) {
            (false, _) => ("ignored: run scripts/vulkan-drivers first", true),
            (true, true) => ("ignored: measures speed", true),
            (true, false) => (case.driver, false),
        };
        let runner = runner.clone();
        let trial = Trial::test(case.name.clone(), move || run(&runner, &case)).with_kind(kind);
        trials.push(trial.with_ignored_flag(ignored));
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn runner() -> PathBuf {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.vulkan/run");
    std::env::var_os("MXPROBE_VULKAN_RUN").map_or_else(default, PathBuf::from)
}

/// Runs one case in a child process with its driver, isolated from this environment's Vulkan.
fn run(runner: &Path, case: &Case) -> Result<(), Failed> {
    let program = std::env::current_exe()?;
    let mut command = Command::new(runner);
    command.arg(program).env(CASE, &case.name).env("MXPROBE_VULKAN_DRIVER", case.driver);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if ["VK_", "MESA_", "RADV_", "NVK_", "LP_", "GALLIUM_"].iter().any(|start| text.starts_with(start)) {
            command.env_remove(&name);
        }
    }
    command.env_remove("MXPROBE_VULKAN_VALIDATION").envs(case.environment.iter().copied());
    let output = command.output()?;
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if case.manual {
        print!("{text}");
    }
    if output.status.success() { Ok(()) } else { Err(format!("{}\n{text}", output.status).into()) }
}
