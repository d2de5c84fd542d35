//! Kernels with loops, for timing and for whole matrices: the unit's instruction is their only matrix instruction, and
//! it is neither serialised nor spilled.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    process::Command,
};

use mxprobe_api::Issued;
use mxprobe_shaders::ptx::{Capability, KernelText};

use super::{assemble, mnemonics, tool};

/// The capabilities whose kernels are checked.
const LOOKED_AT: [(u32, u32); 5] = [(7, 0), (8, 0), (9, 0), (10, 0), (12, 0)];

/// Compares the instructions of kernels with a loop with those of the single-tile kernels: for each capability, one
/// kernel for each family, n, D, width of A, and kind of scaling. Returns the number of kernels compared.
pub(super) fn beside_one_tile(
    kernels: fn(Capability) -> Vec<KernelText>,
    compare: impl Fn(&str, &Issued, &Issued),
) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let mut assembled = 0;
    for (major, minor) in LOOKED_AT {
        let capability = Capability::new(major, minor);
        let once: BTreeMap<String, KernelText> =
            KernelText::all(capability).into_iter().map(|kernel| (kernel.id.to_string(), kernel)).collect();
        let mut seen = BTreeSet::new();
        for kernel in kernels(capability) {
            let id = &kernel.id;
            let kind = (id.family.clone(), id.shape.n, id.d.to_string(), id.a.storage_bytes());
            if !seen.insert((kind, id.block_scale().is_some())) {
                continue;
            }
            let issued = |kernel: &KernelText| {
                let cubin = assemble(kernel, capability, folder.path()).unwrap();
                mxprobe_cuda::issued(kernel.unit, &cubin, capability).unwrap()
            };
            compare(&format!("{id} on {capability}"), &issued(&once[&id.to_string()]), &issued(&kernel));
            assembled += 1;
        }
    }
    assembled
}

#[test]
#[cfg_attr(not(cuda_tools), ignore = "scripts/cuda-tools fetches the assembler")]
fn what_is_timed_holds_the_units_instruction_in_its_loop_and_is_not_serialised() {
    let assembled = beside_one_tile(KernelText::timed, |what, one, many| {
        assert_eq!(many.is_emulated(), one.is_emulated(), "{what}");
        // Eight in the main loop and one in the remainder loop; the assembler unrolls neither.
        for (name, count) in one.matrix.iter().filter(|_| one.routines.is_empty()) {
            // The assembler may share the conversions and products of an emulation among the eight: e4m3 on 9.0, where
            // all start from the same A and B, and C is added last.
            let least = if one.is_emulated() { 1 } else { 9 };
            let there = many.matrix.get(name).copied().unwrap_or(0);
            assert!(
                (least * count..=9 * count).contains(&there) && there.is_multiple_of(*count),
                "{what}: {name} {there} times, once {count}"
            );
        }
    });
    assert!(assembled > 40, "{assembled} kernels");
}

#[test]
#[cfg_attr(not(cuda_tools), ignore = "scripts/cuda-tools fetches the assembler")]
fn as_many_blocks_of_a_timed_kernel_fit_as_are_launched_whatever_compiles_it() {
    let folder = tempfile::tempdir().unwrap();
    let kernels = KernelText::timed(Capability::new(9, 0));
    for (name, registers) in [
        ("mma.m16n8k16.f64.f64.f64.f64.timed", 64),
        ("mma.m16n8k8.f64.f64.f64.f64.timed", 64),
        ("mma.m16n8k16.f32.f16.f16.f32.timed", 64),
        ("wgmma.m64n64k16.f32.f16.f16.f32.timed", 64),
        ("wgmma.m64n256k16.f32.f16.f16.f32.timed", 168),
    ] {
        let kernel = kernels.iter().find(|kernel| kernel.name == name).unwrap_or_else(|| panic!("{name}"));
        let source = folder.path().join("kernel.ptx");
        fs::write(&source, &kernel.ptx).unwrap();
        // Compiled for a linker, where it may be called, the kernel may use more registers than as a program.
        for way in [&[][..], &["-c"]] {
            let mut command = Command::new(tool("ptxas"));
            command.args(["-v", "-arch", kernel.target.name]).args(way).arg(&source);
            let said = command.arg("-o").arg(folder.path().join("code")).output().unwrap();
            let words = String::from_utf8_lossy(&said.stderr).into_owned() + &String::from_utf8_lossy(&said.stdout);
            let used =
                words.split_once("Used ").and_then(|(_, rest)| rest.split_whitespace().next()?.parse::<u32>().ok());
            assert!(used.is_some_and(|used| used <= registers), "{name} {way:?}: {words}");
        }
    }
}

