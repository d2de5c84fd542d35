//! Identifying a model finds a model with the same bits: for shipped units and invented ones. Units that no model file
//! can describe are reported as such.
//!
//! `cargo test --release --test identify_recovers_units -- --ignored --nocapture` tests every shipped unit, or with
//! `MXPROBE_ONLY=h100` those of models whose names contain `h100`.
#![allow(missing_docs, clippy::print_stdout)]

mod units;

use std::{
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use mxprobe::identify::{Comparison, Effort, Identification, NanBits, Outcome, equals, identify, model_of, verify};
use mxprobe_api::{Device, DeviceInfo, Elements, Error, Format, Operation, OperationId, OperationSet, TileBatch};
use mxprobe_models::{Basis, Evaluator, Model, load, shipped};
use mxprobe_sim::ModelDevice;

use units::{invented, operations};

/// Only the number of additions limits the search, so that a busy machine finds the same as an idle one.
fn patient() -> Effort {
    Effort { time: Duration::from_secs(86_400), ..Effort::default() }
}

fn identified(device: &dyn Device, id: &OperationId) -> Identification {
    identify(device, &device.operations()[id], patient(), &|_| ()).unwrap()
}

/// Identifies an operation of a model and compares the result with the model, on more than 100,000 dots.
fn recover(model: &Model, id: &OperationId) -> Result<Identification, String> {
    let device = ModelDevice::new(model.clone());
    let operation = &device.operations()[id];
    let start = Instant::now();
    let found = identified(&device, id);
    let took = start.elapsed().as_secs_f64();
    let name = format!("{} {id}", model.name);
    let Some(arithmetic) = found.arithmetic() else {
        let Outcome::Outside { explained, of, nearest, .. } = &found.outcome else {
            return Err(format!("{name}: {:?}", found.outcome));
        };
        return Err(format!("{name}: {explained} of {of} explained by {} ({took:.1} s)", nearest.tree));
    };
    let pair = (arithmetic.clone(), operation.clone());
    let copy = model_of(device.info(), "copy", "a test", &[pair]).map_err(|error| format!("{name}: {error}"))?;
    let comparison = Comparison { count: 250_000, seed: 77, nan: NanBits::Bits, shard: None };
    let compared = verify(&device, operation, &copy, comparison, &|_| ()).map_err(|error| error.to_string())?;
    if compared.mismatches > 0 {
        return Err(format!(
            "{name}: {} of {} dots differ: {:?}",
            compared.mismatches, compared.dots, compared.evidence
        ));
    }
    println!("{name}: {} rounds, {took:.1} s, {}", found.rounds, arithmetic.tree);
    Ok(found)
}

#[test]
fn the_main_units_are_recovered_within_twelve_rounds() {
    let mut wrong = Vec::new();
    for (model, operation) in [
        ("v100", "mma.m8n8k4.f32.f16.f16.f32"),
        ("v100", "wmma.m8n32k16.f16.f16.f16.f16"),
        ("t4", "mma.m16n8k8.f32.f16.f16.f32"),
        ("a100", "mma.m16n8k16.f32.f16.f16.f32"),
        ("a100", "mma.m16n8k16.f32.bf16.bf16.f32"),
        ("a100", "mma.m16n8k8.f32.tf32.tf32.f32"),
        ("a100", "mma.m16n8k32.s32.s8.s8.s32.satfinite"),
        ("h100", "mma.m16n8k16.f32.f16.f16.f32"),
        ("h100", "mma.m16n8k16.f64.f64.f64.f64.rm"),
        ("h100", "mma.m16n8k16.f32.e5m2.e5m2.f32"),
        ("h100", "mma.m16n8k16.f32.e4m3.e5m2.f32"),
        ("l40s", "mma.m16n8k16.f32.e5m2.e5m2.f32"),
        ("rtx5090", "mma.m16n8k16.f32.e4m3.e4m3.f32"),
        ("avx512", "dot.m1n1k2.f32.bf16.bf16.f32"),
        ("mi210", "mfma.m4n4k4.f32.f16.f16.f32.16b"),
        ("fma-chain", "dot.m1n1k16.f32.f32.f32.f32"),
        ("serial", "dot.m1n1k4.f16.f16.f16.f16"),
    ] {
        match recover(&load(model).unwrap(), &operation.parse().unwrap()) {
            Ok(found) if found.rounds > 12 => wrong.push(format!("{model} {operation}: {} rounds", found.rounds)),
            Ok(_) => {}
            Err(what) => wrong.push(what),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_unit_is_known_by_the_operation_that_rounds_as_it_does() {
    let h100 = load("h100").unwrap();
    for operation in ["mma.m16n8k4.f64.f64.f64.f64.rm", "wmma.m16n16k8.f32.tf32.tf32.f32"] {
        let found = recover(&h100, &operation.parse().unwrap()).unwrap();
        let known = equals(found.arithmetic().unwrap(), 1, NanBits::Bits).unwrap();
        assert!(known.contains(&format!("h100 {operation}")), "{operation}: {known:?}");
        let models: Vec<&str> = known.iter().map(|known| known.split(' ').next().unwrap()).collect();
        assert!(models.windows(2).all(|pair| pair[0] != pair[1]), "{known:?}");
    }
}

/// Of the random dots of e5m2 and e4m3 whose result is f16, one in 30 million shows that operands become f16 first.
#[test]
fn a_conversion_of_operands_is_found_where_only_ties_below_products_of_subnormals_show_it() {
    let model = shipped().iter().find(|model| model.name == "h100").unwrap();
    let device = ModelDevice::new(model.clone());
    let operation = &device.operations()[&"mma.m16n8k32.f16.e5m2.e4m3.f16".parse().unwrap()];
    for seed in [1, 6] {
        let found = identify(&device, operation, Effort { seed, ..patient() }, &|_| ()).unwrap();
        let converted = found.arithmetic().map(|arithmetic| arithmetic.flush.converted);
        assert_eq!(converted, Some(Some(Format::F16)), "seed {seed}: {:?}", found.outcome);
    }
}

#[test]
fn units_with_block_scales_are_recovered() {
    // Each product passed on by itself imitates zeros that are positive, but for a few dots in a million; and groups whose
    // order does not show.
    for (model, operation) in [
        ("b200", "tcgen05.m128n8k32.f32.e4m3.e4m3.f32.block32.ue8m0"),
        ("b200", "tcgen05.m128n8k64.f32.e2m1.e2m1.f32.block16.ue8m0"),
        ("rtx5090", "mma.m16n8k64.f32.e2m1.e2m1.f32.block32.ue8m0"),
    ] {
        recover(&load(model).unwrap(), &operation.parse().unwrap()).unwrap();
    }
}

/// Two rules of one grid imitate a group of products in all but a few dots. The groups are of all products of a block, of
/// pairs, and of even and odd k.
#[test]
fn products_that_are_added_before_c_are_found_although_one_grid_imitates_them() {
    let mut wrong = Vec::new();
    for (model, operation) in [
        ("rdna4", "wmma.m16n16k16.f32.e4m3.e4m3.f32.wave32"),
        ("rdna4", "wmma.m16n16k16.f32.f16.f16.f32.wave64"),
        ("rdna4", "wmma.m16n16k16.f32.bf16.bf16.f32.wave32"),
        ("rdna4", "wmma.m16n16k16.f16.f16.f16.f16.wave64"),
        ("mi300x", "mfma.m16n16k16.f32.f16.f16.f32"),
        ("mi300x", "mfma.m16n16k32.f32.e4m3fnuz.e5m2fnuz.f32"),
    ] {
        if let Err(what) = recover(&load(model).unwrap(), &operation.parse().unwrap()) {
            wrong.push(what);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Each step rounds to f32 and then cuts to bf16, which hides the first but for a few dots; or the steps of a chain imitate
/// each other if they are determined one by one.
#[test]
fn chains_of_steps_that_hide_what_they_do_are_found() {
    let mut wrong = Vec::new();
    for (model, operation) in [
        ("rdna4", "wmma.m16n16k16.bf16.bf16.bf16.bf16.wave64"),
        ("rdna4", "dot.m1n1k2.bf16.bf16.bf16.bf16"),
        ("rdna3", "wmma.m16n16k16.bf16.bf16.bf16.bf16"),
        ("arm", "bfmmla.m2n2k4.f32.bf16.bf16.f32"),
    ] {
        if let Err(what) = recover(&load(model).unwrap(), &operation.parse().unwrap()) {
            wrong.push(what);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
#[ignore = "takes minutes: every shipped unit"]
fn every_shipped_unit_is_recovered() {
    let only = std::env::var("MXPROBE_ONLY").unwrap_or_default();
    let mut wrong = Vec::new();
    for model in shipped().iter().filter(|model| model.name.contains(&only)) {
        for id in operations(model) {
            if let Err(what) = recover(model, &id) {
                println!("{what}");
                wrong.push(what);
            }
        }
    }
    assert!(wrong.is_empty(), "{} units:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn units_that_nobody_has_are_recovered() {
    let f32_adder = |rest: &str| format!("output = \"f32\"\nnan = \"0x7fffffff\"\n{rest}");
    let chain = |size: u32| format!("fold(c, all/{size}, s(all, acc))");
    let f16 = |k: u32| format!("dot.m4n4k{k}.f32.f16.f16.f32");
    let bf16 = |k: u32| format!("dot.m4n4k{k}.f32.bf16.bf16.f32");
    let rule = |bits: u32, below: &str, rounding: &str| {
        f32_adder(&format!("fraction_bits = {bits}\nbelow = \"{below}\"\nrounding = \"{rounding}\""))
    };
    let models = [
        invented("nearest-10", &rule(10, "nearest", "toward-zero"), &chain(3), &f16(9)),
        invented("floor-17", &rule(17, "floor", "nearest-even"), &chain(5), &f16(20)),
        invented("truncate-40", &rule(40, "truncate", "down"), &chain(12), &bf16(24)),
        invented("sticky-26", &rule(26, "sticky", "nearest-even"), &chain(4), &bf16(8)),
        invented("reverse-19", &rule(19, "truncate", "up"), "fold(c, reverse/5, s(all, acc))", &f16(20)),
        invented("to-odd", &rule(28, "truncate", "to-odd"), &chain(8), &f16(16)),
        invented("c-last", &rule(24, "truncate", "toward-zero"), "s(s(all), c)", &f16(8)),
        invented("carry", &format!("{}\ncarry_bits = 2", rule(24, "truncate", "toward-zero")), &chain(8), &f16(8)),
        invented(
            "middle",
            "output = \"f16\"\nnan = \"0x7e00\"\nfraction_bits = 14\nbelow = \"floor\"\nrounding = \"nearest-even\"",
            "s(fold(none, 0..6/3, s(all, acc)), c, fold(none, 6..12/3, s(all, acc)))",
            "dot.m4n4k12.f16.f16.f16.f16",
        ),
        invented(
            "leading",
            &format!("{}\nexponent = \"leading\"\nzero = \"positive\"", rule(25, "truncate", "toward-zero")),
            "fold(c, every(8,0,4,1,5,2,6,3,7)/4, s(all, acc))",
            &f16(16),
        ),
        invented(
            "flushing",
            &format!("{}\nsubnormals = \"flush-before-rounding\"", rule(30, "truncate", "nearest-even")),
            &chain(4),
            &bf16(4),
        ),
    ];
    let wrong: Vec<String> =
        models.iter().filter_map(|model| recover(model, model.operations.keys().next().unwrap()).err()).collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), models.len(), wrong.join("\n"));
}

/// Units that an earlier search missed, each for a different reason.
#[test]
fn units_that_are_hard_to_see_are_recovered() {
    let f32_adder = |rest: &str| format!("output = \"f32\"\nnan = \"0x7fffffff\"\n{rest}");
    let f16_adder = |rest: &str| format!("output = \"f16\"\nnan = \"0x7fff\"\n{rest}");
    let models = [
        // An odd product is rounded alone before it joins a tree of pairs.
        invented(
            "odd-one",
            &f32_adder("fraction_bits = 31\nbelow = \"truncate\"\nrounding = \"toward-zero\"\nexponent_floor = -133"),
            "s(pairs(all/2, s(all), s), c)",
            "dot.m4n4k15.f32.f16.f16.f32",
        ),
        // There are two chains, one of which begins with a single product.
        invented(
            "one-begins-alone",
            &f32_adder("fraction_bits = 38\nbelow = \"floor\"\nrounding = \"toward-zero\"\nzero = \"positive\""),
            "s(c, fold(none, every(4,0)/1, s(all, acc)), fold(none, every(4,1,2,3)/2, s(all, acc)))",
            "dot.m4n4k15.f32.f16.f16.f32",
        ),
        // Every small value leaves a sticky bit, so that none looks lost.
        invented(
            "sticky-10",
            &f32_adder(
                "fraction_bits = 10\nbelow = \"sticky\"\nrounding = \"down\"\nsubnormals = \"flush-after-rounding\"",
            ),
            "fold(s(c, 0), 1..24/3, s(all, acc))",
            "dot.m4n4k24.f32.f16.f16.f32",
        ),
        // The formats are so narrow that a product hardly swamps another at this width.
        invented(
            "sticky-40",
            &f32_adder("fraction_bits = 40\nbelow = \"sticky\"\nrounding = \"down\"\nexponent = \"leading\""),
            "s(fold(none, 0..4/2, s(all, acc)), c, fold(none, 4..8/2, s(all, acc)))",
            "dot.m4n4k8.f32.e5m2.e5m2.f32",
        ),
        // The exponent floor only changes results next to the smallest subnormal number.
        invented(
            "floor",
            &f32_adder("fraction_bits = 25\nbelow = \"floor\"\nrounding = \"nearest-even\"\nexponent_floor = -133"),
            "fold(c, reverse/6, s(all, acc))",
            "dot.m4n4k15.f32.tf32.tf32.f32",
        ),
        // Results almost never use all fraction bits of f32.
        invented(
            "seldom-long",
            &f32_adder("fraction_bits = 21\nbelow = \"nearest\"\nrounding = \"nearest-even\""),
            "s(fold(none, all/2, s(all, acc)), c)",
            "dot.m4n4k16.f32.e4m3.e4m3.f32",
        ),
        // Intermediate sums are narrow: they overflow to NaN, or wrap.
        invented(
            "narrow",
            &f16_adder(
                "fraction_bits = 15\nbelow = \"nearest\"\nrounding = \"toward-zero\"\nzero = \"positive\"\noverflow = \"nan\"",
            ),
            "s(fold(none, all/6, s(all, acc)), c)",
            "dot.m4n4k20.f16.f16.f16.f16",
        ),
        invented(
            "narrow-wrapping",
            &f16_adder("fraction_bits = 22\nbelow = \"sticky\"\nrounding = \"nearest-even\"\ncarry_bits = 4"),
            "s(s(all), c)",
            "dot.m4n4k32.f16.e4m3.e4m3.f16",
        ),
    ];
    let wrong: Vec<String> =
        models.iter().filter_map(|model| recover(model, model.operations.keys().next().unwrap()).err()).collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), models.len(), wrong.join("\n"));
}

#[test]
fn units_of_several_adders_that_hide_each_other_are_recovered() {
    let mut wrong = Vec::new();
    for (model, operation) in [
        ("a100", "mma.m8n8k4.f16.f16.f16.f16"),
        ("mi300x", "mfma.m4n4k4.f32.bf16.bf16.f32.16b"),
        ("mi300x", "mfma.m32n32k4.f32.xf32.xf32.f32"),
    ] {
        wrong.extend(recover(&load(model).unwrap(), &operation.parse().unwrap()).err());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A model whose results are changed by something other than arithmetic.
struct Strange {
    inner: ModelDevice,
    calls: AtomicU64,
    change: fn(u64, &TileBatch, usize, u64) -> u64,
}

impl Device for Strange {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }

    fn operations(&self) -> &OperationSet {
        self.inner.operations()
    }

    fn execute(&self, operation: &Operation, batch: &TileBatch) -> Result<Elements, Error> {
        let mut d = self.inner.execute(operation, batch)?;
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        for at in 0..d.len() {
            d.set(at, (self.change)(call, batch, at, d.get(at)));
        }
        Ok(d)
    }
}

const STRANGE: &str = "mma.m16n8k8.f32.f16.f16.f32";

fn strange(change: fn(u64, &TileBatch, usize, u64) -> u64) -> Identification {
    let inner = ModelDevice::new(load("a100").unwrap());
    let device = Strange { inner, calls: AtomicU64::new(0), change };
    identified(&device, &STRANGE.parse().unwrap())
}

#[test]
fn a_unit_that_rounds_by_chance_is_not_fitted() {
    let found = strange(|call, _, at, d| d ^ u64::from((call.wrapping_mul(2_654_435_761) >> (at % 29)) & 63 == 0));
    assert!(matches!(found.outcome, Outcome::Unrepeatable { .. }), "{:?}", found.outcome);
}

#[test]
fn a_unit_whose_results_depend_on_the_call_before_is_not_fitted() {
    let found = strange(|call, _, _, d| if call % 2 == 1 { d ^ 1 } else { d });
    assert!(matches!(found.outcome, Outcome::Unrepeatable { .. }), "{:?}", found.outcome);
}

/// The evaluator of the operation that [`strange`] identifies.
static A100: LazyLock<Evaluator> =
    LazyLock::new(|| Evaluator::new(&load("a100").unwrap(), &STRANGE.parse().unwrap()).unwrap());

#[test]
fn one_stuck_bit_of_one_multiplier_in_one_lane_is_named_with_its_place() {
    // The multiplier of k = 5 at row 3, column 2 always reads 1 as the lowest bit of A.
    let found = strange(|_, batch, at, d| {
        let id = A100.id();
        let (m, n, _) = id.shape.sizes();
        let (row, column) = (at / n % m, at % n);
        if (row, column) != (3, 2) {
            return d;
        }
        let mut dot = mxprobe::dots::Dot::at(id, batch, at);
        dot.a[5] |= 1;
        A100.dot(mxprobe_models::Dot { a: &dot.a, b: &dot.b, c: dot.c, scales: None }).unwrap()
    });
    let Outcome::Unrepeatable { what, evidence } = &found.outcome else { panic!("{:?}", found.outcome) };
    assert!(what.contains("row 3, column 2") && evidence.is_some(), "{what}");
}

#[test]
fn a_state_that_shows_once_in_many_calls_is_noticed() {
    // In one of 211 calls, one element has another bit than in the other calls.
    let found = strange(|call, _, at, d| if call % 211 == 210 && at == 5 { d ^ 1 } else { d });
    let Outcome::Unrepeatable { what, evidence } = &found.outcome else { panic!("{:?}", found.outcome) };
    assert!(what.contains("asked again") && evidence.is_some(), "{what}");
}

#[test]
fn repeatable_results_that_no_sum_explains_are_reported_with_the_simplest_input() {
    // Rounded by a hash, which looks random but is always the same.
    let found = strange(|_, batch, at, d| {
        let hash = batch.c.get(at).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61;
        if d & 0x7fff_ffff != 0 && d & 0x7f80_0000 != 0x7f80_0000 { d ^ u64::from(hash == 3) } else { d }
    });
    let Outcome::Outside { evidence, explained, of, .. } = &found.outcome else { panic!("{:?}", found.outcome) };
    assert!(evidence.is_some() && explained < of && *explained * 2 > *of, "{explained} of {of}");
}

#[test]
fn nan_whose_bits_follow_no_rule_are_outside_unless_any_nan_will_do() {
    let inner = ModelDevice::new(load("a100").unwrap());
    // The bits of a NaN depend on those of c, by a rule that model files cannot express.
    let change = |_: u64, batch: &TileBatch, at: usize, d: u64| {
        if d & 0x7fff_ffff > 0x7f80_0000 { d ^ (batch.c.get(at).wrapping_mul(0x9e37_79b9) & 0xffff) } else { d }
    };
    let device = Strange { inner, calls: AtomicU64::new(0), change };
    let id: OperationId = "mma.m16n8k8.f32.f16.f16.f32".parse().unwrap();
    let operation = &device.operations()[&id];
    let effort = Effort { terms: 200_000_000, ..patient() };
    let by_bits = identify(&device, operation, effort, &|_| ()).unwrap();
    assert!(matches!(by_bits.outcome, Outcome::Outside { only_nan: true, .. }), "{:?}", by_bits.outcome);
    let effort = Effort { nan: NanBits::Any, ..patient() };
    let found = identify(&device, operation, effort, &|_| ()).unwrap();
    let pair = (found.arithmetic().expect("all but NaN is an A100's").clone(), operation.clone());
    let copy = model_of(device.info(), "copy", "a test", &[pair]).unwrap();
    assert!(copy.adders.iter().all(|adder| adder.provenance.of("nan").basis == Basis::Assumed));
    let comparison = Comparison { count: 250_000, seed: 77, nan: NanBits::Any, shard: None };
    let compared = verify(&device, operation, &copy, comparison, &|_| ()).unwrap();
    assert_eq!(compared.mismatches, 0, "{:?}", compared.evidence);
    assert!(compared.other_nan > 100, "{}", compared.other_nan);
}
