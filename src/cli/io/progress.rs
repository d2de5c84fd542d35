//! How far a run is, on standard error.

use std::io::{IsTerminal, Write};

use crate::report::OperationRecord;

use crate::cli::{arguments::Screen, io::output};

/// Says on standard error how far a run is: a bar at a terminal, else a line an operation.
pub(crate) struct Progress {
    how: How,
    done: usize,
    total: usize,
    /// What is asked now, and what comes after it, each as one word.
    asked: Vec<String>,
    at: usize,
}

enum How {
    Silent,
    Lines,
    /// In place, in so many columns.
    Bar(usize),
}

/// The columns of a terminal that does not tell.
const COLUMNS: usize = 80;

/// How long the bar is.
const BAR: usize = 20;

impl Progress {
    /// Of a run that asks so many operations in all.
    pub(crate) fn new(screen: Screen, total: usize) -> Self {
        let stderr = std::io::stderr();
        // A terminal that cannot move its cursor says so.
        let in_place = stderr.is_terminal() && std::env::var_os("TERM").is_none_or(|name| name != "dumb");
        let how = if screen.quiet {
            How::Silent
        } else if in_place {
            let size = terminal_size::terminal_size_of(&stderr);
            How::Bar(size.map_or(COLUMNS, |(terminal_size::Width(columns), _)| usize::from(columns)))
        } else {
            How::Lines
        };
        Self { how, done: 0, total, asked: Vec::new(), at: 0 }
    }

    /// A device is asked these operations next.
    pub(crate) fn begin(&mut self, selector: &str, operations: &[OperationRecord]) {
        self.asked = operations.iter().map(|operation| format!("{selector} {}", operation.id)).collect();
        self.at = 0;
        self.show();
    }

    /// The next operation was asked.
    pub(crate) fn step(&mut self) {
        self.done += 1;
        if let (How::Lines, Some(words)) = (&self.how, self.asked.get(self.at)) {
            output::note(format!("[{}/{}] {words}", self.done, self.total));
        }
        self.at += 1;
        self.show();
    }

    fn show(&self) {
        if let (How::Bar(columns), Some(words)) = (&self.how, self.asked.get(self.at)) {
            let _ = write!(std::io::stderr(), "\r\x1b[K{}", bar(self.done, self.total, words, *columns));
        }
    }

    /// Makes room for something else.
    pub(crate) fn clear(&self) {
        if matches!(self.how, How::Bar(_)) {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

/// A bar, numbers and words in less than this many columns: a line that is full would begin another one.
fn bar(done: usize, total: usize, words: &str, columns: usize) -> String {
    let full = (BAR * done).checked_div(total).unwrap_or(0);
    let text = format!("[{}{}] {done}/{total} {words}", "#".repeat(full), ".".repeat(BAR - full));
    text.chars().map(|letter| if letter.is_control() { '?' } else { letter }).take(columns.saturating_sub(1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_fits_into_its_columns_and_shows_the_share_that_is_done() {
        assert_eq!(bar(0, 4, "cpu:0 a", 80), "[....................] 0/4 cpu:0 a");
        assert_eq!(bar(1, 4, "cpu:0 a", 80), "[#####...............] 1/4 cpu:0 a");
        assert_eq!(bar(4, 4, "cpu:0 a", 80), "[####################] 4/4 cpu:0 a");
        assert_eq!(bar(1, 4, "sim:\u{1b}é", 34), "[#####...............] 1/4 sim:?é");
        for columns in 0..40 {
            assert_eq!(bar(3, 4, "a long name of an operation", columns).chars().count(), columns.saturating_sub(1));
        }
        assert_eq!(bar(0, 0, "", 80), "[....................] 0/0 ");
    }
}
