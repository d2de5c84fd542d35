//! `worker`: the process of a device.

use std::io::{self, BufReader, BufWriter, Write};

use crate::isolate;

use crate::cli::{
    arguments::Worker,
    choose::{
        registry::{self, Entry, MODELS},
        select,
    },
    failure::{Failure, Outcome},
};

/// Answers requests of the device protocol until standard input closes.
pub(crate) fn serve(arguments: &Worker) -> Outcome {
    let shown: Vec<&str> = if arguments.backend.is_empty() {
        registry::names().into_iter().filter(|name| *name != MODELS).collect()
    } else {
        select::entries(&arguments.backend)?.into_iter().map(|entry| entry.name).collect()
    };
    let output = own_stdout().map_err(|error| Failure::output(&error))?;
    let input = BufReader::with_capacity(1 << 16, io::stdin());
    let backend = |name: &str| Entry::named(name).map(Entry::backend);
    isolate::serve(input, BufWriter::with_capacity(1 << 16, output), &backend, &shown)
        .map_err(|error| Failure::output(&error))?;
    Ok(0)
}

/// Returns standard output under another descriptor: whatever a driver prints goes to standard error from now on.
#[cfg(unix)]
fn own_stdout() -> io::Result<impl Write> {
    let own = rustix::io::dup(io::stdout())?;
    rustix::stdio::dup2_stdout(io::stderr())?;
    Ok(std::fs::File::from(own))
}

#[cfg(not(unix))]
fn own_stdout() -> io::Result<impl Write> {
    Ok(io::stdout())
}
