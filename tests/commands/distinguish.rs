//! `distinguish` and `explain --trace`: differences of two models, proofs, and the steps that compute a dot.

use std::fs;

use super::{Said, model_file, say, say_to};

const A100: &str = "mma.m16n8k16.f32.f16.f16.f32";

/// A shipped model's file with every line `from` replaced by `to`, in a temporary directory.
fn changed(model: &str, from: &str, to: &str) -> (tempfile::TempDir, String) {
    let text = fs::read_to_string(model_file(&format!("{model}.toml"))).unwrap();
    assert!(text.lines().any(|line| line == from), "{model} has no line `{from}`");
    let text: Vec<&str> = text.lines().map(|line| if line == from { to } else { line }).collect();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("changed.toml");
    fs::write(&path, text.join("\n")).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (directory, path)
}

/// The first line of the output that starts with `{`, as JSON.
fn witness(said: &Said) -> serde_json::Value {
    let line = said.out.lines().find(|line| line.starts_with('{')).expect("a dot is shown");
    serde_json::from_str(line).unwrap()
}

#[test]
fn models_that_differ_are_told_apart_by_a_dot_that_eval_takes_with_both_traces() {
    let said = say(&["distinguish", "a100", "sim:h100", "--op", A100]).ended(1);
    assert!(said.out.starts_with(&format!("a100 and h100 differ on {A100}: ")), "{}", said.out);
    let dot = witness(&said).to_string() + "\n";
    let values: Vec<String> = ["a100", "h100"]
        .into_iter()
        .map(|model| say_to(&["eval", "--device", &format!("sim:{model}"), "--op", A100], dot.as_bytes()).ended(0).out)
        .collect();
    assert_ne!(values[0], values[1]);
    for (model, value) in ["a100", "h100"].into_iter().zip(&values) {
        let value: serde_json::Value = serde_json::from_str(value).unwrap();
        let line = format!("{model}  d = {}", value["d"].as_str().unwrap());
        assert!(said.out.contains(&line), "`{line}` is not in\n{}", said.out);
        let input = ["explain", "--trace", "--device", &format!("sim:{model}"), "--op", A100, "--dot", &dot];
        let trace = say(&input).ended(0).out;
        assert!(said.out.contains(&trace), "{trace}\nis not in\n{}", said.out);
    }
    assert!(said.out.contains("25 bits below the largest exponent"), "{}", said.out);
}

#[test]
fn the_same_seed_gives_the_same_witness() {
    let dot = |seed: &str| witness(&say(&["distinguish", "a100", "h100", "--op", A100, "--seed", seed]).ended(1));
    assert_eq!(dot("7"), dot("7"));
}

#[test]
fn a_model_is_proved_equal_to_itself() {
    let said = say(&["distinguish", "a100", "a100", "--op", A100]).ended(0);
    assert!(said.out.contains("proved for every input, NaN and infinities included"), "{}", said.out);
    assert!(said.out.contains("the same circuit"), "{}", said.out);
}

#[test]
fn carry_bits_that_suffice_are_proved_to_and_one_fewer_is_told_apart() {
    let op = "mma.m8n8k4.f32.f16.f16.f32";
    let (_five, five) = changed("v100", "exponent_floor = -131", "exponent_floor = -131\ncarry_bits = 4");
    let said = say(&["distinguish", "v100", &five, "--op", op]).ended(0);
    assert!(said.out.contains("4, and 4 suffice (closed form)"), "{}", said.out);
    let (_three, three) = changed("v100", "exponent_floor = -131", "exponent_floor = -131\ncarry_bits = 3");
    let said = say(&["distinguish", "v100", &three, "--op", op]).ended(1);
    assert!(said.out.contains("within 3 carry bits"), "{}", said.out);
}

