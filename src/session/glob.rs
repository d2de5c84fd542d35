//! Patterns with `*` and `?`.

/// Whether a name matches a pattern: `*` matches any text, `?` one character; case is ignored.
#[must_use]
pub fn matches(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().flat_map(char::to_lowercase).collect();
    let name: Vec<char> = name.chars().flat_map(char::to_lowercase).collect();
    let (mut at, mut read) = (0, 0);
    let mut retry = None; // after the last `*`: the position in the pattern, and the end of its match in the name
    while read < name.len() {
        match pattern.get(at) {
            Some('*') => {
                at += 1;
                retry = Some((at, read));
            }
            Some(&wanted) if wanted == '?' || wanted == name[read] => {
                at += 1;
                read += 1;
            }
            _ => {
                let Some((after, taken)) = retry else { return false };
                retry = Some((after, taken + 1));
                at = after;
                read = taken + 1;
            }
        }
    }
    pattern[at..].iter().all(|&rest| rest == '*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn stars_take_any_text_and_question_marks_one_character() {
        for (pattern, name) in [
            ("mma.*.f32", "mma.m16n8k16.f32.f16.f16.f32"),
            ("*", ""),
            ("*k?.*", "mma.m8n8k4.f32.f16.f16.f32"),
            ("TDPBF16PS", "tdpbf16ps"),
            ("a*b*c", "aXbYbZc"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("mma", "wmma"), ("mma.*", "mma"), ("?", ""), ("a*b", "abc"), ("", "a")] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }
}
