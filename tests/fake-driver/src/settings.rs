//! What the environment asks the fake driver to be, and how it should fail.

use std::env;

use mxprobe_models::Model;

use crate::status::Status;

/// A way to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// `no-device`: `cuInit` finds none.
    NoDevice,
    /// `stub`: the library is the toolkit's stub.
    Stub,
    /// `mismatch`: the kernel module is of another version.
    Mismatch,
    /// `oom`: no memory of the device can be had.
    OutOfMemory,
    /// `launch`: `cuLaunchKernel` fails with `MXPROBE_FAKE_ERROR`, and the context is left as it was.
    Launch,
    /// `launch-async`: the launch is accepted, and the next call that waits fails with `MXPROBE_FAKE_ERROR`; the context is
    /// lost.
    LaunchAsync,
    /// `silent`: kernels are accepted and write nothing.
    Silent,
    /// `no-jit`: the library that compiles PTX is not there.
    NoJit,
    /// `invalid-ptx`: all PTX is refused, with a text in the error log.
    InvalidPtx,
    /// `wrong-opcode`: the cubin computes on scalar units.
    WrongOpcode,
    /// `layout`: row 2 of A is taken for row 3.
    Layout,
    /// `abort`: the process ends in a launch.
    Abort,
    /// `hang`: a launch never returns.
    Hang,
    /// `device-lost`: after `MXPROBE_FAKE_AFTER` launches every call fails with `MXPROBE_FAKE_ERROR`.
    DeviceLost,
    /// `error-in-log`: linking succeeds, with an error in its log.
    ErrorInLog,
}

const FAULTS: [(&str, Fault); 15] = [
    ("no-device", Fault::NoDevice),
    ("stub", Fault::Stub),
    ("mismatch", Fault::Mismatch),
    ("oom", Fault::OutOfMemory),
    ("launch", Fault::Launch),
    ("launch-async", Fault::LaunchAsync),
    ("silent", Fault::Silent),
    ("no-jit", Fault::NoJit),
    ("invalid-ptx", Fault::InvalidPtx),
    ("wrong-opcode", Fault::WrongOpcode),
    ("layout", Fault::Layout),
    ("abort", Fault::Abort),
    ("hang", Fault::Hang),
    ("device-lost", Fault::DeviceLost),
    ("error-in-log", Fault::ErrorInLog),
];

/// How machine code calls the compiler's own routines, and where these show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Linker {
    /// `ptxas`: relative calls, the routine in the kernel's section, its symbol in the table.
    #[default]
    Assembler,
    /// `absolute`: absolute calls, each routine in a section of its own and in the symbol table, as nvlink 13.0 writes them.
    Absolute,
    /// `stripped`: the same without local symbols.
    Stripped,
    /// `bare`: absolute calls, and nothing that names the routine.
    Bare,
}

const LINKERS: [(&str, Linker); 4] = [
    ("ptxas", Linker::Assembler),
    ("absolute", Linker::Absolute),
    ("stripped", Linker::Stripped),
    ("bare", Linker::Bare),
];

/// Which routes to machine code take PTX of a target that ends in `a`, such as `sm_90a`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Jit {
    /// `any`: every one.
    #[default]
    Any,
    /// `explicit-target`: linking only with `CU_JIT_TARGET`, and loading the text.
    ExplicitTarget,
    /// `load-only`: loading the text alone.
    LoadOnly,
}

const JITS: [(&str, Jit); 3] =
    [("any", Jit::Any), ("explicit-target", Jit::ExplicitTarget), ("load-only", Jit::LoadOnly)];

/// The value of a name in a table.
fn named<T: Copy>(table: &[(&str, T)], name: &str) -> Option<T> {
    table.iter().find(|(word, _)| *word == name).map(|(_, value)| *value)
}

impl Fault {
    /// The fault of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        named(&FAULTS, name)
    }
}

/// What the fake driver is.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The model whose arithmetic its matrix units have, as `MXPROBE_FAKE_MODEL` names it.
    pub model_name: String,
    /// The model.
    pub model: Model,
    /// The compute capability, 90 for 9.0.
    pub capability: u32,
    /// What `cuDriverGetVersion` says, 13000 for 13.0.
    pub driver_version: i32,
    /// How it fails, if it does.
    pub fault: Option<Fault>,
    /// Launches that succeed before a device gets lost.
    pub after: u64,
    /// Faults of launches strike only kernels that issue an operation whose id begins so; all kernels, if it does not say.
    pub only: Option<String>,
    /// How many multiprocessors the device says it has.
    pub multiprocessors: i32,
    /// What faults of launches return.
    pub error: Status,
    /// How its machine code calls routines.
    pub linker: Linker,
    /// What its compiler takes.
    pub jit: Jit,
}

/// Multiprocessors of a fake device that is not told how many it has.
const MULTIPROCESSORS: i32 = 8;

