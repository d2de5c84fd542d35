//! How this program starts itself again.

use std::{
    env,
    ffi::{OsStr, OsString},
    path::PathBuf,
    process::Command,
    sync::OnceLock,
};

/// The command that starts this program, if it is not the running executable.
static STARTED_BY: OnceLock<Vec<OsString>> = OnceLock::new();

/// Sets the program, and its first arguments, that is started again, unless one is set already.
pub(crate) fn started_by(program: Vec<OsString>) {
    let _ = STARTED_BY.set(program);
}

/// Returns a command that starts this program once more, with no arguments except those given to [`started_by`].
///
/// `MXPROBE_EXE` overrides the program. If a dynamic loader was called with the program as its argument (`ld.so
/// --library-path DIR mxprobe …`), the same loader is called with the same options.
pub(crate) fn this_program() -> Command {
    if let Some(program) = env::var_os("MXPROBE_EXE").filter(|program| !program.is_empty()) {
        return Command::new(program);
    }
    let named = STARTED_BY.get().filter(|program| !program.is_empty()).cloned();
    let words = named.or_else(through_loader).unwrap_or_else(|| vec![own_path().into_os_string()]);
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
}

#[cfg(target_os = "linux")]
fn own_path() -> PathBuf {
    PathBuf::from("/proc/self/exe") // right even after the file was replaced
}

#[cfg(not(target_os = "linux"))]
fn own_path() -> PathBuf {
    env::current_exe().unwrap_or_else(|_| "mxprobe".into())
}

/// Returns the loader's own arguments and the program's path, if the running file is a loader.
#[cfg(target_os = "linux")]
fn through_loader() -> Option<Vec<OsString>> {
    use std::os::unix::ffi::OsStrExt;
    let running = env::current_exe().ok()?;
    is_loader(running.file_name()?).then_some(())?;
    let line = std::fs::read("/proc/self/cmdline").ok()?;
    let words: Vec<&[u8]> = line.strip_suffix(b"\0")?.split(|byte| *byte == 0).collect();
    // The program sees its own path and its own arguments, which are the last words of the line.
    let own = env::args_os().len();
    let before = words.len().checked_sub(own)? + 1;
    let mut words: Vec<OsString> = words[..before].iter().map(|word| OsStr::from_bytes(word).to_owned()).collect();
    words[0] = running.into_os_string();
    Some(words)
}

#[cfg(not(target_os = "linux"))]
fn through_loader() -> Option<Vec<OsString>> {
    None
}

#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
fn is_loader(name: &OsStr) -> bool {
    name.to_str()
        .is_some_and(|name| ["ld-linux", "ld-musl", "ld.so", "ld64.so"].iter().any(|loader| name.starts_with(loader)))
}

#[cfg(test)]
mod tests {
    use super::is_loader;

    #[test]
    fn loaders_are_known_by_their_names() {
        assert!(is_loader("ld-linux-x86-64.so.2".as_ref()) && is_loader("ld-linux-aarch64.so.1".as_ref()));
        assert!(!is_loader("mxprobe".as_ref()) && !is_loader("ld".as_ref()));
    }
}
