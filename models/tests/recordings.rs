//! Reproduces cuBLASLt's results on a GeForce RTX 4060 bit for bit from a recipe file: the recordings of
//! `scripts/recordings`.
#![allow(missing_docs)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
};

use mxprobe_api::{Elements, Format, GemmOperands, OperationId};
use mxprobe_models::{
    Evaluator, Model,
    recipe::{Program, Recipe, load},
};
use serde_json::{Map, Value};

/// The folder of `scripts/recordings`.
fn folder() -> PathBuf {
    std::env::var_os("MXPROBE_RECORDINGS")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target/recordings"), PathBuf::from)
}

/// An array of unsigned integers: its lengths and its elements.
struct Array {
    shape: Vec<usize>,
    bits: Vec<u64>,
}

impl Array {
    /// Reads the array to which a reference `["c3.npz", "uint8_4x32_…"]` points.
    fn read(reference: &Value) -> Self {
        let [shard, key] = [0, 1].map(|at| reference[at].as_str().unwrap());
        let path = folder().join(shard.trim_end_matches(".npz")).join(format!("{key}.npy"));
        let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        // The header of NumPy's format, version 1.0: its length in two bytes, then a Python dictionary.
        let header = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
        let text = String::from_utf8_lossy(&bytes[10..header]);
        assert!(text.contains("'fortran_order': False"), "{text}");
        let between = |from: &str, to: &str| {
            let rest = &text[text.find(from).unwrap() + from.len()..];
            rest[..rest.find(to).unwrap()].to_owned()
        };
        let size: usize = between("'descr': '", "'")[2..].parse().unwrap();
        let lengths = between("'shape': (", ")");
        let shape = lengths.split(',').map(str::trim).filter(|word| !word.is_empty()).map(|word| word.parse().unwrap());
        let element = |bytes: &[u8]| bytes.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte));
        let bits = bytes[header..].chunks_exact(size).map(element).collect();
        Self { shape: shape.collect(), bits }
    }

    fn elements(&self, format: Format) -> Elements {
        Elements::from_bits(format, self.bits.iter().copied())
    }

    /// The transpose of a matrix.
    fn transposed(&self) -> Self {
        let [rows, columns] = self.shape[..] else { panic!("{:?} is not a matrix", self.shape) };
        let bits = (0..columns).flat_map(|column| (0..rows).map(move |row| row * columns + column));
        Self { shape: vec![columns, rows], bits: bits.map(|at| self.bits[at]).collect() }
    }
}

fn format_of(name: &str) -> Format {
    let name = match name {
        "float32" => "f32",
        "bfloat16" => "bf16",
        "float16" => "f16",
        "float8_e4m3fn" => "e4m3",
        "float8_e5m2" => "e5m2",
        other => other,
    };
    Format::named(name).unwrap()
}

/// The parameters of a recorded product, as the recipe takes them.
struct Call {
    a: Array,
    b: Array,
    formats: [Format; 3],
    fast: bool,
    splits: (usize, String),
    scales: [u64; 2],
    scale_d: Option<u64>,
    is_diagonal: bool,
}

struct Library {
    recipe: Recipe,
    model: Model,
}

impl Library {
    /// D by the recipe alone, in the order of the recording.
    fn product(&self, call: &Call) -> Vec<u64> {
        let [of_a, of_b, d] = call.formats;
        let mut case = if call.fast { "fast" } else { "slow" }.to_owned();
        let mut parameters = BTreeMap::new();
        if call.splits.0 > 1 {
            // The recordings' names for the two orders.
            case += if call.splits.1 == "serial" { "-split-serial" } else { "-split-last-then-slots" };
            parameters.insert("slices".to_owned(), call.splits.0);
        }
        let id: OperationId = format!("mma.m16n8k32.f32.{of_a}.{of_b}.f32").parse().unwrap();
        let (m, k, n) = (call.a.shape[0], call.a.shape[1], call.b.shape[0]);
        let case = self.recipe.case_for(Some(&format!("{case}-{d}")), Some(&id), (m, n, k)).unwrap();
        let program = Program::new(&self.recipe, &self.model, case, &id, &parameters).unwrap();
        let (a, b) = (call.a.elements(of_a), call.b.transposed().elements(of_b));
        let c = Elements::zeros(Format::F32, m * n);
        let operands = GemmOperands { m, n, k, a: &a, b: &b, c: &c, scale_a: None, scale_b: None };
        let scale = |name: &str, bits: u64| (name.to_owned(), Elements::from_bits(Format::F32, [bits]));
        let mut inputs = BTreeMap::from([scale("scale_a", call.scales[0]), scale("scale_b", call.scales[1])]);
        // Other outputs do not read this scale.
        if let Some(bits) = call.scale_d.filter(|_| d.bits() == 8) {
            inputs.extend([scale("scale_d", bits)]);
        }
        let found = program.multiply(&operands, &inputs, 1).unwrap();
        assert_eq!(found.format(), d);
        if call.is_diagonal { (0..m).map(|at| found.get(at * n + at)).collect() } else { found.iter().collect() }
    }
}

