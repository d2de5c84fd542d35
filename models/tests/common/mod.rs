//! Dots written as text: `a*b` in hex for each product, `kN:a*b` for the product at k = N; the others are +0.

use mxprobe_api::OperationId;
use mxprobe_models::{Dot, Model, evaluate};

pub(crate) fn hex(text: &str) -> u64 {
    u64::from_str_radix(text, 16).unwrap_or_else(|_| panic!("`{text}` is not hex"))
}

/// Computes d of one dot, as the hex digits of its format.
pub(crate) fn dot(model: &Model, operation: &str, products: &str, c: &str) -> String {
    scaled_dot(model, operation, products, c, "", "")
}

/// Like [`dot`], with the scales of the blocks of A and of B.
pub(crate) fn scaled_dot(
    model: &Model,
    operation: &str,
    products: &str,
    c: &str,
    scale_a: &str,
    scale_b: &str,
) -> String {
    let id: OperationId = operation.parse().unwrap();
    let (unit, plan) = model.plan(&id).unwrap_or_else(|| panic!("{} has no {id}", model.name));
    let k = id.shape.sizes().2;
    let (mut a, mut b) = (vec![0; k], vec![0; k]);
    for (index, product) in products.split_whitespace().enumerate() {
        let (index, product) = match product.strip_prefix('k').and_then(|rest| rest.split_once(':')) {
            Some((index, product)) => (index.parse().unwrap(), product),
            None => (index, product),
        };
        let (left, right) = product.split_once('*').unwrap();
        (a[index], b[index]) = (hex(left), hex(right));
    }
    let scales = |text: &str| -> Vec<u64> { text.split_whitespace().map(hex).collect() };
    let (scale_a, scale_b) = (scales(scale_a), scales(scale_b));
    let scales = id.block_scale().map(|_| (&scale_a[..], &scale_b[..]));
    let d = evaluate(&model.adders, unit, &plan, &id, Dot { a: &a, b: &b, c: hex(c), scales });
    id.d.hex(d).trim_start_matches("0x").to_owned()
}

/// Repeats `one` `count` times, separated by spaces.
pub(crate) fn times(count: usize, one: &str) -> String {
    vec![one; count].join(" ")
}
