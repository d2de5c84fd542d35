//! PTX text: modules, entries, registers, and the loop of warps over groups of tiles.

use std::fmt::Write as _;

use super::capability::Target;
use super::layout::Layout;

/// The entry name of every kernel.
pub const ENTRY: &str = "tiles";

/// A kernel's text and how it is launched.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The PTX.
    pub text: String,
    /// The number of threads in a block.
    pub threads: u32,
    /// The number of groups of tiles that one block computes at a time.
    pub groups_at_once: u32,
}

impl Kernel {
    /// The same kernel with the guarantee that this many blocks fit on a multiprocessor, for which the compiler limits
    /// registers.
    ///
    /// No loop of it is unrolled (PTX ISA 9.0, chapter 12): ptxas 13.5 turns nine HGMMA into 72, and takes eight times
    /// as long. At the head of a loop the pragma prevents that for `mma` but not for `wgmma`; before the body of the
    /// entry, for both.
    pub(super) fn with_blocks_of_multiprocessor(mut self, blocks: u32) -> Self {
        let directives = format!("\n.minnctapersm {blocks}\n.pragma \"nounroll\";\n{{\n");
        self.text = self.text.replacen("\n{\n", &directives, 1);
        self
    }
}

/// Lines of text, indented by four spaces.
#[derive(Clone, Debug, Default)]
pub(super) struct Body(String);

impl Body {
    pub(super) fn line(&mut self, line: impl AsRef<str>) {
        writeln!(self.0, "    {}", line.as_ref()).expect("a string takes it");
    }

    pub(super) fn lines(&mut self, lines: &str) {
        lines.lines().for_each(|line| self.line(line.trim()));
    }

    pub(super) fn label(&mut self, label: &str) {
        writeln!(self.0, "{label}:").expect("a string takes it");
    }
}

/// The text of a module with this single entry.
pub(super) fn module(target: Target, parameters: &[&str], threads: u32, body: &Body) -> String {
    header(target) + &entry(ENTRY, parameters, threads, body)
}

/// The header of a module.
pub(super) fn header(target: Target) -> String {
    format!(".version {}\n.target {}\n.address_size 64\n\n", target.version, target.name)
}

/// An entry whose parameters are pointers, then a count.
pub(super) fn entry(name: &str, parameters: &[&str], threads: u32, body: &Body) -> String {
    let pointers = parameters.iter().map(|name| format!("    .param .u64 {name},\n")).collect::<String>();
    format!(".visible .entry {name}(\n{pointers}    .param .u32 count\n)\n.maxntid {threads}, 1, 1\n{{\n{}}}\n", body.0)
}

/// Formats registers as `{%a0, %a1}`.
pub(super) fn registers(name: char, count: usize) -> String {
    registers_from(name, 0, count)
}

/// Formats registers from `first` on, as `{%a4, %a5}`.
pub(super) fn registers_from(name: char, first: usize, count: usize) -> String {
    let names: Vec<String> = (first..first + count).map(|at| format!("%{name}{at}")).collect();
    format!("{{{}}}", names.join(", "))
}

/// An operand in the registers of several threads.
pub(super) struct Operand<'a> {
    pub(super) name: char,
    pub(super) layout: &'a Layout,
    pub(super) threads: usize,
}

impl<'a> Operand<'a> {
    pub(super) fn new(name: char, layout: &'a Layout, threads: usize) -> Self {
        Self { name, layout, threads }
    }

    pub(super) fn count(&self) -> usize {
        self.layout.registers(self.threads)
    }

    pub(super) fn bits(&self) -> usize {
        self.layout.register_bytes() * 8
    }

    pub(super) fn list(&self) -> String {
        registers(self.name, self.count())
    }

    pub(super) fn declare(&self, body: &mut Body) {
        body.line(format!(".reg .b{} %{}<{}>;", self.bits(), self.name, self.count()));
    }

    /// Loads or stores the registers of group `%group`; `%base` holds the lane's address in group 0.
    fn each(&self, body: &mut Body, base: &str, access: impl Fn(usize, usize) -> String) {
        body.line(format!("mul.wide.u32 %at, %group, {};", self.layout.bytes()));
        body.line(format!("add.s64 %at, %at, {base};"));
        let stride = self.layout.register_bytes() * self.threads;
        (0..self.count()).for_each(|at| body.line(access(at, at * stride)));
    }

    pub(super) fn load(&self, body: &mut Body, base: &str) {
        let (bits, name) = (self.bits(), self.name);
        self.each(body, base, |at, offset| format!("ld.global.b{bits} %{name}{at}, [%at+{offset}];"));
    }

    pub(super) fn store(&self, body: &mut Body, base: &str) {
        let (bits, name) = (self.bits(), self.name);
        self.each(body, base, |at, offset| format!("st.global.b{bits} [%at+{offset}], %{name}{at};"));
    }
}

/// Loads a pointer parameter and advances it to the thread's place.
pub(super) fn pointer(body: &mut Body, parameter: &str, thread: &str, bytes: usize) {
    body.line(format!("ld.param.u64 %p_{parameter}, [{parameter}];"));
    body.line(format!("cvta.to.global.u64 %p_{parameter}, %p_{parameter};"));
    body.line(format!("mad.wide.u32 %p_{parameter}, {thread}, {bytes}, %p_{parameter};"));
}

/// The first group of a warp, and the distance to the next; `%thread` holds the thread's index in its block.
pub(super) fn warp_loop(body: &mut Body) {
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

/// Continues with the next group, or ends.
pub(super) fn warp_loop_end(body: &mut Body) {
    body.lines(
        "add.u32 %group, %group, %stride;
        setp.lt.u32 %more, %group, %count;
        @%more bra next;",
    );
    body.label("finish");
    body.line("ret;");
}
