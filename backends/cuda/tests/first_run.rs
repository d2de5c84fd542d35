//! Conditions that a first run on a real driver may meet, simulated by the fake one: errors that end a context, calls
//! that a linker makes absolute, targets that must be named, libraries under other names.
#![allow(missing_docs)]
#![cfg(target_os = "linux")]

mod fake;

use std::{env, fs};

use mxprobe_api::{
    Backend, Device, Elements, Error, Format, Load, Operation, ScalarFunction, Span, TileBatch, call, loaded_library,
    time,
};
use mxprobe_cuda::{CudaBackend, CudaDevice};

use fake::{in_folder, on_fake_driver};

fn device() -> CudaDevice {
    let (mut devices, refusals) = CudaBackend::new().devices();
    assert_eq!(devices.len(), 1, "{refusals:?}");
    devices.remove(0)
}

fn operation(device: &CudaDevice, id: &str) -> Operation {
    device.operations()[&id.parse().unwrap()].clone()
}

/// Runs one tile of zeros through an operation.
fn execute(device: &CudaDevice, id: &str) -> Result<Elements, Error> {
    let operation = operation(device, id);
    let batch = TileBatch::zeros(&operation, 1);
    device.execute(&operation, &batch)
}

fn add(device: &CudaDevice) -> Result<Elements, Error> {
    let scalar =
        device.scalars().unwrap().members().iter().find(|scalar| scalar.id.to_string() == "scalar.f32.rz").unwrap();
    call(device, scalar, ScalarFunction::Add, &Elements::from_bits(Format::F32, [0x3f80_0000; 6]))
}

const MMA: &str = "mma.m16n8k16.f32.f16.f16.f32";
const WGMMA: &str = "wgmma.m64n8k16.f32.f16.f16.f32";
const NIBBLES: &str = "mma.m16n8k32.s32.s4.s4.s32";

#[test]
fn an_error_that_ends_the_context_is_a_lost_device() {
    // LAUNCH_TIMEOUT, CONTAINED, ASSERT, TENSOR_MEMORY_LEAK, EXTERNAL_DEVICE, UNKNOWN.
    for code in ["702", "226", "710", "721", "911", "999"] {
        on_fake_driver("loses_the_device", &[("MXPROBE_FAKE_FAULT", "launch-async"), ("MXPROBE_FAKE_ERROR", code)]);
        on_fake_driver("loses_the_device", &[("MXPROBE_FAKE_FAULT", "device-lost"), ("MXPROBE_FAKE_ERROR", code)]);
    }
}

#[test]
#[ignore = "another test runs it on the fake driver"]
fn loses_the_device() {
    let device = device();
    let code = env::var("MXPROBE_FAKE_ERROR").unwrap();
    let error = add(&device).unwrap_err();
    assert!(error.is_device_lost() && error.to_string().contains(&format!("({code})")), "{error}");
    let error = execute(&device, MMA).unwrap_err();
    assert!(error.is_device_lost(), "whatever comes next is lost too: {error}");
}

#[test]
fn an_error_that_leaves_the_context_as_it_was_is_of_one_launch() {
    // LAUNCH_OUT_OF_RESOURCES, UNKNOWN.
    for code in ["701", "999"] {
        on_fake_driver("keeps_the_device", &[("MXPROBE_FAKE_FAULT", "launch"), ("MXPROBE_FAKE_ERROR", code)]);
    }
}

#[test]
#[ignore = "another test runs it on the fake driver"]
fn keeps_the_device() {
    let error = add(&device()).unwrap_err();
    assert!(!error.is_device_lost() && error.to_string().contains("cuLaunchKernel returned"), "{error}");
}

#[test]
fn a_routine_is_found_however_it_is_called_and_whatever_names_it() {
    for linker in ["ptxas", "absolute", "stripped", "bare"] {
        on_fake_driver("reads_an_emulation", &[("MXPROBE_FAKE_LINKER", linker)]);
    }
}

#[test]
#[ignore = "another test runs it on the fake driver"]
fn reads_an_emulation() {
    let device = device();
    let issued = device.code().unwrap().issued(&operation(&device, NIBBLES)).unwrap().unwrap();
    let named = match env::var("MXPROBE_FAKE_LINKER").as_deref() {
        Ok("bare") => "a routine whose name the driver took out",
        _ => "__cuda_sm_9x_mma_sub_byte_internal_m16n8k32_s4_s4",
    };
    assert!(issued.is_emulated() && issued.routines == [named], "{issued:?}");
    assert_eq!((issued.matrix.get("IMMA"), issued.others.get("CALL")), (Some(&2), Some(&1)), "{issued:?}");
    let native = device.code().unwrap().issued(&operation(&device, MMA)).unwrap().unwrap();
    assert!(!native.is_emulated(), "{native:?}");
}

