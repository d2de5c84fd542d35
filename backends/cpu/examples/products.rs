//! The speed of whole matrix products, packing included, compared with the rate with operands in registers.
#![expect(clippy::print_stdout, reason = "prints a table")]

use std::time::Instant;

use mxprobe_api::{Backend, Elements, GemmOperands, Load, Span, TileBatch, multiply, time};

#[expect(clippy::cast_precision_loss, reason = "rates have few digits")]
fn main() -> Result<(), mxprobe_api::Error> {
    println!("{:44} {:>6} {:>14} {:>14} {:>6}", "operation", "n", "gemm_flop_per_s", "flop_per_s", "share");
    for device in mxprobe_cpu::CpuBackend::new().discover().devices {
        for operation in device.operations().values() {
            let id = &operation.id;
            let mut peak = 0f64;
            for _ in 0..9 {
                let operands = TileBatch::zeros(operation, 1);
                let steps = 2_000_000;
                let timed = time(device.as_ref(), operation, &Load { operands: &operands, steps, span: Span::All })?;
                let (m, n, k) = id.shape.sizes();
                let flop = timed.chains(id) as f64 * steps as f64 * (2 * m * n * k) as f64;
                peak = peak.max(flop / timed.elapsed_ns * 1e9);
            }
            for n in [256, 512, 1024, 2048] {
                let (a, b, c) =
                    (Elements::zeros(id.a, n * n), Elements::zeros(id.b, n * n), Elements::zeros(id.c, n * n));
                let product = GemmOperands { m: n, n, k: n, a: &a, b: &b, c: &c, scale_a: None, scale_b: None };
                let mut best = f64::INFINITY;
                for _ in 0..9 {
                    let start = Instant::now();
                    std::hint::black_box(multiply(device.as_ref(), operation, &product)?);
                    best = best.min(start.elapsed().as_secs_f64());
                }
                let rate = 2.0 * (n as f64).powi(3) / best;
                println!("{:44} {n:>6} {rate:>14.3e} {peak:>14.3e} {:>6.2}", id.to_string(), rate / peak);
            }
        }
    }
    Ok(())
}
