//! `tcgen05`: the fifth generation's instruction, whose sums live in tensor memory. Assembled, and never run by us.

use mxprobe_api::{Format, OperationId};

use crate::capability::{Availability, Capability, PtxVersion, Target};
use crate::instruction::{Instruction, Kind, pairs};
use crate::layout::Layouts;
use crate::ptx::{Body, CORE_MATRIX_BYTES, Kernel, copy_to_shared, descriptor, module, pointer};

const fn only(major: u32, minor: u32, name: &'static str, version: (u32, u32)) -> (Capability, Target) {
    (Capability::new(major, minor), Target { name, version: PtxVersion::new(version.0, version.1) })
}

// ptxas 12.9.86 and 13.5.37 (measured 2026-11).
const DATACENTER_BLACKWELL: Availability = Availability::Only(&[
    only(10, 0, "sm_100a", (8, 6)),
    only(10, 3, "sm_103a", (8, 8)),
    only(11, 0, "sm_110a", (9, 0)),
]);
const WITH_INTEGERS: Availability =
    Availability::Only(&[only(10, 0, "sm_100a", (8, 6)), only(11, 0, "sm_110a", (9, 0))]);

/// Columns of 32 bits that a block allocates in tensor memory: a power of two that holds the widest n.
const COLUMNS: usize = 256;

/// Threads of a block: one a row.
const THREADS: usize = 128;

/// The instructions: m = 128, where row i of D is lane i of tensor memory, the narrowest n and the widest.
pub(crate) fn instructions(table: &mut Vec<Instruction>) {
    let (f16, f32, s32) = (Format::F16, Format::F32, Format::S32);
    for n in [8, 256] {
        let mut push = |k, d, a, b, kind: &str, unit, availability| {
            let id = OperationId::new("tcgen05", (128, n, k), d, a, b, d);
            let text = format!("tcgen05.mma.cta_group::1.kind::{kind}");
            table.push(Instruction { id, kind: Kind::Tensor, text, unit, availability });
        };
        push(16, f16, f16, f16, "f16", "UTCMMA", DATACENTER_BLACKWELL);
        push(16, f32, f16, f16, "f16", "UTCMMA", DATACENTER_BLACKWELL);
        push(16, f32, Format::BF16, Format::BF16, "f16", "UTCMMA", DATACENTER_BLACKWELL);
        push(8, f32, Format::TF32, Format::TF32, "tf32", "UTCMMA", DATACENTER_BLACKWELL);
        for (a, b) in pairs(&[Format::E4M3, Format::E5M2]) {
            push(32, f16, a, b, "f8f6f4", "UTCMMA", DATACENTER_BLACKWELL);
            push(32, f32, a, b, "f8f6f4", "UTCMMA", DATACENTER_BLACKWELL);
        }
        for (a, b) in pairs(&[Format::S8, Format::U8]) {
            push(32, s32, a, b, "i8", "UTCMMA", WITH_INTEGERS);
        }
        let saturating: Vec<Instruction> = table
            .iter()
            .filter(|instruction| instruction.id.is_integer() && instruction.id.shape.n == n)
            .filter(|instruction| instruction.kind == Kind::Tensor)
            .map(|instruction| Instruction { id: instruction.id.clone().with("satfinite"), ..instruction.clone() })
            .collect();
        table.extend(saturating);
    }
}

/// The instruction descriptor (PTX ISA 9.0, 9.7.16.4.2, table 44).
fn instruction_descriptor(id: &OperationId) -> u32 {
    let operand = |format: Format| match format {
        Format::BF16 | Format::E5M2 | Format::S8 => 1,
        Format::TF32 => 2,
        _ => 0,
    };
    let result = match id.d {
        Format::F16 => 0,
        Format::F32 => 1,
        _ => 2,
    };
    u32::from(id.has("satfinite")) << 3
        | result << 4
        | operand(id.a) << 7
        | operand(id.b) << 10
        | (id.shape.n / 8) << 17
        | (id.shape.m / 16) << 24
}

/// One block of four warps a group: operands to shared memory, C to tensor memory, one multiply, D back.
pub(crate) fn kernel(instruction: &Instruction, layouts: &Layouts, target: Target) -> Kernel {
    let id = &instruction.id;
    let (m, n, _) = id.shape.sizes();
    let (a_bytes, b_bytes) = (layouts.a.bytes(), layouts.b.bytes());
    let mut body = Body::default();
    body.line(format!(".shared .align 128 .b8 operands[{}];", a_bytes + b_bytes));
    body.lines(
        ".shared .align 8 .b64 arrived;
        .shared .align 4 .b32 allocated;
        .reg .b64 %at, %p_a, %p_b, %p_c, %p_d, %of_a, %of_b, %wide, %p_own;
        .reg .b32 %thread, %warp, %group, %stride, %count, %word, %shared_a, %shared_b, %own_a, %own_b;
        .reg .b32 %memory, %rows, %barrier, %slot, %phase, %descriptor, %x<8>;
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
    for name in ["a", "b", "c", "d"] {
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
    body.line(format!("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%slot], {COLUMNS};"));
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
    // A warp reaches the 32 lanes of tensor memory that are its own: lane in bits 16 and up, column below.
    let columns = |body: &mut Body, pointer: &str, access: &dyn Fn(&mut Body, usize)| {
        body.line(format!("mul.wide.u32 %at, %group, {};", layouts.c.bytes()));
        body.line(format!("add.s64 %at, %at, {pointer};"));
        (0..n / 8).for_each(|block| access(body, block));
    };
    let eight = "{%x0, %x1, %x2, %x3, %x4, %x5, %x6, %x7}";
    let column_bytes = THREADS * 4;
    columns(&mut body, "%p_c", &|body, block| {
        (0..8).for_each(|at| body.line(format!("ld.global.b32 %x{at}, [%at+{}];", (block * 8 + at) * column_bytes)));
        body.line(format!("add.u32 %word, %rows, {};", block * 8));
        body.line(format!("tcgen05.st.sync.aligned.32x32b.x8.b32 [%word], {eight};"));
    });
    body.lines(
        "tcgen05.wait::st.sync.aligned;
        fence.proxy.async.shared::cta;
        tcgen05.fence::before_thread_sync;
        bar.sync 0;
        tcgen05.fence::after_thread_sync;",
    );
    body.line(format!("@%first {} [%memory], %of_a, %of_b, %descriptor, %adds;", instruction.text));
    body.line("@%first tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%barrier];");
    body.label("wait");
    body.lines(
        "mbarrier.try_wait.parity.shared::cta.b64 %done, [%barrier], %phase;
        @!%done bra wait;
        xor.b32 %phase, %phase, 1;
        tcgen05.fence::after_thread_sync;",
    );
    columns(&mut body, "%p_d", &|body, block| {
        body.line(format!("add.u32 %word, %rows, {};", block * 8));
        body.line(format!("tcgen05.ld.sync.aligned.32x32b.x8.b32 {eight}, [%word];"));
        body.line("tcgen05.wait::ld.sync.aligned;");
        (0..8).for_each(|at| body.line(format!("st.global.b32 [%at+{}], %x{at};", (block * 8 + at) * column_bytes)));
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
    body.line(format!("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %memory, {COLUMNS};"));
    body.label("freed_by_warp_0");
    body.line("ret;");
    // The widest allocation lets two blocks share a multiprocessor; one thread a row.
    let text = module(target, &["a", "b", "c", "d"], 128, &body);
    Kernel { text, threads: 128, groups_at_once: 1 }
}
