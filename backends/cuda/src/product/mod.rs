//! Whole matrices: operands packed as fragments, one launch for a product, the loop along k in the kernel.

mod text;

use cudarc::driver::{CudaFunction, CudaSlice, LaunchConfig, PushKernelArg};
use mxprobe_api::{Elements, Error, OperationId, Product};

use crate::capability::Target;
use crate::instruction::Instruction;
use crate::layout::Layouts;
use crate::session::{FILLINGS, Session, called};

pub(crate) use text::{Whole, whole};

/// A compiled kernel of whole matrices.
pub(crate) struct Compiled {
    function: CudaFunction,
    whole: Whole,
    layouts: Layouts,
}

impl Compiled {
    /// The kernel of an instruction; `None` where it has none.
    ///
    /// # Errors
    /// What the driver's compiler says.
    pub(crate) fn new(session: &Session, instruction: &Instruction, target: Target) -> Result<Option<Self>, Error> {
        let layouts = Layouts::of(instruction);
        let Some(whole) = whole(instruction, &layouts, target) else { return Ok(None) };
        let name = format!("{}.product", instruction.id);
        let loaded = session.load(&name, &whole.kernel.text).map_err(|error| error.context(&instruction.id))?;
        Ok(Some(Self { function: loaded.function, whole, layouts }))
    }
}

/// D = A·B + C; `None` where the device's memory does not hold it, or 32 bits do not count its tiles.
///
/// # Errors
/// What the driver reports; [`Error::is_nothing_written`] with the first tile that no launch wrote.
pub(crate) fn multiply(
    session: &Session,
    compiled: &Compiled,
    id: &OperationId,
    product: &Product<'_>,
) -> Result<Option<Elements>, Error> {
    let order = Order::new(compiled, id, product);
    let blocks = order.down * order.across;
    let (Ok(steps), Ok(count)) = (u32::try_from(order.steps), u32::try_from(blocks)) else { return Ok(None) };
    if count == 0 {
        return Ok(None);
    }
    match launch_checked(session, compiled, &order, steps, count) {
        Err(error) if error.is_out_of_memory() => Ok(None),
        Err(error) => Err(error.context(id)),
        Ok(packed) => {
            let tiles = blocks * order.tiles_of_block();
            let unpacked = compiled.layouts.d.unpack(&packed, id.d, tiles);
            Ok(Some(order.scatter(&unpacked)))
        }
    }
}

/// Launches; where a tile still holds what was there before, launches once more over another filling.
fn launch_checked(
    session: &Session,
    compiled: &Compiled,
    order: &Order<'_>,
    steps: u32,
    count: u32,
) -> Result<Vec<u8>, Error> {
    let (layouts, groups) = (&compiled.layouts, order.tiles_of_block() / compiled.layouts.d.group());
    let d_bytes = count as usize * groups * layouts.d.bytes();
    let inputs = [
        session.upload(&layouts.a.pack_all(&order.gather_a()))?,
        session.upload(&layouts.b.pack_all(&order.gather_b()))?,
        session.upload(&layouts.c.pack_all(&order.gather_c()))?,
    ];
    let unwritten = |d: &[u8], filling: u8| layouts.d.tiles_where(d, |word| word.iter().all(|byte| *byte == filling));
    let mut suspects: Option<Vec<usize>> = None;
    for filling in FILLINGS {
        let d = launch(session, compiled, &inputs, (d_bytes, filling), [u64::from(steps), order.across as u64], count)?;
        let found = unwritten(&d, filling);
        let known = suspects.get_or_insert_with(|| found.clone());
        known.retain(|tile| found.contains(tile));
        if known.is_empty() {
            return Ok(d);
        }
    }
    let suspects = suspects.unwrap_or_default();
    let all = count as usize * order.tiles_of_block();
    Err(Error::nothing_written(format!(
        "the launch succeeded and {} of {all} tiles of a product were never written, tile {} first",
        suspects.len(),
        suspects[0]
    )))
}

fn launch(
    session: &Session,
    compiled: &Compiled,
    inputs: &[CudaSlice<u8>; 3],
    (d_bytes, filling): (usize, u8),
    lengths: [u64; 2],
    count: u32,
) -> Result<Vec<u8>, Error> {
    let kernel = &compiled.whole.kernel;
    let mut d_device = session.filled(filling, d_bytes)?;
    let blocks = count.div_ceil(kernel.groups_at_once).min(8 * session.multiprocessors).max(1);
    let configuration =
        LaunchConfig { grid_dim: (blocks, 1, 1), block_dim: (kernel.threads, 1, 1), shared_mem_bytes: 0 };
    let mut builder = session.stream.launch_builder(&compiled.function);
    inputs.iter().for_each(|input| {
        builder.arg(input);
    });
    builder.arg(&mut d_device).arg(&lengths[0]).arg(&lengths[1]).arg(&count);
    let started = session.started()?;
    // SAFETY: the parameters are those of the kernel's text: pointers, two lengths in the size of one, a count; the buffers
    // hold what so many blocks read and write, and all outlive the synchronisation below.
    unsafe { builder.launch(configuration) }.map_err(called("cuLaunchKernel"))?;
    session.ended(&started)?;
    session.download(&d_device, d_bytes)
}

