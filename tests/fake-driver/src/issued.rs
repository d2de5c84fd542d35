//! The operations of a kernel's matrix instructions.

use mxprobe_api::OperationId;

use crate::{
    machine,
    ptx::{Alu, Instruction, Kernel, Source, TensorMultiply, TensorStep},
};

/// The operations of a kernel's matrix instructions, in order; `None` for one that the text does not determine.
pub(crate) fn multiplies(kernel: &Kernel) -> impl Iterator<Item = Option<OperationId>> {
    kernel.steps.iter().filter_map(|step| match &step.instruction {
        Instruction::Multiply(multiply) => Some(Some(multiply.id.clone())),
        Instruction::GroupMultiply(multiply) => Some(Some(multiply.id.clone())),
        Instruction::Tensor(tensor) => match &**tensor {
            TensorStep::Multiply(multiply) => Some(described(kernel, multiply)),
            _ => None,
        },
        _ => None,
    })
}

/// The operation of a `tcgen05.mma` whose instruction descriptor is a constant in the text.
fn described(kernel: &Kernel, multiply: &TensorMultiply) -> Option<OperationId> {
    let Source::Register(register) = multiply.descriptor else { return None };
    let moved = kernel.steps.iter().find_map(|step| match step.instruction {
        Instruction::Compute { alu: Alu::Move, into, from: [Source::Constant(bits), ..], .. } if into == register => {
            Some(bits as u32)
        }
        _ => None,
    });
    machine::describe(multiply, moved?).ok().map(|described| described.id)
}
