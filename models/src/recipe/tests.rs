//! Reading and writing, and each fault of a file.

use super::Recipe;

/// Everything that a file may say.
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
fn each_fault_of_a_file_has_its_line() {
    for (what, with, said) in FAULTS {
        assert!(WHOLE.contains(what), "{what}");
        let error = Recipe::parse("x.toml", &WHOLE.replacen(what, with, 1)).map(|_| ()).unwrap_err().to_string();
        assert_eq!(error, format!("x.toml:{said}"), "{what} -> {with}");
    }
}

/// What is replaced in the example, by what, and what the reader says of it.
const FAULTS: [(&str, &str, &str); 0] = [];
