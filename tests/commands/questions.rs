//! `distinguish` on more than two models, on properties of one model, on algorithms, and with ranges of exponents.

use std::fs;

use serde_json::Value;

use super::{
    say, say_to,
    schema::{conforms, schema},
};

const A100: &str = "mma.m16n8k8.f32.f16.f16.f32";
const V100: &str = "mma.m8n8k4.f32.f16.f16.f32";

fn json(arguments: &[&str], code: i32) -> Value {
    let said = say(&[&["distinguish", "--format", "json"], arguments].concat()).ended(code);
    serde_json::from_str(&said.out).unwrap()
}

/// The result of `eval` for a record's evidence.
fn evaluated(model: &str, op: &str, evidence: &Value) -> Value {
    let dot = serde_json::json!({ "a": evidence["a"], "b": evidence["b"], "c": evidence["c"] }).to_string() + "\n";
    let said = say_to(&["eval", "--device", &format!("sim:{model}"), "--op", op], dot.as_bytes()).ended(0);
    serde_json::from_str::<Value>(&said.out).unwrap()["d"].clone()
}

#[test]
fn three_models_are_put_into_classes_and_one_dot_tells_them_apart() {
    let report = json(&["a100", "h100", "l40s", "--op", A100, "--finite"], 1);
    conforms(&schema("classes"), &report);
    assert_eq!(report["classes"], serde_json::json!([["a100", "l40s"], ["h100"]]));
    assert_eq!((&report["one_dot_tells_all"], report["pairs"].as_array().unwrap().len()), (&Value::Bool(true), 3));
    let evidence = &report["evidence"][0];
    assert_eq!(evaluated("a100", A100, evidence), evidence["d"]);
    for rival in evidence["rivals"].as_array().unwrap() {
        assert_eq!(evaluated(rival["answer"].as_str().unwrap(), A100, evidence), rival["d"]);
    }
    let said = say(&["distinguish", "a100", "h100", "l40s", "--op", A100, "--finite"]).ended(1);
    assert!(said.out.contains("2 classes") && said.out.contains("one dot tells all classes apart"), "{}", said.out);
}

#[test]
fn models_of_one_class_end_with_0_and_files_are_of_two_models_alone() {
    let said = say(&["distinguish", "a100", "l40s", "a100", "--op", A100]).ended(0);
    assert!(said.out.contains("1 class, all equal"), "{}", said.out);
    let said = say(&["distinguish", "a100", "l40s", "h100", "--op", A100, "--smt2", "/dev/null"]).ended(2);
    assert!(said.err.contains("--smt2 takes two models, but there are 3"), "{}", said.err);
    let said = say(&["distinguish", "a100", "--op", A100]).ended(2);
    assert!(said.err.contains("only one model, `a100`"), "{}", said.err);
}

const AT_0: [&str; 6] = ["--exponents", "a=0..0", "--exponents", "b=0..0", "--exponents", "c=0..0"];

#[test]
fn units_that_lose_nothing_in_a_range_of_exponents_are_proved_equal_there_by_command_and_files() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (smt2, proof) = (path("q.smt2"), path("q.drat"));
    let models = ["distinguish", "a100", "h100", "--op", A100, "--finite"];
    let said = say(&[&models[..], &AT_0, &["--smt2", &smt2, "--proof", &proof]].concat()).ended(0);
    assert!(said.out.contains("every finite input with exponents of a in 0..0, b in 0..0, c in 0..0"), "{}", said.out);
    assert!(said.out.contains("were checked apart from the solver"), "{}", said.out);
    assert!(fs::read_to_string(&smt2).unwrap().contains("with exponents of a in 0..0"));
    // In a wider range of exponents there is a dot, and its exponents are in the range.
    let wider = ["--exponents", "a=-8..0", "--exponents", "b=0..0", "--exponents", "c=0..0"];
    let said = say(&[&models[..], &wider].concat()).ended(1);
    let dot: Value = serde_json::from_str(said.out.lines().find(|line| line.starts_with('{')).unwrap()).unwrap();
    for (name, least) in [("a", 7), ("b", 15)] {
        for bits in dot[name].as_array().unwrap() {
            let bits = u16::from_str_radix(bits.as_str().unwrap().trim_start_matches("0x"), 16).unwrap();
            assert!(bits & 0x7fff == 0 || (least..=15).contains(&(bits >> 10 & 31)), "{dot}");
        }
    }
}

