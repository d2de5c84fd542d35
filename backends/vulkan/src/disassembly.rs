//! Selection of the assembly among a driver's texts.

/// Returns the texts of a driver whose names contain "assembly"; if there are none, all texts, each under its name.
pub(crate) fn assembly(texts: Vec<(String, String)>) -> String {
    let is_assembly = |name: &str| name.to_ascii_lowercase().contains("assembly");
    let only_assembly = texts.iter().any(|(name, _)| is_assembly(name));
    let kept = texts.into_iter().filter(|(name, _)| !only_assembly || is_assembly(name));
    kept.map(|(name, text)| if only_assembly { text } else { format!("; {name}\n{text}") })
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_assembly_is_taken_where_a_text_is_called_so() {
        let text = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        assert_eq!(assembly(vec![text("NIR", "a"), text("NAK assembly", "b")]), "b");
        assert_eq!(assembly(vec![text("NIR", "a"), text("IR", "b")]), "; NIR\na\n; IR\nb");
    }
}
