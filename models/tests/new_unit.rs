//! A hypothetical unit, described by a file alone: the crate does not change.

mod common;

use std::{env, fs, process};

use common::{dot, times};
use mxprobe_api::OperationId;
use mxprobe_models::load;

/// Blocks of 12 products, the last k first, 19 bits kept and rounded to nearest at alignment, results rounded up.
const FILE: &str = r#"
schema = "mxprobe-model/1"
name = "unheard-of"
title = "a unit nobody has"
vendor = "nobody"
fingerprint = "unheard-of"

[sources]
here = "made up"

[adder.dozen]
fraction_bits = 19
below = "nearest"
output = "f32"
rounding = "up"
nan = "0x7fc00000"
basis = "specified"
source = "here"

[[unit]]
tree = "fold(c, reverse/12, dozen(all, acc))"
scope = "subgroup"
operations = [{ id = "mma.m16n16k{24,36}.f32.f16.f16.f32", instruction = "DOZEN{24,36}", aliases = ["dozen{24,36}"] }]
basis = "specified"
source = "here"

[variant.truncating]
about = "bits below the grid are dropped"
source = "here"
[variant.truncating.set.adder.dozen]
below = "truncate"
"#;

#[test]
fn a_file_alone_adds_a_unit() {
    let path = env::temp_dir().join(format!("mxprobe-unheard-of-{}.toml", process::id()));
    fs::write(&path, FILE).unwrap();
    let name = path.to_str().unwrap();
    let model = load(name).unwrap();
    let truncating = load(&format!("{name}@truncating"));
    fs::remove_file(&path).unwrap();

    let (k24, k36) = ("mma.m16n16k24.f32.f16.f16.f32", "mma.m16n16k36.f32.f16.f16.f32");
    for (operation, products, c, expected) in [
        // 1 + 1.5·2^-20: three quarters of the grid's 2^-19 round to one unit.
        (k24, "3c00*3c00 0600*2400", "00000000", "3f800010"),
        // 2^-20 is half a unit: the tie goes to the even 0; 2^-20 in two products is twice nothing.
        (k24, "3c00*3c00 0400*2400", "00000000", "3f800000"),
        (k24, "3c00*3c00 0400*2400 0400*2400", "00000000", "3f800000"),
        // In the block of k = 12 to 23, which comes first, the 1 is missing, so the two add up to 2^-19.
        (k24, "3c00*3c00 k12:0400*2400 k23:0400*2400", "00000000", "3f800010"),
        // k = 11 is in the block of k = 0, where it is lost next to the 1.
        (k24, "3c00*3c00 k11:0400*2400 k23:0400*2400", "00000000", "3f800000"),
        // c is rounded like any term: 1 + 2^-20 + 2^-23 is nearest to 1 + 2^-19.
        (k24, "", "3f800009", "3f800010"),
        // Three blocks, last first: −1 of k = 24 … 35 cancels c = 1 before 2^-19 of k = 0 is added.
        (k36, "0400*2800 k24:bc00*3c00", "3f800000", "36000000"),
        // 24 times 1.5·1.5 = 54.
        (k24, &times(24, "3e00*3e00"), "00000000", "42580000"),
        (k24, "7c00*0000", "00000000", "7fc00000"),
    ] {
        assert_eq!(dot(&model, operation, products, c), expected, "{operation} {products} + {c}");
    }
    let truncating = truncating.unwrap();
    assert_eq!(dot(&truncating, k24, "3c00*3c00 0600*2400", "00000000"), "3f800000");

    let id: OperationId = k36.parse().unwrap();
    let operation = &model.operations[&id];
    assert_eq!(operation.instruction.as_deref(), Some("DOZEN36"));
    assert!(operation.is_named("dozen36") && operation.scope == "subgroup");
    assert!(model.explain().contains("of 36 products, 12 products are added at once, in 3 additions"));
}
