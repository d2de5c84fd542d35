//! Scalar arithmetic: the available functions, and their shaders.
//!
//! WGSL leaves more open than IEEE 754 does (*specified*: WGSL, "Floating Point Evaluation"): subnormals may be
//! flushed, rounding may be in any direction, NaN and infinity may be anything, `fma` may be an unfused multiply and
//! add, and a division may be wrong by 2.5 ULP. The probes find out what an adapter does.

use std::collections::BTreeMap;

use mxprobe_api::{DotOrder, Elementary, Format, Scalar, ScalarFunction, ScalarId};

use super::matrix::wgsl_type;

/// The number of calls that one workgroup computes, one per invocation.
pub const CALLS: u32 = 64;

/// The scalar arithmetic of an adapter with these formats: each in one mode, because WGSL selects none.
#[must_use]
pub fn scalars(formats: &[Format]) -> Vec<Scalar> {
    let functions = |format| -> BTreeMap<_, _> {
        let functions = ScalarFunction::of_shaders(format, formats);
        functions.map(|function| (function, Some(expression(function).replace('\n', " ")))).collect()
    };
    formats.iter().map(|format| Scalar { id: ScalarId::new(*format), functions: functions(*format) }).collect()
}

/// The WGSL of a function of `x0`, `x1`, …: an expression, preceded by statements if it needs any.
fn expression(function: ScalarFunction) -> String {
    use ScalarFunction as F;
    match function {
        F::Add => "x0 + x1".to_owned(),
        F::Subtract => "x0 - x1".to_owned(),
        F::Multiply => "x0 * x1".to_owned(),
        F::Divide => "x0 / x1".to_owned(),
        F::SquareRoot => "sqrt(x0)".to_owned(),
        F::Fma => "fma(x0, x1, x2)".to_owned(),
        F::MultiplyAdd => "x0 * x1 + x2".to_owned(),
        F::Convert { to } => format!("{}(x0)", wgsl_type(to).expect("a conversion between formats of WGSL")),
        F::Dot4 { order: DotOrder::Serial } => "(((zero + x0 * x4) + x1 * x5) + x2 * x6) + x3 * x7".to_owned(),
        F::Dot4 { order: DotOrder::Fma } => "fma(x3, x7, fma(x2, x6, fma(x1, x5, fma(x0, x4, zero))))".to_owned(),
        F::Dot4 { order: DotOrder::Pairwise } => "(x0 * x4 + x1 * x5) + (x2 * x6 + x3 * x7)".to_owned(),
        F::Reciprocal => "1 / x0".to_owned(),
        F::TruncatedRemainder => "x0 % x1".to_owned(),
        F::Scale => "ldexp(x0, i32(x1))".to_owned(),
        F::Compare => "select(select(select(2, 0, x0 == x1), 1, x0 > x1), -1, x0 < x1)".to_owned(),
        F::Negate => "-x0".to_owned(),
        F::Abs => "abs(x0)".to_owned(),
        F::Elementary(Elementary::ReciprocalSquareRoot) => "inverseSqrt(x0)".to_owned(),
        F::Elementary(function) => format!("{}(x0)", function.name()),
        _ => unreachable!("not a function of WGSL"),
    }
}

/// The shader of a function: binding 0 holds the operands, call after call, and binding 1 receives one result per call;
/// one workgroup computes [`CALLS`] calls.
#[must_use]
pub fn shader(format: Format, function: ScalarFunction) -> String {
    let result = function.result(format);
    let name = |format: Format| if format == Format::S32 { Some("i32") } else { wgsl_type(format) };
    let [from, to] = [format, result].map(|format| name(format).expect("a format of WGSL"));
    let arity = function.arity();
    let enable = if [format, result].contains(&Format::F16) { "enable f16;\n" } else { "" };
    let operands: String =
        (0..arity).map(|at| format!("    let x{at} = operands[id.x * {arity}u + {at}u];\n")).collect();
    let expression = expression(function);
    let zero = if expression.contains("zero") { format!("    var zero = {from}(0);\n") } else { String::new() };
    format!(
        "{enable}\
         @group(0) @binding(0) var<storage, read> operands: array<{from}>;\n\
         @group(0) @binding(1) var<storage, read_write> results: array<{to}>;\n\
         @compute @workgroup_size({CALLS})\n\
         fn main(@builtin(global_invocation_id) id: vec3<u32>) {{\n\
         {operands}{zero}    results[id.x] = {expression};\n\
         }}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shader_of_a_function_is_short_and_readable() {
        assert_eq!(
            shader(Format::F32, ScalarFunction::Convert { to: Format::F16 }),
            "enable f16;\n\
             @group(0) @binding(0) var<storage, read> operands: array<f32>;\n\
             @group(0) @binding(1) var<storage, read_write> results: array<f16>;\n\
             @compute @workgroup_size(64)\n\
             fn main(@builtin(global_invocation_id) id: vec3<u32>) {\n    \
                 let x0 = operands[id.x * 1u + 0u];\n    \
                 results[id.x] = f16(x0);\n\
             }\n"
        );
    }
}
