//! `man`: manual pages, made from the arguments themselves.

use crate::cli::{
    arguments,
    failure::{Failure, Outcome},
    io::output,
};

/// Prints the page of a command, or of the whole.
pub(crate) fn print(command: Option<&str>) -> Outcome {
    let mut whole = arguments::command();
    whole.build();
    let page = match command {
        None => whole,
        Some(name) => {
            let named = |command: &&clap::Command| command.get_name() == name && !command.is_hide_set();
            let found = whole.get_subcommands().find(named).cloned();
            let names: Vec<&str> =
                whole.get_subcommands().filter(|command| !command.is_hide_set()).map(clap::Command::get_name).collect();
            found
                .ok_or_else(|| {
                    Failure::usage(format!("there is no command `{name}`; the commands are {}", names.join(", ")))
                })?
                .display_name(format!("mxprobe-{name}"))
        }
    };
    let mut roff = Vec::new();
    clap_mangen::Man::new(page).render(&mut roff).map_err(|error| Failure::output(&error))?;
    output::print(&roff)
}
