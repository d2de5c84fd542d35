//! `tcgen05`: the fifth generation's instruction, whose sums are in tensor memory. We have assembled it but never run
//! it.

use mxprobe_api::{Format, OperationId};

use super::capability::{Availability, Capability, PtxVersion, Target};
use super::instruction::{Instruction, Kind, SMALL, pairs};
use super::layout::{Layout, Layouts};
use super::shared_memory::{CORE_MATRIX_BYTES, copy_to_shared, descriptor};
use super::text::{Body, Kernel, module, pointer};
use super::throughput_loop::Steps;

const fn only(major: u32, minor: u32, name: &'static str, version: (u32, u32)) -> (Capability, Target) {
    (Capability::new(major, minor), Target { name, version: PtxVersion::new(version.0, version.1) })
}

// ptxas 12.9.86 and 13.5.37 (measured 2026-11).
const DATACENTER_BLACKWELL: Availability = Availability::Only(&[
    only(10, 0, "sm_100a", (8, 6)),
    only(10, 3, "sm_103a", (8, 8)),
    only(11, 0, "sm_110a", (9, 0)),
]);
const DATACENTER_BLACKWELL_8_7: Availability = Availability::Only(&[
    only(10, 0, "sm_100a", (8, 7)),
    only(10, 3, "sm_103a", (8, 8)),
    only(11, 0, "sm_110a", (9, 0)),
]);
const WITH_INTEGERS: Availability =
    Availability::Only(&[only(10, 0, "sm_100a", (8, 6)), only(11, 0, "sm_110a", (9, 0))]);

/// The number of 32-bit columns that a block allocates in tensor memory: a power of two that holds the widest n.
const COLUMNS: usize = 256;

/// The number of threads in a block: one per row.
const THREADS: usize = 128;

/// The number of bytes from one column of C or D to the next: a word of each thread.
const COLUMN_BYTES: usize = THREADS * 4;

/// The instructions: m = 128, so that row i of D is lane i of tensor memory; the narrowest n and the widest.
pub(super) fn instructions(table: &mut Vec<Instruction>) {
    let (f16, f32, s32) = (Format::F16, Format::F32, Format::S32);
    for n in [8, 256] {
        let mut push = |k, d, a, b, kind: &str, unit, availability| {
            let id = OperationId::new("tcgen05", (128, n, k), d, a, b, d);
            let text = format!("tcgen05.mma.cta_group::1.kind::{kind}");
            table.push(Instruction { id, kind: Kind::TensorMemory, text, unit, availability });
        };
        push(16, f16, f16, f16, "f16", "UTCMMA", DATACENTER_BLACKWELL);
        push(16, f32, f16, f16, "f16", "UTCMMA", DATACENTER_BLACKWELL);
        push(16, f32, Format::BF16, Format::BF16, "f16", "UTCMMA", DATACENTER_BLACKWELL);
        push(8, f32, Format::TF32, Format::TF32, "tf32", "UTCMMA", DATACENTER_BLACKWELL);
        for (a, b) in pairs(&SMALL) {
            push(32, f16, a, b, "f8f6f4", "UTCMMA", DATACENTER_BLACKWELL);
            push(32, f32, a, b, "f8f6f4", "UTCMMA", DATACENTER_BLACKWELL);
        }
        for (a, b) in pairs(&[Format::S8, Format::U8]) {
            push(32, s32, a, b, "i8", "UTCMMA", WITH_INTEGERS);
        }
        let saturating: Vec<Instruction> = table
            .iter()
            .filter(|instruction| instruction.id.is_integer() && instruction.id.shape.n == n)
            .filter(|instruction| instruction.kind == Kind::TensorMemory)
            .map(|instruction| Instruction { id: instruction.id.clone().with("satfinite"), ..instruction.clone() })
            .collect();
        table.extend(saturating);
        block_scaled(table, n);
    }
}

/// Products with scales: 1X and 2X have one scale per 32 k, 4X one per 16.
fn block_scaled(table: &mut Vec<Instruction>, n: u32) {
    let mut push = |k, a, b, block: &str, scale: Format, kind: &str, availability| {
        let id = OperationId::new("tcgen05", (128, n, k), Format::F32, a, b, Format::F32);
        let id = id.with(block).with(&scale.to_string());
        let text = format!("tcgen05.mma.cta_group::1.kind::{kind}");
        table.push(Instruction { id, kind: Kind::TensorMemory, text, unit: "UTCMMA", availability });
    };
    for (a, b) in pairs(&SMALL) {
        push(32, a, b, "block32", Format::UE8M0, "mxf8f6f4.block_scale.scale_vec::1X", DATACENTER_BLACKWELL);
    }
    let e2m1 = Format::E2M1;
    push(64, e2m1, e2m1, "block32", Format::UE8M0, "mxf4.block_scale.scale_vec::2X", DATACENTER_BLACKWELL);
    for scale in [Format::UE8M0, Format::UE4M3] {
        push(64, e2m1, e2m1, "block16", scale, "mxf4nvf4.block_scale.scale_vec::4X", DATACENTER_BLACKWELL_8_7);
    }
}

