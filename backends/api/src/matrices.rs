//! Multiplication of whole matrices, an optional ability of devices.

use crate::{BlockScale, Device, Elements, Error, Format, Operation, OperationId, TileBatch, execute, operation_of};

/// The operands of D = A·B + C of any size, row-major, as bits: A m×k, B k×n, C and D m×n.
///
/// An operation with block scales takes `scale_a`, m×⌈k/block⌉, and `scale_b`, ⌈k/block⌉×n.
#[derive(Clone, Copy, Debug)]
pub struct GemmOperands<'a> {
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

impl GemmOperands<'_> {
    /// Checks formats and lengths against the operation, and that it can be chained along k.
    ///
    /// # Errors
    /// [`Error::is_invalid`] with the first operand that does not fit; [`Error::is_unsupported`] if k takes more than
    /// one operation and the format of d differs from that of c.
    pub fn validate(&self, id: &OperationId) -> Result<(), Error> {
        let Self { m, n, k, a, b, c, scale_a, scale_b } = *self;
        let check = |name: &str, elements: &Elements, format: Format, rows: usize, columns: usize| {
            holds(name, elements, format, id)?;
            if rows.checked_mul(columns) != Some(elements.len()) {
                return Err(Error::invalid(format!("{name} holds {} elements, not {rows}×{columns}", elements.len())));
            }
            Ok(())
        };
        check("a", a, id.a, m, k)?;
        check("b", b, id.b, k, n)?;
        check("c", c, id.c, m, n)?;
        if let Some((scale, scale_a, scale_b)) = scales(id, scale_a, scale_b)? {
            let blocks = k.div_ceil(scale.block);
            check("scale_a", scale_a, scale.format, m, blocks)?;
            check("scale_b", scale_b, scale.format, blocks, n)?;
        }
        if k > id.shape.sizes().2 && id.c != id.d {
            return Err(Error::unsupported(format!(
                "k is {k}, {id} takes {} at a time, and its d, {}, cannot be the next one's c, {}",
                id.shape.k, id.d, id.c
            )));
        }
        Ok(())
    }
}

/// The operands of independent dots, as bits: per dot, k elements of A, k of B and one of C, one dot after another.
///
/// An operation with block scales takes ⌈k/block⌉ scales of A and of B per dot.
#[derive(Clone, Copy, Debug)]
pub struct DotOperands<'a> {
    /// The number of dots.
    pub count: usize,
    /// A: the operation's k elements per dot.
    pub a: &'a Elements,
    /// B: k elements per dot.
    pub b: &'a Elements,
    /// C: one element per dot.
    pub c: &'a Elements,
    /// The scales of A, for an operation that has them.
    pub scale_a: Option<&'a Elements>,
    /// The scales of B, for an operation that has them.
    pub scale_b: Option<&'a Elements>,
}

impl DotOperands<'_> {
    /// Checks formats and lengths against the operation.
    ///
    /// # Errors
    /// [`Error::is_invalid`] with the first operand that does not fit.
    pub fn validate(&self, id: &OperationId) -> Result<(), Error> {
        let Self { count, a, b, c, scale_a, scale_b } = *self;
        let k = id.shape.sizes().2;
        let check = |name: &str, elements: &Elements, format: Format, of_each: usize| {
            holds(name, elements, format, id)?;
            if count.checked_mul(of_each) != Some(elements.len()) {
                let found = elements.len();
                return Err(Error::invalid(format!(
                    "{name} holds {found} elements, but {count} dots take {of_each} each"
                )));
            }
            Ok(())
        };
        check("a", a, id.a, k)?;
        check("b", b, id.b, k)?;
        check("c", c, id.c, 1)?;
        if let Some((scale, scale_a, scale_b)) = scales(id, scale_a, scale_b)? {
            let blocks = k.div_ceil(scale.block);
            check("scale_a", scale_a, scale.format, blocks)?;
            check("scale_b", scale_b, scale.format, blocks)?;
        }
        Ok(())
    }
}

/// Checks that an operand has the format that an operation takes.
fn holds(name: &str, elements: &Elements, format: Format, id: &OperationId) -> Result<(), Error> {
    if elements.format() == format {
        return Ok(());
    }
    Err(Error::invalid(format!("{name} holds {}, but {id} takes {format}", elements.format())))
}

