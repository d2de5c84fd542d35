//! The Python package: installed into a fresh environment as a user does it, and tested there.
#![allow(missing_docs)]

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Runs a program, which must succeed, and returns its standard output.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, error) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}\n{error}", output.status);
    out
}

/// The Python environment of `scripts/python-tools`.
fn tools() -> PathBuf {
    env::var_os("MXPROBE_PYTHON_TOOLS").map_or_else(|| root().join(".python"), PathBuf::from)
}

/// Creates a fresh environment that sees the packages of `scripts/python-tools`, and installs the package into it.
fn installed() -> PathBuf {
    let tools = tools();
    let python = tools.join("bin/python");
    let fresh = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python");
    let _ = fs::remove_dir_all(&fresh);
    run(Command::new(&python).args(["-m", "venv", "--without-pip"]).arg(&fresh));
    let packages = |python: &Path| {
        let place = run(Command::new(python).args(["-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]));
        PathBuf::from(place.trim())
    };
    let own = fresh.join("bin/python");
    fs::write(packages(&own).join("tools.pth"), packages(&python).to_str().unwrap()).unwrap();
    // With the profile and target folder of these tests, so that cargo reuses most of their build.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("it is in the target folder");
    let path = env::join_paths(
        [tools.join("bin")].into_iter().chain(env::split_paths(&env::var_os("PATH").unwrap_or_default())),
    );
    let mut pip = Command::new(&own);
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-index",
        "--no-build-isolation",
        "--no-deps",
        "--force-reinstall",
    ]);
    pip.args(["--no-compile", "--disable-pip-version-check"]).arg(root().join("python"));
    pip.env("PATH", path.unwrap()).env("CARGO_TARGET_DIR", target);
    pip.env("MATURIN_PEP517_ARGS", "--profile dev --offline --locked --features as-in-tests");
    // Variables that cargo sets for this test must not reach the cargo that pip starts.
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST") || name == "CARGO_CRATE_NAME" {
            pip.env_remove(name);
        }
    }
    run(&mut pip);
    fresh
}

#[test]
#[cfg_attr(not(python_tools), ignore = "needs the environment that scripts/python-tools fetches")]
fn the_package_is_installed_into_a_fresh_environment_and_its_tests_pass() {
    let fresh = installed();
    let folder = root().join("python/tests");
    let bin = [fresh.join("bin")].into_iter();
    let path = env::join_paths(bin.chain(env::split_paths(&env::var_os("PATH").unwrap_or_default()))).unwrap();
    let told = run(Command::new(fresh.join("bin/python"))
        .args(["-m", "pytest", "-q", "-p", "no:cacheprovider"])
        .arg(&folder)
        .env("PATH", path)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env_remove("PYTHONPATH"));
    assert!(told.contains(" passed") && !told.contains("skipped"), "{told}");
}

/// Packages with their features, as cargo would compile them for this machine.
#[cfg(target_os = "linux")]
fn compiled(arguments: &[&str]) -> Vec<String> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut tree = Command::new(cargo);
    tree.args(["tree", "--offline", "--locked", "--prefix", "none", "--format", "{p} [{f}]"]).args(arguments);
    let text = run(tree.current_dir(root()));
    let mut found: Vec<String> =
        text.lines().map(|line| line.replace(" (*)", "").replace(" (proc-macro)", "")).collect();
    found.sort_unstable();
    found.dedup();
    found
}

#[test]
#[cfg(target_os = "linux")]
fn the_package_s_test_compiles_dependencies_as_the_workspace_s_tests_do() {
    let workspace = compiled(&["--workspace", "--all-features", "--edges", "normal,build,dev"]);
    let package = compiled(&["--package", "mxprobe-python", "--features", "as-in-tests", "--edges", "normal,build"]);
    let own = |line: &&String| !line.starts_with("mxprobe-python ");
    // A package with other features is compiled again, with all its dependents; the feature `as-in-tests` prevents it.
    let other: Vec<&String> = package.iter().filter(own).filter(|line| !workspace.contains(line)).collect();
    assert!(package.len() > 80 && other.is_empty(), "{other:#?}");
}
