//! The command `mxprobe`.

use std::process::ExitCode;

fn main() -> ExitCode {
    mxprobe::Backends::included().main()
}
