//! Dots as lines of JSON on standard input.

use std::{
    io::{self, BufRead, IsTerminal, Write},
    sync::{
        Arc,
        mpsc::{self, Receiver},
    },
    thread,
};

use mxprobe_api::{Operation, OperationId};
use mxprobe_dots::write_answers;

use super::opened::Opened;
use crate::cli::{
    arguments::Screen,
    failure::{Failure, Outcome},
    io::{
        dot_lines::{Dots, example},
        output,
        progress::Progress,
    },
};

/// The maximum length of a line.
const LONGEST_LINE_BYTES: usize = 16 << 20;

/// The size of the read buffer.
const READ_BYTES: usize = 1 << 18;

/// Answers every line of standard input.
pub(super) fn answer(opened: &Opened, screen: Screen, selector: &str) -> Outcome {
    let operation = &opened.operation;
    if let Some(words) = hint(operation, io::stdin().is_terminal() && !screen.quiet) {
        output::note(words);
    }
    // The next lines are read while dots are computed. The thread that reads is not waited for, because it may wait for lines
    // of somebody who waits for an answer.
    let (read, lines) = mpsc::sync_channel(1);
    let (back, used) = mpsc::channel();
    let reader = Reader {
        operation: Arc::clone(operation),
        line_number: 0,
        told: screen.quiet,
        progress: Answered::new(screen, selector, &operation.id),
    };
    thread::spawn(move || {
        if let Err(failure) = reader.read_all(&used, &|dots| read.send(Ok(dots)).is_ok()) {
            // Nobody waits for it after another failure.
            drop(read.send(Err(failure)));
        }
    });
    let mut stdout = io::stdout().lock();
    let mut answers = Vec::new();
    for dots in lines {
        let dots: Dots = dots?;
        write_answers(operation.id.d, &opened.compute(&dots)?, &mut answers);
        stdout.write_all(&answers).and_then(|()| stdout.flush()).map_err(|error| Failure::output(&error))?;
        answers.clear();
        // Nobody takes them any more at the end of the lines.
        drop(back.send(dots));
    }
    drop(stdout);
    output::print(b"")
}

/// The reader of standard input.
struct Reader {
    operation: Arc<Operation>,
    line_number: usize,
    /// Whether the user knows that a value was rounded.
    told: bool,
    progress: Answered,
}

impl Reader {
    /// Hands over the dots of all lines, as many as have arrived, until `take` returns false. Dots that were handed over
    /// before come back through `used`. The dots before a wrong line are handed over, too.
    fn read_all(mut self, used: &Receiver<Dots>, take: &dyn Fn(Dots) -> bool) -> Result<(), Failure> {
        let mut stdin = io::BufReader::with_capacity(READ_BYTES, io::stdin().lock());
        let mut begun = Vec::new(); // a line whose end has not come yet
        loop {
            let chunk = match stdin.fill_buf() {
                Ok(chunk) => chunk,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(Failure::usage(format!("standard input cannot be read: {error}"))),
            };
            let over = chunk.is_empty();
            let complete = if over { 0 } else { chunk.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1) };
            let length = chunk.len();
            let mut dots = used.try_recv().unwrap_or_else(|_| Dots::new(Arc::clone(&self.operation)));
            dots.clear();
            let mut result = Ok(());
            if over {
                if !begun.is_empty() {
                    result = self.read(&begun, &mut dots);
                }
            } else if complete > 0 {
                if begun.is_empty() {
                    result = self.read(&chunk[..complete - 1], &mut dots);
                } else {
                    begun.extend_from_slice(&chunk[..complete - 1]);
                    result = self.read(&begun, &mut dots);
                    begun.clear();
                }
            }
            begun.extend_from_slice(&chunk[complete..]);
            let too_long = begun.len() > LONGEST_LINE_BYTES;
            stdin.consume(length);
            self.progress.read(length, self.line_number);
            if let Some(rounded) = dots.rounded.take().filter(|_| !self.told) {
                output::note(format!("note: {rounded}; further rounded values are not reported"));
                self.told = true;
            }
            if dots.count > 0 && !take(dots) {
                return Ok(());
            }
            result?;
            if too_long {
                let line = self.line_number + 1;
                return Err(Failure::usage(format!("line {line} is longer than {LONGEST_LINE_BYTES} bytes")));
            }
            if over {
                return Ok(());
            }
        }
    }

    /// Reads whole lines.
    fn read(&mut self, text: &[u8], dots: &mut Dots) -> Result<(), Failure> {
        let mut left = Some(text);
        while let Some(text) = left {
            self.line_number += 1;
            let next = dots.read_first(text);
            left = next.map_err(|(error, line)| error.on_line(self.line_number, line, &self.operation))?;
        }
        Ok(())
    }
}

/// Says what to type, for people whose standard input is a terminal.
fn hint(operation: &Operation, is_typed: bool) -> Option<String> {
    is_typed
        .then(|| format!("note: reading one dot per line until end of file (Ctrl-D), such as {}", example(operation)))
}

/// How much of standard input was answered.
struct Answered {
    /// Absent if the user watches the answers themselves, or types the lines.
    progress: Option<Progress>,
    /// The size of standard input, if it is a file.
    length: Option<u64>,
    done: u64,
}

impl Answered {
    fn new(screen: Screen, selector: &str, id: &OperationId) -> Self {
        let is_watched = io::stdin().is_terminal() || io::stdout().is_terminal();
        let progress = (!is_watched).then(|| Progress::at_terminal(screen, format!("{selector} {id}")));
        Self { progress, length: stdin_bytes(), done: 0 }
    }

    fn read(&mut self, bytes: usize, lines: usize) {
        self.done += bytes as u64;
        let part = self.length.filter(|length| *length > 0).map_or(0.0, |length| self.done as f64 / length as f64);
        if let Some(progress) = &mut self.progress {
            progress.part(&format!("{lines} lines"), part);
        }
    }
}

/// Returns the size of standard input, if it is a file.
fn stdin_bytes() -> Option<u64> {
    #[cfg(unix)]
    {
        use std::os::fd::AsFd;
        let file = std::fs::File::from(io::stdin().as_fd().try_clone_to_owned().ok()?);
        file.metadata().ok().filter(std::fs::Metadata::is_file).map(|file| file.len())
    }
    #[cfg(not(unix))]
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_who_type_dots_see_a_line_that_is_read() {
        for id in ["mma.m16n8k16.f32.f16.f16.f32", "mma.m16n8k64.f32.e2m1.e2m1.f32.block16.ue4m3"] {
            let operation = Arc::new(Operation::new(id.parse().expect("an id"), "warp"));
            let words = hint(&operation, true).expect("words");
            let (_, line) = words.split_once("such as ").expect("an example");
            let mut dots = Dots::new(Arc::clone(&operation));
            assert!(dots.read(line.as_bytes()).is_ok(), "{line}");
            assert_eq!(dots.count, 1);
            assert_eq!(hint(&operation, false), None);
        }
    }
}
