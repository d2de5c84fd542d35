//! Kernels of whole matrices by `mma` and `wmma`: each warp computes a block of tiles, with its sums in registers.
//!
//! The operands of two steps are in registers: while the instructions of one run, those of the next are being loaded.

use super::block::{Block, PARAMETERS, ProductKernel, Wide, patch_loop, patch_loop_end, places};
use crate::ptx::capability::Target;
use crate::ptx::instruction::{Instruction, Kind};
use crate::ptx::layout::{Layout, Layouts};
use crate::ptx::text::{Body, Kernel, module, pointer, registers_from};
use crate::ptx::wmma;

/// The number of 32-bit registers of a thread that fragments may take, out of 255.
const REGISTERS: usize = 200;
/// Blocks of tiles: groups of tiles down, tiles across.
const BLOCKS: [(usize, usize); 7] = [(4, 8), (4, 4), (2, 4), (2, 2), (1, 2), (2, 1), (1, 1)];
/// The warps of a thread block, 2 × 2.
const PATCH: Block = Block { down: 2, across: 2 };
const THREADS: u32 = 128;

/// The blocks whose sums and operands fit into registers, the largest first; the smallest block is always included.
pub(super) fn blocks(instruction: &Instruction, layouts: &Layouts) -> Vec<Block> {
    let [a, b, d] = fragments(instruction, layouts).map(|fragments| fragments.words());
    let taken = |(down, across): &(usize, usize)| 2 * (down * a + across * b) + down * across * d;
    let is_last = |block: &(usize, usize)| *block == (1, 1);
    let fitting = BLOCKS.into_iter().filter(|block| taken(block) <= REGISTERS || is_last(block));
    fitting.map(|(down, across)| Block { down, across }).collect()
}

fn fragments<'a>(instruction: &'a Instruction, layouts: &'a Layouts) -> [Fragments<'a>; 3] {
    [('a', &layouts.a), ('b', &layouts.b), ('d', &layouts.d)]
        .map(|(name, layout)| Fragments::new(name, layout, instruction))
}

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
            Kind::Wmma => wmma::fragment_registers(&instruction.id, name, layout),
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

    /// The number of 32-bit registers that each thread takes for a fragment.
    fn words(&self) -> usize {
        self.registers * self.layout.register_bytes() / 4
    }

    /// The arrangement of a step of this many fragments in memory; `wmma` determines its lanes' places itself.
    fn wide(&self, count: usize) -> Wide {
        if self.instruction.kind == Kind::Wmma { Wide::none() } else { Wide::new(self.layout, count) }
    }

    /// Loads `count` fragments of A or B from an address into those from `first` on, if a predicate holds.
    fn load_step(&self, body: &mut Body, (first, count): (usize, usize), address: &str, guard: &str) {
        if self.instruction.kind == Kind::Wmma {
            return self.load(body, (first, count), address, guard);
        }
        let Wide { registers, bytes, at_once } = self.wide(count);
        let vector = if at_once == 1 { String::new() } else { format!(".v{at_once}") };
        for at in (0..registers).step_by(at_once) {
            let into = registers_from(self.name, first * self.registers + at, at_once);
            let into = if at_once == 1 { into.trim_matches(['{', '}']).to_owned() } else { into };
            body.line(format!("{guard}ld.global{vector}.b{} {into}, [{address}+{}];", 8 * bytes, at * bytes * 32));
        }
    }

    /// Loads fragments from an address; those of D are loaded from C.
    fn load(&self, body: &mut Body, (first, count): (usize, usize), address: &str, guard: &str) {
        let name = if self.name == 'd' { 'c' } else { self.name };
        let (words, stride) = wmma::access(&self.instruction.id, name);
        self.each(body, (first, count), |list, register, offset| match register {
            None => format!("{guard}wmma.load.{words} {list}, [{address}+{offset}], {stride};"),
            Some((bits, register)) => format!("{guard}ld.global.b{bits} {register}, [{address}+{offset}];"),
        });
    }

    fn store(&self, body: &mut Body, count: usize, address: &str) {
        let (words, stride) = wmma::access(&self.instruction.id, self.name);
        self.each(body, (0, count), |list, register, offset| match register {
            None => format!("wmma.store.{words} [{address}+{offset}], {list}, {stride};"),
            Some((bits, register)) => format!("st.global.b{bits} [{address}+{offset}], {register};"),
        });
    }

    /// Writes a line for each fragment of `wmma`, otherwise for each register, with its width and its place.
    fn each(
        &self,
        body: &mut Body,
        (first, count): (usize, usize),
        line: impl Fn(&str, Option<(usize, &str)>, usize) -> String,
    ) {
        for fragment in 0..count {
            let (list, offset) = (self.list(first + fragment), fragment * self.layout.bytes());
            if self.instruction.kind == Kind::Wmma {
                body.line(line(&list, None, offset));
                continue;
            }
            let bytes = self.layout.register_bytes();
            for at in 0..self.registers {
                let register = format!("%{}{}", self.name, (first + fragment) * self.registers + at);
                body.line(line(&list, Some((8 * bytes, &register)), offset + at * bytes * 32));
            }
        }
    }
}

