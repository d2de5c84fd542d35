//! `cp.async`: copies from global to shared memory, which arrive when they are waited for.

use super::{
    Fault,
    decoder::{Decoder, constant},
    kernel::{CopyStep, Instruction},
    value::{Space, Type},
};

/// Reads `cp.async.cg.shared.global [to], [from], 16`, `cp.async.commit_group` and `cp.async.wait_group N` (PTX ISA
/// 7.0 and sm_80, section 9.7.8.22).
pub(super) fn copy(decoder: &Decoder<'_>) -> Result<Instruction, Fault> {
    if decoder.version < 70 || decoder.target.number < 80 {
        return Err(decoder.fault("Instruction 'cp.async' requires .target sm_80 or higher and PTX 7.0"));
    }
    let number = |word: &str| constant(word, Type::U32);
    let words: Vec<&str> = decoder.statement.opcode[1..].iter().map(String::as_str).collect();
    let step = match words[..] {
        ["async", "commit_group"] => {
            decoder.operands(0)?;
            CopyStep::Commit
        }
        ["async", "wait_group"] => {
            let pending = number(decoder.word(&decoder.operands(1)?[0])?);
            CopyStep::Wait(pending.ok_or_else(|| decoder.fault("`cp.async.wait_group` takes a number"))?)
        }
        ["async", cached @ ("ca" | "cg"), "shared" | "shared::cta", "global"] => {
            let operands = decoder.operands(3)?;
            let bytes = number(decoder.word(&operands[2])?).unwrap_or(0) as usize;
            if !(bytes == 16 || cached == "ca" && [4, 8].contains(&bytes)) {
                return Err(decoder.fault(format!("`cp.async.{cached}` does not copy {bytes} bytes")));
            }
            let to = decoder.address(&operands[0], Space::Shared)?;
            CopyStep::Copy { bytes, to, from: decoder.address(&operands[1], Space::Global)? }
        }
        _ => return Err(decoder.unknown()),
    };
    Ok(Instruction::CopyAsync(Box::new(step)))
}
