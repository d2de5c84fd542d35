//! Scalar arithmetic: the PTX instruction of each function, its modes, and its kernel.
//!
//! Modes are the words of PTX (*specified*: PTX ISA 9.0, 9.7.3 to 9.7.5 and 9.7.9.22): a direction, `ftz`, and, if an
//! instruction is an approximation, `approx` or `full`. Without a direction, `add` and `mul` are written without one,
//! and the assembler may then contract them to `fma`; instructions that require a direction get the one of CUDA C++: to
//! nearest, and toward zero for conversions to integers.
//!
//! A kernel is `tiles(a, d, count)`: thread `i` reads the operands of call `i`, which are adjacent in memory, and
//! writes its result.

use std::collections::BTreeSet;

use mxprobe_api::{DotOrder, Elementary, Format, ScalarFunction, ScalarId};

use super::capability::{Capability, PtxVersion, Target};
use super::text::{Body, entry, header, pointer};

/// Threads of a block.
pub const THREADS: u32 = 128;

/// A function in one mode.
#[derive(Clone, Debug)]
pub struct ScalarKernel {
    /// The format and mode.
    pub id: ScalarId,
    /// The function that it computes.
    pub function: ScalarFunction,
    /// The instructions, as shown in reports.
    pub instruction: String,
    /// The lowest target and version of its instructions.
    pub target: Target,
    body: Body,
}

impl ScalarKernel {
    /// The text of a module whose one entry has this name.
    #[must_use]
    pub fn text(&self, name: &str) -> String {
        header(self.target) + &self.entry(name)
    }

    /// The entry without the module's header.
    #[must_use]
    pub fn entry(&self, name: &str) -> String {
        entry(name, &["a", "d"], THREADS, &self.body)
    }
}

const VOLTA: Target = Target { name: "sm_70", version: PtxVersion::new(6, 0) };
/// For `tanh`.
const TURING: Target = Target { name: "sm_75", version: PtxVersion::new(7, 0) };
const AMPERE: Target = Target { name: "sm_80", version: PtxVersion::new(7, 0) };
/// For `cvt.f32.bf16`.
const AMPERE_7_1: Target = Target { name: "sm_80", version: PtxVersion::new(7, 1) };
const HOPPER: Target = Target { name: "sm_90", version: PtxVersion::new(7, 8) };

/// The directions, as written in ids and in PTX.
const DIRECTIONS: [(&str, &str); 4] = [("rne", ".rn"), ("rz", ".rz"), ("rd", ".rm"), ("ru", ".rp")];

/// The requested mode.
#[derive(Clone, Copy)]
struct Mode {
    format: Format,
    direction: Option<(&'static str, &'static str)>,
    flush: bool,
}

impl Mode {
    fn id(&self) -> ScalarId {
        self.named(self.direction.map(|(word, _)| word))
    }

    fn named(&self, word: Option<&str>) -> ScalarId {
        let id = word.into_iter().fold(ScalarId::new(self.format), ScalarId::with);
        if self.flush { id.with("ftz") } else { id }
    }

    /// The direction of an instruction that does not require one: empty if none was requested.
    fn asked(&self) -> &'static str {
        self.direction.map_or("", |(_, word)| word)
    }

    /// The direction of an instruction that requires one.
    fn needed(&self) -> &'static str {
        self.direction.map_or(".rn", |(_, word)| word)
    }

    /// The rounding to an integer: as in C++ if no direction was requested.
    fn whole(&self) -> String {
        format!("{}i", self.direction.map_or(".rz", |(_, word)| word))
    }

    fn ftz(&self) -> &'static str {
        if self.flush { ".ftz" } else { "" }
    }
}

