//! Files, standard streams, signals: dots as JSON lines, NumPy files, progress.

pub(super) mod dot_lines;
pub(super) mod input;
pub(super) mod interrupt;
pub(super) mod journal;
pub(super) mod npy;
pub(super) mod output;
pub(super) mod progress;
mod shown;
