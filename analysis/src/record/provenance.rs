//! The provenance of a report: the program, the time, the machine. No host name, no user name.

use std::{collections::BTreeMap, env, fs, time::Instant};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::clock;

/// The program that made a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Tool {
    /// `mxprobe`.
    pub name: String,
    /// The program's version.
    pub version: String,
    /// The commit it was built from, if it was built from a repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Whether files differed from that commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirty: Option<bool>,
    /// The target it was compiled for.
    pub target: String,
    /// The compiler.
    pub rustc: String,
    /// The backends with which it was built.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backends: Vec<String>,
    /// The arguments with which it was called, without the program.
    pub arguments: Vec<String>,
    /// The seed of random inputs, in hexadecimal, if any were used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<String>,
}

impl Tool {
    /// The program, called with these arguments; paths are shortened to their last part.
    #[must_use]
    pub fn with_arguments(self, arguments: &[String]) -> Self {
        Self { arguments: arguments.iter().map(|argument| without_directories(argument)).collect(), ..self }
    }

    /// Returns the version, and the commit it was built from if that is known: `0.2.0 (189a911d2c3b, with local
    /// changes)`.
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Time {
    /// The start, as RFC 3339 in UTC.
    pub start: String,
    /// When the last finding was written, as RFC 3339 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// The time from the start to the last finding, without discovery; for a resumed run, the total of all its parts.
    pub duration_ns: u64,
    /// Whether operations are missing, because the run was interrupted or is not over.
    pub interrupted: bool,
}

impl Time {
    /// Returns a time that starts now and is not over.
    #[must_use]
    pub fn starting() -> Self {
        Self { start: now(), end: None, duration_ns: 0, interrupted: true }
    }

    /// Sets the end to now, and the duration to the time since `start` plus the `before_ns` of earlier parts of the
    /// run.
    pub fn elapsed_since(&mut self, start: Instant, before_ns: u64) {
        self.duration_ns = before_ns.saturating_add(clock::elapsed_ns(start));
        self.end = Some(now());
    }
}

/// Returns the current time, or the one that `SOURCE_DATE_EPOCH` fixes, as RFC 3339 to the second in UTC.
#[must_use]
pub fn now() -> String {
    clock::now()
}

/// The machine on which a report was made, as far as it matters for results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Host {
    /// The operating system and its version.
    pub os: String,
    /// The kernel's version, if the system reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// The CPU's model, if the system reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<String>,
    /// The number of CPUs that this process may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u32>,
    /// The memory, if the system reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Whether the CPU reports that this is a virtual machine, if the system provides this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtual_machine: Option<bool>,
    /// The environment variables that were set and affect drivers or this program; paths are shortened to their last
    /// part.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
}

/// The environment variables that a report includes if they are set. A list of whole names, since others with the same
/// prefix may hold secrets.
const VARIABLES: [&str; 41] = [
    "ACO_DEBUG",
    "ANV_DEBUG",
    "CUDA_CACHE_DISABLE",
    "CUDA_DEVICE_ORDER",
    "CUDA_DISABLE_JIT",
    "CUDA_DISABLE_PTX_JIT",
    "CUDA_FORCE_JIT",
    "CUDA_FORCE_PTX_JIT",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_MODULE_LOADING",
    "CUDA_VISIBLE_DEVICES",
    "GALLIVM_DEBUG",
    "GALLIVM_PERF",
    "INTEL_DEBUG",
    "LP_DEBUG",
    "LP_NATIVE_VECTOR_WIDTH",
    "LP_NUM_THREADS",
    "MESA_LOADER_DRIVER_OVERRIDE",
    "MESA_SHADER_CACHE_DISABLE",
    "MESA_VK_DEVICE_SELECT",
    "MXPROBE_DEVICE",
    "NAK_DEBUG",
    "NIR_DEBUG",
    "NVIDIA_TF32_OVERRIDE",
    "NVIDIA_VISIBLE_DEVICES",
    "NVK_DEBUG",
    "RADV_DEBUG",
    "RADV_FORCE_FAMILY",
    "RADV_PERFTEST",
    "RADV_TEX_ANISO",
    clock::VARIABLE,
    "VK_ADD_DRIVER_FILES",
    "VK_DRIVER_FILES",
    "VK_ICD_FILENAMES",
    "VK_INSTANCE_LAYERS",
    "VK_LAYER_PATH",
    "VK_LOADER_DEVICE_SELECT",
    "VK_LOADER_DRIVERS_DISABLE",
    "VK_LOADER_DRIVERS_SELECT",
    "VK_LOADER_LAYERS_DISABLE",
    "VK_LOADER_LAYERS_ENABLE",
];

