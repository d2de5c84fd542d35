//! Every scalar function assembles for every architecture, and lowers to the instructions listed in
//! `backends/cuda/scalars.tsv`: if `mul` and `add` became one `FFMA`, the assembler contracted them.

use std::{collections::BTreeMap, fs, process::Command};

use mxprobe_api::Format;
use mxprobe_cuda::scalar_counts;
use mxprobe_shaders::ptx::{Capability, ScalarText};

use super::{CAPABILITIES, assemble_text, is_stored, lines, tool};

/// The lowering of each function, such as `FMUL*1 FADD*1`, by `ID FUNCTION`.
fn lowered(text: &ScalarText, cubin: &[u8], capability: Capability) -> BTreeMap<String, String> {
    let counts = scalar_counts(cubin, capability).unwrap();
    let words = |(entry, (id, function)): (&String, &(mxprobe_api::ScalarId, mxprobe_api::ScalarFunction))| {
        // For other formats the assembler only loads constants with it.
        let is_half = |format: Format| [Format::F16, Format::BF16].contains(&format);
        let has_halves = is_half(id.format) || is_half(function.result(id.format));
        let found = counts[entry].iter().filter(|(name, _)| has_halves || !name.starts_with("HFMA2"));
        let words: Vec<String> = found.map(|(name, count)| format!("{name}*{count}")).collect();
        let words = if words.is_empty() { "integer arithmetic".to_owned() } else { words.join(" ") };
        (format!("{id} {function}"), words)
    };
    text.entries.iter().map(words).collect()
}

#[test]
#[cfg_attr(not(cuda_tools), ignore = "scripts/cuda-tools fetches the assembler")]
fn every_scalar_function_lowers_as_the_table_says() {
    let folder = tempfile::tempdir().unwrap();
    let mut by_name: BTreeMap<String, Vec<(Capability, String)>> = BTreeMap::new();
    for (major, minor) in CAPABILITIES {
        let capability = Capability::new(major, minor);
        let text = ScalarText::all(capability);
        let cubin = assemble_text(&text.ptx, &capability.architecture(), "scalars", folder.path());
        let cubin = cubin.unwrap_or_else(|said| panic!("{capability}: {said}"));
        for (name, words) in lowered(&text, &cubin, capability) {
            by_name.entry(name).or_default().push((capability, words));
        }
    }
    let heading = "# scalar arithmetic and function\tarchitectures\twhat the assembler makes of its kernel\n";
    is_stored("scalars.tsv", &lines(heading, &by_name));
}

#[test]
#[cfg_attr(not(cuda_tools), ignore = "scripts/cuda-tools fetches the assembler")]
fn what_is_written_without_a_direction_is_contracted_and_what_has_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let capability = Capability::new(9, 0);
    let text = ScalarText::all(capability);
    let cubin = assemble_text(&text.ptx, "sm_90", "contracted", folder.path()).unwrap();
    let lowered = lowered(&text, &cubin, capability);
    for (name, words) in [
        ("scalar.f32 multiply_add", "FFMA*1"),
        ("scalar.f64 multiply_add", "DFMA*1"),
        ("scalar.bf16 multiply_add", "HFMA2*1"),
        ("scalar.f32.rne multiply_add", "FADD*1 FMUL*1"),
        ("scalar.f64.rne multiply_add", "DADD*1 DMUL*1"),
        ("scalar.bf16.rne add", "HADD2*1"),
        ("scalar.bf16.rne multiply", "HMUL2*1"),
        ("scalar.f32 fma", "FFMA*1"),
        ("scalar.f32 dot4.fma", "FFMA*4"),
    ] {
        assert_eq!(lowered[name], words, "{name}");
    }
}

#[test]
#[cfg_attr(not(cuda_tools), ignore = "scripts/cuda-tools fetches the assembler")]
fn scalar_opcodes_are_read_as_the_disassembler_reads_them() {
    let disassembler = tool("nvdisasm");
    let folder = tempfile::tempdir().unwrap();
    for architecture in ["sm_75", "sm_90", "sm_120"] {
        let digits = architecture.strip_prefix("sm_").unwrap();
        let (major, minor) = digits.split_at(digits.len() - 1);
        let capability = Capability::new(major.parse().unwrap(), minor.parse().unwrap());
        let text = ScalarText::all(capability);
        let cubin = assemble_text(&text.ptx, architecture, "read", folder.path()).unwrap();
        let file = folder.path().join("scalars.cubin");
        fs::write(&file, &cubin).unwrap();
        let said = Command::new(&disassembler).arg("-c").arg(&file).output().unwrap();
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        let mut theirs = super::mnemonics(&String::from_utf8_lossy(&said.stdout));
        let mut ours: BTreeMap<String, usize> = BTreeMap::new();
        for (name, count) in scalar_counts(&cubin, capability).unwrap().values().flatten() {
            *ours.entry((*name).to_owned()).or_default() += count;
        }
        let second = ours.remove("HFMA2.MMA").unwrap_or(0);
        *ours.entry("HFMA2".to_owned()).or_default() += second;
        theirs.retain(|name, _| ours.contains_key(name));
        assert_eq!(ours, theirs, "{architecture}");
        assert!(ours.len() > 10, "{ours:?}");
    }
}
