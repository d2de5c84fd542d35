//! Scalar arithmetic in SPIR-V: which functions and modes a device has, and their kernels.
//!
//! Plain functions carry the decoration `NoContraction`, so that each is the one operation that it is called;
//! `multiply_add` and the dot products do not, so that a driver may contract them, as it may what a shading language
//! says. `fma` is that of `GLSL.std.450`, decorated: an undecorated one is free to be a multiply and an add
//! (*specified*: GLSL.std.450, `Fma`), and a decorated one inherits the precision of both even so (*specified*: Vulkan,
//! "Precision and Operation of SPIR-V Instructions").

use std::collections::BTreeMap;

use mxprobe_api::{DotOrder, Format, Scalar, ScalarFunction, ScalarId};

use crate::component::Component;
use crate::features::Features;
use crate::float_mode::{Asked, Controls, FloatMode};
use crate::module::*;

/// The calls that one workgroup computes, an invocation each.
pub(crate) const CALLS: u32 = 64;

/// The scalar formats, in the order of the widths that float controls have.
const COMPONENTS: [Component; 3] = [Component::F16, Component::F32, Component::F64];

/// The scalar arithmetic of a device, each with the mode that its kernels ask for.
pub(crate) fn scalars(features: &Features, controls: &Controls) -> Vec<(Scalar, Option<Asked>)> {
    let there: Vec<Component> =
        COMPONENTS.into_iter().filter(|component| features.missing_for(*component).is_none()).collect();
    let mut all = Vec::new();
    let formats: Vec<Format> = there.iter().map(|component| component.format()).collect();
    for component in &there {
        let functions = ScalarFunction::of_shaders(component.format(), &formats);
        let functions: BTreeMap<_, _> =
            functions.map(|function| (function, Some(instructions(function).to_owned()))).collect();
        let mut offer = |id: ScalarId, mode| all.push((Scalar { id, functions: functions.clone() }, mode));
        let id = ScalarId::new(component.format());
        offer(id.clone(), None);
        for mode in FloatMode::ALL {
            // Every width that can be had, whatever the format: a conversion has two.
            let widths = mode.widths([true; 3], controls);
            if widths.contains(&component.format().bits()) {
                offer(mode.words().iter().fold(id.clone(), |id, word| id.with(word)), Some((mode, widths)));
            }
        }
    }
    all
}

/// What stands in the kernel of a function.
fn instructions(function: ScalarFunction) -> &'static str {
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
    }
}

/// The module of a function, with entry point `main`: set 0 binding 0 holds the operands, call after call, and binding 3
/// takes one result a call; one workgroup computes [`CALLS`] calls. `None` where a format is no scalar one.
pub(crate) fn words(format: Format, function: ScalarFunction, mode: Option<&Asked>) -> Option<Vec<u32>> {
    let component = |format: Format| COMPONENTS.into_iter().find(|component| component.format() == format);
    let (from, to) = (component(format)?, component(function.result(format))?);
    let mut module = Module::default();
    module.capability(SHADER);
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
    let base = module.result(OP_I_MUL, entry.uint, &[workgroup, calls]);
    let call = module.result(OP_I_ADD, entry.uint, &[base, invocation]);
    let first = module.result(OP_I_MUL, entry.uint, &[call, indices[arity as usize]]);
    let x: Vec<u32> = indices[..arity as usize]
        .iter()
        .map(|index| {
            let at = module.result(OP_I_ADD, entry.uint, &[first, *index]);
            let pointer = module.element(operands, at);
            module.result(OP_LOAD, ty, &[pointer])
        })
        .collect();
    let result = value(&mut module, function, &x, ty, to);
    let pointer = module.element(results, call);
    op(&mut module.code, OP_STORE, &[pointer, result]);
    Some(module.finish(&entry, CALLS, mode))
}

