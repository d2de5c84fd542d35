//! Entries as a document.

use std::fmt::Write as _;

use super::entry::{Entry, Kind};

/// Entries as Markdown: a heading for each kind, in the order in which kinds first occur, and below it one for each entry;
/// a paragraph is one line.
#[must_use]
pub fn markdown(entries: &[Entry]) -> String {
    let mut text = String::new();
    let mut kinds: Vec<Kind> = Vec::new();
    for entry in entries {
        if !kinds.contains(&entry.kind) {
            kinds.push(entry.kind);
        }
    }
    for kind in kinds {
        let _ = write!(text, "## {}\n\n", title(kind));
        entries.iter().filter(|entry| entry.kind == kind).for_each(|entry| section(&mut text, entry));
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

fn title(kind: Kind) -> &'static str {
    match kind {
        Kind::Probe => "Probes",
        Kind::Format => "Formats",
        Kind::Family => "Families of operations",
        Kind::Field => "Fields of the report",
    }
}

fn section(text: &mut String, entry: &Entry) {
    let _ = write!(text, "### `{}`\n\n{}\n\nHow: {}\n\n", entry.name, escaped(&entry.about), escaped(&entry.how));
    if !entry.answers.is_empty() {
        text.push_str("| answer | what it means |\n|---|---|\n");
        for (value, meaning) in &entry.answers {
            let _ = writeln!(text, "| {} | {} |", escaped(value), escaped(meaning));
        }
        text.push('\n');
    }
    let _ = write!(text, "Source: {}\n\n", escaped(&entry.source));
}

/// Text in which backticks alone are markup.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut is_code = false;
    let mut before = ' ';
    for letter in text.chars() {
        is_code ^= letter == '`';
        match letter {
            // A table's cell ends at it, in code too.
            '|' => out.push_str("\\|"),
            // Between letters an underscore is no emphasis.
            '_' if before.is_alphanumeric() => out.push('_'),
            '*' | '_' | '[' | ']' | '~' | '$' | '\\' if !is_code => {
                out.push('\\');
                out.push(letter);
            }
            '<' if !is_code => out.push_str("&lt;"),
            _ => out.push(letter),
        }
        before = letter;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_backticks_is_markup() {
        for (text, wanted) in [("a_b*c _d", "a_b\\*c \\_d"), ("`a_b` | <x>", "`a_b` \\| &lt;x>"), ("[1]", "\\[1\\]")] {
            assert_eq!(escaped(text), wanted, "{text}");
        }
    }

    #[test]
    fn every_entry_has_a_heading_below_that_of_its_kind() {
        let entries = crate::glossary::entries();
        let text = markdown(&entries);
        for entry in &entries {
            assert!(text.contains(&format!("\n### `{}`\n", entry.name)), "{}", entry.name);
        }
        let headings: Vec<&str> = text.lines().filter(|line| line.starts_with("## ")).collect();
        assert_eq!(headings, ["## Probes", "## Formats", "## Families of operations", "## Fields of the report"]);
        assert_eq!(text.matches("\nSource: ").count(), entries.len());
    }
}
