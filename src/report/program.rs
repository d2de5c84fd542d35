//! This build of the program, as reports describe it.

use super::Tool;

/// Describes this program, called with these arguments; paths are shortened to their last part.
#[must_use]
pub fn this_tool(arguments: &[String]) -> Tool {
    let tool = Tool {
        name: "mxprobe".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        commit: option_env!("MXPROBE_COMMIT").map(str::to_owned),
        dirty: option_env!("MXPROBE_DIRTY").map(|dirty| dirty == "true"),
        target: env!("MXPROBE_TARGET").into(),
        rustc: env!("MXPROBE_RUSTC").into(),
        backends: backends(),
        arguments: Vec::new(),
        seed: None,
    };
    tool.with_arguments(arguments)
}

/// Lists the backends of this build, each a feature of the same name; models are always included.
fn backends() -> Vec<String> {
    let built = [
        ("cpu", cfg!(feature = "cpu")),
        ("cuda", cfg!(feature = "cuda")),
        ("vulkan", cfg!(feature = "vulkan")),
        ("wgpu", cfg!(feature = "wgpu")),
        ("sim", true),
    ];
    built.into_iter().filter(|(_, is_built)| *is_built).map(|(name, _)| name.to_owned()).collect()
}

/// Returns the version, and the commit it was built from if that is known: `0.2.0 (189a911d2c3b, with local changes)`.
#[must_use]
pub fn build_version() -> String {
    this_tool(&[]).version_and_commit()
}
