//! A program whose sums depend on the number of rows, as those of libraries do: with one row, partial sums of 8
//! consecutive k, each a chain of fused multiply-adds, are added one after another; with more rows, all k are one
//! chain. c is added last. With three rows it writes the file that its argument names, and never answers.

#[path = "../../examples/workers/rust/src/mxprobe_worker.rs"]
mod mxprobe_worker;

use mxprobe_worker::{Device, Tile, serve};

/// The number of products in a partial sum.
const SLICE: usize = 8;

fn main() -> std::io::Result<()> {
    serve(&[Device::new("Split by rows").operation("gemm.m*n*k*.f32.f32.f32.f32", matmul)])
}

fn matmul(tile: &Tile) -> Result<Vec<f32>, String> {
    if tile.m == 3 {
        let file = std::env::args().nth(1).ok_or("no file is named")?;
        std::fs::write(file, "").map_err(|error| error.to_string())?;
        loop {
            std::thread::park();
        }
    }
    let (a, b, c) = (tile.a::<f32>(), tile.b::<f32>(), tile.c::<f32>());
    let chain = |row: usize, column: usize, from: usize, to: usize| {
        (from..to).fold(0.0, |sum, k| a[row * tile.k + k].mul_add(b[k * tile.n + column], sum))
    };
    let element = |(at, c): (usize, &f32)| {
        let (row, column) = (at / tile.n, at % tile.n);
        let sum = if tile.m == 1 {
            (0..tile.k).step_by(SLICE).fold(0.0, |sum, k| sum + chain(row, column, k, tile.k.min(k + SLICE)))
        } else {
            chain(row, column, 0, tile.k)
        };
        sum + c
    };
    Ok(c.iter().enumerate().map(element).collect())
}
