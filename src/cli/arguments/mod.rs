//! The arguments.

mod bench;
mod devices;
mod examples;
mod format;
mod gemm;
mod models;
mod run;
mod saved;
mod screen;
mod screening;
mod sharding;
mod tolerance;
mod values;

use std::{
    ffi::OsString,
    sync::{LazyLock, OnceLock},
};

use clap::{CommandFactory, Parser, Subcommand};

pub(crate) use bench::{Bench, BenchData};
pub(crate) use devices::{Devices, List, Worker};
pub(crate) use examples::examples;
pub(crate) use format::{Format, PageFormat};
pub(crate) use gemm::{Accumulate, Experiment, Gemm, GemmMethod, WordRounding};
pub(crate) use models::{ALL_PROPERTIES, Conformance, Distinguish, Eval, Identify, Invariance, Reach, Verify};
pub(crate) use run::Run;
pub(crate) use saved::{Compare, Explain, Fleet, Papers, Schema, SchemaOf, Site, Validate, View};
pub(crate) use screen::{Screen, ScreenArguments};
pub(crate) use screening::{ScreenFormat, Screening};
pub(crate) use sharding::Merge;
pub(crate) use tolerance::{Check, Tolerance, ToleranceUnit};

/// Finds out how a matrix unit really computes, with the bits that prove it.
///
/// Without a command, `run`: probes every usable device of this machine.
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

/// Returns the command with its help.
pub(crate) fn command() -> clap::Command {
    examples::shown(CommandLine::command())
}

static VERSION: LazyLock<String> = LazyLock::new(crate::report::build_version);

/// Returns the arguments of this program, for a report. Invalid Unicode, which file names may contain, is replaced by
/// U+FFFD.
pub(crate) fn given() -> Vec<String> {
    let all = GIVEN.get().cloned().unwrap_or_else(|| std::env::args_os().collect());
    all.iter().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect()
}

/// The arguments with which the command was called.
static GIVEN: OnceLock<Vec<OsString>> = OnceLock::new();

/// Stores the arguments of the command, unless some are stored already, and returns the stored ones.
pub(crate) fn keep(arguments: Vec<OsString>) -> Vec<OsString> {
    GIVEN.get_or_init(|| arguments).clone()
}

const EXIT_CODES: &str = "\
Exit codes: 0 done; 1 the answer is no; 2 usage or I/O; 3 no usable device; 4 finished, but something failed or timed \
out; 130 interrupted";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Probe devices and report what was found (the default)
    Run(Run),
    /// List devices and operations, including those that cannot be used, with the reasons
    List(List),
    /// Write a bit-exact model of a unit or library, and try to break it
    Identify(Identify),
    /// Test whether an element of a product depends on how many rows and columns are computed with it
    #[command(
        after_help = "Exit codes: 0 no element depends on it; 1 one does; 2 usage or I/O; 3 no usable device; 4 a shape failed; 130 interrupted"
    )]
    Invariance(Invariance),
    /// Compare a device with a model, bit for bit
    Verify(Verify),
    /// Compute dots given as JSON lines on a device or a model
    Eval(Eval),
    /// Multiply whole matrices on a unit, or measure how the error grows with the length of sums
    Gemm(Box<Gemm>),
    /// Bound the error of a unit's sums, and give each element of a product the interval it must fall in
    Tolerance(Tolerance),
    /// Find the elements of a product that lie outside of what a unit can give, and by how much
    #[command(after_help = "Exit codes: 0 every element is inside; 1 some lie outside; 2 usage or I/O")]
    Check(Check),
    /// Measure throughput with operands in registers, and check what is timed
    Bench(Bench),
    /// Screen devices for wrong bits, and locate them by core, lane, tile and bit
    #[command(after_help = "Exit codes: 0 healthy; 1 wrong bits; 2 could not judge, usage or I/O; 130 interrupted")]
    Screen(Box<Screening>),
    /// Find what is wrong with a device, or with a program that speaks the device protocol
    #[command(after_help = "Exit codes: 0 nothing is wrong; 1 something is; 2 usage or I/O; 3 no usable device")]
    Conformance(Conformance),
    /// Find a dot on which two models differ, or prove that there is none
    #[command(after_help = "Exit codes: 0 proved equal; 1 they differ; 2 usage or I/O; 4 neither was decided")]
    Distinguish(Distinguish),
    /// Show saved reports: as a table, Markdown, CSV or a page for a browser
    Report(View),
    /// Compare devices, models and saved reports: what differs, by which property, and with which bits
    Compare(Compare),
    /// Merge reports and screens of many machines: classes of equal behaviour, what deviates, what changed
    #[command(after_help = "Exit codes: 0 all alike and healthy; 1 a device deviates or is wrong; 2 usage or I/O")]
    Fleet(Fleet),
    /// Merge the shards of one job (`--shard I/N`) into the report of one run
    #[command(
        after_help = "Exit codes: those of the command that made the shards; 2 if they are not all shards of one job, each once"
    )]
    Merge(Merge),
    /// Write web pages about all units, from models and saved reports: a matrix, one page per unit and one per format
    Site(Site),
    /// Recompute the numbers that papers on matrix units print, and explain each difference
    #[command(
        after_help = "Exit codes: 0 every number is equal or explained; 1 one differs; 2 usage or I/O; 3 no usable device"
    )]
    Papers(Papers),
    /// Explain a probe, a model, a format, a family of operations or a field of the report
    Explain(Explain),
    /// Print the JSON Schema of reports or other output
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
        /// The command to document; the page of mxprobe if omitted
        command: Option<String>,
    },
    /// Answer the device protocol, so that another mxprobe can reach the devices of this machine
    ///
    /// `mxprobe run --device 'exec:ssh HOST mxprobe worker'` probes the hardware of HOST.
    Worker(Worker),
}
