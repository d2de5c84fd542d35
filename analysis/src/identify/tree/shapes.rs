//! Variants of an observed tree with additions that it may hide: leaves or results that are rounded alone, and groups
//! of products whose sums are not rounded before they meet.

use super::expression::Expression;

/// The most sizes of blocks in which the terms next to c are tried.
const MOST_CHAINED: usize = 4;

/// Returns the variants of a tree with products, c or the result rounded alone, the likeliest first. The numbers of
/// their adders have no meaning, because each addition is determined separately.
pub(in crate::identify) fn rounded(tree: &Expression) -> Vec<Expression> {
    let products = products_alone(tree);
    let (c, both) = (c_alone(tree), c_alone(&products));
    let whole = |tree: &Expression| Expression::Add(0, vec![tree.clone()]);
    let (result, all) = (whole(tree), whole(&products));
    distinct(tree, vec![products, c, result, both, all])
}

/// Returns the tree with each product in an addition of its own.
pub(in crate::identify) fn products_alone(tree: &Expression) -> Expression {
    tree.each_alone(0, &|leaf: &Expression| matches!(leaf, Expression::Product(_)))
}

/// Returns the tree with c in an addition of its own.
fn c_alone(tree: &Expression) -> Expression {
    tree.each_alone(0, &|leaf: &Expression| matches!(leaf, Expression::C))
}

/// Returns the variants of a tree in which sums of two products begin at +0, with the first or with the second of them.
pub(in crate::identify) fn begun_at_zero(tree: &Expression) -> Vec<Expression> {
    distinct(tree, [false, true].map(|second| tree.begun_at_zero(second)).into())
}

/// Returns the variants of a tree whose last addition takes c and several other terms: these are added to c a block at a
/// time, in blocks of every size that divides their number. Terms that change as they pass an addition, such as negative
/// ones in one's complement, can make a chain look like one addition.
pub(in crate::identify) fn chained(tree: &Expression) -> Vec<Expression> {
    let Expression::Add(_, arguments) = tree else { return Vec::new() };
    let (c, others): (Vec<&Expression>, Vec<&Expression>) =
        arguments.iter().partition(|argument| matches!(argument, Expression::C));
    if c.len() != 1 {
        return Vec::new();
    }
    let chain = |size: usize| {
        others.chunks(size).fold(Expression::C, |sum, block| {
            Expression::Add(0, block.iter().map(|term| (*term).clone()).chain([sum]).collect())
        })
    };
    let sizes = (1..others.len()).rev().filter(|size| others.len().is_multiple_of(*size));
    distinct(tree, sizes.take(MOST_CHAINED).map(chain).collect())
}

/// Returns the variants of a tree with groups of products in its additions.
pub(in crate::identify) fn grouped(tree: &Expression) -> Vec<Expression> {
    let widest = tree.widest();
    let mut found = vec![tree.grouped(0, &|products: &[usize]| vec![products.to_vec()], false)];
    let sizes = sizes(widest);
    for joined in [false, true] {
        for size in &sizes {
            found.push(tree.grouped(0, &|products: &[usize]| neighbours(products, *size), joined));
        }
        for size in &sizes {
            found.push(tree.grouped(0, &|products: &[usize]| remainders(products, *size), joined));
        }
    }
    // Groups of groups.
    for outer in &sizes {
        for inner in sizes.iter().filter(|inner| *inner < outer && outer.is_multiple_of(**inner)) {
            let tree = tree.grouped(0, &|products: &[usize]| neighbours(products, *outer), false);
            found.push(tree.grouped_below(0, *inner));
        }
    }
    distinct(tree, found)
}

/// Returns the variants of a tree with groups of neighbours in the additions that take only products.
pub(in crate::identify) fn grouped_below(tree: &Expression) -> Vec<Expression> {
    let found = sizes(tree.widest()).into_iter().map(|size| tree.grouped_below(0, size)).collect();
    distinct(tree, found)
}

/// Returns the sizes into which this many products can be grouped.
fn sizes(widest: usize) -> Vec<usize> {
    (2..widest).filter(|size| widest.is_multiple_of(*size)).collect()
}

/// Removes duplicates, and the tree from which the others were made.
fn distinct(tree: &Expression, found: Vec<Expression>) -> Vec<Expression> {
    let mut distinct: Vec<Expression> = Vec::new();
    for shape in found {
        let shape = shape.untied();
        if shape != tree.untied() && !distinct.contains(&shape) {
            distinct.push(shape);
        }
    }
    distinct
}

/// Splits products into groups of `size` neighbours.
fn neighbours(products: &[usize], size: usize) -> Vec<Vec<usize>> {
    products.chunks(size).map(<[usize]>::to_vec).collect()
}

/// Splits products into `count` groups of the same remainder.
fn remainders(products: &[usize], count: usize) -> Vec<Vec<usize>> {
    (0..count.min(products.len())).map(|from| products.iter().copied().skip(from).step_by(count).collect()).collect()
}

/// Returns these trees with c in an addition of its own, without those in which it has one.
pub(in crate::identify) fn with_c_alone(shapes: &[Expression]) -> Vec<Expression> {
    let others = shapes.iter().filter(|shape| shape.of_c_alone().is_none());
    others.map(|shape| c_alone(shape).untied()).collect()
}
