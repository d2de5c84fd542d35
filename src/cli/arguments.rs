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

/// What `bench` does.
#[derive(Debug, Args)]
pub(crate) struct Bench {
    #[command(flatten)]
    pub(crate) devices: Devices,
    /// Only operations whose id or alias matches, with `*` and `?` (repeatable)
    #[arg(long, value_name = "GLOB")]
    pub(crate) op: Vec<String>,
    /// Milliseconds that a sample takes
    #[arg(long, value_name = "MS", value_parser = milliseconds, default_value = "20")]
    pub(crate) time: Duration,
    /// Samples of each number
    #[arg(long, value_name = "N", default_value = "9", value_parser = clap::value_parser!(u64).range(7..=10_000))]
    pub(crate) samples: u64,
    /// What elements are drawn from; zeros flatter
    #[arg(long, value_enum, default_value = "random")]
    pub(crate) data: BenchData,
    /// The same as `--data zeros`
    #[arg(long, conflicts_with = "data")]
    pub(crate) zeros: bool,
    /// The seed of the elements
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) seed: u64,
    /// How results are printed: for people or for programs
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
    /// Also write the JSON to a file, or to one file a device if it is a directory; it grows with the run
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Seconds that one operation may take
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "120")]
    pub(crate) timeout: Duration,
    /// Seconds that each device may take; what is not reached by then is skipped
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) budget: Option<Duration>,
}

/// What elements are drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BenchData {
    /// Values from -1 to 1, or any integers
    Random,
    /// -1, 0 and 1
    Small,
    /// +0
    Zeros,
}

/// What `gemm` does: D = A·B + C, or an experiment.
#[derive(Debug, Args)]
pub(crate) struct Gemm {
    /// The device: cpu:0, cuda:0, sim:h100, sim:FILE.toml, …
    #[arg(long, value_name = "SELECTOR", env = "MXPROBE_DEVICE", hide_env_values = true)]
    pub(crate) device: String,
    /// The operation: an id or an alias; an experiment chooses its own where none is named
    #[arg(long, value_name = "OP")]
    pub(crate) op: Option<String>,
    /// A, m×k, as a NumPy file: values, or bits as unsigned integers of the format's size
    #[arg(long, value_name = "FILE.npy")]
    pub(crate) a: Option<PathBuf>,
    /// B, k×n
    #[arg(long, value_name = "FILE.npy")]
    pub(crate) b: Option<PathBuf>,
    /// C, m×n [default: +0]
    #[arg(long, value_name = "FILE.npy")]
    pub(crate) c: Option<PathBuf>,
    /// Draw A and B instead, of these sizes, uniformly, as f32 values
    #[arg(long, value_name = "M,N,K", value_parser = sizes, conflicts_with_all = ["a", "b"])]
    pub(crate) random: Option<[usize; 3]>,
    /// Where elements are drawn from: LOW is left out, HIGH is not
    #[arg(long, value_name = "LOW,HIGH", value_parser = interval, default_value = "0,1", allow_hyphen_values = true)]
    pub(crate) interval: (f64, f64),
    /// The seed of NumPy's legacy stream (`numpy.random.RandomState`) that elements are drawn from
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u32,
    /// Where D goes, as a NumPy file; an experiment's JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Write D as bits, unsigned integers, and not as values
    #[arg(long)]
    pub(crate) bits: bool,
    /// Words of the operation's format that each element of A and of B becomes
    #[arg(long, value_name = "P", default_value_t = 1)]
    pub(crate) words: usize,
    /// Multiply every word of A with every word of B, and not only those with i + j <= P + 1
    #[arg(long)]
    pub(crate) all_products: bool,
    /// How an element is rounded to a word
    #[arg(long, value_enum, default_value_t = WordRounding::Rne)]
    pub(crate) split_rounding: WordRounding,
    /// Take powers of two out of each row of A and column of B before they are split, and give them back at the end
    #[arg(long)]
    pub(crate) scale: bool,
    /// Store the second word 2^BITS times as large, the third 2^(2*BITS), and so on
    #[arg(long, value_name = "BITS", default_value_t = 0)]
    pub(crate) lift: u8,
    /// How the words are used
    #[arg(long, value_enum, default_value_t = GemmMethod::Multiword)]
    pub(crate) method: GemmMethod,
    /// Where the largest product is added: in the unit, or in blocks of k that are added outside it
    #[arg(long, value_enum, default_value_t = Accumulate::Unit)]
    pub(crate) accumulate: Accumulate,
    /// Products in a block
    #[arg(long, value_name = "B", default_value_t = 256)]
    pub(crate) block: usize,
    /// Measure instead: how errors grow with n, or how fast and exact words are beside a library
    #[arg(long, value_enum, conflicts_with_all = ["a", "b", "c", "random"])]
    pub(crate) experiment: Option<Experiment>,
    /// The lengths of an experiment, as exponents of 2
    #[arg(long, value_name = "FIRST,LAST", value_parser = exponents, default_value = "9,20")]
    pub(crate) exponents: (u32, u32),
    /// Rows and columns of the matrices of `yardstick`
    #[arg(long, value_name = "N", default_value_t = 2048)]
    pub(crate) size: usize,
    /// How often `yardstick` times each way
    #[arg(long, value_name = "COUNT", default_value_t = 7)]
    pub(crate) rounds: usize,
    /// Also draw an experiment
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) svg: Option<PathBuf>,
    /// How results are printed: for people or for programs
    #[arg(long, value_enum, default_value_t = Printed::Table)]
    pub(crate) format: Printed,
}

