//! The guard against output memory that a device never wrote: a driver may report success for a kernel that did not run.

use crate::Error;

/// The fill bytes of output memory before a launch, and before the second launch that shows whether anything was
/// written.
pub const FILLINGS: [u8; 2] = [0xa5, 0x5a];

/// Whether all bytes equal `filling`.
#[must_use]
pub fn is_all(bytes: &[u8], filling: u8) -> bool {
    bytes.iter().all(|byte| *byte == filling)
}

/// Computes over output memory that is filled with one byte first and, if any part still holds only that byte, once more
/// over another byte. Parts that hold only the filling both times were never written; otherwise the output of the last
/// attempt is right, since a part may also contain the fill byte as its result.
///
/// `attempt` fills the output with its argument, computes, and returns the parts that still hold only that byte, in
/// ascending order. `words` describes the parts that were never written.
///
/// ```
/// use mxprobe_api::written::{is_all, until_written};
/// let mut output = [0u8; 2];
/// // A device that writes the first part only, with what happens to be the first filling.
/// let error = until_written(
///     |filling| {
///         output = [0xa5, filling];
///         Ok((0..2).filter(|part| is_all(&output[*part..=*part], filling)).collect())
///     },
///     |parts| format!("never written: {parts:?}"),
/// );
/// let error = error.unwrap_err();
/// assert!(error.is_nothing_written() && error.to_string().contains("[1]"));
/// ```
///
/// # Errors
/// Those of `attempt`; [`Error::is_nothing_written`] with the text from `words`.
pub fn until_written(
    mut attempt: impl FnMut(u8) -> Result<Vec<usize>, Error>,
    words: impl FnOnce(&[usize]) -> String,
) -> Result<(), Error> {
    let [first, second] = FILLINGS;
    let mut suspects = attempt(first)?;
    if !suspects.is_empty() {
        let still = attempt(second)?;
        suspects.retain(|part| still.binary_search(part).is_ok());
    }
    if suspects.is_empty() { Ok(()) } else { Err(Error::nothing_written(words(&suspects))) }
}