/// Every function that a device of this capability has.
#[must_use]
pub fn kernels(capability: Capability) -> Vec<ScalarKernel> {
    let mut kernels = Vec::new();
    for format in [Format::F16, Format::BF16, Format::F32, Format::F64] {
        for flush in [false, true] {
            for direction in [None].into_iter().chain(DIRECTIONS.map(Some)) {
                let mode = Mode { format, direction, flush };
                arithmetic(mode, &mut kernels);
                conversions(mode, &mut kernels);
            }
        }
    }
    for direction in [None].into_iter().chain(DIRECTIONS.map(Some)) {
        conversions(Mode { format: Format::S32, direction, flush: false }, &mut kernels);
    }
    for flush in [false, true] {
        approximations(Mode { format: Format::F32, direction: None, flush }, &mut kernels);
    }
    let least = |target: Target| match target {
        HOPPER => Capability::new(9, 0),
        AMPERE | AMPERE_7_1 => Capability::new(8, 0),
        TURING => Capability::new(7, 5),
        _ => Capability::new(7, 0),
    };
    kernels.retain(|kernel| capability >= least(kernel.target));
    kernels
}

/// Sums, products, quotients and roots; if no direction is requested, also functions as source code would write them.
fn arithmetic(mode: Mode, kernels: &mut Vec<ScalarKernel>) {
    use ScalarFunction::{
        Abs, Add, Compare, CopySign, Divide, Fma, Multiply, MultiplyAdd, Negate, Reciprocal, SquareRoot, Subtract,
    };
    let (format, is_bfloat) = (mode.format, mode.format == Format::BF16);
    let half = format == Format::F16 || is_bfloat;
    // f16 and bf16 are rounded to nearest only; bf16 and f64 have no `.ftz` (*specified*: PTX ISA 9.0, 9.7.4 and
    // 9.7.3).
    if half && mode.direction.is_some_and(|(_, word)| word != ".rn")
        || [Format::BF16, Format::F64].contains(&format) && mode.flush
    {
        return;
    }
    let (asked, needed, ftz) = (mode.asked(), mode.needed(), mode.ftz());
    // `fma` of bf16 is older than its `add`, `sub` and `mul` (*specified*: PTX ISA 9.0, 9.7.4).
    let mut push = |function, lines: &[String]| {
        let is_older = matches!(function, Fma | ScalarFunction::Dot4 { order: DotOrder::Fma });
        let target = match (is_bfloat, is_older) {
            (false, _) => VOLTA,
            (true, true) => AMPERE,
            (true, false) => HOPPER,
        };
        kernels.push(kernel(mode.id(), function, target, lines));
    };
    for (function, name) in [(Add, "add"), (Subtract, "sub"), (Multiply, "mul")] {
        push(function, &[format!("{name}{asked}{ftz}.{format} %y, %x0, %x1;")]);
    }
    push(Fma, &[format!("fma{needed}{ftz}.{format} %y, %x0, %x1, %x2;")]);
    if !half {
        push(Divide, &[format!("div{needed}{ftz}.{format} %y, %x0, %x1;")]);
        push(SquareRoot, &[format!("sqrt{needed}{ftz}.{format} %y, %x0;")]);
        push(Reciprocal, &[format!("rcp{needed}{ftz}.{format} %y, %x0;")]);
    }
    if mode.direction.is_some() {
        // With a direction, neither instruction is contracted (*specified*: PTX ISA 9.0, 9.7.3.3 and 9.7.3.5).
        let multiply = format!("mul{asked}{ftz}.{format} %t0, %x0, %x1;");
        push(MultiplyAdd, &[multiply, format!("add{asked}{ftz}.{format} %y, %t0, %x2;")]);
        return;
    }
    let multiply = |into: &str, at: usize| format!("mul{ftz}.{format} {into}, %x{at}, %x{};", at + 4);
    let add = |into: &str, a: &str, b: &str| format!("add{ftz}.{format} {into}, {a}, {b};");
    push(MultiplyAdd, &[format!("mul{ftz}.{format} %t0, %x0, %x1;"), add("%y", "%t0", "%x2")]);
    let zero = format!("mov.b{} %y, 0;", format.bits());
    let chain = |link: &dyn Fn(usize) -> Vec<String>| -> Vec<String> {
        std::iter::once(zero.clone()).chain((0..4).flat_map(link)).collect()
    };
    let dot = |order| ScalarFunction::Dot4 { order };
    push(dot(DotOrder::Serial), &chain(&|at| vec![multiply("%t0", at), add("%y", "%y", "%t0")]));
    push(dot(DotOrder::Fma), &chain(&|at| vec![format!("fma.rn{ftz}.{format} %y, %x{at}, %x{}, %y;", at + 4)]));
    let mut tree: Vec<String> = (0..4).map(|at| multiply(&format!("%t{at}"), at)).collect();
    tree.extend([add("%t0", "%t0", "%t1"), add("%t2", "%t2", "%t3"), add("%y", "%t0", "%t2")]);
    push(dot(DotOrder::Pairwise), &tree);
    if !half {
        push(Negate, &[format!("neg{ftz}.{format} %y, %x0;")]);
        push(Abs, &[format!("abs{ftz}.{format} %y, %x0;")]);
        // The sign of the first operand, and the rest of the second (*specified*: PTX ISA 9.0, 9.7.3.2).
        if !mode.flush {
            push(CopySign, &[format!("copysign.{format} %y, %x1, %x0;")]);
        }
    }
    let answers = [("eq", 0), ("gt", 1), ("lt", -1)].map(|(relation, answer)| {
        [format!("setp.{relation}{ftz}.{format} %holds, %x0, %x1;"), format!("@%holds mov.b32 %y, {answer};")]
    });
    push(Compare, &[vec!["mov.b32 %y, 2;".to_owned()], answers.concat()].concat());
}

