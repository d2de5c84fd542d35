//! Scalar arithmetic: the kernel of each function.
//!
//! Plain functions carry the decoration `NoContraction`, so that each is the one operation that it is named after;
//! `multiply_add` and the dot products do not, so that a driver may contract them, as it may in a shading language.
//! `fma` is that of `GLSL.std.450`, decorated: an undecorated one may be a multiply and an add (*specified*:
//! GLSL.std.450, `Fma`), and even a decorated one inherits the precision of both (*specified*: Vulkan, "Precision and
//! Operation of SPIR-V Instructions").

use ::spirv::{Capability, Decoration, GlslStd450Op, Op};
use mxprobe_api::{DotOrder, Elementary, Format, ScalarFunction};

use super::component::Component;
use super::float_mode::Asked;
use super::module::{Module, op};

/// The number of calls that one workgroup computes, one per invocation.
pub const CALLS: u32 = 64;

/// The scalar formats, in the order of the widths that float controls have.
pub const COMPONENTS: [Component; 3] = [Component::F16, Component::F32, Component::F64];

/// The instructions in the kernel of a function.
#[must_use]
pub fn instructions(function: ScalarFunction) -> &'static str {
    use ScalarFunction as F;
    match function {
        F::Add => "OpFAdd NoContraction",
        F::Subtract => "OpFSub NoContraction",
        F::Multiply => "OpFMul NoContraction",
        F::Divide => "OpFDiv NoContraction",
        F::SquareRoot => "GLSL.std.450 Sqrt NoContraction",
        F::Fma => "GLSL.std.450 Fma NoContraction",
        F::MultiplyAdd | F::Dot4 { order: DotOrder::Serial | DotOrder::Pairwise } => "OpFMul OpFAdd",
        F::Convert { .. } => "OpFConvert",
        F::Dot4 { order: DotOrder::Fma } => "GLSL.std.450 Fma",
        F::Reciprocal => "OpFDiv NoContraction of 1",
        F::TruncatedRemainder => "OpFRem NoContraction",
        F::Scale => "OpConvertFToS GLSL.std.450 Ldexp",
        F::Compare => "OpFOrdLessThan OpFOrdGreaterThan OpFOrdEqual OpSelect",
        F::Negate => "OpFNegate",
        F::Abs => "GLSL.std.450 FAbs",
        F::Elementary(function) => elementary(function).1,
        _ => "",
    }
}

/// The instruction of an elementary function, and its name.
fn elementary(function: Elementary) -> (GlslStd450Op, &'static str) {
    match function {
        Elementary::ReciprocalSquareRoot => (GlslStd450Op::InverseSqrt, "GLSL.std.450 InverseSqrt"),
        Elementary::Exp => (GlslStd450Op::Exp, "GLSL.std.450 Exp"),
        Elementary::Exp2 => (GlslStd450Op::Exp2, "GLSL.std.450 Exp2"),
        Elementary::Log => (GlslStd450Op::Log, "GLSL.std.450 Log"),
        Elementary::Log2 => (GlslStd450Op::Log2, "GLSL.std.450 Log2"),
        Elementary::Sin => (GlslStd450Op::Sin, "GLSL.std.450 Sin"),
        Elementary::Cos => (GlslStd450Op::Cos, "GLSL.std.450 Cos"),
        Elementary::Tanh => (GlslStd450Op::Tanh, "GLSL.std.450 Tanh"),
    }
}

/// The module of a function, with entry point `main`: set 0 binding 0 holds the operands, call after call, and binding
/// 3 receives one result per call; one workgroup computes [`CALLS`] calls. `None` if a format is not a scalar one, or
/// if the function has no instruction. Comparisons give signed 32-bit integers.
#[must_use]
pub fn words(format: Format, function: ScalarFunction, mode: Option<&Asked>) -> Option<Vec<u32>> {
    let component = |format: Format| COMPONENTS.into_iter().find(|component| component.format() == format);
    let from = component(format)?;
    let to = if function == ScalarFunction::Compare { Component::S32 } else { component(function.result(format))? };
    if instructions(function).is_empty() {
        return None;
    }
    let mut module = Module::default();
    module.capability(Capability::Shader);
    module.needs(from);
    module.needs(to);
    let entry = module.entry(1);
    let invocations = module.invocations(&entry);
    let operands = module.buffer(0, from, false);
    let results = module.buffer(3, to, true);
    let ty = module.component(from);
    let calls = module.constant(CALLS);
    let arity = u32::try_from(function.arity()).expect("a few operands");
    let indices: Vec<u32> = (0..=arity).map(|at| module.constant(at)).collect();

    let workgroup = module.begin(&entry);
    let invocation = module.first_of(&entry, invocations);
    let base = module.result(Op::IMul, entry.uint, &[workgroup, calls]);
    let call = module.result(Op::IAdd, entry.uint, &[base, invocation]);
    let first = module.result(Op::IMul, entry.uint, &[call, indices[arity as usize]]);
    let x: Vec<u32> = indices[..arity as usize]
        .iter()
        .map(|index| {
            let at = module.result(Op::IAdd, entry.uint, &[first, *index]);
            let pointer = module.element(operands, at);
            module.result(Op::Load, ty, &[pointer])
        })
        .collect();
    let result = value(&mut module, function, &x, from, to);
    let pointer = module.element(results, call);
    op(&mut module.code, Op::Store, &[pointer, result]);
    Some(module.finish(&entry, CALLS, mode))
}