/// Checks that both scales are present if the operation takes block scales and absent otherwise, and returns them.
fn scales<'a>(
    id: &OperationId,
    a: Option<&'a Elements>,
    b: Option<&'a Elements>,
) -> Result<Option<(BlockScale, &'a Elements, &'a Elements)>, Error> {
    match (id.block_scale(), a, b) {
        (None, None, None) => Ok(None),
        (Some(scale), Some(a), Some(b)) => Ok(Some((scale, a, b))),
        (None, ..) => Err(Error::invalid(format!("{id} takes no block scales"))),
        (Some(_), ..) => Err(Error::invalid(format!("{id} takes scale_a and scale_b"))),
    }
}

/// A device that multiplies whole matrices; [`Device::matrices`] returns it.
pub trait Matrices: Send + Sync {
    /// Multiplies with the bits of a chain of operations along k, tile by tile: k ascending, the d of each operation
    /// being the c of the next, edges padded with +0, and scales with 1. Every bit equals that of [`Device::execute`];
    /// `None` if the device has no faster way for this operation.
    ///
    /// Call [`multiply`] instead, which validates. An implementation may rely on operands that were validated.
    ///
    /// # Errors
    /// Whatever the driver or the device reports.
    fn multiply(&self, operation: &Operation, operands: &GemmOperands<'_>) -> Result<Option<Elements>, Error>;

    /// Computes independent dots and returns the d of each. Every bit equals that of [`Device::execute`]; `None` if the
    /// device has no faster way for this operation than computing whole tiles.
    ///
    /// Call [`dots`] instead, which validates. An implementation may rely on operands that were validated.
    ///
    /// # Errors
    /// Whatever the driver or the device reports.
    fn dots(&self, _operation: &Operation, _operands: &DotOperands<'_>) -> Result<Option<Elements>, Error> {
        Ok(None)
    }

    /// Whether a product of one element costs as much as a whole tile. If it does not, as in a model or a simulator,
    /// the caller requests a single dot as a 1×1 product.
    fn has_tiles(&self) -> bool {
        true
    }

    /// Nanoseconds that kernels of [`multiply`](Self::multiply) have run since the device was opened, by the device's
    /// own clock, excluding packing, copies and launches. `None` if unknown.
    fn kernel_ns(&self) -> Option<u64> {
        None
    }
}

/// Validates, multiplies, and checks the shape of the result; `None` if the device multiplies only tiles.
///
/// # Errors
/// As [`GemmOperands::validate`], and if the device does not claim the operation; otherwise what the device reports.
pub fn multiply(
    device: &dyn Device,
    operation: &Operation,
    operands: &GemmOperands<'_>,
) -> Result<Option<Elements>, Error> {
    let selector = &device.info().selector;
    operation_of(device, &operation.id)?;
    operands.validate(&operation.id)?;
    let Some(matrices) = device.matrices() else { return Ok(None) };
    let Some(d) = matrices.multiply(operation, operands)? else { return Ok(None) };
    if d.format() != operation.id.d || d.len() != operands.m * operands.n {
        return Err(Error::driver(format!(
            "{selector} returned {} elements of {} for a {}×{} product of {}",
            d.len(),
            d.format(),
            operands.m,
            operands.n,
            operation.id
        )));
    }
    Ok(Some(d))
}

/// Validates, computes dots, and checks how many came back; `None` if the device computes only whole tiles.
///
/// # Errors
/// As [`DotOperands::validate`], and if the device does not claim the operation; otherwise what the device reports.
pub fn dots(device: &dyn Device, operation: &Operation, operands: &DotOperands<'_>) -> Result<Option<Elements>, Error> {
    operation_of(device, &operation.id)?;
    operands.validate(&operation.id)?;
    let Some(matrices) = device.matrices() else { return Ok(None) };
    let Some(d) = matrices.dots(operation, operands)? else { return Ok(None) };
    if d.format() != operation.id.d || d.len() != operands.count {
        return Err(Error::driver(format!(
            "{} returned {} elements of {} for {} dots of {}",
            device.info().selector,
            d.len(),
            d.format(),
            operands.count,
            operation.id
        )));
    }
    Ok(Some(d))
}

/// The maximum number of elements of A or B in one batch.
const ELEMENTS_PER_BATCH: usize = 1 << 22;

/// Multiplies tile by tile, which every device can do; [`Matrices::multiply`] must return the same bits.
///
/// Tiles of D go through the device in batches; each batch is finished along all of k before the next one starts.
///
/// # Errors
/// As [`multiply`].
pub fn multiply_by_tiles(
    device: &dyn Device,
    operation: &Operation,
    operands: &GemmOperands<'_>,
) -> Result<Elements, Error> {
    operands.validate(&operation.id)?;
    let GemmOperands { m, n, k, a, b, c, scale_a, scale_b } = *operands;
    let id = &operation.id;
    let (tile_m, tile_n, tile_k) = id.shape.sizes();
    let (across, down) = (n.div_ceil(tile_n), m.div_ceil(tile_m));
    let steps = k.div_ceil(tile_k).max(1);
    let per_batch = (ELEMENTS_PER_BATCH / (tile_k * tile_m.max(tile_n))).max(1);
    let mut d = Elements::zeros(id.d, m * n);
    let tiles: Vec<(usize, usize)> =
        (0..down).flat_map(|row| (0..across).map(move |column| (row * tile_m, column * tile_n))).collect();
    for chunk in tiles.chunks(per_batch) {
        let mut batch = TileBatch::zeros(operation, chunk.len());
        for (tile, (row, column)) in chunk.iter().enumerate() {
            let from = Window { matrix: c, rows: m, columns: n, row: *row, column: *column, beyond: 0 };
            from.copy_to(&mut batch.c, tile * tile_m * tile_n, tile_m, tile_n);
        }
        for step in 0..steps {
            for (tile, (row, column)) in chunk.iter().enumerate() {
                let at = step * tile_k;
                let of_a = Window { matrix: a, rows: m, columns: k, row: *row, column: at, beyond: 0 };
                of_a.copy_to(&mut batch.a, tile * tile_m * tile_k, tile_m, tile_k);
                let of_b = Window { matrix: b, rows: k, columns: n, row: at, column: *column, beyond: 0 };
                of_b.copy_to(&mut batch.b, tile * tile_k * tile_n, tile_k, tile_n);
                let Some(scale) = id.block_scale() else { continue };
                let (blocks, in_tile) = (k.div_ceil(scale.block), tile_k.div_ceil(scale.block));
                let (at, beyond) = (at / scale.block, scale.format.one());
                if let (Some(matrix), Some(into)) = (scale_a, &mut batch.scale_a) {
                    let from = Window { matrix, rows: m, columns: blocks, row: *row, column: at, beyond };
                    from.copy_to(into, tile * tile_m * in_tile, tile_m, in_tile);
                }
                if let (Some(matrix), Some(into)) = (scale_b, &mut batch.scale_b) {
                    let from = Window { matrix, rows: blocks, columns: n, row: at, column: *column, beyond };
                    from.copy_to(into, tile * in_tile * tile_n, in_tile, tile_n);
                }
            }
            let sums = execute(device, operation, &batch)?;
            if step + 1 < steps {
                batch.c = sums;
                continue;
            }
            for (tile, (row, column)) in chunk.iter().enumerate() {
                for line in 0..tile_m.min(m - row) {
                    for at in 0..tile_n.min(n - column) {
                        d.set((row + line) * n + column + at, sums.get((tile * tile_m + line) * tile_n + at));
                    }
                }
            }
        }
    }
    Ok(d)
}

/// A part of a matrix that starts at a row and a column and may extend beyond the matrix.
struct Window<'a> {
    matrix: &'a Elements,
    rows: usize,
    columns: usize,
    row: usize,
    column: usize,
    /// The bits of elements beyond the ends.
    beyond: u64,
}

