//! The name of a kernel in reports.

use sha2::{Digest, Sha256};

/// The SHA-256 digest of a kernel's text or machine code, as 64 lower-case hexadecimal digits.
///
/// ```
/// assert!(mxprobe_shaders::sha256(b"").starts_with("e3b0c44298fc1c14"));
/// ```
#[must_use]
pub fn sha256(kernel: &[u8]) -> String {
    Sha256::digest(kernel).iter().map(|byte| format!("{byte:02x}")).collect()
}