/// `cvt`: `.ftz` applies only if f32 is on either side; exact conversions have no direction.
fn conversions(mode: Mode, kernels: &mut Vec<ScalarKernel>) {
    const BF16: Format = Format::BF16;
    let Mode { format: from, direction, flush } = mode;
    for to in [Format::F16, BF16, Format::F32, Format::F64, Format::S32] {
        let single = from == Format::F32 || to == Format::F32;
        let toward = if to == Format::S32 { mode.whole() } else { mode.needed().to_owned() };
        let bits = |format: Format| if format == Format::S32 { 0 } else { format.bits() };
        let widens = bits(from) > 0 && bits(to) > bits(from) || (from, to) == (Format::S32, Format::F64);
        let exact = widens && from != Format::S32;
        // *Specified*: PTX ISA 9.0, 9.7.9.22: before sm_90, bf16 only from f32, to nearest or toward zero, and only to
        // f32.
        let target = match (from, to) {
            (Format::F32, BF16) => AMPERE,
            (BF16, Format::F32) => AMPERE_7_1,
            (BF16, _) | (_, BF16) => HOPPER,
            _ => VOLTA,
        };
        let is_offered = from != to
            && (!flush || single && from != Format::S32 && from != BF16 && to != BF16)
            && !(widens && direction.is_some())
            && (target != AMPERE || [".rn", ".rz"].contains(&mode.needed()));
        if is_offered {
            let toward = if exact { String::new() } else { toward };
            let line = format!("cvt{toward}{}.{to}.{from} %y, %x0;", mode.ftz());
            kernels.push(kernel(mode.id(), ScalarFunction::Convert { to }, target, &[line]));
        }
    }
}

