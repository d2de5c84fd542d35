//! How far a run is, on standard error.

use std::io::{IsTerminal, Write};

use mxprobe::report::OperationReport;

use super::{arguments::Screen, output};

/// Says on standard error how far a run is: in place on a terminal, else a line an operation with `-v`.
pub(crate) struct Progress {
    in_place: bool,
    lines: bool,
    done: usize,
    total: usize,
}

impl Progress {
    pub(crate) fn new(screen: Screen, total: usize) -> Self {
        let terminal = std::io::stderr().is_terminal();
        Self { in_place: terminal && !screen.quiet, lines: !terminal && screen.verbose, done: 0, total }
    }

    pub(crate) fn step(&mut self, selector: &str, report: &OperationReport) {
        self.done += 1;
        if self.lines {
            output::note(format!("[{}/{}] {selector} {}", self.done, self.total, report.operation.id));
        }
        self.show(&format!("{selector} {}", report.operation.id));
    }

    fn show(&self, words: &str) {
        if self.in_place {
            let _ = write!(std::io::stderr(), "\r\x1b[K[{}/{}] {words}", self.done, self.total);
        }
    }

    pub(crate) fn clear(&self) {
        if self.in_place {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
