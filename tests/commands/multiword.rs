//! `gemm`: parts of errors, elements drawn as words, numbers of blocks, bounds, fits and experiments on blocks.

use serde_json::Value;

use super::say;

const A100: [&str; 4] = ["--device", "sim:a100", "--op", "mma.m16n8k16.f32.f16.f16.f32"];
const EXACT: [(&str, f64); 5] = [
    ("f16", 2.0 / 2048.0),
    ("double-f16", 0.0),
    ("bf16", 2.0 / 256.0),
    ("double-bf16", 3.0 / 65536.0),
    ("triple-bf16", 0.0),
];

/// The JSON of a product of random matrices.
fn product(more: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("d.npy");
    let head = ["gemm", "--random", "20,12,300", "--format", "json", "--out", out.to_str().unwrap()];
    serde_json::from_str(&say(&[&head[..], &A100, more].concat()).ended(0).out).unwrap()
}

fn experiment(more: &[&str]) -> Value {
    let head = ["gemm", "--format", "json", "--experiment"];
    serde_json::from_str(&say(&[&head[..], more].concat()).ended(0).out).unwrap()
}

#[test]
fn the_error_of_the_unit_is_told_from_that_of_rounding_the_inputs() {
    let error = |of: &Value, part: &str| of[format!("error_{part}componentwise")].as_f64().unwrap();
    let one = product(&[]);
    assert!(error(&one, "inputs_") > 10.0 * error(&one, "unit_"), "{one}");
    assert!(error(&one, "left_out_") == 0.0 && error(&one, "unit_") > 0.0, "{one}");
    let two = product(&["--words", "2"]);
    assert!(error(&two, "left_out_") > 0.0 && error(&two, "unit_") > error(&two, "inputs_"), "{two}");
    let all = product(&["--words", "2", "--all-products"]);
    assert!(error(&all, "left_out_") == 0.0, "{all}");
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("d.npy");
    let said = say(&[&["gemm", "--random", "4,4,64", "--out", out.to_str().unwrap()], &A100[..]].concat()).ended(0);
    assert!(said.out.contains("of the unit: ") && said.out.contains("of rounding A and B to words: "), "{}", said.out);
}

#[test]
fn elements_that_are_drawn_as_words_are_exact_in_as_many() {
    for words in ["1", "2"] {
        let found = product(&["--random-words", words, "--words", words, "--all-products"]);
        assert_eq!((found["inexact_a"].as_u64(), found["inexact_b"].as_u64()), (Some(0), Some(0)), "{found}");
        assert_eq!(found["error_inputs_componentwise"].as_f64(), Some(0.0), "{found}");
        assert_eq!(found["error_unit_componentwise"], found["error_componentwise"], "{found}");
    }
    let one = product(&["--random-words", "2"]);
    assert!(one["inexact_a"].as_u64().unwrap() > 5_000, "two words are not one: {one}");
    let growth = experiment(&["growth", "--device", "sim:a100", "--exponents", "9,9", "--random-words", "2"]);
    assert_eq!(growth["drawn"], serde_json::json!({"words": 2, "a": "f16", "b": "f16"}));
}

#[test]
fn words_that_cannot_be_drawn_are_refused_with_the_number() {
    let out = tempfile::tempdir().unwrap();
    let d = out.path().join("d.npy");
    let d = d.to_str().unwrap();
    for (more, words) in [
        (&["--random", "2,2,2", "--random-words", "0", "--out", d][..], "`--random-words 0`: 1 to 24"),
        (&["--random", "2,2,2", "--random-words", "25", "--out", d], "`--random-words 25`"),
        (&["--random-words", "2", "--out", d], "without `--random M,N,K`"),
        (&["--experiment", "yardstick", "--size", "8", "--random-words", "2"], "`--random-words`"),
        (&["--experiment", "yardstick", "--size", "8,16"], "`--size 8,16`: the yardstick takes one size"),
        (&["--experiment", "throughput", "--size", "8,0"], "`--size 0`"),
        (&["--random", "2,2,2", "--blocks", "0", "--accumulate", "fabsum-f32", "--out", d], "0 blocks"),
        (&["--random", "2,2,2", "--blocks", "4", "--block", "4", "--out", d], "cannot be used with"),
    ] {
        let said = say(&[&["gemm"], &A100[..], more].concat()).ended(2);
        assert!(said.err.contains(words), "{more:?}: {}", said.err);
    }
}

#[test]
fn blocks_by_their_count_are_those_of_their_size() {
    let folder = tempfile::tempdir().unwrap();
    let bits = |more: &[&str]| {
        let out = folder.path().join("d.npy");
        let head = ["gemm", "--random", "9,7,250", "--accumulate", "fabsum-f32", "--out", out.to_str().unwrap()];
        say(&[&head[..], &A100, more].concat()).ended(0);
        std::fs::read(out).unwrap()
    };
    // 250 / 16 is 15.6.
    assert_eq!(bits(&["--blocks", "16"]), bits(&["--block", "16"]));
    assert_ne!(bits(&["--blocks", "16"]), bits(&["--block", "250"]));
    let growth = experiment(&["growth", "--device", "sim:v100", "--exponents", "9,9", "--blocks", "16"]);
    let names: Vec<&str> =
        growth["curves"].as_array().unwrap().iter().map(|curve| curve["name"].as_str().unwrap()).collect();
    for name in ["double-f16, 16 blocks added in f32", "f32", "f32, 16 blocks"] {
        assert!(names.contains(&name), "{names:?}");
    }
}

