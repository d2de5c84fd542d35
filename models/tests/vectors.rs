//! Reference dots, most of them measured on hardware, which every model must reproduce bit for bit.
//!
//! The dots are not part of the project. They are looked for in the directory of `MXPROBE_VECTORS`, then beside the
//! project; without them the test says so and the tables of `known_answers.txt` remain.
#![expect(clippy::print_stdout, reason = "what ran is part of the result")]

use std::{collections::BTreeMap, env, fs, path::PathBuf};

use mxprobe_api::{Decoded, Format, OperationId};
use mxprobe_models::{Dot, Model, evaluate, load};
use serde_json::Value;

fn directory() -> PathBuf {
    let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/vectors");
    env::var_os("MXPROBE_VECTORS").map_or_else(beside, PathBuf::from)
}

fn format(name: &str) -> Format {
    match name {
        "fp8" => Format::E4M3FNUZ,
        "bf8" => Format::E5M2FNUZ,
        "i8" => Format::S8,
        "i32" => Format::S32,
        other => Format::named(other).unwrap(),
    }
}

fn text<'a>(line: &'a Value, key: &str) -> &'a str {
    line.get(key).and_then(Value::as_str).unwrap_or("")
}

/// The model and the operation a dot was measured on, or computed for.
///
/// A line may also name `model` and `operation` itself.
fn unit_of(line: &Value) -> (&str, String) {
    if let (Some(model), Some(operation)) = (line.get("model"), line.get("operation")) {
        return (model.as_str().unwrap(), operation.as_str().unwrap().to_owned());
    }
    let types: Vec<String> =
        ["d_type", "a_type", "b_type", "c_type"].iter().map(|key| format(text(line, key)).to_string()).collect();
    let formats = types.join(".");
    let (d, a) = (types[0].as_str(), types[1].as_str());
    let k = line["k"].as_u64().unwrap();
    match (text(line, "gpu"), text(line, "arch")) {
        ("", arch) => from_instruction(arch, text(line, "unit"), text(line, "instruction"), &formats, k),
        (gpu, _) => {
            let model = match gpu {
                "V100" => "v100",
                "A100" => "a100",
                "A2" => "a2",
                "Ada" => "rtx1000",
                "L40S" => "l40s",
                "H100" => "h100",
                "H200" => "h200",
                "B200" => "b200",
                other => panic!("no model of {other}"),
            };
            // The file that these dots come from was made with wmma, but for fp8 (mma.sync), and fp8 to f32 on Hopper
            // (wgmma).
            let shape = match (gpu, a, d) {
                ("V100", _, _) => "mma.m8n8k4",
                (_, "f16" | "bf16", _) => "mma.m16n8k16",
                (_, "tf32", _) => "wmma.m16n16k8",
                ("H100" | "H200", _, "f32") => "wgmma.m64n8k32",
                _ => "mma.m16n8k32",
            };
            (model, format!("{shape}.{formats}"))
        }
    }
}

fn from_instruction(arch: &str, unit: &str, instruction: &str, formats: &str, k: u64) -> (&'static str, String) {
    let shape = || instruction.split('.').next().unwrap();
    let scale = || {
        let words: Vec<&str> = instruction.split('.').collect();
        let block = words.iter().find(|word| word.starts_with("block")).unwrap();
        format!("{block}.{}", words.last().unwrap())
    };
    let model = match arch {
        "Volta" => "v100",
        "Turing" => "t4",
        "Ampere" => "a100",
        "Ada Lovelace" => "ada",
        "Hopper" => "h100",
        "Blackwell" => "b200",
        "RTX Blackwell" => "rtx5090",
        "CDNA1" => "mi100",
        "CDNA2" => "mi210",
        "CDNA3" => "mi300x",
        "RDNA3" => "rdna3",
        "RDNA4" => "rdna4",
        "Intel AMX" => "amx",
        other => panic!("no model of {other}"),
    };
    let id = match (unit, arch) {
        ("mma.sync", _) => format!("mma.{}.{formats}", shape()),
        ("mma.sync.block_scale", _) => format!("mma.{}.{formats}.{}", shape(), scale()),
        ("wgmma", _) => format!("wgmma.{}.{formats}", shape()),
        ("tcgen05.mma", _) => format!("tcgen05.{}.{formats}", shape()),
        ("tcgen05.mma.block_scale", _) => format!("tcgen05.{}.{formats}.{}", shape(), scale()),
        ("v_mfma", _) => {
            let digits = instruction.split('_').nth(1).unwrap();
            let mut sizes =
                digits.split('x').map(|size| size.split(|c: char| !c.is_ascii_digit()).next().unwrap().to_owned());
            let mut size = || sizes.next().unwrap();
            let blocks = if instruction.contains("_2b_") { ".2b" } else { "" };
            let suffix = if instruction.ends_with("_1k") { ".1k" } else { "" };
            format!("mfma.m{}n{}k{}.{formats}{blocks}{suffix}", size(), size(), size())
        }
        (_, "Intel AMX") => format!("amx.m16n16k{k}.{formats}"),
        _ if instruction.starts_with("v_dot") => format!("dot.m1n1k{k}.{formats}"),
        _ => {
            let wave = match instruction.rsplit('_').next().unwrap() {
                "w32" => ".wave32",
                "w64" => ".wave64",
                _ => "",
            };
            format!("wmma.m16n16k16.{formats}{wave}")
        }
    };
    (model, id)
}

