//! Reference dots, as stored in the files next to the project: one dot per line.

use std::{env, fs, path::PathBuf};

use mxprobe_api::{Format, OperationId};
use serde_json::Value;

/// A dot and its result.
pub(crate) struct Reference {
    /// The file and the line.
    pub(crate) place: String,
    /// The model of the unit on which it was measured, or for which it was computed.
    pub(crate) model: String,
    pub(crate) id: OperationId,
    /// As many elements as the operation takes; those that the line lacks are +0.
    pub(crate) a: Vec<u64>,
    pub(crate) b: Vec<u64>,
    pub(crate) c: u64,
    /// The scales; those that the line lacks are 1.
    pub(crate) scales: Option<(Vec<u64>, Vec<u64>)>,
    pub(crate) d: u64,
    /// Whether any NaN is a correct result.
    pub(crate) any_nan: bool,
}

/// The files in the directory `MXPROBE_VECTORS`, or else in the one next to the project's root, in order.
pub(crate) fn files(root: &str) -> Vec<PathBuf> {
    let beside = || PathBuf::from(root).join("../shared/vectors");
    let directory = env::var_os("MXPROBE_VECTORS").map_or_else(beside, PathBuf::from);
    let mut files: Vec<PathBuf> = fs::read_dir(&directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{} has no .jsonl file", directory.display());
    files
}

/// The dots of a file.
pub(crate) fn dots(file: &PathBuf) -> Vec<Reference> {
    let name = file.file_name().unwrap().to_string_lossy().into_owned();
    let text = fs::read_to_string(file).unwrap();
    text.lines().enumerate().map(|(number, line)| read(format!("{name}:{}", number + 1), line)).collect()
}

fn read(place: String, text: &str) -> Reference {
    let line: Value = serde_json::from_str(text).unwrap();
    let (model, id) = unit_of(&line);
    let id: OperationId = id.parse().unwrap_or_else(|error| panic!("{error}"));
    let k = id.shape.sizes().2;
    let padded = |key: &str| {
        let mut bits = bits(&line, key);
        assert!(bits.len() <= k, "{id} is shorter than {key}");
        bits.resize(k, 0);
        bits
    };
    let scales = |key: &str| {
        let scale = id.block_scale()?;
        let mut bits = bits(&line, key);
        assert!(!bits.is_empty(), "{id} without {key}");
        bits.resize(k.div_ceil(scale.block), scale.format.one());
        Some(bits)
    };
    let (a, b, c) = (padded("a"), padded("b"), bits(&line, "c")[0]);
    let scales = scales("scale_a").zip(scales("scale_b"));
    let (d, any_nan) = (bits(&line, "d")[0], line.get("d_exact") == Some(&Value::Bool(false)));
    Reference { place, model: model.to_owned(), id, a, b, c, scales, d, any_nan }
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

/// The model and the operation on which a dot was measured, or for which it was computed.
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
            // The file of these dots was made with wmma, except for fp8 (mma.sync) and fp8 to f32 on Hopper (wgmma).
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
