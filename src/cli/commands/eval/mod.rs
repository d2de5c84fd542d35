//! `eval`: computes dots, given as JSON lines or in NumPy files, on any device or model.

mod files;
mod lines;
mod opened;

use crate::cli::{
    arguments::{Eval, Screen},
    choose::{
        limits::Limits,
        reach::{Isolation, reach},
        select,
        target::Search,
    },
    failure::{Failure, Outcome},
    io::{interrupt::Interrupt, progress::Progress},
};
use files::Files;
use opened::Opened;

/// Answers every line of standard input, or every row of arrays.
pub(crate) fn eval(arguments: &Eval, screen: Screen) -> Outcome {
    let isolate = !arguments.reach.no_isolation;
    let search = Search::by(&arguments.reach, std::slice::from_ref(&arguments.op));
    let (targets, _) = select::named(std::slice::from_ref(&arguments.device), &[], &search)?;
    let [target] = targets.as_slice() else {
        let mut failure = Failure::usage(format!("`{}` matches {} devices", arguments.device, targets.len()));
        for target in &targets {
            failure = failure.cause(format!("{}  {}", target.selector, target.listed.device.name));
        }
        return Err(failure.help("`eval` computes on one device: name one of them"));
    };
    let id = &select::one_operation(&arguments.op, &target.listed)?.id;
    // An interrupted file is removed; interrupted lines end the process.
    let interrupt = if arguments.out.is_some() { Interrupt::listen() } else { Interrupt::default() };
    let limits = Limits::new(arguments.reach.timeout, None, interrupt.clone());
    let isolation = Isolation { wanted: isolate, forward_stderr: false };
    let opened = Opened::new(target, id, reach(target, isolation, &limits))?;
    if let (Some(a), Some(b), Some(out)) = (&arguments.a, &arguments.b, &arguments.out) {
        let files = Files { a, b, c: arguments.c.as_deref(), out, as_bits: arguments.bits };
        let progress = Progress::of_one(screen, format!("{} {id}", target.selector));
        return files::answer(&opened, &files, screen, &interrupt, progress);
    }
    lines::answer(&opened, screen, &target.selector)
}
