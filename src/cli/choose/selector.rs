//! What `--device` says, before it is looked for.

use crate::report::DeviceRecord;

use crate::cli::{choose::registry::Entry, failure::Failure};

/// What `--device` says.
pub(super) enum Selector {
    /// Every device that is no model.
    All,
    /// One backend, and what is meant of it.
    Of(&'static Entry, Choice),
    /// Another program: what follows `exec:`.
    Program(String),
    /// A name without a backend: of hardware, else of a model.
    Name(String),
}

/// Which devices of a backend.
pub(super) enum Choice {
    All,
    Named(String),
}

/// `vulkan:"RTX 4090"` may reach us with its quotes.
pub(super) fn unquoted(name: &str) -> &str {
    name.strip_prefix('"').and_then(|name| name.strip_suffix('"')).unwrap_or(name)
}

/// Whether a name is that of a model file.
pub(super) fn is_path(name: &str) -> bool {
    name.contains(['/', '\\', '@']) || name.ends_with(".toml")
}

/// A name means several devices, and one is wanted.
pub(super) fn one_of<'a>(text: &str, devices: impl ExactSizeIterator<Item = &'a DeviceRecord>) -> Failure {
    let mut failure = Failure::usage(format!("`{text}` may mean {} devices", devices.len()));
    for device in devices {
        failure = failure.cause(format!("{}  {}", device.selector, device.name));
    }
    failure.help("name one of them by its selector, the first word of its line")
}
