//! Throughput kernels: the instruction in a loop over operands held in registers.
//!
//! They take two more parameters, before the count: `steps`, the number of multiplications, and `cycles`, to which each
//! warp stores [`STAMPS`]: a multiprocessor finishes its warps one after another, the oldest first.

use super::capability::{PtxVersion, Target};
use super::instruction::{Instruction, Kind};
use super::text::{Body, Kernel, module, pointer};

/// The number of instructions in one iteration of the loop, so that counting does not displace multiplying.
const UNROLLED: usize = 8;

/// The number of 64-bit words that each warp stores: the clock of its multiprocessor before the loop, the clock after it,
/// and the number of the multiprocessor.
pub const STAMPS: usize = 3;

/// How often a kernel multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steps {
    /// Once.
    One,
    /// As often as its parameter `steps` says.
    Many,
}

impl Steps {
    /// Adds the kernel's parameters other than its operands.
    pub(super) fn parameters(self, parameters: &mut Vec<&'static str>) {
        if self == Self::Many {
            parameters.extend(["steps", "cycles"]);
        }
    }

    /// Writes the multiplication, or the loop around it: `begin` and `end` enclose a row of multiplications.
    pub(super) fn emit(self, body: &mut Body, begin: &str, multiply: &str, end: &str) {
        if self == Self::One {
            return row(body, [begin, multiply, end], 1);
        }
        body.lines(
            ".reg .b64 %wide_steps, %began, %ended, %unit, %p_cycles;
            .reg .b32 %rounds, %rest, %place, %of_warp, %all_warps;
            .reg .pred %again, %is_first;
            ld.param.u64 %wide_steps, [steps];
            cvt.u32.u64 %rest, %wide_steps;",
        );
        split(body);
        body.line("mov.u64 %began, %clock64;");
        repeat(body, [begin, multiply, end]);
    }

    /// Stores the stamps once the results of the loop are available.
    pub(super) fn store_cycles(self, body: &mut Body) {
        if self == Self::One {
            return;
        }
        body.lines(
            "mov.u64 %ended, %clock64;
            mov.u32 %of_warp, %smid;
            cvt.u64.u32 %unit, %of_warp;
            mov.u32 %of_warp, %tid.x;
            and.b32 %place, %of_warp, 31;
            setp.eq.u32 %is_first, %place, 0;
            shr.u32 %of_warp, %of_warp, 5;
            mov.u32 %all_warps, %ntid.x;
            shr.u32 %all_warps, %all_warps, 5;
            mov.u32 %place, %ctaid.x;
            mad.lo.u32 %place, %place, %all_warps, %of_warp;
            ld.param.u64 %p_cycles, [cycles];
            cvta.to.global.u64 %p_cycles, %p_cycles;",
        );
        body.line(format!("mad.wide.u32 %p_cycles, %place, {}, %p_cycles;", 8 * STAMPS));
        for (at, stamp) in ["began", "ended", "unit"].into_iter().enumerate() {
            body.line(format!("@%is_first st.global.u64 [%p_cycles+{}], %{stamp};", 8 * at));
        }
    }
}

/// Writes multiplications between `begin` and `end`.
fn row(body: &mut Body, [begin, multiply, end]: [&str; 3], count: usize) {
    body.lines(begin);
    (0..count).for_each(|_| body.lines(multiply));
    body.lines(end);
}

/// Splits the steps in `%rest` into `%rounds` of [`UNROLLED`], and the rest.
pub(super) fn split(body: &mut Body) {
    body.line(format!("shr.u32 %rounds, %rest, {};", UNROLLED.ilog2()));
    body.line(format!("and.b32 %rest, %rest, {};", UNROLLED - 1));
}

