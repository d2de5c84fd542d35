//! The dependencies allowed between crates, and the names that each may use.
#![allow(missing_docs)]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The crates of this project in a manifest's table of this name.
fn depends_on(manifest: &str, table: &str) -> Vec<String> {
    let manifest: toml::Table = read(manifest).parse().unwrap();
    let table = manifest.get(table).and_then(toml::Value::as_table);
    table.into_iter().flatten().map(|(name, _)| name.clone()).filter(|name| name.starts_with("mxprobe")).collect()
}

/// The crates under `backends/`.
fn backends() -> Vec<String> {
    let entries = fs::read_dir(root().join("backends")).unwrap().map(|entry| entry.unwrap());
    let names = entries.filter(|entry| entry.path().join("Cargo.toml").exists());
    names.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

fn sources(directory: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            found.insert(path.strip_prefix(root()).unwrap().to_owned(), text);
        }
    }
    found
}

#[test]
fn the_contract_depends_on_nothing_of_ours() {
    assert_eq!(depends_on("backends/api/Cargo.toml", "dependencies"), Vec::<String>::new());
    assert_eq!(depends_on("backends/api/Cargo.toml", "build-dependencies"), Vec::<String>::new());
}

/// The language in which each backend hands kernels to its driver: a feature of `mxprobe-shaders`.
const LANGUAGES: [(&str, &str); 3] = [("cuda", "ptx"), ("vulkan", "spirv"), ("wgpu", "wgsl")];

#[test]
fn a_backend_depends_on_the_contract_and_on_the_shaders_of_its_language_alone() {
    // The conformance suite may use models: its wrong devices are models with one thing changed. Only the program and
    // tests of this workspace depend on it.
    for name in backends().iter().filter(|name| !["api", "conformance"].contains(&name.as_str())) {
        let path = format!("backends/{name}/Cargo.toml");
        let found = depends_on(&path, "dependencies");
        let Some((_, language)) = LANGUAGES.iter().find(|(backend, _)| backend == name) else {
            // The backend that offers models as devices needs models.
            let wanted: &[&str] = if name == "sim" { &["mxprobe-api", "mxprobe-models"] } else { &["mxprobe-api"] };
            assert_eq!(found, wanted, "backends/{name}");
            continue;
        };
        assert_eq!(found, ["mxprobe-api", "mxprobe-shaders"], "backends/{name}");
        let manifest: toml::Table = read(&path).parse().unwrap();
        let features = manifest["dependencies"]["mxprobe-shaders"]["features"].as_array().unwrap();
        assert_eq!(features.iter().filter_map(toml::Value::as_str).collect::<Vec<_>>(), [*language], "backends/{name}");
    }
    assert_eq!(depends_on("models/Cargo.toml", "dependencies"), ["mxprobe-api"]);
    assert_eq!(depends_on("models/Cargo.toml", "dev-dependencies"), Vec::<String>::new());
    for name in backends() {
        let manifest = format!("backends/{name}/Cargo.toml");
        for table in ["dependencies", "build-dependencies", "dev-dependencies"] {
            assert!(!depends_on(&manifest, table).contains(&"mxprobe".to_owned()), "backends/{name} uses the tool");
        }
    }
}

#[test]
fn shaders_depend_on_the_contract_alone_and_reach_nothing() {
    assert_eq!(depends_on("shaders/Cargo.toml", "dependencies"), ["mxprobe-api"]);
    let manifest: toml::Table = read("shaders/Cargo.toml").parse().unwrap();
    let all: Vec<&str> = manifest["dependencies"].as_table().unwrap().keys().map(String::as_str).collect();
    // A digest is the name of a kernel in reports; `spirv` holds the numbers of that language.
    assert_eq!(all, ["mxprobe-api", "sha2", "spirv"]);
    assert!(manifest["features"].get("default").is_none(), "a backend gets the language it asks for");
    assert!(read("shaders/src/lib.rs").contains("#![forbid(unsafe_code)]"));
    let texts = sources(&root().join("shaders/src"));
    assert!(texts.len() > 20, "{}", texts.len());
    for (path, text) in texts {
        for room in ["fs", "io", "env", "process", "net", "time", "os", "thread"] {
            assert!(!text.contains(&format!("std::{room}")), "{} names std::{room}", path.display());
        }
    }
}

/// Bindings for other languages, which translate and compute nothing themselves.
const ADAPTERS: [(&str, &str, &[&str]); 2] = [
    ("python", "mxprobe-python", &["mxprobe", "mxprobe-api", "mxprobe-models"]),
    ("capi", "mxprobe-c", &["mxprobe-api", "mxprobe-models"]),
];

