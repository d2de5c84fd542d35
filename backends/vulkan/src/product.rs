//! Whole-matrix products: one dispatch for as many tiles of D as fit, with the loop along k in the shader.

use std::ops::Range;

use ash::vk;
use mxprobe_api::{
    Elements, Error, GemmOperands, Operation,
    written::{is_all, until_written},
};
use mxprobe_shaders::spirv::Kernel;

use crate::failure::failure;
use crate::session::{Groups, Session};

/// The maximum number of multiply-adds in one submission; a software driver takes a second for that many.
const MOST_MULTIPLY_ADDS: usize = 1 << 31;
/// The maximum number of bytes of a buffer.
const MOST_BYTES: usize = 256 << 20;

/// Computes D = A·B + C; `None` if C and D differ in format, if D is empty, or if one tile with all of k does not fit
/// in a submission.
///
/// # Errors
/// Whatever the driver reports; [`Error::is_nothing_written`] if the device did not write a tile.
pub(crate) fn multiply(
    session: &mut Session,
    operation: &Operation,
    kernel: &Kernel,
    product: &GemmOperands<'_>,
) -> Result<Option<Elements>, Error> {
    let id = &operation.id;
    let (tile_m, tile_n, tile_k) = id.shape.sizes();
    let GemmOperands { m, n, k, a, b, c, .. } = *product;
    if id.c != id.d || m == 0 || n == 0 {
        return Ok(None);
    }
    let steps = k.div_ceil(tile_k).max(1);
    let wide_k = steps * tile_k;
    let (Ok(pushed_steps), Some(part)) = (u32::try_from(steps), Part::largest(session, operation, product, wide_k))
    else {
        return Ok(None);
    };
    let [size_a, size_b, size_c] = [a, b, c].map(|elements| elements.format().storage_bytes());
    let pipeline = session.pipeline(&kernel.product_words(), Groups::Subgroup)?;
    let mut d = Elements::zeros(id.d, m * n);
    for columns in ranges(n, part.across * tile_n) {
        let across = columns.len().div_ceil(tile_n);
        let wide_n = across * tile_n;
        let part_b = padded(b, n, 0..k, columns.clone(), (wide_k, wide_n * size_b));
        for rows in ranges(m, part.down * tile_m) {
            let down = rows.len().div_ceil(tile_m);
            let high = down * tile_m;
            let part_a = padded(a, k, rows.clone(), 0..k, (high, wide_k * size_a));
            let part_c = padded(c, n, rows.clone(), columns.clone(), (high, wide_n * size_c));
            let pushed = [pushed_steps, u32::try_from(across).expect("at most the device's workgroups")];
            let groups = u32::try_from(down * across).expect("at most the device's workgroups");
            let tile_line = tile_n * size_c;
            let sums = session.product(pipeline, [&part_a, &part_b, &part_c], groups, pushed, (tile_m, tile_line))?;
            for (row, line) in rows.zip(sums.chunks_exact(wide_n * size_c)) {
                let bytes = columns.len() * size_c;
                d.bytes_mut()[(row * n + columns.start) * size_c..][..bytes].copy_from_slice(&line[..bytes]);
            }
        }
    }
    Ok(Some(d))
}

/// The maximum number of tiles of D in one submission, down and across.
struct Part {
    down: usize,
    across: usize,
}

impl Part {
    /// Fits as many columns of tiles as possible in one row, and then as many rows as possible; `None` if not even one
    /// tile fits.
    fn largest(session: &Session, operation: &Operation, product: &GemmOperands<'_>, wide_k: usize) -> Option<Self> {
        let (tile_m, tile_n, _) = operation.id.shape.sizes();
        let GemmOperands { m, n, a, b, c, .. } = *product;
        let [size_a, size_b, size_c] = [a, b, c].map(|elements| elements.format().storage_bytes());
        let most_bytes = usize::try_from(session.max_buffer_bytes).unwrap_or(usize::MAX).min(MOST_BYTES);
        let most_tiles = session.max_workgroups as usize;
        let column_bytes = (wide_k * tile_n * size_b).max(tile_m * tile_n * size_c);
        let per_tile = tile_m * tile_n * wide_k;
        let across =
            (most_bytes / column_bytes).min(MOST_MULTIPLY_ADDS / per_tile).min(most_tiles).min(n.div_ceil(tile_n));
        let row_bytes = (tile_m * wide_k * size_a).max(tile_m * across * tile_n * size_c);
        let down = (most_bytes / row_bytes)
            .min(MOST_MULTIPLY_ADDS / (per_tile * across.max(1)))
            .min(most_tiles / across.max(1))
            .min(m.div_ceil(tile_m));
        (across > 0 && down > 0).then_some(Self { down, across })
    }
}

