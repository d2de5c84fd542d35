//! Where a report comes from: the program, the time, the machine. No host name, no user name.

use std::{collections::BTreeMap, env, fs, time::Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::clock;

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
    /// The backends that it was built with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backends: Vec<String>,
    /// The arguments it was called with, without the program.
    pub arguments: Vec<String>,
    /// The seed of random inputs, in hex, where any were used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<String>,
}

impl Tool {
    /// This program, called with these arguments; of a path the last part is kept.
    #[must_use]
    pub fn this(arguments: Vec<String>) -> Self {
        Self {
            name: "mxprobe".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            commit: option_env!("MXPROBE_COMMIT").map(str::to_owned),
            dirty: option_env!("MXPROBE_DIRTY").map(|dirty| dirty == "true"),
            target: env!("MXPROBE_TARGET").into(),
            rustc: env!("MXPROBE_RUSTC").into(),
            backends: backends(),
            arguments: arguments.iter().map(|argument| without_directories(argument)).collect(),
            seed: None,
        }
    }
}

/// The backends of this build, each a feature of its name; models are always there.
fn backends() -> Vec<String> {
    let built = [
        ("cpu", cfg!(feature = "cpu")),
        ("cuda", cfg!(feature = "cuda")),
        ("vulkan", cfg!(feature = "vulkan")),
        ("wgpu", cfg!(feature = "wgpu")),
        ("sim", true),
    ];
    built.into_iter().filter(|(_, is_built)| *is_built).map(|(name, _)| name.to_owned()).collect()
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
    /// When the last finding was written, RFC 3339, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// From the start to the last finding, discovery not included; of a run that was resumed, that of all its parts.
    pub duration_ns: u64,
    /// The run was interrupted, or is not over: operations are missing.
    pub interrupted: bool,
}

impl Time {
    /// A time that starts now, and is not over.
    #[must_use]
    pub fn starting() -> Self {
        Self { start: now(), end: None, duration_ns: 0, interrupted: true }
    }

    /// Sets the end to now, and the duration to what has passed since `start`, and `before_ns` that earlier parts of the run took.
    pub fn elapsed_since(&mut self, start: Instant, before_ns: u64) {
        self.duration_ns = before_ns.saturating_add(clock::elapsed_ns(start));
        self.end = Some(now());
    }
}

/// The present moment, RFC 3339 to the second, UTC; the one that `SOURCE_DATE_EPOCH` fixes, if it is set.
#[must_use]
pub fn now() -> String {
    clock::now()
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
    /// Whether the CPU says that this is a virtual machine, where the system tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtual_machine: Option<bool>,
    /// The variables of the environment that were set and change what drivers or this program do; of a
    /// path the last part.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
}

/// The variables that a report names where they are set. A list of whole names, as others that begin so hold secrets.
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

/// The property under which a report has the digest of a device's UUID, in place of the property `device_uuid`.
pub(in crate::report) const UUID_DIGEST: &str = "device_uuid_sha256";

/// What a report shows of a device's properties: of its UUID, which is a serial number on some devices, half of a SHA-256,
/// which tells as well whether two are the same. A UUID of zeros is none, and left out.
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

/// What the system said of the device before the first question and after the last, by names that say the unit. A reading
/// that it does not offer is missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Conditions {
    /// Before the first question; of a run that was resumed, that of its first part.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub start: BTreeMap<String, String>,
    /// After the last question.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub end: BTreeMap<String, String>,
}

impl Conditions {
    /// Whether the system said nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.start.is_empty() && self.end.is_empty()
    }
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
            virtual_machine: read("/proc/cpuinfo")
                .and_then(|text| Some(field(&text, "flags")?.split(' ').any(|flag| flag == "hypervisor"))),
            environment: environment(|name| env::var(name).ok()),
        }
    }
}

/// Those of [`VARIABLES`] that have a value; of a path the last part, as directories name users and machines.
fn environment(variable: impl Fn(&str) -> Option<String>) -> BTreeMap<String, String> {
    let value = |name| Some(without_directories(&variable(name)?));
    VARIABLES.into_iter().filter_map(|name| Some((name.to_owned(), value(name)?))).collect()
}

/// A text in which of each path the last part stands.
pub(super) fn without_directories(text: &str) -> String {
    let shown = |part: &str| match part.rfind(['/', '\\']) {
        Some(at) => format!("…{}", &part[at..]),
        None => part.to_owned(),
    };
    text.split_inclusive([':', ';', '=', ' ']).map(shown).collect()
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
        let tool = Tool::this(given.map(str::to_owned).into());
        let program = "exec:…/python3 …/worker.py --kind=npu";
        let kept = ["run", "--out=…/a.json", "--device", "sim:…/b.toml", program, "*.f32", "c.json"];
        assert_eq!(tool.arguments, kept);
    }

    #[test]
    fn a_uuid_is_published_as_a_digest() {
        let of = |uuid: &str| published(&BTreeMap::from([("device_uuid".to_owned(), uuid.to_owned())]));
        // The beginning of what sha256sum says of these 32 letters.
        let digest = "5947d7c33d783f94b3b4c1a96ebc8991";
        assert_eq!(of("00112233445566778899aabbccddeeff"), BTreeMap::from([(UUID_DIGEST.into(), digest.into())]));
        assert!(of("00000000000000000000000000000000").is_empty());
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
