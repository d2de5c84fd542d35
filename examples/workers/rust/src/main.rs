//! Products of f32, each rounded, and added in pairs: (p0 + p1) + (p2 + p3) …, then c.
//!
//!     cargo build --release --manifest-path examples/workers/rust/Cargo.toml
//!     mxprobe --device 'exec:examples/workers/rust/target/release/pairwise-sums'

mod mxprobe_worker;

use mxprobe_worker::{Device, Tile, serve};

fn main() -> std::io::Result<()> {
    serve(&[Device::new("Pairwise sums").operation("gemm.m*n*k*.f32.f32.f32.f32", matmul)])
}

fn matmul(tile: &Tile) -> Result<Vec<f32>, String> {
    let (a, b, c) = (tile.a::<f32>(), tile.b::<f32>(), tile.c::<f32>());
    let element = |(at, c): (usize, &f32)| {
        let (row, column) = (at / tile.n, at % tile.n);
        let products: Vec<f32> = (0..tile.k).map(|k| a[row * tile.k + k] * b[k * tile.n + column]).collect();
        sum(&products) + c
    };
    Ok(c.iter().enumerate().map(element).collect())
}

fn sum(terms: &[f32]) -> f32 {
    match terms {
        [] => 0.0,
        [one] => *one,
        _ => {
            let (left, right) = terms.split_at(terms.len().next_power_of_two() / 2);
            sum(left) + sum(right)
        }
    }
}