/// The instructions of a function of operands `x`.
fn value(module: &mut Module, function: ScalarFunction, x: &[u32], from: Component, to: Component) -> u32 {
    use ScalarFunction as F;
    let ty = module.component(from);
    let plain = |module: &mut Module, result: u32| {
        module.decorate(result, Decoration::NoContraction, &[]);
        result
    };
    let two = |module: &mut Module, opcode: Op| {
        let result = module.result(opcode, ty, &x[..2]);
        plain(module, result)
    };
    match function {
        F::Add => two(module, Op::FAdd),
        F::Subtract => two(module, Op::FSub),
        F::Multiply => two(module, Op::FMul),
        F::Divide => two(module, Op::FDiv),
        F::SquareRoot => {
            let result = module.glsl(ty, GlslStd450Op::Sqrt, x);
            plain(module, result)
        }
        F::Fma => {
            let result = module.glsl(ty, GlslStd450Op::Fma, x);
            plain(module, result)
        }
        F::MultiplyAdd => {
            let product = module.result(Op::FMul, ty, &x[..2]);
            module.result(Op::FAdd, ty, &[product, x[2]])
        }
        F::Convert { .. } => {
            let to = module.component(to);
            module.result(Op::FConvert, to, x)
        }
        F::Dot4 { order: DotOrder::Fma } => {
            let zero = module.null(ty);
            (0..4).fold(zero, |sum, at| module.glsl(ty, GlslStd450Op::Fma, &[x[at], x[at + 4], sum]))
        }
        F::Dot4 { order } => {
            let products: Vec<u32> = (0..4).map(|at| module.result(Op::FMul, ty, &[x[at], x[at + 4]])).collect();
            let mut add = |a: u32, b: u32| module.result(Op::FAdd, ty, &[a, b]);
            if order == DotOrder::Pairwise {
                let (low, high) = (add(products[0], products[1]), add(products[2], products[3]));
                add(low, high)
            } else {
                let zero = module.null(ty);
                products.into_iter().fold(zero, |sum, product| module.result(Op::FAdd, ty, &[sum, product]))
            }
        }
        F::Reciprocal => {
            let one = module.number(from, from.format().one());
            let result = module.result(Op::FDiv, ty, &[one, x[0]]);
            plain(module, result)
        }
        F::TruncatedRemainder => two(module, Op::FRem),
        F::Scale => {
            let integer = module.component(Component::S32);
            let exponent = module.result(Op::ConvertFToS, integer, &x[1..2]);
            module.glsl(ty, GlslStd450Op::Ldexp, &[x[0], exponent])
        }
        F::Compare => {
            let (truth, integer) = (module.ty(Op::TypeBool, &[]), module.component(Component::S32));
            let unordered = module.number(Component::S32, 2);
            [(Op::FOrdEqual, 0u32), (Op::FOrdGreaterThan, 1), (Op::FOrdLessThan, u32::MAX)].into_iter().fold(
                unordered,
                |other, (opcode, answer)| {
                    let holds = module.result(opcode, truth, x);
                    let answer = module.number(Component::S32, answer.into());
                    module.result(Op::Select, integer, &[holds, answer, other])
                },
            )
        }
        F::Negate => module.result(Op::FNegate, ty, x),
        F::Abs => module.glsl(ty, GlslStd450Op::FAbs, x),
        F::Elementary(function) => module.glsl(ty, elementary(function).0, x),
        _ => unreachable!("`words` asks for functions that have instructions"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_functions_are_not_to_be_contracted_and_those_of_a_source_may_be() {
        let formats = COMPONENTS.map(Component::format);
        for format in formats {
            for function in ScalarFunction::of_shaders(format, &formats) {
                let words = words(format, function, None).unwrap();
                let decorated = words.windows(3).any(|window| {
                    window[0] == 3 << 16 | Op::Decorate as u32 && window[2] == Decoration::NoContraction as u32
                });
                assert_eq!(decorated, instructions(function).contains("NoContraction"), "{function}");
            }
        }
    }

    #[test]
    fn a_mode_asks_for_its_capability_and_each_width() {
        let mode = (crate::spirv::FloatMode::RoundTowardZero, vec![16, 32, 64]);
        let words = words(Format::F32, ScalarFunction::Add, Some(&mode)).unwrap();
        assert!(
            words
                .windows(2)
                .any(|window| window == [2 << 16 | Op::Capability as u32, Capability::RoundingModeRTZ as u32])
        );
        let widths: Vec<u32> = words
            .windows(4)
            .filter(|window| window[0] == 4 << 16 | Op::ExecutionMode as u32)
            .map(|window| window[3])
            .collect();
        assert_eq!(widths, [16, 32, 64]);
    }
}
