//! Progress of a command, on standard error: one line updated in place on a terminal, otherwise a line every few
//! seconds.

use std::{
    io::IsTerminal,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::{
    aside::locked,
    cli::{
        arguments::Screen,
        io::{output, shown},
    },
    plain,
};

/// Reports the progress of a command. On a terminal: one line with a bar, an estimate of the time left and the current
/// step. In a pipe: a line every [`EVERY`], starting after [`QUIET`].
pub(crate) struct Progress {
    how: How,
    total: usize,
    done: usize,
    /// The steps after the current one.
    steps: std::vec::IntoIter<String>,
    now: String,
    /// Details of the current step.
    detail: String,
    /// Partial results, shown above the bar.
    above: Arc<Mutex<String>>,
    /// When `above` was last written.
    drawn: Option<Instant>,
}

enum How {
    Silent,
    Lines(Lines),
    Bar(ProgressBar),
}

/// The state that decides when a pipe gets its lines.
struct Lines {
    started: Instant,
    last: Option<Instant>,
}

/// The time between two lines in a pipe.
const EVERY: Duration = Duration::from_secs(5);
/// Commands that take no longer than this print no line in a pipe.
const QUIET: Duration = Duration::from_secs(2);
/// The time between two drawings of the bar while nothing happens.
const TICK: Duration = Duration::from_millis(250);
/// The elapsed time is shown from this point on if the time left is unknown.
const SLOW: Duration = Duration::from_secs(1);
/// The assumed number of columns if a terminal does not report it.
const COLUMNS: u16 = 80;
/// A terminal with fewer columns shows the step without a bar.
const WIDE: u16 = 60;
/// The template of the bar, in one line.
const BAR: &str = "[{bar:20}] {prefix}{left} {wide_msg}";
/// The number of positions of the bar for one step.
const PARTS: u64 = 1000;

impl Progress {
    /// Starts the progress of a command with a number of steps.
    pub(crate) fn new(screen: Screen, total: usize) -> Self {
        // A terminal that cannot move its cursor is called `dumb`.
        let in_place = || std::io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|name| name != "dumb");
        let how = if screen.quiet {
            How::Silent
        } else if in_place() {
            let size = terminal_size::terminal_size_of(std::io::stderr());
            let columns = size.map_or(COLUMNS, |(terminal_size::Width(columns), _)| columns);
            let bar = bar(total, columns, ProgressDrawTarget::stderr());
            bar.enable_steady_tick(TICK);
            shown::set(Some(bar.clone()));
            How::Bar(bar)
        } else {
            How::Lines(Lines { started: Instant::now(), last: None })
        };
        Self {
            how,
            total,
            done: 0,
            steps: Vec::new().into_iter(),
            now: String::new(),
            detail: String::new(),
            above: Arc::default(),
            drawn: None,
        }
    }

    /// Starts the progress of a single step whose completed part is unknown.
    pub(crate) fn of_one(screen: Screen, words: String) -> Self {
        let mut progress = Self::new(screen, 1);
        progress.begin(vec![words]);
        progress
    }

    /// Like [`of_one`](Self::of_one), for a command that programs keep running and query: it prints nothing in a pipe.
    pub(crate) fn at_terminal(screen: Screen, words: String) -> Self {
        let quiet = screen.quiet || !std::io::stderr().is_terminal();
        Self::of_one(Screen { quiet, ..screen }, words)
    }

    /// Sets the upcoming steps, and starts the first of them.
    pub(crate) fn begin(&mut self, steps: Vec<String>) {
        self.steps = steps.into_iter();
        self.next();
    }

    /// Completes the current step and starts the next one.
    pub(crate) fn step(&mut self) {
        self.done += 1;
        self.next();
    }

    /// Sets the total number of completed steps and the description of the newest.
    pub(crate) fn advance(&mut self, done: usize, detail: &str) {
        self.done = done;
        detail.clone_into(&mut self.detail);
        self.show(0.0);
    }

    fn next(&mut self) {
        self.now = self.steps.next().unwrap_or_default();
        self.detail.clear();
        self.show(0.0);
    }

    /// Updates the description of the current step and its completed part, from 0 to 1.
    pub(crate) fn part(&mut self, detail: &str, done: f64) {
        detail.clone_into(&mut self.detail);
        self.show(done);
    }

    /// Shows partial results above the bar, if there is a bar and room for these lines.
    pub(crate) fn result(&mut self, lines: impl FnOnce() -> String) {
        let How::Bar(bar) = &self.how else { return };
        let now = Instant::now();
        if self.drawn.is_some_and(|last| now.saturating_duration_since(last) < TICK) {
            return;
        }
        let text = lines();
        let widest = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
        let size = terminal_size::terminal_size_of(std::io::stderr());
        let fits = size.is_some_and(|(terminal_size::Width(columns), terminal_size::Height(rows))| {
            usize::from(columns) >= widest.max(usize::from(WIDE)) && usize::from(rows) > text.lines().count() + 1
        });
        if !fits {
            return;
        }
        text.trim_end().clone_into(&mut locked(&self.above));
        if self.drawn.is_none() {
            let above = self.above.clone();
            let write = move |_: &ProgressState, out: &mut dyn std::fmt::Write| {
                // Writing to a string does not fail.
                let _ = out.write_str(&locked(&above));
            };
            bar.set_style(style(&format!("{{above}}\n{BAR}")).with_key("above", write));
        }
        self.drawn = Some(now);
    }

    fn show(&mut self, part: f64) {
        let (done, total) = (self.done, self.total);
        let words = plain::one_line(&joined(&self.now, &self.detail)).into_owned();
        match &mut self.how {
            How::Silent => {}
            How::Bar(bar) => {
                bar.set_prefix(format!("{done}/{total}"));
                bar.set_message(words);
                bar.set_position(position(done, part));
            }
            How::Lines(lines) => {
                if let Some(passed) = lines.due(Instant::now()) {
                    let left = left(passed, position(done, part), total as u64 * PARTS);
                    let left = left.map_or_else(String::new, |left| format!(" {left} left"));
                    output::note(format!("[{done}/{total}]{left} {words}"));
                }
            }
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let How::Bar(bar) = &self.how {
            shown::set(None);
            bar.finish_and_clear();
        }
    }
}

/// Joins the current step and its detail, either of which may be empty.
fn joined(now: &str, detail: &str) -> String {
    let comma = if now.is_empty() || detail.is_empty() { "" } else { ", " };
    format!("{now}{comma}{detail}")
}

impl Lines {
    /// Returns the time since the start, if a line is due.
    fn due(&mut self, now: Instant) -> Option<Duration> {
        let passed = now.saturating_duration_since(self.started);
        let is_due = match self.last {
            None => passed >= QUIET,
            Some(last) => now.saturating_duration_since(last) >= EVERY,
        };
        if !is_due {
            return None;
        }
        self.last = Some(now);
        Some(passed)
    }
}

/// Builds a bar for a number of steps. The line is cut to the width of the terminal, so that it never wraps.
fn bar(total: usize, columns: u16, target: ProgressDrawTarget) -> ProgressBar {
    let style = style(if columns < WIDE { "{prefix} {wide_msg}" } else { BAR });
    ProgressBar::with_draw_target(Some(total as u64 * PARTS), target).with_style(style)
}

/// Builds the style of a bar from a template, with the time left.
fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template).expect("a template of indicatif");
    let time = |state: &ProgressState, out: &mut dyn std::fmt::Write| {
        if let Some(left) = left(state.elapsed(), state.pos(), state.len().unwrap_or(0)) {
            // Writing to a string does not fail.
            let _ = write!(out, " {left} left");
        } else if state.elapsed() >= SLOW {
            let _ = write!(out, " {} s", state.elapsed().as_secs());
        }
    };
    style.progress_chars("##.").with_key("left", time)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 1000")]
