//! The command: arguments, the one registry of backends, hints, exit codes.

mod arguments;
mod ask;
mod bench;
mod catalog;
mod compare;
mod conditions;
mod distinguish;
mod dots;
mod each;
mod eval;
mod executable;
mod explain;
mod failure;
#[cfg(feature = "fault-devices")]
mod fault;
mod gemm;
mod glob;
mod identified;
mod identify;
mod input;
mod isolation;
mod limits;
mod list;
mod manual;
mod models;
mod npy;
mod output;
mod plan;
mod progress;
mod registry;
mod resume;
mod run;
mod select;
mod similar;
mod sink;
mod stream;
mod validate;
mod verify;
mod view;
mod worker;
mod yardstick;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use arguments::{Command, CommandLine};
use failure::Failure;

/// What a command that came to its end says: an exit code.
type Outcome = Result<u8, Failure>;

/// Runs the command that the arguments ask for.
pub(crate) fn main() -> ExitCode {
    let line = CommandLine::parse();
    line.screen.color.write_global();
    match dispatch(line) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => failure.report(),
    }
}

fn dispatch(line: CommandLine) -> Outcome {
    let screen = line.screen.screen();
    let Some(command) = line.command else { return run::run(&line.run, screen) };
    if line.run != arguments::Run::default() && !matches!(command, Command::Worker) {
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
        Command::Distinguish(arguments) => distinguish::distinguish(&arguments, screen),
        Command::Report(arguments) => view::view(&arguments, screen),
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
        Command::Worker => worker::serve(),
    }
}
