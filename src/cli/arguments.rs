//! The arguments.

use std::{io::IsTerminal, path::PathBuf, sync::LazyLock, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum};

use mxprobe::report::Style;

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

const EXIT_CODES: &str = "\
Exit codes: 0 done; 1 the answer is no; 2 usage or I/O; 3 no usable device; 4 finished, but something failed or timed \
out; 130 interrupted";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Probe devices and report what was found (the default)
    Run(Run),
    /// List devices and operations, and what cannot be used and why
    List(List),
    /// Compute dots given as JSON lines on a device or a model
    Eval(Eval),
    /// Show a saved report
    Report(View),
    /// Say what a probe, a model or a field of the report means
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
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,
    /// Seconds that the whole run may take; what is not reached by then is skipped
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
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
}

#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    pub(crate) devices: Devices,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Eval {
    /// The device: cpu:0, sim:h100, sim:FILE.toml, …
    #[arg(long, value_name = "SELECTOR", env = "MXPROBE_DEVICE", hide_env_values = true)]
    pub(crate) device: String,
    /// The operation: an id, an alias or a pattern that matches only one
    #[arg(long, value_name = "OP")]
    pub(crate) op: String,
}

#[derive(Debug, Args)]
pub(crate) struct View {
    /// The report, or `-` for standard input
    pub(crate) file: PathBuf,
    /// How it is printed
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// A probe (with `*` and `?`), a model such as sim:h100, or a field of the report; without it, the probes are listed
    pub(crate) name: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// What it describes
    #[arg(value_enum, default_value = "report")]
    pub(crate) of: SchemaOf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaOf {
    /// What `run --format json` and `--out` write
    Report,
    /// What `list --json` prints
    List,
}

#[derive(Debug, Args)]
pub(crate) struct Validate {
    /// The report, an array of reports, or a listing; `-` for standard input
    pub(crate) file: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct ScreenArguments {
    /// Say nothing but results and errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// Show more: the evidence behind findings, every operation of a listing
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    /// When to use colours; `NO_COLOR` is respected
    #[arg(long, global = true, value_enum, default_value = "auto", value_name = "WHEN")]
    pub(crate) color: Color,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl Color {
    pub(crate) fn write_global(self) {
        match self {
            Self::Auto => anstream::ColorChoice::Auto,
            Self::Always => anstream::ColorChoice::Always,
            Self::Never => anstream::ColorChoice::Never,
        }
        .write_global();
    }
}

/// How much is said, and how it looks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Screen {
    pub(crate) quiet: bool,
    pub(crate) verbose: bool,
    pub(crate) style: Style,
}

impl ScreenArguments {
    pub(crate) fn screen(&self) -> Screen {
        let stdout = std::io::stdout();
        let color = anstream::AutoStream::choice(&stdout) != anstream::ColorChoice::Never;
        let columns = stdout.is_terminal().then(terminal_size::terminal_size).flatten();
        let default = Style::default();
        let width = columns.map_or(default.width, |(terminal_size::Width(width), _)| usize::from(width).max(60));
        let verbose = self.verbose > 0;
        Screen { quiet: self.quiet, verbose, style: Style { width, evidence: verbose, color } }
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("`{text}` is no number of seconds"))?;
    if seconds > 0.0 && seconds <= 86_400.0 {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err(format!("`{text}` is not above 0 and at most 86400 seconds"))
    }
}