/// How many outputs of a kind are equal bit for bit, and which ones differ.
#[derive(Default)]
struct Count {
    outputs: usize,
    values: usize,
    differing: Vec<String>,
}

impl Count {
    fn hold(&mut self, name: &str, format: Format, found: &[u64], recorded: &Array) {
        self.outputs += 1;
        self.values += found.len();
        assert_eq!(found.len(), recorded.bits.len(), "{name}");
        let differing: Vec<usize> = (0..found.len()).filter(|at| found[*at] != recorded.bits[*at]).collect();
        if let Some(at) = differing.first() {
            let [ours, theirs] = [found[*at], recorded.bits[*at]].map(|bits| format.hex(bits));
            self.differing.push(format!(
                "{name}: {} of {} differ, element {at}: {ours}, recorded {theirs}",
                differing.len(),
                found.len()
            ));
        }
    }
}

/// Merges two tables; the keys of `over` take precedence.
fn laid_over(under: &Value, over: &Value) -> Map<String, Value> {
    let mut all = under.as_object().cloned().unwrap_or_default();
    all.extend(over.as_object().cloned().unwrap_or_default());
    all
}

fn whole(value: &Value) -> Option<u64> {
    value.as_u64()
}

/// A product as one call of cuBLASLt, with its scales as bits.
fn product_of(case: &Value, parameters: &Map<String, Value>) -> Call {
    let text = |key: &str| parameters[key].as_str().unwrap();
    Call {
        a: Array::read(&case["inputs"]["a"]),
        b: Array::read(&case["inputs"]["b"]),
        formats: [format_of(text("fmt_a")), format_of(text("fmt_b")), format_of(text("out_dtype"))],
        fast: parameters["fast"].as_bool().unwrap(),
        splits: (
            usize::try_from(whole(&parameters["splitk"]["S"]).unwrap()).unwrap(),
            parameters["splitk"]["scheme"].as_str().unwrap().to_owned(),
        ),
        scales: ["scale_a_bits", "scale_b_bits"].map(|key| whole(&parameters[key]).unwrap()),
        scale_d: parameters.get("scale_result_bits").and_then(whole),
        is_diagonal: parameters.get("out_select").is_some_and(|select| select == "diagonal"),
    }
}

/// A call as a program makes it; missing parameters come from `call_defaults`.
fn call_of(case: &Value, output: &Value, defaults: &Value) -> Call {
    let called = Value::Object(laid_over(defaults, &case["call"]));
    let called = laid_over(&called, &output["call_diff"]);
    let scale = |key: &str| -> Option<u64> {
        let value = called.get(key)?.get("value")?;
        // NaN and infinities are strings.
        let number = value.as_f64().or_else(|| value.as_str()?.parse().ok())?;
        Some(Format::F32.from_f64(number))
    };
    let splits = output.get("splitk").and_then(Value::as_array).map_or((1, String::new()), |splits| {
        (usize::try_from(whole(&splits[0]).unwrap()).unwrap(), splits[1].as_str().unwrap().to_owned())
    });
    Call {
        a: Array::read(&case["inputs"]["a"]),
        b: Array::read(&case["inputs"]["b"]),
        formats: [&called["mat1"]["dtype"], &called["mat2"]["dtype"], &output["out_dtype"]]
            .map(|name| format_of(name.as_str().unwrap())),
        fast: output["fast"].as_bool().unwrap(),
        splits,
        scales: ["scale_a", "scale_b"].map(|key| scale(key).unwrap()),
        scale_d: scale("scale_result"),
        is_diagonal: false,
    }
}

/// Compares the recordings of one instruction: tiles, or single dots.
fn instructions(case: &Value, model: &Model, count: &mut Count) {
    let parameters = &case["params"];
    let [of_a, of_b] = ["fmt_a", "fmt_b"].map(|key| format_of(parameters[key].as_str().unwrap()));
    let [a, b, c] = ["a", "b", "c"].map(|key| Array::read(&case["inputs"][key]));
    let id: OperationId = format!("mma.m16n8k16.f32.{of_a}.{of_b}.f32").parse().unwrap();
    let evaluator = Evaluator::new(model, &id).unwrap();
    let k = *a.shape.last().unwrap();
    let (m, n) = if parameters["layout"] == "tile" { (a.shape[1], b.shape[1]) } else { (1, 1) };
    let mut found = Vec::new();
    for tile in 0..a.shape[0] {
        let part = |array: &Array, size: usize| array.bits[tile * size..][..size].to_vec();
        let of = |bits: Vec<u64>, format: Format| Elements::from_bits(format, bits);
        let columns = Array { shape: vec![n, k], bits: part(&b, n * k) }.transposed();
        let (a, b, c) = (of(part(&a, m * k), of_a), of(columns.bits, of_b), of(part(&c, m * n), Format::F32));
        let operands = GemmOperands { m, n, k, a: &a, b: &b, c: &c, scale_a: None, scale_b: None };
        found.extend(evaluator.multiply(&operands, 1).unwrap().iter());
    }
    count.hold(case["id"].as_str().unwrap(), Format::F32, &found, &Array::read(&case["expect"]["bits"]));
}

