//! Writes the PTX of every operation of a compute capability: `kernels 9.0 DIRECTORY`.
#![allow(clippy::print_stderr)]

use std::{env, fs, path::Path, process::ExitCode};

use mxprobe_cuda::{Capability, KernelText};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let capability = arguments.first().and_then(|text| text.split_once('.'));
    let capability = capability.and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    let (Some((major, minor)), Some(directory)) = (capability, arguments.get(1)) else {
        eprintln!("usage: kernels CAPABILITY DIRECTORY, such as kernels 9.0 ptx");
        return ExitCode::from(2);
    };
    let written = fs::create_dir_all(directory).and_then(|()| {
        KernelText::all(Capability::new(major, minor))
            .iter()
            .try_for_each(|kernel| fs::write(Path::new(directory).join(format!("{}.ptx", kernel.id)), &kernel.ptx))
    });
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{directory}: {error}");
            ExitCode::from(2)
        }
    }
}
