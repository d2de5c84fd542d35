//! `man`: manual pages, generated from the arguments.

use crate::cli::{
    arguments,
    failure::{Failure, Outcome},
    io::output,
    mistakes::the_commands,
};

/// Prints the page of a command, or that of the whole program.
pub(crate) fn print(command: Option<&str>) -> Outcome {
    let mut whole = arguments::command();
    whole.build();
    let page = match command {
        None => whole,
        Some(name) => {
            let named = |command: &&clap::Command| command.get_name() == name && !command.is_hide_set();
            let found = whole.get_subcommands().find(named).cloned();
            let none = || Failure::usage(format!("no command `{name}`; {}", the_commands(&whole)));
            found.ok_or_else(none)?.display_name(format!("mxprobe-{name}"))
        }
    };
    let mut roff = Vec::new();
    clap_mangen::Man::new(page).render(&mut roff).map_err(|error| Failure::output(&error))?;
    output::print(&roff)
}
