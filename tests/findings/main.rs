//! Findings on units whose arithmetic is known, in cases that are easy to get wrong.
#![allow(missing_docs)]

mod devices;
#[path = "../units/mod.rs"]
mod units;

use std::sync::atomic::{AtomicU64, Ordering};

use mxprobe::{
    glossary,
    probes::{self, probe},
    report::{AtOnce, FindingRecord, OperationReport, Outcome, Summary},
};
use mxprobe_api::{Backend, Device, Error, Format, OperationId};
use mxprobe_models::{Dot, Evaluator, Model};
use mxprobe_sim::{ModelDevice, SimBackend};

use devices::{Failing, Normalising, WithoutSpecials};
use units::{invented, operations};

fn report_of(model: Model) -> OperationReport {
    let device = ModelDevice::new(model);
    let operation = device.operations().values().next().expect("an operation");
    probe(&device, operation, None).into()
}

fn report(name: &str, id: &str) -> OperationReport {
    let device = SimBackend.open(name).unwrap_or_else(|error| panic!("{error}"));
    let id: OperationId = id.parse().expect("an operation id");
    probe(device.as_ref(), &device.operations()[&id], None).into()
}

fn found<'r>(report: &'r OperationReport, probe: &str) -> &'r FindingRecord {
    report.finding(probe).unwrap_or_else(|| panic!("no {probe}"))
}

/// A finding's statement, or the reason why it has none.
fn words(finding: &FindingRecord) -> &str {
    finding.reason.as_deref().unwrap_or(&finding.statement)
}

/// An adder `s` whose sum an adder `t` rounds into `output`.
fn two_adders(s: &str, output: &str) -> String {
    format!(
        r#"{s}
nan = "0x7fffffff"
basis = "assumed"
source = "here"
[adder.t]
output = "{output}"
rounding = "nearest-even"
nan = "0x7fff""#
    )
}

fn one_adder(fraction_bits: u32, output: &str, more: &str) -> String {
    format!(
        "fraction_bits = {fraction_bits}\nbelow = \"truncate\"\noutput = \"{output}\"\nrounding = \"nearest-even\"\n\
         nan = \"0x7fff\"\n{more}"
    )
}

#[test]
fn a_narrow_result_rounded_by_way_of_f32_is_told_from_one_rounded_once() {
    let operation = |format: &str| format!("dot.m4n4k4.{format}.{format}.{format}.{format}");
    // A grid of 23 bits is as fine as f32: only the carries of the sum push a bit below f32.
    for format in ["f16", "bf16"] {
        for fraction_bits in [23, 24, 25, 31] {
            let once = invented("once", &one_adder(fraction_bits, format, ""), "s(all, c)", &operation(format));
            let of_once = report_of(once);
            let finding = found(&of_once, "rounding.once");
            assert!(finding.is(true), "{format}, {fraction_bits} bits, once: {}", words(finding));
            for rounding in ["nearest-even", "toward-zero", "down"] {
                let first = format!(
                    "fraction_bits = {fraction_bits}\nbelow = \"truncate\"\noutput = \"f32\"\nrounding = \"{rounding}\""
                );
                let twice = invented("twice", &two_adders(&first, format), "t(s(all, c))", &operation(format));
                let of_twice = report_of(twice);
                let finding = found(&of_twice, "rounding.once");
                let about = format!("{format}, {fraction_bits} bits, {rounding} to f32: {}", words(finding));
                assert!(finding.is(false), "{about}");
                assert!(finding.statement.contains(" 23 fraction bits"), "{about}");
            }
        }
    }
}

#[test]
fn a_sum_cut_to_any_width_before_it_is_rounded_is_not_rounded_once() {
    for (format, width) in [("f16", 13), ("f16", 18), ("bf16", 13), ("bf16", 20), ("f16", 24)] {
        let more = format!("normalised_fraction_bits = {width}");
        let operation = format!("dot.m4n4k8.{format}.{format}.{format}.{format}");
        let cut = report_of(invented("cut", &one_adder(25, format, &more), "s(all, c)", &operation));
        let finding = found(&cut, "rounding.once");
        assert!(finding.is(false), "{format}, {width}: {}", words(finding));
        let told = finding.statement.contains(&format!("cut to {width} fraction bits first"));
        assert!(told, "{format}, {width}: {}", words(finding));
    }
}

