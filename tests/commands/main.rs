//! The command from the outside: its output on each stream, and its exit codes.
#![allow(missing_docs, clippy::print_stderr)]

mod bad_input;
mod completion;
mod distinguish;
mod eval;
#[cfg(feature = "fault-devices")]
mod faults;
mod files;
mod first_screen;
mod formats;
mod gemm;
#[cfg(feature = "fault-devices")]
mod growing;
mod help;
mod identify;
#[cfg(unix)]
mod interrupted;
#[cfg(feature = "fault-devices")]
mod isolation;
#[cfg(unix)]
mod journal;
mod listing;
mod measurements;
mod mistakes;
mod multiword;
mod names;
#[cfg(unix)]
mod progress;
mod questions;
mod recipes;
mod run;
mod scalars;
mod schema;
mod tolerance;
mod views;
mod vulkan;

use std::{
    io::Write,
    path::PathBuf,
    process::{Command, Output, Stdio},
};

/// A limit for waits that might otherwise be endless: much longer than anything here takes on a loaded machine.
#[cfg(feature = "fault-devices")]
const LIMIT: std::time::Duration = std::time::Duration::from_secs(600);

/// The program, without the variables of this process's environment that would change its behaviour.
fn mxprobe(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mxprobe"));
    command.args(arguments).stdin(Stdio::null());
    for name in ["MXPROBE_DEVICE", "MXPROBE_EXE", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    command
}

/// The output of a finished command.
#[derive(Debug)]
struct Said {
    code: Option<i32>,
    out: String,
    err: String,
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).expect("results are UTF-8"),
            err: String::from_utf8(output.stderr).expect("notes are UTF-8"),
        }
    }
}

impl Said {
    /// Fails, showing all output, unless the command ended with this exit code.
    #[track_caller]
    fn ended(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "out:\n{}\nerr:\n{}", self.out, self.err);
        assert!(!self.err.contains("panicked"), "{}", self.err);
        self
    }
}

fn say(arguments: &[&str]) -> Said {
    mxprobe(arguments).output().expect("mxprobe starts").into()
}

fn say_to(arguments: &[&str], input: &[u8]) -> Said {
    let mut command = mxprobe(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("mxprobe starts");
    let mut stdin = child.stdin.take().expect("it is piped");
    let input = input.to_vec();
    let writer = std::thread::spawn(move || {
        let _ = stdin.write_all(&input); // a command that refuses its input leaves early
    });
    let said = child.wait_with_output().expect("mxprobe ends").into();
    writer.join().expect("the writer ends");
    said
}

/// The model file of this name in the repository.
fn model_file(name: &str) -> String {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "models/units", name].iter().collect();
    path.to_str().expect("the path is UTF-8").to_owned()
}
