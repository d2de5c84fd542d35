//! The promises of a release: licences of dependencies, the minimum Rust version, no build tools besides Rust, one
//! version.
#![allow(clippy::print_stderr)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    process::Command,
};

use serde_json::Value;
use spdx::{Expression, Licensee, ParseMode};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn table(path: &str) -> toml::Table {
    fs::read_to_string(root().join(path)).expect(path).parse().expect(path)
}

fn strings(list: &toml::Value) -> Vec<&str> {
    list.as_array().expect("a list").iter().map(|item| item.as_str().expect("a string")).collect()
}

/// The output of `cargo metadata`, and whether it covers every platform: without a network cargo knows only the
/// packages that were fetched, which are at least those of this platform.
fn metadata() -> (Value, bool) {
    let ask = |platform: &[&str]| {
        let fixed = ["metadata", "--offline", "--locked", "--all-features", "--format-version", "1"];
        let cargo = Command::new(env!("CARGO")).args(fixed).args(platform).current_dir(root()).output();
        cargo.expect("cargo starts")
    };
    let mut output = ask(&[]);
    let every = output.status.success();
    if !every {
        let rustc = Command::new("rustc").args(["--print", "host-tuple"]).output().expect("rustc starts");
        let host = String::from_utf8(rustc.stdout).expect("UTF-8");
        eprintln!("packages of {} only: `cargo fetch` fetches those of other platforms", host.trim());
        output = ask(&["--filter-platform", host.trim()]);
    }
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    (serde_json::from_slice(&output.stdout).expect("JSON"), every)
}

fn packages(metadata: &Value) -> &[Value] {
    let packages = metadata["packages"].as_array().expect("packages");
    assert!(packages.len() > 100, "{} packages", packages.len());
    packages
}

fn name(package: &Value) -> String {
    format!("{} {}", package["name"].as_str().expect("a name"), package["version"].as_str().expect("a version"))
}

/// The licences that `deny.toml` allows, each with the packages that need it.
///
/// # Errors
/// If a package's licence is missing, not an SPDX expression, or not allowed. The message names the package.
fn licences_used(packages: &[Value], allowed: &[&str]) -> Result<BTreeMap<String, BTreeSet<String>>, String> {
    let licensees: Vec<Licensee> = allowed.iter().map(|text| Licensee::parse(text).expect("an SPDX licence")).collect();
    let mut used: BTreeMap<String, BTreeSet<String>> =
        allowed.iter().map(|text| ((*text).to_owned(), BTreeSet::new())).collect();
    for package in packages {
        let name = name(package);
        let licence = package["license"].as_str().ok_or_else(|| format!("{name} has no licence"))?;
        let expression =
            Expression::parse_mode(licence, ParseMode::LAX).map_err(|error| format!("{name}: {licence}: {error}"))?;
        let among = |some: &[&Licensee]| expression.evaluate(|asked| some.iter().any(|one| one.satisfies(asked)));
        let all: Vec<&Licensee> = licensees.iter().collect();
        if !among(&all) {
            return Err(format!("{name}: {licence} is not among {}", allowed.join(", ")));
        }
        for (at, text) in allowed.iter().enumerate() {
            let others: Vec<&Licensee> =
                all.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, one)| *one).collect();
            if !among(&others) {
                used.get_mut(*text).expect("listed").insert(name.clone());
            }
        }
    }
    Ok(used)
}

#[test]
fn each_dependency_has_a_licence_that_is_allowed_and_each_allowance_is_needed() {
    let deny = table("deny.toml");
    let allowed = strings(&deny["licenses"]["allow"]);
    let (metadata, every) = metadata();
    let used = licences_used(packages(&metadata), &allowed).unwrap_or_else(|error| panic!("{error}"));
    // Most packages offer both of our own licences, so that either of the two may go unused.
    let idle = used.iter().filter(|(text, by)| by.is_empty() && !["MIT", "Apache-2.0"].contains(&text.as_str()));
    let idle: Vec<&String> = idle.map(|(text, _)| text).collect();
    assert!(!every || idle.is_empty(), "nothing needs {idle:?}");
}