#[test]
fn a_chain_that_is_rounded_down_or_up_is_not_taken_for_terms_on_a_grid() {
    for (mode, rounding) in [("rm", "RD"), ("rp", "RU"), ("rz", "RZ")] {
        let report = report("h100", &format!("mma.m16n8k8.f64.f64.f64.f64.{mode}"));
        let kept = found(&report, "alignment.fraction_bits");
        let rounded = kept.value.as_ref().and_then(|value| value.get("rounded_to_bits")).and_then(|bits| bits.as_u64());
        assert_eq!(rounded, Some(53), "{mode}: {}", words(kept));
        assert!(found(&report, "rounding.result").is(rounding), "{mode}");
        assert!(found(&report, "rounding.between_blocks").is(rounding), "{mode}");
    }
    // A grid has no more places below a power of two than above it.
    let floor = "fraction_bits = 23\nbelow = \"floor\"\noutput = \"f32\"\nrounding = \"down\"\nnan = \"0x7fffffff\"";
    let model = invented("grid", floor, "fold(c, all/1, s(all, acc))", "dot.m4n4k4.f32.bf16.bf16.f32");
    let report = report_of(model);
    assert!(found(&report, "alignment.below").is("floor"), "{}", words(found(&report, "alignment.below")));
}

#[test]
fn blocks_cut_toward_zero_before_a_rounded_sum_are_not_a_second_rounding_of_the_result() {
    // The sums of two instructions are cut to f32, and c is added with rounding to nearest: no wider format in between.
    for id in ["mma.m16n8k16.f32.e4m3.e4m3.f32", "mma.m16n8k32.f32.e5m2.e4m3.f32"] {
        let report = report("h100", id);
        assert!(found(&report, "rounding.result").is("RNE"));
        let finding = found(&report, "rounding.once");
        assert!(!finding.is(false), "{id}: {}", words(finding));
    }
}

#[test]
fn a_unit_of_one_product_shows_whether_it_rounds_once_by_a_product_of_two_significands() {
    // A sum of two terms does not carry far, so that one product has the tie and the bit below f32.
    let exact = "output = \"f16\"\nrounding = \"nearest-even\"\nnan = \"0x7fff\"";
    let once = report_of(invented("fma", exact, "s(all, c)", "dot.m4n4k1.f16.f16.f16.f16"));
    assert!(found(&once, "rounding.once").is(true), "{}", words(found(&once, "rounding.once")));
    let first = "output = \"f32\"\nrounding = \"nearest-even\"";
    let model = invented("fma-f32", &two_adders(first, "f16"), "t(s(all, c))", "dot.m4n4k1.f16.f16.f16.f16");
    let twice = report_of(model);
    assert!(found(&twice, "rounding.once").is(false), "{}", words(found(&twice, "rounding.once")));
}

#[test]
fn tf32_sums_of_tensor_cores_are_not_monotone() {
    for (name, id, small) in [
        ("a100", "mma.m16n8k4.f32.tf32.tf32.f32", 4),
        ("a100", "mma.m16n8k8.f32.tf32.tf32.f32", 4),
        ("h100", "mma.m16n8k8.f32.tf32.tf32.f32", 8),
    ] {
        let report = report(name, id);
        let finding = found(&report, "monotone");
        assert!(finding.is(false), "{name} {id}: {}", words(finding));
        // The witness: the same products, a larger c, and a smaller d, which the model reproduces.
        let [below, above] = &finding.evidence[..] else { panic!("two dots: {:?}", finding.evidence) };
        assert_eq!((&below.a, &below.b), (&above.a, &above.b));
        let bits = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
        let value = |text: &str| Format::F32.to_f64(bits(text));
        assert!(value(&below.c) < value(&above.c) && value(&below.d) > value(&above.d), "{finding:?}");
        let model = mxprobe_models::load(name).unwrap();
        let evaluator = Evaluator::new(&model, &id.parse().unwrap()).unwrap();
        for dot in [below, above] {
            let (a, b): (Vec<u64>, Vec<u64>) = dot.a.iter().zip(&dot.b).map(|(a, b)| (bits(a), bits(b))).unzip();
            let d = evaluator.dot(Dot { a: &a, b: &b, c: bits(&dot.c), scales: None }).unwrap();
            assert_eq!(d, bits(&dot.d));
        }
        let used = below.a.iter().filter(|text| bits(text) != 0).count();
        assert!(used <= small, "{used} products");
        assert!(found(&report, "normalisation").is("once"), "{}", words(found(&report, "normalisation")));
    }
}

