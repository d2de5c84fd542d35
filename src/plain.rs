//! Text that is safe to show: of unknown origin and made harmless, as a report is a file that anybody may have written; and
//! numbers as words.

use std::borrow::Cow;

use mxprobe_api::{Decoded, Format};

/// Whether a character does something to a terminal or a page instead of standing there: controls, which begin escape
/// sequences; marks that turn the direction of what follows; characters that take no room, such as tags.
#[must_use]
pub(crate) fn is_unsafe(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}' | '\u{3164}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// The text with every character that would act written out, as in `\u{1b}`, line ends too.
#[must_use]
pub fn one_line(text: &str) -> Cow<'_, str> {
    written_out(text, is_unsafe)
}

/// The same, with line ends kept.
#[must_use]
pub fn lines(text: &str) -> Cow<'_, str> {
    written_out(text, |letter| letter != '\n' && is_unsafe(letter))
}

fn written_out(text: &str, acts: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&acts) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if acts(letter) { plain.extend(letter.escape_unicode()) } else { plain.push(letter) }
    }
    Cow::Owned(plain)
}

/// Text from anywhere, harmless as text of an element and of an attribute in one line.
#[must_use]
pub(crate) fn escaped_line(text: &str) -> String {
    escaped(&one_line(text))
}

/// Text for an element or an attribute of HTML and SVG.
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(letter),
        }
    }
    out
}

/// The value of bits for people, in scientific notation: `1.5e-3`, `-0`, `infinity`, `NaN`; integers as they are.
#[must_use]
pub fn decimal(format: Format, bits: u64) -> String {
    match format.decode(bits) {
        Decoded::Nan { .. } => "NaN".into(),
        Decoded::Infinity { negative } => if negative { "-infinity" } else { "infinity" }.into(),
        Decoded::Zero { negative } => if negative { "-0" } else { "0" }.into(),
        Decoded::Finite { negative, significand, .. } if format.is_integer() => {
            format!("{}{significand}", if negative { "-" } else { "" })
        }
        Decoded::Finite { .. } => format!("{:e}", format.to_f64(bits)),
    }
}

/// A count and its noun: `1 report`, `2 reports`.
#[must_use]
pub fn counted<N: std::fmt::Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    let plural = if count == N::from(1) { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_act_are_written_out() {
        assert_eq!(one_line("a\u{1b}[2Jb\u{202e}c\n\u{9b}d"), r"a\u{1b}[2Jb\u{202e}c\u{a}\u{9b}d");
        assert_eq!(lines("a\nb\r\u{2066}"), "a\nb\\u{d}\\u{2066}");
        assert!(matches!(one_line("2^-24 × −0 … é 漢"), Cow::Borrowed(_)));
    }
}