#[test]
fn a_licence_that_is_not_allowed_is_found() {
    let package = |licence: Value| serde_json::json!({"name": "odd", "version": "1.0.0", "license": licence});
    let used = |licence: &str| licences_used(&[package(licence.into())], &["MIT", "Apache-2.0"]);
    used("MIT/Apache-2.0").unwrap();
    used("GPL-3.0-only OR MIT").unwrap();
    for refused in ["GPL-3.0-only", "MIT AND GPL-3.0-only", "Apache-2.0 WITH LLVM-exception", "(MIT OR Zlib) AND ISC"] {
        assert!(used(refused).unwrap_err().contains("is not among"), "{refused}");
    }
    assert!(used("nonsense licence").is_err());
    assert!(licences_used(&[package(Value::Null)], &["MIT"]).unwrap_err().contains("no licence"));
}

#[test]
fn nothing_that_needs_more_than_rust_to_build_is_a_dependency() {
    let deny = table("deny.toml");
    let banned = deny["bans"]["deny"].as_array().unwrap();
    let banned: BTreeMap<&str, Vec<&str>> = banned
        .iter()
        .map(|item| (item["name"].as_str().unwrap(), item.get("wrappers").map_or_else(Vec::new, strings)))
        .collect();
    assert!(banned.contains_key("cc"), "{banned:?}");
    let (metadata, _) = metadata();
    let names: BTreeMap<&str, &str> = packages(&metadata)
        .iter()
        .map(|package| (package["id"].as_str().unwrap(), package["name"].as_str().unwrap()))
        .collect();
    for node in metadata["resolve"]["nodes"].as_array().unwrap() {
        let user = names[node["id"].as_str().unwrap()];
        for used in node["deps"].as_array().unwrap().iter().map(|used| names[used["pkg"].as_str().unwrap()]) {
            let allowed = banned.get(used).is_none_or(|wrappers| wrappers.contains(&user));
            assert!(allowed, "{user} depends on {used}; `cargo tree -i {used} --target all` says who needs it");
        }
    }
}

/// A version as three numbers; missing parts are zero.
fn version(text: &str) -> [u32; 3] {
    let mut parts = text.split('.').map(|part| part.parse().unwrap_or_else(|_| panic!("{text}")));
    std::array::from_fn(|_| parts.next().unwrap_or(0))
}

#[test]
fn no_dependency_needs_a_newer_rust_than_this_project_says() {
    let ours = env!("CARGO_PKG_RUST_VERSION");
    assert!(version("1.9") < version("1.10.0") && version("1.89") == version("1.89.0"));
    for package in packages(&metadata().0) {
        let Some(theirs) = package["rust_version"].as_str() else { continue };
        assert!(version(theirs) <= version(ours), "{} needs Rust {theirs}, but {ours} is promised", name(package));
    }
}

#[test]
fn every_crate_of_the_workspace_has_the_version_licence_and_rust_version_of_all() {
    for package in packages(&metadata().0).iter().filter(|package| package["source"].is_null()) {
        let name = name(package);
        assert_eq!(package["rust_version"], env!("CARGO_PKG_RUST_VERSION"), "{name}");
        assert_eq!(package["version"], env!("CARGO_PKG_VERSION"), "{name}");
        assert_eq!(package["license"], "MIT OR Apache-2.0", "{name}");
    }
}

#[test]
fn the_citation_and_the_changelog_name_this_version() {
    let version = env!("CARGO_PKG_VERSION");
    let citation = fs::read_to_string(root().join("CITATION.cff")).unwrap();
    assert!(citation.lines().any(|line| line == format!("version: {version}")), "CITATION.cff");
    let changelog = fs::read_to_string(root().join("CHANGELOG.md")).unwrap();
    let newest = changelog.lines().find_map(|line| line.strip_prefix("## ")).unwrap();
    assert_eq!(newest.split([',', ' ']).next(), Some(version), "CHANGELOG.md");
    // For a released version, both have the date.
    let day = newest.split_once(", ").map(|(_, day)| day).filter(|day| *day != "not yet released");
    let cited = citation.lines().find_map(|line| line.strip_prefix("date-released: "));
    assert_eq!(cited, day, "the day of release in CITATION.cff and in CHANGELOG.md");
}
