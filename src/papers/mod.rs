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

use std::{
    panic::resume_unwind,
    sync::{
        LazyLock,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread::{self, ScopedJoinHandle},
};

use mxprobe_api::ErrorKind;
use mxprobe_models::threads;

pub use checks::Check;
pub use computed::Computed;
pub use file::{Item, Paper, Section};
pub use target::Target;

use crate::{
    in_order::InOrder,
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

/// Computes every number of a paper, on this device if there is one, otherwise on models of the paper's units, with one
/// thread per core. `before` is called on this thread as each item is begun.
///
/// # Errors
/// The errors of `before`; items that were begun before are finished first.
pub fn check<E>(
    paper: &Paper,
    device: Option<&Asked>,
    before: &mut dyn FnMut(&Item) -> Result<(), E>,
) -> Result<PaperRecord, E> {
    let items: Vec<&Item> = paper.section.iter().flat_map(|section| paper.items(section)).collect();
    let mut answers = answers(&items, device, before)?.into_iter();
    let sections = paper.section.iter().map(|section| PaperSection {
        place: section.place.clone(),
        about: section.about.clone(),
        none: section.none.clone(),
        items: answers.by_ref().take(paper.items(section).count()).collect(),
    });
    let sections = sections.collect();
    Ok(PaperRecord {
        name: paper.name.clone(),
        title: paper.title.clone(),
        reference: paper.reference.clone(),
        sections,
    })
}

/// The answers to these items, in their order.
fn answers<E>(
    items: &[&Item],
    device: Option<&Asked>,
    before: &mut dyn FnMut(&Item) -> Result<(), E>,
) -> Result<Vec<PaperItem>, E> {
    let next = AtomicUsize::new(0);
    let (sender, begun) = mpsc::channel();
    let work = &|sender: mpsc::Sender<usize>| {
        let mut answered = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { return answered };
            // Nobody hears it after an error.
            if sender.send(at).is_err() {
                return answered;
            }
            answered.push((at, answer(item, device)));
        }
    };
    // A device is asked one question at a time.
    let at_once = if device.is_some() { 1 } else { threads().min(items.len()).max(1) };
    thread::scope(|scope| {
        let running: Vec<_> = (0..at_once)
            .map(|_| {
                let sender = sender.clone();
                scope.spawn(move || work(sender))
            })
            .collect();
        drop(sender);
        begun.into_iter().try_for_each(|at| before(items[at]))?;
        let of_thread = |thread: ScopedJoinHandle<'_, _>| thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        let mut answered: Vec<(usize, PaperItem)> = running.into_iter().flat_map(of_thread).collect();
        answered.order_by_key(|(at, _)| *at);
        Ok(answered.into_iter().map(|(_, answer)| answer).collect())
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
