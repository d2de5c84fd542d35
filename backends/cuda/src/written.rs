//! The guard against memory that the device never wrote.

use mxprobe_api::Error;

/// The fill bytes of output memory before a launch, and before the second launch that shows whether anything was
/// written.
pub(crate) const FILLINGS: [u8; 2] = [0xa5, 0x5a];

/// Launches over memory that was filled with a byte, and returns its content. If any parts still hold only that byte,
/// launches again over another byte; parts that then hold only the other byte were never written.
///
/// # Errors
/// That of the launch; [`Error::is_nothing_written`] with the text from `words` for the parts that were never written.
pub(crate) fn written(
    launch: impl Fn(u8) -> Result<Vec<u8>, Error>,
    filled_with: impl Fn(&[u8], u8) -> Vec<usize>,
    words: impl Fn(&[usize]) -> String,
) -> Result<Vec<u8>, Error> {
    let [first, second] = FILLINGS;
    let d = launch(first)?;
    let mut suspects = filled_with(&d, first);
    if suspects.is_empty() {
        return Ok(d);
    }
    let d = launch(second)?;
    let still = filled_with(&d, second);
    suspects.retain(|part| still.contains(part));
    if suspects.is_empty() { Ok(d) } else { Err(Error::nothing_written(words(&suspects))) }
}

/// Whether all bytes equal `filling`.
pub(crate) fn is_all(bytes: &[u8], filling: u8) -> bool {
    bytes.iter().all(|byte| *byte == filling)
}
