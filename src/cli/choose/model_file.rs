//! The text from which a model was read.

use crate::report::ListedDevice;
use sha2::{Digest, Sha256};

/// The property of a model from a file: the SHA-256 of its text.
pub(crate) const DIGEST: &str = "model_sha256";

/// Records the digest of the text from which a model was read, if its name is that of a file.
pub(crate) fn sign(listed: &mut ListedDevice, name: &str) {
    // Which part is the file and which the variant is decided as in the model's own reader.
    let file =
        name.rsplit_once('@').map_or(name, |(file, variant)| if variant.contains(['/', '.']) { name } else { file });
    if let Ok(text) = std::fs::read(file) {
        let digest: String = Sha256::digest(&text).iter().map(|byte| format!("{byte:02x}")).collect();
        listed.device.properties.insert(DIGEST.to_owned(), digest);
    }
}