#[test]
fn a_target_that_the_linker_takes_only_by_name_is_named() {
    on_fake_driver("multiplies_with_a_cubin", &[("MXPROBE_FAKE_JIT", "explicit-target")]);
}

#[test]
#[ignore = "another test runs it on the fake driver"]
fn multiplies_with_a_cubin() {
    let device = device();
    execute(&device, WGMMA).unwrap();
    let issued = device.code().unwrap().issued(&operation(&device, WGMMA)).unwrap().unwrap();
    assert!(!issued.is_emulated() && issued.code_sha256.is_some(), "{issued:?}");
}

#[test]
fn a_text_that_no_linker_takes_is_loaded_and_shows_no_code() {
    on_fake_driver("multiplies_without_a_cubin", &[("MXPROBE_FAKE_JIT", "load-only")]);
}

#[test]
#[ignore = "another test runs it on the fake driver"]
fn multiplies_without_a_cubin() {
    let device = device();
    execute(&device, WGMMA).unwrap();
    let error = device.code().unwrap().issued(&operation(&device, WGMMA)).unwrap_err();
    let words = error.to_string();
    assert!(error.is_unsupported() && words.contains("shows no machine code"), "{error}");
    assert!(words.contains("PTX with .target 'sm_90a' cannot be compiled for architecture 'sm_90'"), "{error}");
    assert!(device.code().unwrap().issued(&operation(&device, MMA)).unwrap().is_some(), "other targets have one");
}

#[test]
fn an_error_in_the_log_counts_though_the_call_succeeds() {
    on_fake_driver("notices_the_log", &[("MXPROBE_FAKE_FAULT", "error-in-log")]);
}

#[test]
#[ignore = "another test runs it on the fake driver"]
fn notices_the_log() {
    let error = execute(&device(), MMA).unwrap_err();
    assert!(error.to_string().contains("cuLink succeeded with an error in its log"), "{error}");
}

#[test]
fn freed_memory_stays_in_the_pool_and_results_are_filled_on_the_device() {
    on_fake_driver("counts_copies", &[]);
}

/// Reads a counter of the fake driver: 0 counts the bytes copied to it, 1 the bytes that its pool keeps.
fn counted(which: i32) -> u64 {
    let path = loaded_library("libcuda.so").expect("the fake driver is loaded");
    // SAFETY: the library is loaded already, and its initialisers are Rust's.
    let library = unsafe { libloading::Library::new(path) }.unwrap();
    // SAFETY: the function has this type.
    let count = unsafe { library.get::<unsafe extern "C" fn(i32) -> u64>(b"mxprobe_fake_driver_count") }.unwrap();
    // SAFETY: it takes any number.
    unsafe { count(which) }
}

#[test]
#[ignore = "another test runs it on the fake driver"]
fn counts_copies() {
    add(&device()).unwrap();
    assert_eq!(counted(0), 6 * 4, "the operands, and nothing else");
    assert_eq!(counted(1), u64::MAX, "the pool keeps everything");
}

#[test]
fn operands_of_a_measurement_are_copied_once() {
    on_fake_driver("times_again", &[]);
}

#[test]
#[ignore = "another test runs it on the fake driver"]
fn times_again() {
    let device = device();
    let operation = operation(&device, WGMMA);
    let mut operands = TileBatch::zeros(&operation, 3);
    let copied = |operands: &TileBatch, steps: u64, span: Span| {
        let before = counted(0);
        let timed = time(&device, &operation, &Load { operands, steps, span }).unwrap();
        assert!(timed.elapsed_ns > 0.0);
        (counted(0) - before, timed.d)
    };
    // At least one tile each of A, B and C.
    let (first, zeros) = copied(&operands, 1, Span::One);
    assert!(first >= (64 * 16 + 16 * 8) * 2 + 64 * 8 * 4, "{first} bytes");
    for steps in [1, 2, 5] {
        assert_eq!(copied(&operands, steps, Span::One).0, 0, "{steps} steps");
    }
    assert!(copied(&operands, 1, Span::All).0 > first);
    assert_eq!(copied(&operands, 7, Span::All).0, 0);
    operands.c.set(0, 0x3f80_0000);
    let (other, ones) = copied(&operands, 1, Span::One);
    assert!(other == first && ones != zeros, "other operands are copied, and computed with");
}