#[test]
fn a_monotone_sum_has_no_witness_against_it() {
    let adder =
        |grid: &str, rounding: &str| format!("{grid}output = \"f32\"\nrounding = \"{rounding}\"\nnan = \"0x7fffffff\"");
    for (name, adder) in [
        ("exact", adder("", "toward-zero")),
        ("exact-nearest", adder("", "nearest-even")),
        // So fine a grid that less is lost next to the larger c than c gains.
        ("wide", adder("fraction_bits = 60\nbelow = \"truncate\"\n", "toward-zero")),
        // A grid that does not follow the terms.
        ("fixed", adder("fraction_bits = 150\nexponent_floor = 127\nbelow = \"truncate\"\n", "toward-zero")),
    ] {
        for formats in ["tf32.tf32", "f16.f16"] {
            let operation = format!("dot.m4n4k8.f32.{formats}.f32");
            let report = report_of(invented(name, &adder, "s(all, c)", &operation));
            let finding = found(&report, "monotone");
            assert_eq!(finding.outcome, Outcome::Inconclusive, "{name} {formats}: {}", finding.statement);
        }
    }
}

#[test]
fn a_sum_that_is_monotone_in_c_goes_down_where_a_product_of_a_subnormal_number_grows() {
    // Only the products are cut; c is added to their sum with rounding to nearest.
    let adder = |exponent: &str| {
        two_adders(
            &format!(
                "fraction_bits = 24\nexponent = \"{exponent}\"\nbelow = \"truncate\"\noutput = \"f32\"\nrounding = \"nearest-even\""
            ),
            "f32",
        )
        .replace("\"0x7fff\"", "\"0x7fffffff\"")
    };
    for formats in ["f16.f16", "bf16.bf16", "tf32.tf32"] {
        let operation = format!("dot.m4n4k8.f32.{formats}.f32");
        let probed = |exponent: &str| report_of(invented("c-apart", &adder(exponent), "t(c, s(all))", &operation));
        let report = probed("operands");
        let finding = found(&report, "monotone");
        assert!(finding.is(false), "{formats}: {}", words(finding));
        // The witness: one product that grows, the same c, and a smaller d.
        let [below, above] = &finding.evidence[..] else { panic!("two dots: {:?}", finding.evidence) };
        let bits = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
        let [of_a, of_b] = [0, 1].map(|at| Format::named(formats.split('.').nth(at).unwrap()).unwrap());
        let products = |dot: &mxprobe::report::EvidenceRecord| -> Vec<f64> {
            let both = dot.a.iter().zip(&dot.b);
            both.map(|(a, b)| of_a.to_f64(bits(a)) * of_b.to_f64(bits(b))).collect()
        };
        let (less, more) = (products(below), products(above));
        let grown: Vec<usize> = (0..8).filter(|k| less[*k].to_bits() != more[*k].to_bits()).collect();
        assert!(below.c == above.c && grown.len() == 1 && less[grown[0]] < more[grown[0]], "{less:?} {more:?}");
        assert!(Format::F32.to_f64(bits(&below.d)) > Format::F32.to_f64(bits(&above.d)), "{finding:?}");
        // If products are renormalised, the exponents of their operands do not matter.
        let report = probed("leading");
        let finding = found(&report, "monotone");
        assert_eq!(finding.outcome, Outcome::Inconclusive, "{formats}: {}", words(finding));
    }
}

