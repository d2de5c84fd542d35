//! The speed of whole matrix products, packing included, compared with the rate with operands in registers:
//! `products [PART_OF_AN_ID [N]…]`.
#![expect(clippy::print_stdout, reason = "prints a table")]

use std::time::Instant;

use mxprobe_api::{Backend, Elements, Format, GemmOperands, Load, Span, TileBatch, multiply, time};

const ROUNDS: usize = 15;

#[expect(clippy::cast_precision_loss, reason = "rates have few digits")]
fn main() -> Result<(), mxprobe_api::Error> {
    let mut arguments = std::env::args().skip(1);
    let only = arguments.next().unwrap_or_default();
    let sizes: Vec<usize> = arguments.map(|size| size.parse().expect("a size")).collect();
    let sizes = if sizes.is_empty() { vec![256, 512, 1024, 2048] } else { sizes };
    println!(
        "{:44} {:>6} {:>14} {:>14} {:>6} {:>6}",
        "operation", "n", "gemm_flop_per_s", "flop_per_s", "best", "median"
    );
    for device in mxprobe_cpu::CpuBackend::new().discover().devices {
        let matching = device.operations().values().filter(|operation| operation.id.to_string().contains(&only));
        for operation in matching {
            let id = &operation.id;
            let operands = TileBatch::zeros(operation, 1);
            let steps = 400_000;
            let in_registers = || {
                let timed = time(device.as_ref(), operation, &Load { operands: &operands, steps, span: Span::All })?;
                let (m, n, k) = id.shape.sizes();
                let flop = timed.chains(id) as f64 * steps as f64 * (2 * m * n * k) as f64;
                Ok::<_, mxprobe_api::Error>(flop / timed.elapsed_ns * 1e9)
            };
            for &n in &sizes {
                let [a, b, c] = [id.a, id.b, id.c].map(|format| written_zeros(format, n * n));
                let product = GemmOperands { m: n, n, k: n, a: &a, b: &b, c: &c, scale_a: None, scale_b: None };
                // In turns, since a core's rate depends on what else the machine does.
                let (mut rates, mut peaks, mut shares) = (Vec::new(), Vec::new(), Vec::new());
                for _ in 0..ROUNDS {
                    let before = in_registers()?;
                    let start = Instant::now();
                    std::hint::black_box(multiply(device.as_ref(), operation, &product)?);
                    let rate = 2.0 * (n as f64).powi(3) / start.elapsed().as_secs_f64();
                    let peak = before.max(in_registers()?);
                    rates.push(rate);
                    peaks.push(peak);
                    shares.push(rate / peak);
                }
                for figures in [&mut rates, &mut peaks, &mut shares] {
                    figures.sort_by(f64::total_cmp);
                }
                let (rate, peak) = (rates[ROUNDS - 1], peaks[ROUNDS - 1]);
                println!(
                    "{:44} {n:>6} {rate:>14.3e} {peak:>14.3e} {:>6.2} {:>6.2}",
                    id.to_string(),
                    rate / peak,
                    shares[ROUNDS / 2]
                );
            }
        }
    }
    Ok(())
}

/// Zeros on pages of their own: memory that was never written is one page, which every cache holds.
fn written_zeros(format: Format, len: usize) -> Elements {
    Elements::from_bytes(format, vec![1; len * format.storage_bytes()])
        .map(|mut elements| {
            elements.bytes_mut().fill(0);
            std::hint::black_box(elements)
        })
        .expect("elements of whole bytes")
}