/// The instruction descriptor (PTX ISA 9.0, 9.7.16.4.2, tables 44 and 45).
fn instruction_descriptor(id: &OperationId) -> u32 {
    let operand = |format: Format| match format {
        Format::BF16 | Format::E5M2 | Format::S8 => 1,
        Format::TF32 => 2,
        Format::E2M3 => 3,
        Format::E3M2 => 4,
        // If all operands are e2m1, there is nothing to distinguish it from.
        Format::E2M1 if id.shape.k == 64 => 1,
        Format::E2M1 => 5,
        _ => 0,
    };
    let sides = operand(id.a) << 7 | operand(id.b) << 10 | (id.shape.n / 8) << 17;
    if let Some(scale) = id.block_scale() {
        return sides | u32::from(scale.format == Format::UE8M0) << 23 | (id.shape.m / 128) << 27;
    }
    let result = match id.d {
        Format::F16 => 0,
        Format::F32 => 1,
        _ => 2,
    };
    sides | u32::from(id.has("satfinite")) << 3 | result << 4 | (id.shape.m / 16) << 24
}

/// Stores the scales of group `%group` to tensor memory from column `first` on, one word per column, and keeps their
/// address.
fn scale_columns(body: &mut Body, layout: &Layout, name: &str, first: usize) {
    body.line(format!("add.u32 %of_{name}, %memory, {first};"));
    body.line(format!("mul.wide.u32 %at, %group, {};", layout.bytes()));
    body.line(format!("add.s64 %at, %at, %p_{name};"));
    for column in 0..layout.registers(THREADS) {
        body.line(format!("ld.global.b32 %x0, [%at+{}];", column * THREADS * 4));
        body.line(format!("add.u32 %word, %rows, {};", first + column));
        body.line("tcgen05.st.sync.aligned.32x32b.x1.b32 [%word], {%x0};");
    }
}

