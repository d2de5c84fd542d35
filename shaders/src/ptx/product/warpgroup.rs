//! Kernels of whole matrices by `wgmma`: each thread block of one or two warpgroups computes a block of tiles, with its
//! sums in registers.
//!
//! `cp.async` copies A and B of a step into one of [`SLOTS`] slots in shared memory. While the instructions of step s
//! run, step s + 1 has arrived or is in flight, and s + 2 has been requested.

use super::block::{Block, PARAMETERS, ProductKernel, Wide, patch_loop, patch_loop_end, places};
use crate::ptx::capability::Target;
use crate::ptx::instruction::Instruction;
use crate::ptx::layout::Layouts;
use crate::ptx::shared_memory::{CORE_MATRIX_BYTES, descriptor};
use crate::ptx::text::{Body, Kernel, module, pointer, registers_from};
use crate::ptx::wgmma::{GROUP_THREADS, modifiers};

/// The number of columns in a block: the registers of its threads hold no more sums.
const COLUMNS: usize = 256;
/// The largest number of tiles side by side, each an instruction in every step.
const MOST_TILES: usize = 16;
/// The number of slots for the operands of a step. A step is copied two ahead, into the slot used two steps before: all
/// threads have waited for that step's instructions before they met at the barrier, but may not have for those of the
/// step in between.
const SLOTS: usize = 4;
/// The size of a `cp.async` in bytes.
const COPY_BYTES: usize = 16;

/// The blocks, largest first: two warpgroups that share their columns of B, one warpgroup, and one tile.
pub(super) fn blocks(instruction: &Instruction) -> Vec<Block> {
    let across = (COLUMNS / instruction.id.shape.n as usize).min(MOST_TILES);
    let mut blocks = vec![Block { down: 2, across }, Block { down: 1, across }, Block { down: 1, across: 1 }];
    blocks.dedup();
    blocks
}

