//! Parsed values of `--device`, before devices are searched.

use crate::report::DeviceRecord;

use crate::cli::{choose::registry::Entry, failure::Failure};

/// A parsed value of `--device`.
pub(super) enum Selector {
    /// Every device except models.
    All,
    /// One backend, and the choice among its devices.
    Of(&'static Entry, Choice),
    /// Another program: the text after `exec:`.
    Program(String),
    /// A name without a backend: of hardware, or else of a model.
    Name(String),
}

/// A choice among the devices of a backend.
pub(super) enum Choice {
    All,
    Named(String),
}

/// Removes the quotes of `vulkan:"RTX 4090"`, which some shells pass on.
pub(super) fn unquoted(name: &str) -> &str {
    name.strip_prefix('"').and_then(|name| name.strip_suffix('"')).unwrap_or(name)
}

/// Whether a name is a path to a model file.
pub(super) fn is_path(name: &str) -> bool {
    name.contains(['/', '\\', '@']) || name.ends_with(".toml")
}

/// The error for a name that matches several devices when one is needed.
pub(super) fn one_of<'a>(text: &str, devices: impl ExactSizeIterator<Item = &'a DeviceRecord>) -> Failure {
    let mut failure = Failure::usage(format!("`{text}` matches {} devices", devices.len()));
    for device in devices {
        failure = failure.cause(format!("{}  {}", device.selector, device.name));
    }
    failure.help("name one of them by its selector, the first word of its line")
}
