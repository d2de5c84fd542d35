//! `mma.sync`: one warp, operands and sums in registers; the f16 `m8n8k4` computes four tiles at a time.

use mxprobe_api::{Format, OperationId};

use super::capability::{Availability, Target};
use super::instruction::{
    ADA, ADA_8_7, AMPERE, CONSUMER_BLACKWELL, CONSUMER_BLACKWELL_9_1, HOPPER, Instruction, Kind, SMALL, TURING, VOLTA,
    pairs,
};
use super::layout::Layouts;
use super::text::{Body, Kernel, Operand, module, pointer, warp_loop, warp_loop_end};
use super::throughput_loop::Steps;

/// Every form except the sparse ones and those with 1-bit operands.
pub(super) fn instructions(table: &mut Vec<Instruction>) {
    halves(table);
    doubles(table);
    integers(table);
    small_floats(table);
    block_scaled(table);
}

fn form(id: OperationId, modifiers: &str, unit: &'static str, availability: Availability) -> Instruction {
    let OperationId { shape, d, a, b, c, .. } = &id;
    let text = format!("mma.sync.aligned.{shape}.row.col{modifiers}.{d}.{a}.{b}.{c}");
    Instruction { id, kind: Kind::Warp, text, unit, availability }
}

/// f16, bf16 and tf32.
fn halves(table: &mut Vec<Instruction>) {
    let (f16, f32) = (Format::F16, Format::F32);
    for (d, c) in [(f16, f16), (f32, f16), (f32, f32)] {
        let id = OperationId::new("mma", (8, 8, 4), d, f16, f16, c);
        table.push(Instruction { kind: Kind::QuadPair, ..form(id, "", "HMMA", VOLTA) });
    }
    for d in [f16, f32] {
        table.push(form(OperationId::new("mma", (16, 8, 8), d, f16, f16, d), "", "HMMA", TURING));
        table.push(form(OperationId::new("mma", (16, 8, 16), d, f16, f16, d), "", "HMMA", AMPERE));
    }
    for (k, format) in [(8, Format::BF16), (16, Format::BF16), (4, Format::TF32), (8, Format::TF32)] {
        table.push(form(OperationId::new("mma", (16, 8, k), f32, format, format, f32), "", "HMMA", AMPERE));
    }
}

/// f64, in four rounding modes; to nearest is the default and has no qualifier.
fn doubles(table: &mut Vec<Instruction>) {
    let f64 = Format::F64;
    for (shape, availability) in
        [((8, 8, 4), AMPERE), ((16, 8, 4), HOPPER), ((16, 8, 8), HOPPER), ((16, 8, 16), HOPPER)]
    {
        for mode in ["", "rz", "rm", "rp"] {
            let id = OperationId::new("mma", shape, f64, f64, f64, f64);
            let mut instruction = form(id, "", "DMMA", availability);
            if !mode.is_empty() {
                instruction.text = format!("{}.{mode}", instruction.text);
                instruction.id = instruction.id.with(mode);
            }
            table.push(instruction);
        }
    }
}

/// s8, u8, s4 and u4, with and without saturation.
fn integers(table: &mut Vec<Instruction>) {
    let s32 = Format::S32;
    let bytes = ([Format::S8, Format::U8], [((8, 8, 16), TURING), ((16, 8, 16), AMPERE), ((16, 8, 32), AMPERE)]);
    let nibbles = ([Format::S4, Format::U4], [((8, 8, 32), TURING), ((16, 8, 32), AMPERE), ((16, 8, 64), AMPERE)]);
    for (formats, shapes) in [bytes, nibbles] {
        for (shape, availability) in shapes {
            for (a, b) in pairs(&formats) {
                let id = OperationId::new("mma", shape, s32, a, b, s32);
                table.push(form(id.clone(), "", "IMMA", availability));
                table.push(Instruction {
                    id: id.clone().with("satfinite"),
                    ..form(id, ".satfinite", "IMMA", availability)
                });
            }
        }
    }
}

/// e4m3 and e5m2, which are baseline from sm_89 on, and e3m2, e2m3 and e2m1, which only one architecture has.
fn small_floats(table: &mut Vec<Instruction>) {
    for d in [Format::F16, Format::F32] {
        for (a, b) in pairs(&SMALL[..2]) {
            table.push(form(OperationId::new("mma", (16, 8, 16), d, a, b, d), "", "QMMA", ADA_8_7));
            let availability = if d == Format::F32 { ADA } else { ADA_8_7 };
            table.push(form(OperationId::new("mma", (16, 8, 32), d, a, b, d), "", "QMMA", availability));
        }
        for (a, b) in pairs(&SMALL).filter(|(a, b)| a.bits().min(b.bits()) < 8) {
            let id = OperationId::new("mma", (16, 8, 32), d, a, b, d);
            table.push(form(id, ".kind::f8f6f4", "QMMA", CONSUMER_BLACKWELL));
        }
    }
}

