//! Suggestions for unknown names.

/// The maximum number of suggestions; more would be noise.
const MOST: usize = 3;

/// Returns the names that are most similar to a word, the closest first: those that differ in a few letters, or contain
/// the word, ignoring case. Empty for an empty word.
pub(crate) fn similar<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let word = word.to_lowercase();
    let rank = |name: &'a str| {
        let lower = name.to_lowercase();
        let changes = strsim::damerau_levenshtein(&word, &lower);
        let allowed = word.chars().count().div_ceil(4).min(3);
        let is_part = word.len() > 2 && lower.contains(&word);
        (changes <= allowed || is_part).then_some((changes, name))
    };
    if word.is_empty() || word.len() > 100 {
        return Vec::new();
    }
    let mut found: Vec<_> = names.into_iter().filter_map(rank).collect();
    found.sort_unstable();
    found.dedup();
    found.into_iter().map(|(_, name)| name).take(MOST).collect()
}

/// Returns the name that is most similar to a word, if any is: the one with the fewest differing letters and, among
/// those, the longest common beginning.
pub(crate) fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let allowed = word.chars().count().div_ceil(4).min(3);
    let rank = |name: &'a str| {
        let changes = strsim::damerau_levenshtein(&word, name);
        let common = word.chars().zip(name.chars()).take_while(|(one, other)| one == other).count();
        (changes <= allowed).then_some((changes, std::cmp::Reverse(common), name))
    };
    if word.len() < 2 || word.len() > 100 {
        return None;
    }
    names.into_iter().filter_map(rank).min().map(|(.., name)| name)
}

/// Phrases suggestions as a question, for the end of an error about an unknown name. `None` if there are none.
pub(crate) fn did_you_mean(found: &[&str]) -> Option<String> {
    let quoted: Vec<String> = found.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last()? {
        (last, []) => Some(format!("did you mean {last}?")),
        (last, others) => Some(format!("did you mean {} or {last}?", others.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 5] = ["alignment.fraction_bits", "alignment.below", "rounding.result", "bf16", "f16"];

    #[test]
    fn names_are_found_by_few_changes_and_by_their_parts() {
        for (word, found) in [
            ("alignment.fraction_bit", &["alignment.fraction_bits"][..]),
            ("Alingment.Below", &["alignment.below"]),
            ("fraction_bits", &["alignment.fraction_bits"]),
            ("alignment", &["alignment.below", "alignment.fraction_bits"]),
            ("f61", &["f16"]),
            ("fb16", &["bf16", "f16"]),
            ("nothing-like-it", &[]),
            ("", &[]),
        ] {
            assert_eq!(similar(word, NAMES), found, "{word}");
        }
        assert_eq!(similar(&"a".repeat(100_000), NAMES), [""; 0]);
    }

    #[test]
    fn the_nearest_name_begins_as_the_word_does() {
        assert_eq!(nearest("h10", ["a10", "h20", "h100"]), Some("h100"));
        assert_eq!(nearest("4091", ["4050", "4080", "4090"]), Some("4090"));
        assert_eq!(nearest("quantum", ["a10", "h100"]), None);
        assert_eq!(nearest("", ["a"]), None);
    }

    #[test]
    fn suggestions_are_a_question() {
        assert_eq!(did_you_mean(&[]), None);
        assert_eq!(did_you_mean(&["a"]).as_deref(), Some("did you mean `a`?"));
        assert_eq!(did_you_mean(&["a", "b", "c"]).as_deref(), Some("did you mean `a`, `b` or `c`?"));
    }
}