#[test]
fn errors_grow_below_their_bounds_and_beside_the_terms_of_table_2_1() {
    let growth = experiment(&["growth", "--device", "sim:a100", "--exponents", "9,12"]);
    assert_eq!(growth["probability"].as_f64(), Some(0.99));
    let mut rows = Vec::new();
    for curve in growth["curves"].as_array().unwrap() {
        let (name, is_real) = (curve["name"].as_str().unwrap(), curve["what_if"].is_null());
        for point in curve["points"].as_array().unwrap() {
            let number = |of: &Value| of.as_f64().unwrap_or_else(|| panic!("{name}: {point}"));
            let (error, bound) = (number(&point["componentwise"]), number(&point["bound"]));
            let (any, probable) = (number(&point["bounds"]["any"]), number(&point["bounds"]["probable"]));
            assert!(error <= bound && bound <= any * (1.0 + 1e-9) && probable <= bound, "{name}: {point}");
            let published = &point["bounds"]["published"];
            if let Some((_, words)) = EXACT.iter().find(|(known, _)| *known == name && is_real) {
                let n = number(&point["n"]);
                let wanted = words + n * f64::from(-24).exp2();
                assert!((number(&published["dominant"]) / wanted - 1.0).abs() < 1e-12, "{name}: {point}");
                assert!(number(&published["significant_products"]) <= number(&published["all_products"]) * 2.0);
                assert!(number(&published["first_order"]) >= number(&published["dominant"]) * 0.999, "{name}: {point}");
                rows.push(name);
            }
        }
        let fits = &curve["fits"];
        assert_eq!(
            (fits["any"]["from"].as_u64(), fits["any"]["to"].as_u64()),
            (Some(512), Some(4096)),
            "{name}: {fits}"
        );
        if name == "double-f16" && is_real && curve["interval"] == "(0, 1]" {
            let exponent = fits["error"]["exponent"].as_f64().unwrap();
            assert!((0.8..1.2).contains(&exponent), "truncation grows with n: {fits}");
            assert!((0.9..1.05).contains(&fits["any"]["exponent"].as_f64().unwrap()), "{fits}");
        }
    }
    // Four lengths, each on two intervals.
    assert!(EXACT.iter().all(|(name, _)| rows.iter().filter(|row| *row == name).count() == 8), "{rows:?}");
}

#[test]
fn growth_with_all_products_has_curves_of_them_and_its_table_the_other_bounds() {
    let head = ["gemm", "--experiment", "growth", "--exponents", "9,10", "--all-products"];
    let said = say(&[&head[..], &["--device", "sim:v100"]].concat()).ended(0);
    for words in ["double-f16, all products", "any A, B", "with probability 0.99", "fitted to 2 n from 512 to 1024"] {
        assert!(said.out.contains(words), "{words}: {}", said.out);
    }
}

#[test]
fn the_blocks_that_reach_f32_are_said_for_each_device() {
    let found = experiment(&["smallest-block", "--device", "sim:v100", "--exponents", "9,11"]);
    let device = &found["devices"][0];
    assert_eq!(
        (device["device"].as_str(), device["n"].as_u64(), device["words"].as_u64()),
        (Some("sim:v100"), Some(2048), Some(2))
    );
    let (single, unit) = (device["single"].as_f64().unwrap(), device["unit"].as_f64().unwrap());
    assert!(unit > single, "{device}");
    let reached = device["reached_f64"].as_array().unwrap();
    for block in device["blocks"].as_array().unwrap() {
        let is_within = (reached[0].as_u64()..=reached[1].as_u64()).contains(&block["block"].as_u64());
        assert!(is_within || block["f64"].as_f64().unwrap() > single, "{device}");
    }
    let said =
        say(&["gemm", "--experiment", "smallest-block", "--device", "sim:avx512", "--exponents", "9,9"]).ended(0);
    assert!(said.out.contains("triple-bf16") && said.out.contains("added in f64"), "{}", said.out);
}

#[test]
fn throughput_has_words_and_both_blocks_at_every_size_and_says_what_is_timed() {
    let found = experiment(&["throughput", "--device", "sim:amx", "--size", "16,32", "--rounds", "2"]);
    let sizes = found["sizes"].as_array().unwrap();
    assert_eq!(sizes.iter().map(|of| of["n"].as_u64().unwrap()).collect::<Vec<_>>(), [16, 32]);
    for of in sizes {
        assert!(of["timed"].as_str().unwrap().contains("its times are of no unit"), "{of}");
        let ways = of["ways"].as_array().unwrap();
        for name in ["bf16", "double-bf16", "triple-bf16", "double-bf16, blocks of 256 added in f64"] {
            let way = ways.iter().find(|way| way["name"] == name).unwrap_or_else(|| panic!("{name}: {of}"));
            let (n, mean) = (of["n"].as_f64().unwrap(), way["products_mean_ns"].as_f64().unwrap());
            let rate = way["effective_flop_per_s"].as_f64().unwrap();
            assert!((rate * mean / (2e9 * n.powi(3)) - 1.0).abs() < 1e-9, "{way}");
        }
    }
}