/// In which order the tiles of a product lie in memory.
///
/// A block is `rows` groups of tiles of D down and `columns` tiles across; a group is as many tiles, one below the other, as
/// the instruction computes at a time. A: block row after block row, step after step along k, the block's tiles from above.
/// B: block column after block column, step after step, the block's tiles from the left, each as often as a group has tiles.
/// C and D: block after block, row-major; in a block the groups, row-major.
struct Order<'a> {
    product: &'a Product<'a>,
    tile: (usize, usize, usize),
    group: usize,
    rows: usize,
    columns: usize,
    /// Blocks of D, one below the other, and side by side.
    down: usize,
    across: usize,
    steps: usize,
}

impl<'a> Order<'a> {
    fn new(compiled: &Compiled, id: &OperationId, product: &'a Product<'a>) -> Self {
        let tile = id.shape.sizes();
        let group = compiled.layouts.d.group();
        let Whole { down: rows, across: columns, .. } = compiled.whole;
        Self {
            product,
            tile,
            group,
            rows,
            columns,
            down: product.m.div_ceil(tile.0 * group * rows),
            across: product.n.div_ceil(tile.1 * columns),
            // k = 0 is one operation on zeros and C.
            steps: product.k.div_ceil(tile.2).max(1),
        }
    }

    fn tiles_of_block(&self) -> usize {
        self.rows * self.group * self.columns
    }

    fn gather_a(&self) -> Elements {
        let (m, _, k) = self.tile;
        let lines = self.rows * self.group;
        let corners = (0..self.down).flat_map(|block| {
            (0..self.steps).flat_map(move |step| (0..lines).map(move |line| ((block * lines + line) * m, step * k)))
        });
        gather(self.product.a, (self.product.m, self.product.k), corners, (m, k))
    }

    fn gather_b(&self) -> Elements {
        let (_, n, k) = self.tile;
        let corners = (0..self.across).flat_map(|block| {
            (0..self.steps).flat_map(move |step| {
                let tiles = (0..self.columns).map(move |at| (step * k, (block * self.columns + at) * n));
                tiles.flat_map(|corner| std::iter::repeat_n(corner, self.group))
            })
        });
        gather(self.product.b, (self.product.k, self.product.n), corners, (k, n))
    }

    fn gather_c(&self) -> Elements {
        let (m, n, _) = self.tile;
        gather(self.product.c, (self.product.m, self.product.n), self.corners_of_d(), (m, n))
    }

    /// Where the tiles of D begin, in their order.
    fn corners_of_d(&self) -> impl Iterator<Item = (usize, usize)> {
        let (m, n, _) = self.tile;
        let blocks = (0..self.down).flat_map(|down| (0..self.across).map(move |across| (down, across)));
        blocks.flat_map(move |(down, across)| {
            let groups = (0..self.rows).flat_map(|row| (0..self.columns).map(move |column| (row, column)));
            groups.flat_map(move |(row, column)| {
                let (top, left) = ((down * self.rows + row) * self.group, across * self.columns + column);
                (0..self.group).map(move |at| ((top + at) * m, left * n))
            })
        })
    }

    /// D from its tiles.
    fn scatter(&self, tiles: &Elements) -> Elements {
        let (size, (m, n, _)) = (tiles.format().storage_bytes(), self.tile);
        let extent = (self.product.m, self.product.n);
        let mut d = Elements::zeros(tiles.format(), extent.0 * extent.1);
        let target = d.bytes_mut();
        for (corner, tile) in self.corners_of_d().zip(tiles.bytes().chunks_exact(m * n * size)) {
            for (line, place, count) in lines_inside(extent, corner, (m, n)) {
                target[place * size..][..count * size].copy_from_slice(&tile[line * n * size..][..count * size]);
            }
        }
        d
    }
}

/// Tiles of a matrix one after another, each row-major, +0 beyond the matrix.
fn gather(
    matrix: &Elements,
    extent: (usize, usize),
    corners: impl Iterator<Item = (usize, usize)>,
    tile: (usize, usize),
) -> Elements {
    let size = matrix.format().storage_bytes();
    let mut tiles = Vec::new();
    for corner in corners {
        let start = tiles.len();
        tiles.resize(start + tile.0 * tile.1 * size, 0);
        for (line, place, count) in lines_inside(extent, corner, tile) {
            let to = start + line * tile.1 * size;
            tiles[to..][..count * size].copy_from_slice(&matrix.bytes()[place * size..][..count * size]);
        }
    }
    Elements::from_bytes(matrix.format(), tiles).expect("elements of this format")
}

/// The lines of a tile that lie in a matrix, the place of each one's first element there, and how many elements do.
fn lines_inside(
    (rows, columns): (usize, usize),
    (top, left): (usize, usize),
    tile: (usize, usize),
) -> impl Iterator<Item = (usize, usize, usize)> {
    let count = tile.1.min(columns.saturating_sub(left));
    let lines = if count == 0 { 0 } else { tile.0.min(rows.saturating_sub(top)) };
    (0..lines).map(move |line| (line, (top + line) * columns + left, count))
}