/// Writes the kernel for blocks of this size: `down` warpgroups.
pub(super) fn kernel(instruction: &Instruction, layouts: &Layouts, target: Target, block: Block) -> ProductKernel {
    let Block { down, across } = block;
    let (m, n, _) = instruction.id.shape.sizes();
    let (a_bytes, b_bytes) = (down * layouts.a.bytes(), across * layouts.b.bytes());
    let slot_bytes = a_bytes + b_bytes;
    let threads = down * GROUP_THREADS;
    let registers = layouts.d.registers(GROUP_THREADS);
    let mut body = Body::default();
    body.line(format!(".shared .align 128 .b8 operands[{}];", SLOTS * slot_bytes));
    body.line(format!(".reg .b32 %d<{}>;", across * registers));
    body.lines(
        ".reg .b64 %p_a, %p_b, %p_c, %p_d, %at_d, %at_c, %of_a, %of_b, %now_a, %now_b, %wide;
        .reg .b32 %thread, %warpgroup, %of_group, %word, %shared, %into, %slot;
        .reg .pred %adds, %copies, %few, %again;
        mov.u32 %thread, %tid.x;
        shr.u32 %warpgroup, %thread, 7;
        and.b32 %of_group, %thread, 127;
        mov.u32 %shared, operands;
        setp.eq.u32 %adds, %thread, %thread;",
    );
    for (name, thread, bytes) in
        [("a", "%thread", COPY_BYTES), ("b", "%thread", COPY_BYTES), ("c", "%of_group", 4), ("d", "%of_group", 4)]
    {
        pointer(&mut body, name, thread, bytes);
    }
    // The descriptors of the first slot; A's is that of the warpgroup's own rows.
    body.line(format!("mad.lo.u32 %word, %warpgroup, {}, %shared;", layouts.a.bytes()));
    for (side, lines) in [('a', m), ('b', n)] {
        let constant = descriptor(lines / 8 * CORE_MATRIX_BYTES, CORE_MATRIX_BYTES);
        body.lines(
            "and.b32 %word, %word, 0x3ffff;
            shr.u32 %word, %word, 4;
            cvt.u64.u32 %wide, %word;",
        );
        body.line(format!("or.b64 %of_{side}, %wide, {constant:#x};"));
        body.line(format!("add.u32 %word, %shared, {a_bytes};"));
    }
    body.line(format!("mad.lo.u32 %shared, %thread, {COPY_BYTES}, %shared;"));
    patch_loop(&mut body, Block { down: 1, across: 1 });
    places(&mut body, a_bytes, b_bytes);
    // The tiles of a block are row-major.
    body.line(format!("mad.lo.u32 %part, %part, {down}, %warpgroup;"));
    body.line(format!("mul.wide.u32 %at_d, %part, {};", across * layouts.d.bytes()));
    body.lines(
        "add.s64 %at_c, %at_d, %p_c;
        add.s64 %at_d, %at_d, %p_d;",
    );
    let place = |register: usize| register / registers * layouts.d.bytes() + register % registers * 4 * GROUP_THREADS;
    for register in 0..across * registers {
        body.line(format!("ld.global.b32 %d{register}, [%at_c+{}];", place(register)));
    }
    let copy_step = |body: &mut Body| {
        copy(body, (a_bytes, threads), "%at_a", 0);
        copy(body, (b_bytes, threads), "%at_b", a_bytes);
        body.line(format!("add.s64 %at_a, %at_a, {a_bytes};"));
        body.line(format!("add.s64 %at_b, %at_b, {b_bytes};"));
        body.line("cp.async.commit_group;");
    };
    for slot in 0..2 {
        body.line(format!("add.u32 %into, %shared, {};", slot * slot_bytes));
        body.line(format!("setp.gt.u32 %copies, %rest, {slot};"));
        copy_step(&mut body);
    }
    body.line("mov.u32 %slot, 0;");
    body.label("step");
    body.lines(
        "cp.async.wait_group 1;
        fence.proxy.async.shared::cta;
        bar.sync 0;",
    );
    for side in ['a', 'b'] {
        body.line(format!("mad.wide.u32 %now_{side}, %slot, {}, %of_{side};", slot_bytes >> 4));
    }
    body.line("wgmma.fence.sync.aligned;");
    for tile in 0..across {
        let sums = registers_from('d', tile * registers, registers);
        body.line(format!("add.s64 %wide, %now_b, {};", tile * (layouts.b.bytes() >> 4)));
        let modifiers = modifiers(&instruction.id);
        body.line(format!("{} {sums}, %now_a, %wide, %adds{modifiers};", instruction.text));
    }
    body.lines(
        "wgmma.commit_group.sync.aligned;
        wgmma.wait_group.sync.aligned 1;
        setp.gt.u32 %copies, %rest, 2;
        add.u32 %into, %slot, 2;",
    );
    body.line(format!("and.b32 %into, %into, {};", SLOTS - 1));
    body.line(format!("mad.lo.u32 %into, %into, {slot_bytes}, %shared;"));
    copy_step(&mut body);
    body.line("add.u32 %slot, %slot, 1;");
    body.line(format!("and.b32 %slot, %slot, {};", SLOTS - 1));
    body.lines(
        "sub.u32 %rest, %rest, 1;
        setp.ne.u32 %again, %rest, 0;
        @%again bra step;
        wgmma.wait_group.sync.aligned 0;",
    );
    for register in 0..across * registers {
        body.line(format!("st.global.b32 [%at_d+{}], %d{register};", place(register)));
    }
    // No thread may copy the next patch over data that is still being read.
    body.line("bar.sync 0;");
    patch_loop_end(&mut body);
    let threads = u32::try_from(threads).expect("two warpgroups at most");
    let text = module(target, &PARAMETERS, threads, &body);
    let kernel = Kernel { text, threads, groups_at_once: 1 };
    ProductKernel { kernel, patch: Block { down: 1, across: 1 }, a: Wide::none(), b: Wide::none() }
}

/// Requests `bytes` bytes from an address, 16 per thread at a time, into shared memory from `%into` on, if `%copies`
/// holds.
fn copy(body: &mut Body, (bytes, threads): (usize, usize), from: &str, offset: usize) {
    for done in (0..bytes).step_by(threads * COPY_BYTES) {
        let left = (bytes - done) / COPY_BYTES;
        let guard = if left < threads {
            body.line(format!("setp.lt.u32 %few, %thread, {left};"));
            body.line("and.pred %few, %few, %copies;");
            "%few"
        } else {
            "%copies"
        };
        body.line(format!(
            "@{guard} cp.async.cg.shared.global [%into+{}], [{from}+{done}], {COPY_BYTES};",
            offset + done
        ));
    }
}
