//! Tests of reading and writing recipes, and of each error that a file can have.

use super::Recipe;

/// A recipe that uses every key.
const WHOLE: &str = r#"schema = "mxprobe-recipe/1"
name = "example"
title = "a library"
model = "l40s"
aliases = ["sample"]

[sources]
"bench" = "measured on an Example 1: 5000 products, no mismatch"

[adder.f32]
output = "f32"
rounding = "nearest-even"
nan = "0x7fffffff"
basis = "measured"
source = "bench"

[adder.to-bf16]
output = "bf16"
rounding = "nearest-even"
nan = "0x7fff"
basis = "measured"
source = "bench"

[[case]]
name = "split"
operations = [
    "mma.m16n8k32.f32.e4m3.e4m3.f32",
]
m = { to = 16 }
k = { from = 64, multiple_of = 16 }
parameters = { slices = 4 }
epilogue = "to-bf16(f32(acc*f32(scale_a*scale_b), c))"
c_format = "bf16"
note = "what there is to say beside"
basis = "measured"
source = "bench"
[case.provenance]
k = { basis = "assumed", source = "bench" }
[case.input."scale_a"]
format = "f32"
shape = "row"
[case.input."scale_b"]
format = "f32"
shape = "scalar"
default = "0x3f800000"
[[case.level]]
slices = "slices"
walk = "interleaved"
tile = 64
partial = "to-bf16"
merge = "last-then-slots"
add = "f32"
[[case.level]]
slices = 3
tile = 32
share = "balanced"
rest = "chained"
start = "+0"
add = "f32"
[[case.level]]
every = 128
rest = "added"
merge = "reverse"
start = "+0"
add = "f32"
"#;

#[test]
fn what_is_read_is_written_again() {
    let recipe = Recipe::parse("example.toml", WHOLE).unwrap();
    assert_eq!(recipe.to_toml(), WHOLE);
    assert_eq!(Recipe::parse("again.toml", &recipe.to_toml()).unwrap(), recipe);
}

#[test]
fn the_file_of_the_documentation_is_read_and_its_model_has_its_operations() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/recipes.md");
    let text = std::fs::read_to_string(path).unwrap();
    let file = text.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let recipe = Recipe::parse("docs/recipes.md", file).unwrap();
    recipe.open_model(None).unwrap();
    assert_eq!(recipe.cases[0].operations.len(), 4);
    // Its example of an error.
    let error = Recipe::parse("mine.toml", &file.replacen("add = \"f32\"", "add = \"f16\"", 1)).unwrap_err();
    let line = text.split("```text\n").last().and_then(|rest| rest.lines().next()).unwrap();
    let message = |line: &str| line.splitn(3, ':').nth(2).unwrap().to_owned();
    assert_eq!(message(&error.to_string()), message(line));
}

#[test]
fn each_fault_of_a_file_has_its_line() {
    for (what, with, said) in FAULTS.iter().copied() {
        assert!(WHOLE.contains(what), "{what}");
        let error = Recipe::parse("x.toml", &WHOLE.replacen(what, with, 1)).map(|_| ()).unwrap_err().to_string();
        assert_eq!(error, format!("x.toml:{said}"), "{what} -> {with}");
    }
}

