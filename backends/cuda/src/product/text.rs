//! The kernels of whole matrices: a block of tiles of D to a warp, or a tile to a warpgroup, all along k.
//!
//! They are `tiles(a, b, c, d, steps, across, count)`: `count` blocks of D, `across` of them side by side, `steps` operations
//! along k, k ascending, the sum of one being C of the next. Operands lie as [`super::Order`] says.

use crate::capability::Target;
use crate::instruction::{Instruction, Kind};
use crate::layout::{Layout, Layouts};
use crate::ptx::{
    Body, GROUP_THREADS, Kernel, Operand, copy_from, module, pointer, registers_from, warp_loop, warp_loop_end,
    warpgroup_begin, warpgroup_end, wgmma, wmma_access, wmma_registers,
};

/// 32-bit registers of a thread that fragments may take: as many threads run at once as hide the latency of memory.
const REGISTERS: usize = 128;
/// Blocks of tiles that are tried, the largest first: groups of tiles down, tiles across.
const BLOCKS: [(usize, usize); 6] = [(4, 4), (2, 4), (2, 2), (1, 2), (2, 1), (1, 1)];

/// A kernel of whole matrices.
pub(crate) struct Whole {
    pub(crate) kernel: Kernel,
    /// Groups of tiles, one below the other, of a block of D.
    pub(crate) down: usize,
    /// Tiles side by side of a block of D.
    pub(crate) across: usize,
}

/// The kernel of an instruction; `None` where its sums are in tensor memory, take scales, or cannot be the next one's C.
pub(crate) fn whole(instruction: &Instruction, layouts: &Layouts, target: Target) -> Option<Whole> {
    if instruction.id.c != instruction.id.d || layouts.scales.is_some() {
        return None;
    }
    match instruction.kind {
        Kind::Warp | Kind::Quarter | Kind::Opaque => Some(warps(instruction, layouts, target)),
        Kind::Warpgroup => Some(warpgroup(instruction, layouts, target)),
        Kind::Tensor => None,
    }
}

const PARAMETERS: [&str; 6] = ["a", "b", "c", "d", "steps", "across"];

/// The fragments of an operand that a warp holds.
struct Fragments<'a> {
    name: char,
    layout: &'a Layout,
    registers: usize,
    instruction: &'a Instruction,
}

impl<'a> Fragments<'a> {
    fn new(name: char, layout: &'a Layout, instruction: &'a Instruction) -> Self {
        let registers = match instruction.kind {
            Kind::Opaque => wmma_registers(&instruction.id, name, layout),
            _ => layout.registers(32),
        };
        Self { name, layout, registers, instruction }
    }

    fn declare(&self, body: &mut Body, count: usize) {
        body.line(format!(".reg .b{} %{}<{}>;", self.layout.register_bytes() * 8, self.name, count * self.registers));
    }

    fn list(&self, fragment: usize) -> String {
        registers_from(self.name, fragment * self.registers, self.registers)
    }

    /// 32-bit registers that each thread takes for a fragment.
    fn words(&self) -> usize {
        self.registers * self.layout.register_bytes() / 4
    }

    /// Loads the first fragments from an address on; those of D are those of C.
    fn load(&self, body: &mut Body, count: usize, address: &str) {
        let name = if self.name == 'd' { 'c' } else { self.name };
        let (words, stride) = wmma_access(&self.instruction.id, name);
        self.each(body, count, |list, register, offset| match register {
            None => format!("wmma.load.{words} {list}, [{address}+{offset}], {stride};"),
            Some((bits, register)) => format!("ld.global.b{bits} {register}, [{address}+{offset}];"),
        });
    }

    fn store(&self, body: &mut Body, count: usize, address: &str) {
        let (words, stride) = wmma_access(&self.instruction.id, self.name);
        self.each(body, count, |list, register, offset| match register {
            None => format!("wmma.store.{words} [{address}+{offset}], {list}, {stride};"),
            Some((bits, register)) => format!("st.global.b{bits} [{address}+{offset}], {register};"),
        });
    }

    /// A line for each fragment of `wmma`, else for each register, with its width and its place.
    fn each(&self, body: &mut Body, count: usize, line: impl Fn(&str, Option<(usize, &str)>, usize) -> String) {
        for fragment in 0..count {
            let (list, offset) = (self.list(fragment), fragment * self.layout.bytes());
            if self.instruction.kind == Kind::Opaque {
                body.line(line(&list, None, offset));
                continue;
            }
            let bytes = self.layout.register_bytes();
            for at in 0..self.registers {
                let register = format!("%{}{}", self.name, fragment * self.registers + at);
                body.line(line(&list, Some((8 * bytes, &register)), offset + at * bytes * 32));
            }
        }
    }
}

/// The number of steps and of blocks across.
fn lengths(body: &mut Body) {
    body.lines(
        ".reg .b64 %length, %at_a, %at_b;
        .reg .b32 %steps, %across, %row, %column, %rest;
        .reg .pred %again;",
    );
    for name in ["steps", "across"] {
        body.line(format!("ld.param.u64 %length, [{name}];"));
        body.line(format!("cvt.u32.u64 %{name}, %length;"));
    }
}

