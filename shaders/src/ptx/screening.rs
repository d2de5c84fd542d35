//! Screening kernels: every block computes all groups of tiles with operands in registers, and reduces D to digests.
//!
//! A kernel is `tiles(a, b, c, [scale_a, scale_b,] control, places, digests, marks, words, count)`. Each block goes over
//! all `count` groups, its warps (or its warpgroup) taking them in turn, as many times as there are passes. For each
//! group, the instruction executes a number of times, D of one being C of the next; then each thread folds its
//! registers of D into its digest with [`step`]. So a digest costs little next to a long chain of instructions.
//!
//! - `control` is [`Control`].
//! - `places` gets the multiprocessor of each block, as two 32-bit words: at the beginning, and at the end.
//! - `digests` gets a 32-bit digest of each thread of each block.
//! - `marks`, unless null, is D of all groups as a layout packs it: bits to invert in D before it is digested, on the
//!   multiprocessor that `control` names.
//! - `words`, unless null, gets D of all groups of each block, as a layout packs it.

use super::capability::Target;
use super::instruction::{Instruction, Kind};
use super::layout::Layouts;
use super::text::{Body, Kernel, Operand, module, pointer, registers};
use super::throughput_loop::{blocks_of_multiprocessor, repeat, split};
use super::{mma, wgmma, wmma};

/// The multiplier of [`step`].
const ODD: u32 = 0x9e37_79b1;
/// The rotation of [`step`].
const ROTATION: u32 = 13;

/// Selects every multiprocessor in [`Control`].
pub const EVERY: u32 = u32::MAX;

/// The words that control a screening kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Control {
    /// How many instructions a group executes, at least one; exactly one if C and D have different formats.
    pub steps: u32,
    /// Passes over all groups, at least one.
    pub passes: u32,
    /// The multiprocessor whose blocks compute, or [`EVERY`]; other blocks store their place alone.
    pub only: u32,
    /// The multiprocessor on which marks invert bits, or [`EVERY`].
    pub marked: u32,
}

impl Control {
    /// Returns the words as the kernel reads them.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        [self.steps, self.passes, self.only, self.marked].iter().flat_map(|word| word.to_le_bytes()).collect()
    }
}

/// Folds a word of D into the digest of a thread: rotate_left(digest ^ word, 13) · 0x9e3779b1.
///
/// Each step is a bijection of the digest for a given word, and of the word for a given digest, so one wrong word in a
/// launch always gives another digest.
#[must_use]
pub fn step(digest: u32, word: u32) -> u32 {
    (digest ^ word).rotate_left(ROTATION).wrapping_mul(ODD)
}

/// The three instructions of [`step`] on a 32-bit register.
fn fold(body: &mut Body, word: &str) {
    body.line(format!("xor.b32 %digest, %digest, {word};"));
    body.line(format!("shf.l.wrap.b32 %digest, %digest, %digest, {ROTATION};"));
    body.line(format!("mul.lo.u32 %digest, %digest, {ODD:#x};"));
}

/// Whether an instruction has a screening kernel. `tcgen05` has none: its D is in tensor memory.
#[must_use]
pub fn is_screened(instruction: &Instruction) -> bool {
    instruction.kind != Kind::TensorMemory
}

/// Whether D of an instruction can be C of the next one.
#[must_use]
pub fn is_chained(instruction: &Instruction) -> bool {
    instruction.id.c == instruction.id.d
}

/// Writes the screening kernel of an instruction; `None` if it has none.
#[must_use]
pub fn kernel(instruction: &Instruction, layouts: &Layouts, target: Target) -> Option<Kernel> {
    let kernel = match instruction.kind {
        Kind::Warp | Kind::QuadPair => warps(instruction, layouts, target),
        Kind::Wmma => opaque_warps(instruction, layouts, target),
        Kind::Warpgroup => warpgroup(instruction, layouts, target),
        Kind::TensorMemory => return None,
    };
    Some(kernel.with_blocks_of_multiprocessor(blocks_of_multiprocessor(Some(instruction))))
}

const THREADS: u32 = 128;