#[test]
fn kernels_are_kept_where_the_variable_says() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("a/new folder");
    let environment = [("MXPROBE_DUMP", kept.to_str().unwrap())];
    on_fake_driver("multiplies_with_a_cubin", &environment);
    let files = || {
        let mut names: Vec<String> =
            fs::read_dir(&kept).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let names = files();
    let extensions: Vec<&str> = names.iter().map(|name| name.rsplit('.').next().unwrap()).collect();
    assert_eq!(extensions, ["cubin", "log", "ptx"], "{names:?}");
    assert!(names.iter().all(|name| name.starts_with(&format!("{WGMMA}."))), "{names:?}");
    let content = |at: usize| fs::read(kept.join(&names[at])).unwrap();
    assert!(content(0).starts_with(b"\x7fELF") && content(2).starts_with(b".version 8.0"));
    let log = String::from_utf8(content(1)).unwrap();
    assert!(log.contains("compiled by mxprobe's fake driver"), "{log}");
    // With the same kernels again, existing files are not rewritten.
    fs::write(kept.join(&names[1]), "a note of somebody's").unwrap();
    on_fake_driver("multiplies_with_a_cubin", &environment);
    assert_eq!((files(), content(1)), (names.clone(), b"a note of somebody's".to_vec()));
    // A compiler that refuses the text produces a log, but no code.
    let refused = folder.path().join("refused");
    let environment = [("MXPROBE_DUMP", refused.to_str().unwrap()), ("MXPROBE_FAKE_JIT", "load-only")];
    on_fake_driver("loads_wgmma", &environment);
    let names: Vec<_> = fs::read_dir(&refused).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
}

#[test]
#[ignore = "another test runs it on the fake driver"]
fn loads_wgmma() {
    execute(&device(), WGMMA).unwrap();
}

#[test]
fn a_folder_for_kernels_that_cannot_be_made_is_one_clear_refusal() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    on_fake_driver("refuses_the_folder", &[("MXPROBE_DUMP", file.join("inside").to_str().unwrap())]);
}

#[test]
#[ignore = "another test runs it on the fake driver"]
fn refuses_the_folder() {
    let found = CudaBackend::new().discover();
    let words = found.refusals[0].reason.to_string();
    assert!(found.devices.is_empty() && found.refusals.len() == 1, "{words}");
    assert!(words.contains("MXPROBE_DUMP=") && words.contains("file/inside"), "{words}");
}

#[test]
fn a_library_without_the_uuid_of_a_device_is_refused_by_that_name() {
    let folder = tempfile::tempdir().unwrap();
    let mut library = fs::read(mxprobe_fake_driver::library().unwrap()).unwrap();
    let (name, other) = (b"\0cuDeviceGetUuid\0", b"\0cuDeviceGetUu1d\0");
    let places: Vec<usize> = (0..library.len() - name.len()).filter(|at| library[*at..].starts_with(name)).collect();
    assert!(!places.is_empty());
    places.iter().for_each(|at| library[*at..][..name.len()].copy_from_slice(other));
    fs::write(folder.path().join("libcuda.so.1"), library).unwrap();
    in_folder(folder.path(), "refuses_the_library", &[]);
}

#[test]
#[ignore = "another test runs it on the fake driver"]
fn refuses_the_library() {
    let found = CudaBackend::new().discover();
    assert!(found.devices.is_empty() && found.refusals.len() == 1);
    let words = found.refusals[0].reason.to_string();
    assert!(words.contains("lacks 1 of ") && words.contains("cuDeviceGetUuid"), "{words}");
}

#[test]
fn the_drivers_soname_wins_over_a_stub() {
    let folder = tempfile::tempdir().unwrap();
    mxprobe_fake_driver::install(folder.path()).unwrap();
    // A library that opens but is not a driver, under the name of a toolkit's stub.
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let other = maps.split_whitespace().find(|word| word.contains("/libc.so")).expect("this program has a C library");
    fs::remove_file(folder.path().join("libcuda.so")).unwrap();
    fs::copy(other, folder.path().join("libcuda.so")).unwrap();
    in_folder(folder.path(), "finds_the_driver", &[]);
}

#[test]
#[ignore = "another test runs it on the fake driver"]
fn finds_the_driver() {
    let device = device();
    add(&device).unwrap();
    let library = device.info().properties.get("driver_library").unwrap();
    assert!(library.ends_with("libcuda.so.1"), "{library}");
}
