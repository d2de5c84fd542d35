//! Whether an element of a product depends on the number of other rows and columns.

use std::sync::Arc;

use mxprobe_api::{Device, Elements, Error, Operation, Random, TileBatch};

use super::{
    pool::alike,
    product::{Line, Places, Product},
    regions::{cancel, operands},
    scale,
};

/// Number of products that both shapes compute.
const ROUNDS: u64 = 12;

/// Maximum number of rows, and of columns, that are compared, of those that both shapes have.
const SIDE: usize = 64;

/// One element whose bits depend on the shape.
#[derive(Clone, Debug)]
pub struct ShapeWitness {
    /// Its row and column in both products.
    pub element: (usize, usize),
    /// The products that are not zero: k, and the bits of A and of B.
    pub products: Vec<(usize, u64, u64)>,
    /// The bits that the first and the second shape return.
    pub d: (u64, u64),
}

/// The result of a comparison of two shapes.
#[derive(Clone, Debug)]
pub struct Invariance {
    /// Elements that were compared.
    pub elements: u64,
    /// Elements whose bits differ.
    pub differ: u64,
    /// One of them, reduced to as few products as were found to show the difference.
    pub witness: Option<ShapeWitness>,
}

/// One shape of a device.
#[derive(Clone, Copy)]
pub struct ShapeOf<'d> {
    /// The device.
    pub device: &'d dyn Device,
    /// The operation, with its sizes.
    pub operation: &'d Operation,
}

/// Compares the same rows and columns in products of two shapes with the same k. The other rows and columns differ.
///
/// # Errors
/// [`Error::is_invalid`] if k differs; any error that a device reports.
pub fn compare_shapes(one: ShapeOf<'_>, other: ShapeOf<'_>, seed: u64) -> Result<Invariance, Error> {
    let (first, second) = (Product::new(one.device, one.operation), Product::new(other.device, other.operation));
    let ((m, n, k), (m2, n2, k2)) = (one.operation.id.shape.sizes(), other.operation.id.shape.sizes());
    if k != k2 {
        return Err(Error::invalid(format!(
            "k is {k} in one shape and {k2} in the other: their elements are different sums"
        )));
    }
    let (rows, columns) = (m.min(m2).min(SIDE), n.min(n2).min(SIDE));
    let id = &one.operation.id;
    let mut found = Invariance { elements: 0, differ: 0, witness: None };
    for round in 0..ROUNDS {
        let mut random = Random(seed.wrapping_add(round).wrapping_mul(0x1_0001));
        let mut drawn: Vec<(Vec<u64>, Vec<u64>)> =
            (0..rows.max(columns)).map(|_| operands(id.a, id.b, k, &mut random)).collect();
        // In every other round, products cancel in pairs, in every element.
        if round % 2 == 1 {
            let order = scale::some(&mut random, k, k);
            drawn.iter_mut().for_each(|(row, column)| cancel(id.a, (row, column), &order));
        }
        let fill = |product: &Product<'_>, random: &mut Random| {
            let (m, n, _) = product.operation.id.shape.sizes();
            let mut batch = TileBatch::zeros(&product.operation, 1);
            random.fill(&mut batch.a, Random::moderate);
            random.fill(&mut batch.b, Random::moderate);
            for (row, (a, _)) in drawn.iter().enumerate().take(rows) {
                (0..k).for_each(|at| batch.a.set(row * k + at, a[at]));
            }
            for (column, (_, b)) in drawn.iter().enumerate().take(columns) {
                (0..k).for_each(|at| batch.b.set(at * n + column, b[at]));
            }
            assert!(rows <= m);
            product.whole(&batch)
        };
        let (d, d2): (Elements, Elements) = (fill(&first, &mut random)?, fill(&second, &mut random)?);
        for row in 0..rows {
            for column in 0..columns {
                found.elements += 1;
                if alike(id.d, d.get(row * n + column), d2.get(row * n2 + column)) {
                    continue;
                }
                found.differ += 1;
                if found.witness.is_none() {
                    let dot = (drawn[row].0.clone(), drawn[column].1.clone());
                    found.witness = Some(witness((first.at(row, column), second.at(row, column)), (row, column), dot)?);
                }
            }
        }
    }
    Ok(found)
}

impl<'d> Product<'d> {
    /// Returns the same product, with its dots asked at one element.
    fn at(&self, row: usize, column: usize) -> Self {
        let mut product = Self::new(self.device(), &self.operation);
        product.places = Places { in_a_row: true, fixed: row, varied: vec![column] };
        product
    }
}

/// Removes products from a dot for as long as its bits differ between the two shapes.
fn witness(
    (first, second): (Product<'_>, Product<'_>),
    element: (usize, usize),
    (a, b): (Vec<u64>, Vec<u64>),
) -> Result<ShapeWitness, Error> {
    let d = first.operation.id.d;
    let ask = |b: &[u64]| -> Result<(u64, u64), Error> {
        let line = [Line::plain(Arc::from(b))];
        Ok((first.ask(&a, &line, &[0])?[0], second.ask(&a, &line, &[0])?[0]))
    };
    let mut kept = b;
    let mut length = kept.len().div_ceil(2);
    let mut requests = 0;
    while length > 0 && requests < 120 {
        let places: Vec<usize> = (0..kept.len()).filter(|at| kept[*at] != 0).collect();
        let mut is_smaller = false;
        for piece in places.chunks(length) {
            let mut without = kept.clone();
            piece.iter().for_each(|at| without[*at] = 0);
            requests += 1;
            let (one, other) = ask(&without)?;
            if !alike(d, one, other) {
                kept = without;
                is_smaller = true;
            }
        }
        if !is_smaller || length > 1 {
            length /= 2;
        }
    }
    let products = (0..kept.len()).filter(|at| kept[*at] != 0).map(|at| (at, a[at], kept[at])).collect();
    Ok(ShapeWitness { element, products, d: ask(&kept)? })
}