/// Writes the kernel for blocks of this size.
pub(super) fn kernel(instruction: &Instruction, layouts: &Layouts, target: Target, block: Block) -> ProductKernel {
    let Block { down, across } = block;
    let [a, b, d] = fragments(instruction, layouts);
    let (of_a, of_b) = (a.wide(down), b.wide(across));
    let mut body = Body::default();
    for (fragments, count) in [(&a, 2 * down), (&b, 2 * across), (&d, down * across)] {
        fragments.declare(&mut body, count);
    }
    body.lines(
        ".reg .b64 %p_a, %p_b, %p_c, %p_d, %at_c, %at_d;
        .reg .b32 %thread, %lane, %warp;
        .reg .pred %inside, %also, %second, %again;
        mov.u32 %thread, %tid.x;
        and.b32 %lane, %thread, 31;
        shr.u32 %warp, %thread, 5;",
    );
    for (name, layout, wide) in [
        ("a", &layouts.a, of_a),
        ("b", &layouts.b, of_b),
        ("c", &layouts.c, Wide::none()),
        ("d", &layouts.d, Wide::none()),
    ] {
        // `wmma` determines its lanes' places itself.
        let own = if instruction.kind == Kind::Wmma { 0 } else { wide.at_once * layout.register_bytes() };
        pointer(&mut body, name, "%lane", own);
    }
    patch_loop(&mut body, PATCH);
    // Each warp has one block of the patch; beyond the matrix it has none.
    body.line(format!("div.u32 %part, %warp, {};", PATCH.across));
    body.line("add.u32 %row, %row, %part;");
    body.line(format!("mul.lo.u32 %part, %part, {};", PATCH.across));
    body.lines(
        "sub.u32 %part, %warp, %part;
        add.u32 %column, %column, %part;
        setp.lt.u32 %inside, %row, %down;
        setp.lt.u32 %also, %column, %across;
        @!%inside bra over;
        @!%also bra over;",
    );
    let [a_bytes, b_bytes] = [down * layouts.a.bytes(), across * layouts.b.bytes()];
    places(&mut body, a_bytes, b_bytes);
    body.line(format!("mul.wide.u32 %at_d, %part, {};", down * across * layouts.d.bytes()));
    body.line("add.s64 %at_c, %at_d, %p_c;");
    body.line("add.s64 %at_d, %at_d, %p_d;");
    d.load(&mut body, (0, down * across), "%at_c", "");
    let load = |body: &mut Body, stage: usize, guard: &str| {
        a.load_step(body, (stage * down, down), "%at_a", guard);
        b.load_step(body, (stage * across, across), "%at_b", guard);
        body.line(format!("add.s64 %at_a, %at_a, {a_bytes};"));
        body.line(format!("add.s64 %at_b, %at_b, {b_bytes};"));
    };
    let multiply = |body: &mut Body, stage: usize| {
        for sum in 0..down * across {
            let (of_a, of_b) = (a.list(stage * down + sum / across), b.list(stage * across + sum % across));
            let sum = d.list(sum);
            body.line(format!("{} {sum}, {of_a}, {of_b}, {sum};", instruction.text));
        }
    };
    load(&mut body, 0, "");
    body.label("step");
    body.line("setp.gt.u32 %second, %rest, 1;");
    load(&mut body, 1, "@%second ");
    multiply(&mut body, 0);
    body.lines(
        "@!%second bra stored;
        setp.gt.u32 %again, %rest, 2;",
    );
    load(&mut body, 0, "@%again ");
    multiply(&mut body, 1);
    body.lines(
        "sub.u32 %rest, %rest, 2;
        @%again bra step;",
    );
    body.label("stored");
    d.store(&mut body, down * across, "%at_d");
    body.label("over");
    patch_loop_end(&mut body);
    let text = module(target, &PARAMETERS, THREADS, &body);
    ProductKernel { kernel: Kernel { text, threads: THREADS, groups_at_once: 1 }, patch: PATCH, a: of_a, b: of_b }
}