/// Writes the loops over `%rounds`, then `%rest`.
pub(super) fn repeat(body: &mut Body, parts: [&str; 3]) {
    body.lines(
        "setp.eq.u32 %again, %rounds, 0;
        @%again bra rest;",
    );
    body.label("round");
    row(body, parts, UNROLLED);
    body.lines(
        "sub.u32 %rounds, %rounds, 1;
        setp.ne.u32 %again, %rounds, 0;
        @%again bra round;",
    );
    body.label("rest");
    body.lines(
        "setp.eq.u32 %again, %rest, 0;
        @%again bra done;",
    );
    body.label("one");
    row(body, parts, 1);
    body.lines(
        "sub.u32 %rest, %rest, 1;
        setp.ne.u32 %again, %rest, 0;
        @%again bra one;",
    );
    body.label("done");
}

/// The target of [`fma`]: lower than that of any device with a matrix unit.
const FMA_TARGET: Target = Target { name: "sm_70", version: PtxVersion::new(6, 3) };

/// The number of blocks on a multiprocessor. 32 warps of one sum each hide the latency of `mma` at its throughput (a
/// unit of a quarter of a multiprocessor has 8 of them), in 64 registers per thread; the registers hold two warpgroups
/// with sums of 64×256; tensor memory belongs to one block. Without an instruction, the number for [`fma`].
#[must_use]
pub fn blocks_of_multiprocessor(instruction: Option<&Instruction>) -> u32 {
    match instruction.map(|instruction| (instruction.kind, instruction.id.shape.n)) {
        None | Some((Kind::Warp | Kind::QuadPair | Kind::Wmma, _)) => 8,
        Some((Kind::Warpgroup, 256)) => 2,
        Some((Kind::Warpgroup, _)) => 8,
        Some((Kind::TensorMemory, _)) => 1,
    }
}

/// The number of threads in a block of [`fma`].
pub const FMA_THREADS: u32 = 256;
/// The number of chains in a thread.
pub const FMA_CHAINS: usize = 8;

/// The f32 multiply-add of the scalar units: thread t of a block takes element 8t of a, elements 8t to 8t + 7 of b and c,
/// and writes the same number of elements of d after those of the blocks before it.
///
/// The chains of a thread have one factor in common, as in a product of matrices: with three operands of its own, each
/// multiply-add of a Hopper takes a cycle and a half, because its registers deliver two of them per cycle.
#[must_use]
pub fn fma() -> Kernel {
    let mut parameters = vec!["a", "b", "c", "d"];
    Steps::Many.parameters(&mut parameters);
    let mut body = Body::default();
    for (name, count) in [('a', 1), ('b', FMA_CHAINS), ('d', FMA_CHAINS)] {
        body.line(format!(".reg .f32 %{name}<{count}>;"));
    }
    body.lines(
        ".reg .b64 %p_a, %p_b, %p_c, %p_d;
        .reg .b32 %thread, %block, %all;
        mov.u32 %thread, %tid.x;
        mov.u32 %block, %ctaid.x;
        mov.u32 %all, %ntid.x;
        mad.lo.u32 %all, %block, %all, %thread;",
    );
    for (name, thread) in [("a", "%thread"), ("b", "%thread"), ("c", "%thread"), ("d", "%all")] {
        pointer(&mut body, name, thread, 4 * FMA_CHAINS);
    }
    for (name, pointer, count) in [('a', 'a', 1), ('b', 'b', FMA_CHAINS), ('d', 'c', FMA_CHAINS)] {
        (0..count).for_each(|at| body.line(format!("ld.global.f32 %{name}{at}, [%p_{pointer}+{}];", 4 * at)));
    }
    let step: Vec<String> = (0..FMA_CHAINS).map(|at| format!("fma.rn.f32 %d{at}, %a0, %b{at}, %d{at};")).collect();
    Steps::Many.emit(&mut body, "", &step.join("\n"), "");
    (0..FMA_CHAINS).for_each(|at| body.line(format!("st.global.f32 [%p_d+{}], %d{at};", 4 * at)));
    Steps::Many.store_cycles(&mut body);
    body.line("ret;");
    Kernel { text: module(FMA_TARGET, &parameters, FMA_THREADS, &body), threads: FMA_THREADS, groups_at_once: 1 }
}
