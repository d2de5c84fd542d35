//! Dots that share no operands.
//!
//! In the lanes of a kernel are columns of B, which a row of A multiplies. Here the lanes hold the products of dots, and the
//! row of A holds ones; or, if the kernel rounds products, the lanes hold the factors of both. What no kernel takes is
//! unpacked and computed several dots side by side, or one by one.

use std::ops::Range;

use mxprobe_api::{DotOperands, Elements, GemmOperands};

use super::{
    Evaluator, Kernels, Path, Sample,
    drive::{OfDots, Source},
    simd::{NARROW_PANEL, Piece, WIDE_PANEL, eight_by_eight_pairs},
};
use crate::{exact::Dot, threads};

/// Dots that are computed together, so that they stay in the first-level cache.
const AT_ONCE: usize = WIDE_PANEL;

/// A kernel that has left more than half of this many dots or more gets no others.
const TRIED: usize = 8 * AT_ONCE;

/// Starting a thread costs as much as some ten thousand terms.
const TERMS_PER_THREAD: usize = 1 << 17;

impl Evaluator {
    /// Computes d of dots that share no operands, several side by side where the path allows it, on every core if there
    /// are many.
    ///
    /// # Panics
    /// If the operands do not fit the operation; [`DotOperands::validate`] checks this.
    #[must_use]
    pub fn dots(&self, operands: &DotOperands<'_>) -> Elements {
        let in_format = self.in_format(operands.a, operands.b);
        let operands = match &in_format {
            Some((a, b)) => &DotOperands { a, b, ..*operands },
            None => operands,
        };
        let shares = threads().min(operands.count * self.id().shape.sizes().2 / TERMS_PER_THREAD).max(1);
        let each = operands.count.div_ceil(shares).next_multiple_of(AT_ONCE).max(1);
        let mut found = Elements::zeros(self.id().d, operands.count);
        let size = found.format().storage_bytes();
        let mut parts = found.bytes_mut().chunks_mut(each * size).zip((0..operands.count).step_by(each));
        let work = |(into, first): (&mut [u8], usize)| self.dots_of(operands, first..first + into.len() / size, into);
        std::thread::scope(|scope| {
            let own = parts.next();
            parts.for_each(|part| drop(scope.spawn(move || work(part))));
            own.into_iter().for_each(work);
        });
        found
    }

    /// Computes d of some of the dots, as bytes.
    fn dots_of(&self, operands: &DotOperands<'_>, dots: Range<usize>, into: &mut [u8]) {
        if self.path == Path::Exact {
            return self.exact_dots(operands, dots, into);
        }
        let sample = Sample::with_path(&self.id, self.unit.flush, self.asked);
        let mut rest = Rest { evaluator: self, operands, first: dots.start, sample, places: Vec::new() };
        let done = match self.kernels() {
            Kernels::Chain(kernel) => in_lanes(kernel, dots.clone(), into, &mut rest),
            Kernels::Tree(kernel) => in_lanes(kernel, dots.clone(), into, &mut rest),
            Kernels::Grids(kernel) => in_lanes(&**kernel, dots.clone(), into, &mut rest),
            Kernels::Double(kernel) => in_lanes(kernel, dots.clone(), into, &mut rest),
            _ => 0,
        };
        (dots.start + done..dots.end).for_each(|at| rest.push(at, into));
        rest.compute(into);
    }

    /// Computes dots from their bits alone.
    fn exact_dots(&self, operands: &DotOperands<'_>, dots: Range<usize>, into: &mut [u8]) {
        let DotOperands { a, b, c, scale_a, scale_b, .. } = *operands;
        let (k, size) = (self.id.shape.sizes().2, self.id.d.storage_bytes());
        let blocks = self.id.block_scale().map_or(0, |scale| k.div_ceil(scale.block));
        let some = |from: &Elements, at: usize, count: usize| {
            (at * count..(at + 1) * count).map(|index| from.get(index)).collect::<Vec<_>>()
        };
        for (at, d) in dots.zip(into.chunks_exact_mut(size)) {
            let scales = scale_a.zip(scale_b).map(|(a, b)| (some(a, at, blocks), some(b, at, blocks)));
            let scales = scales.as_ref().map(|(a, b)| (&a[..], &b[..]));
            let dot = Dot { a: &some(a, at, k), b: &some(b, at, k), c: c.get(at), scales };
            d.copy_from_slice(&self.exact(dot).to_le_bytes()[..size]);
        }
    }
}

/// Computes dots without a kernel.
struct Rest<'a> {
    evaluator: &'a Evaluator,
    operands: &'a DotOperands<'a>,
    /// The dot whose d comes first.
    first: usize,
    sample: Sample,
    /// The places of the sample's dots, from the first.
    places: Vec<usize>,
}

impl Rest<'_> {
    /// Computes a dot together with others, or later.
    fn push(&mut self, dot: usize, into: &mut [u8]) {
        self.sample.push_from(self.operands, dot);
        self.places.push(dot - self.first);
        if self.places.len() == AT_ONCE {
            self.compute(into);
        }
    }

    /// Computes the dots that wait.
    fn compute(&mut self, into: &mut [u8]) {
        let Self { evaluator, sample, places, .. } = self;
        let size = evaluator.id().d.storage_bytes();
        let mut put = |at: usize, d: u64| {
            into[places[at] * size..][..size].copy_from_slice(&d.to_le_bytes()[..size]);
        };
        evaluator.visit(sample, 0..places.len(), |at, d| {
            put(at, d);
            true
        });
        sample.clear();
        places.clear();
    }
}

