//! Compiles PTX text to executable instructions, or reports why it cannot.

mod access;
mod contract;
mod copy;
mod decode;
mod decoder;
mod fault;
mod kernel;
mod matrix;
mod multiply;
mod names;
mod scalar;
mod syntax;
mod target;
mod tensor;
mod value;
mod wmma;

pub(crate) use fault::Fault;
pub(crate) use kernel::{
    Alu, Comparison, Conversion, CopyStep, Elementary, Function, Instruction, Kernel, Module, Rounded, Step,
};
pub(crate) use multiply::{
    GroupMultiply, GroupOperand, Layout, MatrixAccess, MatrixOperand, Multiply, Scales, TensorKind, TensorMultiply,
    TensorStep,
};
pub(crate) use names::SHARED_BASE;
pub(crate) use target::{Reach, Target, loads_on};
pub(crate) use value::{Address, Kind, Source, Space, Special, Type};

/// Compiles a module and checks its every statement.
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
