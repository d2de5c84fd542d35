//! `tcgen05` and `mbarrier`: the statements of kernels that use tensor memory.

use super::{
    Fault,
    decoder::{Decoder, constant},
    kernel::Instruction,
    multiply::{TensorKind, TensorMultiply, TensorScales, TensorStep},
    syntax::Operand,
    value::{Source, Space, Type},
};

fn step(step: TensorStep) -> Result<Instruction, Fault> {
    Ok(Instruction::Tensor(Box::new(step)))
}

/// Reads `mbarrier.…`.
pub(super) fn barrier(decoder: &Decoder<'_>) -> Result<Instruction, Fault> {
    let opcode: Vec<&str> = decoder.statement.opcode.iter().map(String::as_str).collect();
    match opcode[1..] {
        ["init", "shared" | "shared::cta", "b64"] => {
            let operands = decoder.operands(2)?;
            let barrier = decoder.address(&operands[0], Space::Shared)?;
            step(TensorStep::Initialise { barrier, count: decoder.source(decoder.word(&operands[1])?, Type::B32)? })
        }
        ["try_wait", "parity", "shared" | "shared::cta", "b64"] => {
            let operands = decoder.operands(3)?;
            let into = decoder.predicate(decoder.word(&operands[0])?)?;
            let barrier = decoder.address(&operands[1], Space::Shared)?;
            step(TensorStep::TryWait { into, barrier, parity: decoder.source(decoder.word(&operands[2])?, Type::B32)? })
        }
        _ => Err(decoder.unknown()),
    }
}

/// Reads `tcgen05.…`.
pub(super) fn tensor(decoder: &Decoder<'_>) -> Result<Instruction, Fault> {
    let opcode: Vec<&str> = decoder.statement.opcode.iter().map(String::as_str).collect();
    if ![100, 103, 107, 110].iter().any(|number| decoder.target.has_features_of(*number)) || decoder.version < 86 {
        let text = format!("Feature '{}' requires .target sm_100a or higher and .version 8.6", opcode.join("."));
        return Err(decoder.fault(text));
    }
    let columns = |operand: &Operand| {
        let count = constant(decoder.word(operand)?, Type::B32).and_then(|count| u32::try_from(count).ok());
        let count = count.filter(|count| count.is_power_of_two() && (32..=512).contains(count));
        count.ok_or_else(|| decoder.fault("columns are a power of two from 32 to 512"))
    };
    match opcode[1..] {
        ["alloc", "cta_group::1", "sync", "aligned", "shared::cta", "b32"] => {
            let operands = decoder.operands(2)?;
            let slot = decoder.address(&operands[0], Space::Shared)?;
            step(TensorStep::Allocate { slot, columns: columns(&operands[1])? })
        }
        ["dealloc", "cta_group::1", "sync", "aligned", "b32"] => {
            let operands = decoder.operands(2)?;
            let start = decoder.source(decoder.word(&operands[0])?, Type::B32)?;
            step(TensorStep::Free { start, columns: columns(&operands[1])? })
        }
        ["relinquish_alloc_permit", "cta_group::1", "sync", "aligned"]
        | ["fence::before_thread_sync" | "fence::after_thread_sync"] => {
            decoder.operands(0).map(|_| Instruction::Nothing)
        }
        ["wait::st", "sync", "aligned"] => step(TensorStep::WaitStores),
        ["wait::ld", "sync", "aligned"] => step(TensorStep::WaitLoads),
        ["st", "sync", "aligned", "32x32b", count, "b32"] => {
            let operands = decoder.operands(2)?;
            let address = decoder.address(&operands[0], Space::Shared)?;
            step(TensorStep::Store { address, from: registers(decoder, count, &operands[1])? })
        }
        ["ld", "sync", "aligned", "32x32b", count, "b32"] => {
            let operands = decoder.operands(2)?;
            let address = decoder.address(&operands[1], Space::Shared)?;
            step(TensorStep::Load { address, into: registers(decoder, count, &operands[0])? })
        }
        ["commit", "cta_group::1", "mbarrier::arrive::one", "shared::cluster", "b64"]
        | ["commit", "cta_group::1", "mbarrier::arrive::one", "b64"] => {
            let barrier = decoder.address(&decoder.operands(1)?[0], Space::Shared)?;
            step(TensorStep::Commit { barrier })
        }
        ["mma", "cta_group::1", kind] => {
            let kind = match kind {
                "kind::f16" => TensorKind::F16,
                "kind::tf32" => TensorKind::Tf32,
                "kind::f8f6f4" => TensorKind::F8F6F4,
                "kind::i8" if decoder.target.has_features_of(103) => {
                    return Err(decoder.fault("`.kind::i8` is not supported on sm_103a"));
                }
                "kind::i8" => TensorKind::I8,
                _ => return Err(decoder.unknown()),
            };
            multiply(decoder, kind, None)
        }
        ["mma", "cta_group::1", kind, "block_scale", ref size @ ..] => {
            let (kind, count) = block_scaled(kind, size).ok_or_else(|| decoder.unknown())?;
            // PTX ISA 9.0, 9.7.16.10.9: kind::mxf4nvf4 exists since 8.7.
            if kind == TensorKind::MxF4NvF4 && decoder.version < 87 {
                return Err(decoder.fault("`.kind::mxf4nvf4` requires PTX ISA .version 8.7 or later"));
            }
            multiply(decoder, kind, Some(count))
        }
        _ => Err(decoder.unknown()),
    }
}

