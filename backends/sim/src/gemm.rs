//! Whole matrices through a model.

use mxprobe_api::{Elements, Error, Format, OperationId};

use crate::{fast::Evaluator, model::Model};

/// The operands of D = A·B + C of any size, row-major, as bits.
///
/// A is m×k, B is k×n, C is m×n. An operation with block scales takes `scale_a`, m×⌈k/block⌉, and `scale_b`,
/// ⌈k/block⌉×n.
#[derive(Clone, Copy, Debug)]
pub struct Matrices<'a> {
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
    /// The scales of A, m×⌈k/block⌉, for an operation that has them.
    pub scale_a: Option<&'a Elements>,
    /// The scales of B, ⌈k/block⌉×n, for an operation that has them.
    pub scale_b: Option<&'a Elements>,
}

/// D = A·B + C, m×n and row-major, as the unit would compute it that does one `id` after another along k.
///
/// Each element of D goes through ⌈k / the operation's k⌉ operations (at least one), k ascending, and the d of one is
/// the c of the next, rounded as the unit rounds d. The last operation is padded with products of +0 by +0, and with
/// scales of 1. The operation's own m and n do not matter: no element of D depends on another. NaN, infinities,
/// subnormals and the sign of zero are the model's.
///
/// `threads` threads share the rows; with 0 or 1 the calling thread does it all. The result does not depend on it.
///
/// ```
/// use mxprobe_api::{Elements, Format};
/// use mxprobe_sim::{Matrices, load, multiply};
///
/// let model = load("fma-chain")?;
/// let id = "dot.m1n1k16.f32.f16.f16.f32".parse()?;
/// let a = Elements::from_bits(Format::F16, [0x3c00, 0x4000]); // 1 2
/// let b = Elements::from_bits(Format::F16, [0x4200, 0x3800]); // 3, 0.5
/// let c = Elements::zeros(Format::F32, 1);
/// let matrices = Matrices { m: 1, n: 1, k: 2, a: &a, b: &b, c: &c, scale_a: None, scale_b: None };
/// let d = multiply(&model, &id, &matrices, 1)?;
/// assert_eq!(d.get(0), 0x4080_0000); // 4
/// # Ok::<(), mxprobe_api::Error>(())
/// ```
///
/// # Errors
/// [`Error::is_invalid`] if the model has no such operation, a matrix has another format or length than the shape asks
/// for, or k is longer than the operation's and d is not of the format of c.
pub fn multiply(model: &Model, id: &OperationId, matrices: &Matrices<'_>, threads: usize) -> Result<Elements, Error> {
    Evaluator::new(model, id)?.multiply(matrices, threads)
}

impl Evaluator {
    /// As [`multiply`], with an evaluator that was made before.
    ///
    /// # Errors
    /// As [`multiply`].
    pub fn multiply(&self, matrices: &Matrices<'_>, threads: usize) -> Result<Elements, Error> {
        matrices.check(self.id())?;
        Ok(self.matrices(matrices, threads))
    }
}

impl Matrices<'_> {
    fn check(&self, id: &OperationId) -> Result<(), Error> {
        let Self { m, n, k, a, b, c, scale_a, scale_b } = *self;
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
        check("a", a, id.a, m, k)?;
        check("b", b, id.b, k, n)?;
        check("c", c, id.c, m, n)?;
        match (id.block_scale(), scale_a, scale_b) {
            (None, None, None) => {}
            (None, ..) => return Err(Error::invalid(format!("{id} takes no block scales"))),
            (Some(scale), Some(scale_a), Some(scale_b)) => {
                let blocks = k.div_ceil(scale.block);
                check("scale_a", scale_a, scale.format, m, blocks)?;
                check("scale_b", scale_b, scale.format, blocks, n)?;
            }
            (Some(_), ..) => return Err(Error::invalid(format!("{id} takes scale_a and scale_b"))),
        }
        let step = id.shape.sizes().2;
        if k > step && id.d != id.c {
            return Err(Error::invalid(format!(
                "k is {k}, and {id} takes {step} at a time: its d, {}, cannot be the next one's c, {}",
                id.d, id.c
            )));
        }
        Ok(())
    }
}
