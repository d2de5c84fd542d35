//! Comparison of a candidate with the device on random elements.

use std::ops::Range;

use mxprobe_api::{Elements, Error, Random, TileBatch};

use super::{
    candidate::Candidate,
    compute::Operands,
    pool::{Pool, alike},
    product::{Line, Product},
    regions::{Region, Regions},
    scale::some,
    values::{negated, scaled, value},
};

/// Maximum number of elements, and of products, that a candidate computes for one tile.
const ELEMENTS: usize = 1 << 14;
const PRODUCTS: usize = 1 << 27;
/// Maximum number of elements of A, B and C in one request, unless a single product has more.
const OPERANDS: usize = 1 << 22;
/// Number of values drawn for one operand: a prime.
const DRAWN: usize = 262_147;
/// Maximum number of mismatches that are kept.
const KEPT: usize = 6;

/// The result of a comparison.
pub(super) struct Checked {
    /// Elements compared.
    pub(super) elements: u64,
    /// Elements that differ.
    pub(super) mismatches: u64,
    /// Some of the elements that differ, as dots.
    pub(super) failed: Vec<Pool>,
}

/// Compares at least `elements` elements of one region. Stops after the first round in which some differ.
///
/// # Errors
/// Any error that the device reports.
pub(super) fn check(
    product: &Product<'_>,
    candidate: &Candidate,
    (regions, region): (&Regions, &Region),
    (elements, seed): (u64, u64),
    progress: &dyn Fn(&str),
) -> Result<Checked, Error> {
    let id = &product.operation.id;
    let (m, n, k) = id.shape.sizes();
    let program = candidate.program(id.c)?;
    let tiles = (OPERANDS / (m * k + k * n + m * n)).max(1);
    let mut found = Checked { elements: 0, mismatches: 0, failed: Vec::new() };
    let mut round = 0;
    while found.elements < elements && found.failed.is_empty() {
        let mut random = Random(seed.wrapping_add(round).wrapping_mul(0x9e37_79b9));
        // Compare all elements of a small product, and some of a large one.
        let per_tile = (region.elements).min(ELEMENTS).min((PRODUCTS / k).max(1)) as u64;
        let wanted = usize::try_from((elements - found.elements).div_ceil(per_tile)).unwrap_or(usize::MAX);
        let batch = drawn(product, tiles.min(wanted), round, &mut random);
        let d = product.whole(&batch)?;
        let (rows, columns) = block(region, per_tile, &mut random);
        // All tiles share A: side by side they form one product.
        let places: Vec<(usize, usize)> =
            (0..batch.tiles).flat_map(|tile| columns.iter().map(move |column| (tile, *column))).collect();
        let operands = part(&batch, (m, n, k), &rows, &places);
        let computed = operands.multiply(&program)?;
        for (at, (row, (tile, column))) in
            rows.iter().flat_map(|row| places.iter().map(move |place| (row, place))).enumerate()
        {
            let element = row * n + column;
            if !regions.holds(region, element) {
                continue;
            }
            found.elements += 1;
            if computed.format() == id.d && alike(id.d, computed.get(at), d.get(tile * m * n + element)) {
                continue;
            }
            found.mismatches += 1;
            if found.failed.len() < KEPT {
                found.failed.push(alone(product, &operands, (at / places.len(), at % places.len()))?);
            }
        }
        round += 1;
        progress(&format!("{} elements compared", found.elements));
    }
    Ok(found)
}

/// Asks for the dot of one element alone.
fn alone(product: &Product<'_>, operands: &Operands, (row, column): (usize, usize)) -> Result<Pool, Error> {
    let Operands { n, k, a, b, c, .. } = operands;
    let of_a: Vec<u64> = (0..*k).map(|at| a.get(row * k + at)).collect();
    let of_b: Vec<u64> = (0..*k).map(|at| b.get(at * n + column)).collect();
    let (fixed, line) = if product.places.in_a_row { (of_a, of_b) } else { (of_b, of_a) };
    Pool::ask(product, &fixed.into(), vec![Line::plain(line.into())], vec![c.get(row * n + column)])
}

