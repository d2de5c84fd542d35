//! The kernels: PTX text for an instruction on a device.
//!
//! Every kernel is `tiles(a, b, c, d, [scale_a, scale_b,] count)`: it computes `count` groups of tiles, whose operands lie
//! as [`crate::layout`] says, in a loop over the grid.

use std::fmt::Write as _;

use mxprobe_api::{Format, OperationId};

use crate::capability::Target;
use crate::instruction::{Instruction, Kind};
use crate::layout::{Layout, Layouts};
use crate::resident::Steps;
use crate::tensor;
use crate::timed::blocks_of_multiprocessor;

/// The name of every kernel's entry.
pub(crate) const ENTRY: &str = "tiles";

/// A kernel's text and how it is launched.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    pub(crate) text: String,
    /// Threads of a block.
    pub(crate) threads: u32,
    /// Groups of tiles that one block computes at a time.
    pub(crate) groups_at_once: u32,
}

impl Kernel {
    /// The same with the promise that so many blocks fit into a multiprocessor, for which the compiler limits registers.
    ///
    /// No loop of it is unrolled (PTX ISA 9.0, chapter 12): ptxas 13.5 makes 72 HGMMA of nine, and takes eight times as long.
    /// At the head of a loop the pragma stops it for `mma` and not for `wgmma`; before the body of the entry for both.
    fn with_blocks_of_multiprocessor(mut self, blocks: u32) -> Self {
        let directives = format!("\n.minnctapersm {blocks}\n.pragma \"nounroll\";\n{{\n");
        self.text = self.text.replacen("\n{\n", &directives, 1);
        self
    }
}

/// The kernel of an instruction, for the target it needs on the device at hand.
pub(crate) fn kernel(instruction: &Instruction, layouts: &Layouts, target: Target, steps: Steps) -> Kernel {
    let kernel = match instruction.kind {
        Kind::Warp | Kind::Quarter => warp(instruction, layouts, target, steps),
        Kind::Opaque => opaque(instruction, layouts, target, steps),
        Kind::Warpgroup => warpgroup(instruction, layouts, target, steps),
        Kind::Tensor => tensor::kernel(instruction, layouts, target, steps),
    };
    match steps {
        Steps::One => kernel,
        Steps::Many => kernel.with_blocks_of_multiprocessor(blocks_of_multiprocessor(Some(instruction))),
    }
}

/// Lines of text, four spaces in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Body(String);

impl Body {
    pub(crate) fn line(&mut self, line: impl AsRef<str>) {
        writeln!(self.0, "    {}", line.as_ref()).expect("a string takes it");
    }

    pub(crate) fn lines(&mut self, lines: &str) {
        lines.lines().for_each(|line| self.line(line.trim()));
    }

    pub(crate) fn label(&mut self, label: &str) {
        writeln!(self.0, "{label}:").expect("a string takes it");
    }
}

/// The text of a module with the one entry.
pub(crate) fn module(target: Target, parameters: &[&str], threads: u32, body: &Body) -> String {
    header(target) + &entry(ENTRY, parameters, threads, body)
}

/// What a module begins with.
pub(crate) fn header(target: Target) -> String {
    format!(".version {}\n.target {}\n.address_size 64\n\n", target.version, target.name)
}

/// An entry: pointers, then a count.
pub(crate) fn entry(name: &str, parameters: &[&str], threads: u32, body: &Body) -> String {
    let pointers = parameters.iter().map(|name| format!("    .param .u64 {name},\n")).collect::<String>();
    format!(".visible .entry {name}(\n{pointers}    .param .u32 count\n)\n.maxntid {threads}, 1, 1\n{{\n{}}}\n", body.0)
}

/// `{%a0, %a1}`.
pub(crate) fn registers(name: char, count: usize) -> String {
    registers_from(name, 0, count)
}

/// `{%a4, %a5}`.
pub(crate) fn registers_from(name: char, first: usize, count: usize) -> String {
    let names: Vec<String> = (first..first + count).map(|at| format!("%{name}{at}")).collect();
    format!("{{{}}}", names.join(", "))
}

/// An operand in registers of some threads.
pub(crate) struct Operand<'a> {
    name: char,
    layout: &'a Layout,
    threads: usize,
}