#[test]
#[cfg_attr(not(recordings), ignore = "without the recordings of `scripts/recordings`")]
fn every_recorded_product_of_cublaslt_is_that_of_its_recipe() {
    let text = fs::read_to_string(folder().join("index.json")).expect("`scripts/recordings` fetches it");
    let index: Value = serde_json::from_str(&text).unwrap();
    let (recipe, model) = load("cublaslt-sm89-fp8").unwrap();
    let library = Library { recipe, model };
    let mut counts: BTreeMap<(String, String), Count> = BTreeMap::new();
    // Calls that the library rejected, or whose results were not recorded.
    let mut without: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut split: BTreeSet<(usize, String, bool)> = BTreeSet::new();
    for case in index["cases"].as_array().unwrap() {
        let kind = case["kind"].as_str().unwrap();
        if kind == "mma" {
            let count = counts.entry((kind.to_owned(), "f32".to_owned())).or_default();
            instructions(case, &library.model, count);
            continue;
        }
        let single = [Value::Object(Map::from_iter([("expect".to_owned(), case["expect"].clone())]))];
        let outputs = case.get("outputs").and_then(Value::as_array).map_or(&single[..], |outputs| &outputs[..]);
        for output in outputs {
            let name = format!("{}/{}", case["id"].as_str().unwrap(), output["name"].as_str().unwrap_or(""));
            let expected = &output["expect"];
            if let Some(error) = expected.as_str().or_else(|| expected.get("error").and_then(Value::as_str)) {
                *without.entry((kind.to_owned(), error.to_owned())).or_default() += 1;
                continue;
            }
            let call = if kind == "gemm" {
                product_of(case, &laid_over(case.get("params").unwrap_or(&Value::Null), &output["params"]))
            } else {
                call_of(case, output, &index["call_defaults"])
            };
            split.insert((call.splits.0, call.splits.1.clone(), call.fast));
            let format = call.formats[2];
            let count = counts.entry((kind.to_owned(), format.to_string())).or_default();
            count.hold(&name, format, &library.product(&call), &Array::read(&expected["bits"]));
        }
    }
    let differing: Vec<&String> = counts.values().flat_map(|count| &count.differing).collect();
    assert!(differing.is_empty(), "{} differ: {differing:#?}", differing.len());
    let found: Vec<(&str, &str, usize, usize)> = counts
        .iter()
        .map(|((kind, format), count)| (kind.as_str(), format.as_str(), count.outputs, count.values))
        .collect();
    assert_eq!(found, REPRODUCED);
    let found: Vec<(&str, &str, usize)> =
        without.iter().map(|((kind, error), count)| (kind.as_str(), error.as_str(), *count)).collect();
    assert_eq!(found, WITHOUT);
    // Numbers of slices, orders of merging and kinds of accumulation.
    assert_eq!(split.iter().filter(|(slices, ..)| *slices > 1).count(), 68);
    assert_eq!(split.iter().map(|(slices, ..)| *slices).max(), Some(32));
}

/// The reproduced outputs: kind, format, number of outputs, and number of values in them.
const REPRODUCED: [(&str, &str, usize, usize); 11] = [
    ("gemm", "bf16", 718, 740_581),
    ("gemm", "e4m3", 493, 85_588),
    ("gemm", "e5m2", 270, 45_576),
    ("gemm", "f16", 671, 712_525),
    ("gemm", "f32", 835, 774_786),
    ("gemm_call", "bf16", 268, 34_848),
    ("gemm_call", "e4m3", 261, 30_752),
    ("gemm_call", "e5m2", 235, 23_008),
    ("gemm_call", "f16", 251, 26_144),
    ("gemm_call", "f32", 268, 34_848),
    ("mma", "f32", 116, 616_077),
];

/// Outputs without recorded bits: calls that the library or torch rejected, and calls with a bias or row-wise scales,
/// which the recordings leave out.
const WITHOUT: [(&str, &str, usize); 4] = [
    ("gemm", "ReferenceRejectsError", 113),
    ("gemm", "UnsupportedFeatureError", 9),
    ("gemm_call", "ReferenceRejectsError", 9395),
    ("gemm_call", "UnsupportedFeatureError", 24),
];