#[test]
fn the_question_and_its_proof_are_written_and_the_proof_holds() {
    let op = "mma.m8n8k4.f32.f16.f16.f32";
    let (directory, file) = changed("v100", "exponent_floor = -131", "exponent_floor = -131\ncarry_bits = 4");
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (smt2, dimacs, proof) = (path("q.smt2"), path("q.cnf"), path("q.drat"));
    let files = ["--smt2", &smt2, "--dimacs", &dimacs, "--proof", &proof];
    let said = say(&[&["distinguish", "v100", &file, "--op", op][..], &files].concat()).ended(0);
    assert!(said.out.contains("were checked apart from the solver"), "{}", said.out);
    assert!(said.out.contains("conflicts"), "the closed form decided: {}", said.out);
    let text = fs::read_to_string(&smt2).unwrap();
    for part in ["(set-logic QF_BV)", "(declare-const part0_a0 (_ BitVec 16))", "(check-sat)"] {
        assert!(text.contains(part), "`{part}` is not in the formula");
    }
    // The files suffice as a proof.
    let mut cnf = None;
    for line in fs::read_to_string(&dimacs).unwrap().lines().filter(|line| !line.starts_with('c')) {
        if let Some(sizes) = line.strip_prefix("p cnf ") {
            cnf = Some(mxprobe::proof::cnf::Cnf::new(sizes.split(' ').next().unwrap().parse().unwrap()));
        } else {
            let clause: Vec<i32> =
                line.split(' ').map(|word| word.parse().unwrap()).filter(|word| *word != 0).collect();
            cnf.as_mut().unwrap().add(&clause);
        }
    }
    let (cnf, text) = (cnf.unwrap(), fs::read_to_string(&proof).unwrap());
    let steps = mxprobe::proof::rup::Proof::parse(&text).unwrap();
    assert_eq!(mxprobe::proof::rup::check(&cnf, &steps), Ok(()));
    // The last clause alone is not a proof.
    let short = mxprobe::proof::rup::Proof::parse("0\n").unwrap();
    assert!(mxprobe::proof::rup::check(&cnf, &short).is_err());
}

#[test]
fn what_is_not_decided_is_neither_equal_nor_different() {
    let (_kept, file) = changed("v100", "exponent_floor = -131", "exponent_floor = -131\ncarry_bits = 4");
    let said = say(&[
        "distinguish",
        "v100",
        &file,
        "--op",
        "mma.m8n8k4.f32.f16.f16.f32",
        "--budget",
        "0.000001",
        "--proof",
        "/dev/null",
    ])
    .ended(4);
    assert!(said.out.contains("not decided"), "{}", said.out);
    assert!(said.out.contains("time was up"), "{}", said.out);
}

/// A unit whose products and c have separate grids, and whose sums wrap.
const TWO_GRIDS: &str = r#"
schema = "mxprobe-model/1"
name = "two-grids"
title = "a unit of two grids"
vendor = "nobody"
fingerprint = "two-grids"
[sources]
nobody = "made up"
[adder.f32]
grid = [{ terms = "products", fraction_bits = 20 }, { terms = "values", fraction_bits = 24 }]
below = "truncate"
carry_bits = CARRY
output = "f32"
rounding = "nearest-even"
nan = "0x7fc00000"
basis = "assumed"
source = "nobody"
[[unit]]
tree = "f32(all, c)"
operations = ["dot.m1n1k2.f32.f16.f16.f32"]
basis = "assumed"
source = "nobody"
"#;

#[test]
fn what_proofs_do_not_cover_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let files = [60, 61].map(|carry_bits| {
        let path = directory.path().join(format!("{carry_bits}.toml"));
        fs::write(&path, TWO_GRIDS.replace("CARRY", &carry_bits.to_string())).unwrap();
        path.to_str().unwrap().to_owned()
    });
    let said = say(&["distinguish", &files[0], &files[1], "--op", "dot.m1n1k2.f32.f16.f16.f32"]).ended(4);
    assert!(said.out.contains("proofs do not cover carry_bits with several grids"), "{}", said.out);
    assert!(said.out.contains("1000000 tried"), "{}", said.out);
}

#[test]
fn what_cannot_be_compared_is_refused_with_the_value() {
    for (arguments, parts) in [
        (["h1000", "a100", A100], &["no model `h1000`"][..]),
        (["a100", "./no-such.toml", A100], &["`./no-such.toml`"]),
        (["a100", "h100", "mma.m16n8k7.f32.f16.f16.f32"], &["mma.m16n8k7.f32.f16.f16.f32"]),
        (["h100", "amx", A100], &["h100 and amx have no operation", A100, "of the same formats and k"]),
        (["cpu:0", "h100", A100], &["cpu:0"]),
    ] {
        let [one, other, op] = arguments;
        let said = say(&["distinguish", one, other, "--op", op]).ended(2);
        for part in parts {
            assert!(said.err.contains(part), "`{part}` is not in\n{}", said.err);
        }
        assert_eq!(said.out, "");
    }
    for option in ["--smt2", "--dimacs", "--proof"] {
        let said = say(&["distinguish", "a100", "a100", "--op", A100, option, "/no/such/place"]).ended(2);
        assert!(said.err.contains("`/no/such/place` cannot be written"), "{}", said.err);
    }
    for (option, value) in [("--budget", "soon"), ("--seed", "-1")] {
        let said = say(&["distinguish", "a100", "a100", "--op", A100, option, value]).ended(2);
        assert!(said.err.contains(value), "{}", said.err);
    }
}