/// The instructions of a function of operands `x` of type `ty`.
fn value(module: &mut Module, function: ScalarFunction, x: &[u32], ty: u32, to: Component) -> u32 {
    use ScalarFunction as F;
    let plain = |module: &mut Module, result: u32| {
        op(&mut module.annotations, OP_DECORATE, &[result, NO_CONTRACTION]);
        result
    };
    let two = |module: &mut Module, opcode: u32| {
        let result = module.result(opcode, ty, &x[..2]);
        plain(module, result)
    };
    match function {
        F::Add => two(module, OP_F_ADD),
        F::Subtract => two(module, OP_F_SUB),
        F::Multiply => two(module, OP_F_MUL),
        F::Divide => two(module, OP_F_DIV),
        F::SquareRoot => {
            let result = module.glsl(ty, GLSL_SQRT, x);
            plain(module, result)
        }
        F::Fma => {
            let result = module.glsl(ty, GLSL_FMA, x);
            plain(module, result)
        }
        F::MultiplyAdd => {
            let product = module.result(OP_F_MUL, ty, &x[..2]);
            module.result(OP_F_ADD, ty, &[product, x[2]])
        }
        F::Convert { .. } => {
            let to = module.component(to);
            module.result(OP_F_CONVERT, to, x)
        }
        F::Dot4 { order: DotOrder::Fma } => {
            let zero = module.null(ty);
            (0..4).fold(zero, |sum, at| module.glsl(ty, GLSL_FMA, &[x[at], x[at + 4], sum]))
        }
        F::Dot4 { order } => {
            let products: Vec<u32> = (0..4).map(|at| module.result(OP_F_MUL, ty, &[x[at], x[at + 4]])).collect();
            let mut add = |a: u32, b: u32| module.result(OP_F_ADD, ty, &[a, b]);
            if order == DotOrder::Pairwise {
                let (low, high) = (add(products[0], products[1]), add(products[2], products[3]));
                add(low, high)
            } else {
                let zero = module.null(ty);
                products.into_iter().fold(zero, |sum, product| module.result(OP_F_ADD, ty, &[sum, product]))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_features() -> Features {
        Features { float16: true, float64: true, storage16: true, ..Features::default() }
    }

    #[test]
    fn formats_are_those_of_the_features_and_modes_those_of_the_float_controls() {
        let controls = Controls {
            denorm_behavior_independence: ash::vk::ShaderFloatControlsIndependence::ALL,
            rounding_mode_independence: ash::vk::ShaderFloatControlsIndependence::ALL,
            shader_denorm_flush_to_zero_float32: 1,
            shader_rounding_mode_rtz_float16: 1,
            shader_rounding_mode_rtz_float32: 1,
            ..Default::default()
        };
        let ids = |features: &Features| -> Vec<String> {
            scalars(features, &controls).iter().map(|(scalar, _)| scalar.id.to_string()).collect()
        };
        assert_eq!(ids(&Features::default()), ["scalar.f32", "scalar.f32.ftz.daz", "scalar.f32.rz"]);
        let all = ["scalar.f16", "scalar.f16.rz", "scalar.f32", "scalar.f32.ftz.daz", "scalar.f32.rz", "scalar.f64"];
        assert_eq!(ids(&all_features()), all);
    }

    #[test]
    fn a_conversion_is_offered_where_both_formats_are() {
        let of = |features: &Features| {
            let found = scalars(features, &Controls::default());
            let count = |function: &&ScalarFunction| matches!(function, ScalarFunction::Convert { .. });
            found.iter().map(|(scalar, _)| scalar.functions.keys().filter(count).count()).collect::<Vec<_>>()
        };
        assert_eq!(of(&Features::default()), [0]);
        assert_eq!(of(&all_features()), [2, 2, 2]);
    }

    #[test]
    fn plain_functions_are_not_to_be_contracted_and_those_of_a_source_may_be() {
        for (scalar, _) in scalars(&all_features(), &Controls::default()) {
            for (function, instructions) in &scalar.functions {
                let words = words(scalar.id.format, *function, None).unwrap();
                let decorated =
                    words.windows(3).any(|window| window[0] == 3 << 16 | OP_DECORATE && window[2] == NO_CONTRACTION);
                assert_eq!(decorated, instructions.as_ref().unwrap().contains("NoContraction"), "{function}");
            }
        }
    }

    #[test]
    fn a_mode_asks_for_its_capability_and_each_width() {
        let mode = (FloatMode::RoundTowardZero, vec![16, 32, 64]);
        let words = words(Format::F32, ScalarFunction::Add, Some(&mode)).unwrap();
        assert!(words.windows(2).any(|window| window == [2 << 16 | OP_CAPABILITY, 4468]));
        let widths: Vec<u32> = words
            .windows(4)
            .filter(|window| window[0] == 4 << 16 | OP_EXECUTION_MODE)
            .map(|window| window[3])
            .collect();
        assert_eq!(widths, [16, 32, 64]);
    }
}