impl<'a> Operand<'a> {
    pub(crate) fn new(name: char, layout: &'a Layout, threads: usize) -> Self {
        Self { name, layout, threads }
    }

    pub(crate) fn count(&self) -> usize {
        self.layout.registers(self.threads)
    }

    fn bits(&self) -> usize {
        self.layout.register_bytes() * 8
    }

    pub(crate) fn list(&self) -> String {
        registers(self.name, self.count())
    }

    pub(crate) fn declare(&self, body: &mut Body) {
        body.line(format!(".reg .b{} %{}<{}>;", self.bits(), self.name, self.count()));
    }

    /// Loads or stores the registers of group `%group`; `%base` holds the lane's address in group 0.
    fn each(&self, body: &mut Body, base: &str, access: impl Fn(usize, usize) -> String) {
        body.line(format!("mul.wide.u32 %at, %group, {};", self.layout.bytes()));
        body.line(format!("add.s64 %at, %at, {base};"));
        let stride = self.layout.register_bytes() * self.threads;
        (0..self.count()).for_each(|at| body.line(access(at, at * stride)));
    }

    pub(crate) fn load(&self, body: &mut Body, base: &str) {
        let (bits, name) = (self.bits(), self.name);
        self.each(body, base, |at, offset| format!("ld.global.b{bits} %{name}{at}, [%at+{offset}];"));
    }

    pub(crate) fn store(&self, body: &mut Body, base: &str) {
        let (bits, name) = (self.bits(), self.name);
        self.each(body, base, |at, offset| format!("st.global.b{bits} [%at+{offset}], %{name}{at};"));
    }
}

/// Loads a pointer parameter and moves it on by the thread's place.
pub(crate) fn pointer(body: &mut Body, parameter: &str, thread: &str, bytes: usize) {
    body.line(format!("ld.param.u64 %p_{parameter}, [{parameter}];"));
    body.line(format!("cvta.to.global.u64 %p_{parameter}, %p_{parameter};"));
    body.line(format!("mad.wide.u32 %p_{parameter}, {thread}, {bytes}, %p_{parameter};"));
}

/// The first group of a warp, and how far it is to the next; `%thread` holds the thread in its block.
pub(crate) fn warp_loop(body: &mut Body) {
    body.lines(
        "ld.param.u32 %count, [count];
        shr.u32 %thread, %thread, 5;
        mov.u32 %warps, %ntid.x;
        shr.u32 %warps, %warps, 5;
        mov.u32 %block, %ctaid.x;
        mad.lo.u32 %group, %block, %warps, %thread;
        mov.u32 %block, %nctaid.x;
        mul.lo.u32 %stride, %block, %warps;
        setp.lt.u32 %more, %group, %count;
        @!%more bra finish;",
    );
}

/// On to the next group, and the end.
pub(crate) fn warp_loop_end(body: &mut Body) {
    body.lines(
        "add.u32 %group, %group, %stride;
        setp.lt.u32 %more, %group, %count;
        @%more bra next;",
    );
    body.label("finish");
    body.line("ret;");
}

/// One warp a group: registers, one `mma.sync`, registers.
fn warp(instruction: &Instruction, layouts: &Layouts, target: Target, steps: Steps) -> Kernel {
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
    // Again and again, the sum is in the registers of D, and begins there as C.
    let sum = if steps == Steps::Many { &d } else { &c };
    sum.load(&mut body, "%p_c");
    let mut operands = format!("{}, {}, {}, {}", d.list(), a.list(), b.list(), sum.list());
    if let Some((of_a, of_b)) = &scales {
        of_a.load(&mut body, "%p_scale_a");
        of_b.load(&mut body, "%p_scale_b");
        // Byte 0 and thread 0 or 1 of each four: every lane holds what any selector could ask for.
        operands.push_str(", %s0, {0, 0}, %t0, {0, 0}");
    }
    steps.emit(&mut body, "", &format!("{} {operands};", instruction.text), "");
    d.store(&mut body, "%p_d");
    steps.store_cycles(&mut body);
    warp_loop_end(&mut body);
    let text = module(target, &parameters, THREADS, &body);
    Kernel { text, threads: THREADS, groups_at_once: THREADS / 32 }
}

