//! Trees to try where the one that was seen may hide something: what is rounded alone, and groups of products whose sums are
//! not rounded before they meet.

use super::expression::Expression;

/// More of a tree than shows: the likeliest first. The adders' numbers say nothing; each addition is told by itself.
pub(super) fn variants(tree: &Expression) -> Vec<Expression> {
    let mut found: Vec<Expression> = Vec::new();
    let is_product = |leaf: &Expression| matches!(leaf, Expression::Product(_));
    let is_c = |leaf: &Expression| matches!(leaf, Expression::C);
    let products = tree.each_alone(0, &is_product);
    found.push(products.clone());
    found.push(tree.each_alone(0, &is_c));
    found.push(products.each_alone(0, &is_c));
    found.push(Expression::Add(0, vec![tree.clone()]));
    found.push(Expression::Add(0, vec![products]));
    let widest = tree.widest();
    found.push(tree.grouped(0, &|products: &[usize]| vec![products.to_vec()], false));
    let sizes: Vec<usize> = (2..widest).filter(|size| widest.is_multiple_of(*size)).collect();
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
    let mut distinct: Vec<Expression> = Vec::new();
    for shape in found {
        let shape = shape.untied();
        if shape != tree.untied() && !distinct.contains(&shape) {
            distinct.push(shape);
        }
    }
    distinct
}

fn neighbours(products: &[usize], size: usize) -> Vec<Vec<usize>> {
    products.chunks(size).map(<[usize]>::to_vec).collect()
}

fn remainders(products: &[usize], count: usize) -> Vec<Vec<usize>> {
    (0..count.min(products.len())).map(|from| products.iter().copied().skip(from).step_by(count).collect()).collect()
}