/// The kind, and the number of scales of a row or column (PTX ISA 9.0, 9.7.16.10.9.1): one for mxf8f6f4 (32 k), two for
/// mxf4, two or four for mxf4nvf4, which must state its size.
fn block_scaled(kind: &str, size: &[&str]) -> Option<(TensorKind, u32)> {
    match (kind, size) {
        ("kind::mxf8f6f4", [] | ["scale_vec::1X"]) => Some((TensorKind::MxF8F6F4, 1)),
        ("kind::mxf4", [] | ["scale_vec::2X"]) => Some((TensorKind::MxF4, 2)),
        ("kind::mxf4nvf4", ["scale_vec::2X"]) => Some((TensorKind::MxF4NvF4, 2)),
        ("kind::mxf4nvf4", ["scale_vec::4X"]) => Some((TensorKind::MxF4NvF4, 4)),
        _ => None,
    }
}

/// Reads the operands: D, A, B and the instruction descriptor, then the addresses of scales, then whether D is added.
fn multiply(decoder: &Decoder<'_>, kind: TensorKind, scales: Option<u32>) -> Result<Instruction, Fault> {
    let operands = decoder.operands(if scales.is_some() { 7 } else { 5 })?;
    let address = |operand| decoder.address(operand, Space::Shared);
    let scales = match scales {
        Some(count) => Some(TensorScales { count, a: address(&operands[4])?, b: address(&operands[5])? }),
        None => None,
    };
    step(TensorStep::Multiply(TensorMultiply {
        kind,
        d: address(&operands[0])?,
        a: decoder.source(decoder.word(&operands[1])?, Type::B64)?,
        b: decoder.source(decoder.word(&operands[2])?, Type::B64)?,
        descriptor: decoder.source(decoder.word(&operands[3])?, Type::B32)?,
        scales,
        adds: Source::Register(decoder.predicate(decoder.word(&operands[operands.len() - 1])?)?),
    }))
}

/// Reads `x8` and eight registers.
fn registers(decoder: &Decoder<'_>, count: &str, operand: &Operand) -> Result<Vec<usize>, Fault> {
    let wanted = count.strip_prefix('x').and_then(|count| count.parse::<usize>().ok());
    let wanted = wanted.filter(|count| count.is_power_of_two() && *count <= 128).ok_or_else(|| decoder.unknown())?;
    let found = decoder.vector(operand, 32)?;
    if found.len() != wanted {
        return Err(decoder.fault(format!("`.{count}` takes {wanted} registers, not {}", found.len())));
    }
    Ok(found)
}