/// The text replaced in the example, its replacement, and the reader's message.
const FAULTS: &[(&str, &str, &str)] = &[
    ("recipe/1", "recipe/2", "1: schema: `mxprobe-recipe/2` is not `mxprobe-recipe/1`, which this version reads"),
    (
        "name = \"example\"",
        "name = \"an example\"",
        "2: name: `an example` is not a name of letters, digits, - _ and .",
    ),
    ("title = \"a library\"\n", "", "1: `title` is missing"),
    ("model = \"l40s\"\n", "", "1: `model` is missing"),
    (
        "model = \"l40s\"",
        "model = \"l40s\"\nunit = 1",
        "5: unit: unknown key; the keys here are adder, aliases, case, model, name, schema, sources, title",
    ),
    (
        "[adder.f32]\noutput = \"f32\"",
        "[adder.f32]\noutput = \"wide\"",
        "13: adder.f32.nan: unknown key; the keys here are basis, below, fraction_bits, grid, ignore_values_below, normalised_below, normalised_exponent_floor, normalised_fraction_bits, output, product_overflow, provenance, scale, source, value_cut_bits, zero",
    ),
    (
        "[adder.f32]",
        "[adder.all]",
        "10: adder.all: `all` is not an adder name: it is a word of trees, or not made of letters, digits, - and _",
    ),
    (
        "\"mma.m16n8k32.f32.e4m3.e4m3.f32\",",
        "\"mma.m16n8k32\",",
        "27: case[0].operations: `mma.m16n8k32` is not an operation id: fewer than four formats; the form is FAMILY.mMnNkK.D.A.B.C",
    ),
    (
        "\"mma.m16n8k32.f32.e4m3.e4m3.f32\",",
        "\"mma.m16n8k32.f32.e4m3.e4m3.f32\", \"mma.m16n8k32.f32.e4m3.e4m3.f32\",",
        "27: case[0].operations: mma.m16n8k32.f32.e4m3.e4m3.f32 appears twice in this case",
    ),
    (
        "\"mma.m16n8k32.f32.e4m3.e4m3.f32\",",
        "\"mma.m16n8k32.f32.e4m3.e4m3.f32\", \"mma.m16n8k32.f16.e4m3.e4m3.f16\",",
        "26: case[0].operations: mma.m16n8k32.f32.e4m3.e4m3.f32 gives f32 from f32 and mma.m16n8k32.f16.e4m3.e4m3.f16 f16 from f16; a case needs one format of c and one of d",
    ),
    ("    \"mma.m16n8k32.f32.e4m3.e4m3.f32\",\n", "", "24: case[0]: `operations` is missing or empty"),
    ("k = { from = 64,", "k = { from = 64, to = 32,", "30: case[0].k.to: 32 is below `from`, 64"),
    ("multiple_of = 16 }\np", "multiple_of = 0 }\np", "30: case[0].k.multiple_of: 0 is not between 1 and 2147483647"),
    ("{ slices = 4 }", "{ slices = 0 }", "31: case[0].parameters.slices: 0 is not between 1 and 1048576"),
    (
        "{ slices = 4 }",
        "{ slices = \"4\" }",
        "31: case[0].parameters.slices: expected a whole number from 1 to 1048576, found the string \"4\"",
    ),
    (
        "slices = \"slices\"",
        "slices = \"splits\"",
        "47: case[0].level[0].slices: `splits` is not a parameter of this case; it has slices",
    ),
    (
        "slices = \"slices\"\n",
        "slices = \"slices\"\nevery = 3\n",
        "48: case[0].level[0].every: `slices` and `every` both divide k; keep one",
    ),
    ("slices = \"slices\"\n", "", "46: case[0].level[0]: neither `slices` nor `every` says how k is divided"),
    ("slices = \"slices\"", "slices = 1048577", "47: case[0].level[0].slices: 1048577 is not between 1 and 1048576"),
    (
        "every = 128\n",
        "every = 128\ntile = 4\n",
        "62: case[0].level[2].tile: `tile` belongs to `slices`, but this level has `every`",
    ),
    (
        "walk = \"interleaved\"",
        "walk = \"zigzag\"",
        "48: case[0].level[0].walk: `zigzag` is not one of contiguous, interleaved",
    ),
    (
        "walk = \"interleaved\"",
        "walk = \"interleaved\"\nshare = \"balanced\"",
        "49: case[0].level[0].share: interleaved slices take tiles in turn; `share` applies to contiguous ones",
    ),
    ("tile = 64", "tile = 0", "49: case[0].level[0].tile: 0 is not between 1 and 1048576"),
    (
        "partial = \"to-bf16\"",
        "partial = \"to-f16\"",
        "50: case[0].level[0].partial: `to-f16` is not an adder of this recipe; it has f32, to-bf16",
    ),
    (
        "merge = \"last-then-slots\"\nadd = \"f32\"",
        "merge = \"last-then-slots\"",
        "46: case[0].level[0]: `add` is missing: the adder that merges partial sums",
    ),
    (
        "merge = \"last-then-slots\"",
        "merge = \"last-then-slots\"\nstart = \"+0\"",
        "52: case[0].level[0].start: a merge by `last-then-slots` always starts from its first partial sums",
    ),
    (
        "merge = \"last-then-slots\"",
        "merge = \"tree\"",
        "51: case[0].level[0].merge: `tree` is not one of serial, reverse, pairs, halves, last-then-slots",
    ),
    (
        "rest = \"chained\"\nstart = \"+0\"\nadd = \"f32\"",
        "rest = \"chained\"\nstart = \"+0\"\nadd = \"to-bf16\"",
        "57: case[0].level[1].rest: the merged sum is bf16, but the unit's accumulator is f32: it cannot continue from it",
    ),
    (
        "rest = \"added\"\nmerge = \"reverse\"\nstart = \"+0\"",
        "rest = \"added\"\nmerge = \"reverse\"\nstart = \"c\"",
        "24: case[0]: c enters twice, by `level[2].start` and by `epilogue`",
    ),
    (
        "epilogue = \"to-bf16(f32(acc*f32(scale_a*scale_b), c))\"",
        "start = \"c\"\nepilogue = \"to-bf16(f32(acc*f32(scale_a*scale_b), c))\"",
        "24: case[0]: c enters twice, by `start` and by `epilogue`",
    ),
    ("scale_b), c))\"", "scale_b), c)\"", "32: case[0].epilogue: `to-bf16(` is not closed"),
    (
        "scale_b), c))\"",
        "scale_c), c))\"",
        "32: case[0].epilogue: `scale_c` is neither acc, c, +0 nor an input of this case; it has scale_a, scale_b",
    ),
    (
        "acc*f32(scale_a*scale_b), c",
        "c*f32(scale_a*scale_b), +0",
        "32: case[0].epilogue: the epilogue does not read acc, so the product would be lost",
    ),
    (
        "scale_b), c))\"",
        "scale_b), +0))\"",
        "33: case[0].c_format: the epilogue does not read c, which alone may have another format",
    ),
    (
        "epilogue = \"to-bf16(f32(acc*f32(scale_a*scale_b), c))\"\nc_format = \"bf16\"\n",
        "",
        "37: case[0].input: `scale_a` is given, but no epilogue reads it",
    ),
    (
        "c_format = \"bf16\"",
        "c_format = \"b16\"",
        "33: case[0].c_format: `b16` is not a format; the formats are f64 f32 tf32 xf32 bf16 f16 e4m3 e5m2 e4m3fnuz e5m2fnuz e3m2 e2m3 e2m1 ue8m0 ue4m3 s8 u8 s4 u4 s16 s32 u32",
    ),
    (
        "[case.input.\"scale_a\"]",
        "[case.input.\"acc\"]",
        "39: case[0].input.acc: `acc` has another meaning in an epilogue",
    ),
    (
        "shape = \"row\"",
        "shape = \"rows\"",
        "41: case[0].input.scale_a.shape: `rows` is not one of scalar, row, column, matrix",
    ),
    (
        "default = \"0x3f800000\"",
        "default = \"0x3f80000000\"",
        "45: case[0].input.scale_b.default: `0x3f80000000` is not valid f32: it has 10 digits; f32 is written as 0x and 8 hex digits",
    ),
    (
        "[adder.to-bf16]\noutput = \"bf16\"\nrounding = \"nearest-even\"\nnan = \"0x7fff\"",
        "[adder.to-bf16]\noutput = \"s32\"\noverflow = \"wrap\"",
        "45: case[0].level: adder to-bf16 has an integer format, but its input is not an integer",
    ),
    (
        "[[case]]\nname = \"split\"",
        "[[case]]\neach = { way = \"a\" }\nname = \"split\"",
        "25: case[0].each.way: expected an array, found the string \"a\"",
    ),
    (
        "[[case]]\nname = \"split\"",
        "[[case]]\neach = { way = [\"a\", \"b\"] }\nname = \"split\"",
        "26: case[1].name: `split` appears twice in this file, for the same shapes and operations",
    ),
    (
        "source = \"bench\"\n[case.provenance]",
        "source = \"beach\"\n[case.provenance]",
        "36: case[0].source: `beach` is not among the file's sources",
    ),
    (
        "note = \"what",
        "remark = \"what",
        "34: case[0].remark: unknown key; the keys here are basis, c_format, epilogue, input, k, level, m, n, name, note, operations, parameters, provenance, source, start",
    ),
];