#[test]
fn ranges_of_exponents_that_say_nothing_are_refused_with_the_value() {
    for (range, part) in [
        ("a=16..20", "a=16..20: no value of f16 has such an exponent; its exponents are -24..15"),
        ("c=-400..-200", "c=-400..-200"),
        ("a=3..2", "the first exponent is above the last"),
        ("d=1..2", "`d` is not one of a, b and c"),
        ("a=1", "`a=1`"),
        ("a=1..x", "`a=1..x`"),
    ] {
        let said = say(&["distinguish", "a100", "h100", "--op", A100, "--exponents", range]).ended(2);
        assert!(said.err.contains(part), "`{part}` is not in\n{}", said.err);
    }
    let twice = ["--exponents", "a=1..2", "--exponents", "a=3..4"];
    let said = say(&[&["distinguish", "a100", "h100", "--op", A100][..], &twice].concat()).ended(2);
    assert!(said.err.contains("two ranges of exponents of a: 1..2 and 3..4"), "{}", said.err);
}

#[test]
fn the_carry_bits_of_5_and_9_terms_are_shown_by_a_dot_and_proved_to_suffice() {
    for (model, op, needs) in [("v100", V100, "5 terms need 4 carry bits"), ("a100", A100, "9 terms need 5 carry bits")]
    {
        let report = json(&[model, "--op", op, "--property", "carry"], 0);
        conforms(&schema("properties"), &report);
        let [property] = report["properties"].as_array().unwrap().as_slice() else { panic!("{report}") };
        assert!(property["answer"].as_str().unwrap().contains(needs), "{property}");
        let mut verdicts: Vec<&str> =
            property["alternatives"].as_array().unwrap().iter().map(|one| one["verdict"].as_str().unwrap()).collect();
        verdicts.sort_unstable();
        assert_eq!(verdicts, ["differ", "equal"], "{property}");
        let proved = property["alternatives"].as_array().unwrap().iter().find(|one| one["verdict"] == "equal").unwrap();
        assert!(proved["proof"]["refuted"]["conflicts"].is_u64(), "{property}");
        assert_eq!(evaluated(model, op, &property["evidence"][0]), property["evidence"][0]["d"]);
    }
}

#[test]
fn without_a_name_all_seven_properties_are_asked_each_with_its_seconds() {
    let said = say(&["distinguish", "v100", "--op", V100, "--property"]).ended(0);
    let names =
        ["products", "accumulation", "result-rounding", "accumulator-rounding", "order", "normalisation", "carry"];
    for name in names {
        let heading = said.out.lines().find(|line| line.starts_with(&format!("{name}: ")));
        assert!(heading.is_some_and(|line| line.contains("? (") && line.ends_with(" s)")), "{name}:\n{}", said.out);
    }
    assert!(said.out.contains("no dot can show products in reverse order: proved"), "{}", said.out);
    // These properties do not apply to integers; asking for one by name is an error.
    let integers = "mma.m16n8k32.s32.s8.s8.s32";
    let said = say(&["distinguish", "h100", "--op", integers, "--property", "all"]).ended(0);
    assert_eq!(said.out.matches("does not apply").count(), 7, "{}", said.out);
    let said = say(&["distinguish", "h100", "--op", integers, "--property", "order"]).ended(2);
    assert!(said.err.contains("order does not apply to mma.m16n8k32.s32.s8.s8.s32 of h100"), "{}", said.err);
    let said = say(&["distinguish", "v100", "h100", "--op", V100, "--property", "order"]).ended(2);
    assert!(said.err.contains("`--property` takes one model, but there are 2"), "{}", said.err);
    let said = say(&["distinguish", "v100", "--op", V100, "--property", "colour"]).ended(2);
    assert!(said.err.contains("colour"), "{}", said.err);
}

/// The inputs of table 5 of arXiv:2502.15999, with b0 times 2^7.
const TABLE_5: &str = concat!(
    r#"{"a":["0x3b802000","0x38a9c000","2^-12","2^-12"],"b":["0x437fc000","0x3c38e000","2^-12","2^-12"],"#,
    r#""c":"2^-24"}"#
);
const WAYS: [&str; 9] =
    ["distinguish", "v100", "--op", V100, "--algorithm", "markidis", "--algorithm", "ootomo", "--worse"];
