//! Card names, and the model of the chip on each card.

use std::sync::LazyLock;

use mxprobe_api::Error;
use serde::Deserialize;

use crate::{model::Model, shipped::shipped};

/// The contents of `cards.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    ignored: Vec<String>,
    sources: std::collections::BTreeMap<String, String>,
    chip: Vec<Chip>,
}

/// The cards with the chip of one model.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Chip {
    model: String,
    source: String,
    cards: Vec<String>,
}

static FILE: LazyLock<File> =
    LazyLock::new(|| toml::from_str(include_str!("../cards.toml")).expect("the file of cards is TOML"));

/// A graphics card or accelerator, and the model of its chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Card {
    /// Its name without the manufacturer's: `GeForce RTX 4090`.
    pub name: &'static str,
    /// The name of its chip's model.
    pub model: &'static str,
    /// The source that says which chip the card has.
    pub source: &'static str,
}

/// All cards known by name, grouped by model.
pub fn cards() -> impl Iterator<Item = Card> {
    FILE.chip.iter().flat_map(|chip| {
        let source = &FILE.sources[&chip.source];
        chip.cards.iter().map(move |name| Card { name, model: &chip.model, source })
    })
}

/// Finds the shipped model with this name: the model's own, one of its aliases, or the name of a card.
///
/// Case, spaces, punctuation and words that do not identify the chip (`NVIDIA`, `80GB`) are ignored. The last words of
/// a card's name are enough if they include a digit. `None` if nothing matches.
///
/// ```
/// for name in ["RTX 4090", "4090", "NVIDIA GeForce RTX 4090 Laptop GPU", "sm_89", "l40s"] {
///     assert_eq!(mxprobe_models::find(name)?.expect("a model").name, "l40s", "{name}");
/// }
/// assert!(mxprobe_models::find("GeForce 256")?.is_none());
/// # Ok::<(), mxprobe_api::Error>(())
/// ```
///
/// # Errors
/// If cards of several models match: `6000`.
pub fn find(name: &str) -> Result<Option<&'static Model>, Error> {
    let wanted = name.trim().to_ascii_lowercase();
    let has_name =
        |model: &&Model, wanted: &str| model.name == wanted || model.aliases.iter().any(|alias| alias == wanted);
    if let Some(model) = shipped().iter().find(|model| has_name(model, &wanted)) {
        return Ok(Some(model));
    }
    let key = words(&wanted).concat();
    if let Some(model) = shipped().iter().find(|model| has_name(model, &key)) {
        return Ok(Some(model));
    }
    let found: Vec<Card> = cards().filter(|card| ends(&words(card.name), &key)).collect();
    let Some(first) = found.first() else { return Ok(None) };
    if let Some(other) = found.iter().find(|card| card.model != first.model) {
        return Err(Error::invalid(format!(
            "`{name}` matches `{}` (model {}) and `{}` (model {}); give more of the name",
            first.name, first.model, other.name, other.model
        )));
    }
    Ok(shipped().iter().find(|model| model.name == first.model))
}

/// Whether `called` matches a device of this name: some consecutive words of the name must equal the words of `called`.
///
/// ```
/// assert!(mxprobe_models::is_called("AMD Radeon RX 7900 XTX (RADV NAVI31)", "7900xtx"));
/// assert!(mxprobe_models::is_called("NVIDIA H100 80GB HBM3", "h100"));
/// assert!(!mxprobe_models::is_called("NVIDIA A100-SXM4-80GB", "a10"));
/// ```
#[must_use]
pub fn is_called(device: &str, called: &str) -> bool {
    let (words, key) = (words(device), words(called).concat());
    let is_index = key.len() < 3 && key.bytes().all(|byte| byte.is_ascii_digit());
    !is_index && (1..=words.len()).any(|end| ends(&words[..end], &key))
}

/// Whether the last words of a name, joined without spaces, equal `key`.
fn ends(words: &[String], key: &str) -> bool {
    let has_digit = key.bytes().any(|byte| byte.is_ascii_digit());
    key.len() > 1 && has_digit && (0..words.len()).any(|from| words[from..].concat() == key)
}

/// The words of a name that identify the chip, in lower case.
fn words(name: &str) -> Vec<String> {
    let is_size = |word: &str| word.strip_suffix("gb").is_some_and(|size| size.parse::<u32>().is_ok());
    let words = name.split(|letter: char| !letter.is_ascii_alphanumeric()).map(str::to_ascii_lowercase);
    words.filter(|word| !word.is_empty() && !is_size(word) && !FILE.ignored.contains(word)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_card_has_a_shipped_model_and_is_found_by_its_name() {
        for card in cards() {
            assert!(!card.source.is_empty(), "{card:?}");
            let found = find(card.name).unwrap_or_else(|error| panic!("{card:?}: {error}"));
            assert_eq!(found.map(|model| model.name.as_str()), Some(card.model), "{card:?}");
        }
    }

    #[test]
    fn an_alias_and_a_card_of_one_name_mean_one_model() {
        for model in shipped() {
            for alias in &model.aliases {
                let key = words(alias).concat();
                for card in cards().filter(|card| ends(&words(card.name), &key) && words(card.name).concat() == key) {
                    assert_eq!(card.model, model.name, "{alias}: {card:?}");
                }
            }
        }
    }

    #[test]
    fn a_card_is_found_by_what_people_call_it() {
        for (name, model) in [
            ("h100", "h100"),
            ("H100 SXM5 80GB", "h100"),
            ("NVIDIA H100 80GB HBM3", "h100"),
            ("h200", "h100"),
            ("RTX 4090", "l40s"),
            ("rtx4090", "l40s"),
            ("4090", "l40s"),
            ("4070 ti super", "l40s"),
            ("RTX 6000 Ada Generation", "l40s"),
            ("RX 7900 XTX", "rdna3"),
            ("7900xtx", "rdna3"),
            ("AMD Radeon RX 7900 XTX", "rdna3"),
            ("rx9070xt", "rdna4"),
            ("mi300x", "mi300x"),
            ("AMD Instinct MI300X", "mi300x"),
            ("b200", "b200"),
            ("A100-SXM4-80GB", "a100"),
            ("3090", "a100"),
            ("RTX A6000", "a100"),
            ("5090", "rtx5090"),
            ("2080 Ti", "t4"),
            ("Tesla V100-SXM2-16GB", "v100"),
        ] {
            assert_eq!(find(name).unwrap().map(|found| found.name.as_str()), Some(model), "{name}");
        }
        for name in ["", " ", "nvidia", "rtx", "xtx", "0", "GeForce GTX 1080", "h10", "90"] {
            assert!(find(name).unwrap().is_none(), "{name}");
        }
    }

    #[test]
    fn a_name_of_cards_of_several_models_is_refused_with_two_of_them() {
        let error = find("4000").unwrap_err().to_string();
        for word in ["`4000`", "`Quadro RTX 4000` (model t4)", "(model rtx5090)"] {
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn a_device_is_called_by_whole_words_of_its_name() {
        assert!(is_called("NVIDIA GeForce RTX 4090", "4090") && is_called("NVIDIA GeForce RTX 4090", "rtx4090"));
        assert!(is_called("NVIDIA GeForce RTX 4070 Ti SUPER", "RTX 4070 Ti"));
        assert!(!is_called("NVIDIA A100-SXM4-80GB", "a10") && !is_called("NVIDIA GeForce RTX 4090", "40"));
        assert!(!is_called("llvmpipe (LLVM 20.1.2, 256 bits)", "20") && !is_called("anything", ""));
    }
}
