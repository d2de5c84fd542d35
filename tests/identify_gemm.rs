//! Hidden recipes are recovered from the outside: the recipe found gives the bits of the hidden one.

use std::collections::{BTreeMap, BTreeSet};

use mxprobe::identify::{Found, GemmEffort, GemmOutcome, identify_gemm};
use mxprobe_api::{
    Device, DeviceInfo, DeviceKind, Elements, Error, GemmOperands, Operation, OperationId, OperationSet, Random,
    TileBatch,
};
use mxprobe_models::{
    load,
    recipe::{Program, Recipe},
};

/// A library that computes by a known recipe.
struct Library {
    info: DeviceInfo,
    operations: OperationSet,
    program: Program,
}

impl Library {
    fn new(recipe: &Recipe, (m, n, k): (u32, u32, u32)) -> Self {
        let model = load(&recipe.model).unwrap();
        let case = &recipe.cases[0];
        let program = Program::new(recipe, &model, case, &case.operations[0], &BTreeMap::new()).unwrap();
        let unit = program.id();
        let c = if program.reads_c() { program.c_format() } else { program.format() };
        let id = OperationId::new("gemm", (m, n, k), program.format(), unit.a, unit.b, c);
        let info = DeviceInfo {
            backend: "exec".into(),
            selector: "exec:library".into(),
            name: "a library".into(),
            fingerprint: "library".into(),
            kind: DeviceKind::Software,
            emulated: false,
            aliases: Vec::new(),
            driver: None,
            properties: BTreeMap::new(),
        };
        let operations = OperationSet::from([(id.clone(), Operation::new(id, "program"))]);
        Self { info, operations, program }
    }

    fn operation(&self) -> &Operation {
        self.operations.values().next().unwrap()
    }
}

impl Device for Library {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn operations(&self) -> &OperationSet {
        &self.operations
    }

    fn execute(&self, operation: &Operation, batch: &TileBatch) -> Result<Elements, Error> {
        let (m, n, k) = operation.id.shape.sizes();
        let of = |elements: &Elements, tile: usize, size: usize| {
            let bytes = size * elements.format().storage_bytes();
            Elements::from_bytes(elements.format(), elements.bytes()[tile * bytes..][..bytes].to_vec())
        };
        let mut d = Elements::zeros(operation.id.d, 0);
        for tile in 0..batch.tiles {
            let (a, b) = (of(&batch.a, tile, m * k)?, of(&batch.b, tile, k * n)?);
            let c = of(&batch.c, tile, m * n)?;
            let zeros = Elements::zeros(self.program.c_format(), m * n);
            let c = if self.program.reads_c() { &c } else { &zeros };
            let operands = GemmOperands { m, n, k, a: &a, b: &b, c, scale_a: None, scale_b: None };
            self.program.multiply(&operands, &BTreeMap::new(), 1)?.iter().for_each(|bits| d.push(bits));
        }
        Ok(d)
    }
}

/// A random choice.
fn one_of<'a>(random: &mut Random, of: &[&'a str]) -> &'a str {
    of[random.below(of.len())]
}

/// A random recipe, and the k of a product that shows it.
fn drawn(seed: u64) -> (String, u32) {
    let random = &mut Random(seed);
    let (model, operation, d) = [
        ("fma-chain", "dot.m1n1k16.f32.f32.f32.f32", "f32"),
        ("fma-chain", "dot.m1n1k16.f32.bf16.bf16.f32", "f32"),
        ("serial", "dot.m1n1k16.f32.f32.f32.f32", "f32"),
        ("h100", "mma.m16n8k16.f32.f16.f16.f32", "f32"),
        ("a100", "mma.m16n8k16.f32.bf16.bf16.f32", "f32"),
        ("avx512", "dot.m1n1k2.f32.bf16.bf16.f32", "f32"),
    ][random.below(6)];
    let mut levels = String::new();
    let span = 64 + random.below(900);
    let k = u32::try_from(span).unwrap();
    for _ in 0..=random.below(2) {
        let tile = [8, 16, 32][random.below(3)];
        let slices = 2 + random.below(6);
        let division = match random.below(4) {
            0 => format!("every = {}\n", [48, 96, 128][random.below(3)]),
            1 => format!("slices = {slices}\ntile = {tile}\n"),
            2 => format!("slices = {slices}\ntile = {tile}\nshare = \"balanced\"\n"),
            _ => format!("slices = {slices}\nwalk = \"interleaved\"\ntile = {tile}\n"),
        };
        let partial = ["", "", "partial = \"bf16\"\n"][random.below(3)];
        let merge = one_of(random, &["serial", "serial", "reverse", "pairs", "halves", "last-then-slots"]);
        let starts: &[&str] = if ["serial", "reverse"].contains(&merge) { &["", "start = \"+0\"\n"] } else { &[""] };
        let start = one_of(random, starts);
        levels += &format!("[[case.level]]\n{division}{partial}merge = \"{merge}\"\n{start}add = \"f32\"\n");
    }
    let epilogue = one_of(
        random,
        &["", "epilogue = \"f32(acc, c)\"\n", "epilogue = \"bf16(f32(acc, c))\"\n", "epilogue = \"bf16(acc)\"\n"],
    );
    let adder = |name: &str, nan: &str| {
        format!(
            "[adder.{name}]\noutput = \"{name}\"\nrounding = \"nearest-even\"\nnan = \"{nan}\"\nbasis = \"assumed\"\nsource = \"own\"\n"
        )
    };
    let text = format!(
        "schema = \"mxprobe-recipe/1\"\nname = \"drawn\"\ntitle = \"drawn\"\nmodel = \"{model}\"\n[sources]\nown = \"drawn\"\n\
         {}{}[[case]]\nname = \"all\"\noperations = [\"{operation}\"]\n{epilogue}basis = \"assumed\"\nsource = \"own\"\n{levels}",
        adder(d, "0x7fc00000"),
        adder("bf16", "0x7fc0"),
    );
    (text, k)
}