#[test]
fn carry_bits_are_counted_from_the_exponent_that_the_unit_aligns_by_and_beyond_the_leading_bit() {
    let adder = |exponent: &str, carry: &str| {
        format!(
            "fraction_bits = 24\nexponent = \"{exponent}\"\nbelow = \"truncate\"\noutput = \"f32\"\n\
             rounding = \"toward-zero\"\nnan = \"0x7fffffff\"\n{carry}"
        )
    };
    let carry = |exponent: &str, bits: Option<u32>| {
        let carry = bits.map_or_else(String::new, |bits| format!("carry_bits = {bits}"));
        let model = invented("carry", &adder(exponent, &carry), "s(all, c)", "dot.m4n4k4.f32.f16.f16.f32");
        let report = report_of(model);
        let finding = found(&report, "carry");
        (finding.value.clone().unwrap_or_default(), words(finding).to_owned())
    };
    // Four products below 4 and c below 2: the sum's leading bit is that of 2^4, the largest term's that of 2^1. If
    // products are renormalised, the largest exponent is 1, and five terms need three bits, as N terms need log2 N,
    // rounded up.
    for enough in [None, Some(3)] {
        let (value, words) = carry("leading", enough);
        assert_eq!(
            value,
            serde_json::json!({ "enough": true, "reached": 3, "beyond_leading_bit": 3, "accumulator": "{4.24}" }),
            "{words}"
        );
    }
    let (value, words) = carry("leading", Some(2));
    assert_eq!(
        value,
        serde_json::json!({ "enough": false, "bits": 2, "beyond_leading_bit": 2, "accumulator": "{3.24}" }),
        "{words}"
    );
    // Otherwise it is 0, and the same sum needs four bits above it.
    for enough in [None, Some(4)] {
        let (value, words) = carry("operands", enough);
        assert_eq!(
            value,
            serde_json::json!({ "enough": true, "reached": 4, "beyond_leading_bit": 3, "accumulator": "{4.24}" }),
            "{words}"
        );
        assert!(
            words.contains("4 bits above the largest exponent (3 beyond the largest term's leading bit)"),
            "{words}"
        );
    }
    let (value, words) = carry("operands", Some(3));
    assert_eq!(
        value,
        serde_json::json!({ "enough": false, "bits": 3, "beyond_leading_bit": 2, "accumulator": "{3.24}" }),
        "{words}"
    );
    // If no bit is lost at alignment, the exponent that a product is aligned by does not show.
    let exact = "output = \"f32\"\nrounding = \"toward-zero\"\nnan = \"0x7fffffff\"";
    let report = report_of(invented("exact", exact, "s(all, c)", "dot.m4n4k4.f32.f16.f16.f32"));
    let finding = found(&report, "carry");
    assert_eq!(
        finding.value,
        Some(serde_json::json!({ "enough": true, "beyond_leading_bit": 3 })),
        "{}",
        finding.statement
    );
    assert!(finding.statement.contains("3 bits above the largest term's leading bit"), "{}", finding.statement);
}

#[test]
fn the_widest_addition_and_the_steps_of_c_are_not_said_to_be_the_same() {
    // Two instructions of eight products each, and c added outside both.
    let emulated = report("h100", "mma.m16n8k16.f32.e4m3.e4m3.f32");
    let (at_once, blocks) = (found(&emulated, "order.products_at_once"), found(&emulated, "order.blocks"));
    assert!(at_once.is(8), "{at_once:?}");
    assert_eq!(blocks.value, Some(serde_json::json!([(0..16).collect::<Vec<u32>>()])));
    assert_eq!(blocks.statement, "one step of 16 products: p0…p15, which were added before, at most 8 at once");
    assert_eq!(at_once.statement, "the widest addition takes 8 products");

    let serial = report("avx512", "dot.m1n1k2.f32.bf16.bf16.f32");
    assert_eq!(found(&serial, "order.blocks").statement, "2 steps of one product each: p1, then p0");
    assert!(found(&serial, "order.products_at_once").is(1));

    let blocked = report("a100", "mma.m16n8k16.f32.f16.f16.f32");
    let statement = &found(&blocked, "order.blocks").statement;
    assert_eq!(statement, "2 steps of 8 products each: p0…p7, then p8…p15");
    assert!(found(&blocked, "order.products_at_once").is(8));

    // The explanations of the two probes.
    let entry = |name: &str| glossary::explain(name).into_iter().next().expect(name);
    assert!(!entry("order.products_at_once").how.contains("longest list of order.blocks"));
    let blocks = entry("order.blocks");
    let of_one = blocks.answers.iter().find(|(value, _)| value == "one list").expect("an answer");
    assert!(!of_one.1.contains("at once: no rounding between them"), "{}", of_one.1);
}