/// Computes dots in the lanes of a kernel. Returns how many of them are computed or wait in `rest`: all of them, unless the
/// kernel takes none of the plan's products or leaves most dots.
fn in_lanes<K: OfDots>(kernel: &K, dots: Range<usize>, into: &mut [u8], rest: &mut Rest<'_>) -> usize {
    let Some(ones) = kernel.ones() else { return 0 };
    let DotOperands { a, b, c, .. } = *rest.operands;
    let (id, path) = (&rest.evaluator.id, rest.evaluator.path());
    let (k, size) = (id.shape.sizes().2, id.d.storage_bytes());
    let (mut of_a, mut products) = (K::B::default(), K::B::default());
    let mut accumulators = [K::Accumulator::default(); AT_ONCE];
    let mut columns = [id.a, id.b].map(|format| Elements::zeros(format, k * AT_ONCE));
    let (mut done, mut left_over) = (0, 0);
    while done < dots.len() {
        let some = dots.len() - done;
        let panel = if some > NARROW_PANEL { WIDE_PANEL } else { NARROW_PANEL };
        let count = some.min(panel);
        let first = dots.start + done;
        for (columns, from) in columns.iter_mut().zip([a, b]) {
            to_columns(from, first..first + count, panel, columns);
        }
        let matrices = |b| GemmOperands { m: 1, n: panel, k, a, b, c, scale_a: None, scale_b: None };
        let matrices = columns.each_ref().map(matrices);
        let [of_columns_a, of_columns_b] = matrices.each_ref().map(|matrices| Source { matrices, tile: 0, blocks: 0 });
        let mut left = kernel.pack_products((&of_columns_a, &of_columns_b), panel, &mut of_a, &mut products);
        left |= kernel.load_c(c, first, &mut accumulators[..count]);
        kernel.run(Piece {
            path,
            a: kernel.place_of_a(&ones, &of_a),
            row: 0,
            b: &products,
            steps: 0..1,
            accumulators: &mut accumulators[..panel],
            left: std::slice::from_mut(&mut left),
        });
        kernel.store_d(&accumulators[..count], &mut into[done * size..][..count * size]);
        for at in (0..count).filter(|at| left >> at & 1 == 1) {
            rest.push(first + at, into);
            left_over += 1;
        }
        done += count;
        if done >= TRIED && left_over > done / 2 {
            break;
        }
    }
    done
}

/// Copies dots, k elements each, to the columns of a matrix of `panel` columns; other columns are +0.
fn to_columns(from: &Elements, dots: Range<usize>, panel: usize, into: &mut Elements) {
    let size = from.format().storage_bytes();
    let k = into.len() / AT_ONCE;
    let from = &from.bytes()[dots.start * k * size..dots.end * k * size];
    let into = &mut into.bytes_mut()[..panel * k * size];
    if dots.len() < panel {
        into.fill(0);
    }
    match size {
        1 => transposed(from, k, panel, into, eight_by_eight_bytes),
        2 if k.is_multiple_of(8) => transposed(from, k, panel, into, eight_by_eight_pairs),
        2 => transposed(from, k, panel, into, |square: [[[u8; 2]; 1]; 1]| square),
        4 => transposed(from, k, panel, into, |square: [[[u8; 4]; 1]; 1]| square),
        _ => transposed(from, k, panel, into, |square: [[[u8; 8]; 1]; 1]| square),
    }
}

/// A square of elements of `SIZE` bytes.
type Square<const SIZE: usize, const SIDE: usize> = [[[u8; SIZE]; SIDE]; SIDE];

/// Copies dots of k elements to columns, squares of elements in one go as far as they fit.
#[inline(always)]
fn transposed<const SIZE: usize, const SIDE: usize>(
    from: &[u8],
    k: usize,
    panel: usize,
    into: &mut [u8],
    transpose: impl Fn(Square<SIZE, SIDE>) -> Square<SIZE, SIDE>,
) {
    let (from, into) = (from.as_chunks::<SIZE>().0, into.as_chunks_mut::<SIZE>().0);
    let dots = from.len() / k;
    let (whole_dots, whole_k) = (dots / SIDE * SIDE, k / SIDE * SIDE);
    for dot in (0..whole_dots).step_by(SIDE) {
        let rows: [&[[u8; SIZE]]; SIDE] = std::array::from_fn(|at| &from[(dot + at) * k..][..k]);
        for row in (0..whole_k).step_by(SIDE) {
            let square = std::array::from_fn(|at| *rows[at][row..].first_chunk().expect("a whole square"));
            for (at, elements) in transpose(square).into_iter().enumerate() {
                into[(row + at) * panel + dot..][..SIDE].copy_from_slice(&elements);
            }
        }
    }
    for dot in 0..dots {
        for row in if dot < whole_dots { whole_k } else { 0 }..k {
            into[row * panel + dot] = from[dot * k + row];
        }
    }
}

/// Transposes a square of bytes.
#[inline(always)]
fn eight_by_eight_bytes(square: Square<1, 8>) -> Square<1, 8> {
    let mut rows = square.map(|row| u64::from_le_bytes(row.map(|[byte]| byte)));
    for (apart, mask) in [(1, 0x00ff_00ff_00ff_00ff), (2, 0x0000_ffff_0000_ffff), (4, 0x0000_0000_ffff_ffff)] {
        for low in (0..8).filter(|row| row & apart == 0) {
            let (one, other, shift) = (rows[low], rows[low + apart], 8 * apart);
            rows[low] = one & mask | (other & mask) << shift;
            rows[low + apart] = one >> shift & mask | other & (mask << shift);
        }
    }
    rows.map(|row| row.to_le_bytes().map(|byte| [byte]))
}
