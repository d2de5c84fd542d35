//! Where a report comes from: the program, the time, the machine. No host name, no user name.

use std::{fs, time::Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The program that made a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    /// `mxprobe`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The commit it was built from, where it was built from a repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Whether files differed from that commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirty: Option<bool>,
    /// The target it was compiled for.
    pub target: String,
    /// The compiler.
    pub rustc: String,
    /// The arguments it was called with, without the program.
    pub arguments: Vec<String>,
    /// The seed of random inputs, in hex, where any were used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<String>,
}

impl Tool {
    /// This program, called with these arguments.
    #[must_use]
    pub fn this(arguments: Vec<String>) -> Self {
        Self {
            name: "mxprobe".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            commit: option_env!("MXPROBE_COMMIT").map(str::to_owned),
            dirty: option_env!("MXPROBE_DIRTY").map(|dirty| dirty == "true"),
            target: env!("MXPROBE_TARGET").into(),
            rustc: env!("MXPROBE_RUSTC").into(),
            arguments,
            seed: None,
        }
    }
}

/// The version, and the commit it was built from where that is known: `0.1.0 (189a911d2c3b, with local changes)`.
#[must_use]
pub fn build_version() -> String {
    let tool = Tool::this(Vec::new());
    tool.version_and_commit()
}

impl Tool {
    /// The version, and the commit where that is known.
    #[must_use]
    pub fn version_and_commit(&self) -> String {
        match (&self.commit, self.dirty) {
            (Some(commit), Some(true)) => format!("{} ({commit}, with local changes)", self.version),
            (Some(commit), _) => format!("{} ({commit})", self.version),
            (None, _) => self.version.clone(),
        }
    }
}

/// When a report was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Time {
    /// The start, RFC 3339, UTC.
    pub start: String,
    /// From the start to the last finding, discovery not included; of a run that was resumed, that of all its parts.
    pub duration_ns: u64,
    /// The run was interrupted, or is not over: operations are missing.
    pub interrupted: bool,
}

impl Time {
    /// A time that starts now, and is not over.
    #[must_use]
    pub fn starting() -> Self {
        Self { start: now(), duration_ns: 0, interrupted: true }
    }

    /// Sets the duration to what has passed since `start`, and `before_ns` that earlier parts of the run took.
    pub fn elapsed_since(&mut self, start: Instant, before_ns: u64) {
        let since_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.duration_ns = before_ns.saturating_add(since_ns);
    }
}

/// The present moment, RFC 3339 to the second, UTC.
#[must_use]
pub fn now() -> String {
    let now = jiff::Timestamp::now();
    jiff::Timestamp::from_second(now.as_second()).unwrap_or(now).to_string()
}

/// The machine that a report was made on, as far as it matters for results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// The operating system and its version.
    pub os: String,
    /// The kernel's version, where the system tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// The CPU's model, where the system tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<String>,
    /// How many CPUs this process may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u32>,
    /// Memory, where the system tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
}

impl Host {
    /// This machine.
    #[must_use]
    pub fn this() -> Self {
        let read = |path: &str| fs::read_to_string(path).ok();
        let os = read("/etc/os-release").and_then(|text| {
            text.lines().find_map(|line| Some(line.strip_prefix("PRETTY_NAME=")?.trim_matches('"').to_owned()))
        });
        Self {
            os: os.unwrap_or_else(|| std::env::consts::OS.to_owned()),
            kernel: read("/proc/sys/kernel/osrelease").map(|text| text.trim().to_owned()),
            cpu: read("/proc/cpuinfo").and_then(|text| field(&text, "model name").map(str::to_owned)),
            cpus: std::thread::available_parallelism().ok().and_then(|count| u32::try_from(count.get()).ok()),
            memory_bytes: read("/proc/meminfo").and_then(|text| {
                let kib: u64 = field(&text, "MemTotal")?.strip_suffix("kB")?.trim().parse().ok()?;
                kib.checked_mul(1024)
            }),
        }
    }
}

/// The value of the first line `name : value`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_utc_to_the_second() {
        let now = now();
        assert!(now.len() == "2026-11-20T22:00:00Z".len() && now.ends_with('Z'), "{now}");
    }

    #[test]
    fn fields_of_proc_files_are_found_by_their_whole_name() {
        let text = "model\t\t: 143\nmodel name\t: A CPU @ 2.00GHz\n";
        assert_eq!(field(text, "model name"), Some("A CPU @ 2.00GHz"));
        assert_eq!(field(text, "name"), None);
    }

    #[test]
    fn local_changes_show_in_the_version() {
        let mut tool = Tool::this(Vec::new());
        (tool.commit, tool.dirty) = (Some("189a911d2c3b".into()), Some(true));
        assert!(tool.version_and_commit().ends_with("(189a911d2c3b, with local changes)"));
        tool.commit = None;
        assert_eq!(tool.version_and_commit(), env!("CARGO_PKG_VERSION"));
    }
}
