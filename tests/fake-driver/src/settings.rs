//! The fake driver's settings from the environment: which device it is, and how it fails.

use std::env;

use mxprobe_api::Injection;
use mxprobe_models::{Model, recipe::Recipe};

use crate::status::Status;

/// An enum whose values have names in the environment.
macro_rules! named {
    ($(#[$about:meta])* $name:ident { $($(#[$text:meta])* $word:literal => $variant:ident,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $(#[doc = concat!("`", $word, "`:")] $(#[$text])* $variant,)*
        }

        impl $name {
            /// The value of that name.
            #[must_use]
            pub fn named(name: &str) -> Option<Self> {
                match name {
                    $($word => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

named! {
    /// A way to fail.
    Fault {
        /// `cuInit` finds no device.
        "no-device" => NoDevice,
        /// the library is the toolkit's stub.
        "stub" => Stub,
        /// the kernel module has another version.
        "mismatch" => Mismatch,
        /// every allocation of device memory fails.
        "oom" => OutOfMemory,
        /// `cuLaunchKernel` fails with `MXPROBE_FAKE_ERROR` and leaves the context intact.
        "launch" => Launch,
        /// the launch is accepted, and the next call that waits fails with `MXPROBE_FAKE_ERROR`; the context is lost.
        "launch-async" => LaunchAsync,
        /// kernels are accepted and write nothing.
        "silent" => Silent,
        /// the library that compiles PTX is missing.
        "no-jit" => NoJit,
        /// all PTX is refused, with a message in the error log.
        "invalid-ptx" => InvalidPtx,
        /// the cubin computes on scalar units instead of matrix units.
        "wrong-opcode" => WrongOpcode,
        /// row 2 of A is read as row 3.
        "layout" => Layout,
        /// a launch aborts the process.
        "abort" => Abort,
        /// a launch never returns.
        "hang" => Hang,
        /// after `MXPROBE_FAKE_AFTER` launches every call fails with `MXPROBE_FAKE_ERROR`.
        "device-lost" => DeviceLost,
        /// cuBLASLt creates no handle.
        "no-handle" => NoHandle,
        /// linking succeeds, with an error in its log.
        "error-in-log" => ErrorInLog,
    }
}

named! {
    /// How machine code calls the compiler's own routines, and where their names appear.
    Linker {
        /// relative calls, the routine in the kernel's section, its symbol in the table.
        "ptxas" => Assembler,
        /// absolute calls, each routine in a separate section and in the symbol table, as nvlink 13.0 writes them.
        "absolute" => Absolute,
        /// the same without local symbols.
        "stripped" => Stripped,
        /// absolute calls, without any name of the routine.
        "bare" => Bare,
    }
}

named! {
    /// The routes to machine code that accept PTX of a target that ends in `a`, such as `sm_90a`.
    Jit {
        /// every route.
        "any" => Any,
        /// linking only with `CU_JIT_TARGET`, and loading the text.
        "explicit-target" => ExplicitTarget,
        /// only loading the text.
        "load-only" => LoadOnly,
    }
}

/// How the fake cuBLASLt computes.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// The recipe.
    pub recipe: Recipe,
    /// Its model.
    pub model: Model,
    /// The name of its cases that are used; all of them if `None`.
    pub case: Option<String>,
}

/// The fake driver's settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The model whose arithmetic its matrix units have, as `MXPROBE_FAKE_MODEL` names it.
    pub model_name: String,
    /// The model.
    pub model: Model,
    /// How its cuBLASLt computes, if not by the model alone.
    pub recipe: Option<Chosen>,
    /// The compute capability, 90 for 9.0.
    pub capability: u32,
    /// The version from `cuDriverGetVersion`, 13000 for 13.0.
    pub driver_version: i32,
    /// How it fails, if it does.
    pub fault: Option<Fault>,
    /// Launches that succeed before the device is lost.
    pub after: u64,
    /// If set, launch faults apply only to kernels with an operation whose id starts with this.
    pub only: Option<String>,
    /// The number of multiprocessors the device reports.
    pub multiprocessors: i32,
    /// A fault of its matrix units: bits that are inverted in some results.
    pub flip: Option<Injection>,
    /// The status that launch faults return.
    pub error: Status,
    /// How its machine code calls routines.
    pub linker: Linker,
    /// The targets its compiler accepts.
    pub jit: Jit,
}

/// The default number of multiprocessors.
const MULTIPROCESSORS: i32 = 8;

impl Settings {
    /// The default settings for a model, with compute capability 9.0 if the model's fingerprint names none.
    ///
    /// # Errors
    /// If no model of that name can be loaded.
    pub fn of_model(name: &str) -> Result<Self, String> {
        let model = mxprobe_models::load(name).map_err(|error| error.to_string())?;
        let capability = capability_of(&model.fingerprint).unwrap_or(90);
        Ok(Self {
            model_name: name.to_owned(),
            model,
            recipe: None,
            capability,
            driver_version: 13000,
            fault: None,
            after: 0,
            only: None,
            multiprocessors: MULTIPROCESSORS,
            flip: None,
            error: Status::LAUNCH_FAILED,
            linker: Linker::Assembler,
            jit: Jit::Any,
        })
    }

    /// Reads `MXPROBE_FAKE_MODEL` and the other variables of the [crate's documentation](crate).
    ///
    /// # Errors
    /// The first variable that cannot be read, with its value.
    pub fn from_environment() -> Result<Self, String> {
        let mut settings = Self::of_model(&read("MODEL").unwrap_or_else(|| "h100".to_owned()))?;
        set(&mut settings.capability, "CAPABILITY", "capability such as 8.6", |value| {
            let (major, minor) = value.split_once('.')?;
            let minor = minor.parse::<u32>().ok().filter(|minor| *minor < 10)?;
            Some(major.parse::<u32>().ok()?.checked_mul(10)? + minor)
        })?;
        set(&mut settings.driver_version, "DRIVER", "version such as 13000", |value| value.parse().ok())?;
        let count = "number of multiprocessors from 1 to 1024";
        set(&mut settings.multiprocessors, "MULTIPROCESSORS", count, |value| {
            value.parse().ok().filter(|count| (1..=1024).contains(count))
        })?;
        set(&mut settings.after, "AFTER", "number of launches", |value| value.parse().ok())?;
        let faults = "list such as bit=3,lane=5,sm=2,exponent=130,every=1000000";
        set(&mut settings.flip, "FLIP", faults, |value| flip(value).map(Some))?;
        settings.only = read("ONLY");
        if let Some(text) = read("RECIPE") {
            let (name, case) = text.split_once('@').map_or((text.as_str(), None), |(name, case)| (name, Some(case)));
            let (recipe, model) = mxprobe_models::recipe::load(name).map_err(|error| error.to_string())?;
            settings.recipe = Some(Chosen { recipe, model, case: case.map(str::to_owned) });
        }
        set(&mut settings.fault, "FAULT", "fault of the fake driver", |value| Fault::named(value).map(Some))?;
        set(&mut settings.error, "ERROR", "error code of the fake driver", |value| {
            value.parse().ok().filter(|code| *code != 0 && Status::describe(*code).is_some()).map(Status)
        })?;
        set(&mut settings.linker, "LINKER", "linker of the fake driver", Linker::named)?;
        set(&mut settings.jit, "JIT", "compiler of the fake driver", Jit::named)?;
        Ok(settings)
    }

    /// Whether it is set to fail this way.
    #[must_use]
    pub fn fails(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    /// The highest PTX version that the driver reads, as 87 for 8.7.
    ///
    /// Each CUDA release brings a new one, except 12.6 (release notes of the PTX ISA).
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

/// The value of a variable, if it is set.
fn read(name: &str) -> Option<String> {
    env::var(format!("MXPROBE_FAKE_{name}")).ok().filter(|value| !value.is_empty())
}

/// Parses a variable into `to`, if it is set.
fn set<T>(to: &mut T, name: &str, form: &str, parse: impl Fn(&str) -> Option<T>) -> Result<(), String> {
    if let Some(value) = read(name) {
        *to = parse(&value).ok_or_else(|| format!("MXPROBE_FAKE_{name}=`{value}` is not a {form}"))?;
    }
    Ok(())
}

/// Reads which bit is inverted, and in which results.
fn flip(text: &str) -> Option<Injection> {
    let mut flip = Injection { bit: u32::MAX, ..Injection::default() };
    for part in text.split(',') {
        let (name, value) = part.split_once('=')?;
        match name {
            "bit" => flip.bit = value.parse().ok().filter(|bit| *bit < 64)?,
            "lane" => flip.lane = Some(value.parse().ok()?),
            "sm" => flip.unit = Some(value.parse().ok()?),
            "exponent" => flip.exponent = Some(value.parse().ok()?),
            "every" => flip.every = value.parse().ok()?,
            _ => return None,
        }
    }
    (flip.bit < 64).then_some(flip)
}

/// The compute capability in a fingerprint: 90 for `sm_90a`.
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
    fn a_fault_names_a_bit_and_perhaps_where_it_is_inverted() {
        let bit = Injection { bit: 3, ..Injection::default() };
        let placed = Injection { lane: Some(5), unit: Some(2), exponent: Some(130), every: 1_000_000, ..bit };
        assert_eq!(flip("bit=3"), Some(bit));
        assert_eq!(flip("bit=3,lane=5,sm=2,exponent=130,every=1000000"), Some(placed));
        assert_eq!([flip("lane=5"), flip("bit=64"), flip("bit=3,core=1"), flip("")], [None; 4]);
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
