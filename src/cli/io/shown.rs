//! The progress bar on the terminal, and other output while it is shown.

use std::sync::Mutex;

use indicatif::ProgressBar;

use crate::aside::locked;

/// The current bar. There is one terminal, so there is one bar.
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Sets the bar that is shown from now on.
pub(super) fn set(bar: Option<ProgressBar>) {
    *locked(&SHOWN) = bar;
}

/// Writes something else to the terminal, above the bar if one is shown.
pub(super) fn aside<R>(write: impl FnOnce() -> R) -> R {
    let shown = locked(&SHOWN).clone();
    match shown {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
}
