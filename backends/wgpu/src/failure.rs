//! Translation of wgpu's errors to typed ones.

use std::error::Error as _;

use mxprobe_api::Error;

/// Converts an error that wgpu reported during `what`, as one line.
pub(crate) fn failure(what: &str, error: &wgpu::Error) -> Error {
    let text = format!("{what}: {}", one_line(error));
    match error {
        wgpu::Error::OutOfMemory { .. } => Error::out_of_memory(text),
        wgpu::Error::Validation { .. } | wgpu::Error::Internal { .. } => {
            if is_lost(&text) {
                Error::device_lost(text)
            } else {
                Error::driver(text)
            }
        }
    }
}

/// Converts the error of a failed request for a device.
pub(crate) fn not_opened(error: &wgpu::RequestDeviceError) -> Error {
    let text = format!("the adapter did not open: {error}");
    // wgpu distinguishes these in a private type.
    let lower = text.to_lowercase();
    if is_lost(&text) {
        Error::device_lost(text)
    } else if lower.contains("memory") {
        Error::out_of_memory(text)
    } else if lower.contains("not supported") || lower.contains("unsupported") || lower.contains("exceed") {
        Error::unsupported(text)
    } else {
        Error::driver(text)
    }
}

/// Whether the device is lost; wgpu reports its use as a validation or internal error.
fn is_lost(text: &str) -> bool {
    let lower = text.to_lowercase();
    lower.contains("device is lost") || lower.contains("device was lost") || lower.contains("devicelost")
}

/// Joins the description and all causes; wgpu's own text has an indented line for each cause.
fn one_line(error: &wgpu::Error) -> String {
    let mut words = match error {
        wgpu::Error::OutOfMemory { .. } => vec!["out of memory".to_owned()],
        wgpu::Error::Validation { .. } => vec!["wgpu refused it".to_owned()],
        wgpu::Error::Internal { .. } => vec!["wgpu or the driver failed".to_owned()],
    };
    let mut cause = error.source();
    while let Some(now) = cause {
        words.push(now.to_string().split_whitespace().collect::<Vec<_>>().join(" "));
        cause = now.source();
    }
    words.join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_failure_has_its_predicate_and_names_what_was_done() {
        let source = |text: &str| -> Box<dyn std::error::Error + Send + Sync> { text.into() };
        let validation = |text: &str| wgpu::Error::Validation { source: source(text), description: text.to_owned() };
        let lost = failure("a dispatch", &validation("Parent device is lost"));
        assert!(lost.is_device_lost() && lost.to_string().starts_with("a dispatch: "), "{lost}");
        let memory = failure("a buffer", &wgpu::Error::OutOfMemory { source: source("no memory left") });
        assert!(memory.is_out_of_memory(), "{memory}");
        assert_eq!(memory.to_string(), "a buffer: out of memory: no memory left");
        let other = failure("a shader", &validation("line 1\n  unknown identifier"));
        assert_eq!(other, Error::driver("a shader: wgpu refused it: line 1 unknown identifier"));
    }
}