/// Functions that are faster and not correctly rounded (*specified*: PTX ISA 9.0, 9.7.3.8 and 9.7.3.15: `div.full` and
/// `div.approx` have an error of at most 2 ulp, the latter for divisors from 2^-126 to 2^126; 9.7.3.13 to 9.7.3.24: the
/// functions of one operand, whose bounds are on the absolute error for `sin`, `cos` and, near 1, `lg2`).
fn approximations(mode: Mode, kernels: &mut Vec<ScalarKernel>) {
    use Elementary as E;
    use ScalarFunction::{Divide, Elementary as Function, Reciprocal, SquareRoot};
    let ftz = mode.ftz();
    let mut push = |word, function, target, line: String| {
        kernels.push(kernel(mode.named(Some(word)), function, target, &[line]));
    };
    push("approx", Divide, VOLTA, format!("div.approx{ftz}.f32 %y, %x0, %x1;"));
    push("full", Divide, VOLTA, format!("div.full{ftz}.f32 %y, %x0, %x1;"));
    for (function, name) in [
        (SquareRoot, "sqrt"),
        (Reciprocal, "rcp"),
        (Function(E::ReciprocalSquareRoot), "rsqrt"),
        (Function(E::Exp2), "ex2"),
        (Function(E::Log2), "lg2"),
        (Function(E::Sin), "sin"),
        (Function(E::Cos), "cos"),
    ] {
        push("approx", function, VOLTA, format!("{name}.approx{ftz}.f32 %y, %x0;"));
    }
    if !mode.flush {
        push("approx", Function(E::Tanh), TURING, "tanh.approx.f32 %y, %x0;".to_owned());
    }
}