/// Draws the operands of a round. Depending on `round`, values are near 1 or far apart, sums cancel, or few elements of
/// A are not zero. All tiles share the A of the first.
fn drawn(product: &Product<'_>, tiles: usize, round: u64, random: &mut Random) -> TileBatch {
    let id = &product.operation.id;
    let (m, n, k) = id.shape.sizes();
    let mut batch = TileBatch::zeros(&product.operation, tiles);
    let spread = [0, 0, 3, 12][usize::try_from(round % 4).unwrap_or(0)];
    let fill = |elements: &mut Elements, random: &mut Random| {
        let format = elements.format();
        let count = elements.len().min(DRAWN);
        let drawn = (0..count).map(|_| {
            let value = value(format, random);
            if spread == 0 { value } else { scaled(format, value, random.between(-spread, spread)) }
        });
        let drawn = Elements::from_bits(format, drawn);
        // Repeat a prime number of values, so that no two lines of a matrix are alike.
        for bytes in elements.bytes_mut().chunks_mut(drawn.bytes().len().max(1)) {
            bytes.copy_from_slice(&drawn.bytes()[..bytes.len()]);
        }
    };
    fill(&mut batch.a, random);
    fill(&mut batch.b, random);
    if round % 2 == 1 {
        fill(&mut batch.c, random);
    }
    let order = some(random, k, k);
    let first = batch.a.bytes()[..m * k * id.a.storage_bytes()].to_vec();
    batch.a.bytes_mut().chunks_exact_mut(first.len()).for_each(|tile| tile.copy_from_slice(&first));
    let row = n * id.b.storage_bytes();
    for tile in 0..tiles {
        if round % 4 == 1 || round % 4 == 3 {
            for pair in order.chunks_exact(2) {
                (0..m).for_each(|row| negate(&mut batch.a, (tile * m + row) * k, (pair[0], pair[1])));
                let [from, to] = [pair[0], pair[1]].map(|at| (tile * k + at) * row);
                batch.b.bytes_mut().copy_within(from..from + row, to);
            }
        }
        if round % 8 == 5 {
            for at in order.iter().skip((k / 16).max(2)) {
                (0..m).for_each(|row| batch.a.set((tile * m + row) * k + at, 0));
            }
        }
    }
    batch
}

/// Sets one element of a line to the negation of another.
fn negate(elements: &mut Elements, start: usize, (from, to): (usize, usize)) {
    let bits = elements.get(start + from);
    elements.set(start + to, negated(elements.format(), bits));
}

/// Draws rows and columns within the bounds of a region, in ascending order and with at most `most` elements.
fn block(region: &Region, most: u64, random: &mut Random) -> (Vec<usize>, Vec<usize>) {
    let most = usize::try_from(most).unwrap_or(usize::MAX).max(1);
    let count = |ends: (usize, usize)| ends.1 - ends.0 + 1;
    let (down, across) = (count(region.rows), count(region.columns));
    let width = across.min(most.isqrt().max(most / down).max(1));
    let height = down.min((most / width).max(1));
    let mut pick = |first: usize, of: usize, count: usize| {
        let mut some: Vec<usize> = some(random, of, count).into_iter().map(|at| first + at).collect();
        some.sort_unstable();
        some
    };
    let rows = pick(region.rows.0, down, height);
    (rows, pick(region.columns.0, across, width))
}

/// Extracts some rows of A, which all tiles share, and some columns of the tiles.
fn part(batch: &TileBatch, (m, n, k): (usize, usize, usize), rows: &[usize], places: &[(usize, usize)]) -> Operands {
    let a = rows.iter().map(|row| row * k..(row + 1) * k);
    let runs = runs(places);
    // The selected columns in one row of each tile, each tile having `height` rows.
    let row = |height: usize, row: usize| {
        let start = move |tile: usize| (tile * height + row) * n;
        runs.iter().map(move |(tile, run)| start(*tile) + run.start..start(*tile) + run.end)
    };
    let b = (0..k).flat_map(|at| row(k, at));
    let c = rows.iter().flat_map(|at| row(m, *at));
    Operands { m: rows.len(), n: places.len(), k, a: taken(&batch.a, a), b: taken(&batch.b, b), c: taken(&batch.c, c) }
}

/// Groups columns of tiles into runs of neighbours.
fn runs(places: &[(usize, usize)]) -> Vec<(usize, Range<usize>)> {
    places
        .chunk_by(|one, other| one.0 == other.0 && one.1 + 1 == other.1)
        .map(|run| (run[0].0, run[0].1..run[0].1 + run.len()))
        .collect()
}

/// Concatenates runs of elements.
fn taken(elements: &Elements, runs: impl Iterator<Item = Range<usize>>) -> Elements {
    let size = elements.format().storage_bytes();
    let mut bytes = Vec::new();
    runs.for_each(|run| bytes.extend_from_slice(&elements.bytes()[run.start * size..run.end * size]));
    Elements::from_bytes(elements.format(), bytes).expect("elements of a matrix")
}