/// The parameters of a kernel.
fn parameters(has_scales: bool) -> Vec<&'static str> {
    let mut parameters = vec!["a", "b", "c"];
    if has_scales {
        parameters.extend(["scale_a", "scale_b"]);
    }
    parameters.extend(["control", "places", "digests", "marks", "words"]);
    parameters
}

/// Reads the controls, stores the place, and ends blocks that shall not compute. `%thread` is the index in the block.
fn begin(body: &mut Body) {
    body.lines(
        ".reg .b64 %p_control, %p_places, %p_digests, %p_marks, %p_words, %own_place;
        .reg .b32 %steps, %passes, %only, %marked, %place, %cta, %slot, %digest, %low, %high, %rounds, %rest;
        .reg .pred %is_first, %elsewhere, %is_one, %is_marked, %is_written, %again;
        ld.param.u64 %p_control, [control];
        cvta.to.global.u64 %p_control, %p_control;
        ld.global.u32 %steps, [%p_control];
        ld.global.u32 %passes, [%p_control+4];
        ld.global.u32 %only, [%p_control+8];
        ld.global.u32 %marked, [%p_control+12];
        mov.u32 %place, %smid;
        mov.u32 %cta, %ctaid.x;
        ld.param.u64 %p_places, [places];
        cvta.to.global.u64 %p_places, %p_places;
        mad.wide.u32 %own_place, %cta, 8, %p_places;
        setp.eq.u32 %is_first, %thread, 0;
        @%is_first st.global.u32 [%own_place], %place;
        setp.ne.u32 %elsewhere, %only, %place;",
    );
    body.line(format!("setp.ne.u32 %is_one, %only, {EVERY:#x};"));
    body.lines(
        "and.pred %elsewhere, %elsewhere, %is_one;
        @%elsewhere bra elsewhere;
        setp.eq.u32 %is_marked, %marked, %place;",
    );
    body.line(format!("setp.eq.u32 %is_one, %marked, {EVERY:#x};"));
    body.lines(
        "or.pred %is_marked, %is_marked, %is_one;
        ld.param.u64 %p_marks, [marks];
        setp.ne.u64 %is_one, %p_marks, 0;
        and.pred %is_marked, %is_marked, %is_one;
        ld.param.u64 %p_words, [words];
        setp.ne.u64 %is_written, %p_words, 0;
        ld.param.u64 %p_digests, [digests];
        cvta.to.global.u64 %p_digests, %p_digests;
        mov.u32 %slot, %ntid.x;
        mad.lo.u32 %slot, %cta, %slot, %thread;
        mad.wide.u32 %p_digests, %slot, 4, %p_digests;
        mov.u32 %digest, 0;",
    );
}

/// Advances the pointers to marks and words to the thread's place in a group.
fn point(body: &mut Body, thread: &str, bytes: usize) {
    for name in ["marks", "words"] {
        body.line(format!("cvta.to.global.u64 %p_{name}, %p_{name};"));
        body.line(format!("mad.wide.u32 %p_{name}, {thread}, {bytes}, %p_{name};"));
    }
}

/// Inverts marked bits of D, stores D if its words are wanted, and folds it into the digest. Expects `%mark` to be as
/// wide as a register of D.
fn check(body: &mut Body, d: &Operand<'_>) {
    let (name, bits, bytes) = (d.name, d.bits(), d.layout.bytes());
    let offset = |at: usize| at * d.layout.register_bytes() * d.threads;
    body.line("@!%is_marked bra unmarked;");
    body.line(format!("mul.wide.u32 %at, %group, {bytes};"));
    body.line("add.s64 %at, %at, %p_marks;");
    for at in 0..d.count() {
        body.line(format!("ld.global.b{bits} %mark, [%at+{}];", offset(at)));
        body.line(format!("xor.b{bits} %{name}{at}, %{name}{at}, %mark;"));
    }
    body.label("unmarked");
    body.line("@!%is_written bra unwritten;");
    body.line("mad.lo.u32 %slot, %cta, %count, %group;");
    body.line(format!("mul.wide.u32 %at, %slot, {bytes};"));
    body.line("add.s64 %at, %at, %p_words;");
    (0..d.count()).for_each(|at| body.line(format!("st.global.b{bits} [%at+{}], %{name}{at};", offset(at))));
    body.label("unwritten");
    for at in 0..d.count() {
        if bits == 64 {
            body.line(format!("mov.b64 {{%low, %high}}, %{name}{at};"));
            fold(body, "%low");
            fold(body, "%high");
        } else {
            fold(body, &format!("%{name}{at}"));
        }
    }
}