#[test]
fn the_widest_addition_is_the_one_with_most_products_in_the_tree() {
    fn widest(tree: &serde_json::Value) -> u64 {
        let Some(list) = tree.as_array() else { return 0 };
        let products = if list.len() > 2 { list.iter().filter(|term| term.is_u64()).count() as u64 } else { 0 };
        list.iter().map(widest).max().unwrap_or(0).max(products)
    }
    let mut checked = 0;
    for name in ["v100", "rdna4", "avx512"] {
        let model = mxprobe_models::load(name).unwrap();
        let device = ModelDevice::new(model.clone());
        for id in operations(&model) {
            let report: OperationReport =
                probe(&device, &device.operations()[&id], Some(&|probe| probe.starts_with("order"))).into();
            let Some(tree) = report.finding("order.tree").and_then(|finding| finding.value.as_ref()) else { continue };
            let at_once = found(&report, "order.products_at_once").value.as_ref().and_then(serde_json::Value::as_u64);
            assert_eq!(at_once, Some(widest(tree).max(1)), "{name} {id}: {tree}");
            checked += 1;
        }
    }
    assert!(checked > 5, "{checked}");
}

#[test]
fn a_unit_that_adds_fewer_products_at_once_has_a_row_of_its_own() {
    // `mma` of k 4 adds all it has; `wmma` adds 4 of its 8.
    let ids = ["mma.m16n8k8.f32.tf32.tf32.f32", "mma.m16n8k4.f32.tf32.tf32.f32", "wmma.m16n16k8.f32.tf32.tf32.f32"];
    let rows = Summary::of(&ids.map(|id| report("h100", id))).rows;
    let rows: Vec<_> = rows.iter().map(|row| (row.families.join(" "), row.products_at_once)).collect();
    assert_eq!(rows, [("mma".to_owned(), Some(AtOnce::Products(8))), ("wmma".to_owned(), Some(AtOnce::Products(4)))]);
}

#[test]
fn normalisation_after_each_addition_is_found_with_fewer_terms_than_a_last_place_has_units() {
    let device = Normalising::new();
    let operation = device.operations().values().next().unwrap();
    let report: OperationReport = probe(&device, operation, None).into();
    assert!(found(&report, "alignment.fraction_bits").is(25), "{:?}", found(&report, "alignment.fraction_bits"));
    let finding = found(&report, "normalisation");
    assert!(finding.is("each"), "{}", words(finding));
    assert!(finding.evidence[0].about.contains("7 terms"), "{}", finding.evidence[0].about);
}

