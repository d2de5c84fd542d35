//! Whole matrices: the third ability of a device, which it may lack.

use crate::{Device, Elements, Error, Format, Operation};

/// The operands of D = A·B + C of any size, row-major, as bits: A m×k, B k×n, C and D m×n.
#[derive(Clone, Copy, Debug)]
pub struct Product<'a> {
    /// Rows of A, C and D.
    pub m: usize,
    /// Columns of B, C and D.
    pub n: usize,
    /// Products in one element of D.
    pub k: usize,
    /// A, m×k.
    pub a: &'a Elements,
    /// B, k×n.
    pub b: &'a Elements,
    /// C, m×n.
    pub c: &'a Elements,
}

impl Product<'_> {
    /// Checks formats and lengths against the operation, and that it can be chained along k.
    ///
    /// # Errors
    /// [`Error::is_invalid`] with the first operand that does not fit; [`Error::is_unsupported`] where k takes more than one
    /// operation and d is not of the format of c, or the operation has block scales.
    pub fn validate(&self, operation: &Operation) -> Result<(), Error> {
        let id = &operation.id;
        let check = |name: &str, elements: &Elements, format: Format, rows: usize, columns: usize| {
            if elements.format() != format {
                return Err(Error::invalid(format!("{name} holds {} where {id} takes {format}", elements.format())));
            }
            if rows.checked_mul(columns) != Some(elements.len()) {
                return Err(Error::invalid(format!(
                    "{name} holds {} elements where {rows}×{columns} are wanted",
                    elements.len()
                )));
            }
            Ok(())
        };
        check("a", self.a, id.a, self.m, self.k)?;
        check("b", self.b, id.b, self.k, self.n)?;
        check("c", self.c, id.c, self.m, self.n)?;
        if id.block_scale().is_some() {
            return Err(Error::unsupported(format!("{id} has block scales; whole matrices are multiplied without")));
        }
        if self.k > id.shape.sizes().2 && id.c != id.d {
            return Err(Error::unsupported(format!(
                "k is {}, {id} takes {} at a time, and its d, {}, cannot be the next one's c, {}",
                self.k, id.shape.k, id.d, id.c
            )));
        }
        Ok(())
    }
}

/// Validates, multiplies, and checks the shape of what came back; `None` where the device multiplies tiles alone.
///
/// # Errors
/// As [`Product::validate`], and if the device does not claim the operation; else what the device reports.
pub fn multiply(device: &dyn Device, operation: &Operation, product: &Product<'_>) -> Result<Option<Elements>, Error> {
    let selector = &device.info().selector;
    if !device.operations().contains_key(&operation.id) {
        return Err(Error::invalid(format!("{selector} has no operation {}", operation.id)));
    }
    product.validate(operation)?;
    let Some(d) = device.multiply(operation, product)? else { return Ok(None) };
    if d.format() != operation.id.d || d.len() != product.m * product.n {
        return Err(Error::driver(format!(
            "{selector} returned {} elements of {} for a {}×{} product of {}",
            d.len(),
            d.format(),
            product.m,
            product.n,
            operation.id
        )));
    }
    Ok(Some(d))
}
