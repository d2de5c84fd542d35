//! Matrix products of third-party libraries, used as yardsticks.

use crate::{Elements, Error, Format};

/// A library, found at run time, that multiplies f32 matrices: a yardstick to compare with, not a unit under test.
pub trait Library: Send + Sync {
    /// The library's file, and the name and version it reports.
    fn name(&self) -> &str;

    /// Returns A·B, m×n, row-major, as f32 bits; A (m×k) and B (k×n) are f32, row-major. The order of addition is up to
    /// the library.
    ///
    /// Call [`multiply_with`] instead, which validates.
    ///
    /// # Errors
    /// Whatever the library reports, or that it does not support these sizes.
    fn multiply(&self, sizes: (usize, usize, usize), a: &Elements, b: &Elements) -> Result<Elements, Error>;

    /// Nanoseconds that the library's kernels have run since it was opened, by the device's own clock, excluding
    /// copies. `None` if unknown.
    fn kernel_ns(&self) -> Option<u64> {
        None
    }
}

/// Validates, multiplies, and checks the shape of the result; `sizes` are m, n and k.
///
/// # Errors
/// [`Error::is_invalid`] if A is not m×k of f32 or B not k×n; otherwise whatever the library reports.
pub fn multiply_with(
    library: &dyn Library,
    sizes: (usize, usize, usize),
    a: &Elements,
    b: &Elements,
) -> Result<Elements, Error> {
    let (m, n, k) = sizes;
    for (name, elements, rows, columns) in [("a", a, m, k), ("b", b, k, n)] {
        if elements.format() != Format::F32 || rows.checked_mul(columns) != Some(elements.len()) {
            return Err(Error::invalid(format!(
                "{name} holds {} elements of {}, not {rows}×{columns} of f32",
                elements.len(),
                elements.format()
            )));
        }
    }
    let d = library.multiply(sizes, a, b)?;
    if d.format() != Format::F32 || d.len() != m * n {
        return Err(Error::driver(format!("{} returned {} elements of {}", library.name(), d.len(), d.format())));
    }
    Ok(d)
}
