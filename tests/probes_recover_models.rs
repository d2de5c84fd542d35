//! Probing a model finds the model's own parameters: for every shipped unit, and for invented ones.
#![allow(clippy::print_stdout, reason = "a test reports what it ran")]

mod recovery;
mod units;

use mxprobe::{
    probes::probe,
    report::{OperationReport, Outcome},
};
use mxprobe_api::{Device, Format, OperationId};
use mxprobe_models::{Model, shipped};
use mxprobe_sim::ModelDevice;

use recovery::{Check, differences};
use units::{invented, operations};

fn probe_all(models: &[Model]) -> Vec<String> {
    let jobs: Vec<(&Model, ModelDevice, OperationId)> = models
        .iter()
        .flat_map(|model| operations(model).into_iter().map(move |id| (model, ModelDevice::new(model.clone()), id)))
        .collect();
    let next = std::sync::atomic::AtomicUsize::new(0);
    let wrong = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..mxprobe_models::threads() {
            scope.spawn(|| {
                while let Some((model, device, id)) = jobs.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
                {
                    let report: OperationReport = probe(device, &device.operations()[id], None).into();
                    let found = differences(model, id, &report);
                    wrong.lock().expect("no panic while held").extend(found);
                }
            });
        }
    });
    wrong.into_inner().expect("no panic while held")
}

#[test]
fn probing_any_shipped_model_finds_its_parameters() {
    let wrong = probe_all(shipped());
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_main_findings_are_measured_on_the_main_units() {
    let core =
        ["order.tree", "order.blocks", "alignment.fraction_bits", "alignment.below", "rounding.result", "monotone"];
    let mut wrong = Vec::new();
    for (name, operation, expected) in [
        ("v100", "mma.m8n8k4.f32.f16.f16.f32", (4, 23, "truncate", "RZ")),
        ("t4", "mma.m16n8k8.f32.f16.f16.f32", (8, 24, "truncate", "RZ")),
        ("a100", "mma.m16n8k16.f32.f16.f16.f32", (8, 24, "truncate", "RZ")),
        ("a100", "mma.m16n8k8.f32.tf32.tf32.f32", (4, 24, "truncate", "RZ")),
        ("a100", "mma.m16n8k16.f32.bf16.bf16.f32", (8, 24, "truncate", "RZ")),
        ("l40s", "mma.m16n8k32.f32.e4m3.e4m3.f32", (16, 13, "truncate", "RZ")),
        ("h100", "mma.m16n8k16.f32.f16.f16.f32", (16, 25, "truncate", "RZ")),
        ("h100", "wgmma.m64n8k32.f32.e4m3.e4m3.f32", (32, 13, "truncate", "RZ")),
        ("h100", "mma.m16n8k16.f16.f16.f16.f16", (16, 25, "truncate", "RNE")),
    ] {
        let device = ModelDevice::new(mxprobe_models::load(name).unwrap());
        let id: OperationId = operation.parse().unwrap();
        let report: OperationReport = probe(&device, &device.operations()[&id], None).into();
        let mut check = Check { report: &report, name: format!("{name} {operation}"), wrong: Vec::new() };
        let (width, bits, below, rounding) = expected;
        for probe in core {
            // A witness needs results with more bits than f16 has.
            if probe != "monotone" || id.d == Format::F32 {
                check.is_measured(probe);
            }
        }
        check.is("order.products_at_once", width);
        check.is("alignment.fraction_bits", bits);
        check.is("alignment.below", below);
        check.is("rounding.result", rounding);
        check.is("monotone", false);
        check.is("products.exponent", "operands");
        check.is("normalisation", "once");
        wrong.extend(check.wrong);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn probing_units_that_nobody_has_finds_their_parameters() {
    let f32_adder = |bits: u32, below: &str, rounding: &str| {
        format!(
            "fraction_bits = {bits}\nbelow = \"{below}\"\noutput = \"f32\"\nrounding = \"{rounding}\"\nnan = \"0x7fffffff\"\nzero = \"positive\""
        )
    };
    let bf16 = |k: u32| format!("dot.m4n4k{k}.f32.bf16.bf16.f32");
    let f16 = |k: u32| format!("dot.m4n4k{k}.f32.f16.f16.f32");
    let models = [
        invented("nearest-19", &f32_adder(19, "nearest", "nearest-even"), "fold(c, reverse/12, s(all, acc))", &f16(36)),
        invented("wide-48", &f32_adder(27, "truncate", "toward-zero"), "fold(c, all/48, s(all, acc))", &bf16(96)),
        invented("floor-31", &f32_adder(31, "floor", "nearest-even"), "fold(c, all/8, s(all, acc))", &bf16(16)),
        invented("deep-40", &f32_adder(40, "truncate", "down"), "fold(c, all/8, s(all, acc))", &bf16(8)),
        invented("sticky-26", &f32_adder(26, "sticky", "nearest-even"), "fold(c, all/4, s(all, acc))", &bf16(8)),
        invented("up", &f32_adder(25, "truncate", "up"), "fold(c, every(8,0,4,1,5,2,6,3,7)/4, s(all, acc))", &f16(16)),
        invented("c-last", &f32_adder(24, "truncate", "nearest-even"), "s(c, s(all))", &f16(8)),
        invented(
            "carry-3",
            &format!("{}\ncarry_bits = 3", f32_adder(24, "truncate", "toward-zero")),
            "fold(c, all/8, s(all, acc))",
            &f16(8),
        ),
        invented("k-128", &f32_adder(25, "truncate", "toward-zero"), "fold(c, all/128, s(all, acc))", &bf16(128)),
        invented("chain-100", &f32_adder(30, "truncate", "toward-zero"), "fold(c, all/20, s(all, acc))", &bf16(100)),
    ];
    let wrong = probe_all(&models);
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
    for model in &models {
        let device = ModelDevice::new(model.clone());
        let operation = device.operations().values().next().unwrap();
        let report: OperationReport = probe(&device, operation, None).into();
        // The sum of twelve terms cut to 19 bits fits into f32, so that its rounding does not show.
        let rounds = model.name != "nearest-19";
        for probe in
            ["order.tree", "alignment.fraction_bits", "rounding.result"].into_iter().take(if rounds { 3 } else { 2 })
        {
            let finding = report.finding(probe).unwrap();
            assert_eq!(finding.outcome, Outcome::Measured, "{} {probe}: {finding:?}", model.name);
        }
    }
}
