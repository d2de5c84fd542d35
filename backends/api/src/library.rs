//! Products that others wrote for a device: yardsticks.

use crate::{Elements, Error, Format};

/// A product of f32 matrices in a library that is found at run time: something to compare with, and no unit that is asked.
pub trait Library: Send + Sync {
    /// What it is: its file, and what it says of itself.
    fn name(&self) -> &str;

    /// A·B, m×n, row-major, as f32 bits; A m×k and B k×n are f32, row-major. In which order it adds is the library's own
    /// affair.
    ///
    /// Call [`multiply_with`] instead, which validates.
    ///
    /// # Errors
    /// What the library reports, or that it cannot take these sizes.
    fn multiply(&self, sizes: (usize, usize, usize), a: &Elements, b: &Elements) -> Result<Elements, Error>;

    /// Nanoseconds that the library's kernels have run since it was opened, by the device's own clock: copies are not in
    /// it. `None` if it cannot tell.
    fn kernel_ns(&self) -> Option<u64> {
        None
    }
}

/// Validates, multiplies, and checks the shape of what came back; `sizes` are m, n and k.
///
/// # Errors
/// [`Error::is_invalid`] where A is not m×k of f32 or B not k×n; else what the library reports.
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
                "{name} holds {} elements of {} where {rows}×{columns} of f32 are wanted",
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
