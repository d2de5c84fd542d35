//! PTX text as instructions that can be run, and every reason why it cannot.

mod contract;
mod copy;
mod decode;
mod kernel;
mod matrix;
mod syntax;
mod target;
mod tensor;
mod wmma;

use std::fmt;

pub(crate) use copy::CopyStep;
pub(crate) use decode::SHARED_BASE;
pub(crate) use kernel::{
    Address, Alu, Comparison, Conversion, Instruction, Kernel, Kind, Module, Rounded, Source, Space, Special, Step,
    Type,
};
pub(crate) use matrix::{GroupMultiply, GroupOperand, Layout, MatrixOperand, Multiply, Scales};
pub(crate) use target::{Reach, Target, loads_on};
pub(crate) use tensor::{TensorKind, TensorMultiply, TensorStep};
pub(crate) use wmma::MatrixAccess;

/// Why PTX cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub line: usize,
    pub text: String,
}

impl Fault {
    pub(crate) fn new(line: usize, text: impl fmt::Display) -> Self {
        Self { line, text: text.to_string() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ptxas application ptx input, line {}; error   : {}", self.line, self.text)
    }
}

/// Reads a module and checks every statement of it.
pub(crate) fn compile(source: &str) -> Result<Module, Fault> {
    let text = syntax::read(source)?;
    let (version, _) = text.version.ok_or_else(|| Fault::new(1, "Missing .version directive at start of file"))?;
    let (target, line) = text.target.ok_or_else(|| Fault::new(1, "Missing .target directive"))?;
    let target =
        target::Target::parse(&target).ok_or_else(|| Fault::new(line, format!("Unknown target '{target}'")))?;
    let mut kernels = Vec::new();
    for entry in &text.entries {
        kernels.push(decode::kernel(entry, target, version)?);
    }
    Ok(Module { version, target, kernels })
}
