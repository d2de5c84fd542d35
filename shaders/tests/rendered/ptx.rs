//! The PTX kernels that are shown.

use std::collections::BTreeSet;

use mxprobe_api::{Format, ScalarFunction};
use mxprobe_shaders::ptx::layout::Layouts;
use mxprobe_shaders::ptx::product::{self, ProductKernels};
use mxprobe_shaders::ptx::{
    Capability, ENTRY, Instruction, Steps, Target, instructions, kernel, scalar, screening, throughput_loop,
};

use crate::{Files, add, compare};

/// One of each architecture.
const CAPABILITIES: [(u32, u32); 8] = [(7, 0), (7, 5), (8, 0), (8, 9), (9, 0), (10, 0), (11, 0), (12, 0)];

/// Each instruction, for the first architecture that has it.
fn offered() -> impl Iterator<Item = (Instruction, Target)> {
    instructions().into_iter().map(|instruction| {
        let on = |(major, minor)| instruction.availability.target(Capability::new(major, minor));
        let target = CAPABILITIES.into_iter().find_map(on);
        let target = target.unwrap_or_else(|| panic!("{} is on no architecture", instruction.id));
        (instruction, target)
    })
}

/// A kernel without the parts that its operation's name determines: the version, the instruction, the formats of `wmma`
/// and the descriptor of `tcgen05`. Two kernels have the same form if nothing else differs.
fn form(text: &str, instruction: &Instruction) -> String {
    let without_formats = |line: &str| match line.split_once(".global.") {
        Some((access, operands)) if line.trim_start().starts_with("wmma.") => {
            format!("{access}{}", operands.split_once(' ').expect("operands").1)
        }
        _ if line.trim_start().starts_with("mov.u32 %descriptor,") => String::new(),
        _ => line.to_owned(),
    };
    let lines = text.lines().filter(|line| !line.starts_with(".version") && !line.starts_with(".target"));
    let lines: Vec<String> = lines.map(|line| without_formats(&line.replace(&instruction.text, ""))).collect();
    lines.join("\n")
}

/// Every form of one multiplication, shown for the first operation that has it.
fn tiles(files: &mut Files) {
    let mut seen = BTreeSet::new();
    for (instruction, target) in offered() {
        let text = kernel(&instruction, &Layouts::new(&instruction), target, Steps::One).text;
        if seen.insert(form(&text, &instruction)) {
            add(files, &format!("tiles/{}.ptx", instruction.id), text);
        }
    }
}

/// The loop around an instruction of each kind, with and without scales, and the loop of the scalar units.
fn throughput(files: &mut Files) {
    let mut seen = Vec::new();
    for (instruction, target) in offered().filter(|(instruction, _)| instruction.id.c == instruction.id.d) {
        let layouts = Layouts::new(&instruction);
        let kind = (instruction.kind, layouts.scales.is_some());
        if !seen.contains(&kind) {
            seen.push(kind);
            let text = kernel(&instruction, &layouts, target, Steps::Many).text;
            add(files, &format!("throughput/{}.ptx", instruction.id), text);
        }
    }
    add(files, "throughput/fma.m1n1k1.f32.f32.f32.f32.ptx", throughput_loop::fma().text);
}

/// The screening kernel of an instruction of each kind, width of sums, with and without scales and a chain.
fn screening_kernels(files: &mut Files) {
    let mut seen = Vec::new();
    for (instruction, target) in offered() {
        let layouts = Layouts::new(&instruction);
        let Some(kernel) = screening::kernel(&instruction, &layouts, target) else { continue };
        let is_wide = instruction.id.d.bits() == 64;
        let kind = (instruction.kind, layouts.scales.is_some(), screening::is_chained(&instruction), is_wide);
        if !seen.contains(&kind) {
            seen.push(kind);
            add(files, &format!("screening/{}.ptx", instruction.id), kernel.text);
        }
    }
}

/// Whole matrices by an instruction of each kind, width of sums and, for `wgmma`, n: the largest and the smallest block
/// of D.
fn products(files: &mut Files) {
    let mut seen = Vec::new();
    for (instruction, target) in offered() {
        let Some(kernels) = ProductKernels::new(&instruction) else { continue };
        let n = (instruction.id.family == "wgmma").then_some(instruction.id.shape.n);
        let kind = (instruction.kind, instruction.id.d.bits(), n);
        if seen.contains(&kind) {
            continue;
        }
        seen.push(kind);
        let mut ends = vec![kernels.blocks()[0], kernels.blocks()[kernels.blocks().len() - 1]];
        ends.dedup();
        for block in ends {
            let name = format!("products/{}.ptx", product::name(&instruction.id, block));
            add(files, &name, kernels.kernel(&instruction, target, block).kernel.text);
        }
    }
}

/// Every function of f32 without a mode, and one function of every other format and mode.
fn scalars(files: &mut Files) {
    let mut seen = BTreeSet::new();
    let kernels = scalar::kernels(Capability::new(9, 0));
    for kernel in kernels {
        let is_plain = kernel.id.to_string() == "scalar.f32";
        // `mul` then `add`, contracted in some formats but not in others, is shown for every format.
        let is_shown = is_plain
            || kernel.function == ScalarFunction::MultiplyAdd && kernel.id.format != Format::F32
            || seen.insert(kernel.id.to_string());
        if is_shown {
            add(files, &format!("scalars/{}.{}.ptx", kernel.id, kernel.function), kernel.text(ENTRY));
        }
    }
}

#[test]
fn every_form_of_ptx_is_as_rendered() {
    let mut files = Files::new();
    tiles(&mut files);
    throughput(&mut files);
    products(&mut files);
    screening_kernels(&mut files);
    scalars(&mut files);
    compare("ptx", &files);
}