/// Enters the loop over groups and passes.
fn next(body: &mut Body) {
    body.lines(
        "setp.lt.u32 %more, %group, %count;
        @!%more bra finish;",
    );
    body.label("next");
}

/// Continues with the next group, or the next pass from group `first` on, or stores the digest and ends.
fn end(body: &mut Body, first: &str) {
    body.lines(
        "add.u32 %group, %group, %stride;
        setp.lt.u32 %more, %group, %count;
        @%more bra next;",
    );
    body.line(format!("mov.u32 %group, {first};"));
    body.lines(
        "sub.u32 %passes, %passes, 1;
        setp.ne.u32 %again, %passes, 0;
        @%again bra next;",
    );
    body.label("finish");
    body.lines(
        "st.global.u32 [%p_digests], %digest;
        mov.u32 %place, %smid;
        @%is_first st.global.u32 [%own_place+4], %place;",
    );
    body.label("elsewhere");
    body.line("ret;");
}

/// Writes the chain of instructions, or the only one of an instruction whose C has another format.
fn chain(body: &mut Body, instruction: &Instruction, parts: [&str; 3]) {
    if !is_chained(instruction) {
        return parts.into_iter().for_each(|part| body.lines(part));
    }
    body.line("mov.u32 %rest, %steps;");
    split(body);
    repeat(body, parts);
}

/// Registers of kernels with one warp a group, and the warp's first group and the distance to the next.
const OF_WARPS: &str = ".reg .b64 %at, %p_a, %p_b, %p_c, %p_scale_a, %p_scale_b;
    .reg .b32 %thread, %lane, %warp, %group, %stride, %count;
    .reg .pred %more;
    mov.u32 %thread, %tid.x;
    and.b32 %lane, %thread, 31;
    shr.u32 %warp, %thread, 5;
    mov.u32 %group, %warp;
    mov.u32 %stride, 4;
    ld.param.u32 %count, [count];";

/// `mma`: operands and sums in registers.
fn warps(instruction: &Instruction, layouts: &Layouts, target: Target) -> Kernel {
    let (a, b) = (Operand::new('a', &layouts.a, 32), Operand::new('b', &layouts.b, 32));
    let (c, d) = (Operand::new('c', &layouts.c, 32), Operand::new('d', &layouts.d, 32));
    let scales = layouts.scales.as_ref();
    let scales = scales.map(|(of_a, of_b)| (Operand::new('s', of_a, 32), Operand::new('t', of_b, 32)));
    // A chain starts with C in the registers of D.
    let sum = if is_chained(instruction) { &d } else { &c };
    let mut body = Body::default();
    [&a, &b, &d].into_iter().for_each(|operand| operand.declare(&mut body));
    if !is_chained(instruction) {
        c.declare(&mut body);
    }
    body.line(format!(".reg .b{} %mark;", d.bits()));
    body.lines(OF_WARPS);
    begin(&mut body);
    for (name, operand) in [("a", &a), ("b", &b), ("c", &c)] {
        pointer(&mut body, name, "%lane", operand.layout.register_bytes());
    }
    if let Some((of_a, of_b)) = &scales {
        of_a.declare(&mut body);
        of_b.declare(&mut body);
        pointer(&mut body, "scale_a", "%lane", 4);
        pointer(&mut body, "scale_b", "%lane", 4);
    }
    point(&mut body, "%lane", d.layout.register_bytes());
    next(&mut body);
    a.load(&mut body, "%p_a");
    b.load(&mut body, "%p_b");
    sum.load(&mut body, "%p_c");
    if let Some((of_a, of_b)) = &scales {
        of_a.load(&mut body, "%p_scale_a");
        of_b.load(&mut body, "%p_scale_b");
    }
    let multiply = mma::multiply(instruction, [&d, &a, &b, sum], scales.is_some());
    chain(&mut body, instruction, ["", &multiply, ""]);
    check(&mut body, &d);
    end(&mut body, "%warp");
    Kernel {
        text: module(target, &parameters(scales.is_some()), THREADS, &body),
        threads: THREADS,
        groups_at_once: THREADS / 32,
    }
}