/// One warp a group: `wmma`, which finds its registers' elements by itself.
fn opaque(instruction: &Instruction, layouts: &Layouts, target: Target, steps: Steps) -> Kernel {
    const THREADS: u32 = 128;
    let id = &instruction.id;
    let operands = [('a', &layouts.a), ('b', &layouts.b), ('c', &layouts.c), ('d', &layouts.d)]
        .map(|(name, layout)| (name, layout, wmma_registers(id, name, layout)));
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
            // Again and again, the registers of C are those of D.
            let d = if steps == Steps::Many { &lists[2] } else { &lists[3] };
            let multiply = format!("{} {d}, {}, {}, {};", instruction.text, lists[0], lists[1], lists[2]);
            steps.emit(&mut body, "", &multiply, "");
        }
        body.line(format!("mul.wide.u32 %at, %group, {};", layout.bytes()));
        body.line(format!("add.s64 %at, %at, %p_{name};"));
        let (list, (words, stride)) = (registers(name, count), wmma_access(id, name));
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

/// Registers of a fragment of `wmma`.
pub(crate) fn wmma_registers(id: &OperationId, name: char, layout: &Layout) -> usize {
    // Volta's f16 fragments hold every element twice; so do all later ones, for compatibility (PTX ISA 9.0, 9.7.14.4.1).
    if matches!(name, 'a' | 'b') && id.a == Format::F16 { 8 } else { layout.registers(32) }
}

/// What stands behind `wmma.load.` or `wmma.store.`, and how many elements it is from line to line.
pub(crate) fn wmma_access(id: &OperationId, name: char) -> (String, usize) {
    let (shape, (_, n, k)) = (id.shape, id.shape.sizes());
    let (order, format, stride) = match name {
        'a' => ("row", id.a, k),
        'b' => ("col", id.b, k),
        'c' => ("row", id.c, n),
        _ => ("row", id.d, n),
    };
    (format!("{name}.sync.aligned.{order}.{shape}.global.{format}"), stride)
}

/// Copies an operand of group `%group` from global to shared memory, 4 bytes a thread at a time.
pub(crate) fn copy_to_shared(body: &mut Body, layout: &Layout, pointer: &str, shared: &str, threads: usize) {
    body.line(format!("mul.wide.u32 %at, %group, {};", layout.bytes()));
    body.line(format!("add.s64 %at, %at, {pointer};"));
    copy_from(body, layout, "%at", shared, threads);
}

/// Copies an operand that begins at `at`, moved on by the thread's place.
pub(crate) fn copy_from(body: &mut Body, layout: &Layout, at: &str, shared: &str, threads: usize) {
    let mut done = 0;
    while done < layout.bytes() {
        let left = (layout.bytes() - done) / 4;
        let guard = if left < threads {
            body.line(format!("setp.lt.u32 %copies, %thread, {left};"));
            "@%copies "
        } else {
            ""
        };
        body.line(format!("{guard}ld.global.b32 %word, [{at}+{done}];"));
        body.line(format!("{guard}st.shared.b32 [{shared}+{done}], %word;"));
        done += threads * 4;
    }
}

/// The descriptor of a matrix in shared memory without swizzle (PTX ISA 9.0, 9.7.15.5.1.2.2), but for its address:
/// core matrices that follow each other in k lie `leading` bytes apart, those that follow in m or n `stride` bytes.
pub(crate) fn descriptor(leading: usize, stride: usize) -> u64 {
    (leading as u64 >> 4) << 16 | (stride as u64 >> 4) << 32
}

/// Bytes of a core matrix: 8 lines of 16 bytes.
pub(crate) const CORE_MATRIX_BYTES: usize = 128;

/// Threads of a warpgroup.
pub(crate) const GROUP_THREADS: usize = 128;