/// Divides 0 to `end` into ranges of `step`; the last may be shorter.
fn ranges(end: usize, step: usize) -> impl Iterator<Item = Range<usize>> {
    (0..end).step_by(step).map(move |start| start..end.min(start + step))
}

/// Copies some rows and columns of a row-major matrix of `width` columns into `high` lines of `wide_bytes` bytes, with
/// zeros below and to the right.
fn padded(
    matrix: &Elements,
    width: usize,
    rows: Range<usize>,
    columns: Range<usize>,
    (high, wide_bytes): (usize, usize),
) -> Vec<u8> {
    let size = matrix.format().storage_bytes();
    let mut all = vec![0; high * wide_bytes];
    for (line, row) in all.chunks_exact_mut(wide_bytes).zip(rows) {
        let bytes = columns.len() * size;
        line[..bytes].copy_from_slice(&matrix.bytes()[(row * width + columns.start) * size..][..bytes]);
    }
    all
}

/// The tiles of D, `tile_m` lines of `tile_line` bytes, that hold nothing but the fill byte, row by row.
fn untouched_tiles(d: &[u8], wide_bytes: usize, (tile_m, tile_line): (usize, usize), filling: u8) -> Vec<usize> {
    let tiles = d.chunks_exact(wide_bytes * tile_m).flat_map(|row| {
        (0..wide_bytes)
            .step_by(tile_line)
            .map(move |from| row.chunks_exact(wide_bytes).all(|line| is_all(&line[from..][..tile_line], filling)))
    });
    tiles.enumerate().filter_map(|(at, is_untouched)| is_untouched.then_some(at)).collect()
}

impl Session {
    /// Runs the shader for whole matrices, with the steps along k and the tiles across as push constants, and returns
    /// its output. `tile` is the number of lines in a tile of D, and of bytes in each.
    fn product(
        &mut self,
        pipeline: vk::Pipeline,
        inputs: [&[u8]; 3],
        groups: u32,
        pushed: [u32; 2],
        tile: (usize, usize),
    ) -> Result<Vec<u8>, Error> {
        self.alive()?;
        let (len, wide_bytes) = (inputs[2].len(), pushed[1] as usize * tile.1);
        self.load(inputs, [inputs[0].len(), inputs[1].len(), len, len])?;
        let mut d = Vec::new();
        let attempt = |filling| {
            self.fill_output(len, filling);
            let recorded = self.recorded(|| {
                self.bind(pipeline);
                let bytes: Vec<u8> = pushed.into_iter().flat_map(u32::to_ne_bytes).collect();
                // SAFETY: commands are being recorded; the layout has 8 bytes of push constants; the buffers hold what
                // `groups` workgroups read and write.
                unsafe {
                    self.device.cmd_push_constants(
                        self.commands,
                        self.layout,
                        vk::ShaderStageFlags::COMPUTE,
                        0,
                        &bytes,
                    );
                    self.device.cmd_dispatch(self.commands, groups, 1, 1);
                }
            });
            self.remember(recorded.map_err(|(call, result)| failure(call, result)))?;
            self.submit(&format!("{groups} tiles of a product"))?;
            d = self.output(len);
            Ok(untouched_tiles(&d, wide_bytes, tile, filling))
        };
        until_written(attempt, |unwritten| {
            format!(
                "the device reported that it had finished, and {} of {groups} tiles of D still hold what was in memory \
                 before",
                unwritten.len()
            )
        })?;
        Ok(d)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mxprobe_api::Format;

    #[test]
    fn a_part_of_a_matrix_is_padded_below_and_to_the_right() {
        let matrix = Elements::from_bits(Format::U8, 1..=6);
        assert_eq!(padded(&matrix, 3, 0..2, 1..3, (3, 4)), [2, 3, 0, 0, 5, 6, 0, 0, 0, 0, 0, 0]);
        assert_eq!(padded(&Elements::zeros(Format::U8, 0), 0, 0..2, 0..0, (2, 2)), [0; 4]);
        assert_eq!(ranges(5, 2).collect::<Vec<_>>(), [0..2, 2..4, 4..5]);
    }

    #[test]
    fn a_tile_that_was_left_out_is_found_among_those_that_were_written() {
        // Two rows of three tiles, each of two lines of two bytes.
        let mut d = vec![1u8; 4 * 6];
        assert!(untouched_tiles(&d, 6, (2, 2), 0xaa).is_empty());
        for at in [12 + 2, 12 + 3, 18 + 2] {
            d[at] = 0xaa;
        }
        assert!(untouched_tiles(&d, 6, (2, 2), 0xaa).is_empty());
        d[18 + 3] = 0xaa;
        assert_eq!(untouched_tiles(&d, 6, (2, 2), 0xaa), [4]);
    }
}