/// `wmma`: D goes through shared memory, since only the device knows which register holds which element.
fn opaque_warps(instruction: &Instruction, layouts: &Layouts, target: Target) -> Kernel {
    let id = &instruction.id;
    let operands = [('a', &layouts.a), ('b', &layouts.b), ('c', &layouts.c)]
        .map(|(name, layout)| (name, layout, wmma::fragment_registers(id, name, layout)));
    let d = Operand::new('x', &layouts.d, 32);
    let (bits, bytes) = (d.bits(), layouts.d.bytes());
    let mut body = Body::default();
    for (name, layout, count) in operands {
        body.line(format!(".reg .b{} %{name}<{count}>;", layout.register_bytes() * 8));
    }
    d.declare(&mut body);
    body.line(format!(".reg .b{bits} %mark;"));
    body.line(format!(".shared .align 128 .b8 results[{}];", bytes * (THREADS as usize / 32)));
    body.line(".reg .b32 %tile, %own;");
    body.lines(OF_WARPS);
    begin(&mut body);
    for name in ["a", "b", "c"] {
        pointer(&mut body, name, "0", 0);
    }
    point(&mut body, "%lane", layouts.d.register_bytes());
    body.line("mov.u32 %tile, results;");
    body.line(format!("mad.lo.u32 %tile, %warp, {bytes}, %tile;"));
    body.line(format!("mad.lo.u32 %own, %lane, {}, %tile;", layouts.d.register_bytes()));
    next(&mut body);
    for (name, layout, count) in operands {
        let (words, stride) = wmma::access(id, name);
        body.line(format!("mul.wide.u32 %at, %group, {};", layout.bytes()));
        body.line(format!("add.s64 %at, %at, %p_{name};"));
        body.line(format!("wmma.load.{words} {}, [%at], {stride};", registers(name, count)));
    }
    let [a, b, sums] = operands.map(|(name, _, count)| registers(name, count));
    let multiply = format!("{} {sums}, {a}, {b}, {sums};", instruction.text);
    chain(&mut body, instruction, ["", &multiply, ""]);
    let (words, stride) = wmma::access(id, 'd');
    let words = words.replace(".global.", ".shared.");
    body.line(format!("wmma.store.{words} [%tile], {sums}, {stride};"));
    body.line("bar.warp.sync 0xffffffff;");
    let step = d.layout.register_bytes() * 32;
    (0..d.count()).for_each(|at| body.line(format!("ld.shared.b{bits} %x{at}, [%own+{}];", at * step)));
    body.line("bar.warp.sync 0xffffffff;");
    check(&mut body, &d);
    end(&mut body, "%warp");
    Kernel { text: module(target, &parameters(false), THREADS, &body), threads: THREADS, groups_at_once: THREADS / 32 }
}

/// `wgmma`: one group of a block at a time; A and B in shared memory, sums in registers.
fn warpgroup(instruction: &Instruction, layouts: &Layouts, target: Target) -> Kernel {
    let d = Operand::new('d', &layouts.d, wgmma::GROUP_THREADS);
    let mut body = Body::default();
    d.declare(&mut body);
    body.line(".reg .b32 %mark;");
    let of_block = "mov.u32 %group, 0;\nmov.u32 %stride, 1;";
    wgmma::begin(&mut body, instruction, layouts, of_block, &["a", "b", "c"]);
    begin(&mut body);
    point(&mut body, "%thread", 4);
    next(&mut body);
    wgmma::load(&mut body, layouts, &d);
    let [begin, multiply, end_of_row] = wgmma::multiply(instruction, &d.list());
    chain(&mut body, instruction, [&begin, &multiply, &end_of_row]);
    check(&mut body, &d);
    // Other warps may still read operands that the next group overwrites.
    body.line("bar.sync 0;");
    end(&mut body, "0");
    Kernel { text: module(target, &parameters(false), THREADS, &body), threads: THREADS, groups_at_once: 1 }
}
