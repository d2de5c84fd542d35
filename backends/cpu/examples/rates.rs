//! Dots per second of each operation of this CPU through `execute`, memory traffic and packing included.
#![expect(clippy::print_stdout, reason = "prints a table")]

use std::time::Instant;

use mxprobe_api::{Backend, TileBatch, execute};

fn main() -> Result<(), mxprobe_api::Error> {
    let found = mxprobe_cpu::CpuBackend::new().discover();
    let refusals = found.refusals.iter().chain(found.devices.iter().flat_map(|device| device.refusals()));
    refusals.for_each(|refusal| println!("{}: {}", refusal.what, refusal.reason));
    println!("{:44} {:>10} {:>16}", "operation", "dots", "dots_per_s");
    for device in &found.devices {
        for operation in device.operations().values() {
            let (m, n, _) = operation.id.shape.sizes();
            for dots in [1 << 12, 1 << 16, 1 << 20] {
                let batch = TileBatch::zeros(operation, dots / m / n);
                // The best of many repetitions, as other processes may use this machine.
                let mut best_s = f64::INFINITY;
                for _ in 0..(1 << 26) / dots {
                    let start = Instant::now();
                    std::hint::black_box(execute(device.as_ref(), operation, &batch)?);
                    best_s = best_s.min(start.elapsed().as_secs_f64());
                }
                println!(
                    "{:44} {dots:>10} {:>16.3e}",
                    operation.id.to_string(),
                    f64::from(u32::try_from(dots).unwrap_or(u32::MAX)) / best_s
                );
            }
        }
    }
    Ok(())
}
