//! The command recovers the recipes of a program with its own code for sums, and the file that it writes gives the
//! program's bits.

use std::{fs, path::PathBuf, sync::OnceLock};

use mxprobe_api::Random;

use super::{compile, folder, mxprobe, said};

/// The program that multiplies by a recipe, compiled once.
fn program() -> &'static PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/workers/recipe.rs");
        let arguments = ["--edition", "2024", "-Dwarnings", "-Copt-level=2", source];
        compile(&rustc, &arguments, folder("recipe").join("recipe"))
    })
}

/// Checks that a recipe is recovered. The error says why not: the search refuses it, or its file gives other bits.
fn recovers(name: &str, recipe: &str, k: usize) -> Result<(), String> {
    let device = format!("exec:{} {recipe}", program().display());
    let (file, d) = (folder("recipe").join(format!("{name}.toml")), folder("recipe").join(format!("{name}.npy")));
    let shape = format!("2x24x{k}");
    let arguments = ["identify", "--gemm", "--device", &device, "--shapes", &shape, "--elements", "2000"];
    let output = mxprobe(&[&arguments[..], &["--out", file.to_str().unwrap()]].concat(), "");
    if output.status.code() != Some(0) {
        return Err(format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)));
    }
    let found = fs::read_to_string(&file).unwrap();
    let operations = found.lines().skip_while(|line| !line.starts_with("operations")).nth(1);
    let unit = operations.and_then(|line| line.trim().strip_prefix('"')?.strip_suffix("\",")).expect("one operation");
    let store = if recipe.contains("store=bf16") { "bf16" } else { "f32" };
    let input = ["bf16", "e4m3", "e5m2", "e3m2", "e2m3", "e2m1"]
        .into_iter()
        .find(|input| recipe.contains(&format!("in={input}")))
        .unwrap_or("f32");
    let id = format!("gemm.m2n24k{k}.{store}.{input}.{input}.f32");
    // Matrices that identification did not use: by the file and by the program.
    let multiplied = |by: &[&str]| {
        let size = format!("2,24,{k}");
        let drawn = ["--random", &size, "--interval=-1,1", "--seed", "3", "--bits", "--out", d.to_str().unwrap()];
        said(0, &[&["gemm"], by, &drawn].concat(), "");
        fs::read(&d).unwrap()
    };
    let own = multiplied(&["--device", &device, "--op", &id]);
    let same = multiplied(&["--recipe", file.to_str().unwrap(), "--op", unit]) == own;
    if same { Ok(()) } else { Err(format!("the file gives other bits:\n{found}")) }
}

#[test]
fn ten_recipes_of_libraries_are_recovered_behind_a_program() {
    let recipes = [
        ("odd-slices", "level=slices:3:8,serial", 210),
        ("ragged-balanced", "level=balanced:5:4,pairs", 203),
        ("pairs-of-blocks", "level=every:32,pairs", 250),
        ("promotion", "in=bf16 level=every:96,serial,+0 store=add", 500),
        ("bf16-partial-sums", "in=bf16 level=slices:4:16,serial,bf16", 256),
        ("lanes", "unit=mul level=lanes:8:1,halves", 131),
        (
            "nested-lanes",
            "level=lanes:4:1,pairs level=lanes:2:1,serial level=lanes:3:2,serial level=lanes:2:1,serial",
            400,
        ),
        ("split-and-promotion", "in=bf16 level=lanes:2:32,serial level=every:48,serial,+0 store=bf16", 384),
        ("last-then-slots", "unit=mul level=slices:6:8,last-then-slots store=add", 384),
        ("scaled-reverse", "level=slices:5:1,reverse store=scaled", 122),
    ];
    let wrong: Vec<String> = recipes
        .iter()
        .filter_map(|(name, recipe, k)| Some(format!("{name}: {}", recovers(name, recipe, *k).err()?)))
        .collect();
    assert!(wrong.is_empty(), "{} of {} not recovered:\n{}", wrong.len(), recipes.len(), wrong.join("\n"));
}