/// One block of four warps per group: operands to shared memory, C to tensor memory, one multiplication, D back.
pub(super) fn kernel(instruction: &Instruction, layouts: &Layouts, target: Target, steps: Steps) -> Kernel {
    let id = &instruction.id;
    let (m, n, _) = id.shape.sizes();
    let (a_bytes, b_bytes) = (layouts.a.bytes(), layouts.b.bytes());
    let scales = layouts.scales.as_ref();
    // A power of two; scales are stored after the widest D.
    let columns_allocated = if scales.is_some() { 2 * COLUMNS } else { COLUMNS };
    let mut parameters = vec!["a", "b", "c", "d"];
    if scales.is_some() {
        parameters.extend(["scale_a", "scale_b"]);
    }
    let mut body = Body::default();
    body.line(format!(".shared .align 128 .b8 operands[{}];", a_bytes + b_bytes));
    body.lines(
        ".shared .align 8 .b64 arrived;
        .shared .align 4 .b32 allocated;
        .reg .b64 %at, %p_a, %p_b, %p_c, %p_d, %p_scale_a, %p_scale_b, %of_a, %of_b, %wide;
        .reg .b32 %thread, %warp, %group, %stride, %count, %word, %shared_a, %shared_b, %own_a, %own_b;
        .reg .b32 %memory, %rows, %end, %barrier, %slot, %phase, %descriptor, %of_scale_a, %of_scale_b, %x<8>;
        .reg .pred %more, %copies, %adds, %first, %done;
        mov.u32 %thread, %tid.x;
        shr.u32 %warp, %thread, 5;
        mov.u32 %group, %ctaid.x;
        mov.u32 %stride, %nctaid.x;
        ld.param.u32 %count, [count];
        mov.u32 %shared_a, operands;
        mov.u32 %barrier, arrived;
        mov.u32 %slot, allocated;
        mov.u32 %phase, 0;",
    );
    body.line(format!("add.u32 %shared_b, %shared_a, {a_bytes};"));
    body.lines(
        "mad.lo.u32 %own_a, %thread, 4, %shared_a;
        mad.lo.u32 %own_b, %thread, 4, %shared_b;",
    );
    for name in parameters.clone() {
        pointer(&mut body, name, "%thread", 4);
    }
    for (side, lines) in [('a', m), ('b', n)] {
        // Bit 46 is set in every descriptor of this generation (same section, table 42).
        let constant = descriptor(lines / 8 * CORE_MATRIX_BYTES, CORE_MATRIX_BYTES) | 1 << 46;
        body.line(format!("and.b32 %word, %shared_{side}, 0x3ffff;"));
        body.line("shr.u32 %word, %word, 4;");
        body.line("cvt.u64.u32 %wide, %word;");
        body.line(format!("or.b64 %of_{side}, %wide, {constant:#x};"));
    }
    body.line(format!("mov.u32 %descriptor, {:#x};", instruction_descriptor(id)));
    body.lines(
        "setp.eq.u32 %first, %thread, 0;
        setp.eq.u32 %adds, %thread, %thread;
        @%first mbarrier.init.shared::cta.b64 [%barrier], 1;
        setp.eq.u32 %done, %warp, 0;
        @!%done bra allocated_by_warp_0;",
    );
    body.line(format!("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%slot], {columns_allocated};"));
    body.line("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
    body.label("allocated_by_warp_0");
    body.lines(
        "fence.proxy.async.shared::cta;
        tcgen05.fence::before_thread_sync;
        bar.sync 0;
        tcgen05.fence::after_thread_sync;
        ld.shared.b32 %memory, [%slot];
        shl.b32 %rows, %warp, 21;
        add.u32 %rows, %rows, %memory;
        setp.lt.u32 %more, %group, %count;
        @!%more bra finish;",
    );
    body.label("next");
    copy_to_shared(&mut body, &layouts.a, "%p_a", "%own_a", THREADS);
    copy_to_shared(&mut body, &layouts.b, "%p_b", "%own_b", THREADS);
    if let Some((of_a, of_b)) = scales {
        scale_columns(&mut body, of_a, "scale_a", COLUMNS);
        scale_columns(&mut body, of_b, "scale_b", COLUMNS + of_a.registers(THREADS));
    }
    // A warp can access its own 32 lanes of tensor memory: the lane is in bits 16 and up, the column below.
    let eight = "{%x0, %x1, %x2, %x3, %x4, %x5, %x6, %x7}";
    let columns = |body: &mut Body, label: &str, pointer: &str, access: &dyn Fn(&mut Body)| {
        body.line(format!("mul.wide.u32 %at, %group, {};", layouts.c.bytes()));
        body.line(format!("add.s64 %at, %at, {pointer};"));
        body.line("mov.u32 %word, %rows;");
        body.line(format!("add.u32 %end, %rows, {n};"));
        body.label(label);
        access(body);
        body.line(format!("add.s64 %at, %at, {};", 8 * COLUMN_BYTES));
        body.line("add.u32 %word, %word, 8;");
        body.line("setp.lt.u32 %more, %word, %end;");
        body.line(format!("@%more bra {label};"));
    };
    columns(&mut body, "load", "%p_c", &|body| {
        (0..8).for_each(|at| body.line(format!("ld.global.b32 %x{at}, [%at+{}];", at * COLUMN_BYTES)));
        body.line(format!("tcgen05.st.sync.aligned.32x32b.x8.b32 [%word], {eight};"));
    });
    body.lines(
        "tcgen05.wait::st.sync.aligned;
        fence.proxy.async.shared::cta;
        tcgen05.fence::before_thread_sync;
        bar.sync 0;
        tcgen05.fence::after_thread_sync;",
    );
    let of_scales = if scales.is_some() { " [%of_scale_a], [%of_scale_b]," } else { "" };
    let multiply = format!("@%first {} [%memory], %of_a, %of_b, %descriptor,{of_scales} %adds;", instruction.text);
    steps.emit(&mut body, "", &multiply, "");
    body.line("@%first tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%barrier];");
    body.label("wait");
    body.lines(
        "mbarrier.try_wait.parity.shared::cta.b64 %done, [%barrier], %phase;
        @!%done bra wait;
        xor.b32 %phase, %phase, 1;
        tcgen05.fence::after_thread_sync;",
    );
    steps.store_cycles(&mut body);
    columns(&mut body, "store", "%p_d", &|body| {
        body.line(format!("tcgen05.ld.sync.aligned.32x32b.x8.b32 {eight}, [%word];"));
        body.line("tcgen05.wait::ld.sync.aligned;");
        (0..8).for_each(|at| body.line(format!("st.global.b32 [%at+{}], %x{at};", at * COLUMN_BYTES)));
    });
    body.lines(
        "tcgen05.fence::before_thread_sync;
        bar.sync 0;
        tcgen05.fence::after_thread_sync;
        add.u32 %group, %group, %stride;
        setp.lt.u32 %more, %group, %count;
        @%more bra next;",
    );
    body.label("finish");
    body.lines("bar.sync 0;\nsetp.eq.u32 %done, %warp, 0;\n@!%done bra freed_by_warp_0;");
    body.line(format!("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %memory, {columns_allocated};"));
    body.label("freed_by_warp_0");
    body.line("ret;");
    steps.parameters(&mut parameters);
    let text = module(target, &parameters, 128, &body);
    Kernel { text, threads: 128, groups_at_once: 1 }
}
