//! Papers on matrix units: their printed numbers, and the same numbers computed here.
//!
//! A paper is a data file (`data/NAME.toml`): its sections, tables and figures, and every number that they print, with
//! a [`Check`] that computes it again, on a model of the paper's unit or on any device. The data gives a reason for
//! each number that differs; a difference without one is an error of the paper, of a model or of this program.

mod checks;
mod computed;
mod file;
mod target;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use mxprobe_api::ErrorKind;

pub use checks::Check;
pub use computed::Computed;
pub use file::{Item, Paper, Section};
pub use target::Target;

use crate::{
    report::{PaperItem, PaperRecord, PaperSection, Verdict},
    session::Asked,
};

/// All papers, in the order of their years.
#[must_use]
pub fn all() -> &'static [Paper] {
    static ALL: LazyLock<Vec<Paper>> = LazyLock::new(|| file::TEXTS.iter().map(|text| Paper::parse(text)).collect());
    &ALL
}

/// The paper with this name.
#[must_use]
pub fn named(name: &str) -> Option<&'static Paper> {
    all().iter().find(|paper| paper.name.eq_ignore_ascii_case(name))
}

/// Computes every number of a paper, on this device if there is one, otherwise on models of the paper's units. `before`
/// is called before each item.
///
/// # Errors
/// The errors of `before`.
pub fn check<E>(
    paper: &Paper,
    device: Option<&Asked>,
    before: &mut dyn FnMut(&Item) -> Result<(), E>,
) -> Result<PaperRecord, E> {
    let mut sections: Vec<PaperSection> = Vec::new();
    for section in &paper.section {
        let mut items = Vec::new();
        for item in paper.item.iter().filter(|item| item.place == section.place) {
            before(item)?;
            items.push(answer(item, device));
        }
        sections.push(PaperSection {
            place: section.place.clone(),
            about: section.about.clone(),
            none: section.none.clone(),
            items,
        });
    }
    Ok(PaperRecord {
        name: paper.name.clone(),
        title: paper.title.clone(),
        reference: paper.reference.clone(),
        sections,
    })
}

fn answer(item: &Item, device: Option<&Asked>) -> PaperItem {
    let target = Target { unit: item.unit.as_deref(), device };
    let (computed, verdict, reason) = match item.check.compute(&target) {
        Ok(Computed { text, agrees: true }) => (text, Verdict::Equal, None),
        // The reason applies to the paper's unit; another device may differ for any reason.
        Ok(Computed { text, agrees: false }) if device.is_none() || item.unit.is_none() => match &item.why {
            Some(why) => (text, Verdict::Explained, Some(why.clone())),
            None => (text, Verdict::Differs, None),
        },
        Ok(Computed { text, agrees: false }) => (text, Verdict::Differs, None),
        Err(error) if error.kind() == ErrorKind::Unsupported => {
            (String::new(), Verdict::Unsupported, Some(error.to_string()))
        }
        Err(error) => (String::new(), Verdict::Failed, Some(error.to_string())),
    };
    PaperItem {
        asked: item.asked.clone(),
        unit: item.unit.clone(),
        printed: item.printed.clone(),
        computed,
        verdict,
        reason,
    }
}
