//! Models that a command asks for by name, where it takes no other device.

use mxprobe::report::ListedDevice;
use mxprobe_sim::Model;
use sha2::{Digest, Sha256};

use super::{failure::Failure, registry::MODELS, select};

/// A model, and what it lists as a device.
pub(crate) struct Chosen {
    /// What it is called here, variant included: `h100`, `./mine.toml`.
    pub(crate) name: String,
    /// The model.
    pub(crate) model: Model,
    /// Its operations.
    pub(crate) listed: ListedDevice,
}

/// The property of a model that is a file: the SHA-256 of its text.
pub(crate) const DIGEST: &str = "model_sha256";

/// Says which text a model was read from, where its name is that of a file.
pub(crate) fn sign(listed: &mut ListedDevice, name: &str) {
    // What a file is, and what its variant, the model's own reader knows.
    let file =
        name.rsplit_once('@').map_or(name, |(file, variant)| if variant.contains(['/', '.']) { name } else { file });
    if let Ok(text) = std::fs::read(file) {
        let digest: String = Sha256::digest(&text).iter().map(|byte| format!("{byte:02x}")).collect();
        listed.device.properties.insert(DIGEST.to_owned(), digest);
    }
}

/// The model of a name, with or without `sim:` before it.
pub(crate) fn chosen(name: &str) -> Result<Chosen, Failure> {
    let prefix = format!("{MODELS}:");
    let bare = name.strip_prefix(&prefix).unwrap_or(name);
    let selector = format!("{prefix}{bare}");
    let (targets, _) = select::named(&[selector], &[], false)?;
    let [target] = targets.as_slice() else {
        return Err(Failure::usage(format!("`{name}` means {} models", targets.len())).help("name one of them"));
    };
    let name = target.selector.strip_prefix(&prefix).unwrap_or(&target.selector).to_owned();
    let model = mxprobe_sim::load(&name).map_err(Failure::usage)?;
    Ok(Chosen { name, model, listed: target.listed.clone() })
}
