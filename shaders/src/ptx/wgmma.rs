//! `wgmma`: four warps, A and B in shared memory, sums in registers. Only Hopper has it.

use mxprobe_api::{Format, OperationId};

use super::capability::Target;
use super::instruction::{HOPPER_ONLY, HOPPER_ONLY_8_4, Instruction, Kind, SMALL, pairs};
use super::layout::Layouts;
use super::shared_memory::{CORE_MATRIX_BYTES, copy_to_shared, descriptor};
use super::text::{Body, Kernel, Operand, module, pointer};
use super::throughput_loop::Steps;

/// `wgmma`, the instruction that Hopper's own libraries use; the widest n, the narrowest, and one in between.
pub(super) fn instructions(table: &mut Vec<Instruction>) {
    let (f16, f32, s32) = (Format::F16, Format::F32, Format::S32);
    let group = |n, k, d, a, b, unit| {
        let id = OperationId::new("wgmma", (64, n, k), d, a, b, d);
        let text = format!("wgmma.mma_async.sync.aligned.{}.{d}.{a}.{b}", id.shape);
        Instruction { id, kind: Kind::Warpgroup, text, unit, availability: HOPPER_ONLY }
    };
    for n in [8, 64, 256] {
        table.push(group(n, 16, f16, f16, f16, "HGMMA"));
        table.push(group(n, 16, f32, f16, f16, "HGMMA"));
        table.push(group(n, 16, f32, Format::BF16, Format::BF16, "HGMMA"));
        table.push(group(n, 8, f32, Format::TF32, Format::TF32, "HGMMA"));
        for (a, b) in pairs(&SMALL[..2]) {
            table.push(group(n, 32, f16, a, b, "QGMMA"));
            table.push(group(n, 32, f32, a, b, "QGMMA"));
        }
        for (a, b) in pairs(&[Format::S8, Format::U8]) {
            let mut wrapping = group(n, 32, s32, a, b, "IGMMA");
            if a != b {
                wrapping.availability = HOPPER_ONLY_8_4;
            }
            let text = format!("wgmma.mma_async.sync.aligned.{}.satfinite.s32.{a}.{b}", wrapping.id.shape);
            table.push(Instruction { id: wrapping.id.clone().with("satfinite"), text, ..wrapping.clone() });
            table.push(wrapping);
        }
    }
}

/// The number of threads in a warpgroup.
pub(super) const GROUP_THREADS: usize = 128;

/// Declares the registers of a warpgroup's kernel except its sums, advances the pointers to the thread's place, and
/// sets the descriptors of A and B in shared memory. `lines` set `%group` and `%stride`, the first group and the
/// distance to the next.
pub(super) fn begin(body: &mut Body, instruction: &Instruction, layouts: &Layouts, lines: &str, pointers: &[&str]) {
    let (m, n, _) = instruction.id.shape.sizes();
    let (a_bytes, b_bytes) = (layouts.a.bytes(), layouts.b.bytes());
    body.line(format!(".shared .align 128 .b8 operands[{}];", a_bytes + b_bytes));
    body.lines(
        ".reg .b64 %at, %p_a, %p_b, %p_c, %p_d, %of_a, %of_b, %wide;
        .reg .b32 %thread, %group, %stride, %count, %word, %shared_a, %shared_b, %own_a, %own_b;
        .reg .pred %more, %copies, %adds;
        mov.u32 %thread, %tid.x;",
    );
    body.lines(lines);
    body.lines(
        "ld.param.u32 %count, [count];
        mov.u32 %shared_a, operands;",
    );
    body.line(format!("add.u32 %shared_b, %shared_a, {a_bytes};"));
    body.lines(
        "mad.lo.u32 %own_a, %thread, 4, %shared_a;
        mad.lo.u32 %own_b, %thread, 4, %shared_b;",
    );
    for name in pointers {
        pointer(body, name, "%thread", 4);
    }
    for (side, lines) in [('a', m), ('b', n)] {
        let constant = descriptor(lines / 8 * CORE_MATRIX_BYTES, CORE_MATRIX_BYTES);
        body.line(format!("and.b32 %word, %shared_{side}, 0x3ffff;"));
        body.line("shr.u32 %word, %word, 4;");
        body.line("cvt.u64.u32 %wide, %word;");
        body.line(format!("or.b64 %of_{side}, %wide, {constant:#x};"));
    }
    body.line("setp.eq.u32 %adds, %thread, %thread;");
}

/// Continues with a warpgroup's next group, or ends.
fn end_loop(body: &mut Body) {
    body.lines(
        "bar.sync 0;
        add.u32 %group, %group, %stride;
        setp.lt.u32 %more, %group, %count;
        @%more bra next;",
    );
    body.label("finish");
    body.line("ret;");
}

/// The modifiers after the operands of `wgmma`: negation of A and B is off; 16-bit operands could be transposed but are
/// not (PTX ISA 9.0, 9.7.15.5.2).
pub(super) fn modifiers(id: &OperationId) -> &'static str {
    match (id.is_integer(), id.a.bits()) {
        (true, _) => "",
        (false, 16) => ", 1, 1, 0, 0",
        (false, _) => ", 1, 1",
    }
}

/// A `wgmma` that adds to registers, with the instructions before and after it.
pub(super) fn multiply(instruction: &Instruction, sums: &str) -> [String; 3] {
    let modifiers = modifiers(&instruction.id);
    [
        "wgmma.fence.sync.aligned;".to_owned(),
        format!("{} {sums}, %of_a, %of_b, %adds{modifiers};", instruction.text),
        "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;".to_owned(),
    ]
}

/// Loads the operands of group `%group`: A and B to shared memory, C to the registers of D.
pub(super) fn load(body: &mut Body, layouts: &Layouts, d: &Operand<'_>) {
    copy_to_shared(body, &layouts.a, "%p_a", "%own_a", GROUP_THREADS);
    copy_to_shared(body, &layouts.b, "%p_b", "%own_b", GROUP_THREADS);
    d.load(body, "%p_c");
    body.lines(
        "fence.proxy.async.shared::cta;
        bar.sync 0;",
    );
}

/// Four warps per group: A and B in shared memory, one `wgmma.mma_async` that adds to the registers that held C.
pub(super) fn kernel(instruction: &Instruction, layouts: &Layouts, target: Target, steps: Steps) -> Kernel {
    let d = Operand::new('d', &layouts.d, GROUP_THREADS);
    let mut body = Body::default();
    d.declare(&mut body);
    let across_grid = "mov.u32 %group, %ctaid.x;\nmov.u32 %stride, %nctaid.x;";
    begin(&mut body, instruction, layouts, across_grid, &["a", "b", "c", "d"]);
    body.lines(
        "setp.lt.u32 %more, %group, %count;
        @!%more bra finish;",
    );
    body.label("next");
    load(&mut body, layouts, &d);
    let [begin, multiply, end] = multiply(instruction, &d.list());
    steps.emit(&mut body, &begin, &multiply, &end);
    d.store(&mut body, "%p_d");
    steps.store_cycles(&mut body);
    end_loop(&mut body);
    let mut parameters = vec!["a", "b", "c", "d"];
    steps.parameters(&mut parameters);
    let text = module(target, &parameters, 128, &body);
    Kernel { text, threads: 128, groups_at_once: 1 }
}
