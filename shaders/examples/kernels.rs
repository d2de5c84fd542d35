//! Writes the PTX of every operation of a compute capability, `kernels 9.0 DIRECTORY`: its kernel, the timed kernel
//! (`ID.timed.ptx`), and the kernels of whole matrices (`ID.product4x8.ptx`).
#![allow(clippy::print_stderr)]

use std::{env, fs, path::Path, process::ExitCode};

use mxprobe_shaders::ptx::{Capability, KernelText};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let capability = arguments.first().and_then(|text| text.split_once('.'));
    let capability = capability.and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    let (Some((major, minor)), Some(directory)) = (capability, arguments.get(1)) else {
        eprintln!("usage: kernels CAPABILITY DIRECTORY, such as kernels 9.0 ptx");
        return ExitCode::from(2);
    };
    let capability = Capability::new(major, minor);
    let kernels = [KernelText::all(capability), KernelText::timed(capability), KernelText::whole(capability)].concat();
    let write = |kernel: &KernelText| fs::write(Path::new(directory).join(format!("{}.ptx", kernel.name)), &kernel.ptx);
    let written = fs::create_dir_all(directory).and_then(|()| kernels.iter().try_for_each(write));
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{directory}: {error}");
            ExitCode::from(2)
        }
    }
}