/// Registers of a warpgroup's kernel but for its sums, the pointers moved on by the thread's place, its first group, and the
/// descriptors of A and B in shared memory.
pub(crate) fn warpgroup_begin(body: &mut Body, instruction: &Instruction, layouts: &Layouts) {
    let (m, n, _) = instruction.id.shape.sizes();
    let (a_bytes, b_bytes) = (layouts.a.bytes(), layouts.b.bytes());
    body.line(format!(".shared .align 128 .b8 operands[{}];", a_bytes + b_bytes));
    body.lines(
        ".reg .b64 %at, %p_a, %p_b, %p_c, %p_d, %of_a, %of_b, %wide;
        .reg .b32 %thread, %group, %stride, %count, %word, %shared_a, %shared_b, %own_a, %own_b;
        .reg .pred %more, %copies, %adds;
        mov.u32 %thread, %tid.x;
        mov.u32 %group, %ctaid.x;
        mov.u32 %stride, %nctaid.x;
        ld.param.u32 %count, [count];
        mov.u32 %shared_a, operands;",
    );
    body.line(format!("add.u32 %shared_b, %shared_a, {a_bytes};"));
    body.lines(
        "mad.lo.u32 %own_a, %thread, 4, %shared_a;
        mad.lo.u32 %own_b, %thread, 4, %shared_b;",
    );
    for name in ["a", "b", "c", "d"] {
        pointer(body, name, "%thread", 4);
    }
    for (side, lines) in [('a', m), ('b', n)] {
        let constant = descriptor(lines / 8 * CORE_MATRIX_BYTES, CORE_MATRIX_BYTES);
        body.line(format!("and.b32 %word, %shared_{side}, 0x3ffff;"));
        body.line("shr.u32 %word, %word, 4;");
        body.line("cvt.u64.u32 %wide, %word;");
        body.line(format!("or.b64 %of_{side}, %wide, {constant:#x};"));
    }
    body.lines(
        "setp.eq.u32 %adds, %thread, %thread;
        setp.lt.u32 %more, %group, %count;
        @!%more bra finish;",
    );
}

/// On to the next group of a warpgroup, and the end.
pub(crate) fn warpgroup_end(body: &mut Body) {
    body.lines(
        "bar.sync 0;
        add.u32 %group, %group, %stride;
        setp.lt.u32 %more, %group, %count;
        @%more bra next;",
    );
    body.label("finish");
    body.line("ret;");
}

/// What stands behind the operands of `wgmma`: negation of A and B off; 16-bit operands can be transposed too, and they are
/// not (PTX ISA 9.0, 9.7.15.5.2).
pub(crate) fn wgmma_modifiers(id: &OperationId) -> &'static str {
    match (id.is_integer(), id.a.bits()) {
        (true, _) => "",
        (false, 16) => ", 1, 1, 0, 0",
        (false, _) => ", 1, 1",
    }
}

/// `wgmma` that adds to registers, with what stands before and after it.
fn wgmma(instruction: &Instruction, sums: &str) -> [String; 3] {
    let modifiers = wgmma_modifiers(&instruction.id);
    [
        "wgmma.fence.sync.aligned;".to_owned(),
        format!("{} {sums}, %of_a, %of_b, %adds{modifiers};", instruction.text),
        "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;".to_owned(),
    ]
}

/// Four warps a group: A and B in shared memory, one `wgmma.mma_async` that adds to the registers that held C.
fn warpgroup(instruction: &Instruction, layouts: &Layouts, target: Target, steps: Steps) -> Kernel {
    let d = Operand::new('d', &layouts.d, GROUP_THREADS);
    let mut body = Body::default();
    d.declare(&mut body);
    warpgroup_begin(&mut body, instruction, layouts);
    body.label("next");
    copy_to_shared(&mut body, &layouts.a, "%p_a", "%own_a", GROUP_THREADS);
    copy_to_shared(&mut body, &layouts.b, "%p_b", "%own_b", GROUP_THREADS);
    d.load(&mut body, "%p_c");
    body.lines(
        "fence.proxy.async.shared::cta;
        bar.sync 0;",
    );
    let [begin, multiply, end] = wgmma(instruction, &d.list());
    steps.emit(&mut body, &begin, &multiply, &end);
    d.store(&mut body, "%p_d");
    steps.store_cycles(&mut body);
    warpgroup_end(&mut body);
    let mut parameters = vec!["a", "b", "c", "d"];
    steps.parameters(&mut parameters);
    let text = module(target, &parameters, 128, &body);
    Kernel { text, threads: 128, groups_at_once: 1 }
}
