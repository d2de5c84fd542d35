//! Makes text of unknown origin safe to show, since anybody may have written a report; and formats numbers for people.

use std::borrow::Cow;

use mxprobe_api::{Decoded, Format};

/// Whether a character affects a terminal or a page instead of being displayed: control characters, which start escape
/// sequences; marks that change the direction of the text after them; characters without width, such as tags.
#[must_use]
pub fn is_unsafe(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}' | '\u{3164}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// Whether a text is printable ASCII alone, as most are: then nothing in it is unsafe.
#[must_use]
pub fn is_printable_ascii(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

/// Escapes every unsafe character, as in `\u{1b}`, including line breaks.
#[must_use]
pub fn one_line(text: &str) -> Cow<'_, str> {
    written_out(text, is_unsafe)
}

/// Like [`one_line`], but keeps line breaks.
#[must_use]
pub fn lines(text: &str) -> Cow<'_, str> {
    written_out(text, |letter| letter != '\n' && is_unsafe(letter))
}

fn written_out(text: &str, acts: impl Fn(char) -> bool) -> Cow<'_, str> {
    if is_printable_ascii(text) || !text.contains(&acts) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if acts(letter) { plain.extend(letter.escape_unicode()) } else { plain.push(letter) }
    }
    Cow::Owned(plain)
}

/// Escapes text of unknown origin for one line of an element or an attribute.
#[must_use]
pub fn escaped_line(text: &str) -> String {
    escaped(&one_line(text))
}

/// Escapes text for an element or an attribute of HTML and SVG.
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

/// Formats the value of bits for people, in scientific notation: `1.5e-3`, `-0`, `infinity`, `NaN`; integers as usual.
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

/// Formats the value of bits for people: a decimal that reads back as the same value, or, if that is long, a multiple
/// of a power of two; `NaN`, `inf`, `-0`.
#[must_use]
pub fn short(format: Format, bits: u64) -> String {
    let value = format.to_f64(bits);
    let Decoded::Finite { negative, significand, exponent } = format.decode(bits) else { return value.to_string() };
    let top = 63 - significand.leading_zeros().cast_signed();
    let exponent = exponent - format.fraction_bits().cast_signed() + top;
    if format.is_integer() || (-10..24).contains(&exponent) {
        return match u32::try_from(bits) {
            Ok(bits) if format == Format::F32 => f32::from_bits(bits).to_string(),
            _ => value.to_string(),
        };
    }
    let sign = if negative { "-" } else { "" };
    let fraction = Format::F64.to_f64((significand << (63 - top) << 1 >> 12) | 1023 << 52);
    if significand.is_power_of_two() {
        format!("{sign}2^{exponent}")
    } else {
        format!("{sign}{fraction}·2^{exponent}")
    }
}

/// Quotes a word for a shell if it needs it: `'exec:python3 unit.py'`.
#[must_use]
pub fn shell_word(word: &str) -> Cow<'_, str> {
    // Only a word with a NUL cannot be quoted, and none can be an argument.
    shlex::try_quote(word).unwrap_or(Cow::Borrowed(word))
}

/// Formats a count and its noun: `1 report`, `2 reports`.
#[must_use]
pub fn counted<N: std::fmt::Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    let plural = if count == N::from(1) { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_quoted_for_a_shell_only_if_it_needs_it() {
        assert_eq!(shell_word("cpu:0"), "cpu:0");
        assert_eq!(shell_word("a\0b"), "a\0b");
        for word in ["exec:python3 unit.py", "it's.toml", "a$b", ""] {
            let quoted = shell_word(word);
            assert_ne!(quoted, word);
            assert_eq!(shlex::split(&quoted), Some(vec![word.to_owned()]));
        }
    }

    #[test]
    fn decimals_stand_for_their_bits() {
        for (format, bits, text) in [
            (Format::F32, 0x3f80_0001, "1.0000001"),
            (Format::F32, 0x0000_0001, "2^-149"),
            (Format::F32, 0xf200_0001, "-1.0000001192092896·2^101"),
            (Format::BF16, 0x5e81, "1.0078125·2^62"),
            (Format::F32, 0x8000_0000, "-0"),
            (Format::F32, 0x7fc0_0000, "NaN"),
            (Format::F32, 0xff80_0000, "-inf"),
            (Format::F16, 0x0001, "2^-24"),
            (Format::F16, 0x0003, "1.5·2^-23"),
            (Format::F32, 0x4980_0000, "1048576"),
            (Format::E4M3, 0x7e, "448"),
            (Format::S32, 0xffff_ffff, "-1"),
            (Format::F64, 0x3ff0_0000_0000_0001, "1.0000000000000002"),
        ] {
            assert_eq!(short(format, bits), text, "{format} {bits:#x}");
        }
    }

    #[test]
    fn characters_that_act_are_written_out() {
        assert_eq!(one_line("a\u{1b}[2Jb\u{202e}c\n\u{9b}d"), r"a\u{1b}[2Jb\u{202e}c\u{a}\u{9b}d");
        assert_eq!(lines("a\nb\r\u{2066}"), "a\nb\\u{d}\\u{2066}");
        assert!(matches!(one_line("2^-24 × −0 … é 漢"), Cow::Borrowed(_)));
    }
}
