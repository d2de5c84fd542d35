//! The guard against memory that the device never wrote, for launches that return the content of D.

use mxprobe_api::{Error, written::until_written};

/// Launches over memory that was filled with a byte, and returns its content. `filled_with` returns the parts that still
/// hold only that byte.
///
/// # Errors
/// That of the launch; [`Error::is_nothing_written`] with the text from `words` for the parts that were never written.
pub(crate) fn written(
    launch: impl Fn(u8) -> Result<Vec<u8>, Error>,
    filled_with: impl Fn(&[u8], u8) -> Vec<usize>,
    words: impl Fn(&[usize]) -> String,
) -> Result<Vec<u8>, Error> {
    let mut d = Vec::new();
    until_written(
        |filling| {
            d = launch(filling)?;
            Ok(filled_with(&d, filling))
        },
        words,
    )?;
    Ok(d)
}
