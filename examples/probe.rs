//! Prints the findings of a model, or of the CPU.
use mxprobe_api::Backend;
fn main() {
    let name = std::env::args().nth(1).unwrap_or_default();
    let op = std::env::args().nth(2).unwrap_or_default();
    let devices = if name == "cpu" {
        mxprobe_cpu::CpuBackend::new().discover().devices
    } else {
        vec![mxprobe_sim::SimBackend.open(&name).unwrap()]
    };
    for device in devices {
        for operation in device.operations().values() {
            if !operation.id.to_string().contains(&op) {
                continue;
            }
            let report = mxprobe::probes::probe(device.as_ref(), operation, None);
            println!(
                "== {} {} ({} dots, {:.3} s)",
                device.info().selector,
                operation.id,
                report.dots,
                report.duration_ns as f64 / 1e9
            );
            for f in report.findings {
                println!("  {:34} {:?} {} {}", f.probe, f.outcome, f.statement, f.reason.unwrap_or_default());
                if std::env::var("EV").is_ok_and(|v| f.probe.contains(&v)) {
                    for e in f.evidence {
                        println!("      {e:?}");
                    }
                }
            }
        }
    }
}
