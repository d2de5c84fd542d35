//! The bar that is on the terminal, and how anything else is written there meanwhile.

use std::sync::{Mutex, PoisonError};

use indicatif::ProgressBar;

/// The bar that is shown now. There is one terminal, so there is one.
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Says which bar is shown from now on.
pub(super) fn set(bar: Option<ProgressBar>) {
    *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = bar;
}

/// Writes something else to the terminal: above the bar, if one is shown.
pub(super) fn aside<R>(write: impl FnOnce() -> R) -> R {
    let shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match shown {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
}
