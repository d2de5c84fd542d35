//! Dots in NumPy files.

use std::{path::Path, sync::mpsc, thread};

use mxprobe_api::{Elements, Operation, OperationId};

use super::opened::Opened;
use crate::cli::{
    arguments::Screen,
    failure::{Failure, INTERRUPTED, Outcome},
    io::{
        interrupt::Interrupt,
        npy,
        output::{self, Replacement},
        progress::Progress,
    },
};

/// The files of dots, and that of their results.
pub(super) struct Files<'a> {
    pub(super) a: &'a Path,
    pub(super) b: &'a Path,
    pub(super) c: Option<&'a Path>,
    pub(super) out: &'a Path,
    pub(super) as_bits: bool,
}

/// Dots from arrays.
struct Arrays<'a> {
    count: usize,
    a: npy::Rows<'a>,
    b: npy::Rows<'a>,
    c: Option<npy::Rows<'a>>,
}

/// Some dots, as elements of the operation's formats.
struct Part {
    a: Elements,
    b: Elements,
    c: Elements,
}

impl Part {
    /// No dots of an operation.
    fn of(id: &OperationId) -> Self {
        let [a, b, c] = [id.a, id.b, id.c].map(|format| Elements::zeros(format, 0));
        Self { a, b, c }
    }
}

impl<'a> Arrays<'a> {
    /// Opens the files.
    fn open(files: &Files<'a>, operation: &Operation, screen: Screen) -> Result<Self, Failure> {
        let id = &operation.id;
        if id.block_scale().is_some() {
            return Err(Failure::usage(format!("{id} takes block scales, which `--a` and `--b` do not have"))
                .help("standard input takes dots with scales: one JSON object per line"));
        }
        let k = id.shape.sizes().2;
        let open = |name: &str, path: &'a Path, format, dimensions| -> Result<npy::Rows<'a>, Failure> {
            let found = npy::Rows::open(path, format, dimensions)?;
            let npy::Rows { rows, columns, rounded, .. } = found;
            if rounded > 0 && !screen.quiet {
                let count = rows * columns;
                output::note(format!("note: {rounded} of {count} elements of {name} were rounded to {format}"));
            }
            if dimensions > 1 && columns > k {
                let path = path.display();
                return Err(Failure::usage(format!("`{path}`: rows of {columns} elements, but k of {id} is {k}")));
            }
            Ok(found)
        };
        let (a, b) = (open("A", files.a, id.a, 2)?, open("B", files.b, id.b, 2)?);
        let c = files.c.map(|path| open("C", path, id.c, 1)).transpose()?;
        let others = [Some((files.b, b.rows)), files.c.zip(c.as_ref().map(|c| c.rows))];
        if let Some((other, found)) = others.into_iter().flatten().find(|(_, found)| *found != a.rows) {
            let (first, count, other) = (files.a.display(), a.rows, other.display());
            return Err(Failure::usage(format!("`{first}` has {count} dots, and `{other}` has {found}")));
        }
        Ok(Self { count: a.rows, a, b, c })
    }

    /// Reads the next dots, of k elements of A and B each. Rows shorter than k are padded with +0.
    fn read(&mut self, count: usize, k: usize, into: &mut Part) -> Result<(), Failure> {
        self.a.read(count, k, &mut into.a)?;
        self.b.read(count, k, &mut into.b)?;
        match &mut self.c {
            Some(c) => c.read(count, 1, &mut into.c),
            None => {
                into.c = Elements::zeros(into.c.format(), count);
                Ok(())
            }
        }
    }
}

/// Dots that are computed in one call, so many that threads pay and so few that they stay in the cache.
const DOTS_AT_ONCE: usize = 1 << 16;

/// Computes the dots of files.
pub(super) fn answer(
    opened: &Opened,
    files: &Files,
    screen: Screen,
    interrupt: &Interrupt,
    mut progress: Progress,
) -> Outcome {
    let mut arrays = Arrays::open(files, &opened.operation, screen)?;
    // Fail before the computation, not after it.
    let mut out = Replacement::begin(files.out)?;
    let id = &opened.operation.id;
    let (all, k) = (arrays.count, id.shape.sizes().2);
    let mut begun = npy::Written::new(id.d, &[all], files.as_bits);
    // The next dots are read, and the last results are written, while these are computed.
    let (read, parts) = mpsc::sync_channel(1);
    let (back, used) = mpsc::channel();
    let (computed, results) = mpsc::sync_channel(1);
    let out: Option<Replacement> = thread::scope(|scope| {
        scope.spawn(move || {
            for first in (0..all).step_by(DOTS_AT_ONCE) {
                let mut part = used.try_recv().unwrap_or_else(|_| Part::of(id));
                let part = arrays.read(DOTS_AT_ONCE.min(all - first), k, &mut part).map(|()| part);
                let failed = part.is_err();
                if read.send(part).is_err() || failed {
                    break;
                }
            }
        });
        let written = scope.spawn(move || {
            for d in results {
                begun.extend(&d);
                out.write(&begun.bytes)?;
                begun.bytes.clear();
            }
            out.write(&begun.bytes)?;
            Ok(out)
        });
        let mut done = 0;
        for part in parts {
            let part = part?;
            if interrupt.is_set() {
                return Ok(None);
            }
            done += part.c.len();
            // If it cannot be written, the reason comes at the end.
            if computed.send(opened.compute_elements(&part.a, &part.b, &part.c)?).is_err() {
                break;
            }
            progress.part(&format!("{done} dots"), done as f64 / all as f64);
            // Nobody takes it any more once everything is read.
            drop(back.send(part));
        }
        drop(computed);
        written.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).map(Some)
    })?;
    drop(progress);
    let Some(out) = out else { return Ok(INTERRUPTED) };
    out.finish()?;
    output::print(b"")
}
