//! Matrix instructions in a disassembly.

use std::collections::BTreeMap;

/// How a mnemonic of a matrix instruction starts: AMD RDNA and CDNA, NVIDIA SASS as NVIDIA and Mesa print it, Intel.
const MNEMONICS: [&str; 19] = [
    "v_wmma_",
    "v_swmmac_",
    "v_mfma_",
    "v_smfmac_",
    "v_dot",
    "hmma",
    "imma",
    "dmma",
    "bmma",
    "qmma",
    "omma",
    "hgmma",
    "igmma",
    "qgmma",
    "bgmma",
    "utchmma",
    "utcimma",
    "utcqmma",
    "dpas",
];

/// The matrix instructions in a disassembly, each with how often it stands there, in the order of their names.
///
/// A mnemonic is what stands first on a line, after a predicate or an `=` where there is one; case is as in the text.
///
/// ```
/// let text = "v_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[16:23], v[0:7]\ns_endpgm";
/// assert_eq!(mxprobe_vulkan::matrix_instructions(text), [("v_wmma_f32_16x16x16_f16".to_owned(), 1)]);
/// ```
#[must_use]
pub fn matrix_instructions(disassembly: &str) -> Vec<(String, usize)> {
    let mut counts = BTreeMap::new();
    for line in disassembly.lines() {
        let words =
            line.split(|letter: char| letter.is_whitespace() || matches!(letter, ',' | ';' | '(' | ')' | '{' | '}'));
        if let Some(word) = words.into_iter().find(|word| is_matrix_mnemonic(word)) {
            *counts.entry(word.to_owned()).or_insert(0) += 1;
        }
    }
    counts.into_iter().collect()
}

fn is_matrix_mnemonic(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    MNEMONICS.iter().any(|start| {
        // What follows a whole word is a modifier after a dot.
        lower
            .strip_prefix(start)
            .is_some_and(|rest| start.ends_with('_') || rest.is_empty() || rest.starts_with('.') || *start == "v_dot")
    })
}

/// The assembly among the texts a driver keeps, or all of them under their names where none is called so.
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
    fn instructions_of_every_vendor_are_counted() {
        let text = "\
            BB0:\n\
            \tv_wmma_i32_16x16x16_iu8 v[0:7], v[8:11], v[12:15], v[0:7] neg_lo:[1,1,0] clamp ; 00000000\n\
            \tv_mov_b32_e32 v0, 0\n\
            \tv_wmma_i32_16x16x16_iu8 v[0:7], v[8:11], v[12:15], v[0:7]\n\
            r4..8 = hmma.m16n8k16.f32 r0..4 r8..10 r4..8\n\
            @P0 HMMA.16816.F32 R4, R8, R12, R4 ;\n\
            hmmask r0\n";
        let found = matrix_instructions(text);
        let expected = [("HMMA.16816.F32", 1), ("hmma.m16n8k16.f32", 1), ("v_wmma_i32_16x16x16_iu8", 2)];
        assert_eq!(found, expected.map(|(name, count)| (name.to_owned(), count)));
    }

    #[test]
    fn a_text_without_matrix_instructions_has_none() {
        assert_eq!(matrix_instructions("s_endpgm\nv_fma_f32 v0, v1, v2, v3"), []);
    }

    #[test]
    fn the_assembly_is_taken_where_a_text_is_called_so() {
        let text = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        assert_eq!(assembly(vec![text("NIR", "a"), text("NAK assembly", "b")]), "b");
        assert_eq!(assembly(vec![text("NIR", "a"), text("IR", "b")]), "; NIR\na\n; IR\nb");
    }
}