const RANGES: [&str; 4] = ["--exponents", "a=-15..14", "--exponents", "b=-15..14"];

#[test]
fn the_published_dot_is_one_on_which_ootomo_and_yokota_are_worse_and_a_simpler_one_is_found() {
    let given = say(&[&WAYS[..], &["ootomo"], &RANGES, &["--dot", TABLE_5]].concat()).ended(1);
    for part in ["d = 0x3f800001", "d = 0x3f800000", "off by 21201·2^-40", "off by 152273·2^-40"] {
        assert!(given.out.contains(part), "`{part}` is not in\n{}", given.out);
    }
    // On the same dot, the other algorithm is not worse.
    say(&[&WAYS[..], &["markidis"], &["--dot", TABLE_5]].concat()).ended(0);
    for worse in ["ootomo", "markidis"] {
        let report: Value = {
            let said = say(&[&WAYS[..], &[worse], &RANGES, &["--format", "json"]].concat()).ended(1);
            serde_json::from_str(&said.out).unwrap()
        };
        conforms(&schema("algorithms"), &report);
        assert_eq!((&report["worse"], &report["verdict"]), (&worse.into(), &"found".into()));
        let dot = &report["dot"];
        let line = serde_json::json!({ "a": dot["a"], "b": dot["b"], "c": dot["c"] }).to_string();
        let said = say(&[&WAYS[..], &[worse], &RANGES, &["--dot", &line]].concat()).ended(1);
        assert!(said.out.contains(dot["errors"][0].as_str().unwrap()), "{}", said.out);
    }
}

#[test]
fn what_is_not_decided_of_algorithms_is_no_statement_and_the_question_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("q.smt2");
    let ways = ["distinguish", "v100", "--op", V100, "--algorithm", "markidis", "--algorithm", "multiword"];
    let of_few = ["--inputs", "e4m3", "--terms", "2", "--budget", "0.001", "--smt2", path.to_str().unwrap()];
    let said = say(&[&ways[..], &of_few].concat()).ended(4);
    assert!(said.out.contains("not decided") && !said.out.contains("proved"), "{}", said.out);
    let text = fs::read_to_string(&path).unwrap();
    for part in ["(declare-const part0_a1 (_ BitVec 8))", "(declare-const part0_c (_ BitVec 32))", "unit[0..2]"] {
        assert!(text.contains(part), "`{part}` is not in the formula");
    }
}

#[test]
fn algorithms_are_refused_where_they_do_not_fit_with_the_reason() {
    let of = |model: &'static str, op: &'static str| ["distinguish", model, "--op", op];
    let two = ["--algorithm", "markidis", "--algorithm", "ootomo"];
    for (arguments, part) in [
        ([&of("v100", V100)[..], &["--algorithm", "markidis"]].concat(), "two algorithms are needed, but 1 are given"),
        ([&of("v100", V100)[..], &["--algorithm", "strassen"]].concat(), "strassen"),
        ([&of("v100", V100)[..], &two, &["--worse", "single"]].concat(), "`--worse single`"),
        ([&of("v100", V100)[..], &two, &["--inputs", "f64"]].concat(), "f32 does not hold every value of f64"),
        ([&of("v100", V100)[..], &two, &["--inputs", "f99"]].concat(), "f99"),
        ([&of("v100", V100)[..], &two, &["--terms", "0"]].concat(), "0"),
        ([&of("v100", V100)[..], &two, &["--proof", "/dev/null"]].concat(), "--proof takes two models"),
        ([&of("v100", V100)[..], &two, &["--dot", "{}"]].concat(), "line 1"),
        ([&of("h100", "mma.m16n8k32.s32.s8.s8.s32")[..], &two].concat(), "mma.m16n8k32.s32.s8.s8.s32"),
        ([&of("v100", V100)[..], &["--worse", "ootomo"]].concat(), "--algorithm"),
    ] {
        let said = say(&arguments).ended(2);
        assert!(said.err.contains(part), "`{part}` is not in\n{}", said.err);
    }
}
