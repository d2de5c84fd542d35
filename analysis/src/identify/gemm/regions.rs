//! Elements of one product that are computed alike.

use std::collections::HashMap;

use mxprobe_api::{Elements, Error, Format, Random, TileBatch};

use super::{
    product::{Places, Product},
    scale::some,
    values::{negated, value},
};
use crate::in_order::InOrder;

/// Number of products whose rows are all equal, and whose columns are all equal.
const ROUNDS: u64 = 6;

/// Elements that returned the same bits whenever their rows and columns were the same.
#[derive(Clone, Debug)]
pub(super) struct Region {
    /// Number of elements.
    pub(super) elements: usize,
    /// The elements among them at which dots are asked.
    pub(super) places: Places,
    /// The first and the last row, and the first and the last column.
    pub(super) rows: (usize, usize),
    pub(super) columns: (usize, usize),
    /// Its number in [`Regions::of`].
    number: usize,
}

/// The regions of a product, the largest first, and the region of each element.
pub(super) struct Regions {
    pub(super) regions: Vec<Region>,
    /// The number of the region of each element: m×n, row-major.
    of: Vec<u32>,
    /// A hash of the bits that each region returned, in the order of the regions' first elements.
    signatures: Vec<u64>,
}

impl Regions {
    /// Whether the regions returned the same bits in both.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.signatures == other.signatures
    }

    /// Whether an element, counted row by row, belongs to a region.
    pub(super) fn holds(&self, region: &Region, element: usize) -> bool {
        self.of[element] as usize == region.number
    }
}

/// Asks for products of equal rows by equal columns, whose elements differ only if they are computed differently. Each
/// product is asked twice. Returns the regions of the first and of the second answers.
///
/// # Errors
/// Any error that the device reports.
pub(super) fn regions(product: &Product<'_>, seed: u64) -> Result<(Regions, Regions), Error> {
    let id = &product.operation.id;
    let (m, n, k) = id.shape.sizes();
    let mut of = [vec![0_u64; m * n], vec![0_u64; m * n]];
    let mut batch = TileBatch::zeros(&product.operation, 1);
    for round in 0..ROUNDS {
        let mut random = Random(seed.wrapping_add(round));
        let (mut row, mut column) = operands(id.a, id.b, k, &mut random);
        if round % 3 != 0 {
            cancel(id.a, (&mut row, &mut column), &some(&mut random, k, k));
        }
        let row = Elements::from_bits(id.a, row);
        batch.a.bytes_mut().chunks_exact_mut(row.bytes().len()).for_each(|line| line.copy_from_slice(row.bytes()));
        let column = Elements::from_bits(id.b, column);
        let size = id.b.storage_bytes();
        for (line, bits) in batch.b.bytes_mut().chunks_exact_mut(n * size).zip(column.bytes().chunks_exact(size)) {
            line.chunks_exact_mut(size).for_each(|element| element.copy_from_slice(bits));
        }
        for of in &mut of {
            let d = product.whole(&batch)?;
            for (signature, bits) in of.iter_mut().zip(d.iter()) {
                *signature = Random(*signature ^ bits).bits();
            }
        }
    }
    let [first, again] = of.map(|of| sorted(&of, (m, n)));
    Ok((first, again))
}

/// Groups elements with the same signature into regions, the largest first.
fn sorted(of: &[u64], (m, n): (usize, usize)) -> Regions {
    let mut numbers: HashMap<u64, usize> = HashMap::new();
    let mut signatures = Vec::new();
    let of: Vec<u32> = of
        .iter()
        .copied()
        .map(|signature| {
            let next = numbers.len();
            let number = *numbers.entry(signature).or_insert(next);
            if number == next {
                signatures.push(signature);
            }
            u32::try_from(number).unwrap_or(u32::MAX)
        })
        .collect();
    let mut regions: Vec<Region> = (0..numbers.len()).map(|number| region(&of, number, (m, n))).collect();
    regions.order_by_key(|region| std::cmp::Reverse(region.elements));
    Regions { regions, of, signatures }
}

/// Draws a row of A and a column of B.
pub(super) fn operands(a: Format, b: Format, k: usize, random: &mut Random) -> (Vec<u64>, Vec<u64>) {
    ((0..k).map(|_| value(a, random)).collect(), (0..k).map(|_| value(b, random)).collect())
}

/// Makes the second product of each pair in `order` the first with the other sign, so that the sum is little more than
/// its rounding errors. The same holds for any row and any column that were changed in the same order.
pub(super) fn cancel(a: Format, (row, column): (&mut [u64], &mut [u64]), order: &[usize]) {
    for pair in order.chunks_exact(2) {
        column[pair[1]] = column[pair[0]];
        row[pair[1]] = negated(a, row[pair[0]]);
    }
}

/// Makes the region with this number. Its places lie in the row or column that holds most of its elements.
fn region(of: &[u32], number: usize, (m, n): (usize, usize)) -> Region {
    let (mut in_rows, mut in_columns) = (vec![0_usize; m], vec![0_usize; n]);
    for (at, _) in of.iter().enumerate().filter(|(_, of)| **of as usize == number) {
        in_rows[at / n] += 1;
        in_columns[at % n] += 1;
    }
    let most = |counts: &[usize]| (0..counts.len()).max_by_key(|at| (counts[*at], std::cmp::Reverse(*at))).unwrap_or(0);
    let ends = |counts: &[usize]| {
        let held = |count: &usize| *count > 0;
        (counts.iter().position(held).unwrap_or(0), counts.iter().rposition(held).unwrap_or(0))
    };
    let (row, column) = (most(&in_rows), most(&in_columns));
    let in_a_row = in_rows[row] >= in_columns[column];
    let holds = |at: usize| of[at] as usize == number;
    let places = if in_a_row {
        Places { in_a_row, fixed: row, varied: (0..n).filter(|column| holds(row * n + column)).collect() }
    } else {
        Places { in_a_row, fixed: column, varied: (0..m).filter(|row| holds(row * n + column)).collect() }
    };
    Region { elements: in_rows.iter().sum(), places, rows: ends(&in_rows), columns: ends(&in_columns), number }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_cancel_in_every_element_of_rows_and_columns_changed_in_one_order() {
        let (format, k) = (Format::BF16, 32);
        let mut random = Random(5);
        let mut drawn: Vec<_> = (0..3).map(|_| operands(format, format, k, &mut random)).collect();
        let order = some(&mut random, k, k);
        drawn.iter_mut().for_each(|(row, column)| cancel(format, (row, column), &order));
        for (row, _) in &drawn {
            for (_, column) in &drawn {
                let mut products: Vec<f64> =
                    row.iter().zip(column).map(|(a, b)| format.to_f64(*a) * format.to_f64(*b)).collect();
                assert!(products.iter().any(|product| product.abs() > 0.0));
                // Each product is exact in f64, and so is the sum of those of one size.
                products.sort_by(|one, other| one.abs().total_cmp(&other.abs()));
                for same in products.chunk_by(|one, other| one.abs().to_bits() == other.abs().to_bits()) {
                    assert!(same.iter().sum::<f64>().abs() < f64::MIN_POSITIVE, "{same:?}");
                }
            }
        }
    }
}
