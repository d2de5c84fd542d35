//! The commands `identify --gemm` and `invariance`, on a program whose sums depend on the number of rows.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use serde_json::Value;

use super::{compile, folder, said};

/// The program's selector, compiled for one test, and the file that it writes before it hangs.
fn split_by_rows(name: &str) -> (String, String) {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/workers/split_by_rows.rs");
    let folder = folder(name);
    let arguments = ["--edition", "2024", "-Dwarnings", "-Copt-level=1", source];
    let program = compile(&rustc, &arguments, folder.join("split-by-rows"));
    let hangs = folder.join("hangs");
    let _ = fs::remove_file(&hangs);
    (format!("exec:{} {}", program.display(), hangs.display()), hangs.to_str().unwrap().to_owned())
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn read(path: &Path) -> Value {
    json(&fs::read_to_string(path).unwrap())
}

#[test]
fn the_recipe_of_each_shape_is_written_to_a_file_that_computes_like_the_program() {
    let (device, _) = split_by_rows("recipes");
    let (recipe, report) = (folder("recipes").join("found.toml"), folder("recipes").join("found.json"));
    let arguments = ["identify", "--gemm", "--device", &device, "--shapes", "1x4x64,4x4x64", "--elements", "2000"];
    let files = ["--out", recipe.to_str().unwrap(), "--report", report.to_str().unwrap()];
    let shown = said(0, &[&arguments[..], &files].concat(), "");
    let sliced = "slices of 8 consecutive k; merged in f32 from +0, serial";
    for words in ["gemm.m1n4k64", "gemm.m4n4k64", sliced, "the recipe of 4x4x64 is not that of 1x4x64"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert_eq!(shown.matches("stored as f32(acc, c)").count(), 2, "{shown}");
    let report = read(&report);
    assert_eq!(report["interrupted"], false);
    assert_eq!(report["shapes"].as_array().unwrap().len(), 2);
    assert_eq!(report["recipe"], fs::read_to_string(&recipe).unwrap());
    assert!(report["shapes"][0]["parts"][0]["verified_elements"].as_u64().unwrap() >= 2000, "{report}");
    // Matrices that identification did not use: by the recipe file, by the program and by one chain.
    let multiplied = |by: &[&str], size: &str| {
        let out = folder("recipes").join("d.npy");
        let drawn = ["--random", size, "--interval=-1,1", "--seed", "3", "--bits", "--out", out.to_str().unwrap()];
        said(0, &[&["gemm"], by, &drawn].concat(), "");
        fs::read(out).unwrap()
    };
    let (unit, file) = ("dot.m1n1k4.f32.f32.f32.f32", recipe.to_str().unwrap());
    for (rows, is_chain) in [(1, false), (4, true)] {
        let (id, size) = (format!("gemm.m{rows}n4k64.f32.f32.f32.f32"), format!("{rows},4,64"));
        let own = multiplied(&["--device", &device, "--op", &id], &size);
        assert_eq!(multiplied(&["--recipe", file, "--op", unit], &size), own, "{rows} rows");
        assert_eq!(multiplied(&["--device", "sim:fma-chain", "--op", unit], &size) == own, is_chain, "{rows} rows");
    }
}

#[test]
fn an_interruption_ends_the_search_and_what_was_found_is_kept() {
    let (device, hangs) = split_by_rows("interrupted");
    let (recipe, report) = (folder("interrupted").join("found.toml"), folder("interrupted").join("found.json"));
    let mut child = Command::new(env!("CARGO_BIN_EXE_mxprobe"))
        .args(["identify", "--gemm", "--device", &device, "--shapes", "1x4x64,3x4x64,4x4x64", "--elements", "2000"])
        .args(["--out".as_ref(), recipe.as_os_str(), "--report".as_ref(), report.as_os_str()])
        .args(["--timeout", "86400"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(600);
    while !Path::new(&hangs).exists() {
        assert!(Instant::now() < deadline && child.try_wait().unwrap().is_none(), "the second shape was not asked");
        sleep(Duration::from_millis(10));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains("gemm.m1n4k64") && shown.contains("interrupted"), "{shown}");
    let report = read(&report);
    assert_eq!(report["interrupted"], true);
    let shapes = report["shapes"].as_array().unwrap();
    assert_eq!(shapes.len(), 1, "the interrupted shape is not reported as found: {report}");
    assert!(shapes[0]["parts"][0]["refused"].is_null(), "{report}");
    let recipe = fs::read_to_string(&recipe).unwrap();
    assert!(recipe.contains("m1n4k64") && !recipe.contains("m3n4k64"), "{recipe}");
}

#[test]
fn invariance_shows_an_element_that_depends_on_the_rows_beside_it() {
    let (device, _) = split_by_rows("invariance");
    let compare = |code: i32, shapes: &str, more: &[&str]| {
        let arguments = ["invariance", "--device", &device, "--shapes", shapes, "--format", "json"];
        json(&said(code, &[&arguments[..], more].concat(), ""))
    };
    let same = compare(0, "2x4x64,4x4x64,8x16x64", &["--recipes", "--elements", "1000"]);
    for (at, elements) in [(0, 12 * 2 * 4), (1, 12 * 2 * 4)] {
        let shape = &same["shapes"][at];
        assert_eq!((&shape["differ"], &shape["elements"]), (&0.into(), &elements.into()), "{same}");
        assert_eq!(shape["verdict"], "proved", "{same}");
        assert!(shape["recipes"].as_str().unwrap().starts_with("proved: "), "{same}");
        assert_eq!(shape["differences"].as_array().unwrap().len(), 0, "{same}");
        assert!(shape["witness"].is_null(), "{same}");
    }
    let other = compare(1, "1x4x64,4x4x64", &["--recipes", "--elements", "1000"]);
    let shape = &other["shapes"][0];
    assert_eq!(shape["verdict"], "differ", "{other}");
    let differences = shape["differences"].as_array().unwrap();
    assert_eq!(differences[0], "same unit", "{other}");
    assert!(differences[1].as_str().unwrap().starts_with("a level against none: "), "{other}");
    assert!(shape["differ"].as_u64().unwrap() > 0 && shape["differ"].as_u64() <= shape["elements"].as_u64(), "{other}");
    // The witness has the program's bits: its products alone in a sum of 64, with one row and with four.
    let witness = &shape["witness"];
    let products = witness["products"].as_array().unwrap();
    assert!((2..=64).contains(&products.len()), "{witness}");
    let value = |bits: &Value| {
        let bits = bits.as_str().unwrap().trim_start_matches("0x");
        f32::from_bits(u32::from_str_radix(bits, 16).unwrap())
    };
    let mut sums = [0.0_f32; 8];
    let mut chain = 0.0_f32;
    for product in products {
        let (k, a, b) = (product[0].as_u64().unwrap(), value(&product[1]), value(&product[2]));
        let slice = &mut sums[usize::try_from(k).unwrap() / 8];
        *slice = a.mul_add(b, *slice);
        chain = a.mul_add(b, chain);
    }
    let sliced = sums.iter().fold(0.0_f32, |sum, slice| sum + slice);
    assert_eq!((value(&witness["first"]), value(&witness["second"])), (sliced, chain), "{witness}");
    assert!(sliced.to_bits() != chain.to_bits(), "{witness}");
    let shown = said(1, &["invariance", "--device", &device, "--shapes", "1x4x64,4x4x64"], "");
    assert!(shown.contains("elements of both have other bits"), "{shown}");
    let wrong = |shapes: &str, words: &str| {
        let shown = said(2, &["invariance", "--device", &device, "--shapes", shapes], "");
        assert!(shown.contains(words), "{shown}");
    };
    wrong("1x4x64", "only one shape: a comparison takes two or more");
    wrong("1x4x64,4x4x65", "k is 64 in one shape and 65 in another");
}

#[test]
fn the_boundary_between_two_shapes_is_where_the_recipe_of_the_first_ceases_to_hold() {
    let (device, _) = split_by_rows("boundary");
    let found = |shapes: &str| {
        let arguments =
            ["identify", "--gemm", "--device", &device, "--shapes", shapes, "--elements", "1000", "--boundary"];
        json(&said(0, &[&arguments[..], &["--format", "json"]].concat(), ""))["boundaries"].clone()
    };
    // By rows: one row has slices, two have none. By k: the second slice begins at 9.
    let by_rows = found("1x4x64,2x4x64");
    assert_eq!((&by_rows[0]["last"], &by_rows[0]["first"]), (&"1x4x64".into(), &"2x4x64".into()), "{by_rows}");
    assert_eq!(by_rows[0]["explained_by_to"], true, "{by_rows}");
    let by_k = found("1x4x5,1x4x64");
    assert_eq!((&by_k[0]["last"], &by_k[0]["first"]), (&"1x4x8".into(), &"1x4x9".into()), "{by_k}");
    assert_eq!(by_k[0]["explained_by_to"], true, "{by_k}");
    assert_eq!(found("4x4x64,8x4x64").as_array().unwrap().len(), 0, "one recipe has no boundary");
    assert_eq!(found("1x4x64,4x8x64").as_array().unwrap().len(), 0, "two sizes differ");
}