/// Recovers a recipe, writes it as a file's text, reads that back, and compares the bits of both on new elements.
fn recovers(text: &str, shape: (u32, u32, u32)) -> Result<Found, String> {
    let hidden = Library::new(&Recipe::parse("hidden.toml", text).map_err(|error| error.to_string())?, shape);
    let effort = GemmEffort { seed: 1, elements: 2_000 };
    let found = identify_gemm(&hidden, hidden.operation(), effort, &|_| {}).map_err(|error| error.to_string())?;
    let [part] = found.parts.as_slice() else { return Err(format!("{} parts", found.parts.len())) };
    let found = match &part.outcome {
        GemmOutcome::Identified(found) => found.clone(),
        refused => return Err(format!("{refused:?}")),
    };
    // A model of the unit that is not shipped is written to a file, as by the command.
    let model = found.own_model().map_or_else(
        || found.model().to_owned(),
        |model| {
            let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("own-units");
            std::fs::create_dir_all(&folder).unwrap();
            let file = folder.join("unit.toml");
            std::fs::write(&file, model.to_toml()).unwrap();
            file.to_str().unwrap().to_owned()
        },
    );
    let mut adders = Vec::new();
    let case = found.case(&hidden.operation().id, &mut adders);
    let recipe = Recipe {
        name: "found".into(),
        title: "found".into(),
        model,
        aliases: Vec::new(),
        sources: BTreeMap::from([("measured".into(), "a test".into())]),
        adders,
        cases: vec![case],
    };
    let read =
        Recipe::parse("found.toml", &recipe.to_toml()).map_err(|error| format!("{error}\n{}", recipe.to_toml()))?;
    let written = Library::new(&read, shape);
    let mut random = Random(99);
    let mut batch = TileBatch::zeros(hidden.operation(), 40);
    random.fill(&mut batch.a, Random::moderate);
    random.fill(&mut batch.b, Random::moderate);
    random.fill(&mut batch.c, Random::moderate);
    let d = hidden.execute(hidden.operation(), &batch).unwrap();
    let differ = written.operation().id.c != hidden.operation().id.c
        || d != written.execute(written.operation(), &batch).unwrap();
    if differ { Err(format!("other bits: {:?}", found.words())) } else { Ok(found) }
}

#[test]
fn drawn_recipes_are_recovered() {
    let seeds: BTreeSet<u64> = match std::env::var("MXPROBE_RECIPE_SEEDS") {
        Ok(range) => {
            let (from, to) = range.split_once("..").unwrap();
            (from.parse().unwrap()..to.parse().unwrap()).collect()
        }
        Err(_) => (1..=10).collect(),
    };
    let mut wrong = Vec::new();
    for seed in seeds {
        let (text, k) = drawn(seed);
        if let Err(reason) = recovers(&text, (2, 32, k)) {
            wrong.push(format!("seed {seed}, k = {k}: {reason}\n{text}"));
        }
    }
    assert!(wrong.is_empty(), "{} not recovered:\n{}", wrong.len(), wrong.join("\n\n"));
}

/// A unit that no shipped model has: six products and c on a grid of 21 bits, truncated.
const UNIT: &str = r#"
schema = "mxprobe-model/1"
name = "made-up"
title = "a unit of a test"
vendor = "none"
fingerprint = "test"
aliases = []
[sources]
own = "made up"
[adder.f32]
fraction_bits = 21
below = "truncate"
output = "f32"
rounding = "toward-zero"
nan = "0x7fc00000"
basis = "assumed"
source = "own"
[[unit]]
tree = "fold(c, all/6, f32(all, acc))"
operations = ["dot.m1n1k6.f32.f16.f16.f32"]
basis = "assumed"
source = "own"
"#;

#[test]
fn a_unit_that_no_model_has_is_identified_through_products_of_split_k() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("made-up-unit");
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("unit.toml");
    std::fs::write(&file, UNIT).unwrap();
    let text = format!(
        "schema = \"mxprobe-recipe/1\"\nname = \"split\"\ntitle = \"split-K\"\nmodel = '{}'\n[sources]\nown = \"made up\"\n\
         [adder.f32]\noutput = \"f32\"\nrounding = \"nearest-even\"\nnan = \"0x7fc00000\"\nbasis = \"assumed\"\nsource = \"own\"\n\
         [[case]]\nname = \"all\"\noperations = [\"dot.m1n1k6.f32.f16.f16.f32\"]\nepilogue = \"f32(acc, c)\"\n\
         basis = \"assumed\"\nsource = \"own\"\n[[case.level]]\nslices = 4\ntile = 6\nadd = \"f32\"\n",
        file.display()
    );
    let found = recovers(&text, (2, 16, 100)).unwrap();
    assert_eq!(found.own_model().unwrap().operations.keys().next().unwrap().to_string(), "dot.m1n1k6.f32.f16.f16.f32");
}