#[test]
#[cfg_attr(not(cuda_tools), ignore = "scripts/cuda-tools fetches the assembler")]
fn kernels_of_whole_matrices_hold_the_units_instruction_and_no_other_and_are_not_serialised() {
    let assembled = beside_one_tile(KernelText::whole, |what, one, many| {
        // For a loop around `wmma`, the assembler emits a call to the end of the kernel, which is not a routine.
        let named =
            |issued: &Issued| issued.routines.iter().filter(|name| name.starts_with("__")).cloned().collect::<Vec<_>>();
        assert_eq!(named(many), named(one), "{what}");
        let names = |issued: &Issued| issued.matrix.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(many), names(one), "{what}");
        for (name, count) in &one.matrix {
            assert!(many.matrix[name].is_multiple_of(*count), "{what}: {name}");
        }
    });
    assert!(assembled > 30, "{assembled} kernels");
}

#[test]
#[cfg_attr(not(cuda_tools), ignore = "scripts/cuda-tools fetches the assembler")]
fn kernels_of_whole_matrices_load_wide_words_ahead_and_spill_nothing() {
    let disassembler = tool("nvdisasm");
    let folder = tempfile::tempdir().unwrap();
    let capability = Capability::new(9, 0);
    let kernels = KernelText::whole(capability);
    // The instruction and its count, and the load for its operands and the count of that.
    for (name, unit, count, load, loads) in [
        ("mma.m16n8k16.f32.f16.f16.f32.product4x8", "HMMA", 2 * 32, "LDG.E.128", 3 * 8),
        ("mma.m16n8k8.f32.tf32.tf32.f32.product4x8", "HMMA", 2 * 32, "LDG.E.128", 3 * 8),
        ("mma.m16n8k32.s32.s8.s8.s32.product4x8", "IMMA", 2 * 32, "LDG.E.128", 3 * 8),
        ("mma.m16n8k16.f64.f64.f64.f64.product2x4", "DMMA", 2 * 8, "LDG.E.128", 3 * 16),
        ("wgmma.m64n256k16.f32.f16.f16.f32.product2x1", "HGMMA", 1, "LDGSTS.E.BYPASS.128", 3 * 3),
        ("wgmma.m64n64k32.f32.e4m3.e4m3.f32.product2x4", "QGMMA", 4, "LDGSTS.E.BYPASS.128", 3 * 3),
    ] {
        let kernel = kernels.iter().find(|kernel| kernel.name == name).unwrap_or_else(|| panic!("{name}"));
        let file = folder.path().join("code.cubin");
        fs::write(&file, assemble(kernel, capability, folder.path()).unwrap()).unwrap();
        let said = Command::new(&disassembler).arg("-c").arg(&file).output().unwrap();
        let listing = String::from_utf8_lossy(&said.stdout);
        let found = mnemonics(&listing);
        assert_eq!(found.get(unit), Some(&count), "{name}: {found:?}");
        assert_eq!(listing.matches(&format!("{load} ")).count(), loads, "{name}: {found:?}");
        assert!(!found.contains_key("STL") && !found.contains_key("LDL"), "{name} spills: {found:?}");
    }
}