fn bits(line: &Value, key: &str) -> Vec<u64> {
    let parse = |value: &Value| u64::from_str_radix(value.as_str().unwrap().trim_start_matches("0x"), 16).unwrap();
    match &line[key] {
        Value::Array(values) => values.iter().map(parse).collect(),
        Value::String(_) => vec![parse(&line[key])],
        _ => Vec::new(),
    }
}

/// The operation's d for a dot that may be shorter than its k: the rest is +0, with scales of 1.
fn computed(model: &Model, id: &OperationId, line: &Value) -> u64 {
    let (unit, plan) = model.plan(id).unwrap_or_else(|| panic!("{} has no {id}", model.name));
    let k = id.shape.sizes().2;
    let padded = |key: &str| {
        let mut bits = bits(line, key);
        assert!(bits.len() <= k, "{id} is shorter than {key}");
        bits.resize(k, 0);
        bits
    };
    let scales = |key: &str| {
        let scale = id.block_scale()?;
        let mut bits = bits(line, key);
        assert!(!bits.is_empty(), "{id} without {key}");
        bits.resize(k.div_ceil(scale.block), scale.format.one());
        Some(bits)
    };
    let (a, b, scale_a, scale_b) = (padded("a"), padded("b"), scales("scale_a"), scales("scale_b"));
    let scales = scale_a.as_deref().zip(scale_b.as_deref());
    let dot = Dot { a: &a, b: &b, c: bits(line, "c")[0], scales };
    evaluate(&model.adders, unit, &plan, id, dot)
}

#[test]
#[cfg_attr(not(vectors), ignore = "MXPROBE_VECTORS does not name the directory of the reference dots")]
fn every_reference_dot_is_reproduced_bit_for_bit() {
    let directory = directory();
    let mut files: Vec<PathBuf> = fs::read_dir(&directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{} has no .jsonl file", directory.display());
    let mut models: BTreeMap<String, Model> = BTreeMap::new();
    let mut wrong = Vec::new();
    for file in files {
        let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        for (number, text_of_line) in fs::read_to_string(&file).unwrap().lines().enumerate() {
            let line: Value = serde_json::from_str(text_of_line).unwrap();
            let (name, id) = unit_of(&line);
            let model =
                models.entry(name.to_owned()).or_insert_with(|| load(name).unwrap_or_else(|error| panic!("{error}")));
            let id: OperationId = id.parse().unwrap_or_else(|error| panic!("{error}"));
            let d = computed(model, &id, &line);
            let expected = bits(&line, "d")[0];
            let any_nan = line.get("d_exact") == Some(&Value::Bool(false));
            let is_nan = |bits| matches!(id.d.decode(bits), Decoded::Nan { .. });
            let right = d == expected || (any_nan && is_nan(d) && is_nan(expected));
            let count = counts.entry(format!("{name} {id}")).or_default();
            count.0 += 1;
            if !right {
                count.1 += 1;
                wrong.push(format!(
                    "{}:{}: {name} {id}: {} and not {}",
                    file.file_name().unwrap().to_string_lossy(),
                    number + 1,
                    id.d.hex(d),
                    id.d.hex(expected)
                ));
            }
        }
        let (dots, failed) = counts.values().fold((0, 0), |sum, count| (sum.0 + count.0, sum.1 + count.1));
        println!("{}: {dots} dots, {failed} wrong", file.file_name().unwrap().to_string_lossy());
        for (unit, (dots, failed)) in counts {
            println!("  {unit}: {dots} dots, {failed} wrong");
        }
    }
    assert!(wrong.is_empty(), "{} dots are wrong:\n{}", wrong.len(), wrong.join("\n"));
}