/// Products with scales: 1X and 2X have one scale per 32 k, 4X one per 16.
fn block_scaled(table: &mut Vec<Instruction>) {
    let (f32, e2m1) = (Format::F32, Format::E2M1);
    let mut push = |shape, a, b, block: &str, scale: Format, kind: &str, unit, availability| {
        let id = OperationId::new("mma", shape, f32, a, b, f32);
        let mut instruction = form(id, &format!(".kind::{kind}"), unit, availability);
        instruction.text = format!("{}.{scale}", instruction.text);
        instruction.id = instruction.id.with(block).with(&scale.to_string());
        table.push(instruction);
    };
    for (a, b) in pairs(&SMALL) {
        let kind = "mxf8f6f4.block_scale.scale_vec::1X";
        push((16, 8, 32), a, b, "block32", Format::UE8M0, kind, "QMMA.SF", CONSUMER_BLACKWELL);
    }
    let fp4 = (16, 8, 64);
    let [two, four] = ["mxf4.block_scale.scale_vec::2X", "mxf4nvf4.block_scale.scale_vec::4X"];
    push(fp4, e2m1, e2m1, "block32", Format::UE8M0, two, "OMMA.SF", CONSUMER_BLACKWELL);
    push(fp4, e2m1, e2m1, "block16", Format::UE4M3, four, "OMMA.SF", CONSUMER_BLACKWELL);
    push(fp4, e2m1, e2m1, "block16", Format::UE8M0, four, "OMMA.SF", CONSUMER_BLACKWELL_9_1);
}

/// The instruction with its operands: D, A, B, and the sum that it adds to.
pub(super) fn multiply(instruction: &Instruction, [d, a, b, sum]: [&Operand<'_>; 4], has_scales: bool) -> String {
    // Byte 0 and thread 0 or 1 of each four: every lane holds what any selector could select.
    let scales = if has_scales { ", %s0, {0, 0}, %t0, {0, 0}" } else { "" };
    format!("{} {}, {}, {}, {}{scales};", instruction.text, d.list(), a.list(), b.list(), sum.list())
}

/// One warp per group: loads registers, executes one `mma.sync`, stores registers.
pub(super) fn kernel(instruction: &Instruction, layouts: &Layouts, target: Target, steps: Steps) -> Kernel {
    const THREADS: u32 = 128;
    let (a, b) = (Operand::new('a', &layouts.a, 32), Operand::new('b', &layouts.b, 32));
    let (c, d) = (Operand::new('c', &layouts.c, 32), Operand::new('d', &layouts.d, 32));
    let scales = layouts.scales.as_ref();
    let scales = scales.map(|(of_a, of_b)| (Operand::new('s', of_a, 32), Operand::new('t', of_b, 32)));
    let mut parameters = vec!["a", "b", "c", "d"];
    if scales.is_some() {
        parameters.extend(["scale_a", "scale_b"]);
    }
    let pointers: Vec<String> = parameters.iter().map(|name| format!("%p_{name}")).collect();
    steps.parameters(&mut parameters);
    let mut body = Body::default();
    [&a, &b, &c, &d].into_iter().for_each(|operand| operand.declare(&mut body));
    if let Some((of_a, of_b)) = &scales {
        of_a.declare(&mut body);
        of_b.declare(&mut body);
    }
    body.line(format!(".reg .b64 %at, {};", pointers.join(", ")));
    body.lines(
        ".reg .b32 %thread, %lane, %group, %stride, %warps, %block, %count;
        .reg .pred %more;
        mov.u32 %thread, %tid.x;
        and.b32 %lane, %thread, 31;",
    );
    for (name, operand) in [("a", &a), ("b", &b), ("c", &c), ("d", &d)] {
        pointer(&mut body, name, "%lane", operand.layout.register_bytes());
    }
    if scales.is_some() {
        pointer(&mut body, "scale_a", "%lane", 4);
        pointer(&mut body, "scale_b", "%lane", 4);
    }
    warp_loop(&mut body);
    body.label("next");
    a.load(&mut body, "%p_a");
    b.load(&mut body, "%p_b");
    // In the loop, the sum stays in the registers of D and starts there as C.
    let sum = if steps == Steps::Many { &d } else { &c };
    sum.load(&mut body, "%p_c");
    if let Some((of_a, of_b)) = &scales {
        of_a.load(&mut body, "%p_scale_a");
        of_b.load(&mut body, "%p_scale_b");
    }
    steps.emit(&mut body, "", &multiply(instruction, [&d, &a, &b, sum], scales.is_some()), "");
    d.store(&mut body, "%p_d");
    steps.store_cycles(&mut body);
    warp_loop_end(&mut body);
    let text = module(target, &parameters, THREADS, &body);
    Kernel { text, threads: THREADS, groups_at_once: THREADS / 32 }
}
