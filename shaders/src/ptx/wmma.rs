//! `wmma`: one warp, which loads and stores matrices itself; only the device knows which register holds which element.

use mxprobe_api::{Format, OperationId};

use super::capability::Target;
use super::instruction::{AMPERE, Instruction, Kind, TURING_6_3, VOLTA_6_3};
use super::layout::{Layout, Layouts};
use super::text::{Body, Kernel, module, registers, warp_loop, warp_loop_end};
use super::throughput_loop::Steps;

/// `wmma`, the oldest interface: some of its shapes lower to instructions that `mma` has no name for.
pub(super) fn instructions(table: &mut Vec<Instruction>) {
    let (f16, f32, s32) = (Format::F16, Format::F32, Format::S32);
    let mut push = |shape, d: Format, a: Format, b: Format, unit, availability| {
        let id = OperationId::new("wmma", shape, d, a, b, d);
        // The formats of f16 operands are not written.
        let formats = if a == f16 { format!("{d}.{d}") } else { format!("{d}.{a}.{b}.{d}") };
        let text = format!("wmma.mma.sync.aligned.row.col.{}.{formats}", id.shape);
        let instruction = Instruction { id, kind: Kind::Wmma, text, unit, availability };
        if d == s32 {
            let id = instruction.id.clone().with("satfinite");
            table.push(Instruction { id, text: format!("{}.satfinite", instruction.text), ..instruction.clone() });
        }
        table.push(instruction);
    };
    for shape in [(16, 16, 16), (8, 32, 16), (32, 8, 16)] {
        for d in [f16, f32] {
            push(shape, d, f16, f16, "HMMA", VOLTA_6_3);
        }
        push(shape, f32, Format::BF16, Format::BF16, "HMMA", AMPERE);
        push(shape, s32, Format::S8, Format::S8, "IMMA", TURING_6_3);
        push(shape, s32, Format::U8, Format::U8, "IMMA", TURING_6_3);
    }
    push((16, 16, 8), f32, Format::TF32, Format::TF32, "HMMA", AMPERE);
    push((8, 8, 4), Format::F64, Format::F64, Format::F64, "DMMA", AMPERE);
    for format in [Format::S4, Format::U4] {
        push((8, 8, 32), s32, format, format, "IMMA", TURING_6_3);
    }
}

/// One warp per group: `wmma` determines which elements its registers hold.
pub(super) fn kernel(instruction: &Instruction, layouts: &Layouts, target: Target, steps: Steps) -> Kernel {
    const THREADS: u32 = 128;
    let id = &instruction.id;
    let operands = [('a', &layouts.a), ('b', &layouts.b), ('c', &layouts.c), ('d', &layouts.d)]
        .map(|(name, layout)| (name, layout, fragment_registers(id, name, layout)));
    let mut body = Body::default();
    for (name, layout, count) in operands {
        body.line(format!(".reg .b{} %{name}<{count}>;", layout.register_bytes() * 8));
    }
    body.lines(
        ".reg .b64 %at, %p_a, %p_b, %p_c, %p_d;
        .reg .b32 %thread, %group, %stride, %warps, %block, %count;
        .reg .pred %more;
        mov.u32 %thread, %tid.x;",
    );
    for name in ["a", "b", "c", "d"] {
        body.line(format!("ld.param.u64 %p_{name}, [{name}];"));
        body.line(format!("cvta.to.global.u64 %p_{name}, %p_{name};"));
    }
    warp_loop(&mut body);
    body.label("next");
    let lists = operands.map(|(name, _, count)| registers(name, count));
    for (name, layout, count) in operands {
        if name == 'd' {
            // In the loop, the registers of C are those of D.
            let d = if steps == Steps::Many { &lists[2] } else { &lists[3] };
            let multiply = format!("{} {d}, {}, {}, {};", instruction.text, lists[0], lists[1], lists[2]);
            steps.emit(&mut body, "", &multiply, "");
        }
        body.line(format!("mul.wide.u32 %at, %group, {};", layout.bytes()));
        body.line(format!("add.s64 %at, %at, %p_{name};"));
        let (list, (words, stride)) = (registers(name, count), access(id, name));
        if name == 'd' {
            let list = if steps == Steps::Many { &lists[2] } else { &list };
            body.line(format!("wmma.store.{words} [%at], {list}, {stride};"));
        } else {
            body.line(format!("wmma.load.{words} {list}, [%at], {stride};"));
        }
    }
    steps.store_cycles(&mut body);
    warp_loop_end(&mut body);
    let mut parameters = vec!["a", "b", "c", "d"];
    steps.parameters(&mut parameters);
    let text = module(target, &parameters, THREADS, &body);
    Kernel { text, threads: THREADS, groups_at_once: THREADS / 32 }
}

/// The number of registers in a fragment of `wmma`.
pub(super) fn fragment_registers(id: &OperationId, name: char, layout: &Layout) -> usize {
    // Volta's f16 fragments hold every element twice; all later ones do too, for compatibility (PTX ISA 9.0,
    // 9.7.14.4.1).
    if matches!(name, 'a' | 'b') && id.a == Format::F16 { 8 } else { layout.registers(32) }
}

/// The text after `wmma.load.` or `wmma.store.`, and the number of elements from one line to the next.
pub(super) fn access(id: &OperationId, name: char) -> (String, usize) {
    let (shape, (_, n, k)) = (id.shape, id.shape.sizes());
    let (order, format, stride) = match name {
        'a' => ("row", id.a, k),
        'b' => ("col", id.b, k),
        'c' => ("row", id.c, n),
        _ => ("row", id.d, n),
    };
    (format!("{name}.sync.aligned.{order}.{shape}.global.{format}"), stride)
}
