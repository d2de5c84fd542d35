//! Recipes: `gemm --recipe`, `explain --trace --recipe`, `distinguish` and `compare`.

use std::fs;

use super::{say, say_to};

const FP8: &str = "mma.m16n8k32.f32.e4m3.e4m3.f32";

#[test]
fn a_recipe_without_levels_gives_the_bits_of_its_unit() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (one, other, split) = (at("one.npy"), at("other.npy"), at("split.npy"));
    let drawn = ["--op", FP8, "--random", "7,9,700", "--interval=-1,1", "--bits", "--out"];
    say(&[&["gemm", "--device", "l40s"], &drawn[..], &[&one]].concat()).ended(0);
    let said = say(&[&["gemm", "--recipe", "cublaslt-sm89-fp8@fast-f32"], &drawn[..], &[&other]].concat()).ended(0);
    assert!(said.out.contains("stored: f32(f32(acc*f32(scale_a*scale_b), +0))"), "{}", said.out);
    assert_eq!(fs::read(&one).unwrap(), fs::read(&other).unwrap());
    let recipe = "cublaslt-sm89-fp8@fast-split-last-then-slots-f32,slices=4";
    let said = say(&[&["gemm", "--recipe", recipe], &drawn[..], &[&split]].concat()).ended(0);
    assert!(
        said.out.contains("4 slices, tile t of 64 k to slice t mod 4, merged by f32: (p3 + (p0 + p2)) + p1"),
        "{}",
        said.out
    );
    assert_ne!(fs::read(&one).unwrap(), fs::read(&split).unwrap());
}

#[test]
fn a_recipe_is_explained_case_by_case() {
    let said = say(&["explain", "cublaslt-sm89-fp8"]).ended(0);
    for words in ["unit of l40s", "@slow-bf16", "slices of 128 k, merged one after another by f32", "stored: "] {
        assert!(said.out.contains(words), "{words}: {}", said.out);
    }
    assert_eq!(say(&["explain", "recipe:cublaslt-sm89-fp8"]).ended(0).out, said.out);
    say(&["explain", "recipe:cublaslt"]).ended(2);
}

#[test]
fn an_element_is_traced_through_a_recipe() {
    let dot = r#"{"a":[1,1,1],"b":[0.5,1,448],"c":0}"#;
    let call = ["explain", "--trace", "--recipe", "cublaslt-sm89-fp8@slow-bf16", "--op", FP8, "--input", "scale_a=0.5"];
    let said = say(&[&call[..], &["--dot", dot]].concat()).ended(0);
    // 449.5 fits into 13 bits; times 0.5 it is 224.75, of which bf16 keeps 8 bits.
    assert!(said.out.ends_with("d = bf16 0x4361 = 0x1.c2p+7\n"), "{}", said.out);
    assert!(
        said.out.contains("f32(acc (f32 0x43e0c000 = 0x1.c18p+8) * f32 0x3f000000 = 0x1p-1, +0): 0x1.c18p+7"),
        "{}",
        said.out
    );
    assert_eq!(say_to(&call, format!("{dot}\n").as_bytes()).ended(0).out, said.out);
}

#[test]
fn recipes_are_distinguished_by_a_dot_or_proved_equal_for_one_k() {
    let compared =
        |one: &str, other: &str, more: &[&str]| say(&[&["distinguish", one, other, "--op", FP8], more].concat());
    let (plain, split) =
        ("recipe:cublaslt-sm89-fp8@fast-f32", "recipe:cublaslt-sm89-fp8@fast-split-serial-f32,slices=4");
    let said = compared(plain, split, &[]).ended(1);
    assert!(said.out.contains("same unit; the difference is split-K 1 against 4: "), "{}", said.out);
    // A trace of the witness gives the same bits.
    let json: serde_json::Value =
        serde_json::from_str(&compared(plain, split, &["--format", "json"]).ended(1).out).unwrap();
    assert_eq!(json["verdict"], "differ");
    let witness = &json["witness"];
    assert_eq!(witness["c_f32"], "0x00000000");
    let dot = serde_json::json!({"a": witness["a"], "b": witness["b"], "c": "0x00000000"}).to_string();
    for (at, recipe) in [plain, split].into_iter().enumerate() {
        let traced = say(&["explain", "--trace", "--recipe", recipe, "--op", FP8, "--dot", &dot]).ended(0).out;
        let bits = witness["d"][at]["bits"].as_str().unwrap();
        assert!(traced.lines().last().unwrap().starts_with(&format!("d = f32 {bits} ")), "{traced}");
    }
    assert_ne!(witness["d"][0], witness["d"][1]);
    let one_slice = "recipe:cublaslt-sm89-fp8@fast-split-serial-f32,slices=1";
    let said = compared(plain, one_slice, &["--products", "200"]).ended(0);
    assert!(said.out.contains("equal for every input at k = 200"), "{}", said.out);
    let said = say(&["compare", plain, "recipe:cublaslt-sm90-fp8@fast-f32"]).ended(1);
    assert!(said.out.contains("they differ in the unit: "), "{}", said.out);
}

#[test]
fn arguments_that_do_not_fit_a_recipe_are_refused_in_one_sentence() {
    let gemm = |recipe: &str, more: &[&str]| {
        let call = ["gemm", "--random", "1,1,64", "--out", "never.npy", "--op", FP8, "--recipe", recipe];
        say(&[&call[..], more].concat()).ended(2).err
    };
    let recipe = "cublaslt-sm89-fp8";
    for (said, wanted) in [
        (gemm("no-such", &[]), "unknown recipe `no-such`; the recipes are cublaslt-sm89-fp8, "),
        (gemm("./no-such.toml", &[]), "cannot read the recipe file `./no-such.toml`"),
        (gemm(&format!("{recipe}@quick"), &[]), "recipe cublaslt-sm89-fp8 has no case `quick`; its cases are "),
        (gemm(&format!("{recipe}@fast-f32,slices=2"), &[]), "case fast-f32 has no parameter `slices`; it has none"),
        (gemm(&format!("{recipe},slices"), &[]), "`slices` is not a name and a whole number such as slices=4"),
        (
            gemm(&format!("{recipe}@fast-f32"), &["--input", "gamma=1"]),
            "case fast-f32 has no input `gamma`; it has scale_a, scale_b",
        ),
        (
            gemm(&format!("{recipe}@fast-f32"), &["--input", "scale_a=one"]),
            "`--input scale_a=one` is neither a number, bits such as",
        ),
        (
            gemm(&format!("{recipe}@fast-f32"), &["--c", "c.npy"]),
            "`--c`: case fast-f32 of cublaslt-sm89-fp8 does not add C",
        ),
    ] {
        assert!(said.contains(wanted), "{wanted}\n{said}");
    }
    let said = say(&["compare", "recipe:cublaslt-sm89-fp8@fast-f32", "h100"]).ended(2);
    assert!(said.err.contains("`h100` is not a recipe, but recipes are only compared with recipes"), "{}", said.err);
}
