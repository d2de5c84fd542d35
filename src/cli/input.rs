//! Files that are read.

use std::{
    fs,
    io::{self, Read},
    path::Path,
};

use super::failure::Failure;

/// The text of a file, or of standard input for `-`.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    let bytes = if path == Path::new("-") {
        let mut bytes = Vec::new();
        io::stdin().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        fs::read(path)
    };
    let bytes = bytes.map_err(|error| Failure::usage(format!("`{}` cannot be read: {error}", path.display())))?;
    String::from_utf8(bytes)
        .map_err(|error| Failure::usage(format!("`{}` is no text in UTF-8: {error}", path.display())))
}