#[test]
fn an_adapter_depends_on_the_library_and_nothing_depends_on_it() {
    let workspace: toml::Table = read("Cargo.toml").parse().unwrap();
    let members = workspace["workspace"]["members"].as_array().unwrap();
    for (folder, name, wanted) in ADAPTERS {
        assert!(members.iter().any(|member| member.as_str() == Some(folder)), "{folder}");
        let mut found = depends_on(&format!("{folder}/Cargo.toml"), "dependencies");
        found.sort_unstable();
        assert_eq!(found, wanted, "{folder}");
        let manifests = members.iter().filter_map(toml::Value::as_str).map(|member| format!("{member}/Cargo.toml"));
        for manifest in manifests.chain(["Cargo.toml".to_owned()]) {
            for table in ["dependencies", "build-dependencies", "dev-dependencies"] {
                assert!(!depends_on(&manifest, table).contains(&name.to_owned()), "{manifest} depends on {name}");
            }
        }
    }
    // A test program of the package would have to be linked with Python, which may be missing.
    let manifest: toml::Table = read("python/Cargo.toml").parse().unwrap();
    assert_eq!(manifest["lib"]["test"].as_bool(), Some(false));
}

#[test]
fn the_program_depends_on_its_own_crates_and_on_backends_by_choice() {
    let manifest: toml::Table = read("Cargo.toml").parse().unwrap();
    let of_ours = manifest["dependencies"].as_table().unwrap().iter().filter(|(name, _)| name.starts_with("mxprobe"));
    let is_optional = |table: &toml::Value| table.get("optional").and_then(toml::Value::as_bool) == Some(true);
    let always: Vec<&str> = of_ours.filter(|(_, table)| !is_optional(table)).map(|(name, _)| name.as_str()).collect();
    // The command `conformance` runs the suite; failing devices are offered only with a feature.
    let wanted =
        ["mxprobe-analysis", "mxprobe-api", "mxprobe-conformance", "mxprobe-dots", "mxprobe-models", "mxprobe-sim"];
    assert_eq!(always, wanted);
    assert_eq!(manifest["features"]["default"], toml::Value::from(vec!["cpu", "cuda", "vulkan"]));
}

#[test]
fn the_analysis_depends_on_the_contract_models_and_dots_and_shows_nothing() {
    let found = depends_on("analysis/Cargo.toml", "dependencies");
    assert_eq!(found, ["mxprobe-api", "mxprobe-dots", "mxprobe-models", "mxprobe-sim"]);
    let manifest: toml::Table = read("analysis/Cargo.toml").parse().unwrap();
    assert!(manifest.get("features").is_none(), "what is computed depends on no feature");
    let texts = sources(&root().join("analysis/src"));
    assert!(texts.len() > 150, "{}", texts.len());
    for (path, text) in texts {
        for found in ["std::process", "std::net", "println!", "io::stdout", "io::stderr"] {
            assert!(!text.contains(found), "{} names {found}", path.display());
        }
    }
}

#[test]
fn the_fake_driver_is_in_no_program() {
    // It replaces hardware by a model's arithmetic; only tests may use it.
    let fake = "mxprobe-fake-driver";
    let found = depends_on("tests/fake-driver/Cargo.toml", "dependencies");
    assert_eq!(found, ["mxprobe-api", "mxprobe-models", "mxprobe-sim"]);
    let manifest: toml::Table = read("tests/fake-driver/Cargo.toml").parse().unwrap();
    assert_eq!(manifest["package"]["publish"].as_bool(), Some(false));
    let manifests = backends().into_iter().map(|name| format!("backends/{name}/Cargo.toml"));
    for manifest in manifests.chain(["Cargo.toml".to_owned()]) {
        for table in ["dependencies", "build-dependencies"] {
            assert!(
                !depends_on(&manifest, table).contains(&fake.to_owned()),
                "{manifest} has the fake driver in {table}"
            );
        }
    }
}

#[test]
fn who_does_not_want_wgpu_has_one_feature_flag_less_and_nothing_else() {
    let manifest: toml::Table = read("Cargo.toml").parse().unwrap();
    let default = manifest["features"]["default"].as_array().unwrap();
    assert!(default.iter().all(|feature| feature.as_str() != Some("wgpu")), "{default:?}");
    assert_eq!(manifest["features"]["wgpu"].as_array().unwrap().len(), 1);
    assert_eq!(manifest["dependencies"]["mxprobe-wgpu"]["optional"].as_bool(), Some(true));
    let with_it = |manifest: &str| {
        let manifest: toml::Table = read(manifest).parse().unwrap();
        let dependencies = manifest.get("dependencies").and_then(toml::Value::as_table).cloned().unwrap_or_default();
        ["wgpu", "naga", "pollster"].into_iter().any(|name| dependencies.contains_key(name))
    };
    let manifests = backends().into_iter().map(|name| format!("backends/{name}/Cargo.toml"));
    let found: Vec<String> = manifests.chain(["Cargo.toml".to_owned()]).filter(|manifest| with_it(manifest)).collect();
    assert_eq!(found, ["backends/wgpu/Cargo.toml"]);
}

#[test]
fn every_backend_is_a_member_of_the_workspace() {
    let manifest: toml::Table = read("Cargo.toml").parse().unwrap();
    let members = manifest["workspace"]["members"].as_array().unwrap();
    for name in backends() {
        let path = format!("backends/{name}");
        assert!(members.iter().any(|member| member.as_str() == Some(&path)), "{path}");
    }
}

