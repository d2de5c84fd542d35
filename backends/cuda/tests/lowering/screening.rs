//! Screening kernels: the unit's instruction in a chain, and a check that costs little beside it.

use std::{collections::BTreeSet, fs, process::Command};

use mxprobe_api::{Format, OperationId};
use mxprobe_shaders::ptx::{Capability, KernelText, Kind, instructions, layout::Layouts, screening};

use super::{assemble, loops::beside_one_tile, mnemonics, tool};

/// The number of instructions that the backend chains.
fn steps(id: &OperationId) -> f64 {
    if id.family == "wmma" { 1024.0 } else { 256.0 }
}

/// Cycles in which a quarter of a multiprocessor moves D of `wmma` through shared memory, which serves 32 words of the
/// four quarters in a cycle: as many words as the instruction says, and twice for stores, whose fragments have rows that
/// fall into the same banks.
fn moved(listing: &str) -> f64 {
    let words = |mnemonic: &str| -> f64 {
        let of = |line: &str| {
            let name = line.split_whitespace().find(|word| word.starts_with(mnemonic))?;
            Some(if name.contains(".128") {
                4.0
            } else if name.contains(".64") {
                2.0
            } else {
                1.0
            })
        };
        listing.lines().filter_map(of).sum()
    };
    4.0 * (2.0 * words("STS") + words("LDS"))
}

/// Multiply-adds of a multiprocessor in a cycle, from the peak rates, clocks and multiprocessors in NVIDIA's A100 and
/// H100 white papers.
fn multiply_adds(capability: Capability, id: &OperationId) -> f64 {
    let is_hopper = capability == Capability::new(9, 0);
    match id.a {
        Format::F64 if is_hopper => 128.0,
        Format::F64 => 64.0,
        Format::TF32 if is_hopper => 1024.0,
        Format::TF32 => 512.0,
        Format::S4 | Format::U4 => 4096.0,
        _ if id.a.bits() == 8 && is_hopper => 4096.0,
        _ if id.a.bits() == 8 || is_hopper => 2048.0,
        _ => 1024.0,
    }
}

#[test]
#[cfg_attr(not(cuda_tools), ignore = "scripts/cuda-tools fetches the assembler")]
fn screens_hold_the_units_instruction_in_a_chain_and_are_not_serialised() {
    let assembled = beside_one_tile(KernelText::screened, |what, one, many| {
        assert_eq!(many.is_emulated(), one.is_emulated(), "{what}");
        // Eight in the main loop and one in the remainder loop; one if C is not of D's format.
        for (name, count) in one.matrix.iter().filter(|_| one.routines.is_empty()) {
            let there = many.matrix.get(name).copied().unwrap_or(0);
            assert!((*count..=9 * count).contains(&there) && there.is_multiple_of(*count), "{what}: {name} {there}");
        }
    });
    assert!(assembled > 30, "{assembled} kernels");
}

#[test]
#[cfg_attr(not(cuda_tools), ignore = "scripts/cuda-tools fetches the assembler")]
fn checking_takes_three_instructions_a_word_and_less_than_a_twentieth_of_the_units_time() {
    let disassembler = tool("nvdisasm");
    let folder = tempfile::tempdir().unwrap();
    let mut worst = 0.0f64;
    let mut counted = 0;
    for capability in [Capability::new(8, 0), Capability::new(9, 0)] {
        let mut seen = BTreeSet::new();
        let of =
            |kernel: &KernelText| instructions().into_iter().find(|instruction| instruction.id == kernel.id).unwrap();
        for kernel in KernelText::screened(capability) {
            let id = &kernel.id;
            let instruction = of(&kernel);
            let kind = (id.family.clone(), id.shape.n, id.shape.k, id.d.to_string(), id.a.storage_bytes());
            // Volta's `m8n8k4` of f16 is emulated from 8.0 on, far below the peak rate.
            let is_emulated = instruction.kind == Kind::QuadPair;
            if is_emulated || !screening::is_chained(&instruction) || !seen.insert(kind) {
                continue;
            }
            let file = folder.path().join("code.cubin");
            fs::write(&file, assemble(&kernel, capability, folder.path()).unwrap()).unwrap();
            let said = Command::new(&disassembler).arg("-c").arg(&file).output().unwrap();
            let listing = String::from_utf8_lossy(&said.stdout);
            let threads = if id.family == "wgmma" { 128 } else { 32 };
            let layouts = Layouts::new(&instruction);
            let words = layouts.d.bytes() / threads / 4;
            // Exclusive or, rotation, product: no more, and none that the assembler could leave out.
            assert_eq!(listing.matches("SHF.L.W.U32.HI ").count(), words, "{}: {:?}", kernel.name, mnemonics(&listing));
            assert_eq!(listing.matches("-0x61c8864f").count(), words, "{}", kernel.name);
            // A quarter of a multiprocessor executes 16 lanes of each in a cycle (CUDA C++ Programming Guide, arithmetic
            // instructions), one after another at worst. Its part of the matrix unit is a quarter too, which serves one
            // warp of `mma` or the four warps of `wgmma`.
            let moved = if id.family == "wmma" { moved(&listing) } else { 0.0 };
            assert_eq!(moved > 0.0, id.family == "wmma", "{}", kernel.name);
            let check = (3 * words) as f64 * 32.0 / 16.0 + moved;
            let (m, n, k) = id.shape.sizes();
            let tiles = layouts.d.group() as f64;
            let products = (m * n * k) as f64 * tiles / (threads / 32) as f64;
            let unit = steps(id) * products / (multiply_adds(capability, id) / 4.0);
            assert!(check < 0.05 * unit, "{}: {check} of {unit} cycles", kernel.name);
            worst = worst.max(check / unit);
            counted += 1;
        }
    }
    eprintln!("{counted} kernels, at worst {:.2} %", worst * 100.0);
    assert!(counted > 30, "{counted} kernels");
}
