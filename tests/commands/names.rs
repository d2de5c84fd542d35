//! Devices by the names that people have for them.

use super::{model_file, say, say_to};

#[track_caller]
fn listed(device: &str) -> serde_json::Value {
    let said = say(&["list", "--device", device, "--json"]).ended(0);
    let listing: serde_json::Value = serde_json::from_str(&said.out).expect("JSON");
    listing["devices"][0].clone()
}

#[test]
fn a_card_means_the_model_of_its_chip_and_stays_in_the_title() {
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
fn an_unknown_name_is_answered_with_the_nearest() {
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
