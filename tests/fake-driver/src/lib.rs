//! A replacement for the CUDA driver, for tests on machines without a GPU.
//!
//! Built as a shared library it is a `libcuda.so.1`: the CUDA backend, which opens the driver by that name, runs
//! unchanged. It exports the functions that the backend calls and interprets PTX on the CPU: the instructions that the
//! backend's kernels use, with matrix units that compute like a model of `mxprobe-models`. Tests with it show that
//! loading, argument passing, packing of fragments, control flow and error handling are right. They show nothing about
//! NVIDIA's arithmetic, and the fake driver says so: its device is called `mxprobe test double of …`, and it exports
//! `mxprobe_fake_driver`, which no driver of NVIDIA does.
//!
//! Fragments are read by the formulas of the PTX ISA, shape by shape, and not by the code under test, so that a wrong
//! layout gives wrong results here too. Fragments of `wmma`, whose layout is not documented, have an order of the fake
//! driver's own, different for each operand and layout. The first call that waits for a kernel that trapped returns the
//! error, and the context stays lost until the process ends or the primary context is reset. The fake driver also traps
//! kernels that break rules which hardware may not enforce: accesses outside an allocation, results of `wgmma` read
//! before they were waited for, shared memory read through a descriptor before a fence and a barrier.
//!
//! # Environment
//!
//! | variable | meaning |
//! |---|---|
//! | `MXPROBE_FAKE_MODEL` | a model's name or file, with `@VARIANT`; `h100` if unset |
//! | `MXPROBE_FAKE_CAPABILITY` | the compute capability, such as `8.6`; that of the model if unset |
//! | `MXPROBE_FAKE_DRIVER` | the version from `cuDriverGetVersion`, which limits the PTX version; `13000` if unset |
//! | `MXPROBE_FAKE_MULTIPROCESSORS` | the number of multiprocessors of the device, 1 to 1024; 8 if unset |
//! | `MXPROBE_FAKE_FLIP` | a bit that its matrix units invert, and in which results: `bit=3,lane=5,sm=2,exponent=130,every=1000000` |
//! | `MXPROBE_FAKE_RECIPE` | a recipe's name or file, with `@CASE`: how its cuBLASLt computes; unset: by the model alone |
//! | `MXPROBE_FAKE_FAULT` | one of the faults of [`Fault`] |
//! | `MXPROBE_FAKE_AFTER` | launches that succeed before `device-lost` |
//! | `MXPROBE_FAKE_ONLY` | the beginning of an operation's id: launch faults apply only to its kernels |
//! | `MXPROBE_FAKE_ERROR` | the code that launch faults return, such as 999; 719 if unset |
//! | `MXPROBE_FAKE_LINKER` | `ptxas`, `absolute`, `stripped`, `bare`: the form of calls to routines ([`Linker`]) |
//! | `MXPROBE_FAKE_JIT` | `any`, `explicit-target`, `load-only`: how `sm_90a` and the like are compiled ([`Jit`]) |
// This crate cuts registers, fields and handles to their width on purpose.
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
mod products;
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

/// The file name of the built library.
const LIBRARY: &str = "libmxprobe_fake_driver.so";

/// The path of the built library, next to the running test: Cargo builds it with every test that depends on this crate.
///
/// # Errors
/// If the library does not exist.
pub fn library() -> io::Result<PathBuf> {
    let program = env::current_exe()?;
    let found = program.ancestors().skip(1).take(2).map(|folder| folder.join(LIBRARY)).find(|path| path.exists());
    found.ok_or_else(|| io::Error::other(format!("{LIBRARY} was not found next to {}", program.display())))
}

/// Installs the fake driver into a folder, under the names by which programs open the driver; they find it if
/// `LD_LIBRARY_PATH` is set to the folder.
///
/// # Errors
/// If the library was not built, or the folder cannot be written.
pub fn install(folder: &Path) -> io::Result<()> {
    let library = library()?;
    fs::copy(&library, folder.join("libcuda.so.1"))?;
    // One file with two names, as installed by the driver's packages.
    fs::hard_link(folder.join("libcuda.so.1"), folder.join("libcuda.so"))
}