#[test]
fn only_the_registry_names_the_backends_of_hardware() {
    let names: Vec<String> = backends()
        .into_iter()
        .filter(|name| !["api", "sim", "dots", "conformance"].contains(&name.as_str()))
        .map(|name| format!("mxprobe_{name}"))
        .collect();
    assert!(names.contains(&"mxprobe_cpu".to_owned()), "{names:?}");
    for (path, text) in sources(&root().join("src")).into_iter().chain(sources(&root().join("analysis/src"))) {
        for name in &names {
            let allowed = path == Path::new("src/cli/choose/registry.rs");
            assert!(allowed || !text.contains(name), "{} names {name}", path.display());
        }
    }
}

#[test]
fn answers_and_evidence_become_text_in_reports_alone() {
    let rooms = ["findings", "probes", "scalars", "identify", "proof", "gemm", "dots"];
    for (path, text) in rooms.iter().flat_map(|room| sources(&root().join("analysis/src").join(room))) {
        for name in ["serde_json", "parse_hex"] {
            assert!(!text.contains(name), "{} names {name}", path.display());
        }
    }
}

/// What unsafe code begins with.
const UNSAFE: [&str; 3] = ["unsafe {", "unsafe fn", "unsafe impl"];

#[test]
fn unsafe_code_stays_where_it_may_be() {
    assert!(read("backends/api/src/lib.rs").contains("#![forbid(unsafe_code)]"));
    for (path, text) in sources(&root().join("models/src/exact")) {
        assert!(!text.contains("unsafe"), "{} of the exact evaluator is not safe code", path.display());
    }
    assert!(read("models/src/lib.rs").contains("#![deny(unsafe_code)]"));
    assert!(read("backends/sim/src/lib.rs").contains("#![forbid(unsafe_code)]"));
    for (path, text) in ["src", "analysis/src", "python/src"].iter().flat_map(|folder| sources(&root().join(folder))) {
        let allowed = path == Path::new("python/src/dlpack.rs");
        assert!(allowed || UNSAFE.iter().all(|word| !text.contains(word)), "{} has unsafe code", path.display());
    }
}

#[test]
fn crates_without_debug_assertions_have_none_and_no_unsafe_code() {
    // Without them the standard library does not check what unsafe code promises it.
    let manifest: toml::Table = read("Cargo.toml").parse().unwrap();
    let packages = manifest["profile"]["dev"]["package"].as_table().unwrap();
    let is = |profile: &toml::Value, name: &str| profile.get(name).and_then(toml::Value::as_bool);
    let without = packages.iter().filter(|(_, profile)| is(profile, "debug-assertions") == Some(false));
    let mut folders: Vec<String> = Vec::new();
    for (name, profile) in without {
        assert_eq!(is(profile, "overflow-checks"), Some(true), "{name}");
        let path = manifest["workspace"]["dependencies"].get(name).map_or(".", |found| found["path"].as_str().unwrap());
        folders.extend(["src", "tests"].map(|folder| format!("{path}/{folder}")));
    }
    assert!(folders.contains(&"./src".to_owned()));
    let folders = folders.iter().map(|folder| root().join(folder)).filter(|folder| folder.exists());
    for (path, text) in folders.flat_map(|folder| sources(&folder)) {
        let is_other = ["tests/fake-driver", "tests/machine"].iter().any(|other| path.starts_with(other));
        if is_other || path.ends_with("architecture.rs") {
            continue;
        }
        for found in ["debug_assert", "cfg(debug_assertions", "cfg!(debug_assertions"].into_iter().chain(UNSAFE) {
            assert!(!text.contains(found), "{} has {found}", path.display());
        }
    }
}

/// The tests that run the conformance suite on each backend.
const SUITES: [(&str, &str); 5] = [
    ("cpu", "backends/cpu/tests/conformance.rs"),
    ("cuda", "backends/cuda/tests/conformance.rs"),
    ("sim", "backends/sim/tests/conformance.rs"),
    ("vulkan", "backends/vulkan/tests/drivers/cases.rs"),
    ("wgpu", "tests/wgpu/devices.rs"),
];

#[test]
fn every_backend_and_every_ability_is_held_to_the_suite() {
    let mut reached = backends();
    reached.retain(|name| !["api", "conformance", "dots"].contains(&name.as_str()));
    reached.sort_unstable();
    assert_eq!(reached, SUITES.map(|(name, _)| name), "each has a run of the suite");
    for (name, file) in SUITES {
        assert!(read(file).contains("check_device("), "{file} runs no suite on {name}");
    }
    // The optional abilities of a device are the methods that return an object.
    let contract = ["device", "scalar"].map(|name| read(format!("backends/api/src/{name}.rs"))).concat();
    let object =
        |line: &str| Some(line.trim().strip_prefix("fn ")?.split_once("(&self) -> Option<&dyn ")?.0.to_owned());
    let mut abilities: Vec<String> = contract.lines().filter_map(object).collect();
    let mut checked: Vec<&str> = mxprobe_conformance::ABILITY_CHECKS.iter().map(|(name, _)| *name).collect();
    abilities.sort_unstable();
    checked.sort_unstable();
    assert!(!abilities.is_empty() && abilities == checked, "{abilities:?} may be had, {checked:?} are checked");
}