impl Window<'_> {
    /// Copies `rows`×`columns` elements to `target`, from index `start`.
    fn copy_to(&self, target: &mut Elements, start: usize, rows: usize, columns: usize) {
        for line in 0..rows {
            for at in 0..columns {
                let inside = self.row + line < self.rows && self.column + at < self.columns;
                let place = (self.row + line) * self.columns + self.column + at;
                target.set(start + line * columns + at, if inside { self.matrix.get(place) } else { self.beyond });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_of_dots_that_do_not_fit_are_refused_with_both_numbers() {
        let id: OperationId = "mma.m16n8k16.f32.f16.f16.f32".parse().expect("an id");
        let zeros = |format, length| Elements::zeros(format, length);
        let (a, b, c) = (zeros(Format::F16, 32), zeros(Format::F16, 31), zeros(Format::F32, 2));
        let with = |b, c, scale_a| DotOperands { count: 2, a: &a, b, c, scale_a, scale_b: None }.validate(&id);
        assert_eq!(with(&a, &c, None), Ok(()));
        let refused = |b, c, scale| with(b, c, scale).expect_err("it does not fit").to_string();
        assert!(refused(&b, &c, None).contains("b holds 31 elements, but 2 dots take 16 each"));
        assert!(refused(&a, &a, None).contains("c holds f16"));
        assert!(refused(&a, &c, Some(&c)).contains("no block scales"));
    }
}