impl Settings {
    /// The settings for a model and nothing else.
    ///
    /// # Errors
    /// What is wrong with the name, or that the model is of no unit with a compute capability.
    pub fn of_model(name: &str) -> Result<Self, String> {
        let model = mxprobe_models::load(name).map_err(|error| error.to_string())?;
        let capability = capability_of(&model.fingerprint).unwrap_or(90);
        Ok(Self {
            model_name: name.to_owned(),
            model,
            capability,
            driver_version: 13000,
            fault: None,
            after: 0,
            only: None,
            multiprocessors: MULTIPROCESSORS,
            error: Status::LAUNCH_FAILED,
            linker: Linker::default(),
            jit: Jit::default(),
        })
    }

    /// Reads `MXPROBE_FAKE_MODEL` and the other variables of the [crate's documentation](crate).
    ///
    /// # Errors
    /// The first variable that cannot be read, with its value.
    pub fn from_environment() -> Result<Self, String> {
        let read = |name: &str| env::var(format!("MXPROBE_FAKE_{name}")).ok().filter(|value| !value.is_empty());
        let wrong = |name: &str, value: &str, form: &str| format!("MXPROBE_FAKE_{name}=`{value}` is no {form}");
        let mut settings = Self::of_model(&read("MODEL").unwrap_or_else(|| "h100".to_owned()))?;
        if let Some(value) = read("CAPABILITY") {
            let parsed = value.split_once('.').and_then(|(major, minor)| {
                let minor = minor.parse::<u32>().ok().filter(|minor| *minor < 10)?;
                Some(major.parse::<u32>().ok()?.checked_mul(10)? + minor)
            });
            settings.capability = parsed.ok_or_else(|| wrong("CAPABILITY", &value, "capability such as 8.6"))?;
        }
        if let Some(value) = read("DRIVER") {
            settings.driver_version = value.parse().map_err(|_| wrong("DRIVER", &value, "version such as 13000"))?;
        }
        if let Some(value) = read("MULTIPROCESSORS") {
            let count = value.parse::<i32>().ok().filter(|count| (1..=1024).contains(count));
            settings.multiprocessors =
                count.ok_or_else(|| wrong("MULTIPROCESSORS", &value, "number of multiprocessors from 1 to 1024"))?;
        }
        if let Some(value) = read("AFTER") {
            settings.after = value.parse().map_err(|_| wrong("AFTER", &value, "number of launches"))?;
        }
        settings.only = read("ONLY");
        if let Some(value) = read("FAULT") {
            settings.fault =
                Some(Fault::named(&value).ok_or_else(|| wrong("FAULT", &value, "fault of the fake driver"))?);
        }
        if let Some(value) = read("ERROR") {
            let status = value.parse().ok().filter(|code| *code != 0 && Status::describe(*code).is_some());
            settings.error = Status(status.ok_or_else(|| wrong("ERROR", &value, "error code of the fake driver"))?);
        }
        if let Some(value) = read("LINKER") {
            settings.linker =
                named(&LINKERS, &value).ok_or_else(|| wrong("LINKER", &value, "linker of the fake driver"))?;
        }
        if let Some(value) = read("JIT") {
            settings.jit = named(&JITS, &value).ok_or_else(|| wrong("JIT", &value, "compiler of the fake driver"))?;
        }
        Ok(settings)
    }

    /// Whether it fails this way.
    #[must_use]
    pub fn fails(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    /// The highest PTX version that the driver reads, as 87 for 8.7.
    ///
    /// Release notes of the PTX ISA: each CUDA release brings one, and 12.6 none.
    #[must_use]
    pub fn ptx_version(&self) -> u32 {
        let (major, minor) = (self.driver_version / 1000, self.driver_version % 1000 / 10);
        let minor = minor.unsigned_abs();
        match major {
            ..11 => 65,
            11 => 70 + minor,
            12 if minor > 5 => 79 + minor,
            12 => 80 + minor,
            _ => 90 + minor,
        }
    }
}

/// `sm_90a` as 90.
fn capability_of(fingerprint: &str) -> Option<u32> {
    fingerprint.strip_prefix("sm_")?.trim_end_matches(['a', 'f']).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_capability_is_that_of_the_modelled_unit() {
        for (model, capability) in [("v100", 70), ("t4", 75), ("a100", 80), ("l40s", 89), ("h100", 90), ("b200", 100)] {
            assert_eq!(Settings::of_model(model).unwrap().capability, capability, "{model}");
        }
        assert_eq!(Settings::of_model("rtx5090@zero-exponent-mmasim-1").unwrap().capability, 120);
    }

    #[test]
    fn a_driver_reads_the_ptx_of_its_own_release_and_older() {
        let mut settings = Settings::of_model("h100").unwrap();
        for (driver, version) in [
            (11000, 70),
            (11080, 78),
            (12000, 80),
            (12040, 84),
            (12050, 85),
            (12060, 85),
            (12080, 87),
            (12090, 88),
            (13010, 91),
        ] {
            settings.driver_version = driver;
            assert_eq!(settings.ptx_version(), version, "{driver}");
        }
    }
}
