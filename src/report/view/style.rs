//! Terminal output: width, colour, wrapped text.

use anstyle::{AnsiColor, Style as Ansi};

use super::page::Tone;
use crate::plain;

/// The appearance of terminal output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Columns to wrap at.
    pub width: usize,
    /// Whether to show the bits behind each finding. Operations are then listed one by one.
    pub evidence: bool,
    /// Whether to use ANSI escapes.
    pub color: bool,
}

impl Default for Style {
    /// 100 columns, no evidence, no colour: for a pipe or a file.
    fn default() -> Self {
        Self { width: 100, evidence: false, color: false }
    }
}

impl Style {
    /// Returns the same without wrapping: one line for each sentence, for tools that read lines.
    #[must_use]
    pub fn unwrapped(self) -> Self {
        Self { width: usize::MAX, ..self }
    }

    pub(super) fn paint(self, tone: Tone, text: &str) -> String {
        let ansi = match tone {
            _ if !self.color || text.is_empty() => return text.to_owned(),
            Tone::Plain => return text.to_owned(),
            Tone::Strong => Ansi::new().bold(),
            Tone::Muted => Ansi::new().dimmed(),
            Tone::Warning => AnsiColor::Yellow.on_default(),
            Tone::Failure => AnsiColor::Red.on_default(),
        };
        format!("{ansi}{text}{ansi:#}")
    }
}

/// Wraps words into lines of at most `room` characters, without trailing blanks; a longer word is cut. Characters that
/// would act on a terminal are escaped, line ends are kept.
#[must_use]
pub fn wrap(words: &str, room: usize) -> Vec<String> {
    let room = room.max(1);
    let mut lines = Vec::new();
    for paragraph in plain::lines(words).split('\n') {
        let (mut line, mut column) = (String::new(), 0);
        for word in paragraph.split(' ') {
            let length = word.chars().count();
            if column > 0 && column + 1 + length > room {
                lines.push(finished(&mut line));
                column = 0;
            } else if column > 0 {
                line.push(' ');
                column += 1;
            }
            for letter in word.chars() {
                if column == room {
                    lines.push(finished(&mut line));
                    column = 0;
                }
                line.push(letter);
                column += 1;
            }
        }
        lines.push(finished(&mut line));
    }
    lines
}

fn finished(line: &mut String) -> String {
    std::mem::take(line).trim_end_matches(' ').to_owned()
}

/// Appends words wrapped at `width`, with the lines after the first indented, and a line end.
pub(super) fn hang(text: &mut String, words: &str, indent: usize, width: usize) {
    let room = width.saturating_sub(indent).max(NARROWEST);
    for (number, line) in wrap(words, room).iter().enumerate() {
        if number > 0 {
            text.push_str(&" ".repeat(if line.is_empty() { 0 } else { indent }));
        }
        text.push_str(line);
        text.push('\n');
    }
}

/// The minimum number of columns for wrapped words.
const NARROWEST: usize = 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_statements_hang_below_their_beginning() {
        let mut text = String::from("  probe  ");
        hang(&mut text, "one two three four five six seven eight nine ten", 9, 40);
        assert_eq!(text, "  probe  one two three four five six\n         seven eight nine ten\n");
    }

    #[test]
    fn words_longer_than_a_line_are_cut() {
        assert_eq!(wrap("ab cdefghij k", 4), ["ab", "cdef", "ghij", "k"]);
        assert_eq!(wrap("", 4), [""]);
    }
}
