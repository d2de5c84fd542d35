//! Devices by the names that people use for them.

use super::{model_file, say, say_to};

#[track_caller]
fn listed(device: &str) -> serde_json::Value {
    let said = say(&["list", "--device", device, "--json"]).ended(0);
    let listing: serde_json::Value = serde_json::from_str(&said.out).expect("JSON");
    listing["devices"][0].clone()
}

#[test]
fn a_card_selects_the_model_of_its_chip_and_stays_in_the_title() {
    for (name, model) in
        [("RTX 4090", "l40s"), ("4090", "l40s"), ("7900xtx", "rdna3"), ("RX 7900 XTX", "rdna3"), ("h200", "h100")]
    {
        for device in [name.to_owned(), format!("sim:{name}")] {
            let found = listed(&device);
            assert_eq!(found["selector"], format!("sim:{model}"), "{device}");
            assert_eq!(found["name"], format!("{name} (model {model})"), "{device}");
            assert_eq!(found["properties"]["card"], name, "{device}");
            assert_eq!(found["fingerprint"], model, "{device}");
        }
    }
    for name in ["h100", "H100", "mi300x", "b200", "a100", "sim:h100"] {
        let found = listed(name);
        assert_eq!(found["selector"], format!("sim:{}", name.trim_start_matches("sim:").to_lowercase()));
        assert!(found["name"].as_str().unwrap().starts_with("model of "), "{found}");
        assert!(found["properties"].get("card").is_none(), "{found}");
    }
}

#[test]
fn a_bare_name_works_wherever_a_device_is_taken() {
    let dot = br#"{"a":["0x3c00"],"b":["0x4000"],"c":"0x3f800000"}"#;
    let said = say_to(&["eval", "--device", "RTX 4090", "--op", "mma.m16n8k16.f32.f16.f16.f32"], dot).ended(0);
    assert_eq!(said.out, "{\"d\":\"0x40400000\"}\n");
    let file = model_file("amx.toml");
    let said = say_to(&["eval", "--device", &file, "--op", "TDPFP16PS"], dot).ended(0);
    assert_eq!(said.out, "{\"d\":\"0x40400000\"}\n");
    let said = say(&["verify", "--device", "spr", "--model", "sapphirerapids", "--op", "TDPBSSD", "--count", "1"]);
    said.ended(0);
    assert!(say(&["explain", "RTX 4090"]).ended(0).out.contains("NVIDIA L40S"));
}

#[test]
fn a_report_of_a_card_is_headed_by_the_card_and_can_be_resumed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("card.json");
    let file = path.to_str().unwrap();
    let op = "mma.m8n8k16.s32.s8.s8.s32";
    let run = ["run", "--device", "rtx4090", "--op", op, "--probe", "order.tree", "--out", file];
    let said = say(&run).ended(0);
    assert!(said.out.contains("rtx4090 (model l40s)"), "{}", said.out);
    let text = std::fs::read_to_string(&path).unwrap();
    let mut report: serde_json::Value = serde_json::from_str(&text).unwrap();
    report["operations"] = serde_json::json!([]);
    report["time"]["interrupted"] = true.into();
    std::fs::write(&path, report.to_string()).unwrap();
    say(&["run", "--resume", file]).ended(0);
    let report: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(report["device"]["name"], "rtx4090 (model l40s)");
    assert_eq!(report["operations"][0]["id"], op);
}

#[test]
fn an_unknown_name_is_answered_with_the_nearest_known_one() {
    for (name, nearest) in
        [("h10", "sim:h100"), ("rtx4091", "sim:rtx4090"), ("hoper", "sim:hopper"), ("mi300xx", "sim:mi300x")]
    {
        let said = say(&["run", "--device", name]).ended(2);
        assert!(said.err.contains(&format!("no device `{name}`; did you mean `{nearest}`?")), "{}", said.err);
        let said = say(&["run", "--device", &format!("sim:{name}")]).ended(2);
        assert!(said.err.contains(&format!("no model `{name}`; did you mean `{nearest}`?")), "{}", said.err);
    }
    let said = say(&["run", "--device", "quantum"]).ended(2);
    assert!(said.err.starts_with("error: no device and no model `quantum`\n"), "{}", said.err);
}

