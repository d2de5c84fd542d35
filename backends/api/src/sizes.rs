//! Operations whose sizes a device leaves open, and how they are fixed.

use crate::{Error, Operation, OperationId, Shape};

/// Marks an open size in the id of an operation.
const FREE: char = '*';

/// The default for open sizes: enough products to show a summation tree, with few elements.
pub const USUAL: Shape = Shape { m: 8, n: 8, k: 16 };

/// An operation that leaves sizes open: `gemm.m*n*k*.f32.bf16.bf16.f32`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreeOperation {
    /// Its id, with `*` for some of the sizes.
    pattern: String,
    /// The operation with each open size set to 1.
    least: Operation,
}

/// The requested sizes.
#[derive(Clone, Debug, Default)]
pub struct Sizes {
    /// For every operation that leaves sizes open.
    pub shape: Option<Shape>,
    /// Ids that fix the sizes of individual operations.
    pub ids: Vec<OperationId>,
}

impl FreeOperation {
    /// Parses the id of an operation; `None` if it leaves no size open.
    ///
    /// # Errors
    /// If it is not a valid id with sizes in place of `*`.
    pub fn read(pattern: &str) -> Result<Option<Self>, Error> {
        if !pattern.contains(FREE) {
            return Ok(None);
        }
        let least = Operation::new(fixed(pattern, Shape { m: 1, n: 1, k: 1 })?, "");
        Ok(Some(Self { pattern: pattern.to_owned(), least }))
    }

    /// Returns the same operation with further fields set.
    #[must_use]
    pub fn described(mut self, of: impl FnOnce(&mut Operation)) -> Self {
        of(&mut self.least);
        self
    }

    /// Its id, with `*` for the open sizes.
    #[must_use]
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// The operation with each open size set to 1.
    #[must_use]
    pub fn least(&self) -> &Operation {
        &self.least
    }

    /// Whether this is the id of the operation with some sizes.
    #[must_use]
    pub fn has(&self, id: &OperationId) -> bool {
        self.id(id.shape).as_ref() == Some(id)
    }

    /// The operations with these sizes: one for each matching id, and one with the shape if a shape is given or no id
    /// matches.
    #[must_use]
    pub fn of(&self, sizes: &Sizes) -> Vec<Operation> {
        let named = sizes.ids.iter().filter(|id| self.has(id));
        let mut ids: Vec<OperationId> = named.cloned().collect();
        if ids.is_empty() || sizes.shape.is_some() {
            ids.extend(self.id(sizes.shape.unwrap_or(USUAL)));
        }
        ids.into_iter().map(|id| Operation { id, ..self.least.clone() }).collect()
    }

    fn id(&self, shape: Shape) -> Option<OperationId> {
        fixed(&self.pattern, shape).ok()
    }
}

/// Replaces the open sizes of a pattern and parses the result as an id.
fn fixed(pattern: &str, Shape { m, n, k }: Shape) -> Result<OperationId, Error> {
    let mut words: Vec<String> = pattern.split('.').map(str::to_owned).collect();
    if let Some(shape) = words.get_mut(1) {
        for (letter, size) in [('m', m), ('n', n), ('k', k)] {
            *shape = shape.replace(&format!("{letter}{FREE}"), &format!("{letter}{size}"));
        }
    }
    words.join(".").parse().map_err(|error| Error::invalid(format!("`{pattern}`, with sizes for `*`: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn free(pattern: &str) -> FreeOperation {
        FreeOperation::read(pattern).unwrap().unwrap()
    }

    fn ids(pattern: &str, shape: Option<Shape>, ids: &[&str]) -> Vec<String> {
        let sizes = Sizes { shape, ids: ids.iter().map(|id| id.parse().unwrap()).collect() };
        free(pattern).of(&sizes).into_iter().map(|operation| operation.id.to_string()).collect()
    }

    #[test]
    fn open_sizes_are_fixed_by_ids_by_a_shape_or_by_the_usual_one() {
        let pattern = "gemm.m*n*k*.f32.bf16.bf16.f32";
        let shape = Some(Shape { m: 2, n: 3, k: 5 });
        let (of_id, of_shape) = ("gemm.m1n2k64.f32.bf16.bf16.f32", "gemm.m2n3k5.f32.bf16.bf16.f32");
        assert_eq!(ids(pattern, None, &[]), ["gemm.m8n8k16.f32.bf16.bf16.f32"]);
        assert_eq!(ids(pattern, shape, &[]), [of_shape]);
        assert_eq!(ids(pattern, None, &[of_id, "gemm.m1n2k64.f32.f16.f16.f32"]), [of_id]);
        assert_eq!(ids(pattern, shape, &[of_id]), [of_id, of_shape]);
        assert_eq!(
            ids("dot.m1n*k4.f32.e4m3.e4m3.f32.block4.ue8m0", shape, &[]),
            ["dot.m1n3k4.f32.e4m3.e4m3.f32.block4.ue8m0"]
        );
    }

    #[test]
    fn an_id_that_fixes_another_size_than_the_operation_has_is_not_meant() {
        assert_eq!(
            ids("gemm.m*n8k*.f32.f16.f16.f32", None, &["gemm.m1n4k2.f32.f16.f16.f32"]),
            ["gemm.m8n8k16.f32.f16.f16.f32"]
        );
    }

    #[test]
    fn what_would_be_no_id_with_sizes_is_refused_with_the_text() {
        assert_eq!(FreeOperation::read("gemm.m1n1k1.f32.f16.f16.f32").unwrap(), None);
        for pattern in ["gemm.*.f32.f16.f16.f32", "gemm.m*n*k*.f32.f16.f16", "gemm.m*n*k**.f32.f16.f16.f32", "*"] {
            let error = FreeOperation::read(pattern).unwrap_err();
            assert!(error.is_invalid() && error.to_string().contains(&format!("`{pattern}`")), "{error}");
        }
    }
}
