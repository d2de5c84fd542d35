//! The command: arguments, the one registry of backends, hints, exit codes.

mod arguments;
mod choose;
mod commands;
mod failure;
mod io;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use arguments::{Command, CommandLine};
pub use choose::registry::Backends;
use commands::{
    bench, compare, conformance, distinguish, eval, explain, gemm, identify, list, manual, report, run, validate,
    verify, worker,
};
use failure::{Failure, Outcome};
use io::output;

impl Backends {
    /// Runs the command that the arguments of this process ask for, with these backends.
    #[must_use]
    pub fn main(self) -> ExitCode {
        self.install();
        let line = CommandLine::parse();
        line.screen.color.write_global();
        match dispatch(line) {
            Ok(code) => ExitCode::from(code),
            Err(failure) => failure.report(),
        }
    }
}

fn dispatch(line: CommandLine) -> Outcome {
    let screen = line.screen.screen();
    let Some(command) = line.command else { return run::run(&line.run, screen) };
    if line.run != arguments::Run::default() && !matches!(command, Command::Worker(_)) {
        return Err(Failure::usage("options of `run` and of devices stand after the command, not before it")
            .help("for example `mxprobe list --backend sim`; `mxprobe help COMMAND` shows what a command takes"));
    }
    match command {
        Command::Run(arguments) => run::run(&arguments, screen),
        Command::List(arguments) => list::list(&arguments, screen),
        Command::Identify(arguments) => identify::identify(&arguments, screen),
        Command::Verify(arguments) => verify::verify(&arguments, screen),
        Command::Eval(arguments) => eval::eval(&arguments),
        Command::Bench(arguments) => bench::bench(&arguments, screen),
        Command::Gemm(arguments) => gemm::gemm(&arguments, screen),
        Command::Conformance(arguments) => conformance::conformance(&arguments, screen),
        Command::Distinguish(arguments) => distinguish::distinguish(&arguments, screen),
        Command::Report(arguments) => report::report(&arguments, screen),
        Command::Compare(arguments) => compare::show(&arguments, screen),
        Command::Explain(arguments) => explain::explain(&arguments, screen),
        Command::Schema(arguments) => validate::schema(&arguments),
        Command::Validate(arguments) => validate::validate(&arguments, screen),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut CommandLine::command(), "mxprobe", &mut script);
            output::print(&script)
        }
        Command::Man { command } => manual::print(command.as_deref()),
        Command::Worker(arguments) => worker::serve(&arguments),
    }
}
