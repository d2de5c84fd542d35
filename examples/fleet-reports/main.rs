//! Writes the reports of many machines, to see how long `mxprobe fleet` takes for them:
//! `cargo run --example fleet-reports -- REPORT.json FOLDER 10000`.
//!
//! Each is the given report, with the start and the driver of its own; one in a thousand answers one question in
//! another way.

use std::{env, error::Error, fs, path::PathBuf};

use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [report, folder, count] = arguments.as_slice() else {
        return Err("give a report, a folder and how many machines there are".into());
    };
    let (folder, count) = (PathBuf::from(folder), count.parse::<u32>()?);
    let mut report: Value = serde_json::from_str(&fs::read_to_string(report)?)?;
    let schema = report.as_object_mut().and_then(|keys| keys.remove("schema")).ok_or("it has no schema")?;
    for node in 0..count {
        report["time"]["start"] =
            json!(format!("2026-11-23T{:02}:{:02}:{:02}Z", node / 3600 % 24, node / 60 % 60, node % 60));
        report["device"]["driver"] = json!({"name": "driver", "version": (node % 3).to_string(), "api_version": ""});
        let finding = &mut report["operations"][0]["findings"][0];
        let usual = finding["value"].clone();
        if node % 1000 == 999 {
            finding["value"] = json!("otherwise");
        }
        // A report begins with its schema, as this program writes it.
        let text = serde_json::to_string(&report)?;
        let text = format!("{{\"schema\":{schema},{}", text.trim_start_matches('{'));
        report["operations"][0]["findings"][0]["value"] = usual;
        let own = folder.join(format!("node-{node:05}"));
        fs::create_dir_all(&own)?;
        fs::write(own.join("cpu-0.json"), text)?;
    }
    Ok(())
}