#[test]
fn a_unit_that_no_model_has_is_written_beside_the_recipe() {
    recovers("six", "in=bf16 unit=six level=slices:3:6,serial store=add", 96).unwrap();
    let written = fs::read_to_string(folder("recipe").join("six-unit.toml")).unwrap();
    assert!(written.contains("dot.m1n1k6.f32.bf16.bf16.f32") && written.contains("fraction_bits = 21"), "{written}");
}

/// A random recipe and its k: one or two levels, each with slices of at least two tiles.
fn drawn(seed: u64) -> (String, usize) {
    let random = &mut Random(seed);
    let one_of = |random: &mut Random, of: &[&str]| of[random.below(of.len())].to_owned();
    let mut recipe = format!("in={} unit={}", one_of(random, &["f32", "bf16"]), one_of(random, &["fma", "mul"]));
    for _ in 0..=random.below(2) {
        let (slices, tile) = (2 + random.below(5), [1, 4, 8][random.below(3)]);
        let division = match random.below(4) {
            0 => format!("every:{}", 8 * (3 + random.below(6))),
            1 => format!("slices:{slices}:{tile}"),
            2 => format!("balanced:{slices}:{tile}"),
            _ => format!("lanes:{slices}:{tile}"),
        };
        let merge = one_of(random, &["serial", "serial,+0", "reverse", "pairs", "halves", "last-then-slots"]);
        recipe += &format!(" level={division},{merge}{}", one_of(random, &["", "", ",bf16"]));
    }
    recipe += &format!(" store={}", one_of(random, &["acc", "add", "bf16", "scaled"]));
    (recipe, 300 + random.below(300))
}

fn all_are_recovered(seeds: std::ops::Range<u64>) {
    let count = seeds.end - seeds.start;
    let wrong: Vec<String> = seeds
        .filter_map(|seed| {
            let (recipe, k) = drawn(seed);
            let reason = recovers(&format!("drawn-{seed}"), &recipe, k).err()?;
            Some(format!("seed {seed}, k = {k}, {recipe}: {reason}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{} of {count} not recovered:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn partial_sums_of_few_bits_do_not_hide_the_order() {
    // D holds 378 units, and 256, but not every number between.
    let recipe = "level=lanes:5:4,last-then-slots level=lanes:3:8,reverse,bf16 store=bf16";
    recovers("bf16-in-and-out", recipe, 378).unwrap_or_else(|reason| panic!("{reason}"));
}

#[test]
fn sums_of_formats_of_four_and_six_bits_are_identified_though_their_order_does_not_show() {
    for (input, recipe) in [
        ("e2m1", "level=slices:3:8,serial store=add"),
        ("e3m2", "level=every:32,pairs store=scaled"),
        ("e2m3", "level=lanes:4:1,halves store=bf16"),
    ] {
        recovers(input, &format!("in={input} {recipe}"), 96).unwrap_or_else(|reason| panic!("{input}: {reason}"));
    }
}

#[test]
fn recipes_on_formats_of_eight_bits_are_recovered_behind_a_program() {
    for (name, recipe, k) in [
        ("e5m2-promotion", "in=e5m2 level=every:96,serial,+0 store=add", 300),
        ("e4m3-chain", "in=e4m3", 70),
        ("e4m3-lanes", "in=e4m3 level=lanes:4:2,pairs level=every:16,serial,+0 store=bf16", 300),
    ] {
        recovers(name, recipe, k).unwrap_or_else(|reason| panic!("{name}: {reason}"));
    }
}

#[test]
fn drawn_recipes_are_recovered_behind_a_program() {
    all_are_recovered(0..4);
}

#[test]
#[ignore = "takes minutes: cargo test --all-features --test workers many_drawn_recipes -- --ignored"]
fn many_drawn_recipes_are_recovered_behind_a_program() {
    all_are_recovered(4..100);
}
