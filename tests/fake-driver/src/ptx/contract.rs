//! Contraction: a product and a sum without a rounding modifier become one fused multiply-add, as ptxas does by default
//! (*measured*: ptxas 12.8 and 13.5, `backends/cuda/scalars.tsv`).

use super::{
    kernel::{Alu, Function, Instruction, Step},
    value::Source,
};

/// Fuses each sum with a product that nothing else reads, with that of the first operand if both are products. `free`
/// says which steps may take part.
///
/// The step of the product stays, and its result is not read.
pub(super) fn contract(steps: &mut [Step], free: &[bool]) {
    for at in 0..steps.len() {
        let Some((Alu::Float(Function::Add, how), _, [a, b, _])) = compute(&steps[at]).filter(|_| free[at]) else {
            continue;
        };
        let fused = [(a, b), (b, a)].into_iter().find_map(|(product, other)| {
            let Source::Register(register) = product else { return None };
            let (Alu::Float(Function::Multiply, of), from, [x, y, _]) = written(steps, at, register, free)? else {
                return None;
            };
            (of == how && other != product && is_read_once(steps, at, from, register)).then_some([x, y, other])
        });
        if let (Some(operands), Instruction::Compute { alu, from, .. }) = (fused, &mut steps[at].instruction) {
            *alu = Alu::Float(Function::FusedMultiplyAdd, how);
            *from = operands;
        }
    }
}

/// The function, the result register and the operands of arithmetic that every lane executes.
fn compute(step: &Step) -> Option<(Alu, usize, [Source; 3])> {
    match &step.instruction {
        Instruction::Compute { alu, into, from, .. } if step.guard.is_none() => Some((*alu, *into, *from)),
        _ => None,
    }
}

/// The function, position and operands of the free step that wrote a register before a step, if only arithmetic lies
/// between and its operands have not changed.
fn written(steps: &[Step], before: usize, register: usize, free: &[bool]) -> Option<(Alu, usize, [Source; 3])> {
    let mut changed = Vec::new();
    for at in (0..before).rev() {
        let (alu, into, from) = compute(&steps[at])?;
        if into == register {
            let is_same = from.iter().all(|source| !matches!(source, Source::Register(one) if changed.contains(one)));
            return (free[at] && is_same).then_some((alu, at, from));
        }
        changed.push(into);
    }
    None
}

/// Whether only one other step reads a register that a step wrote, before it is written again or the kernel stores.
fn is_read_once(steps: &[Step], reader: usize, writer: usize, register: usize) -> bool {
    for (at, step) in steps.iter().enumerate().skip(writer + 1) {
        match compute(step) {
            Some((_, into, from)) => {
                if at != reader && from.contains(&Source::Register(register)) {
                    return false;
                }
                if into == register && at >= reader {
                    return true;
                }
            }
            None => {
                let Instruction::Store { from, .. } = &step.instruction else { return false };
                return !from.contains(&Source::Register(register));
            }
        }
    }
    true
}
