//! The command: arguments, the one registry of backends, hints, exit codes.

mod arguments;
mod choose;
mod commands;
mod completion;
mod failure;
mod io;
mod mistakes;

use std::{ffi::OsString, process::ExitCode};

use crate::clock;

use arguments::{Command, CommandLine};
pub use choose::{open::open, registry::Backends};
use clap::FromArgMatches;
use commands::{
    bench, check, compare, conformance, distinguish, eval, explain, fleet, gemm, identify, invariance, list, manual,
    merge, papers, report, run, screen, site, tolerance, validate, verify, worker,
};
use failure::{Failure, Outcome};
use io::output;

impl Backends {
    /// Runs the command given by the arguments of this process, with these backends.
    #[must_use]
    pub fn main(self) -> ExitCode {
        ExitCode::from(self.run(std::env::args_os().collect()))
    }

    /// Runs the command given by these arguments, the program's name first, and returns the exit code: for a program
    /// that embeds this command. [`started_by`](Self::started_by) must say how the command is started again.
    ///
    /// Output of clap itself, such as that of `--help` or for a wrong option, is printed as well.
    #[must_use]
    pub fn run(self, arguments: Vec<OsString>) -> u8 {
        self.install();
        match completion::answer(&arguments) {
            Ok(false) => {}
            Ok(true) => return 0,
            Err(failure) => return failure.report(),
        }
        let arguments = arguments::keep(arguments);
        let parsed = arguments::command().try_get_matches_from(&arguments);
        let line = match parsed.and_then(|matches| CommandLine::from_arg_matches(&matches)) {
            Ok(line) => line,
            Err(said) => {
                if let Some(mistake) = mistakes::answer(&said, &arguments) {
                    return mistake.report();
                }
                // If the terminal is closed, there is nowhere left to report the error.
                let _ = said.print();
                return if said.use_stderr() { failure::USAGE } else { 0 };
            }
        };
        line.screen.color.write_global();
        if let Err(why) = clock::fixed() {
            return Failure::usage(why).report();
        }
        match dispatch(line) {
            Ok(code) => code,
            Err(failure) => failure.report(),
        }
    }

    /// Sets the command that starts this program again as the process of a device: a program and its first arguments,
    /// which are followed by `worker`. The default is the running executable.
    #[must_use]
    pub fn started_by(self, program: Vec<OsString>) -> Self {
        choose::started_by(program);
        self
    }
}

fn dispatch(line: CommandLine) -> Outcome {
    let screen = line.screen.screen();
    let Some(command) = line.command else { return run::run(&line.run, screen) };
    if line.run != arguments::Run::default() && !matches!(command, Command::Worker(_)) {
        return Err(Failure::usage("options of `run` and of devices go after the command, not before it")
            .help("for example `mxprobe list --backend sim`; `mxprobe help COMMAND` shows what a command takes"));
    }
    match command {
        Command::Run(arguments) => run::run(&arguments, screen),
        Command::List(arguments) => list::list(&arguments, screen),
        Command::Identify(arguments) => identify::identify(&arguments, screen),
        Command::Invariance(arguments) => invariance::invariance(&arguments, screen),
        Command::Verify(arguments) => verify::verify(&arguments, screen),
        Command::Eval(arguments) => eval::eval(&arguments, screen),
        Command::Bench(arguments) => bench::bench(&arguments, screen),
        Command::Gemm(arguments) => gemm::gemm(&arguments, screen),
        Command::Tolerance(arguments) => tolerance::tolerance(&arguments, screen),
        Command::Check(arguments) => check::check(&arguments, screen),
        Command::Screen(arguments) => screen::screen(&arguments, screen),
        Command::Conformance(arguments) => conformance::conformance(&arguments, screen),
        Command::Distinguish(arguments) => distinguish::distinguish(&arguments, screen),
        Command::Report(arguments) => report::report(&arguments, screen),
        Command::Compare(arguments) => compare::show(&arguments, screen),
        Command::Fleet(arguments) => fleet::fleet(&arguments, screen),
        Command::Merge(arguments) => merge::merge(&arguments, screen),
        Command::Site(arguments) => site::site(&arguments, screen),
        Command::Papers(arguments) => papers::papers(&arguments, screen),
        Command::Explain(arguments) => explain::explain(&arguments, screen),
        Command::Schema(arguments) => validate::schema(&arguments),
        Command::Validate(arguments) => validate::validate(&arguments, screen),
        Command::Completions { shell } => {
            let script = completion::script(&shell.to_string()).unwrap_or_else(|| {
                let mut script = Vec::new();
                clap_complete::generate(shell, &mut arguments::command(), "mxprobe", &mut script);
                script
            });
            output::print(&script)
        }
        Command::Man { command } => manual::print(command.as_deref()),
        Command::Worker(arguments) => worker::serve(&arguments),
    }
}
