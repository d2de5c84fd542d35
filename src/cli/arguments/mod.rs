//! The arguments.

mod bench;
mod gemm;
mod models;
mod saved;
mod screen;
mod values;

use std::{path::PathBuf, sync::LazyLock, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use bench::{Bench, BenchData};
pub(crate) use gemm::{Accumulate, Experiment, Gemm, GemmMethod, WordRounding};
pub(crate) use models::{Distinguish, Eval, Identify, Inputs, Verify};
pub(crate) use saved::{Compare, Explain, Schema, SchemaOf, TextFormat, Validate, View};
pub(crate) use screen::{Screen, ScreenArguments};
use values::seconds;

/// Finds out how a matrix unit really computes, with the bits that prove it.
///
/// Without a command, `run`: every usable device of this machine is probed.
#[derive(Debug, Parser)]
#[command(
    name = "mxprobe",
    version = VERSION.as_str(),
    after_help = EXIT_CODES,
    disable_help_subcommand = false,
    subcommand_help_heading = "Commands"
)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) run: Run,
    #[command(flatten)]
    pub(crate) screen: ScreenArguments,
}

static VERSION: LazyLock<String> = LazyLock::new(mxprobe::report::build_version);

/// What this program was given, for a report. What is no Unicode, as the name of a file may be, stands with U+FFFD in it.
pub(crate) fn given() -> Vec<String> {
    std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect()
}

const EXIT_CODES: &str = "\
Exit codes: 0 done; 1 the answer is no; 2 usage or I/O; 3 no usable device; 4 finished, but something failed or timed \
out; 130 interrupted";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Probe devices and report what was found (the default)
    Run(Run),
    /// List devices and operations, and what cannot be used and why
    List(List),
    /// Write the bit-exact model of whatever computes, and try to break it
    Identify(Identify),
    /// Compare a device with a model, bit for bit
    Verify(Verify),
    /// Compute dots given as JSON lines on a device or a model
    Eval(Eval),
    /// Multiply whole matrices on a unit, or measure how the error grows with the length of sums
    Gemm(Box<Gemm>),
    /// Measure throughput with operands in registers, and check what is timed
    Bench(Bench),
    /// Find a dot on which two models differ, or prove that there is none
    #[command(after_help = "Exit codes: 0 proved equal; 1 they differ; 2 usage or I/O; 4 neither was decided")]
    Distinguish(Distinguish),
    /// Show saved reports: as a table, Markdown, CSV or a page for a browser
    Report(View),
    /// Compare saved reports: what differs, by which property, and with which bits
    Compare(Compare),
    /// Say what a probe, a model, a format, a family of operations or a field of the report means
    Explain(Explain),
    /// Print the JSON Schema of reports or listings
    Schema(Schema),
    /// Check a saved report
    Validate(Validate),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print a manual page
    Man {
        /// The command it is about; without it, the page of mxprobe
        command: Option<String>,
    },
    /// The other end of an isolated device
    #[command(name = "__worker", hide = true)]
    Worker,
}

/// Which devices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub(crate) struct Devices {
    /// Look only at devices of this backend (repeatable)
    #[arg(long, value_name = "BACKEND")]
    pub(crate) backend: Vec<String>,
    /// Take this device (repeatable): BACKEND:INDEX, BACKEND:NAME or a unique part of its name, BACKEND:all,
    /// sim:MODEL, sim:FILE.toml. `run` and `eval` take it from MXPROBE_DEVICE where it is not given
    #[arg(long, value_name = "SELECTOR")]
    pub(crate) device: Vec<String>,
    /// Reach devices from this process, without a time limit: what a debugger needs
    #[arg(long)]
    pub(crate) no_isolation: bool,
}

impl Devices {
    /// What `--device` says; where neither it nor `--backend` is given, what the environment says.
    pub(crate) fn selectors(&self) -> Vec<String> {
        let own = self.device.iter().filter(|text| !text.is_empty()).cloned().collect::<Vec<_>>();
        if !own.is_empty() || !self.backend.is_empty() {
            return own;
        }
        std::env::var("MXPROBE_DEVICE").ok().filter(|text| !text.is_empty()).into_iter().collect()
    }
}

/// What `run` does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) devices: Devices,
    /// Only operations whose id or alias matches, with `*` and `?` (repeatable)
    #[arg(long, value_name = "GLOB")]
    pub(crate) op: Vec<String>,
    /// Also compare each operation, bit for bit, with this model: a shipped one such as h100, or a file
    #[arg(long, value_name = "MODEL")]
    pub(crate) expect: Option<String>,
    /// Only probes whose name matches or begins so (repeatable); `mxprobe explain` lists them
    #[arg(long, value_name = "GLOB")]
    pub(crate) probe: Vec<String>,
    /// How results are printed: for people or for programs
    #[arg(long, value_enum)]
    pub(crate) format: Option<Format>,
    /// Also write the JSON report to a file, or to one file a device if it is a directory; it grows with the run
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Seconds that one operation may take on a device that is no model [default: 60]
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,
    /// Seconds that the whole run may take; what is not reached by then is skipped
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = seconds)]
    pub(crate) budget: Option<Duration>,
    /// Go on with a report that was left unfinished: ask again what failed, was skipped or is missing, in the same file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["backend", "op", "probe", "out"])]
    pub(crate) resume: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A table for people
    Table,
    /// The report; an array where there are several devices
    Json,
    /// A document; with -v the bits behind findings
    Markdown,
    /// One row a finding
    Csv,
    /// One page that needs nothing else, with the bits behind findings
    Html,
}

impl Format {
    /// What shows reports so.
    pub(crate) fn view(self, screen: Screen) -> Box<dyn mxprobe::report::View> {
        match self {
            Self::Table => Box::new(mxprobe::report::Table(screen.style)),
            Self::Json => Box::new(mxprobe::report::Json),
            Self::Markdown => Box::new(mxprobe::report::Markdown { evidence: screen.verbose }),
            Self::Csv => Box::new(mxprobe::report::Csv),
            Self::Html => Box::new(mxprobe::report::Html),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    pub(crate) devices: Devices,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// How a result that is no report is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Printed {
    /// For people
    Table,
    /// For programs
    Json,
}