fn position(done: usize, part: f64) -> u64 {
    done as u64 * PARTS + (part.clamp(0.0, 1.0) * PARTS as f64) as u64
}

/// Estimates the time left, assuming that all steps take the same time: `40 s`, `3 min`, `2 h`. Unknown before the
/// first thousandth is done.
fn left(passed: Duration, position: u64, length: u64) -> Option<String> {
    if position == 0 || position >= length {
        return None;
    }
    let seconds = passed.as_secs_f64() * (length - position) as f64 / position as f64;
    Some(match seconds {
        ..100.0 => format!("{seconds:.0} s"),
        ..6000.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.0} h", seconds / 3600.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comma_is_between_a_step_and_its_detail_only() {
        assert_eq!(joined("sim:h100", "order"), "sim:h100, order");
        assert_eq!([joined("", "sim:h100"), joined("sim:h100", ""), joined("", "")], ["sim:h100", "sim:h100", ""]);
    }

    #[test]
    fn the_time_left_is_that_of_the_steps_left() {
        let of = |seconds, position, length| left(Duration::from_secs(seconds), position, length);
        assert_eq!(of(10, 1000, 5000).as_deref(), Some("40 s"));
        assert_eq!(of(60, 250, 1000).as_deref(), Some("3 min"));
        assert_eq!(of(3600, 1000, 3000).as_deref(), Some("2 h"));
        assert_eq!([of(10, 0, 5000), of(10, 5000, 5000), of(0, 0, 0)], [const { None }; 3]);
        assert_eq!([position(2, 0.5), position(0, -1.0), position(0, f64::NAN)], [2500, 0, 0]);
    }

    #[test]
    fn a_pipe_gets_no_line_in_two_seconds_and_then_one_every_five() {
        let started = Instant::now();
        let mut lines = Lines { started, last: None };
        let mut at = |milliseconds| lines.due(started + Duration::from_millis(milliseconds)).is_some();
        let said: Vec<u64> = (0..20_000).step_by(100).filter(|milliseconds| at(*milliseconds)).collect();
        assert_eq!(said, [2_000, 7_000, 12_000, 17_000]);
    }
}
