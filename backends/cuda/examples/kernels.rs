//! Writes the PTX of every operation of a compute capability, `kernels 9.0 DIRECTORY`: its kernel, the one that is timed
//! (`ID.timed.ptx`), and the one of whole matrices (`ID.product.ptx`).
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
    let capability = Capability::new(major, minor);
    let kinds = [
        (KernelText::all(capability), ""),
        (KernelText::timed(capability), ".timed"),
        (KernelText::whole(capability), ".product"),
    ];
    let write = |(kernel, kind): (&KernelText, &str)| {
        fs::write(Path::new(directory).join(format!("{}{kind}.ptx", kernel.id)), &kernel.ptx)
    };
    let mut all = kinds.iter().flat_map(|(kernels, kind)| kernels.iter().map(move |kernel| (kernel, *kind)));
    let written = fs::create_dir_all(directory).and_then(|()| all.try_for_each(write));
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{directory}: {error}");
            ExitCode::from(2)
        }
    }
}
