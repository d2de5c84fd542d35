//! Which text a model was read from.

use crate::report::ListedDevice;
use sha2::{Digest, Sha256};

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