/// The ids of the operations that a name matches, from a run of the cheapest probe.
#[track_caller]
fn meant(device: &str, op: &str) -> Vec<String> {
    let said = say(&["run", "--device", device, "--op", op, "--probe", "specials.zero", "--format", "json"]);
    let report: serde_json::Value = serde_json::from_str(&said.ended(0).out).expect("JSON");
    let operations = report["operations"].as_array().expect("operations").iter();
    operations.map(|operation| operation["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn operations_are_found_by_formats_and_by_ptx() {
    let id = "mma.m16n8k16.f32.f16.f16.f32";
    for name in ["mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "m16n8k16.f32.f16.f16.f32"] {
        assert_eq!(meant("a100", name), [id], "{name}");
    }
    let narrow = meant("a100", "f16→f16");
    assert!(narrow.len() > 1 && narrow.iter().all(|id| id.contains(".f16.f16.f16.f16")), "{narrow:?}");
    for (name, same) in [("half", "fp16"), ("f16->f32", "f16→f32"), ("int8", "s8"), ("tf32", "TF32")] {
        let found = meant("a100", name);
        assert!(!found.is_empty(), "{name}");
        assert_eq!(found, meant("a100", same), "{name}");
    }
    let fp8 = meant("mi300x", "fp8");
    assert!(!fp8.is_empty() && fp8.iter().all(|id| id.contains("fnuz")), "{fp8:?}");
}

#[test]
fn formats_that_a_device_lacks_are_answered_with_those_it_has() {
    let said = say(&["run", "--device", "v100", "--op", "fp8"]).ended(2);
    let words = "sim:v100 has no operation of `fp8` (e4m3, e5m2, e4m3fnuz, e5m2fnuz); it multiplies f16\n";
    assert!(said.err.contains(words), "{}", said.err);
}

#[test]
fn a_name_of_many_operations_is_refused_with_a_few_of_them() {
    let said = say(&["eval", "--device", "h100", "--op", "mma*"]).ended(2);
    assert!(said.err.starts_with("error: `mma*` matches 91 operations; name one\n"), "{}", said.err);
    assert!(said.err.lines().count() < 12, "{}", said.err);
    let said = say(&["eval", "--device", "h100", "--op", "mma.m16n8k16.f32.f16.f16.f16"]).ended(2);
    assert!(said.err.contains("did you mean `mma.m16n8k16.f32.f16.f16.f32`?"), "{}", said.err);
}

#[test]
fn distinguish_matches_operations_by_formats_and_k_across_vendors() {
    let id = "mma.m16n8k16.f32.f16.f16.f32";
    let said = say(&["distinguish", "h100", "mi300x", "--op", id, "--format", "json"]).ended(1);
    let found: serde_json::Value = serde_json::from_str(&said.out).expect("JSON");
    assert_eq!((&found["operation"], &found["verdict"]), (&id.into(), &"differ".into()));
    let of_other = found["counterpart"].as_str().expect("it is named").to_owned();
    assert!(of_other.starts_with("mfma.") && of_other.contains("k16.f32.f16.f16.f32"), "{of_other}");
    // The witness also holds for the second model's own operation.
    let said = say(&["distinguish", "h100", "mi300x", "--op", id]).ended(1);
    let dot = said.out.lines().find(|line| line.starts_with('{')).expect("a dot").to_owned();
    for (model, op) in [("h100", id), ("mi300x", of_other.as_str())] {
        let answer = say_to(&["eval", "--device", model, "--op", op], dot.as_bytes()).ended(0).out;
        let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
        let line = format!("d = {}", answer["d"].as_str().unwrap());
        assert!(said.out.contains(&line), "{model}: {line}\n{}", said.out);
    }
    let said = say(&["distinguish", "h100", "mi300x", "--op", "fp8"]).ended(2);
    assert!(said.err.contains("h100 and mi300x have no operation `fp8` of the same formats and k"), "{}", said.err);
    assert!(said.err.contains("mi300x has e4m3fnuz→f32 of k ="), "{}", said.err);
}