#[test]
fn a_failed_question_reports_under_its_own_probes_names_and_keeps_what_it_had_found() {
    let names: Vec<&str> = probes::all().map(|probe| probe.name).collect();
    for (model, id) in [
        ("v100", "mma.m8n8k4.f32.f16.f16.f32"),
        ("a100", "mma.m8n8k16.s32.s8.s8.s32"),
        ("rtx5090", "mma.m16n8k64.f32.e2m1.e2m1.f32.block16.ue4m3"),
    ] {
        let open = || SimBackend.open(model).unwrap();
        let id: OperationId = id.parse().unwrap();
        let counted = Failing { inner: open(), calls: AtomicU64::new(0), at: u64::MAX, error: || Error::driver("no") };
        let right = probe(&counted, &counted.operations()[&id], None);
        let calls = counted.calls.load(Ordering::Relaxed);
        assert!(calls > 5, "{calls}");
        for error in [|| Error::driver("a launch failed"), || Error::device_lost("the bus is gone")] {
            for at in (0..calls).step_by(1 + usize::try_from(calls).unwrap() / 60) {
                let device = Failing { inner: open(), calls: AtomicU64::new(0), at, error };
                let report = probe(&device, &device.operations()[&id], None);
                let about = format!("{model} {id}, call {at}, {}", error());
                let mut seen = Vec::new();
                for finding in &report.findings {
                    assert!(names.contains(&finding.probe.as_str()), "{about}: no probe is called {}", finding.probe);
                    assert!(!seen.contains(&&finding.probe), "{about}: {} twice", finding.probe);
                    seen.push(&finding.probe);
                    let failed = finding.outcome == Outcome::Failed;
                    assert!(!failed || finding.reason == Some(error().to_string()), "{about}: {finding:?}");
                }
                let is_open = |outcome| matches!(outcome, Outcome::Failed | Outcome::Skipped);
                assert!(report.findings.iter().any(|finding| finding.outcome == Outcome::Failed), "{about}");
                // The findings from before the failure are those of a report without one.
                let before = report.findings.iter().take_while(|finding| finding.outcome != Outcome::Failed);
                for (finding, other) in before.zip(&right.findings) {
                    assert_eq!(finding, other, "{about}");
                }
                // And every answer of that report is given, or reported as missing.
                let self_test = report.findings[0].outcome == Outcome::Failed;
                for other in right.findings.iter().filter(|_| !self_test) {
                    // If an earlier question failed, a later one may have less to ask.
                    let Some(finding) = report.finding(&other.probe) else {
                        assert!(!error().is_device_lost(), "{about}: no {}", other.probe);
                        continue;
                    };
                    assert!(
                        is_open(finding.outcome) || !error().is_device_lost() || finding == other,
                        "{about}: {finding:?}, and {other:?} of the right device"
                    );
                }
            }
        }
    }
}

#[test]
fn the_instruction_of_an_operation_is_a_mnemonic() {
    // A mnemonic, and operands as an assembler writes them.
    let is_word = |word: &str| {
        word.chars().all(|letter| letter.is_ascii_alphanumeric() || "._:".contains(letter))
            && word.starts_with(|first: char| first.is_ascii_alphabetic())
    };
    let is_mnemonic = |text: &str| {
        let (mnemonic, operands) = text.split_once(' ').unwrap_or((text, ""));
        let registers = ["zmm", "ymm", "xmm", "tmm"];
        is_word(mnemonic) && operands.split(", ").all(|operand| operand.is_empty() || registers.contains(&operand))
    };
    assert!(is_mnemonic("VDPBF16PS zmm, zmm, zmm") && is_mnemonic("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"));
    for prose in ["2 HMMA.F32, 4 FADD", "V_WMMA_F32_16X16X16_F16, wave32", "X (a kernel that has never run)"] {
        assert!(!is_mnemonic(prose));
    }
    let mut checked = 0;
    for model in mxprobe_models::shipped() {
        for operation in model.operations.values() {
            let Some(instruction) = &operation.instruction else { continue };
            assert!(is_mnemonic(instruction), "{} {}: {instruction}", model.name, operation.id);
            checked += 1;
        }
    }
    assert!(checked > 100, "{checked}");
}

#[test]
fn an_infinity_that_is_a_number_to_the_unit_does_not_propagate() {
    let id: OperationId = "mma.m16n8k16.f32.f16.f16.f32".parse().unwrap();
    let device = WithoutSpecials(SimBackend.open("a100").unwrap());
    let without: OperationReport = probe(&device, &device.operations()[&id], None).into();
    let wanted = "infinity is read as a number: Inf · 0 gives 0x00000000, overflow cannot be reached";
    assert_eq!(words(found(&without, "specials.infinity")), wanted);
    assert!(words(found(&report("a100", &id.to_string()), "specials.infinity")).starts_with("infinity propagates, "));
}
