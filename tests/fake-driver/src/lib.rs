//! A stand-in for the CUDA driver, for tests on machines without a GPU.
//!
//! Built as a shared library it is a `libcuda.so.1`: the CUDA backend, which opens the driver by that name, runs unchanged.
//! It has the functions that the backend calls and interprets the PTX that it is given, on the CPU: the instructions of the
//! backend's kernels, and the arithmetic of the matrix unit is that of a model of `mxprobe-models`. So it shows that loading,
//! argument passing, packing of fragments, control flow and the paths of failure are right. It shows nothing about NVIDIA's
//! arithmetic, and says so: its device is called `mxprobe test double of …`, and it exports `mxprobe_fake_driver`, which no
//! driver of NVIDIA does.
//!
//! Fragments are read by the formulas of the PTX ISA, shape by shape, and not by the code under test: a wrong layout gives
//! wrong results here too. Those of `wmma`, which are documented nowhere, are held in an order of the fake driver's own,
//! another one for each operand and layout. A kernel that is stopped shows at the first call that waits for it, and its
//! context stays lost until the process ends or the primary context is reset. Beyond what hardware would do it stops kernels
//! that break a rule which hardware may let pass: accesses outside an allocation, results of `wgmma` read before they were
//! waited for, shared memory read through a descriptor before a fence and a barrier.
//!
//! # Environment
//!
//! | variable | meaning |
//! |---|---|
//! | `MXPROBE_FAKE_MODEL` | a model's name or file, with `@VARIANT`; `h100` if unset |
//! | `MXPROBE_FAKE_CAPABILITY` | the compute capability, as `8.6`; else that of the model |
//! | `MXPROBE_FAKE_DRIVER` | what `cuDriverGetVersion` says, and so the newest PTX it takes; `13000` if unset |
//! | `MXPROBE_FAKE_MULTIPROCESSORS` | how many multiprocessors the device has, 1 to 1024; 8 if unset |
//! | `MXPROBE_FAKE_FAULT` | one of the faults of [`Fault`] |
//! | `MXPROBE_FAKE_AFTER` | launches that succeed before `device-lost` |
//! | `MXPROBE_FAKE_ONLY` | the beginning of an operation's id: faults of launches strike its kernels alone |
//! | `MXPROBE_FAKE_ERROR` | the code that faults of launches return, such as 999; 719 if unset |
//! | `MXPROBE_FAKE_LINKER` | `ptxas`, `absolute`, `stripped`, `bare`: how calls of routines show ([`Linker`]) |
//! | `MXPROBE_FAKE_JIT` | `any`, `explicit-target`, `load-only`: how `sm_90a` and the like are compiled ([`Jit`]) |
// Registers, fields and handles are cut to their width on purpose everywhere here.
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]

mod attributes;
mod cubin;
mod driver;
mod entry;
mod issued;
#[cfg(test)]
mod kernels;
mod lowering;
mod machine;
mod memory;
mod ptx;
mod settings;
mod status;

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

pub use lowering::{Lowering, lowering};
pub use settings::{Fault, Jit, Linker, Settings};
pub use status::Status;

/// Name of the built library.
const LIBRARY: &str = "libmxprobe_fake_driver.so";

/// The built library, found beside the running test: Cargo builds it with every test that depends on this crate.
///
/// # Errors
/// If it is not there.
pub fn library() -> io::Result<PathBuf> {
    let program = env::current_exe()?;
    let found = program.ancestors().skip(1).take(2).map(|folder| folder.join(LIBRARY)).find(|path| path.exists());
    found.ok_or_else(|| io::Error::other(format!("there is no {LIBRARY} beside {}", program.display())))
}

/// Puts the fake driver into a folder, under the names by which programs look for the driver; with `LD_LIBRARY_PATH` set to
/// the folder they find it.
///
/// # Errors
/// If the library was not built, or the folder cannot be written.
pub fn install(folder: &Path) -> io::Result<()> {
    let library = library()?;
    fs::copy(&library, folder.join("libcuda.so.1"))?;
    // One file with two names, as the driver's packages install it.
    fs::hard_link(folder.join("libcuda.so.1"), folder.join("libcuda.so"))
}