fn kernel(id: ScalarId, function: ScalarFunction, target: Target, lines: &[String]) -> ScalarKernel {
    let (from, to) = (id.format, function.result(id.format));
    let (size, result_size, arity) = (from.storage_bytes(), to.storage_bytes(), function.arity());
    let mut body = Body::default();
    body.line(format!(".reg .b{} %x<{arity}>, %t<4>;", size * 8));
    body.line(format!(".reg .b{} %y;", result_size * 8));
    if function == ScalarFunction::Compare {
        body.line(".reg .pred %holds;");
    }
    body.lines(
        ".reg .b64 %p_a, %p_d;
        .reg .b32 %thread, %block, %count;
        .reg .pred %beyond;
        mov.u32 %thread, %tid.x;
        mov.u32 %block, %ctaid.x;",
    );
    body.line(format!("mad.lo.u32 %thread, %block, {THREADS}, %thread;"));
    body.lines(
        "ld.param.u32 %count, [count];
        setp.ge.u32 %beyond, %thread, %count;
        @%beyond bra finish;",
    );
    for (parameter, bytes) in [("a", arity * size), ("d", result_size)] {
        pointer(&mut body, parameter, "%thread", bytes);
    }
    for at in 0..arity {
        body.line(format!("ld.global.b{} %x{at}, [%p_a+{}];", size * 8, at * size));
    }
    lines.iter().for_each(|line| body.line(line));
    body.line(format!("st.global.b{} [%p_d], %y;", result_size * 8));
    body.label("finish");
    body.line("ret;");
    let mut seen = BTreeSet::from(["mov.b16", "mov.b32", "mov.b64", "@%holds"]);
    let names = lines.iter().filter_map(|line| line.split(' ').next());
    let names: Vec<&str> = names.filter(|name| seen.insert(name)).collect();
    ScalarKernel { id, function, instruction: names.join(", "), target, body }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_function_of_each_mode_stands_once() {
        let kernels = super::kernels(Capability::new(8, 0));
        let names: BTreeSet<(String, String)> =
            kernels.iter().map(|one| (one.id.to_string(), one.function.to_string())).collect();
        assert_eq!(names.len(), kernels.len());
        assert!(names.iter().all(|(id, _)| id.parse::<ScalarId>().is_ok_and(|parsed| parsed.to_string() == *id)));
    }

    #[test]
    fn instructions_are_those_of_the_mode() {
        let kernels = super::kernels(Capability::new(8, 0));
        let instruction = |id: &str, function: ScalarFunction| {
            let found = kernels.iter().find(|one| one.id.to_string() == id && one.function == function);
            found.map(|one| one.instruction.as_str())
        };
        let convert = |to| ScalarFunction::Convert { to };
        assert_eq!(instruction("scalar.f32", ScalarFunction::MultiplyAdd), Some("mul.f32, add.f32"));
        assert_eq!(instruction("scalar.f32.rne", ScalarFunction::MultiplyAdd), Some("mul.rn.f32, add.rn.f32"));
        assert_eq!(instruction("scalar.f32.rz.ftz", ScalarFunction::Divide), Some("div.rz.ftz.f32"));
        assert_eq!(instruction("scalar.f32.full", ScalarFunction::Divide), Some("div.full.f32"));
        assert_eq!(instruction("scalar.f32.full", ScalarFunction::Add), None);
        assert_eq!(instruction("scalar.f64.ru", ScalarFunction::Reciprocal), Some("rcp.rp.f64"));
        let sine = ScalarFunction::Elementary(Elementary::Sin);
        assert_eq!(instruction("scalar.f32.approx.ftz", sine), Some("sin.approx.ftz.f32"));
        assert_eq!(instruction("scalar.f32", sine), None);
        assert_eq!(instruction("scalar.f64.ru", ScalarFunction::SquareRoot), Some("sqrt.rp.f64"));
        assert_eq!(instruction("scalar.f64.ftz", convert(Format::F32)), Some("cvt.rn.ftz.f32.f64"));
        assert_eq!(instruction("scalar.f64.ftz", ScalarFunction::Add), None);
        assert_eq!(instruction("scalar.f32", convert(Format::S32)), Some("cvt.rzi.s32.f32"));
        assert_eq!(instruction("scalar.f32", convert(Format::F64)), Some("cvt.f64.f32"));
        assert_eq!(instruction("scalar.f32.rz", convert(Format::F64)), None);
        assert_eq!(instruction("scalar.s32.rd", convert(Format::F32)), Some("cvt.rm.f32.s32"));
        assert_eq!(instruction("scalar.s32", convert(Format::F64)), Some("cvt.rn.f64.s32"));
        assert_eq!(instruction("scalar.f16.rz", ScalarFunction::Add), None);
        assert_eq!(instruction("scalar.f32.rz", convert(Format::BF16)), Some("cvt.rz.bf16.f32"));
        assert_eq!(instruction("scalar.f32.ru", convert(Format::BF16)), None);
    }

    #[test]
    fn arithmetic_of_bf16_is_fused_on_ampere_and_whole_on_hopper() {
        let instruction = |capability: Capability, id: &str, function: ScalarFunction| {
            let kernels = super::kernels(capability);
            let found = kernels.iter().find(|one| one.id.to_string() == id && one.function == function);
            found.map(|one| (one.instruction.clone(), one.target.name))
        };
        let fma = ScalarFunction::Fma;
        let to = |to| ScalarFunction::Convert { to };
        let some = |text: &str, target| Some((text.to_owned(), target));
        let [turing, ampere, hopper] = [Capability::new(7, 5), Capability::new(8, 9), Capability::new(9, 0)];
        assert_eq!(instruction(turing, "scalar.bf16", fma), None);
        assert_eq!(instruction(ampere, "scalar.bf16", fma), some("fma.rn.bf16", "sm_80"));
        assert_eq!(instruction(ampere, "scalar.bf16", ScalarFunction::Add), None);
        assert_eq!(instruction(ampere, "scalar.bf16", to(Format::F32)), some("cvt.f32.bf16", "sm_80"));
        assert_eq!(instruction(ampere, "scalar.bf16", to(Format::F16)), None);
        assert_eq!(instruction(hopper, "scalar.bf16", ScalarFunction::Add), some("add.bf16", "sm_90"));
        assert_eq!(instruction(hopper, "scalar.bf16.rne", ScalarFunction::Multiply), some("mul.rn.bf16", "sm_90"));
        assert_eq!(instruction(hopper, "scalar.bf16.rz", ScalarFunction::Add), None);
        assert_eq!(instruction(hopper, "scalar.bf16.ftz", fma), None);
        assert_eq!(instruction(hopper, "scalar.bf16", ScalarFunction::Divide), None);
        assert_eq!(instruction(hopper, "scalar.bf16.ru", to(Format::S32)), some("cvt.rpi.s32.bf16", "sm_90"));
        assert_eq!(instruction(hopper, "scalar.f64.rd", to(Format::BF16)), some("cvt.rm.bf16.f64", "sm_90"));
    }
}