#[test]
fn a_trace_shows_each_term_the_grid_and_what_is_lost() {
    let input = concat!(
        r#"{"a":["0x7800","0x0400"],"b":["0x3c00","0x4800"],"c":"0x00000000"}"#,
        "\n",
        r#"{"a":["0x7e00"],"b":["0x3c00"],"c":"0x00000000"}"#,
        "\n"
    );
    let op = "mma.m8n8k4.f32.f16.f16.f32";
    let said = say_to(&["explain", "--trace", "--device", "sim:v100", "--op", op], input.as_bytes()).ended(0);
    let wanted = "\
n0 = f32(p0…p3 + c)
  p0  0x7800 × 0x3c00  0x1p+15  exponent 15   kept 0x1p+15
  p1  0x0400 × 0x4800  0x1p-11  exponent -11  kept 0        lost 0x1p-11
  p2, p3, c are zeros
  grid 2^-8: 23 bits below the largest exponent, 15; the rest is truncated: dropped from the magnitude, with no sticky bit
  sum 0x1p+15
  rounded toward zero to f32: 0x47000000 = 32768
d = 0x47000000 = 32768

n0 = f32(p0…p3 + c)
  p0  0x7e00 × 0x3c00  NaN
  p1…p3, c are zeros
  a NaN or an infinity decides
  f32: 0x7fffffff = NaN
d = 0x7fffffff = NaN
";
    assert_eq!(said.out, wanted);
}

#[test]
fn a_trace_of_what_is_no_dot_or_no_model_is_refused() {
    let op = "mma.m8n8k4.f32.f16.f16.f32";
    for (device, dot, part) in [
        ("sim:v100", r#"{"a":["one"],"b":["0x3c00"],"c":"0x00000000"}"#, "a[0]: `one`"),
        ("sim:v100", "dot", "not JSON"),
        ("sim:v1000", "{}", "v1000"),
        ("cpu:0", "{}", "cpu:0"),
    ] {
        let said = say(&["explain", "--trace", "--device", device, "--op", op, "--dot", dot]).ended(2);
        assert!(said.err.contains(part), "`{part}` is not in\n{}", said.err);
    }
    say(&["explain", "--trace"]).ended(2);
    say(&["explain", "--dot", "{}"]).ended(2);
    say(&["explain", "--trace", "--device", "sim:v100", "--op", op, "order"]).ended(2);
}

#[test]
fn the_json_holds_the_verdict_the_dot_and_the_proof_and_fits_its_schema() {
    let schema: serde_json::Value = serde_json::from_str(&say(&["schema", "distinction"]).ended(0).out).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let report = |arguments: &[&str], code: i32| -> serde_json::Value {
        let said = say(&[&["distinguish", "--format", "json"], arguments].concat()).ended(code);
        let report = serde_json::from_str(&said.out).unwrap();
        assert!(
            validator.is_valid(&report),
            "{:?}",
            validator.iter_errors(&report).next().map(|error| error.to_string())
        );
        report
    };
    let differ = report(&["a100", "h100", "--op", A100], 1);
    assert_eq!(differ["verdict"], "differ");
    let line = witness(&say(&["distinguish", "a100", "h100", "--op", A100]).ended(1));
    assert_eq!(differ["evidence"]["c"], line["c"]);
    assert_eq!(differ["evidence"]["rivals"][0]["answer"], "h100");
    assert_ne!(differ["evidence"]["rivals"][0]["d"], differ["evidence"]["d"]);
    assert!(differ.get("proof").is_none(), "{differ}");
    let (_carry, carry) = changed("a100", "exponent_floor = -132", "exponent_floor = -132\ncarry_bits = 5");
    let equal = report(&["a100", &carry, "--op", A100, "--finite"], 0);
    assert_eq!((&equal["verdict"], &equal["inputs"]), (&"equal".into(), &"finite".into()));
    assert!(equal["proof"]["carry"][0].as_str().unwrap().contains("suffice (closed form)"), "{equal}");
    let (_kept, kept) = changed("v100", "exponent_floor = -131", "exponent_floor = -131\ncarry_bits = 4");
    let arguments =
        ["v100", &kept, "--op", "mma.m8n8k4.f32.f16.f16.f32", "--budget", "0.000001", "--proof", "/dev/null"];
    let undecided = report(&arguments, 4);
    assert_eq!(undecided["verdict"], "undecided");
    assert!(undecided["reason"].is_string(), "{undecided}");
}

#[test]
fn a_proof_of_models_that_differ_is_said_not_to_be_there() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("proof.drat");
    let said = say(&["distinguish", "a100", "h100", "--op", A100, "--proof", file.to_str().unwrap()]).ended(1);
    assert!(said.err.contains("no proof was written"), "{}", said.err);
    assert!(!file.exists());
}
