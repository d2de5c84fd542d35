//! A child process's output outside the protocol: keeps its last lines in displayable form.

use std::{
    collections::VecDeque,
    io::{BufRead, BufReader, Read},
    sync::{Arc, Mutex},
};

/// Calls `each` with every line, without its newline, until it returns `false`; a line longer than `longest_bytes` is
/// split.
pub(super) fn lines(stream: impl Read, longest_bytes: usize, mut each: impl FnMut(&[u8]) -> bool) {
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut reader).take(longest_bytes as u64).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) if each(line.strip_suffix(b"\n").unwrap_or(&line)) => {}
            Ok(_) => return,
        }
    }
}

/// The last lines of a stream, in displayable form.
#[derive(Clone, Debug, Default)]
pub(super) struct Words(Arc<Mutex<VecDeque<String>>>);

/// How many lines are kept: a driver may print the reason a few lines before it exits.
const KEPT_LINES: usize = 4;

/// How many characters of a line are kept.
const KEPT_CHARACTERS: usize = 300;

impl Words {
    /// Keeps a line unless it is empty; returns it in displayable form.
    pub(super) fn hear(&self, line: &[u8]) -> Option<String> {
        let line = shown(line);
        if line.is_empty() || line.starts_with("note: run with `RUST_BACKTRACE") {
            return None;
        }
        if let Ok(mut lines) = self.0.lock() {
            if lines.len() == KEPT_LINES {
                lines.pop_front();
            }
            lines.push_back(line.clone());
        }
        Some(line)
    }

    /// The last line.
    pub(super) fn last(&self) -> Option<String> {
        self.0.lock().ok()?.back().cloned()
    }
}

/// Shortens a line and escapes control characters, which could move a terminal's cursor.
fn shown(line: &[u8]) -> String {
    let head = &line[..line.len().min(4 * KEPT_CHARACTERS)];
    let text = String::from_utf8_lossy(head);
    let text = text.trim();
    let mut shown: String = text.chars().take(KEPT_CHARACTERS).flat_map(visible).collect();
    if text.chars().nth(KEPT_CHARACTERS).is_some() || head.len() < line.len() {
        shown.push('…');
    }
    shown
}

fn visible(letter: char) -> Vec<char> {
    if letter.is_control() { letter.escape_default().collect() } else { vec![letter] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_come_in_pieces_and_rubbish_as_it_is() {
        let mut heard = Vec::new();
        lines(&b"one\n\n\xff\xfe\nsixsix\nend"[..], 4, |line| {
            heard.push(line.to_vec());
            true
        });
        let wanted: [&[u8]; 6] = [b"one", b"", b"\xff\xfe", b"sixs", b"ix", b"end"];
        assert_eq!(heard, wanted);
    }

    #[test]
    fn last_words_are_short_and_harmless() {
        let words = Words::default();
        words.hear(b"\x1b[31mred\x07\xff");
        assert_eq!(words.last().unwrap(), "\\u{1b}[31mred\\u{7}\u{fffd}");
        words.hear(&[b'x'; 100_000]);
        assert_eq!(words.last().unwrap().chars().count(), KEPT_CHARACTERS + 1);
        words.hear(b"  \r");
        assert!(words.last().unwrap().starts_with("xxx"), "an empty line says nothing");
    }
}