/// Where the rows of A and the columns of B for block `%group` of D begin: so many bytes of each a step.
fn places(body: &mut Body, a: usize, b: usize) {
    body.lines(
        "div.u32 %row, %group, %across;
        mul.lo.u32 %column, %row, %across;
        sub.u32 %column, %group, %column;",
    );
    for (side, line, bytes) in [('a', "row", a), ('b', "column", b)] {
        body.line(format!("mul.wide.u32 %at_{side}, %{line}, %steps;"));
        body.line(format!("mad.lo.u64 %at_{side}, %at_{side}, {bytes}, %p_{side};"));
    }
    body.line("mov.u32 %rest, %steps;");
}

/// On to the next step along k.
fn next_step(body: &mut Body, a: usize, b: usize) {
    body.line(format!("add.s64 %at_a, %at_a, {a};"));
    body.line(format!("add.s64 %at_b, %at_b, {b};"));
    body.lines(
        "sub.u32 %rest, %rest, 1;
        setp.ne.u32 %again, %rest, 0;
        @%again bra step;",
    );
}

/// A block of tiles to a warp, its sums in registers.
fn warps(instruction: &Instruction, layouts: &Layouts, target: Target) -> Whole {
    const THREADS: u32 = 128;
    let [a, b, d] = [('a', &layouts.a), ('b', &layouts.b), ('d', &layouts.d)]
        .map(|(name, layout)| Fragments::new(name, layout, instruction));
    let taken = |(down, across): (usize, usize)| down * a.words() + across * b.words() + down * across * d.words();
    let fitting = BLOCKS.into_iter().find(|block| taken(*block) <= REGISTERS);
    let (down, across) = fitting.unwrap_or((1, 1));
    let mut body = Body::default();
    for (fragments, count) in [(&a, down), (&b, across), (&d, down * across)] {
        fragments.declare(&mut body, count);
    }
    body.lines(
        ".reg .b64 %p_a, %p_b, %p_c, %p_d, %at_c, %at_d;
        .reg .b32 %thread, %lane, %group, %stride, %warps, %block, %count;
        .reg .pred %more;
        mov.u32 %thread, %tid.x;
        and.b32 %lane, %thread, 31;",
    );
    for (name, layout) in [("a", &layouts.a), ("b", &layouts.b), ("c", &layouts.c), ("d", &layouts.d)] {
        // `wmma` finds its lanes' places by itself.
        let own = if instruction.kind == Kind::Opaque { 0 } else { layout.register_bytes() };
        pointer(&mut body, name, "%lane", own);
    }
    lengths(&mut body);
    warp_loop(&mut body);
    body.label("next");
    let [a_bytes, b_bytes] = [down * layouts.a.bytes(), across * layouts.b.bytes()];
    places(&mut body, a_bytes, b_bytes);
    body.line(format!("mul.wide.u32 %at_d, %group, {};", down * across * layouts.d.bytes()));
    body.line("add.s64 %at_c, %at_d, %p_c;");
    body.line("add.s64 %at_d, %at_d, %p_d;");
    d.load(&mut body, down * across, "%at_c");
    body.label("step");
    a.load(&mut body, down, "%at_a");
    b.load(&mut body, across, "%at_b");
    for sum in 0..down * across {
        let (of_a, of_b, sum) = (a.list(sum / across), b.list(sum % across), d.list(sum));
        body.line(format!("{} {sum}, {of_a}, {of_b}, {sum};", instruction.text));
    }
    next_step(&mut body, a_bytes, b_bytes);
    d.store(&mut body, down * across, "%at_d");
    warp_loop_end(&mut body);
    let text = module(target, &PARAMETERS, THREADS, &body);
    Whole { kernel: Kernel { text, threads: THREADS, groups_at_once: THREADS / 32 }, down, across }
}

/// A tile to a warpgroup, its sums in registers; each step of A and B goes through shared memory.
fn warpgroup(instruction: &Instruction, layouts: &Layouts, target: Target) -> Whole {
    let d = Operand::new('d', &layouts.d, GROUP_THREADS);
    let mut body = Body::default();
    d.declare(&mut body);
    lengths(&mut body);
    warpgroup_begin(&mut body, instruction, layouts);
    body.label("next");
    let (a_bytes, b_bytes) = (layouts.a.bytes(), layouts.b.bytes());
    places(&mut body, a_bytes, b_bytes);
    d.load(&mut body, "%p_c");
    body.label("step");
    copy_from(&mut body, &layouts.a, "%at_a", "%own_a", GROUP_THREADS);
    copy_from(&mut body, &layouts.b, "%at_b", "%own_b", GROUP_THREADS);
    body.lines(
        "fence.proxy.async.shared::cta;
        bar.sync 0;",
    );
    wgmma(instruction, &d.list()).iter().for_each(|line| body.lines(line));
    // Nobody copies the next step over what is still read.
    body.line("bar.sync 0;");
    next_step(&mut body, a_bytes, b_bytes);
    d.store(&mut body, "%p_d");
    warpgroup_end(&mut body);
    let text = module(target, &PARAMETERS, 128, &body);
    Whole { kernel: Kernel { text, threads: 128, groups_at_once: 1 }, down: 1, across: 1 }
}