/// How a result that is no report is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Printed {
    /// For people
    Table,
    /// For programs
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WordRounding {
    /// To nearest, ties to even
    Rne,
    /// Toward zero
    Rz,
    /// Down
    Rd,
    /// Up
    Ru,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GemmMethod {
    /// Fasi, Higham, Lopez, Mary and Mikaitis 2023
    Multiword,
    /// Markidis et al. 2018: two words, four products
    Markidis,
    /// Ootomo and Yokota 2022: two words, sums outside the unit
    Ootomo,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Accumulate {
    /// In the unit
    Unit,
    /// Blocks in f32 (FABsum-v1)
    FabsumF32,
    /// Blocks in f64 (FABsum-v2)
    FabsumF64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Experiment {
    /// Errors of words and accumulations against n, and what in the unit they come from
    Growth,
    /// Words on the unit beside a library's product of f32 matrices: time and error
    Yardstick,
}

/// Numbers with a comma between them.
fn numbers<T: std::str::FromStr, const N: usize>(text: &str) -> Result<[T; N], String> {
    let wrong = || format!("`{text}` is not {N} numbers with commas between them");
    let found: Vec<T> =
        text.split(',').map(|part| part.trim().parse().map_err(|_| wrong())).collect::<Result<_, _>>()?;
    found.try_into().map_err(|_| wrong())
}

fn sizes(text: &str) -> Result<[usize; 3], String> {
    let sizes: [usize; 3] = numbers(text)?;
    let elements = sizes[0].saturating_mul(sizes[2]).max(sizes[1].saturating_mul(sizes[2]));
    if sizes.contains(&0) || elements > 1 << 30 || sizes[0].saturating_mul(sizes[1]) > 1 << 30 {
        return Err(format!("`{text}`: sizes are 1 or more, and no matrix has more than 2^30 elements"));
    }
    Ok(sizes)
}

fn interval(text: &str) -> Result<(f64, f64), String> {
    let [low, high]: [f64; 2] = numbers(text)?;
    if low < high && low.is_finite() && high.is_finite() {
        Ok((low, high))
    } else {
        Err(format!("`{text}`: the first end is below the second, and both are finite"))
    }
}

fn exponents(text: &str) -> Result<(u32, u32), String> {
    let [first, last]: [u32; 2] = numbers(text)?;
    if first <= last && last <= 24 {
        Ok((first, last))
    } else {
        Err(format!("`{text}`: 0 to 24, the first not above the last"))
    }
}

#[derive(Debug, Args)]
pub(crate) struct Identify {
    /// The device: cpu:0, vulkan:0, sim:h100, sim:FILE.toml, …
    #[arg(long, value_name = "SELECTOR", env = "MXPROBE_DEVICE", hide_env_values = true)]
    pub(crate) device: String,
    /// Only operations whose id or alias matches, with `*` and `?` (repeatable)
    #[arg(long, value_name = "GLOB")]
    pub(crate) op: Vec<String>,
    /// The model file to write
    #[arg(long, value_name = "MODEL.toml")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) inputs: Inputs,
}

#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// The device: cpu:0, vulkan:0, sim:h100, sim:FILE.toml, …
    #[arg(long, value_name = "SELECTOR", env = "MXPROBE_DEVICE", hide_env_values = true)]
    pub(crate) device: String,
    /// The model: a shipped one such as h100 or mi300x@VARIANT, or a file
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: String,
    /// Only operations whose id or alias matches, with `*` and `?` (repeatable); else every one that the model has
    #[arg(long, value_name = "GLOB")]
    pub(crate) op: Vec<String>,
    /// Dots of each operation, at the least
    #[arg(long, value_name = "N", default_value = "1000000", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: u64,
    #[command(flatten)]
    pub(crate) inputs: Inputs,
}

/// What inputs are drawn from, and how a device is reached and results are printed.
#[derive(Debug, Args)]
pub(crate) struct Inputs {
    /// What inputs are drawn from: the same number gives the same inputs
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) seed: u64,
    /// How results are printed: for people or for programs
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Printed,
    /// Seconds that a device that is no model may say nothing
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "120")]
    pub(crate) timeout: Duration,
    /// Reach the device from this process, without a time limit: what a debugger needs
    #[arg(long)]
    pub(crate) no_isolation: bool,
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
pub(crate) struct Distinguish {
    /// A model: h100, mi300x@VARIANT, or a file such as ./mine.toml
    #[arg(value_name = "MODEL")]
    pub(crate) one: String,
    /// Another model
    #[arg(value_name = "MODEL")]
    pub(crate) other: String,
    /// The operation: an id, an alias or a pattern that matches only one
    #[arg(long, value_name = "OP")]
    pub(crate) op: String,
    /// What the search draws from
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Look at finite inputs only: no NaN and no infinity among them
    #[arg(long)]
    pub(crate) finite: bool,
    /// Seconds after which nothing more is tried
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "60")]
    pub(crate) budget: Duration,
    /// Also write the question as SMT-LIB 2 (QF_BV): `unsat` means equal
    #[arg(long, value_name = "FILE")]
    pub(crate) smt2: Option<PathBuf>,
    /// Also write the question as clauses (DIMACS)
    #[arg(long, value_name = "FILE")]
    pub(crate) dimacs: Option<PathBuf>,
    /// If they are equal, write and check the proof that refutes those clauses (DRAT)
    #[arg(long, value_name = "FILE")]
    pub(crate) proof: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct View {
    /// Reports, arrays of reports, directories of them; `-` for standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// How they are shown
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
    /// Write to a file instead of standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Compare {
    /// Reports, arrays of reports, directories of them: two reports or more
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Show what is equal or open too
    #[arg(long)]
    pub(crate) all: bool,
    /// How the comparison is shown
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
    /// Write to a file instead of standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// A probe (with `*` and `?`), a model such as sim:h100, a format, a family of operations, or a field of the
    /// report; without it, the names are listed
    #[arg(conflicts_with = "trace")]
    pub(crate) name: Option<String>,
    /// Show how a model computes dots, term by term; they are given as `eval` takes them
    #[arg(long, requires_all = ["device", "op"])]
    pub(crate) trace: bool,
    /// The model whose computation is traced: sim:h100, sim:FILE.toml
    #[arg(long, value_name = "SELECTOR", requires = "trace")]
    pub(crate) device: Option<String>,
    /// The operation that is traced: an id, an alias or a pattern that matches only one
    #[arg(long, value_name = "OP", requires = "trace")]
    pub(crate) op: Option<String>,
    /// The dot that is traced, as one line of JSON; without it, lines are read from standard input
    #[arg(long, value_name = "JSON", requires = "trace")]
    pub(crate) dot: Option<String>,
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
    /// What `compare --format json` prints
    Comparison,
    /// What `identify --format json` prints
    Identification,
    /// What `verify --format json` prints
    Verification,
    /// What `bench --format json` prints
    Bench,
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

fn milliseconds(text: &str) -> Result<Duration, String> {
    let milliseconds: f64 = text.parse().map_err(|_| format!("`{text}` is no number of milliseconds"))?;
    if milliseconds > 0.0 && milliseconds <= 60_000.0 {
        Ok(Duration::from_secs_f64(milliseconds / 1e3))
    } else {
        Err(format!("`{text}` is not above 0 and at most 60000 milliseconds"))
    }
}
