//! The page of a product.

use crate::{
    gemm::{Errors, Parts, Product},
    report::{Block, Page, Show, to_json},
};
use mxprobe_api::OperationId;
use serde_json::json;

/// The shortest time for which a rate is shown: below it, starting the work is most of it.
const SHORTEST_S: f64 = 0.01;

/// A product with its accuracy and its rate.
pub(super) struct Computed<'a> {
    pub(super) device: &'a str,
    pub(super) operation: &'a OperationId,
    /// m, n and k.
    pub(super) sizes: [usize; 3],
    pub(super) words: usize,
    pub(super) has_c: bool,
    pub(super) product: &'a Product,
    pub(super) parts: Option<Parts>,
    pub(super) seconds: f64,
}

impl Computed<'_> {
    /// Multiply-adds per second, if it took long enough.
    fn rate(&self) -> Option<f64> {
        let [m, n, k] = self.sizes;
        (self.seconds >= SHORTEST_S).then(|| (m * n * k * self.product.products) as f64 / self.seconds)
    }
}

impl Show for Computed<'_> {
    fn page(&self, _: bool) -> Page {
        let Self { product, seconds, sizes: [m, n, k], .. } = self;
        let title = format!("{}  {}", self.device, self.operation);
        let products = match product.products {
            1 => "one product".to_owned(),
            several => format!("{several} products of words"),
        };
        let c = if self.has_c { " + C" } else { "" };
        let mut lines = vec![format!("D = A·B{c}, {m}×{k} by {k}×{n}: {products} as {}", product.d.format())];
        for (name, inexact, of) in [("A", product.inexact_a, m * k), ("B", product.inexact_b, k * n)] {
            if inexact > 0 {
                lines.push(format!("{inexact} of {of} elements of {name} are not exact in their words"));
            }
        }
        if let Some(Parts { total, inputs, left_out, unit }) = self.parts {
            let line = |name: &str, of: Errors, units: [&str; 2]| {
                let [componentwise, normwise] = units;
                format!(
                    "{name}: {:.3e} componentwise{componentwise}, {:.3e} normwise{normwise}",
                    of.componentwise, of.normwise
                )
            };
            lines.push(line("error", total, [" (of |A|·|B|)", " (Frobenius, of A·B)"]));
            lines.push(line("  of the unit", unit, ["", ""]));
            lines.push(line("  of rounding A and B to words", inputs, ["", ""]));
            if left_out.componentwise > 0.0 {
                lines.push(line("  of products of words left out", left_out, ["", ""]));
            }
        }
        lines.push(match self.rate() {
            Some(rate) => format!("{seconds:.3} s, {:.3} G multiply-adds/s", rate / 1e9),
            None => format!("{:.0} µs: too short for a rate", seconds * 1e6),
        });
        let inset = Block::Inset(lines.into_iter().map(Block::words).collect());
        Page { blocks: Block::titled(1, &title).into_iter().chain([inset]).collect(), title }
    }

    fn json(&self) -> String {
        let (product, [m, n, k]) = (self.product, self.sizes);
        let componentwise = |of: fn(&Parts) -> Errors| self.parts.as_ref().map(|parts| of(parts).componentwise);
        let normwise = |of: fn(&Parts) -> Errors| self.parts.as_ref().map(|parts| of(parts).normwise);
        to_json(&json!({
            "device": self.device,
            "operation": self.operation,
            "m": m, "n": n, "k": k,
            "words": self.words,
            "products_of_words": product.products,
            "d_format": product.d.format().to_string(),
            "inexact_a": product.inexact_a,
            "inexact_b": product.inexact_b,
            "error_componentwise": componentwise(|parts| parts.total),
            "error_normwise": normwise(|parts| parts.total),
            "error_unit_componentwise": componentwise(|parts| parts.unit),
            "error_unit_normwise": normwise(|parts| parts.unit),
            "error_inputs_componentwise": componentwise(|parts| parts.inputs),
            "error_inputs_normwise": normwise(|parts| parts.inputs),
            "error_left_out_componentwise": componentwise(|parts| parts.left_out),
            "error_left_out_normwise": normwise(|parts| parts.left_out),
            "duration_ns": (self.seconds * 1e9).round(),
            "multiply_adds_per_s": self.rate(),
        }))
    }
}