/// The property for the digest of a device's UUID, which replaces the property `device_uuid`.
pub const UUID_DIGEST: &str = "device_uuid_sha256";

/// Returns a device's properties in the form that reports publish: the UUID, a serial number on some devices, is
/// replaced by half of its SHA-256, which identifies a device equally well. A UUID of zeros is meaningless, and
/// omitted.
pub(super) fn published(properties: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut published = properties.clone();
    if let Some(uuid) = published.remove("device_uuid")
        && uuid.bytes().any(|byte| !matches!(byte, b'0' | b'-'))
    {
        let digest = Sha256::digest(uuid.as_bytes());
        let half = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        published.insert(UUID_DIGEST.to_owned(), half);
    }
    published
}

/// The system's readings for the device before the first question and after the last, by names that include the unit. A
/// reading that the system does not offer is missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Conditions {
    /// Before the first question; for a resumed run, that of its first part.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub start: BTreeMap<String, String>,
    /// After the last question.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub end: BTreeMap<String, String>,
}

impl Conditions {
    /// Whether both sets of readings are empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.start.is_empty() && self.end.is_empty()
    }
}

impl Host {
    /// Describes this machine.
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
            virtual_machine: read("/proc/cpuinfo")
                .and_then(|text| Some(field(&text, "flags")?.split(' ').any(|flag| flag == "hypervisor"))),
            environment: environment(|name| env::var(name).ok()),
        }
    }
}

/// Returns those of [`VARIABLES`] that have a value; paths are shortened to their last part, as directories name users
/// and machines.
fn environment(variable: impl Fn(&str) -> Option<String>) -> BTreeMap<String, String> {
    let value = |name| Some(without_directories(&variable(name)?));
    VARIABLES.into_iter().filter_map(|name| Some((name.to_owned(), value(name)?))).collect()
}

/// Shortens every path in a text to its last part.
pub(super) fn without_directories(text: &str) -> String {
    let shown = |part: &str| match part.rfind(['/', '\\']) {
        Some(at) => format!("…{}", &part[at..]),
        None => part.to_owned(),
    };
    text.split_inclusive([':', ';', '=', ' ']).map(shown).collect()
}

/// Returns the value of the first line `name : value`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A program of this version.
    pub(in crate::record) fn tool() -> Tool {
        Tool {
            name: "mxprobe".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            commit: None,
            dirty: None,
            target: "x86_64-unknown-linux-gnu".into(),
            rustc: "rustc 1.95.0".into(),
            backends: Vec::new(),
            arguments: Vec::new(),
            seed: None,
        }
    }

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
    fn of_the_environment_only_what_matters_is_kept_and_no_directory_is_named() {
        let found = environment(|name| match name {
            "VK_DRIVER_FILES" => Some("/home/someone/icd.json:C:\\Users\\someone\\b.json".to_owned()),
            "NVIDIA_TF32_OVERRIDE" => Some("0".to_owned()),
            "NVIDIA_API_KEY" | "HOME" => panic!("{name} is nobody's business"),
            _ => None,
        });
        assert_eq!(found["VK_DRIVER_FILES"], "…/icd.json:C:…\\b.json");
        assert_eq!(found["NVIDIA_TF32_OVERRIDE"], "0");
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn of_the_arguments_no_directory_is_named() {
        let program = "exec:/usr/bin/python3 /home/someone/worker.py --kind=npu";
        let given = ["run", "--out=/home/someone/a.json", "--device", "sim:../b.toml", program, "*.f32", "c.json"];
        let tool = tool().with_arguments(&given.map(str::to_owned));
        let program = "exec:…/python3 …/worker.py --kind=npu";
        let kept = ["run", "--out=…/a.json", "--device", "sim:…/b.toml", program, "*.f32", "c.json"];
        assert_eq!(tool.arguments, kept);
    }

    #[test]
    fn a_uuid_is_published_as_a_digest() {
        let of = |uuid: &str| published(&BTreeMap::from([("device_uuid".to_owned(), uuid.to_owned())]));
        // The first half of the output of sha256sum for these 32 letters.
        let digest = "5947d7c33d783f94b3b4c1a96ebc8991";
        assert_eq!(of("00112233445566778899aabbccddeeff"), BTreeMap::from([(UUID_DIGEST.into(), digest.into())]));
        assert!(of("00000000000000000000000000000000").is_empty());
    }

    #[test]
    fn local_changes_show_in_the_version() {
        let mut tool = tool();
        (tool.commit, tool.dirty) = (Some("189a911d2c3b".into()), Some(true));
        assert!(tool.version_and_commit().ends_with("(189a911d2c3b, with local changes)"));
        tool.commit = None;
        assert_eq!(tool.version_and_commit(), env!("CARGO_PKG_VERSION"));
    }
}
